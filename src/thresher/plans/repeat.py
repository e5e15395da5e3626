"""The commands that repeat a run: from its options, and from what a model file records of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from thresher.data.columns import IGNORE, SINGLE, finder, in_print
from thresher.data.feature_specs import as_list
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.learning.files.choice import LOSS
from thresher.learning.files.model_file import header_of, needs_in
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe, layout_of
from thresher.learning.training.passes import AUTO
from thresher.learning.training.record import passes_made
from thresher.options.data import LayoutOptions, OnErrorOption, TableOptions
from thresher.options.lanes import PathCommand
from thresher.options.messages import as_shown, mention
from thresher.options.model import ModulesOption, RecipeOptions
from thresher.options.option import Options, command, given_options, options_of, words_of
from thresher.options.training import BoostCommand, TrainCommand
from thresher.parts import REGISTRY, SpecError, find
from thresher.plans.run_setup import OF_RULES

_RESUMED: dict[str, type] = {"train": TrainCommand, "ensemble": TrainCommand, "path": PathCommand}
"""The commands that resume a checkpoint of each plan, which knows all else"""


class Remaking(NamedTuple):
    """The command that makes a model again, or why there is none."""

    command: str | None
    why: str = ""

    def told(self) -> dict[str, str | None]:
        """As ``thresher info --json`` says it."""
        return {"command": self.command, **({"no_command": as_shown(self.why)} if self.why else {})}


def choosing_first(train: str, old: str, number: int) -> str:
    """The command of a model that goes on with one of a frontier, after the one that takes that out."""
    return f"{command('choose', [old, str(number), '-m', chosen_of(old, number)], [])} && {train}"


def chosen_of(old: str, number: int) -> str:
    """What `choosing_first` calls the file of one model of a frontier."""
    return f"{old}.{number}"


def train_command(
    data: Sequence[str], model: Path | None, options: Options, made: Model | None = None, **own: object
) -> str:
    """``thresher train`` with what `options` say of one model, but for its `own`; None: not given.

    What they leave unsaid of a run that was resumed is said as the model records it that was `made`.
    """
    kinds = RecipeOptions, TableOptions, OnErrorOption, ModulesOption
    said = dict[str, Any]() if made is None else _recorded(header_of(made))
    said |= {name: value for one in kinds for name, value in given_options(options, one).items()}
    order = options.given.get("order", said.get("order"))
    said |= {"order": order, **dict.fromkeys((*OF_RULES, "eta0")), **own}
    target = "MODEL" if model is None else str(model)
    return command("train", [*data, "-m", target], words_of(TrainCommand, said))


def passes_said(passes: int, recipe: Recipe, solved: object = None) -> int | None:
    """What `--passes` must say to make these passes; None if the command makes them, and solves, unasked."""
    return passes if not solved and (passes > 1 or recipe.rule_part.AUTOMATIC) else None


def remaking(
    path: Path, header: dict[str, Any], info: dict[str, Any], number: int | None = None, **own: object
) -> Remaking:
    """The command, with DATA and INIT in place of files; for a checkpoint, the command that resumes it.

    `info` is the description of the model by `describe`, `number` that of a model of a frontier; `own` are
    further options of the command.
    """
    layout, stopped, record = layout_of(header["recipe"]), info.get("stopped"), info["record"]
    if layout is None or not layout.format:
        return Remaking(None, "the examples came from memory")
    if stopped:
        plan, modules = header["training"]["plan"], _modules(header)
        if plan not in _RESUMED:
            return Remaking(None, f"give the one that was stopped again, with {mention(resume=True)}")
        held = stopped["holdout"] or ("none" if plan == "path" else None)
        said = {"holdout": held, "where": stopped["where"] or None, "resume": True, "modules": modules}
        started = path.with_suffix("") if path.suffix == ".checkpoint" else path
        name, files = "path" if plan == "path" else "train", stopped["data"].split(", ")
        return Remaking(command(name, [*files, "-m", str(started)], words_of(_RESUMED[plan], said)))
    if (rule := header["recipe"]["rule"]) is None:
        solver, recipe = header.get("solver", {}), header["recipe"]
        names = ("l1", "l2", "method", "tolerance")
        if not solver.keys() >= {*names}:
            return Remaking(None, "the file has no settings of the solver")
        said = {name: solver[name] for name in names} | {"loss": recipe["loss"]}
        said |= {} if recipe["outputs"] == "one" else {"outputs": recipe["outputs"]}
        said |= {} if recipe["intercept"] else {"intercept": False}
        words = words_of(BoostCommand, _table(layout) | said)
        return Remaking(command("boost", ["DATA", "-m", "MODEL"], words))
    try:
        known = find("rule", rule.partition(":")[0]) is not None
    except SpecError:  # of a package that cannot be imported
        known = False
    if not known:
        files = [one.file for one in needs_in(header) if one.file and one.name not in REGISTRY[one.kind]]
        return Remaking(None, f"its rule is unknown{f': use {mention(modules=files[0])}' if files else ''}")
    if record is None:
        return Remaking(None, "how it was trained is not recorded, as for one of several models")
    if record["planned"] and not record["patience"]:
        return Remaking(None, f"training was {passes_made(record)}")
    recipe = Recipe.from_dict(header["recipe"])
    said = {**_recorded(header | {"record": record}), "rule": recipe.rule}
    said["holdout"] = record["holdout"] or ("HOLDOUT" if record["patience"] else None)
    said["judge"] = None if record["judge"] == LOSS else record["judge"]
    said["early_stop"] = record["patience"] or None
    said["passes"] = record["planned"] or passes_said(record["passes"], recipe, record["solved"])
    said |= {"passes": AUTO} if record.get("varied") else {}
    old = "OLD" if number is None else chosen_of("OLD", number)
    said["continue_from"] = old if record["continued"] else None
    said["init"] = "INIT" if info["warm"] and not record["continued"] else None
    said["names"] = None if info["weights"]["named"] is None else True
    said["weights_only"] = None if info["bytes"]["state"] else True
    made = command("train", ["DATA", "-m", "MODEL"], words_of(TrainCommand, said | own))
    return Remaking(
        choosing_first(made, "OLD", number) if record["continued"] and number is not None else made
    )


def _recorded(header: dict[str, Any]) -> dict[str, Any]:
    """What a model records of the options that make it, which are not those of its rule or of one run."""
    recipe, record = Recipe.from_dict(header["recipe"]), header["record"]
    said = {name: value for name, value in recipe.chosen().items() if name in options_of(RecipeOptions)}
    said |= {"where": record["where"] or None, "modules": _modules(header)}
    said |= {} if recipe.layout is None else _table(recipe.layout)
    said["order"] = None if record["order"] == "as-is" else record["order"]
    said["on_error"] = "skip" if record["skipped"] else None
    if recipe.objective.outputs.most:
        said.pop("classes", None)  # the model has those met so far, and meets others
    return said


def _modules(header: dict[str, Any]) -> list[str] | None:
    """The files of the user's own parts."""
    return [*dict.fromkeys(need.file for need in needs_in(header) if need.file)] or None


