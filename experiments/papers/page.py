"""What a page of docs/papers shows, and how it is written."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from benchmarks.report import markdown as markdown_table
from experiments.papers.cited import cited
from experiments.papers.together import alone, clear_unfinished, write_together

DOCS = Path(__file__).parents[2] / "docs" / "papers"
VERDICTS = "verdicts.tsv"
SMALL, OTHER = "small data", "other data"
_HEAD = ("page", "title", "source", "claim", "published", "ours", "verdict")
_BESIDE = re.compile(r"\]\(((?:\.\./|data\.md)[^)\s]*)\)")


class PageError(Exception):
    """A folder that holds no pages of ours; the message is one line."""


class Origin(NamedTuple):
    """What a page was made from."""

    small: bool = False
    """not the data of the papers, but small ones"""
    other: Sequence[str] = ()
    """files that are not those of the committed page, and what differs"""

    @property
    def mark(self) -> str:
        """What to add to a verdict on such data."""
        return f" ({SMALL if self.small else OTHER})" if self.small or self.other else ""

    def head(self) -> list[str]:
        """What a page says of it, before its claims."""
        if self.small:
            return [
                f"**Made from {SMALL}**, which are generated or ship with thresher (`--quick`): a trial of "
                "the experiment. Its figures are not those of the committed page, and texts may speak of the "
                "full data."
            ]
        return [f"**Made from {OTHER}**: {'; '.join(self.other)}."] if self.other else []


class Verdict(NamedTuple):
    """One claim of a paper, and whether it holds here."""

    claim: str
    published: str
    ours: str
    holds: bool
    why: str = ""
    """if it does not hold: what was tried, and the likely reason"""

    @property
    def word(self) -> str:
        """``holds`` or ``differs``."""
        return "holds" if self.holds else "differs"


class Picture(NamedTuple):
    """A picture of a page."""

    svg: str
    alt: str
    """what it shows, for those who cannot see it"""


FULL = Origin()


@dataclass(frozen=True)
class Page:
    """A page. Texts are Markdown."""

    title: str
    source: str
    """paper, figure or equation, and page or slide"""
    claim: str
    """what the paper says, in our words"""
    method: str
    """data, rules, what is swept and how parameters are chosen"""
    verdicts: Sequence[Verdict]
    pictures: Sequence[Picture] = ()
    tables: Sequence[str] = field(default=())
    """made by `table`"""
    notes: str = ""


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table in Markdown, below its caption if it has one."""
    text = markdown_table(heads, rows)
    return f"{caption}\n\n{text}" if caption else text


def markdown(name: str, page: Page, origin: Origin = FULL) -> str:
    """The page as a file of docs/papers."""
    heads = ("claim", "published", "ours", "verdict")
    rows = [
        (v.claim, v.published, v.ours, v.word + origin.mark + (f": {v.why}" if v.why else ""))
        for v in page.verdicts
    ]
    pictures = [f"![{picture.alt}]({_file(name, k)})" for k, picture in enumerate(page.pictures)]
    papers = "\n".join(f"- {paper}" for paper in cited(page.source))
    again = f"make papers {'QUICK=DIR' if origin.small else 'DATA=folder'} ONLY="
    parts = [
        f"# {page.title}",
        *origin.head(),
        f"From: {page.source}",
        *([papers] if papers else []),
        page.claim,
        table(heads, rows).replace("---:", "---"),
        *pictures,
        *page.tables,
        "## How it was made",
        page.method,
        f"`{again}{name}` makes this page again.",
        *([f"## Notes\n\n{page.notes}"] if page.notes else []),
    ]
    return "\n\n".join(parts) + "\n"


def _file(name: str, number: int) -> str:
    return f"{name}.svg" if number == 0 else f"{name}-{number + 1}.svg"


