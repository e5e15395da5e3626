"""The public functions: each settles its options and calls a run, which the command line calls too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.batch.rounds import Round
from thresher.batch.solving import Boosted
from thresher.cluster.remote_readers import reading_elsewhere, reads_elsewhere
from thresher.data.errors import DataError, NothingNewError
from thresher.data.features.names import Names
from thresher.data.inputs.any_data import Data, with_labels
from thresher.learning.diagnostics.column_findings import troubles_of_reading
from thresher.learning.diagnostics.findings import warn
from thresher.learning.files import model_file
from thresher.learning.inspection import plots
from thresher.learning.inspection.feature_names import find_in, keep_names
from thresher.learning.model.ensemble import Ensemble, predictor_of
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.objective import Output
from thresher.learning.model.prediction import AnyModel, ModelOrFile, with_columns, with_known_labels
from thresher.learning.model.recipe import Recipe, Spec
from thresher.learning.training.progress import ProgressLines, Ui
from thresher.learning.training.trainer import Outcome
from thresher.options import lanes, training
from thresher.options.data import ReadOptions
from thresher.options.judging import EvaluateRun, MeasuringRun
from thresher.options.model import ModulesOption
from thresher.options.option import Options, settle, takes
from thresher.plans.cv import CrossValidation
from thresher.plans.models import Frontier, Tuned
from thresher.plans.path import Paths
from thresher.plans.run import Plan, bags_of
from thresher.plans.run_setup import labels_or_part
from thresher.plans.select import Selecting
from thresher.plans.stability import Selection
from thresher.plans.train import ManyModels
from thresher.plans.tune import Search
from thresher.runs import boost as runs_boost
from thresher.runs import files, using


@takes(training.TrainOptions)
def train(
    data: Data,
    y: ArrayLike | Recipe | Spec | None = None,
    loss: Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    **options: Unpack[training.TrainOptions],
) -> Model:
    """Train a model on `data` in one or more passes.

    Every option of ``thresher train`` is an argument of the same name, except for output files and
    ``--ensemble``, which is `thresher.ensemble`.

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
        offsets: numbers ``(n,)`` that are added to the margins of rows in memory, in learning and in
            prediction, such as logarithms of exposures (docs/offset.md). For files and tables, name the
            column, ``offset``.
        rule: SPEC or part; a `Recipe`, which defines the whole model; or ``auto``, which chooses on the first
            rows among a few settings close to the default rule (docs/default.md).
        outputs: what to predict: ``one`` number, ``classes``, which are met on the way, ``classes:LO-HI``,
            ``labels:LO-HI`` or ``values:K``. ``model.classes`` has labels that are words.
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
        early_stop: stop after this many passes that are no better on the hold-out, and keep the model of the
            best pass.
        judge: the figure of the hold-out that says what is better, such as ``average_precision`` or
            ``lift@1%``; default ``loss``.
        checkpoint: a file for checkpoints, from which ``resume=True``, with the same data and options, leads
            to the same model, bit for bit. It is removed when training is done. With it, Ctrl-C stops
            between two examples, leaves a checkpoint and raises `Interrupted`, a KeyboardInterrupt.
        checkpoint_every: examples between checkpoints; without it, there is one only if training is stopped.
        resume: go on from `checkpoint`.
        on_error: what to do with a bad line: ``fail``, ``skip`` or ``quarantine=FILE``.
        threads: number of threads that read and parse; None for one per processor, at most four.
        layout: how to read files and tables: the layout fields below in one object.
        where: which rows of tables, in files or in memory, to read: ``"day < 20 and city = 'Ulm'"``.
        init: a model, a model file, or an estimator, with any rule, whose weights to start from: see
            `start_from`. Files and tables are then read as its training data were, except for the options
            given here.
        continue_from: a model, a model file, or an estimator, to go on from with these data, as if they
            followed those that it has learned: its rule, its options and its whole state are kept, and it is
            copied. `passes` counts those over `data`; with one pass each, the result is, bit for bit, the
            model of all data in one stream (docs/continue.md).
        names: keep the names of the features with nonzero weights; the data are read once more for this.
        plot: an SVG file to draw progressive loss and sparsity over the examples to.
        modules: a file of Python that defines rules, losses or rates, or several; they are executed first
            (docs/own.md). Those of installed packages are found without it.
        report_every: print the table of progress, a row per this many examples; 0: rows at 1, 2, 4, 8, ...
        options: options of the model, which are fields of a `Recipe` (``rate``, ``batch``, ``average``,
            ``scale``, ``centre``, ``admit``, ``store``, ``intercept``, ``dtype``, ``seed``, ``sample``,
            ``calibrate``, ``nonnegative``, ``nonpositive``) and ``alpha``, ``l1``, ``l2`` and ``eta0`` of its
            rule; options of how files and
            tables become features, which are fields of a `Layout` (``format``, ``header``, ``delimiter``,
            ``missing``, ``label``, ``weight``, ``offset``, ``group``, ``numeric``, ``bins``, ``categorical``,
            ``text``, ``ngrams``, ``interact``, ``ignore``, ``classes``, ``bits``, ``hash``, ``quoting``,
            ``label_weights``).
            Columns are names, positions from 1, ranges or patterns: ``label=1, bins="2-14"``.
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
    own = {**options, "loss": loss}
    with _open_run(training.TrainCommand, train, data, y, sample_weight, own) as (inputs, given):
        model: Model = _train(Plan(given), inputs)
    if given["plot"] is not None:
        stages = plots.stages_of_curve(model.curve, model.nonzero)
        plots.write(Path(given["plot"]), plots.learning(stages, str(model.recipe.loss), model.holdout))
    return model


