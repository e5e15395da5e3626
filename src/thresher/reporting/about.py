"""Settings, line counts of the data, and the command that reproduces the model."""

from __future__ import annotations

from typing import Any

from thresher.learning.inspection.formatting import shown
from thresher.learning.model.recipe import settings
from thresher.reporting.facts import Facts, ReportedModel
from thresher.reporting.html import Markup, el, joined, section, table, text

_LINES = {
    "lines": "Lines",
    "examples": "Examples",
    "blank": "Blank lines and headers",
    "skipped": "Bad lines, skipped",
    "merged": "Examples with repeated or unsorted ids",
}
_COLUMNS = 30

_LONGEST = 20_000
"""maximum number of characters of the command; longer ones are not shown"""


def part(facts: Facts) -> Markup:
    """The section."""
    if facts.model is None:
        return Markup()
    inside = [_settings(facts.model), _lines(facts), _command(facts)]
    return section("about", "Settings and data", *inside)


def _settings(model: ReportedModel) -> Markup:
    info, record = model.info, model.info["record"] or {}
    rows: list[list[Any]] = [[name, value] for name, value in settings(info).items()]
    rows += [[f"solver {name}", value] for name, value in info.get("solver", {}).items()]
    rows += [[name, record[name]] for name in ("passes", "order", "where", "holdout") if record.get(name)]
    rows += [[f"holdout {name}", value] for name, value in record.get("heldout", {}).items()]
    rows += [["warm start", True]] if info["warm"] else []
    rows += [["format", info["layout"]["format"]]] if info["layout"].get("format") else []
    rows.append(["trained by", f"thresher {info['version']}"])
    return table(
        "How the model was trained", ["Setting", "Value"], [[name, _plainly(value)] for name, value in rows]
    )


def _plainly(value: Any) -> str:
    """Numbers as text, so that they are left-aligned like the other settings."""
    return "none" if value is None else shown(value)


def _lines(facts: Facts) -> Markup:
    assert facts.model is not None
    trained, test = facts.model.info["lines"], facts.test
    if not trained and test is None:
        return Markup()
    heads, rows = (
        ["Lines and rows", *(["Training data"] if trained else []), *(["Test data"] if test else [])],
        [],
    )
    for name, called in _LINES.items():
        row: list[Any] = [called, *([trained[name]] if trained else [])]
        rows.append([*row, getattr(test.lines, name)] if test else row)
    return table("How the input lines were used", heads, rows)


def _command(facts: Facts) -> Markup:
    if facts.command is None:
        return Markup()
    sentence = "This command trains the model again; replace the words in capitals with your files."
    if len(facts.command) > _LONGEST:
        sentence = (
            "The command that trains the model again is too long for this page: thresher info prints it."
        )
        return joined([el("h3", "Command"), el("p", sentence)])
    return joined(
        [el("h3", "Command"), el("p", sentence), el("pre", el("code", text(facts.command, _LONGEST)))]
    )
