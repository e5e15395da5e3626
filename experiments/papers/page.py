"""What a page of docs/papers shows, and how it is written."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from thresher.learning.wholefile import whole_file

DOCS = Path(__file__).parents[2] / "docs" / "papers"
VERDICTS = "verdicts.tsv"
_HEAD = ("page", "title", "source", "claim", "published", "ours", "verdict")


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
    """A Markdown table; all columns but the first are aligned to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    text = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines)
    return f"{caption}\n\n{text}" if caption else text


def markdown(name: str, page: Page) -> str:
    """The page as a file of docs/papers."""
    heads = ("claim", "published", "ours", "verdict")
    rows = [(v.claim, v.published, v.ours, v.word + (f": {v.why}" if v.why else "")) for v in page.verdicts]
    pictures = [f"![{picture.alt}]({_file(name, k)})" for k, picture in enumerate(page.pictures)]
    parts = [
        f"# {page.title}",
        f"From: {page.source}",
        page.claim,
        table(heads, rows).replace("---:", "---"),
        *pictures,
        *page.tables,
        "## How it was made",
        page.method,
        f"`make papers ONLY={name}` makes this page again.",
        *([f"## Notes\n\n{page.notes}"] if page.notes else []),
    ]
    return "\n\n".join(parts) + "\n"


def _file(name: str, number: int) -> str:
    return f"{name}.svg" if number == 0 else f"{name}-{number + 1}.svg"


def write(folder: Path, name: str, page: Page, names: Sequence[str]) -> None:
    """Write the page, its pictures, its lines of `VERDICTS`, and the overview of all `names`."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {_file(name, number): picture.svg for number, picture in enumerate(page.pictures)}
    rows = [row for row in saved(folder) if row[0] != name]
    rows += [(name, page.title, page.source, *v[:3], v.word) for v in page.verdicts]
    rows = [row for each in names for row in rows if row[0] == each]
    lines = io.StringIO()
    csv.writer(lines, delimiter="\t", lineterminator="\n").writerows([_HEAD, *rows])
    texts = {f"{name}.md": markdown(name, page), VERDICTS: lines.getvalue(), "README.md": overview(rows)}
    for path, text in (pictures | texts).items():
        with whole_file(folder / path, "wb") as file:
            file.write(text.encode())
    for old in folder.glob(f"{name}*.svg"):
        if old.name not in pictures and old.stem.removeprefix(name).strip("-0123456789") == "":
            old.unlink()


def saved(folder: Path) -> list[tuple[str, ...]]:
    """The lines of `VERDICTS`: page, title, source, claim, published, ours, verdict."""
    if not (folder / VERDICTS).exists():
        return []
    with (folder / VERDICTS).open(newline="", encoding="utf-8") as file:
        return [tuple(row) for row in csv.reader(file, delimiter="\t")][1:]


def overview(rows: Sequence[Sequence[str]]) -> str:
    """docs/papers/README.md."""
    pages = list(dict.fromkeys(row[0] for row in rows))
    held = sum(row[-1] == "holds" for row in rows)
    lines = []
    for k, (name, title, source, *found) in enumerate(rows):
        first = k == 0 or rows[k - 1][0] != name
        lines.append((f"[{title}]({name}.md)<br>{source}" if first else "", *found))
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *pages, "data", "```"])
    return (
        "\n\n".join(
            [
                "# The papers, reproduced",
                "Figures and tables of the papers behind the rules, made again by thresher on real data. "
                f"{held} of {len(rows)} claims hold; where one does not, its page says what was tried.",
                "`make papers` makes all pages again from the [data sets](data.md); `ONLY=name` makes one. "
                "Measured seconds differ from run to run; everything else comes out the same.",
                table(("figure", "claim", "published", "ours", "verdict"), lines).replace("---:", "---"),
                toctree,
            ]
        )
        + "\n"
    )