@takes(training.EnsembleOptions)
def ensemble(
    data: Data,
    y: ArrayLike | Spec | None = None,
    loss: Spec | None = None,
    *,
    models: int | str | None = None,
    sample_weight: ArrayLike | None = None,
    **options: Unpack[training.EnsembleOptions],
) -> Ensemble[Model]:
    """Train several models on different rows of `data`; together they predict with the mean of their margins.

    Args:
        data, y, loss, sample_weight, groups, offsets, rule: as for `train`.
        models: ``N`` or ``poisson:N``: N models that learn each row with a Poisson(1) importance (bagging);
            or ``disjoint:N``: each row is learned by one of N models. The draws depend on `seed`. Default: 8,
            or as many as go on. ``by:COLUMN``: a model for each value of a column, which predicts its rows,
            beside one of all rows, which predicts those of values never seen (docs/by.md).
        order: as for `train`, but in several passes not one that is drawn anew in each; with such an order
            ``passes="auto"`` makes one pass.
        holdout, early_stop, judge: as for `train`; the ensemble is evaluated as a
            whole.
        continue_from: an ensemble, or its folder, whose models go on with these data.
        outputs, passes, replay, on_error, threads, cache, layout, where, modules, report_every, options: as
            for `train`.

    Raises the errors of `train`.

    >>> found = ensemble("examples/data/rcv1_train2000.dat.gz", models=4)
    >>> len(found.models), found.spread([{140: 0.5}]).shape
    (4, (1,))
    """
    own = {**options, "loss": loss}
    with _open_run(training.EnsembleRun, ensemble, data, y, sample_weight, own) as (inputs, given):
        bags = (bags_of(given["continue_from"]) or 8) if models is None else models
        found: Ensemble[Model] = _train(ManyModels(given, bags), inputs)
    return found


@takes(lanes.PathOptions)
def path(
    data: Data,
    y: ArrayLike | Spec | None = None,
    loss: Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    **options: Unpack[lanes.PathOptions],
) -> Frontier:
    """Train models with different penalties side by side, from one reading of `data`.

    Args:
        data, y, loss, sample_weight, groups, offsets, rule: as for `train`.
        l1: an ascending list of penalties; ``LO:HI:N``, a geometric progression; or ``auto:N``, which chooses
            one from the first rows: the data must then be readable twice.
        holdout: the hold-out to choose by; default one of every ten rows; ``none``.
        choose: ``best``, the lowest loss, or the best by `judge`; ``1se``, the sparsest within one standard
            error of it; ``within:P%``, the sparsest at most P % worse; ``nnz:N``, the best with at most N
            weights.
        continue_from: a frontier, or the folder of one, whose models go on with these data.
        outputs, passes, replay, order, early_stop, judge: as for `train`. All models make the same
            passes.
        on_error, threads, cache, layout, where, modules, options: as for `train`.

    Raises the errors of `train`.

    >>> frontier = path("examples/data/rcv1_train2000.dat.gz", l1="0.5:4:4")
    >>> all(one.nonzero > next.nonzero for one, next in zip(frontier.points, frontier.points[1:]))
    True
    >>> frontier.choose("nnz:1000").nonzero <= 1000
    True
    """
    own = {**options, "loss": loss}
    with _open_run(lanes.PathCommand, path, data, y, sample_weight, own) as (inputs, given):
        run = Paths(given).prepare(inputs, Ui())
        outcome = _outcome(run)
    return _decided(run.frontier(), outcome)


