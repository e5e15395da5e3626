"""The figures of the papers: each claim holds on small data, and the pages are those of the experiments."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments.papers import NAMES, make
from experiments.papers.__main__ import made
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


def test_a_page_without_its_files_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: dict[str, Page | Exception] = {
        "daume-hashing": MissingDataError("rcv1 is not in data"),
        "singer-rare": PAGE,
    }

    def page(name: str, sets: Sets) -> Page:
        if isinstance(found := pages[name], Exception):
            raise found
        return found

    monkeypatch.setattr("experiments.papers.__main__.make", page)
    assert made(tuple(pages), Sets(tmp_path), tmp_path / "out") == 1
    said = capsys.readouterr()
    assert "1 of 2 pages" in said.out
    assert "daume-hashing: not made: rcv1 is not in data" in said.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"singer-rare.md", "README.md", VERDICTS}


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "one", PAGE, ("one",))
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    def stop(rows: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.papers.page.overview", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "one", replace(PAGE, title="Another"), ("one",))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_damaged_images_are_named(tmp_path: Path) -> None:
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/train-images-idx3-ubyte.gz").write_bytes(b"no gzip")
    with pytest.raises(MissingDataError, match=r"train-images-idx3-ubyte\.gz is damaged: Not a gzipped file"):
        Sets(tmp_path).mnist()
