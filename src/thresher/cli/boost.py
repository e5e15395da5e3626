"""``thresher boost``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.cli.saving import unbroken
from thresher.options.arguments import DATA
from thresher.options.boost import BoostCommand

if TYPE_CHECKING:
    from thresher.batch.rounds import Round
    from thresher.batch.solving import Boosted

ARGUMENTS, OPTIONS = (DATA,), BoostCommand
_HEAD = f"{'round':>6} {'sweeps':>7} {'objective':>16} {'certificate':>12} {'non-zero':>10} {'seconds':>8}"


def command(data: list[str], options: BoostCommand) -> None:
    """Minimise the sum of losses + L1 |w|_1 + L2 |w|^2 / 2 to a certified optimum, with data in memory."""
    from thresher.cli.saving import check_model
    from thresher.runs import boost as runs
    from thresher.runs.preparing import Inputs, quarantine_of

    model, ui = options["model"], Console(options["quiet"])
    check_model(model, [quarantine_of(options["on_error"])], data)
    run = runs.prepare(Inputs(data), options, ui, outputs=[model])

    def tell(row: Round) -> None:
        for line in ([] if row.number else [_HEAD]) + [_line(row)]:
            ui.say(line)

    found = run.run(tell)
    with unbroken(model):
        found.save(model)
        _tell(found, run.source.report, model, options)


def _line(row: Round) -> str:
    return (
        f"{row.number:>6,} {row.sweeps:>7,} {row.objective:>16.9g} {row.certificate:>12.3e}"
        f" {row.nonzero:>10,} {row.seconds:>8.2f}"
    )


def _tell(found: Boosted, report: Any, path: Path, options: BoostCommand) -> None:
    from thresher.cli.output import in_json, show_result, tell_skipped, tell_warnings

    tell_skipped(report)
    tell_warnings(found.warnings)
    solution, as_json = found.solution, options["json"]
    figures: dict[str, Any] = {
        "examples": solution.examples,
        "rounds": solution.rounds,
        "sweeps": solution.sweeps,
        "objective": solution.objective,
        "certificate": solution.certificate,
        "converged": solution.converged,
        "nonzero": len(found.keys),
        "features_seen": solution.features_seen,
        "seconds": round(solution.seconds, 3),
        "skipped": report.skipped,
        "model": str(path),
    }
    show_result(figures | ({"warnings": in_json(found.warnings)} if as_json else {}), as_json, path)
    check_strictly(found.warnings, options["strict"], path)
