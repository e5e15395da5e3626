"""Frequency-aware truncation on seven sets of texts (Oiwa, Matsushima and Nakagawa, slides 18 to 21)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.papers import texts
from experiments.papers.bars import Bar, bars
from experiments.papers.generated import rare_words
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Parts, Sets
from experiments.papers.sweeps import Tried, cross_validated
from thresher import Model
from thresher.data import Chunk
from thresher.drawing import Axis, Series, chart
from thresher.learning.model.recipe import Recipe
from thresher.parts.rules.ft_fobos import FtFobos

OVERLAPPING = "comp.sys.ibm.pc.hardware comp.sys.mac.hardware comp.graphics comp.os.ms-windows.misc "
OVERLAPPING += "comp.windows.x sci.electronics sci.crypt misc.forsale"
SEPARATE = "rec.sport.hockey sci.crypt alt.atheism comp.graphics misc.forsale rec.autos sci.med "
SEPARATE += "talk.politics.mideast"
POWERS = ("1", "2", "3", "inf")
PLAIN = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3)
AWARE = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
RULES: dict[str, tuple[Sequence[str], Sequence[float]]] = {
    **{f"FT-FOBOS, p = {p.replace('inf', '∞')}": ([f"ft-fobos:p={p}"], AWARE) for p in POWERS},
    "FOBOS": (["fobos"], PLAIN),
    "RDA": (["rda:gamma=1"], PLAIN),
    "RDA, γ = 1 or 10": (["rda:gamma=1", "rda:gamma=10"], PLAIN),
    "cumulative": (["cumulative"], PLAIN),
    "FT-cumulative, p = 2": (["ft-cumulative:p=2"], AWARE),
}
"""rules to choose from, and penalties"""
OF_POWERS = tuple(RULES)[: len(POWERS)]
FT = OF_POWERS[POWERS.index("2")]
FOBOS, RDA, FREE, CUMULATIVE, AWARE_CUMULATIVE = tuple(RULES)[len(POWERS) :]
PASSES = 20


class Collection(NamedTuple):
    """Texts, and how penalties are chosen on them."""

    load: Callable[[Sets], Parts]
    classes: int = 2
    folds: int = 10


def _news(names: str, count: int) -> Callable[[Sets], Parts]:
    return lambda sets: texts.newsgroups(sets, names.split()[:count])


COLLECTIONS = {
    "books": Collection(lambda sets: sets.reviews("books")),
    "dvd": Collection(lambda sets: sets.reviews("dvd")),
    "ob-2": Collection(_news(OVERLAPPING, 2)),
    "sb-2": Collection(_news(SEPARATE, 2)),
    "ob-8": Collection(_news(OVERLAPPING, 8), 8, 2),
    "sb-8": Collection(_news(SEPARATE, 8), 8, 2),
    "reut20": Collection(lambda sets: texts.topics(sets, 20), 20, 2),
}
QUICK = {"generated": Collection(lambda sets: rare_words(80, 120, rare=40), 2, 2)}

Found = Mapping[str, Mapping[str, Tried]]
"""By collection and rule"""


def recipes(rule: str, classes: int) -> list[Recipe]:
    """The rule with each of its penalties; step sizes 1/√t, of RDA 1/(γ√t)."""
    specs, penalties = RULES[rule]
    outputs = "one" if classes == 2 else f"classes:0-{classes - 1}"
    rate = None if rule in (RDA, FREE) else "inverse-sqrt:1"
    loss = "hinge" if classes == 2 else "crammer-singer"
    return [Recipe(spec, loss, rate=rate, outputs=outputs, l1=l1) for l1 in penalties for spec in specs]


def chosen(rule: str, kind: Collection, parts: Parts, passes: int) -> Tried:
    """The rule with the fewest errors in cross-validation; of equal penalties, the largest."""
    tried = cross_validated(recipes(rule, kind.classes), parts, (passes,), kind.folds)
    return min(reversed(tried), key=lambda one: one.error)


def page(sets: Sets) -> Page:
    """Eight rules on seven sets, and the thresholds' factors of FT-FOBOS."""
    kinds, passes = (QUICK, 2) if sets.quick else (COLLECTIONS, PASSES)
    rules = [FT, FOBOS] if sets.quick else list(RULES)
    loaded = {name: kind.load(sets) for name, kind in kinds.items()}
    found = {
        name: {rule: chosen(rule, kind, loaded[name], passes) for rule in rules}
        for name, kind in kinds.items()
    }
    first = next(iter(loaded.values())).train
    spread = {} if sets.quick else {rule: factors(rule, first, passes) for rule in OF_POWERS}
    return Page(
        title="Frequency-aware truncation",
        source="Oiwa, Matsushima and Nakagawa, *Frequency-aware Truncated Methods for Sparse Online "
        "Learning* (ECML PKDD 2011), slides 18 to 21",
        claim="A threshold in proportion to h, the p-norm of a feature's steps so far, spares rare "
        "features. Then p = 2 makes the fewest errors, FT-FOBOS fewer than FOBOS, and RDA fewer than both, "
        "with about as many weights. For the cumulative penalty such thresholds are not good.",
        method=_method(len(first)),
        verdicts=_verdicts(found, spread),
        pictures=[] if sets.quick else [_errors(found), _factors(spread)],
        tables=[
            _table(found, "error", lambda one: f"{100 * one.test.error:.1f}", "Test error in percent:"),
            _table(found, "weights", lambda one: f"{one.test.nonzero:,}", "Weights:"),
        ],
    )


