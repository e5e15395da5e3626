"""The training loop: passes over a source, progressive table, hold-out, checkpoints, early stopping."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from copy import copy, deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from thresher.data.chunk import Chunk, concat
from thresher.data.errors import BadLine, DataError
from thresher.data.files.topics import Extent
from thresher.data.formats.tables.column_statistics import ColumnSeen
from thresher.data.inputs.matrices import identify
from thresher.data.order import Order
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.data.sources.reader import prepare_readers
from thresher.engine.atomic import discard
from thresher.engine.compile.notices import seconds_compiling
from thresher.engine.protocol import writes
from thresher.learning.diagnostics.column_findings import check_namespaces, troubles_of_reading
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.diagnostics.run_findings import Run, troubles_at_end, troubles_of
from thresher.learning.diagnostics.stream_statistics import Start
from thresher.learning.files import checkpoint
from thresher.learning.files.checkpoint import DataOrigin, Held, TrainingPosition, TrainingState
from thresher.learning.files.choice import LOSS
from thresher.learning.model.agreement import lost_zeros
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.training import progress
from thresher.learning.training.holdout import Holdout
from thresher.learning.training.interruption import Interrupted, Stopper
from thresher.learning.training.passes import LEAST_BYTES, Replay, bytes_to_keep
from thresher.learning.training.progress import Figures, Row, Tally, Ui, total
from thresher.learning.training.record import COUNTS, Record, solution_in_words
from thresher.learning.training.scores import Patience, Scores
from thresher.learning.training.shares import HeldOutPart, as_text
from thresher.learning.training.wide import can_solve, is_wide

_ALL_TOLD = 10
"""Passes up to which the end of each is told."""
_FEW_PARTS = 64
"""Parts of a set that can be asked for figures at any time"""
_MARKED = 32
"""Passes whose ends are all points of the curve; of later ones, those whose number is a power of 2"""
_LONG = 1 << 30
"""Bytes that take about a second to read."""


@dataclass(frozen=True)
class TrainingPlan:
    """How to train: everything but the model and the data."""

    passes: int = 1
    """how many; with `replay`, the first"""
    report_every: int | None = 0
    """examples between rows of the table; 0: rows at 1, 2, 4, 8, ...; None: no table"""
    holdout_every: HeldOutPart = 0
    """what of the stream to hold out: one of every N examples; 5/2: two out of five; 0: none"""
    patience: int = 0
    """stop after this many passes that are no better on the hold-out, and keep the best model; 0: never"""
    checkpoint: Path | None = None
    checkpoint_every: int = 0
    """examples between checkpoints; 0: save one only when stopped"""
    replay: int = 0
    """keep up to this many bytes of rows in memory and, if these are all, pass over them again as often as
    `passes_for` says, provided that what is trained allows it; 0: never"""
    solve: bool = False
    """whether models may be solved in memory after a pass, whatever `replay` is"""
    judge: str = LOSS
    """the figure of the hold-out that tells which model is better"""

    name: str = "train"
    """the command that makes models so, which can resume it"""


@dataclass
class Outcome:
    """The result of training."""

    figures: dict[str, Any]
    """counts, losses and times by name; the counts are those of the kept model, perhaps of an earlier pass"""
    holdout: Figures | None
    reports: list[Report]
    """line counts of the data, and of a hold-out source"""
    table: list[Row]
    warnings: list[Finding]
    """trouble with the data or the run"""


class Trainer:
    """Trains a model, or a set of models, on `source`, pass after pass.

    Held-out rows are removed before `order` shuffles the rest, so they are the same in any order.

    Args:
        reread: returns the source for passes after the first: the source itself, or a cache of it.
        holdout: a separate source to evaluate on after every pass.
        judging: the hold-out, if it is another than the plan's.
        columns: what is already known about the columns of a table.
        topics: what is read of topics, for the record.

    Raises `Interrupted` when `stopper` requests a stop, after saving a checkpoint; `DataError` for a bad
    line; `DivergedError`.
    """

    cut_short = False
    """whether Ctrl-C ended a replay"""
    at_once = 0
    """values of a chunk that are learned before each `pause`, or one row; 0: all"""
    pause: Callable[[], None] = staticmethod(lambda: None)
    """called after each stretch of a chunk, and again when it is counted: others may use the model"""
    _here = False
    """whether Ctrl-C ends training, not the program"""

    def __init__(
        self,
        model: Model | ModelSet,
        source: Source,
        plan: TrainingPlan,
        *,
        reread: Callable[[], Source] | None = None,
        order: Order | None = None,
        holdout: Source | None = None,
        ui: Ui | None = None,
        stopper: Stopper | None = None,
        judging: Holdout | None = None,
        columns: Sequence[ColumnSeen] = (),
        topics: Sequence[Extent] = (),
    ) -> None:
        self.models = model if isinstance(model, ModelSet) else ModelSet.of([model])
        self.source, self.plan = identify(source), plan
        self.reread = reread or (lambda: self.source)
        self.order = order or Order()
        self.holdout = judging or Holdout(plan.holdout_every, holdout)
        self.holdout.attach(self.models.recipe, source)
        self.policy = Patience(plan.patience, plan.judge)
        self.scores: Scores | None = None
        """those of the last pass, or of the best pass of each model"""
        self.figures: Figures | None = None
        """the scores of one model, the best of several"""
        self.ui = ui or Ui()
        self.stopper = stopper or Stopper()
        automatic = all(recipe.rule_part.AUTOMATIC for recipe in self.models.recipes)
        repeats = automatic and (self.order.steady or not self.models.share.deals)
        kept = bytes_to_keep(plan.replay, repeats, "this order" if automatic else "this rule")
        self.repetition = Replay(plan.passes, kept)
        self.models.share.kept = math.inf if plan.passes > 1 else kept // LEAST_BYTES
        self._report, self._reading, self._stretch = Report(), self.source, (concat([]), 0)
        self._started, self._compiled, self._examples_before = 0.0, 0.0, 0
        self.resumed = False
        """whether the rows learned by an earlier run are still to be verified"""
        self._columns = columns
        self.state = TrainingState(
            order=self.order.spec,
            replay=kept,
            patience=plan.patience,
            judge=plan.judge,
            plan=plan.name,
            topics=(*topics,),
        )
        # what will be read twice, by later passes or by a resumed run, is hashed to detect changes
        if plan.checkpoint is not None:
            self.source.keep_hash = True
        if (given := self.holdout.given) is not None:
            again = plan.passes > 1 or kept > 0
            given.keep_hash = plan.checkpoint is not None or (again and not given.in_memory)

    @property
    def model(self) -> Any:
        """What is trained; of several models, what stands for them."""
        return self.models.lead

    def follow(self, earlier: Record) -> None:
        """Go on with a model that has learned other data, of which it has the `earlier` record."""
        self.state.earlier = earlier
        tally, both = self.model.tally, total([self.model.tally, self.model.repeated])
        met = int((np.atleast_1d(self.models.models[0].intercept) > -np.inf).sum())
        self.state.seen.start, self.state.reported = Start(self.models.examples, tally, both, met), tally

    def training_state(self) -> TrainingState:
        """The state of training that a checkpoint holds besides the model."""
        given = self.holdout.given
        return replace(
            self.state,
            data=DataOrigin.of(self.source),
            read=list(self.source.content),
            holdout=Held(as_text(self.holdout.every), DataOrigin.of(given)),
            evaluated=[] if given is None else list(given.content),
            passes=self.repetition.passes,
            settled=self.repetition.settled,
            scored=[*self.policy.scored.values()],
        )

    def continue_from(self, before: TrainingState) -> None:
        """Resume from `before`, whose model this trainer has. ValueError if the data or the order differ."""
        self.training_state().check_same(before)
        for name in ("position", "label", "table", "reported", "seen", "recent", "earlier"):
            setattr(self.state, name, getattr(before, name))
        self.policy.scored = {one.model: one for one in before.scored}
        self.repetition.resume(before.passes, before.settled)
        if sum(content.size for content in [*before.read, *before.evaluated]) > _LONG:
            again = "reading the data again up to the checkpoint"
            self.ui.warn(f"{again}, to check that they have not changed")
        self.resumed, whole = True, before.position.number > 1
        self.source.expect(before.read, whole=whole)
        if self.holdout.given is not None:
            self.holdout.given.expect(before.evaluated, whole=whole, now=True)

    def discard_checkpoint(self) -> None:
        """Remove the checkpoint of this run, or the one it replaces: its result is saved, or in memory."""
        if self.plan.checkpoint is not None:
            discard(self.plan.checkpoint)

    def run(self) -> Outcome:
        """Run the remaining passes."""
        prepare_readers()
        self.holdout.first = 0 if self.state.earlier is None else self.state.earlier.examples
        if not self.resumed and self.state.earlier is None and self.source.columns is None:
            self.state.seen.unmet = self.models.recipe.signs().awaited(self.source.layout)
        self._started, self._compiled = time.perf_counter(), seconds_compiling()
        self._examples_before = self.models.examples
        try:
            while self.state.position.number <= self.repetition.passes:
                known = self.repetition.passes if self.repetition.settled else 0
                self.models.begin_pass(self.state.position.number, known)
                self._pass()
                if self.state.position.number == 1 < self.repetition.passes:
                    self._tell()
                    self.state.reported = self.model.repeated
                if self._over():
                    break
                self.state.position = TrainingPosition(self.state.position.number + 1)
        except Interrupted:
            if not self._here:
                raise
            self.cut_short = True
        finally:
            if self._here:
                self.stopper.close()
                self.stopper.asked = False
        if self.cut_short:
            self._over()  # no more rows, but the figures on the hold-out
        return self._complete()

    def _complete(self) -> Outcome:
        """Finish the model once its passes are over."""
        self.models.finish()
        self.models.check_finite()
        self._tell()
        passes, learned = self._number, self.models.examples - self._examples_before
        best = self._take_best()
        if best is not None:
            self.ui.warn(f"kept the model of pass {best}, the best of {passes} on the hold-out")
        self.models.end_passes()
        found = self.models.share.found
        run = Run(
            self.state.seen,
            self.model,
            # a column of which more is said
            columns=[one for one in self._columns if not found or one.name not in self.source.sliced],
            report=self._report,
            source=self.source,
            holdout=self.holdout,
            figures=self.figures or {},
            patience=self.plan.patience,
            replays=self.plan.replay > 0,
            models=self.models.models,
            solved=self.models.solution_of(self.model) is not None,
            ended=(self._number, self.repetition.passes) if self.cut_short else None,
        )
        given, troubles = self.holdout.given, [*found, *troubles_of(run)]
        if given is not None:
            troubles += [*troubles_of_reading(given.report), *lost_zeros(self.model, given)]
        troubles += [*self.holdout.troubles(run.classes, run.counts), *troubles_at_end(run)]
        self._keep_record(best)
        seconds, compiling = self._seconds_spent()
        seen, solved = self.state.seen, self.models.solution_of(self.model)
        goes_on = self.state.earlier is not None
        figures = {
            "examples": self.models.examples,
            "passes": best or passes,
            "solved": None if solved is None else solution_in_words(asdict(solved)),
            "progressive_loss": self.model.tally.average,
            "new_examples": seen.rows if goes_on else None,
            "new_progressive_loss": Tally(*seen.marks[-1][1:]).average if goes_on else None,
            "left_out": self.model.left_out or None,
            "nonzero": self.model.nonzero,
            "features_seen": self.model.features_seen,
            "features_freed": self.model.features_freed or None,
            "seconds": round(seconds, 3),
            "seconds_compiling": round(compiling, 3) if compiling else None,
            "examples_per_second": round(learned / (seconds - compiling)) if seconds > compiling else 0,
            "skipped": self._report.skipped,
            "importance_0": seen.weightless or None,
        }
        figures = {name: figure for name, figure in figures.items() if figure is not None}
        reports = [self._report] if given is None else [self._report, given.report]
        return Outcome(figures, self.figures, reports, self.state.table, troubles)

    def as_if_ended(self) -> Any:
        """The model that training leaves if no more rows come, in its only pass; this training goes on."""
        end = copy(self)
        end.models = copy(self.models)
        end.state = replace(self.state, seen=deepcopy(self.state.seen), table=[*self.state.table])
        end.holdout, end.policy = copy(self.holdout), copy(self.policy)
        end.repetition = copy(self.repetition)
        end.ui = Ui()
        end._end_pass(self.state.position.report.copy())
        end._over()
        end._complete()
        return end.model

    def keep_best(self) -> None:
        """Make the model of a replay that was stopped the one to keep: the best pass so far, or as it is."""
        self.cut_short = True
        self.models.finish()
        self.models.check_finite()
        best = self._take_best()
        self.models.end_passes()
        self._keep_record(best)

    def _pass(self) -> None:
        number, kept, first = self.state.position.number, self.repetition, self.models.parts[0].models[0]
        read = self.source if number == 1 or kept.keeps else self.reread()
        rows = kept.over(self.holdout.rest(read), number, held=self.order.held)
        source = self.order.over(rows, number)
        if number > 1 and kept.keeps and (number == 2 or self.resumed):
            self.ui.replay(self.state.seen.rows, number, kept.passes)
            # Ctrl-C may end it early
            self._here = self.plan.checkpoint is None and self.stopper.listen_here()
        source.report, self._reading = self.state.position.report.copy(), source
        with closing(source.chunks(self.state.position.place)) as chunks:
            for chunk in self.stopper.each(chunks, self.interrupt):
                if self.resumed:
                    self.source.confirm()
                    self._check_position(len(chunk))
                    self.resumed = False
                self._learn(chunk)
                self.state.position = TrainingPosition(number, chunk.after, 0, source.report.copy())
                kept.settle(False)
                done = None
                if source.total_bytes:
                    within = source.position_bytes / source.total_bytes
                    done = (number - 1 + within) / kept.expected(within, first.features_seen)
                self.ui.advance(self.models.examples, done)
        if self.resumed:
            self._check_position(0)
        self._end_pass(source.report)

    def _end_pass(self, report: Report) -> None:
        """There are no more rows in this pass."""
        if self.state.position.number == 1:
            self._solve()
        number = self.state.position.number
        if number <= _MARKED or number & (number - 1) == 0:
            self.models.mark()
        self._report = report
        if self.state.position.number == 1:
            if self.state.earlier is None:
                check_namespaces(self.source, report)
            self.state.seen.mark(self.models.examples, self.model.tally, over=True)
            self.repetition.settle(True, self.models.settle)

    def _solve(self) -> None:
        """Solve the models in memory, if all rows are kept and few beside columns: see `wide`."""
        kept, models = self.repetition, self.models
        if not (self.plan.solve or kept.may_be_wide) or self.state.earlier:
            return
        if any(model.warm for model in models.models) or not all(map(can_solve, models.recipes)):
            return
        read = self.holdout.rest(self.source if kept.keeps else self.reread())
        read = kept.over(read, 2, held=self.order.held)
        with closing(self.order.over(read, 2).chunks()) as chunks:
            # copies, since a chunk may be valid for a while only
            rows = concat([concat([chunk]) for chunk in chunks])
        recipe = models.recipe
        if not is_wide(rows.counting(), gaps=recipe.layout is not None and recipe.layout.gaps):
            return
        kept.end()
        what = f"{len(rows.counting()):,} rows, fewer than columns that are always there"
        self.ui.say(f"{what}: solving in memory (docs/default.md)")
        models.solve(rows)

    def _check_position(self, rows: int) -> None:
        """`DataError` if an earlier run cannot have learned `position.learned` of a chunk of `rows` rows."""
        if self.state.position.learned > rows:
            learned = f"{self.state.position.learned:,} rows of a chunk of {rows:,}"
            raise DataError(f"{self.plan.checkpoint}: not a checkpoint for these data: it is after {learned}")

    def _learn(self, chunk: Chunk) -> None:
        """Learn the rows of `chunk` from `position.learned` on, pausing where a row or checkpoint is due."""
        lo, again = self.state.position.learned, self.state.position.number > 1
        while lo < len(chunk):
            done, every = self.models.examples, (self.plan.report_every, self.plan.checkpoint_every)
            due = min(map(progress.until_due, (done, done - self.state.seen.start.examples)))
            due = min([due, *(size - done % size for size in every if size)])
            hi = chunk.end_of(lo, due)
            rows = chunk.rows(lo, hi)
            self.models.name_classes(self.source)
            line = lo + (0 if chunk.place is None else chunk.place.line)
            begin = 0
            while begin < len(rows):  # at most `at_once` values between pauses
                end = rows.end_within(begin, self.at_once) if self.at_once else len(rows)
                self._stretch = rows.rows(begin, end), line + begin
                self.models.learn(self._stretch[0], again=again)
                self.pause()
                begin = end
            if not again:
                outputs = self.models.parts[0].models[0].head.outputs
                lowest = outputs.low if outputs.kind == "classes" else None
                self.state.seen.add(rows, self.models.recipe.layout, lowest)
            self.stopper.worth_keeping = True
            self.state.position = replace(self.state.position, learned=hi)
            if len(examples := rows.counting()):
                self.state.label = self.models.parts[0].models[0].last_label(examples)
                self.handle_due()
            lo = hi
            self.pause()

    def skip(self, first: int, count: int, error: DivergedError) -> None:
        """Count rows that the model leaves out as skipped: see `BatchFeeder.skip`."""
        rows, line = self._stretch
        line += int(np.flatnonzero(rows.weights)[max(first, 0)]) + 1
        bad = BadLine(self.source.names[0], line, 1, "an example to learn", str(error), b"")
        self._reading.report.leave_out(bad, count)

    def handle_due(self) -> None:
        """Between two examples: add to curve and table, stop or save a checkpoint, whatever is due."""
        done, every = self.models.examples, self.plan.report_every
        since, share = done - self.state.seen.start.examples, self.models.share
        told = self.state.table[-1].examples if self.state.table else self.state.seen.start.examples
        # of many parts it would take longer than to learn the rows since then, many of which still wait
        dear = share.parts > _FEW_PARTS and done - told < share.worth * share.parts
        if progress.is_due(done):
            self.models.mark()
            if self.state.position.number == 1 and not dear:
                self.state.seen.mark(done, self.model.tally)
        if done % every == 0 if every else progress.is_due(since) and not dear:
            self._tell()
        if self.stopper.asked:
            self.interrupt()
        if self.plan.checkpoint_every and done % self.plan.checkpoint_every == 0:
            self.save_checkpoint()

    @property
    def _number(self) -> int:
        """The current pass, or the last one."""
        return min(self.state.position.number, self.repetition.passes)

    def _tell(self) -> None:
        """Add a row to the table, unless no table is kept or no examples were learned since the last row."""
        examples = self.models.examples
        unchanged = bool(self.state.table) and self.state.table[-1].examples == examples
        if unchanged or self.plan.report_every is None:
            return
        self.models.check_finite()
        model, number = self.model, self._number
        sums = model.tally if number == 1 else model.repeated
        seconds, compiling = self._seconds_spent()
        row = Row(
            examples,
            sums.since(self.state.reported).average,
            model.tally.average,
            self.state.label,
            model.last_prediction,
            model.nonzero,
            model.features_seen,
            number,
            (examples - self._examples_before) / max(seconds - compiling, 1e-9),
        )
        self.state.reported = sums
        self.state.table.append(row)
        self.ui.row(row)

    def _over(self) -> bool:
        """End the pass: evaluate on the hold-out. Return whether patience has run out."""
        self.models.check_finite()
        held, number, passes = self.holdout.source(), self.state.position.number, self.repetition.passes
        last = not self.repetition.budget or number >= passes
        if held is None or not (held.rereadable or last):
            self.scores = self.figures = None
        else:
            with closing(held.chunks()) as chunks:
                self._score(self.models.scored, self.stopper.each(chunks, self.interrupt))
        both = total([self.model.tally, self.model.repeated]).since(self.state.seen.start.total)
        self.state.seen.passes.append((*both, self.figures["loss"] if self.figures else None))
        over = self.policy.after_pass(self.models, number, self.scores)
        # of many passes that nobody chose, the ends of 1, 2, 4, 8 ... and the last are told
        quiet = self.plan.replay and passes > _ALL_TOLD and number & (number - 1) and number < passes
        if over or not quiet:
            self.ui.passed(number, self.figures)
        return over

    def _score(self, models: Mapping[int, object], chunks: Iterable[Chunk]) -> None:
        """Evaluate models on the rows that are held out."""
        scores = Scores(models, chunks, self.plan.judge)
        self.holdout.weightless = not scores.examples
        self.scores = scores if scores.examples else None
        self.figures = scores.figures(scores.best()) if scores.examples else None

    def _take_best(self) -> int | None:
        """Restore the best pass of each model; of a single one, return its number if it is not the last."""
        scored, held = self.policy.scored, self.holdout.source()
        changed = self.policy.put_back(self.models, self._number)
        if len(self.models.scored) == 1 and len(scored) == 1:
            (one,) = scored.values()
            number, self.figures = one.best(self.plan.judge)
            return number if changed else None
        if scored and held is not None:  # the last evaluation was of the models after the last pass
            kept = {k: one for k, one in enumerate(self.models.models) if k not in self.models.dropped}
            with closing(held.chunks()) as chunks:
                self._score(kept, chunks)
        return None

    def save_checkpoint(self) -> None:
        """Write model, position and table to the checkpoint of the plan."""
        if self.plan.checkpoint is not None:
            checkpoint.save(self.plan.checkpoint, self.models, self.training_state())

    def interrupt(self) -> NoReturn:
        """Save a checkpoint and raise `Interrupted`."""
        self.save_checkpoint()
        raise Interrupted(self.plan.checkpoint, self.models.examples)

    def _seconds_spent(self) -> tuple[float, float]:
        """Seconds of this run, and how many of them were spent compiling."""
        return time.perf_counter() - self._started, seconds_compiling() - self._compiled

    def _keep_record(self, best: int | None) -> None:
        """Give the model the record of its training; `best` is the pass it was restored to, if any."""
        counts = {name: getattr(self._report, name) for name in COUNTS}
        record = Record(
            passes=best or self._number,
            order=self.order.spec,
            holdout=as_text(self.holdout.every),
            where=self.source.where,
            varied=bool(np.diff(self.models.share.own_passes).any()),
            topics=self.state.topics,
            **counts,
        ).after(self.state.earlier)
        # other passes, if more or fewer were planned
        depends = writes(type(self.models.recipe.rule_part), "begin_pass")
        if self.cut_short and (best is None or depends):
            record = replace(record, planned=self.repetition.passes)
        elif depends and self.plan.patience:
            plan, planned = self.plan, self.repetition.passes
            record = replace(record, planned=planned, patience=plan.patience, judge=plan.judge)
        scored, judge = self.policy.scored, self.plan.judge
        self.models.keep_records(
            lambda k: record.of_pass(scored[k].best(judge)[0] if k in scored else record.passes),
            self.state.seen,
            self.source,
        )
