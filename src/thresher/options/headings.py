"""The headings under which the help of a command with many options lists them."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Heading(NamedTuple):
    """What some options are about."""

    title: str
    names: tuple[str, ...]
    """of the options, in the order of the help"""


HEADINGS = {
    "learning": Heading(
        "What to learn",
        (
            *("rule", "loss", "rate", "alpha", "outputs", "batch", "average", "scale", "centre", "intercept"),
            *("calibrate", "sample", "nonnegative", "nonpositive", "seed", "dtype", "modules", "ensemble"),
        ),
    ),
    "sparsity": Heading("Sparsity", ("l1", "choose", "admit", "store")),
    "passes": Heading(
        "Passes and hold-outs", ("passes", "replay", "order", "holdout", "early_stop", "cache")
    ),
    "reading": Heading(
        "Reading files",
        (
            *("format", "header", "delimiter", "missing", "quoting", "quoted_newlines", "where", "on_error"),
            *("threads", "workers", "ray"),
        ),
    ),
    "columns": Heading(
        "Columns and features",
        (
            *("label", "classes", "weight", "label_weights", "offset", "group", "ignore", "numeric", "bins"),
            *("categorical", "text", "ngrams", "interact", "bits", "hash"),
        ),
    ),
    "going-on": Heading(
        "Going on",
        ("continue_from", "init", "checkpoint_every", "resume", "weights_only", "state"),
    ),
    "output": Heading(
        "Output",
        ("model", "names", "slices", "plot", "table", "curve", "report_every", "quiet", "strict", "json"),
    ),
}
"""By the word that ``--help`` takes"""
EVERY_DAY = (
    *(
        "model",
        "label",
        "categorical",
        "text",
        "ignore",
        "loss",
        "rule",
        "l1",
        "choose",
        "passes",
        "order",
        "holdout",
    ),
    *("names", "continue_from", "on_error", "quiet", "json"),
)
"""Options of the first page"""
MANY = 15
"""A command with more options than this shows those of the first page, unless it is asked for others."""


def under(word: str, names: Collection[str]) -> list[str]:
    """Those of an option's `names` that are under a heading; those of none of them are on the first page."""
    if word:
        return [name for name in HEADINGS[word].names if name in names]
    listed = {name for heading in HEADINGS.values() for name in heading.names}
    own = [name for name in names if name not in listed]
    first = [name for name in EVERY_DAY if name in names]
    return [*first[:1], *own, *first[1:]]