def factors(rule: str, rows: Chunk, passes: int) -> list[float]:
    """The factor h of each feature after learning, largest first."""
    model = Model(recipes(rule, 2)[0])
    for number in range(passes):
        model.learn(rows, again=number > 0)
    h = model.state()["S"][1:, FtFobos.SLOTS.index("h")]  # the first row is spare
    return sorted(h[h > 0].tolist(), reverse=True)


def _method(rows: int) -> str:
    grids = "; ".join(
        f"{', '.join(f'{one:g}' for one in grid)} for {names}"
        for grid, names in ((PLAIN, "FOBOS, RDA and cumulative"), (AWARE, "the others"))
    )
    return (
        f"Bags of words with counts: reviews of books ({rows:,} to train) and DVDs at Amazon, messages of 20 "
        "newsgroups by date without headers, stories of Reuters-21578 with exactly one of the 20 largest "
        f"topics. Sets ob have overlapping groups, {', '.join(OVERLAPPING.split())}; sets sb separate ones, "
        f"{', '.join(SEPARATE.split())}; ob-2 and sb-2 the first two of them. The choice of groups is ours. "
        "Hinge loss, for more classes that of Crammer and Singer; step sizes 1/√t, of RDA 1/(γ√t) with γ = 1 "
        f"or chosen like λ; {PASSES} passes in file order. For each rule we chose the λ with the fewest "
        "errors in cross-validation of the training rows, 10-fold, or 2-fold where there are more than two "
        f"classes: {grids}. The spread of h is that on the reviews of books, with the smallest λ."
    )


def _fewer(
    found: Found, rule: str, others: Sequence[str], claim: str, published: str, why: str = ""
) -> Verdict:
    """Whether `rule` makes fewer errors than each of the others on every set; as many are not fewer."""
    but = []
    for name, one in found.items():
        best = min(others, key=lambda other: _error(one[other]))
        more = _error(one[rule]) - _error(one[best])
        if more >= 0:
            but.append(f"{name} ({best}: " + (f"{100 * more:.1f} points fewer)" if more else "as many)"))
    return Verdict(
        claim,
        published,
        f"on {len(found) - len(but)} of {len(found)}",
        not but,
        f"not on {', '.join(but)}{why}" if but else "",
    )


def _verdicts(found: Found, spread: Mapping[str, Sequence[float]]) -> list[Verdict]:
    verdicts = [
        _fewer(found, FT, [FOBOS], "FT-FOBOS with p = 2 makes fewer errors than FOBOS", "on all seven")
    ]
    if not spread:
        return verdicts
    powers = [rule for rule in OF_POWERS if rule != FT]
    means = ", ".join(f"{100 * _mean(found, rule):.1f}" for rule in OF_POWERS)
    why = f". λ was chosen for each p; the mean errors are {means} % for p = {_listed()}"
    return [
        _fewer(found, FT, powers, "of the four p, 2 makes the fewest errors", "the fewest", why),
        *verdicts,
        _fewer(found, RDA, [FT, FOBOS], "RDA makes fewer errors than both", "on all seven", _free(found)),
        _weights(found),
        _more(found, CUMULATIVE),
        _more(found, FT),
        _of_spread(spread),
    ]