@takes(lanes.CvOptions)
def cv(
    data: Data,
    y: ArrayLike | Spec | None = None,
    loss: Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    **options: Unpack[lanes.CvOptions],
) -> Frontier:
    """Evaluate penalties by cross-validation: each fold by models that have not learned its rows.

    All models learn side by side from one reading of `data`; a second one, of the cache if there is one,
    evaluates them.

    Args:
        data, y, loss, sample_weight, groups, offsets: as for `train`; rows of a group are in one fold.
        rule: as for `train`. A rule given with its penalty, or without any, is evaluated as it is.
        folds: number of folds, from 2 to 1,000. Of every `folds` rows, one is in each, drawn with `seed`.
        l1: an ascending list of penalties; ``LO:HI:N``, a geometric progression; or ``auto:N``, which chooses
            one from the first rows (default ``auto:16``).
        refit: train models of all rows, too.
        passes, replay: as for `train`. ``auto`` goes by all rows, and every fold makes the same passes.
        order: as for `train`, but in several passes not one that is drawn anew in each; with such an order
            ``passes="auto"`` makes one pass.
        choose: as for `path`.
        judge: as for `train`, in the mean over the folds.
        outputs, on_error, threads, cache, layout, where, modules, options: as for `train`.

    Raises the errors of `train`; `DataError` for fewer rows than folds.

    >>> found = cv("examples/data/rcv1_train2000.dat.gz", l1="0.5:4:4", folds=5, refit=True)
    >>> found.number() < 2, found.points[1].figures["error"] < 0.13
    (True, True)
    >>> found.choose("nnz:900").nonzero <= 900
    True
    """
    own = {**options, "loss": loss}
    with _open_run(lanes.CvCommand, cv, data, y, sample_weight, own) as (inputs, given):
        run = CrossValidation(given).prepare(inputs, Ui())
        outcome, found = _outcome(run), run.judge()
    return _decided(found, outcome)


@takes(lanes.TuneOptions)
def tune(
    data: Data,
    y: ArrayLike | Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    **options: Unpack[lanes.TuneOptions],
) -> Tuned:
    """Race `budget` settings of several rules in three readings of `data`, and keep the best model.

    Settings are compared by their progressive loss on all rows but the last tenth; the report is on that
    tenth.

    Args:
        data, sample_weight, groups, offsets: as for `train`.
        y: labels, as for `train`. If `data` contain the labels, the loss may be given here.
        loss: as for `train`.
        rules: names of the rules to try.
        budget: number of settings.
        holdout: data, or a share of them, to report on; settings are then compared on all other rows.
        passes: number of passes of the best setting, which is trained anew if that is more than one; settings
            race in the first. ``auto``: as many as `train` makes with its rule.
        outputs, replay, order, on_error, threads, cache, layout, where, modules: as for `train`.
        options: as for `train`, without the parameters that are varied (``rate``, ``eta0``, ``alpha``,
            ``l1``, ``l2``). The same ``seed`` draws the same settings.

    Raises the errors of `train`; `DivergedError` if every setting diverges.

    >>> found = tune("examples/data/rcv1_train2000.dat.gz", rules=["ft-ftrl"], budget=8)
    >>> len(found.trials), found.report["examples"]
    (8, 200)
    """
    with _open_run(lanes.TuneOptions, tune, data, y, sample_weight, options, "loss") as (inputs, given):
        search = Search(given).prepare(inputs, Ui())
        search.run()
        found = search.result()
    return replace(found, warnings=warn(found.warnings))


