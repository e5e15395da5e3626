"""Labels in compiled readers: which are allowed, and where those of a list go."""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.data.formats.outcomes import EXAMPLE, LABEL_COUNT, LABEL_DOMAIN, LABEL_REPEATED
from thresher.engine.jit import helper, scalar


@scalar
def check_label(label, domain):
    """The outcome of a label that is a finite number, by a `labels.Range`."""
    fits = domain.low <= label <= domain.high and (not domain.whole or label == np.floor(label))
    return EXAMPLE if fits else LABEL_DOMAIN


@helper
def target_of(targets, row):
    """Where the labels of a row go (outputs,), or None where there is one a row."""
    if targets is not None:
        return targets[row]
    return None


@scalar
def no_class(target):
    """Begin a list of classes in `target` (outputs,): none holds."""
    target[:] = np.float32(-1)


@scalar
def enter_class(target, label, domain):
    """Note in `target` that the class `label`, which is allowed, holds; the outcome."""
    place = np.int64(label - np.float32(domain.low))
    if target[place] > np.float32(0):
        return LABEL_REPEATED
    target[place] = np.float32(1)
    return EXAMPLE


@scalar
def enter_value(target, which, label):
    """Note in `target` (outputs,) the label of output `which`; the outcome."""
    if which == target.size:
        return LABEL_COUNT
    target[which] = label
    return EXAMPLE


@scalar
def keep_label(target, which, label):
    """Enter label number `which` in `target`, if that is not None: the first of them."""
    if target is not None:
        target[np.int64(which)] = label
        return target[0]
    return label
