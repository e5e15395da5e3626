"""AUC with and without sparsification (Langford, Li and Zhang, Figure 1, right)."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from experiments.papers.truncation import EACH, HOUSING, NAMES, RCV1, Choice, swept
from thresher.drawing import Bar, bars

LEAST = 0.98


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
        "gravity, divided by that without, is often above 0.98.",
        method="The models of [the features left](langford-features.md), and their AUC on the test rows. "
        "Sparse models are chosen by their errors, not by their AUC.",
        verdicts=[_verdict(found)],
        pictures=[Picture(_picture(found), "Ratio of AUC with gravity to that without, by data set")],
        tables=[_table(found)],
        notes="wpbc has 39 test rows, of which 11 are positive, and zoo has 20: their ratios depend on a few "
        "rows.",
    )


def _verdict(found: dict[str, Choice]) -> Verdict:
    low = [name for name, one in found.items() if one.ratio <= LEAST]
    count = len(found)
    return Verdict(
        "the ratio is above 0.98 for most sets",
        "often",
        f"for {count - len(low)} of {count}" + (f"; not for {', '.join(low)}" if low else ""),
        len(low) < count / 2,
    )


def _picture(found: dict[str, Choice]) -> str:
    return bars(
        "AUC with gravity, divided by AUC without",
        "Ratio of the AUC on test rows with gravity to that without, for each data set.",
        [Bar(name, round(one.ratio, 3)) for name, one in found.items()],
        axis="ratio of AUC on test rows",
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