@takes(lanes.SelectOptions)
def select(
    data: Data,
    y: ArrayLike | Spec | None = None,
    loss: Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    **options: Unpack[lanes.SelectOptions],
) -> Selection:
    """Find the features that live in most halves of the rows of `data`, from one reading.

    Each of `bags` models learns half of the rows; models come in pairs that share no row. A half selects the
    q features with the largest effects ``|w| s``, ``s^2 = Var(x) / P(x != 0)`` over all rows, whatever their
    units (of several outputs, that with the largest weight counts). Those are kept whose share of the halves
    reaches the lowest threshold pi with ``C(pi) q^2 / p <= false``, where p is the number of features: C is
    that of Shah and Samworth, Variable selection with error control (JRSS B 2013), equation 7, which bounds
    the expected number of kept features that a half selects with at most the chance q / p. `Selection` has
    the assumptions.

    Args:
        data, y, loss, sample_weight, offsets, rule: as for `train`.
        groups: as for `train`; rows of a group are in one half of a pair.
        bags: number of half-samples, an even number.
        share: share of the rows in each, up to a half.
        false: at most so many false features are expected among those that are kept.
        nonzero: q; a half with fewer weights selects all of them. Default: the root of `false` times p.
        l1: penalty of the halves; default twice that of the rule.
        names: find the names of features; the data are read once more for this.
        passes, replay, order, checkpoint, checkpoint_every, resume: as for `ensemble`.
        outputs, on_error, threads, cache, layout, where, modules, options: as for `train`.

    Raises the errors of `train`.

    >>> found = select("examples/data/rcv1_train2000.dat.gz", bags=8, passes=1)
    >>> found.threshold, bool(found.share[0] == 1.0), bool(5 < found.kept.sum() < 300)
    (0.75, True, True)
    """
    own = {**options, "loss": loss}
    with _open_run(lanes.SelectCommand, select, data, y, sample_weight, own) as (inputs, given):
        run = Selecting(given).prepare(inputs, Ui())
        outcome, found = _outcome(run), run.select()
    return replace(found, warnings=warn([*outcome.warnings, *found.warnings]))


@takes(training.BoostOptions)
def boost(
    data: Data,
    y: ArrayLike | str | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    callback: Callable[[Round], None] | None = None,
    **options: Unpack[training.BoostOptions],
) -> Boosted:
    """Minimise ``sum_i c_i loss(y_i, w.x_i + b) + l1 |w|_1 + l2 |w|^2 / 2`` with the data in memory.

    The loss is a sum over examples, weighted by importance c_i, not a mean; b is never penalised.

    Args:
        data, sample_weight: as for `train`.
        y: labels, as for `train`. If `data` contain the labels, the loss may be given here.
        loss: ``exponential`` (as in AdaBoost), ``logistic``, ``squared``, ``huber`` or
            ``poisson``, or ``softmax`` for several classes.
        outputs: ``classes`` or ``classes:LO-HI`` with a loss of two classes: each class against the rest.
        l1, l2: strengths of the penalties; ``l1="2sd"``: of each weight, two standard deviations of the noise
            of its derivative, measured at the model that it leaves.
            Several, as a list, ``LO:HI:N`` or ``auto:N``, give the model that cross-validation chooses; those
            of all penalties, each solved from the weights of the next stronger one, are ``model.frontier``.
        folds, choose: of this, as for `cv` and `path`.
        method: ``newton``, or ``parallel`` for the first two losses (steps of all features at once).
        intercept: whether to learn b.
        tolerance: stop when the largest violation of the optimality conditions is at most this share of the
            smallest l1 that leaves no feature.
        rounds: stop after this many rounds at the latest.
        threads: number of threads; the result does not depend on it.
        callback: called with every `Round`.
        on_error, layout, where, options: as for `train`.

    Trouble with the data or the model raises a `TroubleWarning` for each problem, also in ``model.warnings``.
    Raises ValueError, `SpecError` and `DataError`; TypeError for unknown options.

    >>> model = boost("examples/data/rcv1_train2000.dat.gz", l1=10.0)
    >>> model.solution.converged, len(model.keys) < 50
    (True, True)
    """
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function, or None, not {callback!r}")
    with _open_run(training.BoostOptions, boost, data, y, sample_weight, options, "loss") as (inputs, given):
        _, run = runs_boost.prepare(inputs, given, Ui())
        found = run(callback or (lambda _: None))
    found.warnings = warn(found.warnings)
    return found


