"""What a prediction from raw values is: columns, keys, weights, link. Every target is written from it.

A feature without a weight adds nothing to a margin, so only those with one are kept; what is added up, and in
which order, is then still the same. `docs/export.md` has the fields of its JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, product
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.columns import AS_NUMBER, CATEGORICAL, FEATURES, LIST, SPELLED, TEXT
from thresher.data.errors import DataError
from thresher.data.feature_specs import Grams, grams_of, terms_of
from thresher.data.features.crossing import of_columns
from thresher.data.features.murmur import hash_columns
from thresher.data.features.names import Names
from thresher.data.features.ngrams import letters
from thresher.data.layout import SettledLayout, has_columns
from thresher.engine.index import HashedIndex, make_index
from thresher.engine.lookup import mix
from thresher.learning.files.choice import not_one
from thresher.learning.model.ensemble import Ensemble, ModelsByValue, predictor_of
from thresher.learning.model.objective import Objective
from thresher.learning.model.prediction import LinearPredictor, ModelOrFile
from thresher.learning.model.scaling import ones
from thresher.options.messages import mention

_PROBES = np.array([-40.0, -3.0, -0.7, 0.0, 0.4, 1.0, 2.5, 30.0])
IDENTITY, SIGMOID, RAMP, EXP, SOFTMAX = "identity", "sigmoid", "ramp", "exp", "softmax"
CALIBRATED = "calibrated"
OTHER_TARGETS = f"use {mention(to='c')} or {mention(to='js')}"
"""What helps where ONNX cannot express a model"""
LINKS = (IDENTITY, SIGMOID, RAMP, EXP, SOFTMAX, CALIBRATED)


class Link(NamedTuple):
    """A formula of margins m.

    ``identity``; ``sigmoid`` 1 / (1 + exp(-by m)); ``ramp`` (1 + m) / 2 between 0 and 1; ``exp`` exp(m + by);
    ``softmax`` exp(by m_k) / sum_j exp(by m_j); ``calibrated`` 1 / (1 + exp(-(by m + plus))), whose label is
    positive where by m + plus is.
    """

    name: str
    by: float = 0.0
    plus: float = 0.0

    def of(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """The predictions for margins ``(n, outputs)``."""
        with np.errstate(over="ignore"):
            if self.name == SIGMOID:
                return np.asarray(1 / (1 + np.exp(-self.by * margins)))
            if self.name == RAMP:
                return np.clip((1 + margins) / 2, 0, 1)
            if self.name == EXP:
                return np.exp(margins + self.by)
            if self.name == SOFTMAX:
                raised = np.exp(self.by * margins - self.by * margins.max(axis=1, keepdims=True))
                return np.asarray(raised / raised.sum(axis=1, keepdims=True))
        return margins


def link_of(head: Objective) -> Link:
    """The link of a loss; `DataError` for one that is none of these.

    Found by comparing values: no table of losses could be wrong, and a loss of your own is served too.
    """
    if (found := head.calibrated()) is not None:
        return Link(SOFTMAX, found.slope) if head.count > 1 else Link(CALIBRATED, *found)
    margins = np.column_stack([np.roll(_PROBES, k) for k in range(head.count)])
    given: Any = margins if head.count > 1 else margins[:, 0]
    output: Any = "probability" if head.has_probabilities else "label"
    if head.classifies and not head.has_probabilities:
        return Link(IDENTITY)
    expected = head.respond(given, output, 0.0).reshape(margins.shape)
    slope = float(np.log(expected[0, 0]) / margins[0, 0]) if 0 < expected[0, 0] < 1 else 1.0
    offset = float(np.log(expected[3, 0])) if expected[3, 0] > 0 else 0.0
    tried = [Link(IDENTITY), Link(SIGMOID, float(np.round(slope, 6))), Link(RAMP)]
    tried += [Link(EXP, getattr(head.loss, "offset", offset)), Link(SOFTMAX, 1.0)]
    for link in tried:
        if np.allclose(expected, link.of(margins), rtol=1e-12, atol=1e-300):
            return link
    name = parts.part_name(type(head.loss))
    raise DataError(f"the link of the loss {name} is none of {', '.join(LINKS[:5])}: it cannot be exported")


UNLABELLED = ("label", "weight", "group")
"""Kinds of columns that data to predict need not have"""


class ExportedColumn(NamedTuple):
    """A column that features come from."""

    name: str
    kind: str
    spelled: bool
    """whether values have one spelling, as 1 for 1.0"""
    numbers: bool
    """whether they are numbers, of which NaN and infinity are refused"""
    key: int
    """of a numeric column"""
    seed: int
    """of the hash of its values"""
    place: int
    """among all columns of the training data"""
    bare_place: int
    """the same without labels, weights and groups"""


class HashedStore(NamedTuple):
    """How a key becomes the number of a weight in a hashed store."""

    bits: int
    seed: int
    """mixed: xor it with the key"""
    signed: bool


class ExportedModel(NamedTuple):
    """One model. Keys ascend."""

    keys: NDArray[np.uint64]
    """of features with a weight; in a hashed store, numbers of weights"""
    weights: NDArray[Any]
    """``(keys, outputs)``"""
    intercepts: NDArray[Any]
    means: dict[int, float]
    """by key, ascending, as `divisors`"""
    divisors: dict[int, float]


class RawPrediction(NamedTuple):
    """A prediction from raw values."""

    columns: list[ExportedColumn]
    """empty if features have ids"""
    layout: SettledLayout
    products: list[tuple[int, ...]]
    """two or three columns each, by number"""
    grams: Grams
    store: HashedStore | None
    """None if weights are found by the keys themselves"""
    models: list[ExportedModel]
    """the margin is the mean of theirs"""
    link: Link
    kind: str
    """of the outputs: one, classes, labels, values"""
    names: list[str]
    """of the outputs"""
    labels: list[str]
    """the classes: for one output, the negative and the positive one; none if a number is predicted"""
    known: Names | None
    """names of features"""
    head: Objective

    missing_is_mean: bool
    """whether a missing number is told from 0"""
    mask: int
    """of the bits of a key that are kept; ids keep all"""

    def has(self, *kinds: str) -> bool:
        """Whether there is a column of these kinds."""
        return any(one.kind in kinds for one in self.columns)


def describe(model: ModelOrFile) -> RawPrediction:
    """What the predictions of a model are. `DataError` for what no target can express, `ModelFileError`."""
    found = predictor_of(model)
    if isinstance(found, ModelsByValue):
        raise DataError(not_one(found.column, fspath(model) if isinstance(model, str | PathLike) else None))
    own: list[Any] = found.models if isinstance(found, Ensemble) else [found]
    predictors = [one.predictor() for one in own]
    first = predictors[0]
    layout = first.layout or SettledLayout()
    lists = next((name for name, kind in layout.kind_of.items() if kind == LIST), "")
    table, matrix = has_columns(layout), first.numbering is not None and not layout.format
    shared = table and layout.bits and first.means is not None
    named = not (table or matrix or layout.format == "svmlight")
    refused = (
        (first.shifted, "offsets: train without them"),
        (first.unmet.any(), f"weights of features that were never seen: use another {mention('rule')}"),
        (lists, f"column '{lists}', which holds lists: use {mention(ignore=lists)}"),
        (shared, f"means of keys of few {mention('bits')}: leave it out, or use {mention(centre=False)}"),
        (named, "features that have names but no columns: train on a table (CSV, Parquet) or on ids"),
        (not table and layout.interact, f"products of ids: leave {mention('interact')} out"),
    )
    if why := next((why for holds, why in refused if holds), ""):
        raise DataError(f"an export cannot express {why}")
    if first.head.outputs.levels:
        raise DataError(
            "several quantiles are sorted when predicted, which exports do not do: export one each"
        )
    columns, bare = list[ExportedColumn](), 0
    keys = hash_columns(layout.columns, layout.seed).tolist()
    pairs = zip(layout.columns, layout.kinds, layout.spelling, keys, strict=True)
    for place, (name, kind, how, key) in enumerate(pairs if table else ()):
        if kind in FEATURES:
            spelled = kind in (CATEGORICAL, TEXT) and how in SPELLED
            seed, numbers = key if name else layout.seed, spelled and how == AS_NUMBER
            columns.append(ExportedColumn(name, kind, spelled, numbers, key & layout.mask, seed, place, bare))
        bare += kind not in UNLABELLED
    head, words = first.head, first.classes
    known = (np.max([one.centred_bias for one in predictors], axis=0) > -np.inf).tolist()
    labels = list(words) or [f"{found.lowest_label:.9g}", "1"] if head.outputs.kind == "one" else list(words)
    names = head.names(words if head.outputs.kind in ("classes", "labels") else ())
    if head.outputs.kind == "classes":  # those that were met
        labels = names = [*compress(names, known)]
        if len(names) < 2:
            raise DataError("the model has met one class only: go on with rows of others, then export it")
    return RawPrediction(
        columns,
        layout,
        _products(layout, columns) if layout.interact else [],
        grams_of(layout.ngrams),
        _store(first),
        [weights_of(one, known) for one in predictors],
        link_of(head),
        head.outputs.kind,
        names,
        labels if head.classifies else [],
        first.names,
        head,
        layout.gaps and bool(columns),
        (layout if columns else SettledLayout()).mask,
    )


def _products(layout: SettledLayout, columns: list[ExportedColumn]) -> list[tuple[int, ...]]:
    """The columns of each product, in the order in which rows are crossed: see `features.crossing`."""
    names = [one.name for one in columns]
    crosses = of_columns(layout, names, [one.kind for one in columns], "the model")
    assert crosses is not None
    found, among = list[tuple[int, ...]](), range(len(columns))
    for term in terms_of(layout.interact).terms:
        fits = [[k for k in among if crosses.bits[k] >> factor & 1] for factor in term]
        first = dict[tuple[int, ...], tuple[int, ...]]()
        for places in product(*fits):
            first.setdefault(tuple(sorted(places)), places)
        found += first.values()
    return found


def _store(predictor: LinearPredictor) -> HashedStore | None:
    index = make_index(predictor.store)
    if not isinstance(index, HashedIndex):
        return None
    return HashedStore(index.bits, int(mix(np.array([index.seed], np.uint64))[0]), index.signed)


def weights_of(predictor: LinearPredictor, known: Sequence[bool]) -> ExportedModel:
    """The weights of `known` outputs that are not zero, with the means and divisors of their features."""
    table = predictor.weights.reshape(len(predictor.keys), predictor.head.count)[:, known]
    kept = table.any(axis=1)
    keys = predictor.keys[kept]
    index, means, by = make_index(predictor.store), predictor.means, predictor.divisors

    def with_weights(found: NDArray[np.uint64], numbers: NDArray[np.float64]) -> dict[int, float]:
        each = ones(found)
        rows = index.find(each.keys, each.indptr, each.values).rows if _store(predictor) else found
        there = np.isin(rows, keys)
        return dict(zip(found[there].tolist(), numbers[there].tolist(), strict=True))

    centred = {} if means is None else with_weights(means.keys, means.means)
    divided = {} if by is None else with_weights(by.keys, by.by)
    return ExportedModel(keys, table[kept], predictor.centred_bias[known], centred, divided)


def letter_ranges(tokens: str) -> list[tuple[int, int, int]]:
    """Characters of words in ranges ``(first, last, lower)``: in lower case they are greater by `lower`."""
    table = letters(tokens)
    codes = np.flatnonzero(table)
    lower = (table[codes] >> 1) - codes
    ends = np.flatnonzero((np.diff(codes) != 1) | (np.diff(lower) != 0))
    firsts, lasts = np.append(0, ends + 1), np.append(ends, len(codes) - 1)
    return [*zip(codes[firsts].tolist(), codes[lasts].tolist(), lower[firsts].tolist(), strict=True)]
