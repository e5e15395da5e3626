"""Stability selection: the features that live in most halves of the rows, and a bound on the false ones.

Each of 2 B models learns half of the rows, in B pairs whose halves do not overlap (`Bags`). A half selects
the q features with the largest effects, or all its features with a weight if these are fewer. A feature whose
share of the halves reaches a threshold is kept. With p features in the data and theta = q / p, call a feature
false if a half selects it with at most the chance theta, that of a feature drawn blindly. Then at most
``factor(threshold) theta q`` false features are expected among the kept, if the chance that both halves of a
pair select a false feature has a unimodal distribution over the draws of halves. That is the only assumption:
features may be correlated, and the models may be any.

An effect is a weight times s_j, with s_j^2 = Var(x_j) / P(x_j != 0), so the units of columns do not matter.
The theory standardises columns first. The standard deviation alone in place of s_j would prefer frequent
features, which live in many halves by that, also if they only stand beside a true one: docs/select.md.

Meinshausen and Buhlmann, Stability selection (JRSS B 2010); Shah and Samworth, Variable selection with error
control: another look at stability selection (JRSS B 2013), theorem 2 and equation 7. Their bounds for
r-concave distributions are lower, but are maxima that must be searched for numerically, under an assumption
that is harder to check; they are not used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import printable
from thresher.data.features.names import Names
from thresher.data.stored import read
from thresher.drawing import Axis, Series, chart
from thresher.engine.sound import beneath, check_tensor, require
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.files.model_file import (
    NAMES,
    SELECTION,
    Contents,
    ModelFileError,
    naming_file,
    save_all,
    tensors_of_names,
)
from thresher.learning.inspection.formatting import tab_separated, table_of_rows
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.prediction import names_of
from thresher.options.messages import mention, mention_command

U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]
_INTERVAL = (0.05, 0.95)
_MOST = 1 / math.sqrt(3)
"""Largest theta for which the theorem holds."""
_FALSE, _FALSE_SHARE = 5.0, 1 / 20
"""So many false features are accepted if nobody says: at most the first, and the second of all features"""
_MANY = 1 / 3
"""share of the kept features; if the bound on false ones is above it, a warning says so"""
_SHOWN = 20
_SELECTION = "selection."
"""How the names of its tensors begin in a file"""
_ARRAYS: dict[str, Any] = {
    "keys": np.uint64,
    **dict.fromkeys(("share", "mean", "low", "high"), np.float64),
    "sign_changes": np.bool_,
    "output": np.int64,
}


class _Figures(TypedDict):
    halves: int
    false: float
    features: int
    selected: float
    threshold: float | None
    outputs: tuple[str, ...]


_HEADS = ("feature", "name", "kept", "share", "mean", "low", "high", "sign_changes", "output")
_SHOWN_HEADS = {"mean": "mean weight", "low": "5 % of halves", "high": "95 % of halves"}
"""Headings of the printed table, where these differ from the names"""


def factor(share: float, pairs: int) -> float:
    """The number C of Shah and Samworth's equation 7: at most C theta q false features reach this share.

    >>> factor(0.75, 50), round(factor(1.0, 50), 4)
    (1.0204081632653061, 0.0392)
    """
    if share <= 0.75:
        return 1 / (2 * (2 * share - 1 - 1 / (2 * pairs)))
    return 4 * (1 - share + 1 / (2 * pairs)) / (1 + 1 / pairs)


def threshold(selected: float, features: int, halves: int, false: float) -> float | None:
    """The lowest share of the halves with at most `false` expected false features; None if there is none.

    A half selects `selected` of `features` features. The theorem holds for theta up to 1 / sqrt(3).

    >>> threshold(100, 20_000, 32, 5), threshold(300, 20_000, 32, 5), threshold(2_000, 20_000, 32, 5)
    (0.5625, 0.75, None)
    """
    pairs, theta = halves // 2, selected / max(features, 1)
    if theta > _MOST:
        return None
    least = min(0.5 + theta**2, 0.5 + 1 / (2 * pairs) + 0.75 * theta**2)
    for count in range(pairs + 2, halves + 1):
        share = count / halves
        if share > least and factor(share, pairs) * theta * selected <= false:
            return share
    return None


def most_selected(features: int, halves: int, false: float) -> int:
    """The largest number of features that a half may select so that there is a threshold."""
    able = math.isqrt(int(false * features / factor(1.0, halves // 2)))
    return max(min(able, int(_MOST * features)), 1)


NO_NAMES = (
    f"features have no names: {mention_command('select')} with {mention(names=True)} finds those in the data"
)
"""Said of a selection with features that have none"""


@dataclass(frozen=True, eq=False)
class Selection:
    """The features that live in at least one half, the most stable first, and which of them are kept."""

    keys: U64
    share: F64
    """of the halves, in which each lives"""
    mean: F64
    """mean weight over all halves; with several outputs, of the output where it is largest"""
    low: F64
    """with `high`: nine tenths of its weights in the halves lie between these"""
    high: F64
    sign_changes: NDArray[np.bool_]
    """whether its weight is positive in some half and negative in another"""
    output: NDArray[np.int64]
    """the number of that output"""
    halves: int
    false: float
    """how many false features were to be expected at most"""
    features: int
    """the largest number of features that a half has seen"""
    selected: float
    """mean number of features that a half selects"""
    threshold: float | None
    """the share from which features are kept; None if none keeps the bound"""
    called: dict[int, str] = field(default_factory=dict)
    """names of features, as far as they are known"""
    outputs: tuple[str, ...] = ()
    """names of the outputs, if there are several"""
    warnings: list[Finding] = field(default_factory=list)
    """trouble with the data or the run"""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which features are kept."""
        reached: NDArray[np.bool_] = self.share >= (math.inf if self.threshold is None else self.threshold)
        return reached

    @property
    def expected(self) -> float | None:
        """The bound on the expected number of false features among the kept; None without a threshold.

        It is never more than are kept.
        """
        if self.threshold is None:
            return None
        theta = self.selected / max(self.features, 1)
        bound = factor(self.threshold, self.halves // 2) * theta * self.selected
        return min(bound, float(self.kept.sum()))

    def name(self, key: int) -> str:
        """The name of a feature; its number, if none is known."""
        return self.called.get(key, str(key))

    def __repr__(self) -> str:
        """The figures and the table that ``thresher select`` prints."""
        return "\n".join(
            [*(f"{name.replace('_', ' ')}: {one}" for name, one in self.figures().items()), *self.lines()]
        )

    def figures(self) -> dict[str, Any]:
        """What the features were kept by."""
        return {
            "halves": self.halves,
            "features": self.features,
            "selected_per_half": self.selected,
            "false_at_most": self.false,
            "threshold": self.threshold,
            "expected_false_at_most": self.expected,
            "kept": int(self.kept.sum()),
        }

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary per feature, the most stable first."""
        columns: dict[str, list[Any]] = {
            "feature": self.keys.tolist(),
            "name": [self.called.get(key) for key in self.keys.tolist()],
            **{name: getattr(self, name).tolist() for name in _HEADS[2:-1]},
        }
        if self.outputs:
            columns["output"] = [self.outputs[k] for k in self.output.tolist()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def kept_rows(self) -> list[dict[str, Any]]:
        """`rows` of the kept features."""
        return [one for one in self.rows() if one["kept"]]

    def lines(self) -> list[str]:
        """The table of the most stable features, with a star at those that are kept."""
        shown = [
            {"": "*" if one.pop("kept") else " "}
            | {
                _SHOWN_HEADS.get(head, head): float(f"{value:.4g}") if isinstance(value, float) else value
                for head, value in one.items()
            }
            | {"feature": str(one["feature"]), "name": one["name"] or ""}
            for one in self.rows()[:_SHOWN]
        ]
        if not shown:
            return ["no feature lives in any half"]
        lines = table_of_rows(shown, [head for head in shown[0] if any(one[head] != "" for one in shown)])
        counts = {"that are kept": self.kept[_SHOWN:], "that are not kept": ~self.kept[_SHOWN:]}
        more = ", ".join(f"{those.sum():,} more {which}" for which, those in counts.items() if those.any())
        return [*lines, f"... and {more}"] if more else lines

    def plot(self, **shape: Any) -> str:
        """The SVG that ``thresher select --plot`` draws.

        The share of each feature over the size of its mean weight, and the threshold.
        """
        sizes, kept = np.abs(self.mean), self.kept
        titles = [
            f"{self.name(key)}: share {share:.3g}, mean weight {mean:.3g}"
            for key, share, mean in zip(self.keys.tolist(), self.share, self.mean, strict=True)
        ]
        series = [
            Series(
                name,
                sizes[those].tolist(),
                self.share[those].tolist(),
                "dots",
                titles=[titles[k] for k in np.flatnonzero(those)],
                quiet=quiet,
            )
            for name, those, quiet in (("not kept", ~kept, True), ("kept", kept, False))
        ]
        if self.threshold is not None and len(sizes):
            ends = [float(sizes[sizes > 0].min(initial=1.0)), float(sizes.max())]
            series.append(Series("threshold", ends, [self.threshold] * 2))
        return chart(
            "Stability: share of the halves over the mean weight",
            f"{len(self.keys):,} features live in at least one of {self.halves} halves; {int(kept.sum()):,}"
            " are kept.",
            Axis("size of the mean weight", log=True),
            Axis("share of the halves", low=0.0, high=1.0),
            series,
            **shape,
        )

    def table(self) -> str:
        """All features as tab-separated values, with a header."""
        heads = [head for head in _HEADS if self.outputs or head != "output"]
        return tab_separated(self.rows(), heads, _cell)

    def save(self, path: Path | str) -> None:
        """Write the file that ``thresher select`` writes, replacing an older one. Raises OSError."""
        own = {name: getattr(self, name) for name in _Figures.__annotations__}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        names = {key: name.encode("utf-8", "surrogateescape") for key, name in self.called.items()}
        extras = beneath(_SELECTION, arrays | (tensors_of_names(Names.of(names)) if names else {}))
        save_all([], path, {SELECTION: own}, extras)

    @classmethod
    def load(cls, file: Path | str | Contents) -> Selection:
        """The selection in a file; `ModelFileError` if it is damaged."""
        found = file if isinstance(file, Contents) else Contents.of(file)
        if SELECTION not in found.run:
            raise ModelFileError(f"{found.name}: not a selection")
        with naming_file(found.name, found.header):
            own, tensors = read(_Figures, found.run[SELECTION], SELECTION), found.tensors(_SELECTION)
            keys, called = check_tensor(tensors, "keys", (None,), np.uint64), names_of(tensors, NAMES)
            shape = (len(keys),)
            arrays: dict[str, Any] = {
                name: check_tensor(tensors, name, shape, _ARRAYS[name]) for name in _ARRAYS
            }
            require(own["halves"] > 1, SELECTION, "there are two halves or more")
            fits = arrays["output"].max(initial=0) < max(1, len(own["outputs"]))
            require(fits, SELECTION, "a feature has an output that does not exist")
        return cls(**arrays, **own, called=dict(called or {}))


def _cell(value: object) -> str:
    """A value as a cell of the file."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else printable(str(value).replace("\\", r"\\"))


def selection_of(halves: ModelSet, false: float | None, most: int | None) -> Selection:
    """What half-samples select: the `most` largest effects of each model, by default sqrt(`false` p).

    The effect of a feature is its largest weight times its spread over the rows of all halves (`Spreads`).
    Then theta q is at most `false`, so there is a threshold, of about 0.78, whatever the data. Without
    `false`, it is that of a rate of 5 % per comparison (Meinshausen and Buhlmann, after theorem 1), up to 5.
    """
    assert halves.spreads is not None
    models = halves.models
    head, features = models[0].head, max(model.features_seen for model in models)
    if false is None:  # with fewer than five features, that of a half that selects one
        false = min(_FALSE, max(features * _FALSE_SHARE, 1 / max(features, 1)))
    most = max(1, min(math.isqrt(int(false * features)), int(_MOST * features))) if most is None else most
    every, living = list[tuple[U64, F64, F64]](), list[U64]()
    for model in models:
        own, found = model.weights()
        weights = found.reshape(len(own), head.count).astype(np.float64)
        divisors = model.feed.intake.divisors(own)
        units = halves.spreads.of(own) / (1.0 if divisors is None else divisors.at(own))
        effects = np.abs(weights).max(axis=1) * units
        every.append((own, weights, effects))
        # of equal ones, those with the lower keys
        living.append(own[np.argsort(-effects, kind="stable")[:most]])
    keys, counts = np.unique(np.concatenate(living), return_counts=True)
    weights, effects = np.zeros((len(models), len(keys), head.count)), np.zeros((len(models), len(keys)))
    for k, (own, found, sizes) in enumerate(every):
        _, there, places = np.intersect1d(keys, own, assume_unique=True, return_indices=True)
        weights[k, there], effects[k, there] = found[places], sizes[places]
    output = np.abs(weights.mean(axis=0)).argmax(axis=1)
    largest = np.take_along_axis(weights, output[np.newaxis, :, np.newaxis], axis=2)[:, :, 0]
    mean, (low, high) = largest.mean(axis=0), np.quantile(largest, _INTERVAL, axis=0)
    order: NDArray[np.int64] = np.lexsort((keys, -effects.mean(axis=0), -counts))
    selected = float(np.mean([len(one) for one in living]))
    changes = (largest > 0).any(axis=0) & (largest < 0).any(axis=0)
    columns = keys, counts / len(models), mean, low, high, np.atleast_1d(changes), output
    arrays: dict[str, Any] = {name: one[order] for name, one in zip(_ARRAYS, columns, strict=True)}
    return Selection(
        **arrays,
        halves=len(models),
        false=false,
        features=features,
        selected=selected,
        threshold=threshold(selected, features, len(models), false),
        outputs=tuple(map(str, head.names(models[0].classes))) if head.count > 1 else (),
    )


def troubles_of(found: Selection) -> list[Finding]:
    """The trouble with a selection: no threshold bounds it, or many of the kept features may be false."""
    if found.expected is None:
        most = most_selected(found.features, found.halves, found.false)
        message = (
            f"a half selects {found.selected:,.6g} of {found.features:,} features, so no threshold keeps the"
            f" expected number of false ones at {found.false:g} or below, and none is kept: use"
            f" {mention(nonzero=most)}, or a larger {mention('l1')}"
        )
        return [Finding("no-threshold", message)]
    kept = int(found.kept.sum())
    if not kept or found.expected <= kept * _MANY:
        return []
    message = (
        f"all that the theorem says of the {kept:,} kept features is that on average at most"
        f" {found.expected:.3g} are false: a smaller bound, such as {mention(false=kept / 10)}, keeps those"
        " that are surer"
    )
    return [Finding("many-false", message)]
