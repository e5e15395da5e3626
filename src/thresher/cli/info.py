"""``thresher info``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from thresher.options.arguments import Argument
from thresher.options.judging import InfoCommand

_MODEL = Argument(
    "MODEL", "A model, a checkpoint, an ensemble, or the folder that thresher path has written."
)
ARGUMENTS, OPTIONS = (_MODEL,), InfoCommand
_SHOWN = 50
"""maximum number of rows of a printed table"""
_UNREAD = ("ignore", "absent", "empty")
"""column kinds that are not read"""


def command(model: str, options: InfoCommand) -> None:
    """Show a model: rule, options, data, columns, sparsity by column, sizes, and the command that trains it.

    Columns and namespaces are known only if the model has names; thresher name adds them.
    """
    from thresher.cli.output import show_figures
    from thresher.runs.inspecting import describe

    found = describe(Path(model))
    if options["json"]:
        show_figures(found, True)
    elif found["kind"] == "frontier":
        _tell_frontier(Path(model))
    elif found["kind"] == "ensemble":
        _tell_ensemble(found)
    else:
        show_figures(_figures(found), False)
        click.echo("\n".join(_tables(found)), nl=False)


def _tell_frontier(path: Path) -> None:
    """The table of a folder of models."""
    from thresher.cli.output import show_figures
    from thresher.lanes import folder, models

    found = folder.load(path)
    click.echo("\n".join(models.of_points(found.points, found.penalty, found.chosen)))
    chosen = path / folder.file_of(found.chosen)
    show_figures(
        {"choice": found.choice, "chosen": str(chosen), "rule": found.points[found.chosen].spec}, False
    )


def _tell_ensemble(found: dict[str, Any]) -> None:
    """What the models of an ensemble share, and a row for each."""
    from thresher.cli.output import show_figures, table_of
    from thresher.learning.model.recipe import settings
    from thresher.learning.training.record import passes_made

    shown = {name: found[name] for name in ("kind", "models", "rows")}
    shown |= settings(found)
    if found["record"]:
        shown |= {"passes": passes_made(found["record"])}
        shown |= {name: found["record"][name] for name in ("order", "examples")}
    show_figures(shown, False)
    heads = [head.replace("_", " ") for head in found["each"][0]]
    rows = [[*one.values()] for one in found["each"]]
    click.echo("\n".join(["", *table_of(heads, rows)]))


def _figures(facts: dict[str, Any]) -> dict[str, Any]:
    """One line per figure."""
    from thresher.learning.model.recipe import settings
    from thresher.learning.training.record import passes_made

    weights, sizes, stopped = facts["weights"], facts["bytes"], facts.get("stopped")
    shown: dict[str, Any] = {"kind": facts["kind"], "made_by": f"thresher {facts['version']}"}
    shown |= settings(facts)
    shown |= {"warm_start": True} if facts["warm"] else {}
    shown |= {"solver_" + name: value for name, value in facts.get("solver", {}).items()}
    shown |= {
        f"stopped_{name}": value for name, value in (stopped or {}).items() if value not in (None, 0, "")
    }
    if facts["record"]:
        record = facts["record"]
        shown |= {"passes": passes_made(record), "order": record["order"]}
        shown |= {name: record[name] for name in ("holdout", "where") if record[name]}
    shown |= {"format": facts["layout"]["format"]} if facts["layout"].get("format") else {}
    if classes := facts["layout"].get("classes"):
        shown["classes"] = ", ".join(classes)
        shown |= {"positive_class": classes[1]} if facts["outputs"] == "one" else {}
    shown |= {f"{name}_of_data" if name == "examples" else name: n for name, n in facts["lines"].items()}
    shown |= {
        "examples_learned": facts["examples"],
        **_losses(facts),
        "features_seen": facts["features_seen"],
        "features_live": facts["features_live"],
        "nonzero": facts["nonzero"],
        "positive": weights["positive"],
        "negative": weights["negative"],
        "named": weights["named"],
        "l1_norm": weights["l1_norm"],
        "l2_norm": weights["l2_norm"],
        "largest": weights["largest"],
    }
    if len(weights["intercept"]) == 1:
        shown["intercept"] = weights["intercept"][0]
        shown |= {"weight_if_never_seen": weights["unmet"][0]} if "unmet" in weights else {}
    shown |= {f"bytes_{name}": size for name, size in sizes.items()}
    shown |= {"warning" if not k else f"warning_{k + 1}": one for k, one in enumerate(facts["warnings"])}
    return shown if facts["command"] is None else {**shown, "command": facts["command"]}


def _losses(facts: dict[str, Any]) -> dict[str, Any]:
    """The losses in training: after several passes, those of the later ones apart."""
    from thresher.learning.inspection.formatting import of_first_pass

    later = {name: facts[name] for name in ("loss_of_later_passes",) if name in facts}
    return {"progressive_loss": of_first_pass(facts["progressive_loss"], bool(later)), **later}


def _tables(facts: dict[str, Any]) -> list[str]:
    """Weights by column, by namespace or product, and by output, as text."""
    from thresher.cli.output import table_of

    groups = [{**one, "group": _called(one["group"])} for one in facts["groups"]]
    lines = list[str]()
    read = [one for one in facts["columns"] if one["kind"] not in _UNREAD]
    for found in (read, groups, facts["by_output"]):
        heads = list(dict.fromkeys(head for one in found for head in one))
        if facts["outputs"] == "one" and "features" in heads:
            heads.remove("nonzero")  # the same as the number of features
        if found:
            rows = [[one.get(head) for head in heads] for one in found[:_SHOWN]]
            lines += ["", *table_of([head.replace("_", " ") for head in heads], rows)]
        if len(found) > _SHOWN:
            lines.append(f"... and {len(found) - _SHOWN:,} more: --json has all")
        if found is read and len(read) < len(facts["columns"]):
            lines.append(f"{len(facts['columns']) - len(read):,} columns were not read")
    if facts["nameable"] and facts["weights"]["named"] is None:
        lines += [
            "",
            "the weights have no names: thresher name MODEL DATA finds them and their columns",
        ]
    return [*lines, ""]


def _called(group: str | None) -> str:
    return "(without a name)" if group is None else group or "(no namespace)"
