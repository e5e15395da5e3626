"""The commands that repeat a run: from its options, and from what a model file records of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thresher.data.columns import SINGLE, in_print
from thresher.data.feature_specs import as_list
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.learning.files.choice import LOSS
from thresher.learning.files.model_file import needs_in
from thresher.learning.model.preprocessing import LISTED
from thresher.learning.model.recipe import Recipe, layout_of
from thresher.learning.training.passes import is_automatic
from thresher.options.data import TableOptions
from thresher.options.model import RecipeOptions
from thresher.options.option import command, declared, words_of
from thresher.options.training import SolverOptions, TrainCommand
from thresher.parts import SpecError, find
from thresher.plans.run_setup import OF_RULES

_DATA = ["DATA"]
_SOLVER = ("l1", "l2", "method", "tolerance")
_COLUMNS = ("numeric", "bins", "categorical", "text", "ignore")
SAID = (
    *("passes", "order", "holdout", "early_stop", "judge", "resume", "continue_from", "init"),
    *("on_error", "modules", "names", "weights_only", "ensemble", "by"),
)
"""Options of a run that a command repeats, in this order: those that the record of a model tells of"""
UNSAID = (
    *("model", "curve", "plot", "quiet", "strict", "json", "report_every"),
    *("checkpoint_every", "threads", "workers", "ray", "cache", "replay", "slices"),
    *("l1", "l2", "alpha", "eta0", "state"),
)
"""Options that do not change the model, whose value is another, or that are in the rule and rate"""


def train_command(data: Sequence[str], model: Path | None, options: Mapping[str, Any]) -> str:
    """``thresher train`` with the options that it has; those that are None were not given."""
    said = {name: value for name, value in options.items() if value is not None and name not in UNSAID}
    own, known = [*data, "-m", "MODEL" if model is None else str(model)], declared(TrainCommand)
    words = [*words_of(RecipeOptions, said), *words_of(TableOptions, said)]
    words += [word for name in SAID if name in said for word in known[name].words(said[name])]
    return command("train", own, words)


def passes_said(passes: int, recipe: Recipe, solved: Any = None) -> int | None:
    """What `--passes` must say to make these passes; None if the command makes them, and solves, unasked."""
    return passes if not solved and (passes > 1 or is_automatic(recipe)) else None


def remaking(path: Path, header: dict[str, Any], info: dict[str, Any]) -> str | None:
    """The command, with DATA and INIT in place of files; for a checkpoint, the command that resumes it.

    `info` is the description of the model by `describe`. None if the data came from memory, the
    rule is the user's own and not there, the file does not record how the model was trained, or
    its features were selected.
    """
    layout = layout_of(header["recipe"])
    if layout is None or not layout.format or header["recipe"].get("admit") == LISTED:
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
    stopped, record = info.get("stopped"), info["record"]
    told = stopped or record
    if not known or told is None or "models" in told:
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
    if stopped:
        plain = told["passes"] == 1 or told["replay"]  # auto, as --resume knows
        said |= {"passes": None if plain else told["passes"], "resume": True}
        started = path.with_suffix("") if path.suffix == ".checkpoint" else path
        return train_command(told["data"].split(", "), started, said)
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
    return train_command(_DATA, None, said)


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