def _weights(found: Found) -> Verdict:
    ratios = [one[FT].test.nonzero / max(one[FOBOS].test.nonzero, 1) for one in found.values()]
    holds = all(0.5 < ratio < 2 for ratio in ratios)
    return Verdict(
        "FT-FOBOS keeps about as many weights as FOBOS",
        "about as many",
        f"{min(ratios):.1f} to {max(ratios):.1f} times as many",
        holds,
        "" if holds else "the penalty with the fewest errors leaves more of the rare words",
    )


def _more(found: Found, other: str) -> Verdict:
    """Whether FT-cumulative is worse than `other`: more errors in the mean, by over a standard error."""
    gaps = [_error(one[AWARE_CUMULATIVE]) - _error(one[other]) for one in found.values()]
    gap, doubt = float(np.mean(gaps)), float(np.std(gaps, ddof=1) / np.sqrt(len(gaps)))
    means = f"{100 * _mean(found, AWARE_CUMULATIVE):.1f} % against {100 * _mean(found, other):.1f} %"
    fewer = f"it makes fewer errors on {sum(one < 0 for one in gaps)} of {len(gaps)}"
    why = f"{'no clear difference; ' if gap > -doubt else ''}{fewer}, with λ chosen for each of the two"
    return Verdict(
        f"FT-cumulative makes more errors than {other.replace('cumulative', 'the cumulative penalty')}",
        "not good",
        f"on {sum(one > 0 for one in gaps)} of {len(gaps)}; mean error {means}, by {100 * gap:+.1f} ± "
        f"{100 * doubt:.1f} points",
        gap > doubt,
        "" if gap > doubt else why,
    )


def _free(found: Found) -> str:
    """What became of RDA with steps of another size, too."""
    held = sum(_error(one[FREE]) < min(_error(one[FT]), _error(one[FOBOS])) for one in found.values())
    return f". With γ = 10 tried too, it does so on {held}"


def _mean(found: Found, rule: str) -> float:
    return float(np.mean([_error(one[rule]) for one in found.values()]))


def _listed() -> str:
    return ", ".join(POWERS).replace("inf", "∞")


def _error(one: Tried) -> float:
    return one.test.error


def _width(h: Sequence[float]) -> float:
    return float(np.quantile(h, 0.95) / np.quantile(h, 0.05))


def _of_spread(spread: Mapping[str, Sequence[float]]) -> Verdict:
    widths = [_width(h) for h in spread.values()]
    shown = ", ".join(f"{width:.0f}" for width in widths)
    return Verdict(
        "h differs between features by more than a factor of ten, most for p = 1",
        "drawn for each p",
        f"from the 5 % to the 95 % quantile by factors of {shown} for p = {_listed()}",
        min(widths) > 10 and max(widths) == widths[0],
    )


def _errors(found: Found) -> Picture:
    rows = []
    for rule in RULES:
        above = [_error(one[rule]) - min(map(_error, one.values())) for one in found.values()]
        rows.append(Bar(rule, round(100 * float(np.mean(above)), 2)))
    svg = bars(
        "Test error above that of the best rule of each set",
        "For each rule, how much its test error is above the lowest, as a mean over the sets.",
        rows,
        axis=f"percentage points of error above the lowest, mean of {len(found)} sets",
    )
    return Picture(svg, "How much the test error of each rule is above the lowest, as a mean over the sets")


def _factors(spread: Mapping[str, Sequence[float]]) -> Picture:
    series = []
    for rule, h in spread.items():
        ranks = np.unique(np.geomspace(1, len(h), 60).astype(int))
        series.append(Series(rule.partition(", ")[2], ranks.tolist(), [h[rank - 1] / h[0] for rank in ranks]))
    svg = chart(
        "The spread of h over the words of book reviews",
        "h of each word over the largest h, by rank, for each p.",
        Axis("rank of the word", log=True, whole=True),
        Axis("h / largest h", log=True),
        series,
    )
    return Picture(svg, "h of each word by rank, for p = 1, 2, 3 and ∞")


def _table(found: Found, head: str, shown: Callable[[Tried], str], caption: str) -> str:
    rules = list(next(iter(found.values())))
    rows = [(name, *(shown(one[rule]) for rule in rules)) for name, one in found.items()]
    return table((head, *rules), rows, caption)