def _table(layout: SettledLayout) -> dict[str, Any]:
    """How DATA are read, with every column listed."""
    plain = AnyLayout()
    of_all = {name: getattr(layout, name) for name in options_of(LayoutOptions) if hasattr(plain, name)}
    given = {name: value for name, value in of_all.items() if value != getattr(plain, name)}
    for kind in ("numeric", "bins", "categorical", "text", IGNORE):
        given |= {kind: listed} if (listed := _list_columns(layout, kind)) else {}
    for kind in SINGLE:
        given |= {kind: listed[0]} if (listed := _list_columns(layout, kind)) else {}
    label = as_list(in_print(layout.labels, layout.columns) or _list_columns(layout, "label"))
    return given | ({} if label in ("", "label") else {"label": label})


def _list_columns(layout: SettledLayout, kind: str) -> tuple[str, ...]:
    """The columns of a kind: by name, or by number if they have no names.

    Columns left out are listed as they were given, since the file holds that list, and then all others.
    """
    names, find = [name for name, own in layout.kind_of.items() if own == kind], finder(layout.columns)
    left_out = {name for one in layout.ignore for name in find(one)}
    if kind == IGNORE:
        names = [*layout.ignore, *(one for one in names if one not in left_out)]
    elif not layout.header and left_out.isdisjoint(names):  # among ranges, that of --ignore would win
        numbers = (k for k, own in enumerate(layout.kinds, 1) if own == kind)
        runs = ([k for _, k in run] for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0]))
        return tuple(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return tuple(in_print(names, layout.columns))
