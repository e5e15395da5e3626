"""The first steps of every run that learns: the plan, the layout, the recipe, the data and the hold-out.

Classes are given by the user, or found by a first look at the data.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

from thresher import parts
from thresher.data.errors import DataError, NothingNewError, OneLineError
from thresher.data.files.paths import expand, is_log, is_stream
from thresher.data.files.streams import Previews
from thresher.data.files.topics import Extent, TopicName, is_topic, settle_topic, url_of
from thresher.data.inputs.any_data import Data as Data
from thresher.data.inputs.any_data import (
    as_source,
    is_beside,
    is_matrix,
    is_table,
    labels_beside,
)
from thresher.data.inputs.any_data import open_data as open_data
from thresher.data.inputs.arrays import label_texts
from thresher.data.labels import DOMAINS, MOST_CLASSES, list_words
from thresher.data.layout import AnyLayout, Layout, SettledLayout, grouped_by
from thresher.data.log.source import LogSource
from thresher.data.opening import classes_among, with_words
from thresher.data.source import Source
from thresher.data.sources.parsed import OnError
from thresher.engine.atomic import check_writable
from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.choice import LOSS
from thresher.learning.model.agreement import check_holdout
from thresher.learning.model.objective import classes_of, default_outputs
from thresher.learning.model.prediction import LinearPredictor
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.passes import AUTO, REPLAY, settle_passes
from thresher.learning.training.progress import Ui
from thresher.learning.training.record import Record
from thresher.learning.training.shares import HeldOutPart, MatchingRows, check_ungrouped, part_of
from thresher.learning.training.trainer import TrainingPlan
from thresher.options.data import LayoutOptions
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import mention
from thresher.options.model import RecipeOptions
from thresher.options.option import Options, UsageError, given_options, options_of

_LOOKED_AT = 1 << 12
"""Bytes of a hold-out that are parsed before training"""


def _may_have_classes(loss: object, outputs: str | None) -> bool:
    """Whether a label may be one of several classes, or of two."""
    part = parts.make("loss", "logistic" if loss is None else loss)
    one = outputs is None or outputs == "one" or outputs.startswith("classes")
    return one and (hasattr(part, "values_slopes") or part.DOMAIN == "binary")


def _of_words(words: tuple[str, ...], loss: object, outputs: str | None) -> tuple[object, str]:
    """Loss and outputs for labels that are words; ValueError if the given ones do not fit them."""
    if (count := len(words)) == 1 and ":max" not in str(outputs):
        raise ValueError(f"expected 2 to {MOST_CLASSES:,} classes, found 1")
    if not _may_have_classes(loss, outputs):
        raise ValueError(f"labels are words ({list_words(words)}), not numbers: leave loss and outputs out")
    several = f"classes:1-{count}"
    if default_outputs(loss, outputs) == "classes":
        return loss or "logistic", several
    if outputs is None and loss is None and count > 2:
        return "softmax", several
    if outputs in (None, "one") and count > 2:
        named = f"labels are {count:,} words ({list_words(words)})"
        raise ValueError(f"{named}, not two: leave loss and outputs out, or use outputs classes")
    return loss or "logistic", outputs or "one"


OF_RULES = ("rule", "l1", "alpha", "l2")
"""Options that together define the rule"""


def plan_of(
    options: Options,
    ui: Ui,
    name: str = "train",
    checkpoint_path: Path | None = None,
    default: HeldOutPart = 0,
) -> tuple[TrainingPlan, Data | None]:
    """The plan, and separate data to judge by, or None. `UsageError`.

    What of the stream is held out (0: nothing) is the `default` unless options say otherwise.
    """
    holdout, passes, replay = (options.get(name) for name in ("holdout", "passes", "replay"))
    with of_options():
        part = default if holdout is None else part_of(holdout)
        made, kept = settle_passes(AUTO if passes is None else passes, REPLAY if replay is None else replay)
    held = holdout if part is None else None
    every, patience = options.get("report_every"), options.get("early_stop") or 0
    if every is None and "report_every" in options:
        every = ui.report_every
    plan = TrainingPlan(
        made,
        every,
        part or 0,
        patience,
        checkpoint_path,
        options.get("checkpoint_every") or 0,
        kept,
        judge=options.get("judge") or LOSS,
        name=name,
    )
    if patience and held is None and not plan.holdout_every:
        raise UsageError(f"{mention('early_stop')} needs {mention('holdout')}")
    for name in ("checkpoint_every", "resume"):
        if options.get(name) and checkpoint_path is None:
            raise UsageError(f"{mention(name)} needs the path of the checkpoint")
    return plan, held


def agree(plan: TrainingPlan, options: Options, before: TrainingState | None, once: bool) -> TrainingPlan:
    """The plan, with options not given taken from the checkpoint; passes ``auto`` are those of it.

    Without a checkpoint: one pass, if data are passed over `once` unless the user says otherwise.
    """
    passes = options["passes"]
    if before is None:
        unsaid = once and passes is None and options["replay"] is None
        return replace(plan, passes=1, replay=0) if unsaid else plan
    under_way = before.position.number
    number = None if passes in (None, AUTO) else passes
    if number is not None and number < under_way:
        raise UsageError(f"the checkpoint is in pass {under_way}: {mention('passes')} must be at least that")
    kept = before.replay if number is None or under_way > 1 else 0  # places in a replay are those of its rows
    made = number or (1 if kept else before.passes)
    patience, judge = plan.patience or before.patience, options.get("judge") or before.judge
    return replace(plan, passes=made, replay=kept, patience=patience, judge=judge)


# How data are read


def layout_of_checkpoint(options: Options, before: SettledLayout | None) -> AnyLayout | None:
    """How data are read again after a stop."""
    if before is None:
        return layout_asked(options)
    form = given_options(options, LayoutOptions).get("format")
    return before if form is None else before.in_format(form)


def lenient(on_error: str) -> str:
    """What to do about bad lines in readings other than training: never quarantine a line twice."""
    return "fail" if on_error == "fail" else "skip"


def reading_of(options: Options, layout: AnyLayout | None, part: HeldOutPart = 0) -> dict[str, Any]:
    """How data are opened."""
    return {
        **{name: options.get(name) for name in ("on_error", "threads", "groups", "offsets")},
        "layout": layout,
        "where": options.get("where", ""),
        "marked": part.condition if isinstance(part, MatchingRows) else "",
        "previews": Previews(),
    }


def recipe_of(options: Options, started: LinearPredictor | None, **settings: object) -> Recipe:
    """The recipe that the options define. `UsageError`, also for a parameter with two values."""
    names = [*options_of(RecipeOptions)]
    uncentred = started is not None and started.means is None
    wanted: dict[str, Any] = {"centre": False} if uncentred else {}
    wanted |= {name: options[name] for name in names if options.get(name) is not None} | settings
    try:
        found = Recipe(**wanted)
    except parts.SpecError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error
    for kind, fields in (("rule", ("l1", "alpha", "l2")), ("rate", ("eta0",))):
        said = parts.fields_said(kind, wanted[kind]) if isinstance(wanted.get(kind), str) else {}
        for name in fields:
            value = wanted.get(name)
            if value is not None and said.get(name, value) != value:
                whole = int(value) if float(value).is_integer() else value  # 2, not 2.0
                there, here = mention(**{kind: wanted[kind]}), mention(**{name: whole})
                raise UsageError(f"{name} is {said[name]:g} in {there} and {value:g} in {here}: give it once")
    return found


def recipe_for(
    data: Data,
    options: Options,
    layout: AnyLayout | None,
    part: HeldOutPart,
    ui: Ui,
    started: LinearPredictor | None = None,
) -> tuple[Recipe, dict[str, Any]]:
    """The recipe, with classes that the options leave open found in the data; how these are opened.

    `UsageError`, `DataError`.
    """
    if layout is None and is_logged(data):
        layout = as_source(data, DOMAINS["real"]).layout
    check_ungrouped(part, groups_of(layout, options))
    read = reading_of(options, layout, part)
    rule, loss, asked, offset = (
        options["rule"],
        options["loss"],
        options["outputs"],
        has_offsets(layout, options),
    )
    if isinstance(rule, Recipe):
        if loss is not None or asked is not None:
            raise UsageError("a recipe contains its loss and outputs: change them with dataclasses.replace")
        _, _, read, _ = classes_in(data, rule.loss, rule.outputs, read)
        more = given_options(options, RecipeOptions) | {"offset": rule.offset or offset}
        with of_options():
            recipe = replace(rule, layout=None, **{name: one for name, one in more.items() if name != "rule"})
    else:
        if started is not None and started.head.outputs.most and asked in (None, "classes"):
            asked = started.head.outputs.spec
        loss, outputs, read, note = classes_in(data, loss, asked, read)
        if note:
            ui.say(note)
        recipe = recipe_of(options, started, loss=loss, outputs=outputs, offset=offset)
    given: Any = data
    if is_beside(given) and is_matrix(given):
        recipe.signs().check_matrix(given[0].shape[1])
    # a missing number is told from 0 if columns are centred
    return recipe, read | {"layout": replace(read["layout"] or Layout(), gaps=bool(recipe.centre))}


def has_offsets(layout: AnyLayout | None, options: Options) -> bool:
    """Whether rows have offsets, beside them or as the layout says."""
    settled = layout.has_offsets if isinstance(layout, SettledLayout) else bool(layout and layout.offset)
    return options.get("offsets") is not None or settled


def groups_of(layout: AnyLayout | None, options: Options) -> Any:
    """What rows are grouped by: an array, or a name in layout or options; None or empty if nothing."""
    beside = options.get("groups")
    return grouped_by(layout) or options.get("group") if beside is None else beside


def again_of(data: Data, source: Source, domain: Any, read: Mapping[str, Any]) -> Source:
    """The data of a source to read before or after training: a line is never quarantined twice."""
    if lenient(read["on_error"]) == read["on_error"]:
        return source
    options = {**read, "on_error": lenient(read["on_error"])}
    return open_data(data, domain.sharing(source.words), **options)


def holdout_of(
    held: Data | None, domain: Any, source: Source, read: Mapping[str, Any], once: bool
) -> Source | None:
    """The source of separate data to judge by, None if there are none. `UsageError`, `DataError`.

    Its bad lines are skipped, and not collected, unless bad lines of the data are errors. It may be read only
    `once` if that is enough. What is empty, or binary, is refused before anything is learned.
    """
    if held is None:
        return None
    layout = (source.layout or SettledLayout()).without_groups()
    options = {"threads": read["threads"], "on_error": lenient(read["on_error"]), "layout": layout}
    found = as_source(held, domain.sharing(source.words), **options)
    if not once and not found.rereadable:
        raise UsageError("the hold-out can be read only once, and is evaluated after every pass: give a file")
    if [*source.names, *found.names].count("-") > 1:
        raise UsageError("standard input cannot be both the data and the hold-out")
    OnError(read["on_error"], found.names)
    checked = check_holdout(source, found)
    if found.rereadable:  # with a domain of its own, since classes are met in the order of the data
        first = as_source(held, domain, **options | {"block_bytes": _LOOKED_AT, "threads": 1})
        with closing(first.chunks()) as chunks:
            next(chunks, None)
    return checked


def classes_in(
    data: Any, loss: Any, outputs: str | None, read: Mapping[str, Any], beforehand: bool = False
) -> tuple[Any, str, dict[str, Any], str]:
    """Loss, outputs and reading options, with the words that the options leave open found in `data`; a note.

    Classes are met on the way, unless they must be known `beforehand`; then labels are read first.
    `UsageError` if the classes do not fit the options; `DataError`.
    """
    layout, files = read["layout"], are_files(data)
    worded = files or is_table(data, layout)

    def opener(layout: Any, domain: Any) -> Source:
        options = {**read, "layout": layout} | ({"on_error": lenient(read["on_error"])} if worded else {})
        return as_source(data, domain, **options)

    once = isinstance(data, Iterator) or (files and any(map(is_stream, expand(data))))
    texts = None if (extras := labels_beside(data)) is None else label_texts(extras)
    comes = not beforehand and str(default_outputs(loss, outputs)).partition(":max")[0] == "classes"
    if texts and not comes and not (layout and layout.classes):
        classes = classes_among(Counter(texts), "memory")
        layout = replace(layout or Layout(), classes=classes) if classes else layout
    given = layout.classes if layout is not None else ()
    with of_options():
        if worded and not given and not once and not comes and _may_have_classes(loss, outputs):
            layout = with_words(opener, layout)
        if layout is not None and (words := layout.classes):
            if type(layout) is Layout and comes:
                outputs = "classes"  # these and no others, whatever the limit
            loss, outputs = _of_words(words, loss, outputs)
            note = f"labels are words: '{words[1]}' is the positive class, '{words[0]}' the negative one"
            if outputs != "one":
                chosen = mention(outputs=outputs, loss=loss)
                note = f"labels are {len(words):,} words ({list_words(words)}): {chosen}"
            return loss, outputs, {**read, "layout": layout}, "" if given else note
        loss = "logistic" if loss is None else loss
        outputs = default_outputs(loss, outputs)
        if beforehand and outputs == "classes":
            if once:
                raise OneLineError(
                    "the data can be read only once: give the classes,"
                    f" {mention(outputs='classes:LO-HI')} or {mention(classes='A,B,...')}"
                )
            outputs = classes_of(opener(layout, DOMAINS["whole"]))
    return loss, outputs, {**read, "layout": layout}, ""


def labels_or_part(data: object, y: Any, kind: str, given: object) -> tuple[Any, Any]:
    """Split `y` into labels and a part of this kind, which may be given in place of labels.

    TypeError for two parts, and for the name of a column of a table.
    """
    if not isinstance(y, str | Recipe) and type(y) not in parts.REGISTRY[kind].values():
        return y, given
    columns = getattr(data, "column_names", getattr(data, "columns", ()))
    named = isinstance(columns, Iterable) and y in [one for one in columns if isinstance(one, str)]
    if named and parts.find(kind, y.partition(":")[0]) is None:
        raise TypeError(f"{y!r} is a column of the data: did you mean label={y!r}?")
    if given is not None:
        raise TypeError(f"two {'losses' if kind == 'loss' else 'rules'} are given, {y!r} and {given!r}")
    return None, y


def is_logged(data: Any) -> bool:
    """Whether `data` are the log of a server, or the path of one."""
    if are_files(data):
        paths = [data] if isinstance(data, str | os.PathLike) else data
        return len(paths) == 1 and is_log(paths[0])
    return isinstance(data, LogSource)


def nothing_new(model: Any, before: Record, topics: Sequence[Extent]) -> NothingNewError:
    """The error for topics in which nothing has come since a model learned from them.

    The record of the model then has the places in topics that are new to it.
    """
    known = [one._replace(begin={}) for one in before.topics]
    moved = tuple(one for one in topics if one._replace(begin={}) not in known)
    model.record = replace(before, topics=moved).with_topics_of(before)
    names = ", ".join(one.name for one in topics)
    stays = "the model only notes where it goes on" if moved else "the model stays as it is"
    return NothingNewError(f"nothing new in {names}; {stays}", model, bool(moved))


def with_extents(
    data: Data, earlier: Sequence[Extent], ui: Ui, resumes: bool = False
) -> tuple[Any, tuple[Extent, ...]]:
    """The data, with what this run reads of topics after `earlier` runs, or again if it `resumes`.

    Topics with nothing new are left out of the data, but not of the extents. `DataError`.
    """
    paths: Any = data if are_files(data) else ()
    names = [paths] if isinstance(paths, str | os.PathLike) else [*paths]
    topics, kept = dict[str, TopicName](), list[Any]()
    for given in names:
        name = os.fspath(given)
        if not is_topic(name):
            kept.append(given)
            continue
        from thresher.data.files.topic_lines import TopicFile

        url = url_of(name)
        before = next((one for one in earlier if resumes and one.name == url.name), None)
        if url.name in topics:
            raise DataError(f"{url.name}: named twice")
        asking = Timer(1.0, ui.say, [f"asking what is new in {url.name}"])
        asking.start()
        try:
            topics[url.name] = found = TopicName.of(url, before) if before else settle_topic(name, earlier)
            if found.extent.begin != found.extent.end:
                with TopicFile(found) as file:  # all may be marks, or messages that were aborted
                    kept += [found] if file.read(1) else []
        finally:
            asking.cancel()
    return (kept if topics else data), tuple(one.extent for one in topics.values())


def are_files(data: object) -> bool:
    """Whether `data` consist of paths."""
    if isinstance(data, list | tuple):
        return all(isinstance(one, str | os.PathLike) for one in data)
    return isinstance(data, str | os.PathLike)


# What is written


def check_written(
    outputs: Iterable[Path | None],
    options: Options,
    inputs: Iterable[Path | str],
    data: object = None,
    *sources: Any,
) -> None:
    """Check that `outputs` of a run, and those in its options, can be written, and differ from what it reads.

    It reads `inputs`, and `data` with `sources`, of which some may be None. OSError, `UsageError`.
    """
    kind, _, rejected = options.get("on_error", "").partition("=")
    beside = [options.get(name) for name in ("curve", "plot", "table", "checkpoint")]
    beside.append(rejected if kind == "quarantine" else None)
    read = [name for one in sources if one is not None for name in one.names] if are_files(data) else []
    taken = {_identity(Path(name)) for name in [*inputs, *read] if name != "-"}
    for path in [Path(one) for one in [*outputs, *beside] if one is not None]:
        check_writable(path)
        place = _identity(path)
        if place in taken and (path.is_file() or not path.exists()):
            raise UsageError(f"{path}: named twice; it would be overwritten")
        taken.add(place)


def _identity(path: Path) -> object:
    """What two hard links to one file have in common; the path if the file does not exist yet."""
    place = Path(os.path.realpath(path))
    try:
        status = place.stat()
    except OSError:
        return place
    return status.st_dev, status.st_ino
