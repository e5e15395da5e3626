"""The figures of the papers: each claim holds on small data, and the pages are those of the experiments."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments.papers import NAMES, make
from experiments.papers.page import DOCS, VERDICTS, Page, Verdict, overview, saved, write
from experiments.papers.sets import MissingDataError, Sets
from tests.plain import not_compiled

PAGE = Page("A figure", "A paper, Figure 1", "It falls.", "One pass.", [Verdict("it falls", "9", "8", True)])


@pytest.mark.parametrize("name", NAMES)
def test_claims_hold_on_small_data(name: str) -> None:
    with not_compiled():
        page = make(name, Sets(None, quick=True))
    assert page.verdicts
    assert [verdict.claim for verdict in page.verdicts if not verdict.holds] == []
    for picture in page.pictures:
        ElementTree.fromstring(picture.svg)


def test_every_page_was_made_from_the_full_data() -> None:
    rows = saved(DOCS)
    assert list(dict.fromkeys(row[0] for row in rows)) == list(NAMES)
    assert (DOCS / "README.md").read_text() == overview(rows)
    for name in NAMES:
        text = (DOCS / f"{name}.md").read_text()
        for row in rows:
            assert row[0] != name or (f"| {row[3]} |" in text and f"| {row[6]}" in text)


def test_a_page_written_again_replaces_its_lines_and_pictures(tmp_path: Path) -> None:
    write(tmp_path, "one", PAGE, ("one", "two"))
    write(tmp_path, "two", PAGE, ("one", "two"))
    write(tmp_path, "one", PAGE, ("one", "two"))
    assert [row[0] for row in saved(tmp_path)] == ["one", "two"]
    assert (tmp_path / VERDICTS).read_text().count("it falls") == 2


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="rcv1_ccat_train"):
        Sets(tmp_path).rcv1()
