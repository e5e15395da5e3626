"""What is in a file or a log; one of many taken out; names found for weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.errors import DataError, printable
from thresher.data.features.names import Names
from thresher.engine.atomic import stamp
from thresher.learning.files import choice, model_file
from thresher.learning.inspection import describe as describing
from thresher.learning.inspection import feature_names, formatting, plots
from thresher.learning.inspection.formatting import figure_lines
from thresher.learning.model.bags import spec_of
from thresher.learning.model.ensemble import Ensemble, model_in
from thresher.learning.model.objective import in_words
from thresher.learning.model.prediction import LinearPredictor
from thresher.learning.model.recipe import settings
from thresher.learning.training.record import passes_made
from thresher.options.data import ReadOptions
from thresher.options.messages import as_shown, flag_of, mention, mention_command, shell_or_python
from thresher.options.option import Options, UsageError, command, given_options
from thresher.plans.budget import use_of
from thresher.plans.frontier import picture
from thresher.plans.models import Frontier, lane_lines
from thresher.plans.repeat import Remaking, remaking
from thresher.plans.stability import NO_NAMES, Selection

_SHOWN = 50
"""maximum number of rows of a printed table"""
_ROWS_SHOWN, _FEATURES_SHOWN = 10, 20
"""maximum number of rows of a record of a log, and of features of a row or of a selection, as text"""
_UNREAD = ("ignore", "absent", "empty")
"""column kinds that are not read"""
_NAMED = {"bins": "bins", "categorical": "categories", "list": "items of lists", "text": "words"}
"""column kinds whose features are told by their names, and what these are"""
_WEIGHTS = ("positive", "negative", "named", "l1_norm", "l2_norm", "largest")


class ModelInfo(dict[str, Any]):
    """The content of a model; printed, what ``thresher info`` prints."""

    def __repr__(self) -> str:
        """One line per figure, and tables."""
        if self["kind"] == "frontier":
            lanes, chosen = self["lanes"], self["chosen"]
            shown = {"choice": self["choice"], "judge": self["judge"], "chosen": chosen}
            shown["rule"] = lanes[chosen]["spec"]
            shown |= {"loss": self["loss"]} | _solver(self) | _describe_command(self)
            lines = [*lane_lines(lanes, self["penalty"], chosen), *figure_lines(shown)]
        else:
            told: dict[str, Any] = {"ensemble": _describe_ensemble, "selection": _describe_selection}
            lines = told.get(self["kind"], _describe_model)(self)
        return as_shown("\n".join(lines))


class LogInfo(dict[str, Any]):
    """The content of a log; printed, what ``thresher log`` prints."""

    def __repr__(self) -> str:
        """One line per figure, then the last records."""
        figures = {name: value for name, value in self.items() if name != "last" and value is not None}
        columns = figures.pop("columns", [])
        figures |= {"columns": ", ".join(columns)} if columns else {}
        lines = figure_lines(figures)
        for one in self["last"]:
            lines += ["", *_describe_record(one)]
        return as_shown("\n".join(lines))


def describe(path: Path) -> ModelInfo:
    """The content of ``thresher info --json``. Raises `ModelFileError`."""
    found = model_file.Contents.of(path)
    with model_file.naming_file(path, found.header):
        if model_file.SELECTION in found.run:
            selected = Selection.load(found)
            remade = Remaking(None, "a selection does not record its options")
            told = {
                "model": found.name,
                "kind": "selection",
                **selected.figures(),
                "kept_features": selected.kept_rows(),
            }
            return ModelInfo(told | remade.told())
        if model_file.LANES in found.run:
            return ModelInfo(_of_one(path, found, found.there[0]))
        if (frontier := found.frontier()) is not None:
            own = _of_one(path, found, frontier.chosen, chosen=True)
            kept = {name: own[name] for name in ("loss", "command", "no_command", "solver") if name in own}
            return ModelInfo({"model": str(path), "kind": "frontier"} | frontier.as_dict() | kept)
        several = model_file.ENSEMBLE in found.run
        return ModelInfo(_of_several(path, found) if several else _of_one(path, found, found.there[0]))


def _of_one(path: Path, found: model_file.Contents, number: int, chosen: bool = False) -> dict[str, Any]:
    """A model, or the one that was chosen of a frontier."""
    header, tensors = found.model(number)
    shown = describing.anatomy(path, header, tensors)
    return shown | remaking(path, header, shown, number if chosen else None).told()


def _of_several(path: Path, found: model_file.Contents) -> dict[str, Any]:
    """What the models of an ensemble share, and the figures of each."""
    Ensemble.read(found, model_file.predictor_of)  # which checks it
    headers, table = [found.header_of(k) for k in found.there], found.run[model_file.ENSEMBLE]
    called = [choice.ALL, *table["values"]] if table["values"] else found.there
    counts = ("examples", "progressive_loss", "features_seen", "nonzero")
    each = [
        {"model": own, **{name: one.get(name) for name in counts}}
        for own, one in zip(called, headers, strict=True)
    ]
    told = {"model": str(path), "kind": "ensemble", "models": len(headers), "rows": table["rows"]}
    told |= {"record": table["record"], "examples": table["examples"]}
    header, tensors = found.model(found.there[0])
    recipe = {name: value for name, value in header["recipe"].items() if name != "layout"}
    facts = describing.anatomy(path, header, tensors) | {"record": table["record"]}
    rows = spec_of(table["rows"], len(headers))
    by = choice.column_of(rows)
    words: dict[str, Any] = {"by": by} if by else {"ensemble": rows.removeprefix("poisson:")}
    again = remaking(path, header, facts, names=None, **words).told()
    return {**told, **recipe, "each": each, **again}


def load(path: Path) -> LinearPredictor | Ensemble[LinearPredictor] | Frontier | Selection:
    """What a file holds, to predict with. `ModelFileError`."""
    found = model_file.Contents.of(path)
    if model_file.SELECTION in found.run:
        return Selection.load(found)
    if model_file.LANES in found.run or found.frontier() is None:
        return model_in(found)
    return Frontier.read(found, model_file.predictor_of)


def draw(path: Path, plot: Path | None, table: Path | None) -> None:
    """Write the picture and the table of what path or select has found. `UsageError` for another file."""
    found = load(path)
    if isinstance(found, Frontier):
        chosen = found.number()
        plots.draw(plot, lambda: picture(found.points, chosen), table, found.table)
    elif isinstance(found, Selection):
        plots.draw(plot, found.plot, table, found.table)
    else:
        options = mention(*(name for name, one in (("plot", plot), ("table", table)) if one is not None))
        both = f"{mention_command('path')} and {mention_command('select')}"
        raise UsageError(f"{path}: {options} needs a file of {both}")


def choose(
    models: Path, which: str
) -> tuple[dict[str, Any], dict[str, Any] | None, Callable[[Path], object]]:
    """What is known of the model of a file that `which` selects, and what writes it to a file of its own.

    Between them, what it uses of a budget of weights, if it was chosen by one. `UsageError` if there is no
    such model, `ModelFileError`.
    """
    found = model_file.Contents.of(models)
    number = found.chosen(which)
    header, tensors = found.model(number)
    alone = {name: value for name, value in header.items() if name not in model_file.RUN}
    write = partial(model_file.write, header=alone, tensors=tensors)
    if (table := found.frontier()) is None:
        return {"nonzero": header["nonzero"]}, None, write
    figures = table.points[number].as_dict(table.penalty)
    del figures["dropped"]
    return figures, use_of(table.points, number, which), write


def name(
    path: Path, data: Any, options: Options, target: Path
) -> tuple[dict[str, int], Callable[[], object]]:
    """Find names for the models in a file; how many features have one, and what writes them to `target`.

    ``features_live`` counts the features with a weight in any of the models, ``named`` those with a name.

    `ModelFileError`, `DataError`, OSError.
    """
    before, found = stamp(path), model_file.Contents.of(path)
    if model_file.SELECTION in found.run:
        again = f"run {mention_command('select')} again with {mention(names=True)}"
        raise DataError(f"{path}: a selection, whose names are found as it is made: {again}")
    if not found.there or model_file.TRAINING in found.run:
        found.chosen()
        raise DataError(f"{path}: a checkpoint: name the model once it is trained")
    models = {k: found.model(k) for k in found.there}
    predictors = {k: model_file.predictor_of(path, *one) for k, one in models.items()}
    names = feature_names.find_in([*predictors.values()], data, **given_options(options, ReadOptions))
    for k, (header, tensors) in models.items():
        own = {name: array for name, array in tensors.items() if not name.startswith(model_file.NAMES)}
        if (record := predictors[k].record) is not None:
            header = header | {"record": record.as_dict()}
        models[k] = header, own | model_file.tensors_of_names(predictors[k].names or Names.of({}))
    if target == path and stamp(path) != before:
        raise DataError(f"{path}: another process has changed it meanwhile: run thresher name again")
    live = np.unique(np.concatenate([one.keys for one in predictors.values()]))
    figures = {"features_live": len(live), "named": len(names)}
    every = [models.get(k) for k in range(len(found))]
    return figures, partial(model_file.write_all, target, every, found.run, found.extras())


def _describe_ensemble(found: dict[str, Any]) -> list[str]:
    """What the models of an ensemble share, and a row for each."""
    shown = {name: found[name] for name in ("kind", "models", "rows")} | settings(found)
    if found["record"]:
        shown |= {"passes": passes_made(found["record"])}
        shown |= {"order": found["record"]["order"], "examples_of_data": found["record"]["examples"]}
        shown["examples_learned"] = found["examples"]
        shown |= _describe_continuation(found["record"])
    shown |= _describe_command(found)
    return [*figure_lines(shown), *_table(found["each"])]


def _describe_selection(found: dict[str, Any]) -> list[str]:
    """The figures of a selection, and its kept features."""
    figures = {name: one for name, one in found.items() if name != "no_command"} | _describe_command(found)
    writes = command("info", [found["model"]], [flag_of("table"), "FILE.tsv"])
    every = shell_or_python(f"{writes} writes all", "thresher.load(...).table() has all")
    rows = [{**one, "feature": str(one["feature"])} for one in figures.pop("kept_features")]
    unnamed = "" if any(one["name"] for one in rows) else "name"
    table = _table(rows, ("kept", unnamed), _FEATURES_SHOWN, every)
    return [*figure_lines(figures), *table, *(["", NO_NAMES] if not all(one["name"] for one in rows) else [])]


def _table(
    rows: Sequence[dict[str, Any]], without: Sequence[str] = (), shown: int = _SHOWN, every: str = ""
) -> list[str]:
    """The first rows as a table, after a blank line, how many more there are, and what has `every` one."""
    if not rows:
        return []
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in without]
    every = every or shell_or_python(f"{flag_of('json')} has all", "the dictionary has all")
    more = [f"... and {len(rows) - shown:,} more: {every}"] if len(rows) > shown else []
    return ["", *formatting.table_of_rows(rows, names, shown), *more]


def _describe_continuation(record: dict[str, Any]) -> dict[str, str]:
    """How often training went on with other data, if it did."""
    often = record.get("continued", 0)
    return {"continued": f"{often:,} time{'s' * (often > 1)}"} if often else {}


def _describe_model(found: dict[str, Any]) -> list[str]:
    """The figures of a model or a checkpoint; effects by column, by namespace or product, and by output."""
    # by falling effect; those without one last, in their order
    ranked = partial(sorted, key=lambda one: -one.get("effect", -1.0))
    groups = [
        {**one, "group": "(without a name)" if one["group"] is None else one["group"] or "(no namespace)"}
        for one in ranked(found["groups"])
    ]
    read = ranked([one for one in found["columns"] if one["kind"] not in _UNREAD])
    same = ("nonzero",) if found["outputs"] == "one" else ()  # as the number of features
    lines = [*figure_lines(_figures(found)), *_table(read, same)]
    if len(read) < len(found["columns"]):
        lines.append(f"{len(found['columns']) - len(read):,} columns were not read")
    lines += [*_table(groups, same), *_table(found["by_output"])]
    if found["nameable"] and found["weights"]["named"] is None and not found.get("stopped"):
        finder = shell_or_python("thresher name MODEL DATA", "thresher.name_features(model, data)")
        kinds = {one["kind"] for one in read if found["record"]}  # which holds the effects
        hidden = " and ".join(word for kind, word in _NAMED.items() if kind in kinds)
        so = f", so the effects of {hidden} are unknown" if hidden else ""
        lines += ["", f"the weights have no names{so}: {finder} finds them and their columns"]
    return lines


def _figures(facts: dict[str, Any]) -> dict[str, object]:
    """The figures of a model, by the names under which they are printed."""
    weights, layout, stopped = facts["weights"], facts["layout"], facts.get("stopped") or {}
    shown: dict[str, Any] = {"kind": facts["kind"], "made_by": f"thresher {facts['version']}"}
    shown |= settings(facts)
    if "calibration" in facts:
        shown["probability"] = in_words(facts["calibration"])
    if needs := facts.get("needs", []):
        homes = [" ".join(one[key] for key in ("package", "version", "file") if key in one) for one in needs]
        named = [f"{one['kind']} {one['name']}" for one in needs]
        shown["needs"] = ", ".join(f"{a} ({b})" if b else a for a, b in zip(named, homes, strict=True))
    if facts["warm"]:
        shown["warm_start"] = True
    shown |= _solver(facts)
    shown |= {f"stopped_{name}": value for name, value in stopped.items() if value not in (None, 0, "")}
    if record := facts["record"]:
        shown |= _describe_continuation(record) | {"passes": passes_made(record), "order": record["order"]}
        shown |= {name: record[name] for name in ("holdout", "where") if record[name]}
        read = list[str]()
        for name, _, _, end, lost, order in record.get("topics", ()):
            places = ", ".join(f"{one} to {end[one]:,}" for one in order or end)
            read.append(f"{name}: {places}" + (f"; {lost:,} lost" if lost else ""))
        shown |= {"read": "; ".join(read)} if read else {}
    if layout.get("format"):
        shown["format"] = layout["format"]
    if classes := layout.get("classes"):
        shown["classes"] = ", ".join(classes)
        shown |= {"positive_class": classes[1]} if facts["outputs"] == "one" else {}
    names = {"examples": "examples_of_data"} | ({"blank": "blank_or_header"} if facts["columns"] else {})
    shown |= {names.get(name, name): count for name, count in facts["lines"].items()}
    shown["examples" if "left_out" in facts else "examples_learned"] = facts["examples"]
    shown |= {"left_out": facts["left_out"]} if "left_out" in facts else {}
    later = {name: facts[name] for name in ("loss_of_later_passes",) if name in facts}
    again = bool(later or (record and record["solved"]))
    shown |= {"progressive_loss": formatting.of_first_pass(facts["progressive_loss"], again), **later}
    counted = ("features_seen", "features_freed", "features_live", "nonzero")
    shown |= {name: facts[name] for name in counted if name in facts}
    shown |= {name: weights[name] for name in _WEIGHTS}
    if len(weights["intercept"]) == 1:
        shown["intercept"] = weights["intercept"][0]
        shown |= {"weight_if_never_seen": weights["unmet"][0]} if "unmet" in weights else {}
    shown |= {f"bytes_{name}": size for name, size in facts["bytes"].items()}
    shown |= {"warning" if not k else f"warning_{k + 1}": one for k, one in enumerate(facts["warnings"])}
    return shown | _describe_command(facts)


def _describe_command(facts: dict[str, Any]) -> dict[str, str]:
    """The command that trains the same, or why there is none."""
    known = facts["command"]
    return {"command": f"none: {facts['no_command']}" if known is None else formatting.shorten_command(known)}


def _solver(facts: dict[str, Any]) -> dict[str, object]:
    """The settings and the certificate of a batch solver; none of other models."""
    return {f"solver_{name}": value for name, value in facts.get("solver", {}).items()}


def _describe_record(one: dict[str, Any]) -> list[str]:
    """A record in lines."""
    more = [f"key {printable(one['key'])}"] if "key" in one else []
    more += [f"ids {printable(', '.join(one['ids']))}"] if "ids" in one else []
    lines = [
        "  ".join(
            [f"{one['kind']} after row {one['after_row']:,}", formatting.format_figure(one["time"]), *more]
        )
    ]
    rows = one.get("rows", [])
    for row in rows[:_ROWS_SHOWN]:
        features = [
            f"{printable(name)}={formatting.format_figure(value)}" for name, value in row["features"].items()
        ]
        left = len(features) - _FEATURES_SHOWN
        features[_FEATURES_SHOWN:] = [f"... and {left:,} more"] if left > 0 else []
        parts = [f"row {row['row']:,}"] if "row" in row else []
        parts += [f"id {printable(row['id'])}"] if "id" in row else []
        parts += [f"label {formatting.format_figure(row['label'])}"] if "label" in row else []
        parts += (
            [f"importance {formatting.format_figure(row['importance'])}"] if row["importance"] != 1 else []
        )
        lines.append("  " + "  ".join([*parts, *features]))
    if len(rows) > _ROWS_SHOWN:
        lines.append(f"  ... and {len(rows) - _ROWS_SHOWN:,} more rows: {flag_of('json')} has all")
    return lines
