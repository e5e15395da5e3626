"""File arguments: thousands of files, odd names, system files, outputs that are inputs."""

import os
from pathlib import Path
from typing import Any

import pytest

import thresher as library
from tests.commands import start
from tests.hostile.conftest import Tried
from tests.hostile.trials import failed, here, names_in, open_files, outcome, svmlight, thresher
from thresher.cli.main import status_of
from thresher.data import DataError, open_source

ODD = [
    "-x", "--help", " x ", "x[1]", "x*", "?", "a\nb", "ü", "a=b,c", "http:x", "%41", "~x", "$x", "'", '"',
    "a\\b", "e\u0301", "\u202e", "x" * 200, "\udcff\udcfe", "{a,b}", "C:x", "|", "\x1b[31m", "\t", "-0",
]  # fmt: skip


def many(folder: Path, count: int) -> str:
    (folder / "many").mkdir()
    for k in range(count):
        (folder / "many" / f"{k:05}.svm").write_text(f"{k % 2} {k % 97 + 1}:1\n")
    return "many/*.svm"


def test_hundreds_of_files(folder: Path) -> None:
    """More than may be open at once."""
    count = 150
    pattern = many(folder, count)
    train = ["train", pattern, "-q", "--json", "-m"]
    status, out, _ = thresher(*train, "m", "--passes", "2", folder=folder, limit=open_files(64))
    assert status == 0
    assert f'"examples": {2 * count},' in out
    (folder / "all.svm").write_bytes(b"".join(p.read_bytes() for p in sorted(folder.glob(pattern))))
    assert here("train", "all.svm", "-m", "n", "-q", "--passes", "2", folder=folder)[0] == 0
    assert (folder / "m").read_bytes() == (folder / "n").read_bytes()
    (folder / "many" / f"{count // 2:05}.svm").write_bytes(b"")
    ran = thresher(*train, "o", folder=folder, limit=open_files(64))
    failed(ran, f"many/{count // 2:05}.svm: the file is empty")
    assert not (folder / "o").exists()


def test_names_that_are_odd(folder: Path, tried: Tried) -> None:
    """Each file is read under its name, alone and by a glob, and an error in it takes one line."""
    (folder / "odd").mkdir()
    for name in ODD:
        path = Path("odd") / f"{name}.svm"
        path.write_bytes(b"1 1:1\n")
        assert outcome(path) == 1
        tried(1)
    assert outcome(Path("odd/*.svm")) == len(ODD)
    os.chdir("odd")
    assert outcome(Path("*.svm")) == len(ODD)


def test_names_that_are_odd_on_the_command_line(folder: Path) -> None:
    (folder / "odd").mkdir()
    names = [f"odd/{name}.svm" for name in ODD]
    for name in names:
        Path(name).write_bytes(b"1 1:1\n-1 2:1\n")
    told = ("train", "-q", "--passes", "1", "-m", "odd/m\udcff\n")
    status, out, err = thresher(*told, "--", *names, folder=folder)
    assert (status, err) == (0, "")
    assert f"{2 * len(ODD)}" in out
    status, out, err = thresher("predict", "odd/m\udcff\n", "--", *names, folder=folder)
    assert (status, err, out.count("\n")) == (0, "", 2 * len(ODD))


def test_files_of_the_system(folder: Path) -> None:
    """A file of size zero may have content, and an endless file is not text."""
    for name in ("/proc/self/status", "/proc/cpuinfo", "/proc/version"):
        if Path(name).exists():
            assert "no examples" in str(outcome(Path(name)))
            assert "empty" not in str(outcome(Path(name)))
    for name in ("/dev/zero", "/dev/null", "/dev/full"):
        assert isinstance(outcome(Path(name)), str)


def test_a_file_with_holes(folder: Path) -> None:
    Path("d.svm").write_bytes(b"1 1:1\n")
    os.truncate("d.svm", 100 << 20)
    source = open_source("d.svm", on_error="fail")
    with pytest.raises(DataError, match=r"d\.svm"):
        list(source.chunks())


def test_a_file_that_becomes_a_folder(folder: Path) -> None:
    path = svmlight(folder / "d.svm", 100)
    source = open_source(path)
    assert sum(len(chunk) for chunk in source.chunks()) == 100
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=r"d\.svm"):
        list(source.chunks())
    with pytest.raises(DataError, match="a directory"):
        open_source(path)


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_an_input_as_output(folder: Path, link: Any, tried: Tried, capfd: pytest.CaptureFixture[str]) -> None:
    """Under another name: nothing is started."""
    data, held = svmlight(folder / "d.svm", 100), svmlight(folder / "h.svm", 100, seed=1)
    assert here("train", "d.svm", "-m", "m", "-q", folder=folder)[0] == 0
    for name in ("d.svm", "h.svm", "m"):
        link(folder / name, folder / f"to-{name}")
    kept = {name: (folder / name).read_bytes() for name in ("d.svm", "h.svm", "m")}
    for command in (
        *("train d.svm -m to-d.svm", "train d.svm -m n --curve to-d.svm"),
        "train d.svm -m n --on-error quarantine=to-d.svm",
        "train d.svm -m n --holdout h.svm --on-error quarantine=to-h.svm",
        *("train d.svm -m to-h.svm --holdout h.svm", "predict m d.svm --on-error quarantine=to-m"),
        *("predict m d.svm -o to-m", "predict m d.svm -o to-d.svm"),
        *("evaluate m d.svm --on-error quarantine=to-m", "name m d* -o d.svm", "name m d* -o to-d.svm"),
    ):
        assert status_of(command.split()) in (1, 2), command
        assert capfd.readouterr().err.count("\n") == 1
        assert {name: (folder / name).read_bytes() for name in kept} == kept, command
        assert not (folder / "n").exists()
        tried(1)
    assert data.stat().st_size == len(kept["d.svm"])
    with pytest.raises(DataError, match=r"h\.svm exists and is not a quarantine file"):
        library.train(data, holdout=held, on_error="quarantine=h.svm")
    assert held.read_bytes() == kept["h.svm"]


@pytest.mark.hostile
def test_two_trainings_into_one_model(folder: Path) -> None:
    """The last to finish writes the whole model."""
    first, last = svmlight(folder / "a.svm", 30_000), svmlight(folder / "b.svm", 30_000, seed=1)
    wanted = []
    for data in (first, last):
        assert thresher("train", data, "-m", "n", "-q", folder=folder)[0] == 0
        wanted.append((folder / "n").read_bytes())
        (folder / "n").unlink()
    running = [start("train", data, "-m", "m", "-q", folder=folder) for data in (first, last, first, last)]
    for process in running:
        process.communicate(timeout=300)
        assert process.returncode == 0
    assert (folder / "m").read_bytes() in wanted
    assert names_in(folder) == ["a.svm", "b.svm", "m"]
