"""The pages of the papers: their claims on small data, the command that makes them, and their data."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments.papers import NAMES, make
from experiments.papers.__main__ import main
from experiments.papers.cited import cited
from experiments.papers.known import COMMITTED, FILES, NEEDS
from experiments.papers.page import (
    DOCS,
    OTHER,
    SMALL,
    Origin,
    Page,
    Verdict,
    markdown,
    overview,
    saved,
    write,
)
from experiments.papers.sets import Sets
from tests.plain import not_compiled

PAGE = Page("A figure", "A paper, Figure 1", "It falls.", "One pass.", [Verdict("it falls", "9", "8", True)])


@pytest.fixture(scope="module")
def sets() -> Sets:
    """Some pages show the same models."""
    return Sets(None, quick=True)


@pytest.mark.parametrize("name", NAMES)
def test_claims_hold_on_small_data(name: str, sets: Sets) -> None:
    with not_compiled():
        page = make(name, sets)
    assert page.verdicts
    assert [verdict.claim for verdict in page.verdicts if not verdict.holds] == []
    for picture in page.pictures:
        ElementTree.fromstring(picture.svg)


def complaints(folder: Path, names: Sequence[str]) -> list[str]:
    """Pages of a folder that were not made from the data of the papers, or not at all."""
    rows = saved(folder)
    found = [f"{name}: no verdicts" for name in names if name not in {row[0] for row in rows}]
    found += [f"{row[0]}: {row[6]}" for row in rows if row[6] not in ("holds", "differs")]
    for name in {row[0] for row in rows}:
        text = (folder / f"{name}.md").read_text()
        found += [f"{name}: {mark}" for mark in (SMALL, OTHER) if f"**Made from {mark}**" in text]
    return found


def test_every_page_was_made_from_the_full_data() -> None:
    rows = saved(DOCS)
    assert complaints(DOCS, NAMES) == []
    assert list(dict.fromkeys(row[0] for row in rows)) == list(NAMES)
    assert (DOCS / "README.md").read_text() == overview(rows)
    for name in NAMES:
        text = (DOCS / f"{name}.md").read_text()
        for row in rows:
            assert row[0] != name or (f"| {row[3]} |" in text and f"| {row[6]}" in text)


@pytest.mark.parametrize(
    ("origin", "mark"), [(Origin(small=True), SMALL), (Origin(other=["a: 2 rows where 3"]), OTHER)]
)
def test_pages_from_small_or_other_data_say_so(origin: Origin, mark: str, tmp_path: Path) -> None:
    write(tmp_path, "one", PAGE, ("one", "two"))
    assert complaints(tmp_path, ("one",)) == []
    write(tmp_path, "one", PAGE, ("one", "two"), origin)
    assert complaints(tmp_path, ("one",)) == [f"one: holds ({mark})", f"one: {mark}"]
    page = (tmp_path / "one.md").read_text()
    assert page.index(f"**Made from {mark}**") < page.index("| claim |")
    index = (tmp_path / "README.md").read_text()
    assert f"| holds ({mark}) |" in index
    assert f"*{mark}*" in index.partition("| figure |")[0]
    assert "real data" not in page + index


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "one", PAGE, ("one",))
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    def stop(*given: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.papers.page.overview", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "one", replace(PAGE, title="Another"), ("one",))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_every_page_cites_its_papers() -> None:
    for name, _, source, *_ in saved(DOCS):
        assert cited(source), name
    page = markdown("one", replace(PAGE, source="Duchi, Hazan and Singer (JMLR 2011)"))
    assert "- Duchi, Hazan and Singer, *Adaptive Subgradient" in page
    assert "https://www.jmlr.org/papers/v12/duchi11a.html" in page


def test_commands_of_the_docs_work_in_a_fresh_clone() -> None:
    """Outside of .venv there is no thresher; `make papers` without DATA looks for a folder that few have."""
    root = DOCS.parents[1]
    assert "make .venv/.ready" in (DOCS / "data.md").read_text()
    for path in (DOCS / "data.md", DOCS / "README.md", root / "README.md", root / "CONTRIBUTING.md"):
        text = path.read_text()
        assert not re.findall(r"(?<!\.venv/bin/)python -m experiments", text), path
        assert not re.findall(r"make papers(?!`? ?\s*(?:DATA|QUICK)=)", text), path


def test_the_page_of_the_data_tells_what_each_page_needs() -> None:
    assert list(NEEDS) == list(NAMES)
    assert set(COMMITTED) == {file for files in FILES.values() for file in files}
    text = (DOCS / "data.md").read_text()
    for name, sets in NEEDS.items():
        assert f"| [{name}]({name}.md) | {', '.join(sets) or 'none'} |" in text
    for contents in COMMITTED.values():
        assert f"{contents.rows:,}" in text


def test_the_committed_pages_are_not_overwritten_by_small_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("experiments.papers.__main__.make", lambda name, sets: pytest.fail("made"))
    monkeypatch.chdir(DOCS.parents[1])
    (tmp_path / "link").symlink_to(DOCS)
    for same in ("docs/papers", "docs/../docs/papers/", str(DOCS), str(tmp_path / "link")):
        with pytest.raises(SystemExit) as ended:
            main(["--quick", "--out", same])
        assert ended.value.code == 2
        assert "--quick needs --out DIR, another folder" in capsys.readouterr().err
