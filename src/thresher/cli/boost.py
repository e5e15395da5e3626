"""``thresher boost``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.cli.saving import check_targets, unbroken
from thresher.options.arguments import DATA
from thresher.options.boost import BoostCommand
from thresher.options.option import Options

if TYPE_CHECKING:
    from thresher.batch.rounds import Round

ARGUMENTS, OPTIONS = (DATA,), BoostCommand
_HEAD = f"{'round':>6} {'sweeps':>7} {'objective':>16} {'certificate':>12} {'non-zero':>10} {'seconds':>8}"
_OF_SOLUTION = ("examples", "rounds", "sweeps", "objective", "certificate", "converged")


def command(data: list[str], options: Options) -> None:
    """Minimise the sum of losses + L1 |w|_1 + L2 |w|^2 / 2 to a certified optimum, with data in memory."""
    from thresher.cli.output import show_run, tell_skipped, tell_warnings
    from thresher.plans.run_setup import Inputs
    from thresher.runs import boost as runs

    path, ui = options["model"], Console(options["quiet"])
    check_targets(path, options, data)
    run = runs.prepare(Inputs(data), options, ui, outputs=[path])

    def tell(row: Round) -> None:
        for line in ([] if row.number else [_HEAD]) + [_line(row)]:
            ui.say(line)

    found = run.run(tell)
    with unbroken(path):
        found.save(path)
        tell_skipped(run.source.report)
        tell_warnings(found.warnings)
        figures = {name: getattr(found.solution, name) for name in _OF_SOLUTION}
        figures |= {"nonzero": len(found.keys), "features_seen": found.solution.features_seen}
        figures |= {"seconds": round(found.solution.seconds, 3), "skipped": run.source.report.skipped}
        show_run({**figures, "model": str(path)}, found.warnings, options)
        check_strictly(found.warnings, options)


def _line(row: Round) -> str:
    return (
        f"{row.number:>6,} {row.sweeps:>7,} {row.objective:>16.9g} {row.certificate:>12.3e}"
        f" {row.nonzero:>10,} {row.seconds:>8.2f}"
    )