def save(model: AnyModel, path: str | os.PathLike[str], *, state: bool = True) -> None:
    """Write a model file: settled nonzero weights and the header.

    Args:
        model: a Model; a LinearPredictor, which has no state; or a fitted estimator, whose model is written.
        path: the file; an older one is replaced when the new one is complete.
        state: write what is needed to keep learning, too.

    Raises OSError if writing fails and `DivergedError` if weights or state are not finite; an existing file
    is then unchanged. RuntimeError while another thread is learning; TypeError if `model` is not a model.
    """
    model_file.save(model, os.fspath(path), state=state)


@takes(ModulesOption)
def load(path: str | os.PathLike[str], **options: Unpack[ModulesOption]) -> Any:
    """Load what a file holds, to predict with; to go on learning with a model, load it with `Model.load`.

    A file of `path` is a `Frontier`, of which ``.choose("1se")`` is a model; one of `ensemble` an `Ensemble`,
    one of `select` a `Selection`, any other a `LinearPredictor`.

    Args:
        path: the file.
        modules: a file of Python that defines the loss of the model, or several; they are executed first. The
            losses of installed packages are found without it.

    Raises `ModelFileError`; `SpecError` for `modules`; TypeError if `path` is not a path.
    """
    settle(ModulesOption, options, load)
    return files.load(Path(os.fspath(path)))


@reads_elsewhere
def predict(
    model: ModelOrFile,
    data: Data,
    output: Output = "margin",
    **reading: Unpack[ReadOptions],
) -> NDArray[Any]:
    """Predict ``(n,)``, or ``(n, outputs)`` for many outputs, as ``model.predict`` does.

    Args:
        model: a Model, a LinearPredictor, an Ensemble, the path of a saved model or ensemble, a fitted
            estimator, or a result of `thresher.path`, `thresher.cv` or `thresher.tune`: its best model.
        data: examples; labels are optional and ignored. See `Model.predict`.
        output: ``margin``, ``probability`` or ``label``: see `Model.predict`. Probabilities of an estimator
            with several classes are those of its ``predict_proba``.
        offsets: numbers ``(n,)`` that are added to the margins of rows in memory, if the model was trained
            with offsets.
        reading: how to read `data`, where that differs from the training data: `offsets`, the options of
            `thresher.open_source` and the fields of a `Layout`.

    Raises `ModelFileError`, `DataError`, ValueError for an output that this loss does not have, TypeError if
    `model` is not a model.

    >>> import thresher
    >>> model = thresher.train([{"size": 3.0}, {"size": -2.0}] * 50, ["big", "small"] * 50, passes=3)
    >>> predict(model, [{"size": 5.0}], "label").tolist()
    ['big']
    """
    settle(ReadOptions, reading, predict)
    found, given = predictor_of(model), with_columns(model, data)
    if output == "probability" and hasattr(model, "classes_") and found.head.outputs.kind == "classes":
        # of an estimator, whose probabilities add up to 1
        return found.predict_proba(given, **reading)
    answers = found.predict(given, output, **reading)
    classes = getattr(model, "classes_", None)
    if output != "label" or classes is None or answers.ndim != 1 or answers.dtype.kind != "f":
        return answers
    # labels of an estimator are of the classes that it was given
    places = (answers > 0).astype(np.intp) if len(classes) == 2 else answers.astype(np.intp)
    labels: NDArray[np.generic] = np.asarray(classes)[places]
    return labels


