"""The command that makes the pages of the papers: what it asks for, refuses and survives."""

from pathlib import Path

import pytest

from experiments.papers import NAMES
from experiments.papers.__main__ import made, main
from experiments.papers.page import DOCS, Page
from experiments.papers.sets import MissingDataError, Sets
from tests.test_figures import PAGE

ROOT = Path(__file__).parent.parent


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


def test_a_run_without_data_says_what_to_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--data", str(tmp_path / "none")])
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no folder" in said
    assert "make papers DATA=DIR" in said
    assert "--quick --out DIR" in said


@pytest.mark.parametrize(
    "error", [MissingDataError("rcv1 is not in data"), ZeroDivisionError("division by zero")]
)
def test_a_page_that_fails_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def page(name: str, sets: Sets) -> Page:
        if name == NAMES[0]:
            raise error
        return PAGE

    monkeypatch.setattr("experiments.papers.__main__.make", page)
    assert made(NAMES[:2], Sets(None, quick=True), tmp_path) == 1
    said = capsys.readouterr()
    assert "1 of 2 pages" in said.out
    first, origin = said.err.splitlines()
    assert first.startswith(f"{NAMES[0]}: not made: ")
    assert str(error) in first
    assert "data.md" in origin
    assert (tmp_path / f"{NAMES[1]}.md").exists()
