"""The command that makes the pages of the papers: what it asks for, refuses and survives."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from experiments.papers import NAMES
from experiments.papers.__main__ import made, main
from experiments.papers.page import DOCS, VERDICTS, Page, saved
from experiments.papers.sets import MissingDataError, Sets
from tests.forks import forked
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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pages that a run makes."""
    names: list[str] = []

    def page(name: str, sets: Sets) -> Page:
        names.append(name)
        return PAGE

    monkeypatch.setattr("experiments.papers.__main__.make", page)
    return names


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("--only singer-rare singer-rare", ["singer-rare"]),
        ("--only singer-rare --only singer-ball", ["singer-rare", "singer-ball"]),
        ("", list(NAMES)),
    ],
)
def test_each_page_that_is_named_is_made_once(
    words: str, names: list[str], asked: list[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--quick", "--out", str(tmp_path), *words.split()])
    assert ended.value.code == 0
    assert asked == names


def test_a_name_that_is_not_known_gets_a_suggestion(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        main(["--quick", "--out", str(tmp_path), "--only", "singer-bal"])
    assert "there is no page 'singer-bal': did you mean singer-ball?" in capsys.readouterr().err


def test_a_run_without_data_says_what_to_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--data", str(tmp_path / "none")])
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no folder" in said
    assert "make papers DATA=DIR" in said
    assert "--quick --out DIR" in said


@pytest.mark.parametrize("words", [["DATA="], ["DATA=no such folder"]])
def test_make_looks_for_the_data_before_it_installs(words: list[str], tmp_path: Path) -> None:
    command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "papers", f"VENV={tmp_path}/v"]
    done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no folder '" in done.stderr
    assert "make papers DATA=folder" in done.stderr
    assert "make papers QUICK=folder" in done.stderr
    assert not (tmp_path / "v").exists()


def test_make_passes_on_a_folder_with_blanks_and_quotes(tmp_path: Path) -> None:
    folder = tmp_path / "my 'own' \"data\""
    folder.mkdir()
    program = tmp_path / "v/bin/python"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    program.chmod(0o755)
    (tmp_path / "pyproject.toml").touch()
    for ready in (".made", ".installed", ".ready"):
        (tmp_path / "v" / ready).touch()
    command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "papers", f"VENV={tmp_path}/v"]
    for words, passed in (
        (f"DATA={folder}", f"<--data><{folder}>"),
        (f"QUICK={folder}", f"<--out><{folder}>"),
    ):
        done = subprocess.run([*command, words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert passed in done.stdout, done.stderr


@pytest.mark.parametrize("verdicts", ["", "a\tb\n", "page\n", "\xff\n"])
def test_a_folder_that_cannot_take_pages_is_refused_before_the_work(
    verdicts: str, asked: list[str], tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / VERDICTS).write_text(verdicts, encoding="latin-1")
    with pytest.raises(SystemExit, match=r"verdicts\.tsv.*; remove it, or name another folder$"):
        main(["--quick", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match=r"verdicts\.tsv: (File exists|Not a directory)$"):
        main(["--quick", "--out", str(tmp_path / "out" / VERDICTS)])
    with pytest.raises(SystemExit, match=r"^/proc/pages: "):
        main(["--quick", "--out", "/proc/pages"])
    assert asked == []


def test_a_full_disk_is_one_line_a_page(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def sync(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("experiments.papers.together.os.fsync", sync)
    assert made(NAMES[:2], Sets(None, quick=True), tmp_path) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.endswith("No space left on device") for line in lines[:2])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'sklearn'"),
        ValueError("empty vocabulary"),
        ZeroDivisionError("division by zero"),
        IndexError("index 0"),
        AssertionError("a key"),
    ],
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


def test_pages_are_made_though_nobody_reads_the_report(tmp_path: Path) -> None:
    code = (
        "from experiments.papers import __main__ as run\n"
        "from tests.test_figures import PAGE\n"
        "run.make = lambda name, sets: PAGE\n"
        f"try: run.main(['--quick', '--out', {str(tmp_path)!r}])\n"
        "except SystemExit as ended: assert ended.code == 0\n"
    )
    closed, end = os.pipe()
    os.close(closed)
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": end, "stderr": subprocess.PIPE, "text": True}
    process = forked([], code, cwd=ROOT, env=dict(os.environ), **pipes)
    os.close(end)
    assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 0
    assert {row[0] for row in saved(tmp_path)} == set(NAMES)


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
