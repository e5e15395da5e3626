"""AUC with and without sparsification (Langford, Li and Zhang, Figure 1, right)."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from experiments.papers.truncation import EACH, HOUSING, NAMES, RCV1, Choice, swept
from thresher.drawing import Axis, Series, chart

LEAST, MOST = 0.98, 0.5
SMALL = 50
"""test rows"""
LIMITS = (0.78, 1.02)
"""of the picture; it shows what is beyond, too"""


def page(sets: Sets) -> Page:
    """The same models as in Figure 1, left."""
    names = ("generated",) if sets.quick else tuple(name for name in NAMES if name != HOUSING)
    found = {}
    for name in names:
        found[name] = swept(sets, name)
        found[f"{name} + random"] = swept(sets, name, True, EACH)
    if not sets.quick:
        found[RCV1] = swept(sets, RCV1)
    return Page(
        title="Truncated gradient: AUC with and without gravity",
        source="Langford, Li and Zhang (NIPS 2008), Figure 1, right",
        claim="Models that have lost most of their weights rank test rows nearly as well: the AUC with "
        f"gravity, divided by that without, is often above {LEAST}.",
        method="The models of [the features left](langford-features.md), and their AUC on the test rows. "
        "Sparse models are chosen by their errors, not by their AUC. The claim concerns models that have "
        f"lost most of their weights: those that keep less than {MOST:.0%} of the features are judged. All "
        "are shown.",
        verdicts=[_verdict(found)],
        pictures=[
            Picture(_picture(found), "Ratio of AUC with gravity to that without, against the features left")
        ],
        tables=[_table(found)],
        notes=_few(found),
    )


def _verdict(found: dict[str, Choice]) -> Verdict:
    sparse = {name: one for name, one in found.items() if one.left < MOST}
    low = [name for name, one in sparse.items() if one.ratio <= LEAST]
    rest = [one for one in found.values() if one.left >= MOST]
    count, holds = len(sparse), len(low) < len(sparse) / 2
    ours = f"for {count - len(low)} of {count}" + (f", not for {', '.join(low)}" if low else "")
    others = f"for {sum(one.ratio > LEAST for one in rest)} of the {len(rest)} that keep more of them"
    return Verdict(
        f"the ratio is above {LEAST} for most of the models that keep less than {MOST:.0%} of the features",
        "often",
        f"{ours}; {others}",
        holds,
        "" if holds else "with gravity, rates and passes chosen for each set in cross-validation",
    )


def _few(found: dict[str, Choice]) -> str:
    small = {one.name: one for one in found.values() if one.tests < SMALL}
    said = ", ".join(
        f"{name} has {one.tests} test rows, {one.rare} of the rarer class" for name, one in small.items()
    )
    return f"Few test rows: {said}. Such ratios depend on a few rows." if small else ""


def _picture(found: dict[str, Choice]) -> str:
    series = []
    for title, random in (("as it is", False), ("with random features", True)):
        shown = {name: one for name, one in found.items() if name.endswith("random") == random}
        left, ratios = ([getattr(one, of) for one in shown.values()] for of in ("left", "ratio"))
        titles = [f"{name}: {one.left:.1%} left, ratio {one.ratio:.3f}" for name, one in shown.items()]
        series.append(Series(title, left, ratios, "dots", titles=titles))
    series.append(Series(f"{LEAST}", (0, 1), (LEAST, LEAST)))
    series.append(Series(f"{MOST:.0%} of the features", (MOST, MOST), LIMITS, quiet=True))
    return chart(
        "AUC with gravity, divided by AUC without",
        "Ratio of the AUC on test rows with gravity to that without, for each data set, against the share of "
        "the features left.",
        Axis("features left", percent=True, low=0, high=1),
        Axis("ratio of AUC on test rows", low=LIMITS[0], high=LIMITS[1]),
        series,
    )


def _table(found: dict[str, Choice]) -> str:
    rows: Sequence[tuple[str, ...]] = [
        (
            name,
            f"{one.left:.1%}",
            f"{one.base.test.auc:.4f}",
            f"{one.sparse.test.auc:.4f}",
            f"{one.ratio:.3f}",
        )
        for name, one in found.items()
    ]
    return table(("", "features left", "AUC without gravity", "AUC with gravity", "ratio"), rows)