def write(folder: Path, name: str, page: Page, names: Sequence[str], origin: Origin = FULL) -> None:
    """Write the page, its pictures, its lines of `VERDICTS`, and the overview of all `names`.

    The pictures are renamed first, the overview last. Runs that write to the same folder wait for each other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {_file(name, number): picture.svg for number, picture in enumerate(page.pictures)}
    with alone(folder):
        clear_unfinished(folder)
        rows = [row for row in saved(folder) if row[0] != name]
        rows += [(name, page.title, page.source, *v[:3], v.word + origin.mark) for v in page.verdicts]
        rows = [row for each in names for row in rows if row[0] == each]
        lines = io.StringIO()
        csv.writer(lines, delimiter="\t", lineterminator="\n").writerows([_HEAD, *rows])
        texts = {f"{name}.md": markdown(name, page, origin), VERDICTS: lines.getvalue()}
        texts["README.md"] = overview(rows, is_docs(folder))
        if not is_docs(folder):
            texts = {path: _linked(text) for path, text in texts.items()}
        write_together({folder / path: text.encode() for path, text in (pictures | texts).items()})
        for old in folder.glob(f"{name}*.svg"):
            if old.name not in pictures and old.stem.removeprefix(name).strip("-0123456789") == "":
                old.unlink()


def is_docs(folder: Path) -> bool:
    """Whether this is the folder of the committed pages, however it is written."""
    return os.path.realpath(folder) == os.path.realpath(DOCS)


def _linked(text: str) -> str:
    """Pages elsewhere: links to what is beside or above docs/papers, made absolute."""
    return _BESIDE.sub(lambda link: f"]({quote(os.path.normpath(DOCS / link[1]), safe='/#')})", text)


def saved(folder: Path) -> list[tuple[str, ...]]:
    """The lines of `VERDICTS`: page, title, source, claim, published, ours, verdict.

    `PageError` if it is not such a table.
    """
    path = folder / VERDICTS
    if not path.exists():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [tuple(row) for row in csv.reader(file, delimiter="\t", strict=True)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PageError(f"{path}: {error}; remove it, or name another folder") from error
    for number, row in enumerate(rows or [()], 1):
        if len(row) != len(_HEAD) or (number == 1 and row != _HEAD):
            raise PageError(f"{path}: row {number} is not one of verdicts; remove it, or name another folder")
    return rows[1:]


def overview(rows: Sequence[Sequence[str]], docs: bool = True) -> str:
    """docs/papers/README.md; outside of `docs`, the data sets are not part of the same site."""
    figures: dict[str, list[Sequence[str]]] = {}
    for row in rows:
        figures.setdefault(row[0], []).append(row)
    held = sum(_held(found) for found in figures.values())
    counts = [
        (f"[{found[0][1]}]({name}.md)", f"{_held(found)} of {len(found)}") for name, found in figures.items()
    ]
    parts = [
        "# The papers, reproduced",
        "Figures and tables of the papers behind the rules, made again by thresher"
        f"{_data_of(rows)}. {held} of {len(rows)} claims hold; where one does not, its page shows the "
        "figures, and the reason if one is known.",
        table(("figure", "claims that hold"), counts),
        "`make papers DATA=folder` makes all pages again from the [data sets](data.md) in `folder`, "
        "in 10 to 20 minutes on two cores; `ONLY=name` makes one. Measured seconds differ from run to run, "
        "and so may verdicts on seconds. Everything else comes out the same from the same data with the same "
        "versions of Python's packages. [How to change an experiment or add one]"
        "(../contributing.md#adding-an-experiment-of-a-paper).",
        *(_section(name, found) for name, found in figures.items()),
        "\n".join(["```{toctree}", ":hidden:", "", *figures, *(["data"] if docs else []), "```"]),
    ]
    return "\n\n".join(parts) + "\n"


def _held(rows: Sequence[Sequence[str]]) -> int:
    return sum(row[-1].startswith("holds") for row in rows)


def _section(name: str, rows: Sequence[Sequence[str]]) -> str:
    """One figure: where it is from, and its claims."""
    _, title, source, *_ = rows[0]
    claims = table(("verdict", "claim", "published", "ours"), [(row[-1], *row[3:-1]) for row in rows])
    return (
        f"## {title}\n\n{source}. [Figures, method and notes]({name}.md)\n\n{claims.replace('---:', '---')}"
    )


def _data_of(rows: Sequence[Sequence[str]]) -> str:
    """What the pages of these rows were made from, as the end of a sentence."""
    marked = [(row[0], mark) for row in rows for mark in (SMALL, OTHER) if row[-1].endswith(f"({mark})")]
    if not marked:
        return ", most on real data, some on generated loads; each page says on which"
    kinds = " and ".join(f"*{mark}*" for mark in (SMALL, OTHER) if any(one[1] == mark for one in marked))
    count, every = len({name for name, _ in marked}), len({row[0] for row in rows})
    return f"; {count} of {every} pages from {kinds}, not those of the committed pages"
