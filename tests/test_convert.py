"""Published files become files that the experiments of the papers read."""

import bz2
import struct
from pathlib import Path

import numpy as np
import pytest

from benchmarks.corpora import corpora
from experiments.papers.convert import UCI, main
from experiments.papers.digits import MNIST
from experiments.papers.sets import Sets
from thresher.data import Chunk

ONES = ",1" * 29
# set -> two lines of its published file, and the same rows as label and features
CASES = {
    "spambase": (["0," * 55 + "2.5,7,1", "0.25," + "0," * 56 + "0"], ["1 56:2.5 57:7", "-1 1:0.25"]),
    "krvskp": (
        ["f" + ",n" * 35 + ",won", "t" + ",n" * 35 + ",nowin"],
        ["1 1:1" + "".join(f" {k}:1" for k in range(3, 38)), "-1" + "".join(f" {k}:1" for k in range(2, 38))],
    ),
    # ids: 1 "A1=?", 2 "A1=b", 3 A2, 4 A3, 5 "A4=u", ... 10 "A9=f", 11 "A9=t", ..., 16 A14, 17 A15
    "crx": (
        ["b,30.83,0,u,g,w,v,1.25,t,t,01,f,g,00202,0,+", "?,?,4,u,g,w,v,2,f,t,1,f,g,?,7,-"],
        [
            "1 2:1 3:30.83 5:1 6:1 7:1 8:1 9:1.25 11:1 12:1 13:1 14:1 15:1 16:202",
            "-1 1:1 4:4 5:1 6:1 7:1 8:1 9:2 10:1 12:1 13:1 14:1 15:1 17:7",
        ],
    ),
    "housing": (
        [" 0.5  18.00" + " 0" * 10 + "  4.98  24.00", " 0.0" * 13 + " 21.5"],
        ["24 1:0.5 2:18 13:4.98", "21.5"],
    ),
    "zoo": (["bear,1" + ",0" * 15 + ",1", "wasp" + ",0" * 12 + ",6,0,0,0,6"], ["1 1:1", "6 13:6"]),
}


def as_text(chunk: Chunk) -> list[str]:
    rows = []
    for i in range(len(chunk)):
        inside = slice(chunk.indptr[i], chunk.indptr[i + 1])
        pairs = zip(chunk.keys[inside], chunk.values[inside], strict=True)
        rows.append(" ".join([f"{chunk.labels[i]:g}", *(f"{key}:{value:g}" for key, value in pairs)]))
    return rows


def convert(folder: Path, kind: str, *words: str | Path) -> Sets:
    """Convert, and open the folder as the pages do."""
    main([kind, *map(str, words), "--data", str(folder)])
    return Sets(folder)


@pytest.mark.parametrize("name", CASES)
def test_uci_files_become_what_the_pages_read(name: str, tmp_path: Path) -> None:
    lines, rows = CASES[name]
    given = tmp_path / UCI[name].file
    given.write_text("\n".join(lines) + "\n\n")
    sets = convert(tmp_path, "uci", given)
    if name == "zoo":
        found = sets.read("uci/zoo/zoo.svm.gz", "classes:1-7")
    else:
        found = sets.uci(name)
    assert sorted(as_text(found)) == sorted(rows)


def images(count: int) -> bytes:
    pixels = np.zeros((count, 784), np.uint8)
    pixels[np.arange(count), np.arange(count)] = np.arange(count) + 1
    return struct.pack(">4I", 0x803, count, 28, 28) + pixels.tobytes()


def digits(count: int) -> bytes:
    return struct.pack(">2I", 0x801, count) + bytes(range(count))


def test_mnist_is_checked_and_read(tmp_path: Path) -> None:
    given = [tmp_path / f"{name}.bz2" for name in MNIST]
    for path in given:
        path.write_bytes(bz2.compress(images(3) if "idx3" in path.name else digits(3)))
    convert(tmp_path, "mnist", *given)
    (one,) = (corpus for corpus in corpora() if corpus.name == "MNIST")
    assert one.found(tmp_path)
    for part in one.load(tmp_path):
        assert as_text(part) == ["1 0:1", "2 1:2", "3 2:3"]


def test_stories_with_topics_become_ccat_and_topics(tmp_path: Path) -> None:
    """LIBSVM's files number the topics; a story that was there before is left out."""
    (tmp_path / "names.txt").write_text("C15\nCCAT\nGCAT\n")
    (tmp_path / "train.svm").write_text("0,1 3:0.5 7:0.25\n2 4:1\n2 4:1\n")
    (tmp_path / "test.svm").write_text(" 9:1\n2 4:1\n1,2 8:1\n")
    rcv1 = (
        "--train",
        tmp_path / "train.svm",
        "--test",
        tmp_path / "test.svm",
        "--topics",
        tmp_path / "names.txt",
    )
    sets = convert(tmp_path, "rcv1", *rcv1)
    train, test = sets.rcv1()
    assert sorted(as_text(train)) == ["-1 4:1", "1 3:0.5 7:0.25"]
    assert sorted(as_text(test)) == ["-1 9:1", "1 8:1"]
    train, test = sets.rcv1("GCAT")
    assert sorted(as_text(train)) == ["-1 3:0.5 7:0.25", "1 4:1"]
    assert sorted(as_text(test)) == ["-1 9:1", "1 8:1"]
