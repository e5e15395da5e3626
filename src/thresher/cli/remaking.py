"""Reconstruct from a model file the command that trained it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli.commandline import boost_command, train_command
from thresher.cli.model_flags import OF_RULES, ModelFlags
from thresher.cli.options import Table

if TYPE_CHECKING:
    from thresher.data.layout import SettledLayout

_DATA = ["DATA"]
_SOLVER = ("l1", "l2", "order", "tolerance", "seed")
_COLUMNS = ("numeric", "bins", "categorical", "text", "ignore")


def remaking(path: Path, header: dict[str, Any], info: dict[str, Any]) -> str | None:
    """The command, with DATA and INIT in place of files; for a checkpoint, the command that resumes it.

    `info` is the description of the model by `learning.anatomy`. None if the data came from memory, the
    rule is the user's own, which no command knows, the file does not record how the model was trained, or an
    earlier version chose the rows to hold out.
    """
    from thresher.learning.recipe import Recipe, layout_of
    from thresher.learning.repeating import is_automatic
    from thresher.learning.shares import NUMBERED
    from thresher.parts import REGISTRY

    layout = layout_of(header["recipe"])
    if layout is None or not layout.format:
        return None
    if header["recipe"]["rule"] is None:
        return _boosted(header, layout)
    if header["recipe"]["rule"].partition(":")[0] not in REGISTRY["rule"]:
        return None
    if (info.get("stopped") or info["record"] or {}).get("holdout", "").startswith(NUMBERED):
        return None
    recipe, stopped, record = Recipe.from_dict(header["recipe"]), info.get("stopped"), info["record"]
    if stopped and "models" not in stopped:
        given = _table(layout, stopped["where"])
        return train_command(
            stopped["data"].split(", "),
            _started(path),
            str(recipe.rule),
            _asked(recipe),
            given,
            **_stopped(stopped),
        )
    if stopped or record is None or record.get("planned"):
        return None
    more = {
        **({"init": "INIT"} if info["warm"] else {}),
        **({"passes": record["passes"]} if is_automatic(recipe) else {}),
        **_training(record),
        **({"on_error": "skip"} if record["skipped"] else {}),
        **({} if info["weights"]["named"] is None else {"names": True}),
        **({} if info["bytes"]["state"] else {"weights_only": True}),
    }
    return train_command(
        _DATA, None, str(recipe.rule), _asked(recipe), _table(layout, record["where"]), **more
    )


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
    return boost_command(_DATA, None, _table(layout, ""), **more)


def _asked(recipe: Any) -> ModelFlags:
    """The options that differ from their defaults."""
    plain = vars(type(recipe)()) | {"centre": recipe.centred_by_default}
    names = [field.name for field in fields(ModelFlags) if field.name not in OF_RULES]
    values = {name: getattr(recipe, name) for name in names}
    changed = {name: value for name, value in values.items() if value != plain[name]}
    return ModelFlags(**changed)


def _table(layout: SettledLayout, where: str) -> Table:
    """How DATA are read, with every column listed."""
    from thresher.data.layout import AnyLayout
    from thresher.data.listed import as_list

    plain, given = AnyLayout(), dict[str, Any]()
    for name in (
        "header",
        "quoting",
        "quoted_newlines",
        "label_weights",
        "ngrams",
        "bits",
        "hash",
        "interact",
    ):
        if getattr(layout, name) != getattr(plain, name):
            given[name] = getattr(layout, name)
    given |= {"delimiter": layout.delimiter.replace("\t", r"\t")} if layout.delimiter else {}
    given |= {"missing": as_list(layout.missing)} if layout.missing else {}
    given |= {"interact": [*layout.interact]} if layout.interact else {}
    given |= {"classes": as_list(layout.classes)} if layout.classes else {}
    for kind in _COLUMNS:
        if listed := _listed(layout, kind):
            given[kind] = listed
    label = as_list(layout.labels) or _listed(layout, "label")
    given |= {"label": label} if label not in ("", "label") else {}
    given |= {"weight": weight} if (weight := _listed(layout, "weight")) else {}
    given |= {"group": group} if (group := _listed(layout, "group") or layout.group) else {}
    return Table(form=layout.format, where=where, **given)


def _listed(layout: SettledLayout, kind: str) -> str:
    """The columns of a kind: by name, or by number if they have no names."""
    from thresher.data.listed import as_list

    numbers = [k for k, own in enumerate(layout.kinds, 1) if own == kind]
    if layout.header:
        return as_list(layout.columns[k - 1] for k in numbers)
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in spans)
