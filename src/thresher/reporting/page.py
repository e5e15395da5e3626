"""The page: head, landmarks and parts in order, of which settings and counts of lines are the last."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from string import Template
from typing import Any

from thresher._version import __version__
from thresher.drawing.svg import clean
from thresher.engine.atomic import check_writable, whole_file
from thresher.learning.inspection.formatting import format_figure
from thresher.learning.model.recipe import settings
from thresher.reporting import quality, summary, training, weighing
from thresher.reporting.facts import Facts
from thresher.reporting.html import STYLE, Markup, el, join, section, table, text

_PAGE = Path(__file__).with_name("page.html").read_text("utf-8")
BEGINNING = _PAGE.partition("$version")[0]
"""How every report begins, and no other file."""
_LINES = {
    "lines": "Lines",
    "examples": "Examples",
    "blank": "Blank lines and headers",
    "skipped": "Bad lines, skipped",
    "merged": "Examples with repeated or unsorted ids",
}
_LONGEST = 20_000
"""maximum number of characters of the command; longer ones are not shown"""


def page(facts: Facts) -> str:
    """The whole page. The same facts give the same bytes."""
    parts = {
        "warnings": ("Warnings", summary.warnings(facts)),
        "test": ("Test data", quality.part(facts)),
        "training": ("Training", training.training(facts)),
        "selection": ("Stable features", training.selection(facts)),
        "frontier": ("Frontier", training.frontier(facts)),
        "weights": ("Weights", weighing.part(facts)),
        "about": ("Settings and data", _about(facts)),
    }
    there = {name: part for name, part in parts.items() if part[1]}
    links = [el("li", el("a", title, href=f"#{name}")) for name, (title, _) in there.items()]
    return Template(_PAGE).substitute(
        version=__version__,
        title=text(f"thresher report: {clean(facts.name, 80)}"),
        style=STYLE,
        links=join(links),
        parts="\n".join([summary.top(facts), *(part for _, part in there.values())]),
    )


def _about(facts: Facts) -> Markup:
    """Settings, counts of lines, and the command; empty without a model."""
    if facts.model is None:
        return Markup()
    info, trained, test = facts.model.info, facts.model.info["lines"], facts.test
    record = info["record"] or {}
    rows: list[list[Any]] = [[name, value] for name, value in settings(info).items()]
    rows += [[f"solver {name}", value] for name, value in info.get("solver", {}).items()]
    rows += [[name, record[name]] for name in ("passes", "order", "where", "holdout") if record.get(name)]
    rows += [["warm start", True]] if info["warm"] else []
    rows += [["format", info["layout"]["format"]]] if info["layout"].get("format") else []
    rows.append(["trained by", f"thresher {info['version']}"])
    # as text, so that numbers are left-aligned like the other settings
    written = [[name, "none" if value is None else format_figure(value)] for name, value in rows]
    inside = [table("How the model was trained", ["Setting", "Value"], written)]
    if trained or test is not None:
        heads = ["Lines and rows", *(["Training data"] if trained else []), *(["Test data"] if test else [])]
        counts = [
            [called, *([trained[name]] if trained else []), *([getattr(test.lines, name)] if test else [])]
            for name, called in _LINES.items()
        ]
        inside.append(table("How the input lines were used", heads, counts))
    if facts.command is not None:
        sentence = "This command trains the model again; replace the words in capitals with your files."
        code = [el("pre", el("code", text(facts.command, _LONGEST)))]
        if len(facts.command) > _LONGEST:
            code, longer = [], "is too long for this page: thresher info prints it."
            sentence = f"The command that trains the model again {longer}"
        inside += [el("h3", "Command"), el("p", sentence), *code]
    return section("about", "Settings and data", *inside)


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path, if a report can be written there. FileExistsError for another kind of file, OSError."""
    target = Path(path)
    check_writable(target)
    with contextlib.suppress(FileNotFoundError):  # none, or removed meanwhile
        if target.is_file():
            with open(target, "rb") as file:
                head = file.read(len(BEGINNING))
            if head not in (b"", BEGINNING.encode()):
                raise FileExistsError(17, "is not a thresher report, so it is not overwritten", str(target))
    return target


def write(path: Path, facts: Facts) -> int:
    """Write the whole page, or leave the file unchanged. Returns its size in bytes; raises OSError."""
    whole = page(facts).encode("utf-8", "replace")
    with whole_file(path, "wb") as file:
        file.write(whole)
    return len(whole)