@reads_elsewhere
def evaluate(
    model: ModelOrFile,
    data: Data,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = None,
    top: int | str | Sequence[int | str] = (),
    cost: str | dict[str, float] | None = None,
    slices: str | Sequence[str] = (),
    plot: str | os.PathLike[str] | None = None,
    **reading: Unpack[ReadOptions],
) -> dict[str, Any]:
    """Evaluate a model on data. Returns the figures of ``thresher evaluate --json``, see docs/evaluate.md.

    Args:
        model: a Model, a LinearPredictor, an Ensemble, the path of a saved model or ensemble, a fitted
            estimator, or a result of `thresher.path`, `thresher.cv` or `thresher.tune`: its best model.
        data: anything that `thresher.train` accepts.
        y: labels of the rows of `data`, ``(n,)`` or ``(n, outputs)``, if `data` does not contain them.
        sample_weight: importances ``(n,)``, together with `y`.
        offsets: as for `predict`.
        threshold: predict the positive class above this probability (default 0.5), or above this margin
            (default 0) if the loss has no probabilities.
        top: a number of examples, a share such as ``"1%"``, or a list: ``top`` of the result has precision,
            recall and lift of those with the largest margins.
        cost: what a missed positive and a false alarm cost, ``{"fn": 10, "fp": 1}`` or ``"fn=10,fp=1"``: the
            result has the threshold with the lowest mean cost.
        slices: columns of a table, by name, position from 1 or pattern: ``slices`` of the result has figures
            for each of their values (docs/evaluate.md). Text is one column, or one pattern.
        plot: an SVG file to draw, as ``thresher evaluate --plot`` does.
        reading: how to read `data`, where that differs from the training data: the options of
            `thresher.open_source` and the fields of a `Layout`.

    Raises `ModelFileError`, `DataError`, ValueError for wrong options, TypeError if `model` is not a model.
    """
    own = {"threshold": threshold, "top": top, "cost": cost, "slices": slices, "plot": plot}
    options = settle(EvaluateRun, {**reading, **own}, evaluate)
    measured = predictor_of(model)
    given = with_known_labels(model, data, y, sample_weight)
    figures, _, troubles = using.measure(measured, given, options)
    warn(troubles)
    return figures


def export(model: ModelOrFile, to: str, path: str | os.PathLike[str] | None = None) -> str | bytes:
    """Write a model as one file without dependencies, which predicts from raw values in another language.

    Margins are those of `predict`, bit for bit in C: products of weights and values in the dtype of the
    weights, added up in float64 in the order of the keys. See docs/export.md.

    Args:
        model: a Model, a LinearPredictor, an Ensemble, a fitted estimator, or the path of a saved one.
        to: ``c`` (C99), ``js`` (JavaScript for CommonJS and pages), ``mjs`` (an ES module),
            ``onnx``, or ``json``, a description of the prediction.
        path: the file, which is replaced; None: write none.

    Returns the content of the file: bytes of ``onnx``, else text. Raises `DataError` for what the target
    cannot express, and for ``onnx`` without that package, before anything is written; `ModelFileError`,
    OSError; ValueError for an unknown target; TypeError if `model` is not a model.

    >>> import thresher
    >>> model = thresher.train([[3.0], [-2.0]] * 50, [1, -1] * 50, passes=1)
    >>> "double margins[THRESHER_OUTPUTS]" in export(model, "c")
    True
    """
    return using.export(model, to, None if path is None else Path(path))


@reads_elsewhere
def report(
    model: ModelOrFile | Selection,
    data: Data | None = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = None,
    slices: str | Sequence[str] = (),
    **reading: Unpack[ReadOptions],
) -> None:
    """Write a report about a model: one HTML page that loads nothing from elsewhere, of at most 300 KB.

    Args:
        model: a Model, a LinearPredictor, a fitted estimator, a `Frontier`, a `Selection`, or the path of
            one.
        data: labelled examples to measure the model on, anything that `thresher.train` accepts. The page
            contains none of their rows.
        path: the page; an older report there is replaced.
        y: labels of the rows of `data`, if `data` does not contain them.
        sample_weight: importances ``(n,)``, together with `y`.
        offsets: as for `predict`.
        threshold: predict the positive class above it: see `evaluate`.
        slices: columns of a table, by name, position from 1 or pattern; the page has figures for each of
            their values. Text is one column, or one pattern.
        reading: how to read `data`, where that differs from the training data: the options of
            `thresher.open_source` and the fields of a `Layout`.

    Raises `ModelFileError`, `DataError`, ValueError for wrong options, FileExistsError if `path` exists and
    is not a report, OSError; TypeError if `model` is not a model.
    """
    own = {"threshold": threshold, "slices": slices if len(slices) else None}
    options = settle(MeasuringRun, {**reading, **own}, report)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, not {type(path).__name__}; labels are given as y=")
    if data is None and not (y is None and sample_weight is None):
        raise ValueError("labels or weights are given without data")
    given = data if data is None else with_known_labels(model, data, y, sample_weight)
    found, write = using.report(model, given, Path(path), options)
    if found.test is not None:
        warn(troubles_of_reading(found.test.lines))
    write()


