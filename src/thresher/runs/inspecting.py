"""The content of a model, and the differences between two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thresher.learning.files import model_file
from thresher.learning.inspection import plots
from thresher.learning.inspection.describe import anatomy
from thresher.learning.inspection.diff import compare
from thresher.learning.inspection.formatting import figure_lines, of_first_pass, table_of
from thresher.learning.model.calibration import in_words
from thresher.learning.model.ensemble import Ensemble, model_in
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import settings
from thresher.learning.training.record import passes_made
from thresher.options.messages import as_shown, flag_of, mention, mention_command, spelled
from thresher.options.option import UsageError
from thresher.plans.frontier import picture
from thresher.plans.models import Frontier, lane_lines
from thresher.plans.repeat import remaking
from thresher.plans.stability import Selection

_SHOWN = 50
"""maximum number of rows of a printed table"""
_UNREAD = ("ignore", "absent", "empty")
"""column kinds that are not read"""


class ModelInfo(dict[str, Any]):
    """The content of a model; printed, what ``thresher info`` prints."""

    def __repr__(self) -> str:
        """One line per figure, and tables."""
        told: dict[str, Any] = {
            "frontier": _told_frontier,
            "ensemble": _told_ensemble,
            "selection": figure_lines,
        }
        return as_shown("\n".join(told.get(self["kind"], _told_model)(self)))


class ModelDiff(dict[str, Any]):
    """What differs between two models; printed, what ``thresher diff`` prints."""

    def __repr__(self) -> str:
        """One line per figure, the options that differ and the weights that moved most."""
        shown = {name: value for name, value in self.items() if not isinstance(value, list | dict)}
        if len(self["intercept"][0]) == 1:
            (before,), (after,) = self["intercept"]
            shown |= {"intercept_A": before, "intercept_B": after}
        lines = figure_lines(shown)
        if self["options"]:
            rows = [[name.replace("_", " "), *pair] for name, pair in self["options"].items()]
            lines += ["", *table_of(["option", "A", "B"], rows)]
        if moved := self["moved"]:
            heads = [name for name in moved[0] if any(one[name] is not None for one in moved)]
            rows = [[one[name] if name != "feature" else str(one[name]) for name in heads] for one in moved]
            lines += ["", *table_of(heads, rows)]
        return "\n".join(lines)


def describe(path: Path) -> ModelInfo:
    """The content of ``thresher info --json``. Raises `ModelFileError`."""
    found = model_file.Contents.of(path)
    if model_file.SELECTION in found.run:
        return ModelInfo({"model": str(path), "kind": "selection", **Selection.read(found).figures()})
    if model_file.LANES not in found.run:
        if (table := found.frontier()) is not None:
            return ModelInfo({"model": str(path), "kind": "frontier", **table.as_dict()})
        if model_file.ENSEMBLE in found.run:
            return ModelInfo(_of_ensemble(path, found))
    header, tensors = found.model(found.there[0])
    with model_file.naming_file(path):
        shown = anatomy(path, header, tensors)
        return ModelInfo({**shown, "command": remaking(path, header, shown)})


def load(path: Path) -> Readout | Ensemble[Readout] | Frontier | Selection:
    """What a file holds, to predict with. `ModelFileError`."""
    found = model_file.Contents.of(path)
    if model_file.SELECTION in found.run:
        return Selection.read(found)
    if model_file.LANES in found.run or (table := found.frontier()) is None:
        return model_in(found)
    there = {k: model_file.readout_of(path, *found.model(k)) for k in found.there}
    models = [there.get(k) for k in range(len(found))]
    return Frontier(
        table.penalty, table.points, models, choice=table.choice, _learn=lambda found, penalties: None
    )


def draw(path: Path, plot: Path | None, table: Path | None) -> None:
    """Write the picture and the table of what path or select has found. `UsageError` for another file."""
    found = load(path)
    if isinstance(found, Frontier):
        chosen = found.number()
        plots.draw(plot, lambda: picture(found.points, chosen), table, found.table)
    elif isinstance(found, Selection):
        plots.draw(plot, found.picture, table, found.table)
    else:
        options = mention(*(name for name, one in (("plot", plot), ("table", table)) if one is not None))
        both = f"{mention_command('path')} and {mention_command('select')}"
        raise UsageError(f"{path}: {options} needs a file of {both}")


def difference(first: Path, second: Path, top: int) -> ModelDiff:
    """The content of ``thresher diff --json``. `ModelFileError`; `DataError` for models of other features."""
    (a, before), (b, after) = map(model_file.load_readout, (first, second))
    return ModelDiff(compare(a, b, (before, after), top))


def _of_ensemble(path: Path, found: model_file.Contents) -> dict[str, Any]:
    Ensemble.read(found, model_file.readout_of)  # which checks it
    headers = {k: found.header_of(k) for k in found.there}
    counts = ("examples", "progressive_loss", "features_seen")
    each = [
        {"model": k, **{name: one.get(name) for name in counts}, "nonzero": one["nonzero"]}
        for k, one in headers.items()
    ]
    recipe = {name: value for name, value in headers[0]["recipe"].items() if name != "layout"}
    own = {"kind": "ensemble", "models": len(headers), **found.run[model_file.ENSEMBLE]}
    return {"model": str(path), **own, **recipe, "each": each}


def _told_frontier(found: dict[str, Any]) -> list[str]:
    """The table of a frontier."""
    chosen = found["chosen"]
    shown = {"choice": found["choice"], "chosen": chosen, "rule": found["lanes"][chosen]["spec"]}
    return [*lane_lines(found["lanes"], found["penalty"], chosen), *figure_lines(shown)]


def _told_ensemble(found: dict[str, Any]) -> list[str]:
    """What the models of an ensemble share, and a row for each."""
    shown = {name: found[name] for name in ("kind", "models", "rows")} | settings(found)
    if found["record"]:
        shown |= {"passes": passes_made(found["record"])}
        shown |= {name: found["record"][name] for name in ("order", "examples")}
        shown |= _continued(found["record"])
    heads = [head.replace("_", " ") for head in found["each"][0]]
    return [*figure_lines(shown), "", *table_of(heads, [[*one.values()] for one in found["each"]])]


def _continued(record: dict[str, Any]) -> dict[str, str]:
    """How often training went on with other data, if it did."""
    often = record.get("continued", 0)
    return {"continued": f"{often:,} time{'s' * (often > 1)}"} if often else {}


def _told_model(found: dict[str, Any]) -> list[str]:
    """The figures of a model or a checkpoint; weights by column, by namespace or product, and by output."""
    groups = [{**one, "group": _called(one["group"])} for one in found["groups"]]
    lines = figure_lines(_figures(found))
    read = [one for one in found["columns"] if one["kind"] not in _UNREAD]
    for rows in (read, groups, found["by_output"]):
        heads = list(dict.fromkeys(head for one in rows for head in one))
        if found["outputs"] == "one" and "features" in heads:
            heads.remove("nonzero")  # the same as the number of features
        if rows:
            cells = [[one.get(head) for head in heads] for one in rows[:_SHOWN]]
            lines += ["", *table_of([head.replace("_", " ") for head in heads], cells)]
        if len(rows) > _SHOWN:
            every = spelled(f"{flag_of('json')} has all", "the dictionary has all")
            lines.append(f"... and {len(rows) - _SHOWN:,} more: {every}")
        if rows is read and len(read) < len(found["columns"]):
            lines.append(f"{len(found['columns']) - len(read):,} columns were not read")
    if found["nameable"] and found["weights"]["named"] is None:
        finder = spelled("thresher name MODEL DATA", "thresher.name_features(model, data)")
        lines += ["", f"the weights have no names: {finder} finds them and their columns"]
    return lines


def _told_needs(needs: list[dict[str, str]]) -> dict[str, str]:
    return {"needs": ", ".join(_told_need(**one) for one in needs)} if needs else {}


def _told_need(kind: str, name: str, package: str = "", version: str = "", file: str = "") -> str:
    """A part that is not built in, and where it comes from."""
    origin = f"{package} {version}".strip() or file
    return f"{kind} {name} ({origin})" if origin else f"{kind} {name}"


def _figures(facts: dict[str, Any]) -> dict[str, Any]:
    """The figures of a model, by the names under which they are printed."""
    weights, sizes, stopped = facts["weights"], facts["bytes"], facts.get("stopped")
    shown: dict[str, Any] = {"kind": facts["kind"], "made_by": f"thresher {facts['version']}"}
    shown |= settings(facts)
    shown |= {"probability": in_words(facts["calibration"])} if "calibration" in facts else {}
    shown |= _told_needs(facts.get("needs", []))
    shown |= {"warm_start": True} if facts["warm"] else {}
    shown |= {"solver_" + name: value for name, value in facts.get("solver", {}).items()}
    shown |= {
        f"stopped_{name}": value for name, value in (stopped or {}).items() if value not in (None, 0, "")
    }
    if facts["record"]:
        record = facts["record"]
        shown |= _continued(record)
        shown |= {"passes": passes_made(record), "order": record["order"]}
        shown |= {name: record[name] for name in ("holdout", "where") if record[name]}
    shown |= {"format": facts["layout"]["format"]} if facts["layout"].get("format") else {}
    if classes := facts["layout"].get("classes"):
        shown["classes"] = ", ".join(classes)
        shown |= {"positive_class": classes[1]} if facts["outputs"] == "one" else {}
    shown |= {f"{name}_of_data" if name == "examples" else name: n for name, n in facts["lines"].items()}
    shown |= {
        ("examples" if "left_out" in facts else "examples_learned"): facts["examples"],
        **({"left_out": facts["left_out"]} if "left_out" in facts else {}),
        **_losses(facts),
        "features_seen": facts["features_seen"],
        "features_live": facts["features_live"],
        "nonzero": facts["nonzero"],
        **{
            name: weights[name] for name in ("positive", "negative", "named", "l1_norm", "l2_norm", "largest")
        },
    }
    if len(weights["intercept"]) == 1:
        shown["intercept"] = weights["intercept"][0]
        shown |= {"weight_if_never_seen": weights["unmet"][0]} if "unmet" in weights else {}
    shown |= {f"bytes_{name}": size for name, size in sizes.items()}
    shown |= {"warning" if not k else f"warning_{k + 1}": one for k, one in enumerate(facts["warnings"])}
    return shown if facts["command"] is None else {**shown, "command": facts["command"]}


def _losses(facts: dict[str, Any]) -> dict[str, Any]:
    """The losses in training: after several passes, those of the later ones apart."""
    later = {name: facts[name] for name in ("loss_of_later_passes",) if name in facts}
    return {"progressive_loss": of_first_pass(facts["progressive_loss"], bool(later)), **later}


def _called(group: str | None) -> str:
    return "(without a name)" if group is None else group or "(no namespace)"
