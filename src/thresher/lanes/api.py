"""``thresher.train``, and ``thresher.path``: models for many penalties from one reading of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from numpy.typing import ArrayLike

from thresher.cluster.elsewhere import reads_elsewhere
from thresher.data.errors import DataError
from thresher.data.formats.tables.heads import columns_seen
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.data.order import Order, make_order
from thresher.lanes import auto, budget, folder, table
from thresher.lanes.frontier import Learned, Point, check_choice, choose, instead_of, joined, noted, points_of
from thresher.lanes.judging import LanesHoldout
from thresher.lanes.lanes import Lanes, alone
from thresher.lanes.penalties import Range, penalty_name, with_penalty
from thresher.lanes.picture import picture
from thresher.learning.agreement import COLUMNS, kind_of_model
from thresher.learning.api import groups_given, held_of, planned, read_as, readout_of
from thresher.learning.beginning import (
    are_files,
    classes_in,
    labels_or_part,
    opened,
    prepared,
    prepared_for_lanes,
)
from thresher.learning.checks import check_flag
from thresher.learning.feature_names import check_namer_again, keep_names, names_follow
from thresher.learning.finite import DivergedError
from thresher.learning.frames import frame_of, held, identity
from thresher.learning.given import Data, is_matrix, with_groups, with_labels
from thresher.learning.head import Head
from thresher.learning.keywords import ModelOptions, TrainOptions, check_names, layout_given, parted
from thresher.learning.model import Model
from thresher.learning.passes import Passes
from thresher.learning.pictures import checked, learning, stages_of_curve, write
from thresher.learning.predicting import ModelOrFile
from thresher.learning.progress import Lines
from thresher.learning.readout import Readout
from thresher.learning.recipe import Recipe, Spec, with_gaps, without_means
from thresher.learning.training import Outcome, Plan, Trainer
from thresher.learning.trouble import Trouble, warn
from thresher.learning.warmstart import checked_data, layout_from, start_from
from thresher.parts import AUTO

if TYPE_CHECKING:
    import pandas as pd

    from thresher.lanes.validation import CrossValidation


@dataclass(frozen=True)
class Frontier:
    """Models of one rule with different penalties, from the weakest to the strongest."""

    penalty: str
    """name of the penalty parameter"""
    points: list[Point]
    """loss and number of weights of each model"""
    models: list[Model]
    """the model of each point. These are lanes: a `copy` can keep learning on its own"""
    warnings: list[Trouble] = field(default_factory=list)
    """trouble with the data or the run"""
    choice: str = "best"
    """what is chosen unless you say otherwise"""
    _learn: Callable[[Learned, list[float]], Learned] | None = field(default=None, repr=False, compare=False)
    """adds models with further penalties; None if the data cannot be read again"""
    _tried: set[str] = field(default_factory=set, repr=False, compare=False)
    """budgets for which penalties were added"""

    def __repr__(self) -> str:
        """The table printed by ``thresher path``, with a star at the chosen model."""
        try:
            chosen: int | None = choose(self.points, self.choice)
        except ValueError:
            chosen = None
        lines = table.of_points(self.points, self.penalty, chosen)
        use = None if chosen is None else budget.use_of(self.points, chosen, self.choice)
        return noted([*lines, *([budget.sentence(use)] if use else [])], self.points, chosen)

    @property
    def model_(self) -> Model:
        """The chosen one, which `thresher.predict`, `evaluate`, `save` and the like take in place of all."""
        return self.models[self.choose()]

    def choose(self, which: str | None = None) -> int:
        """Number of the point selected by ``best``, ``1se``, ``within:P%`` or ``nnz:N``; ValueError.

        The first ``nnz:N`` whose budget lies between two models reads the data once more: models with
        penalties between theirs are added, and numbers of points change. If the data can be read only once, a
        warning says so.
        """
        which = check_choice(self.choice if which is None else which)
        budget.fill(self.points, which, self._tried, None if self._learn is None else self._add)
        return choose(self.points, which)

    def _add(self, penalties: list[float]) -> None:
        """Learn models with further penalties."""
        assert self._learn is not None
        grown = self._learn(Learned(self.points, self.models), penalties)
        self.points[:], self.models[:] = grown

    def model(self, which: str | None = None) -> Model:
        """The model of the selected point, independent of the other lanes."""
        return alone(self.models[self.choose(which)])

    def frame(self) -> pd.DataFrame:
        """A row per model, under the names that all results share. ImportError without pandas.

        See docs/python.md.
        """
        chosen = self.choose()
        return frame_of(
            {
                **identity(model.recipe),
                "examples": model.examples,
                "nonzero": point.nonzero,
                "progressive_loss": point.progressive_loss,
                "chosen": k == chosen,
                "dropped": point.dropped,
                **held(point.holdout),
            }
            for k, (point, model) in enumerate(zip(self.points, self.models, strict=True))
        )

    def plot(self, path: str | PathLike[str], which: str | None = None) -> None:
        """Draw loss over the number of weights to an SVG file. Raises OSError, ValueError."""
        target = checked(path)
        chosen = self.choose(which)
        write(target, picture(self.points, chosen))

    def save(self, path: str | PathLike[str], which: str | None = None) -> None:
        """Write the same folder as ``thresher path``, replacing an older one. Raises OSError."""
        folder.check_folder(Path(path))
        chosen = self.choose(which)
        found = folder.Table(self.penalty, self.points, chosen, self.choice if which is None else which)
        folder.save(Path(path), found, self.models)


@reads_elsewhere
def train(
    data: Data,
    y: ArrayLike | Recipe | Spec | None = None,
    loss: Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rule: Recipe | Spec = "ft-ftrl",
    outputs: str | None = None,
    passes: int | str = "auto",
    replay: int | str = "64MB",
    order: str = "as-is",
    holdout: Data | float | None = None,
    holdout_every: int = 0,
    early_stop: int | None = None,
    patience: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    init: ModelOrFile | None = None,
    names: bool = False,
    plot: str | PathLike[str] | None = None,
    report_every: int | None = None,
    **options: Unpack[TrainOptions],
) -> Model:
    """Train a model on `data` in one or more passes.

    Every option of ``thresher train`` is an argument of the same name, except for output files, the progress
    table, and ``--ensemble``, which is `thresher.ensemble`.

    Args:
        data: a path, a glob, ``-``, or a list of them; a table (pandas, polars, pyarrow, a query result) with
            a `label` column; X, which is a table, a matrix (numpy, scipy) or a list of dictionaries, with
            labels in `y`; ``(X, y)`` or ``(X, y, weights)``; pairs of a dictionary and a label; a Chunk, or
            Chunks.
        y: labels of the rows of X, ``(n,)`` or ``(n, outputs)``. If `data` contain the labels, the rule may
            be given here.
        loss: SPEC or part; default ``logistic``.
        sample_weight: importances ``(n,)``, together with `y`.
        groups: what each row of data in memory belongs to, such as its query or user, ``(n,)``: rows of a
            group are held out together. For files, name the column, ``group``.
        rule: SPEC or part; a `Recipe`, which defines the whole model; or ``auto``, which chooses on the first
            rows among a few settings close to the default rule (docs/default.md).
        outputs: what to predict: ``one`` number, ``classes:LO-HI``, ``labels:LO-HI`` or ``values:K``. Classes
            that are not given are found in the data; label words are sorted and kept in ``model.classes``.
        passes: number of passes over the data. Later passes read a binary `cache` written by the first.
            `scale` and `admit` count in the first pass only. ``auto``: with the default rule 3 to 40 passes
            over data that fit in `replay`, most over small tables; with other rules, and longer data, one.
        replay: memory for the rows that ``passes="auto"`` keeps for further passes; 0: always one pass.
            ``64MB`` holds 129,000 rows of 40 features (12 bytes per non-zero, 16 per row).
        order: ``as-is``; ``once`` or ``every``, to shuffle rows once or anew in each pass, with all rows in
            memory; or ``buffer:N``. Shuffling uses `seed`. Hold-out rows are chosen before shuffling.
        holdout: what to evaluate on after each pass: data, or a share of the examples such as 0.2, which is
            then not learned: 0.2 holds out one of every five rows, drawn with `seed`; ``last:0.2`` the last
            fifth, and ``last:1000`` the last 1,000 rows; ``day >= 20`` the rows that meet a condition, as in
            `where`; the same rows in any order and every pass.
        holdout_every: N, for the share 1 / N.
        early_stop: stop after this many passes without a better hold-out loss, and keep the model of the best
            pass. `patience` is another name for it.
        on_error: what to do with a bad line: ``fail``, ``skip`` or ``quarantine=FILE``.
        threads: number of threads that read and parse; None for one per processor, at most four.
        layout: how to read files and tables: the layout fields below in one object.
        where: which rows of Parquet, Arrow and tables to read: ``"day < 20 and city in ('Ulm', 'Kiel')"``.
        init: a model, a model file, or an estimator, with any rule, whose weights to start from: see
            `start_from`. Files and tables are then read as its training data were, except for the options
            given here.
        names: keep the names of the features with nonzero weights; the data are read once more for this.
        plot: an SVG file to draw progressive loss and sparsity over the examples to.
        report_every: print the table of progress, a row per this many examples; 0: rows at 1, 2, 4, 8, ...
        options: options of the model, which are fields of a `Recipe` (``rate``, ``batch``, ``average``,
            ``scale``, ``centre``, ``admit``, ``store``, ``intercept``, ``dtype``, ``seed``) and ``alpha``,
            ``l1``, ``l2`` and ``eta0`` of its rule; options of how files and tables become features, which
            are fields of a `Layout` (``format``, ``header``, ``delimiter``, ``missing``, ``label``,
            ``weight``, ``group``, ``numeric``, ``bins``, ``categorical``, ``text``, ``ngrams``, ``interact``,
            ``ignore``, ``classes``, ``bits``, ``hash`` ...). Columns are names, positions from 1, ranges or
            patterns: ``label=1, bins="2-14"``.
            ``workers`` and ``ray``: that many processes, of the Ray cluster at that address or of this
            machine, read and parse the files (docs/scale-out.md).

    Trouble with the data or the run raises a `TroubleWarning` for each problem, also in ``model.warnings``.
    Ctrl-C while rows are passed over again from `replay` memory returns the model, with such a warning.
    Raises `SpecError` and `DataError` (both are ValueErrors), ValueError for other invalid arguments,
    TypeError for unknown ones, `DivergedError`.

    >>> import numpy as np
    >>> train(np.eye(4), [1, 1, -1, -1], l1=0.01, passes=3).nonzero
    4
    """
    check_names(train, {"rule": rule, **options}, TrainOptions)
    labels, rule = labels_or_part(data, y, "rule", rule, Recipe.rule)
    plan, holdout = planned(passes, replay, patience, early_stop, holdout, holdout_every, report_every)
    started = None if init is None else readout_of(init)
    of_layout, of_model = parted(without_means(options, started))
    layout = _layout(data, layout_given(layout, of_layout), rule, started)
    of = plan.holdout_every, groups_given(groups, layout, options)
    read = read_as(*of, threads=threads, layout=layout, where=where)
    data = with_labels(data, labels, sample_weight)
    recipe, source = with_groups(_started(data, rule, loss, outputs, of_model, on_error, read), groups)
    held = held_of(holdout, recipe.head().domain, source, threads, on_error)
    beside = names, plot, plan, make_order(str(order), recipe.seed), held, cache
    return _trained(recipe, of_model if _is_auto(rule) else None, started, source, *beside)


def _trained(
    recipe: Recipe,
    raced: Any,
    started: Readout | None,
    source: Any,
    names: bool,
    plot: str | PathLike[str] | None,
    plan: Plan,
    *beside: Any,
) -> Model:
    """Train the model of a recipe on the source; with `raced` options, return the winner of a race."""
    check_flag("names", names)
    target = None if plot is None else checked(plot)
    if names:
        check_namer_again(source, recipe.store)
    model = Model(recipe) if raced is None else auto.start(recipe, given=raced)
    source = _begun(model, started, source)
    model.layout = source.layout
    watcher = printing(plan, model.head, source.layout)
    trainer = trainer_of(model, source, plan, *beside, successor=auto.successor, watcher=watcher)
    del model  # frees racing lanes as soon as one of them is left
    outcome = trainer.run()
    trained: Model = trainer.model  # the one that is left
    unnamed = [] if names else names_follow(trained, source)
    trained.warnings, trained.holdout = warn(outcome.warnings + unnamed), outcome.holdout
    if names:
        keep_names(trained, source)
    if target is not None:
        stages = stages_of_curve(trained.curve, trained.nonzero)
        write(target, learning(stages, str(trained.recipe.loss), outcome.holdout))
    return trained


def _layout(
    data: Data, given: AnyLayout | None, rule: Recipe | Spec, started: Readout | None
) -> AnyLayout | None:
    """How to read the data: as given, as in a recipe, or as the data of the initial weights were read."""
    found = given or (rule.layout if isinstance(rule, Recipe) else None)
    ids = started is not None and kind_of_model(started).features != COLUMNS
    if started is None or (ids and not are_files(data)) or is_matrix(data):
        return found
    return layout_from(started, found)


def printing(plan: Plan, head: Head, layout: SettledLayout | None) -> Lines | None:
    """What prints the table of progress, if the plan has one."""
    if plan.report_every is None:
        return None
    lines = Lines(print)
    lines.show_classes(head, layout.classes if layout else ())
    return lines


def _is_auto(rule: Recipe | Spec) -> bool:
    return isinstance(rule, str) and rule == AUTO


def _begun(model: Model | Lanes, started: Readout | None, source: Any) -> Any:
    """The source, after giving a model its initial weights. ValueError for lanes."""
    if started is None:
        return source
    if not isinstance(model, Model):
        raise ValueError("init works with one model only: give a rule other than auto")
    start_from(model, started)
    return checked_data(started, source)


def trainer_of(
    model: Any,
    source: Any,
    plan: Plan,
    order: Order,
    held: Any,
    cache: bool,
    *,
    more: bool = False,
    **beside: Any,
) -> Trainer[Any]:
    """The trainer for all passes over the source, which is read again later if there is `more` to learn."""
    check_flag("cache", cache)
    readings = order.reads(plan.passes) + more
    reads = Passes(source, readings, cached=cache and hasattr(source, "identity"))
    beside |= {"reread": reads.later, "order": order, "holdout": held, "columns": columns_seen(source)}
    return Trainer(model, reads.first, plan, **beside)


def _started(
    data: Data,
    rule: Recipe | Spec,
    loss: Spec | None,
    outputs: str | None,
    of_model: Mapping[str, Any],
    on_error: str,
    read: dict[str, Any],
) -> tuple[Recipe, Any]:
    """The recipe, without a layout, which depends on the data; and the source.

    ValueError for options that contradict a recipe and would be ignored.
    """
    if not isinstance(rule, Recipe):
        spec = Recipe.rule if _is_auto(rule) else rule
        return prepared(data, spec, loss, outputs, of_model, on_error, read)
    if loss is not None or outputs is not None:
        raise ValueError("a recipe contains its loss and outputs: change them with dataclasses.replace")
    _, _, read = classes_in(data, rule.loss, rule.outputs, on_error, read)
    recipe = replace(rule, layout=None, **of_model)
    read |= {"layout": with_gaps(read["layout"], recipe.centre)}
    return recipe, opened(data, recipe.head().domain, on_error=on_error, **read)


@reads_elsewhere
def path(
    data: Data,
    y: ArrayLike | Spec | None = None,
    loss: Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rule: Spec = "ft-ftrl",
    l1: str | Sequence[float] = "auto:16",
    outputs: str | None = None,
    passes: int | str = "auto",
    replay: int | str = "64MB",
    order: str = "as-is",
    holdout: Data | float | None = None,
    holdout_every: int | None = None,
    early_stop: int | None = None,
    patience: int = 0,
    choose: str = "best",
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    **options: Unpack[ModelOptions],
) -> Frontier:
    """Train models with different penalties side by side, from one reading of `data`.

    Args:
        data, y, loss, sample_weight, groups, rule: as for `train`.
        l1: an ascending list of penalties; ``LO:HI:N``, a geometric progression; or ``auto:N``, which chooses
            one from the first rows: the data must then be readable twice.
        holdout, holdout_every: the hold-out to choose by; default one of every ten rows (0: none).
        choose: ``best``, the lowest loss; ``1se``, the sparsest within one standard error of it;
            ``within:P%``, the sparsest whose loss is at most P % higher; ``nnz:N``, the best with at most N
            weights, for which the data are read once more, with penalties between the two models next to N.
        outputs, passes, replay, order, early_stop, patience: as for `train`. All models make the same passes.
        on_error, threads, cache, layout, where, options: as for `train`.

    Raises the errors of `train`.

    >>> frontier = path("examples/data/rcv1_train2000.dat.gz", l1="0.5:4:4")
    >>> all(one.nonzero > next.nonzero for one, next in zip(frontier.points, frontier.points[1:]))
    True
    >>> 900 < frontier.model("nnz:1000").nonzero < 1100, len(frontier.points)
    (True, 12)
    """
    check_names(path, {"rule": rule, **options}, ModelOptions)
    check_choice(choose)
    labels, rule = labels_or_part(data, y, "rule", rule, Recipe.rule)
    plan, holdout = planned(passes, replay, patience, early_stop, holdout, holdout_every, default=10)
    of = plan.holdout_every, groups_given(groups, layout, options)
    read = read_as(*of, on_error=on_error, threads=threads, layout=layout, where=where)
    data = with_labels(data, labels, sample_weight)
    base, source = with_groups(prepared_for_lanes(data, rule, loss, outputs, options, **read), groups)
    held = held_of(holdout, base.head().domain, source, threads, on_error)
    values = penalties_of(Range(l1), make_order(str(order), base.seed), source, base)
    return with_choice(_Lanes(base, source, plan, str(order), held, cache).frontier(values, choose))


F = TypeVar("F", "Frontier", "CrossValidation")


def with_choice(found: F) -> F:
    """The models, of which one is chosen: `instead_of` it, with a warning, if the criterion selects none."""
    try:
        found.choose()
    except ValueError as error:
        if found.choice == "best":
            return found  # choosing explains it
        instead = instead_of(found.points, found.choice)
        which = "the best" if instead == "best" else "that"
        warnings = found.warnings + warn([Trouble("choice", f"{error}; choosing {which} instead")])
        return with_choice(replace(found, choice=instead, warnings=warnings))
    return found


@dataclass(frozen=True)
class _Lanes:
    """Trains models with different penalties on the same data."""

    base: Recipe
    source: Any
    plan: Plan
    order: str
    held: Any
    cache: bool

    def frontier(self, penalties: list[float], choice: str) -> Frontier:
        """The models of these penalties."""
        again = self.source.rereadable and (self.held is None or self.held.rereadable)
        if again and hasattr(self.source, "identity"):
            self.source.keep_hash = True
        found, _, outcome = self._run(penalties, again and budget.budget_of(choice) is not None)
        warnings = warn(outcome.warnings)
        return Frontier(penalty_name(self.base.rule), *found, warnings, choice, self._add if again else None)

    def _run(self, penalties: list[float], more: bool = False) -> tuple[Learned, Any, Outcome]:
        lanes = Lanes([with_penalty(self.base, value) for value in penalties])
        judging = LanesHoldout(self.plan.holdout_every, self.held)
        order = make_order(self.order, self.base.seed)
        beside: dict[str, Any] = {"more": more, "judging": lambda *given: judging}
        outcome = trainer_of(lanes, self.source, self.plan, order, self.held, self.cache, **beside).run()
        return Learned(points_of(lanes, judging), lanes.models), judging.source(), outcome

    def _add(self, before: Learned, penalties: list[float]) -> Learned:
        """The models of an earlier run, and those with further penalties."""
        try:
            found, held, _ = self._run(penalties)
        except DivergedError:
            return before
        return joined(before, found, held)


def penalties_of(wanted: Range, order: Order, source: Any, base: Recipe) -> list[float]:
    """The values of a range; ``auto`` finds them in the data. DataError if the data can be read only once."""
    penalty_name(base.rule)
    if wanted.values:
        return wanted.values
    if not source.rereadable:
        raise DataError("the data can be read only once: give the range of penalties, l1='LO:HI:N'")
    return wanted.found_in(make_order(order.spec, base.seed).over(source, 1), base)