def info(model: ModelOrFile) -> dict[str, Any]:
    """Show what is in a model and how it was made: the figures of ``thresher info --json``.

    Printed, the result is the text of ``thresher info``. See docs/reading.md.

    Args:
        model: a Model, a LinearPredictor, an Ensemble, a fitted estimator, or a result of `thresher.path`,
            `thresher.cv` or `thresher.tune`: its best model; or the path of a file. For a model in memory,
            ``model`` is None and ``bytes`` are those of the file that `save` writes.

    Raises `ModelFileError`; `DivergedError` for a model in memory whose weights are not finite; TypeError if
    `model` is not a model.

    >>> import thresher
    >>> found = info(thresher.train([{"size": 3.0}, {"size": -2.0}] * 50, [1, -1] * 50, passes=1))
    >>> found["kind"], found["examples"], found["weights"]["positive"]
    ('model', 100, 1)
    """
    write = Ensemble.save if isinstance(model, Ensemble) else model_file.save
    with model_file.file_of(model, write) as path:
        found = files.describe(path)
    if not isinstance(model, str | os.PathLike):
        found["model"] = None
    return found


@reads_elsewhere
def name_features(
    model: AnyModel,
    data: Data,
    **reading: Unpack[ReadOptions],
) -> Names:
    """Find the names of the features with nonzero weights in `data`, and keep them in ``model.names``.

    Reading stops when every such feature has a name. The data are read a second time if products of features
    appeared after their factors. Labels are ignored and nothing is learned. Names that the model already has
    are kept; those of features whose weight is now zero are dropped. Ids have no other name.

    Args:
        model: a Model, a LinearPredictor, or a fitted estimator, whose ``model_`` then keeps the names.
        data: files, a table, or rows as dictionaries, with or without labels.
        reading: how to read `data`, where that differs from the training data: the options of
            `thresher.open_source` and the fields of a `Layout`. Bad lines are skipped (`on_error` is
            ``skip``).

    Returns a mapping from key to name. Raises `DataError` for a model with a hashed store, where one weight
    stands for several features, and for data without names; TypeError if `model` is not a model.
    """
    settle(ReadOptions, reading, name_features)
    return find_in([as_model(model)], data, **reading)


@contextmanager
def _open_run(
    command: type,
    function: Callable[..., object],
    data: Data,
    y: Any,
    sample_weight: ArrayLike | None,
    options: Mapping[str, object],
    kind: str = "rule",
) -> Iterator[tuple[Data, Options]]:
    """Data with their labels, and all options of a run; within this block, files are read as these say.

    In place of labels, `y` may be a part of this `kind`.
    """
    labels, part = labels_or_part(data, y, kind, options.get(kind))
    given = settle(command, {**options, kind: part}, function)
    with reading_elsewhere(given["workers"], given["ray"]):
        yield with_labels(data, labels, sample_weight), given


def _outcome(run: Plan) -> Outcome:
    """Run; its checkpoint is removed."""
    with closing(run.trainer.stopper):
        outcome = run.trainer.run()
    run.trainer.discard_checkpoint()
    return outcome


def _decided(found: Frontier, outcome: Outcome) -> Frontier:
    """Models of which one is chosen, with the warnings of their run."""
    with suppress(DataError):  # choosing explains that no model has a loss
        found = found.decided()
    return replace(found, warnings=warn([*outcome.warnings, *found.warnings]))


def _train(plan: Plan, data: Data) -> Any:
    """What a plan trains, with its warnings and the figures on the hold-out."""
    ui = Ui() if plan.options["report_every"] is None else ProgressLines(print)
    try:
        plan.prepare(data, ui)
    except NothingNewError as nothing:
        return nothing.model
    outcome, model = _outcome(plan), plan.trainer.model
    model.warnings, model.holdout = warn(outcome.warnings), outcome.holdout
    if plan.will_name:
        keep_names(model, plan.source)
    return model
