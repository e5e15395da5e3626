"""Which rows each of many models of one recipe learns: those of a value of a column, or of an ensemble.

Of a column, such as a country, a shop or a tenant, there is a model for each value, beside a model of all
rows. The models of a value learn its rows and no others, as if ``where`` had read these alone (law 7): each
has its own feed, index, scales and batches. With ``passes="auto"``, each makes as many passes as its rows
alone would get, if all rows can be kept and the store is ``growing``, without admission or samples. A value
that was never seen, or is missing, has the model of all rows.

A call of the compiled loop takes as long as 250 rows, so rows of many values are gathered before they
are dealt. In later passes, which may come from memory or a cache, rows are known by their numbers: their
values are kept from the first.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike, fspath

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.columns import ColumnValues, apart, read_beside
from thresher.data.errors import DataError, OneLineError
from thresher.data.inputs.matrices import DistinctKeys
from thresher.data.source import Source
from thresher.engine.index import GrowingIndex
from thresher.engine.lookup import mix, resize, scatter
from thresher.engine.sound import State, Tensors, check_tensor, require
from thresher.learning.diagnostics.findings import EarlyFinding, Finding, warn
from thresher.learning.files import model_file
from thresher.learning.files.choice import by_option, by_spec, column_of
from thresher.learning.model.ensemble import DISJOINT, HALVES, POISSON, Ensemble, ModelsByValue
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet, Share
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.passes import Size, passes_for
from thresher.learning.training.record import Record
from thresher.learning.training.shares import BAGS, STEP, THINNED, bits_of, together, unit
from thresher.options.kinds import PASSES
from thresher.options.messages import mention, shell_or_python

MOST = 100_000
"""Maximum number of values"""
IDS, FIRST_ROWS = 1000, 1010
"""So many new values in so many first rows identify rows: of 50,000 values, drawn evenly, they have fewer"""


class ByColumn(Share):
    """Part 0 learns all rows; each value of a column has a part of its own, from its first row on."""

    deals = together = True
    recorded = slice(0)
    worth, most_waiting = 256, 1 << 23  # a call of the compiled loop takes as long; 100 MB

    def __init__(self, column: str, record: Record | None = None, names: Sequence[str] = ()) -> None:
        """`record` is that of models that go on with other data, and `names` the values that they have."""
        self.column, self.spec, self._record = column, by_spec(column), record
        self._know(names)
        self._learned = len(names)
        self._values: ColumnValues | None = None
        self._numbers = [np.zeros(0, np.int32)]
        """the part of each row of the first pass, as long as rows may come again"""
        self._counted = np.zeros((1 + len(self.names), 2), np.int64)
        """rows of importance above 0 and their stored values in the first pass, by part"""

    def _know(self, names: Sequence[str]) -> None:
        self.names, self.parts = [*names], 1 + len(names)

    def attach(self, *sources: Source | None) -> None:
        """Let sources give the cells of the column. `DataError` if one cannot."""
        for source in sources:
            if source is not None:
                read_beside(source, [self.column], by_option)
                if self._values is None and source.layout is not None:
                    self._values = ColumnValues(self.column, source.layout, MOST + 1, known=self.names)

    def noted(self, chunk: Chunk, first: int) -> Chunk:
        """`chunk` with the numbers of parts for cells. `DataError` for too many values."""
        if chunk.cells is None:
            self._numbers = [np.concatenate(self._numbers)]
            return replace(chunk, cells=self._numbers[0][first : first + len(chunk), np.newaxis])
        assert self._values is not None
        numbers = self._values.numbers(chunk.cells[:, 0]).astype(np.int32)
        if numbers.max(initial=0) > MOST:
            many = f"it has more than {MOST:,} values, each of which would have a model"
            raise DataError(f"{by_option(self.column)}: {many}: choose a column with fewer")
        if len(self._values.known) > len(self.names):
            if first < FIRST_ROWS and (numbers[: FIRST_ROWS - first] == self._learned + IDS).any():
                reason = f"nearly every row has a value of its own in column {self.column}"
                reason = f"{reason} ({by_option(self.column)}), and each gets a model"
                found = Finding("values-as-ids", f"{reason}: choose a column whose values come again")
                self.found = [EarlyFinding(*one) for one in warn([found])]
            self._know([*self._values.known])
        if self.kept and first == sum(map(len, self._numbers)):
            self._numbers.append(numbers)  # new rows, which may come again
            self._counted, counting = resize(self._counted, self.parts), chunk.weights > 0
            np.add.at(self._counted[:, 0], numbers[counting], 1)
            np.add.at(self._counted[:, 1], numbers[counting], np.diff(chunk.indptr)[counting])
            if self._counted[:, 0].sum() > self.kept:
                self.kept, self._numbers = 0, [np.zeros(0, np.int32)]
        return replace(chunk, cells=numbers[:, np.newaxis])

    def dealt(self, chunk: Chunk, first: int) -> Callable[[int], Chunk]:
        """All rows, or those of the value of a part."""
        assert chunk.cells is not None
        numbers, whole = chunk.cells[:, 0], replace(chunk, cells=None)
        _, rows = apart(whole, numbers, self.parts)
        self.last = int(numbers[-1])
        return lambda part: rows(part) if part else whole

    def settle(self, models: ModelSet, passes: int) -> int:
        """The most passes of any part; each gets its own."""
        recipe, own = models.recipe, [passes]
        for part, (rows, stored) in zip(models.parts[1:], self._counted[1:].tolist(), strict=True):
            index, alone = part.feed.index, passes
            if isinstance(index, GrowingIndex) and recipe.admit is recipe.sample is None:
                alone = passes_for(Size(rows, stored, features=DistinctKeys.of(index.features()[1:])))
            own.append(alone)
        self.own_passes = np.array(own)
        return max(own)

    def as_one(self, models: list[Model]) -> ModelsByValue[Model]:
        """The models of the values, as one."""
        return ModelsByValue(models, self.spec, self._record, self.names)

    def state(self) -> State:
        """The values, and what is known of the rows of the first pass."""
        return {
            "values": np.frombuffer(json.dumps(self.names).encode(), np.uint8),
            "numbers": np.concatenate(self._numbers),
            "counted": self._counted,
            "passes": self.own_passes,
        }

    def restore(self, state: Tensors) -> None:
        """Go on from a `state`. StateError."""
        try:
            names = json.loads(check_tensor(state, "values", (None,), np.uint8).tobytes())
        except ValueError:
            names = None
        texts = isinstance(names, list) and all(isinstance(one, str) and one for one in names)
        require(texts and len({*names}) == len(names) <= MOST, "values", "expected different texts")
        numbers, parts = check_tensor(state, "numbers", (None,), np.int32), 1 + len(names)
        counted = check_tensor(state, "counted", (None, 2), np.int64)
        passes = check_tensor(state, "passes", (None,), np.int64)
        known = numbers.min(initial=0) >= 0 and numbers.max(initial=0) < parts
        known = known and len(counted) <= parts and len(passes) in (0, parts)
        require(known, "numbers", "expected those of parts")
        require((counted >= 0).all(), "counted", "expected numbers of rows")
        require(((passes >= 1) & (passes <= PASSES.high)).all(), "passes", "expected those of parts")
        self._know(names)
        self._numbers, self._counted, self.own_passes = [numbers], counted, passes
        if self._values is not None:
            self._values.know(names)


_MOST_OF_AN_ENSEMBLE = 999
"""Maximum number of models"""
_SPEC = re.compile(
    rf"(?:({POISSON}|{DISJOINT}):)?([0-9]{{1,18}})|({HALVES}):([0-9]{{1,18}})(?::([0-9]{{0,9}}\.?[0-9]{{1,30}}))?"
)
_BELOW = np.cumsum([math.exp(-1.0) / math.factorial(count) for count in range(18)])
"""P(X <= count) for X ~ Poisson(1); the last is 1 in float64"""
HALF = 0.5
_TOP_BIT = np.uint64(63)


@dataclass(frozen=True)
class Bags:
    """How rows are given to the models of an ensemble.

    ``poisson``: model k learns row i with importance X times its own, where X ~ Poisson(1); rows with X = 0
    are left out. This is the bootstrap of a stream (Oza and Russell, Online Bagging and Boosting (AISTATS
    2001)). ``disjoint``: each row is learned by one model, drawn at random (Daume, A Course in Machine
    Learning (2012), section 13).

    Every draw is a hash of the seed, the number of the row and the model. So it does not depend on where the
    stream is cut, and is the same in every pass.

    ``halves``: models 2 j and 2 j + 1 are a pair. Of rows 2 i and 2 i + 1, each learns one, drawn at random.
    So the rows of a pair are disjoint, and each model has half of all (Shah and Samworth, Variable selection
    with error control: another look at stability selection (JRSS B 2013), section 2). With a `share` s below
    0.5, it leaves out each of its rows with the chance 1 - 2 s. Rows of a group go to one model of a pair.

    >>> Bags.of("disjoint:2").draw(0, 6).tolist()
    [[1, 0, 1, 0, 0, 1], [0, 1, 0, 1, 1, 0]]
    """

    count: int
    """number of models"""
    rows: str = POISSON
    seed: int = 0
    share: float = HALF
    """share of the rows that each model learns, if they are ``halves``"""

    @classmethod
    def of(cls, spec: str | int, seed: int = 0) -> Bags:
        """From ``N``, ``poisson:N``, ``disjoint:N``, ``halves:N`` or ``halves:N:SHARE``; or ValueError."""
        if (found := _SPEC.fullmatch(str(spec))) is None:
            by = shell_or_python("", ", or by:COLUMN")
            raise OneLineError(f"an ensemble is N, poisson:N, disjoint:N or halves:N{by}, not {spec!r}")
        count = int(found[2] or found[4])
        share = float(found[5] or HALF)
        if not 2 <= count <= _MOST_OF_AN_ENSEMBLE or not 0 < share <= HALF:
            wanted = f"2 to {_MOST_OF_AN_ENSEMBLE} models, and halves a share of up to {HALF}"
            raise ValueError(f"an ensemble has {wanted}, not {spec}")
        return cls(count, found[1] or POISSON, seed) if found[3] is None else cls(count, HALVES, seed, share)

    @property
    def kind(self) -> str:
        """How rows are given, without the number of models: the share of halves after a colon."""
        shown = np.format_float_positional(self.share, trim="-")
        return self.rows if self.share == HALF else f"{self.rows}:{shown}"

    @property
    def spec(self) -> str:
        """The text that `of` accepts."""
        return spec_of(self.kind, self.count)

    def draw(self, first: int, rows: int, groups: NDArray[np.uint64] | None = None) -> NDArray[np.uint8]:
        """How often each model learns each of `rows` rows of the stream, from number `first` on.

        ``(models, rows)``. Rows of `groups` stay together in ``halves``.
        """
        if self.rows == HALVES:
            whole = None if groups is None else together(groups, first)
            return self._halves(np.arange(first, first + rows, dtype=np.uint64), whole)
        of_row = bits_of(np.arange(first, first + rows, dtype=np.uint64), self.seed, BAGS)
        models = np.arange(self.count, dtype=np.uint64)[:, np.newaxis]
        if self.rows == DISJOINT:
            chosen: NDArray[np.bool_] = np.floor(unit(of_row) * self.count) == models
            return chosen.astype(np.uint8)
        draws = unit(scatter(mix(of_row + (models + np.uint64(1)) * STEP)))
        times: NDArray[np.uint8] = np.searchsorted(_BELOW, draws, side="right").astype(np.uint8)
        return times

    def _halves(self, rows: NDArray[np.uint64], groups: NDArray[np.uint64] | None) -> NDArray[np.uint8]:
        """Which model of each pair learns each of these rows: one of two neighbours, or the whole group."""
        one = np.uint64(1)
        drawn, odd = (rows >> one, rows & one) if groups is None else (groups, None)
        pairs = (np.arange((self.count + 1) // 2, dtype=np.uint64)[:, np.newaxis] + one) * STEP
        second = scatter(mix(bits_of(drawn, self.seed, BAGS) + pairs)) >> _TOP_BIT
        second = second if odd is None else second ^ odd
        learned = np.stack([second == 0, second == 1], axis=1).reshape(2 * len(second), len(rows))
        if self.share < HALF:
            luck = unit(scatter(mix(bits_of(rows, self.seed, THINNED) + pairs)))
            learned &= np.repeat(luck < 2 * self.share, 2, axis=0)
        return learned[: self.count].astype(np.uint8)


def draw_rows(chunk: Chunk, times: NDArray[np.uint8]) -> Chunk:
    """The rows that a model learns, with their importances multiplied."""
    learned = times > 0
    rows = chunk.take(learned)
    return replace(rows, weights=rows.weights * times[learned].astype(np.float32))


class Bagged(Share):
    """Each part learns the rows that `bags` draw for it.

    Scales, admission and batches count only these rows, so each model has its own feed and index.

    >>> models = ModelSet([Recipe("ftrl", l1=0.1)], Bagged(Bags.of("disjoint:2")))
    >>> models.learn(Chunk.of_rows([(1.0, {7: 2.0}), (-1.0, {8: 1.0}), (1.0, {9: 2.0})]))
    >>> [model.weights()[0].tolist() for model in models.models]
    [[7, 9], [8]]
    """

    deals = together = True
    recorded = slice(0)

    def __init__(self, bags: Bags, record: Record | None = None) -> None:
        """`record` is that of models that go on with other data."""
        self.bags, self.parts, self.spec, self._record = bags, bags.count, bags.spec, record
        self.measures = bags.rows == HALVES

    def dealt(self, chunk: Chunk, first: int) -> Callable[[int], Chunk]:
        """The rows drawn for each part, with their importances multiplied."""
        draws = self.bags.draw(first, len(chunk), chunk.groups)
        if draws.any():
            last = np.flatnonzero(draws.any(axis=0))[-1]
            self.last = int(np.flatnonzero(draws[:, last])[0])
        return lambda part: draw_rows(chunk, draws[part])

    def as_one(self, models: list[Model]) -> Ensemble[Model]:
        """The ensemble."""
        return Ensemble(models, self.bags.kind, self._record)


def share_of(
    spec: str | int, seed: int = 0, record: Record | None = None, names: Sequence[str] = ()
) -> Share:
    """How rows are dealt, from a text that `Bags.of` or `by_spec` makes; ValueError.

    `record` is that of models that go on with other data, and `names` the values of a column they have.
    """
    column = column_of(str(spec))
    return ByColumn(column, record, names) if column else Bagged(Bags.of(spec, seed), record)


def make_bags(recipe: Recipe, share: Share) -> ModelSet:
    """Models that learn their share of the rows. ValueError for a recipe that calibrates one model."""
    if recipe.calibrate:
        raise OneLineError(f"{mention(calibrate=True)} is for one model: leave it out")
    return ModelSet([recipe], share)


def spec_of(rows: str, count: int) -> str:
    """How many models an ensemble has, and which `rows` they learn, as its file calls them."""
    kind, _, share = rows.partition(":")
    return rows if column_of(rows) else f"{kind}:{count}{share and ':' + share}"


def to_go_on(given: object) -> ModelSet:
    """The models of an ensemble to go on with: copies of these, or those in a file.

    `ModelFileError`; ValueError for one with weights only; TypeError for anything else.
    """
    if isinstance(given, str | PathLike):
        ensemble = Ensemble.read(model_file.Contents.of(fspath(given)), model_file.revive)
    elif isinstance(given, Ensemble):
        ensemble = given
    else:
        raise TypeError(f"expected an ensemble, not {type(given).__name__}")
    if not all(isinstance(model, Model) for model in ensemble.models):
        raise OneLineError("the models of the ensemble have only weights: name its file")
    if ensemble.record is None:
        raise OneLineError("the ensemble does not say how many rows it has learned")
    models = ensemble.models if ensemble is not given else [copy(model) for model in ensemble.models]
    share = share_of(
        spec_of(ensemble.rows, len(models)), models[0].recipe.seed, ensemble.record, ensemble.values
    )
    return ModelSet.of(models, share, ensemble.examples, ensemble.record.examples)
