"""``thresher boost``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli import boost_options as o
from thresher.cli import options
from thresher.cli import train_options as t
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import UsageError, check_strictly
from thresher.cli.model_flags import ModelFlags
from thresher.cli.overwriting import check_model
from thresher.cli.reading import Reading, sources_of, with_classes
from thresher.cli.saving import unbroken

if TYPE_CHECKING:
    from thresher.batch.api import Boosted
    from thresher.batch.plan import Plan, Round

SHORT = "Find the optimal sparse model for data in memory."

_HEAD = f"{'round':>6} {'sweeps':>7} {'objective':>16} {'certificate':>12} {'non-zero':>10} {'seconds':>8}"


@reads_elsewhere
@takes(table=options.Table)
def command(
    data: options.Data,
    model: t.ModelFile,
    l1: o.L1 = 1.0,
    l2: o.L2 = 0.0,
    loss: o.Loss = "exponential",
    order: o.Order = "random",
    tolerance: o.Tolerance = 1e-4,
    rounds: o.Rounds = 1000,
    intercept: o.Intercept = True,
    seed: o.Seed = 0,
    table: options.Table = options.NO_TABLE,
    on_error: options.OnError = "fail",
    threads: o.Threads = None,
    quiet: t.Quiet = False,
    strict: t.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Minimise the sum of losses + L1 |w|_1 + L2 |w|^2 / 2 to a certified optimum, with data in memory."""
    from thresher.batch.plan import Plan
    from thresher.data.sources.reader import default_threads

    started = time.perf_counter()
    try:
        plan = Plan(l1, l2, order, tolerance, rounds, seed, threads or default_threads())
    except ValueError as error:
        raise UsageError(str(error)) from error
    check_model(model, [options.quarantine_of(on_error)], data)
    reading = Reading(data, None, table, on_error, threads, False, None, False, None)
    found, report = _solved(reading, loss, plan, intercept, model, started, quiet)
    with unbroken(model):
        found.save(model)
        _finish(found, report, model, as_json, strict)


def _solved(
    reading: Reading,
    loss: str,
    plan: Plan,
    intercept: bool,
    model: Path,
    started: float,
    quiet: bool,
) -> tuple[Boosted, Any]:
    """The model, and the report on what was read."""
    from thresher.batch.api import solved, troubles_of
    from thresher.batch.plan import loss_of
    from thresher.cli.watching import Quiet, say_unless
    from thresher.data.formats.tables.heads import columns_seen
    from thresher.engine import notices

    try:
        part = loss_of(loss)
    except ValueError as error:
        raise UsageError(str(error)) from error
    say = Quiet().say
    flags = ModelFlags(loss=loss, outputs="one", centre=False)
    layout, _ = with_classes(flags, reading, reading.table.layout(), say_unless(quiet, Quiet()))
    source, _ = sources_of(reading, layout, part.DOMAIN, [model], 1)
    notices.when_compiling(None if quiet else say)
    seen = columns_seen(source)

    def tell(row: Round) -> None:
        for line in ([] if row.number else [_HEAD]) + [_line(row)]:
            if not quiet:
                say(line)

    found = solved(source, intercept, part, plan, started, tell)
    found.warnings = troubles_of(found, seen, source.report)
    return found, source.report


def _line(row: Round) -> str:
    return (
        f"{row.number:>6,} {row.sweeps:>7,} {row.objective:>16.9g} {row.certificate:>12.3e}"
        f" {row.nonzero:>10,} {row.seconds:>8.2f}"
    )


def _finish(found: Boosted, report: Any, path: Path, as_json: bool, strict: bool) -> None:
    from thresher.cli.output import in_json, show_result, tell_skipped, tell_warnings

    tell_skipped(report)
    tell_warnings(found.warnings)
    solution = found.solution
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
    check_strictly(found.warnings, strict, path)
