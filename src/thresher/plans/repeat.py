"""The commands that repeat a run: from its options, and from what a model file records of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from thresher.data.columns import IGNORE, SINGLE, finder, in_print
from thresher.data.feature_specs import as_list
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.learning.files.choice import LOSS, FrontierTable, column_of
from thresher.learning.files.model_file import ENSEMBLE, Contents, needs_in
from thresher.learning.model.bags import spec_of
from thresher.learning.model.recipe import Recipe, layout_of
from thresher.learning.training.passes import is_automatic
from thresher.options.data import TableOptions
from thresher.options.lanes import PathCommand
from thresher.options.model import RecipeOptions
from thresher.options.option import command, declared, words_of
from thresher.options.training import BEST, SolverOptions, TrainCommand
from thresher.parts import SpecError, find
from thresher.parts import spec_of as part_spec
from thresher.plans.penalties import PenaltyRange, penalty_name
from thresher.plans.run_setup import OF_RULES

_DATA = ["DATA"]
_SOLVER = ("l1", "l2", "method", "tolerance")
_COLUMNS = ("numeric", "bins", "categorical", "text", IGNORE)
SAID = (
    *("passes", "order", "holdout", "early_stop", "judge", "resume", "continue_from", "init"),
    *("on_error", "modules", "names", "weights_only", "ensemble", "by"),
)
"""Options of a run that a command repeats, in this order: those that the record of a model tells of"""
_OF_LANES = ("l1", "choose", "state")
"""and those of the models of a path"""
UNSAID = (
    *("model", "curve", "plot", "quiet", "strict", "json", "report_every"),
    *("checkpoint_every", "threads", "workers", "ray", "cache", "replay"),
    *("l1", "l2", "alpha", "eta0", "state"),
)
"""Options that do not change the model, whose value is another, or that are in the rule and rate"""


def train_command(data: Sequence[str], model: Path | None, options: Mapping[str, object]) -> str:
    """``thresher train`` with the options that it has; those that are None were not given."""
    said = {name: value for name, value in options.items() if value is not None and name not in UNSAID}
    return _command(TrainCommand, [*data, "-m", "MODEL" if model is None else str(model)], said)


def _command(options: type, own: Sequence[str], said: Mapping[str, object]) -> str:
    """A command that learns, with these options, which it has."""
    known, names = declared(options), SAID if options is TrainCommand else (*SAID, *_OF_LANES)
    words = words_of(RecipeOptions, {name: one for name, one in said.items() if name not in _OF_LANES})
    words += words_of(TableOptions, said)
    words += [word for one in names if said.get(one) is not None for word in known[one].words(said[one])]
    return command(options.__name__.removesuffix("Command").lower(), own, words)


def passes_said(passes: int, recipe: Recipe, solved: object = None) -> int | None:
    """What `--passes` must say to make these passes; None if the command makes them, and solves, unasked."""
    return passes if not solved and (passes > 1 or is_automatic(recipe)) else None


def remaking_all(path: Path, found: Contents) -> str | None:
    """The command that makes the models of a frontier or of an ensemble, as `remaking`.

    None also for penalties that are no range, and for models of a batch solver.
    """
    table, ensemble = found.frontier(), found.run.get(ENSEMBLE)
    header, tensors = found.model(found.there[0] if table is None else table.chosen)
    record, recipe = header.get("record"), header["recipe"]
    learns = any(name.startswith("state.") for name in tensors)
    if ensemble is not None:
        record, rows = ensemble["record"], spec_of(ensemble["rows"], len(found))
        own = {"weights_only": None if learns else True, "by": column_of(rows)}
        own |= {} if own["by"] else {"ensemble": rows.removeprefix("poisson:")}
    elif table is None or recipe["rule"] is None or (l1 := _range_of(table)) is None:
        return None
    else:
        others = (one["record"] for one in map(found.header_of, found.there) if "record" in one)
        record = next((one for one in others if one["patience"]), record)
        judged = any(point.holdout for point in table.points)
        holdout = record and (record["holdout"] or ("HOLDOUT" if judged else "none"))
        own = {"l1": l1, "choose": None if table.choice == BEST else table.choice, "state": learns or None}
        own |= {"holdout": None if holdout == "every-10th" else holdout, "weights_only": None}
        own["judge"] = None if (judge := table.points[table.chosen].judge) == LOSS else judge
        header["recipe"] = _without_penalty(recipe)
    info = {"record": record, "warm": header.get("warm", False)}
    info |= {"weights": {"named": None}, "bytes": {"state": learns}}
    return remaking(path, header, info, own, TrainCommand if table is None else PathCommand)


def _without_penalty(recipe: dict[str, Any]) -> dict[str, Any]:
    """The recipe of one of the models of a path, which differ in the penalty alone."""
    rule = Recipe.from_dict(recipe).rule_part
    name = penalty_name(rule)
    return recipe | {"rule": part_spec(rule._replace(**{name: type(rule)._field_defaults[name]}))}


def _range_of(table: FrontierTable) -> str | None:
    """The range of penalties that was given; None if it was a list."""
    penalties = [point.penalty for point in table.points]
    wanted = f"{penalties[0]!r}:{penalties[-1]!r}:{len(penalties)}"
    return wanted if len(penalties) > 1 and PenaltyRange(wanted).values == penalties else None


def remaking(
    path: Path,
    header: dict[str, Any],
    info: dict[str, Any],
    own: Mapping[str, object] | None = None,
    options: type = TrainCommand,
) -> str | None:
    """The command, with DATA and INIT in place of files; for a checkpoint, the command that resumes it.

    `own` are further `options` of the command, which take the place of those that the record tells of.

    `info` is the description of the model by `describe`. None if the data came from memory, the
    rule is the user's own and not there, the file does not record how the model was trained,
    its features were selected, or it is a checkpoint of many models, but for those of a path.
    """
    stopped, record = info.get("stopped"), info["record"]
    of_path = bool(stopped and "models" in stopped and header["training"]["plan"] == "path")
    if of_path:
        header, options = header | {"recipe": _without_penalty(header["recipe"])}, PathCommand
    layout = layout_of(header["recipe"])
    if layout is None or not layout.format:
        return None
    rule = header["recipe"]["rule"]
    if rule is None:
        solver, boosted = header.get("solver"), header["recipe"]
        if not isinstance(solver, dict) or not solver.keys() >= {*_SOLVER}:
            return None
        more = {name: solver[name] for name in _SOLVER} | {"loss": boosted["loss"]}
        more |= {} if boosted["outputs"] == "one" else {"outputs": boosted["outputs"]}
        more |= {} if boosted["intercept"] else {"intercept": False}
        words = [*words_of(TableOptions, _table(layout)), *words_of(SolverOptions, more)]
        return command("boost", [*_DATA, "-m", "MODEL"], words)
    try:
        known = find("rule", rule.partition(":")[0]) is not None
    except SpecError:  # of a package that cannot be imported
        known = False
    told = stopped or record
    if not known or told is None or ("models" in told and not of_path):
        return None
    recipe = Recipe.from_dict(header["recipe"])
    files = [need.file for need in needs_in(header) if need.file]
    patience = told["patience"]
    plain = vars(Recipe()) | {"centre": recipe.centred_by_default}
    names = [name for name in declared(RecipeOptions) if name not in (*OF_RULES, "eta0")]
    said = {name: getattr(recipe, name) for name in names if getattr(recipe, name) != plain[name]}
    said |= {"rule": recipe.rule, **_table(layout), "where": told["where"] or None}
    said["modules"] = [*dict.fromkeys(files)] or None
    said["order"] = None if told["order"] == "as-is" else told["order"]
    said |= {"early_stop": patience or None, "judge": None if told["judge"] == LOSS else told["judge"]}
    said["holdout"] = told["holdout"] or None
    if recipe.objective.outputs.most:
        said.pop("classes", None)  # the model has those met so far, and meets others
    if stopped:
        plain = told["passes"] == 1 or told["replay"]  # auto, as --resume knows
        said |= {"passes": None if plain else told["passes"], "resume": True}
        if of_path:
            said["holdout"] = None if told["holdout"] == "every-10th" else told["holdout"] or "none"
        started = path.with_suffix("") if path.suffix == ".checkpoint" else path
        return _command(options, [*told["data"].split(", "), "-m", str(started)], said)
    if record["planned"] and not patience:
        return None
    said["passes"] = (
        record["planned"] if patience else passes_said(record["passes"], recipe, record["solved"])
    )
    said["holdout"] = said["holdout"] or ("HOLDOUT" if patience else None)
    said["continue_from"] = "OLD" if record["continued"] else None
    said["init"] = "INIT" if info["warm"] and not record["continued"] else None
    said["on_error"] = "skip" if record["skipped"] else None
    said["names"] = None if info["weights"]["named"] is None else True
    said["weights_only"] = None if info["bytes"]["state"] else True
    return _command(options, [*_DATA, "-m", "MODEL"], said | dict(own or {}))


def _table(layout: SettledLayout) -> dict[str, Any]:
    """How DATA are read, with every column listed."""
    plain = AnyLayout()
    names = ("header", "quoting", "label_weights", "ngrams", "bits", "hash")
    given: dict[str, Any] = {
        name: getattr(layout, name) for name in names if getattr(layout, name) != getattr(plain, name)
    }
    lists = ("delimiter", "missing", "interact", "classes", "text")
    given |= {name: getattr(layout, name) for name in lists if getattr(layout, name)}
    given |= {kind: listed for kind in _COLUMNS if (listed := _listed(layout, kind))}
    label = as_list(in_print(layout.labels, layout.columns) or _listed(layout, "label"))
    given |= {"label": label} if label not in ("", "label") else {}
    for kind in SINGLE:
        if listed := _listed(layout, kind):
            given[kind] = listed[0]
        elif hasattr(layout, kind) and getattr(layout, kind):
            given[kind] = getattr(layout, kind)
    return {"format": layout.format, **given}


def _listed(layout: SettledLayout, kind: str) -> tuple[str, ...]:
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
