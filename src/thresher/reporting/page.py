"""The page: head, landmarks and parts in order."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from thresher._version import __version__
from thresher.drawing.svg import clean
from thresher.engine.atomic import check_writable, whole_file
from thresher.reporting import about, chosen, quality, selected, summary, training, weighing
from thresher.reporting.facts import Facts
from thresher.reporting.html import STYLE, Markup, el, joined

BEGINNING = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="thresher '
)
"""How every report begins, and no other file."""
_LINE = Markup("\n")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(facts: Facts) -> str:
    """The whole page. The same facts give the same bytes."""
    parts = {
        "warnings": ("Warnings", summary.warnings(facts)),
        "test": ("Test data", quality.part(facts)),
        "training": ("Training", training.part(facts)),
        "selection": ("Stable features", selected.part(facts)),
        "frontier": ("Frontier", chosen.part(facts)),
        "weights": ("Weights", weighing.part(facts)),
        "about": ("Settings and data", about.part(facts)),
    }
    shown = {name: part for name, part in parts.items() if part[1]}
    links = [el("li", el("a", title, href=f"#{name}")) for name, (title, _) in shown.items()]
    title = f"thresher report: {clean(facts.name, 80)}"
    body = el(
        "body",
        el("a", "Skip to the report", href="#report", class_="skip"),
        _LINE,
        el("header", el("h1", title), el("nav", el("ul", *links), aria_label="Parts of the report")),
        _LINE,
        el("main", summary.top(facts), *(joined([_LINE, part]) for _, part in shown.values()), id="report"),
        _LINE,
        el("footer", el("p", f"Written by thresher {__version__}. This page loads nothing from elsewhere.")),
    )
    return f'{BEGINNING}{__version__}">{_head(title)}\n{body}</html>\n'


def _head(title: str) -> Markup:
    return joined(
        [
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("title", title),
            Markup(f"<style>{STYLE}</style></head>"),
        ]
    )


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
