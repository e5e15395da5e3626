"""The commands that repeat a run: from its options, and from what a model file records of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thresher.data.columns import SINGLE, in_print
from thresher.data.feature_specs import as_list
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.learning.files.model_file import needs_in
from thresher.learning.model.preprocessing import LISTED
from thresher.learning.model.recipe import Recipe, layout_of
from thresher.learning.training.passes import is_automatic
from thresher.options.boost import SolverOptions
from thresher.options.data import TableOptions
from thresher.options.model import RecipeOptions
from thresher.options.option import command, declared, words_of
from thresher.options.output import TrainCommand
from thresher.parts import SpecError, find
from thresher.plans.run_setup import OF_RULES

_DATA = ["DATA"]
_SOLVER = ("l1", "l2", "order", "tolerance", "seed")
_COLUMNS = ("numeric", "bins", "categorical", "text", "ignore")
SAID = (
    *("where", "init", "continue_from", "passes", "order", "holdout", "early_stop"),
    *("on_error", "names", "weights_only", "resume", "ensemble", "modules"),
)
"""Options of a run that a command repeats: those that the record of a model tells of"""
UNSAID = (
    *("model", "curve", "plot", "quiet", "strict", "json", "report_every"),
    *("checkpoint_every", "threads", "workers", "ray", "cache", "replay", "slices"),
    *("l1", "l2", "alpha", "eta0", "state"),
)
"""Options that do not change the model, whose value is another, or that are in the rule and rate"""


def train_command(data: Sequence[str], model: Path | None, options: Mapping[str, Any]) -> str:
    """``thresher train`` with the options that it has; those that are None were not given."""
    said = {name: value for name, value in options.items() if name not in UNSAID}
    own = [*data, "-m", "MODEL" if model is None else str(model)]
    rest = [name for name in said if name not in {*declared(RecipeOptions), *declared(TableOptions)}]
    words = [*words_of(RecipeOptions, said), *words_of(TableOptions, said)]
    return command("train", own, [*words, *words_of(TrainCommand, {name: said[name] for name in rest})])


def passes_said(passes: int, recipe: Recipe) -> int | None:
    """What `--passes` must say to make these passes; None if the command makes them unasked."""
    return passes if passes > 1 or is_automatic(recipe) else None


def remaking(path: Path, header: dict[str, Any], info: dict[str, Any]) -> str | None:
    """The command, with DATA and INIT in place of files; for a checkpoint, the command that resumes it.

    `info` is the description of the model by `describe`. None if the data came from memory, the
    rule is the user's own and not there, the file does not record how the model was trained, or
    its features were selected.
    """
    layout = layout_of(header["recipe"])
    if layout is None or not layout.format or header["recipe"].get("admit") == LISTED:
        return None
    if header["recipe"]["rule"] is None:
        return _boosted(header, layout)
    if not _is_known(header["recipe"]["rule"]):
        return None
    recipe, stopped, record = Recipe.from_dict(header["recipe"]), info.get("stopped"), info["record"]
    defining = {**_asked(recipe), **_table(layout), **_modules(header)}
    if stopped and "models" not in stopped:
        own = {**defining, "where": stopped["where"] or None, **_stopped(stopped)}
        return train_command(stopped["data"].split(", "), _started(path), own)
    patience = 0 if record is None else record["patience"]
    if stopped or record is None or (record["planned"] and not patience):
        return None
    more = {
        **defining,
        **({"continue_from": "OLD"} if record["continued"] else {}),
        "where": record["where"] or None,
        **({"init": "INIT"} if info["warm"] and not record["continued"] else {}),
        **({"passes": record["passes"]} if is_automatic(recipe) else {}),
        **_training(record),
        **({"passes": record["planned"], "early_stop": patience} if patience else {}),
        **({"holdout": record["holdout"] or "HOLDOUT"} if patience else {}),
        **({"on_error": "skip"} if record["skipped"] else {}),
        **({} if info["weights"]["named"] is None else {"names": True}),
        **({} if info["bytes"]["state"] else {"weights_only": True}),
    }
    return train_command(_DATA, None, more)


def _modules(header: dict[str, Any]) -> dict[str, Any]:
    """The files that define parts of the model."""
    files = [need.file for need in needs_in(header) if need.file]
    return {"modules": [*dict.fromkeys(files)]} if files else {}


def _is_known(rule: str) -> bool:
    try:
        return find("rule", rule.partition(":")[0]) is not None
    except SpecError:  # of a package that cannot be imported
        return False


def _started(path: Path) -> Path:
    """The model file that the checkpoint belongs to."""
    return path.with_suffix("") if path.suffix == ".checkpoint" else path


def _training(info: dict[str, Any]) -> dict[str, Any]:
    more: dict[str, Any] = {} if info["passes"] == 1 else {"passes": info["passes"]}
    more |= {} if info["order"] == "as-is" else {"order": info["order"]}
    return more | ({"holdout": info["holdout"]} if info["holdout"] else {})


def _stopped(info: dict[str, Any]) -> dict[str, Any]:
    more = _training({**info, "passes": 1} if info["replay"] else info)  # auto, as --resume knows
    more |= {"early_stop": info["patience"]} if info["patience"] else {}
    return more | {"resume": True}


def _boosted(header: dict[str, Any], layout: SettledLayout) -> str | None:
    solver, recipe = header.get("solver"), header["recipe"]
    if not isinstance(solver, dict) or not solver.keys() >= {*_SOLVER}:
        return None
    more = {name: solver[name] for name in _SOLVER}
    more |= {"loss": recipe["loss"], **({} if recipe["intercept"] else {"intercept": False})}
    words = [*words_of(TableOptions, _table(layout)), *words_of(SolverOptions, more)]
    return command("boost", [*_DATA, "-m", "MODEL"], words)


def _asked(recipe: Recipe) -> dict[str, Any]:
    """The rule, and the options that differ from their defaults."""
    plain = vars(type(recipe)()) | {"centre": recipe.centred_by_default}
    names = [name for name in declared(RecipeOptions) if name not in (*OF_RULES, "eta0")]
    changed = {name: getattr(recipe, name) for name in names if getattr(recipe, name) != plain[name]}
    return {"rule": recipe.rule, **changed}


def _table(layout: SettledLayout) -> dict[str, Any]:
    """How DATA are read, with every column listed."""
    plain = AnyLayout()
    names = ("header", "quoting", "quoted_newlines", "label_weights", "ngrams", "bits", "hash")
    given: dict[str, Any] = {
        name: getattr(layout, name) for name in names if getattr(layout, name) != getattr(plain, name)
    }
    lists = ("delimiter", "missing", "interact", "classes")
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
    """The columns of a kind: by name, or by number if they have no names."""
    numbers = [k for k, own in enumerate(layout.kinds, 1) if own == kind]
    if layout.header:
        return tuple(in_print([layout.columns[k - 1] for k in numbers], layout.columns))
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return tuple(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in spans)
