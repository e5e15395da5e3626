"""Convert data sets as they are published to the files that the experiments read.

``python -m experiments.papers.convert KIND FILE... --data DIR``; files may be plain, .gz, .bz2 or .xz.
docs/papers/data.md tells where the files are from.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from thresher.learning.wholefile import whole_file

UNPACKED = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
MNIST = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
MISSING = "?"
_FEATURES = re.compile(r"(?:\s*\d+:[-+.\deE]+)*\s*")


class ConvertError(Exception):
    """A file that is not what it should be."""


class Table(NamedTuple):
    """A UCI set: its file and the meaning of its columns, which count from 0."""

    file: str
    columns: int
    label: int
    classes: tuple[str, ...] = ()
    """the labels of class 1 and of class -1; without, labels are numbers and stay as they are"""
    unused: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    """categories: one feature for each value, of which a missing one is one"""
    separator: str | None = ","


UCI = {
    "spambase": Table("spambase.data", 58, 57, ("1", "0")),
    "krvskp": Table("kr-vs-kp.data", 37, 36, ("won", "nowin"), words=tuple(range(36))),
    "shrooms": Table("agaricus-lepiota.data", 23, 0, ("p", "e"), words=tuple(range(1, 23))),
    "crx": Table("crx.data", 16, 15, ("+", "-"), words=(0, 3, 4, 5, 6, 8, 9, 11, 12)),
    "housing": Table("housing.data", 14, 13, separator=None),
    "wbc": Table("breast-cancer-wisconsin.data", 11, 10, ("4", "2"), unused=(0,)),
    "wdbc": Table("wdbc.data", 32, 1, ("M", "B"), unused=(0,)),
    "wpbc": Table("wpbc.data", 35, 1, ("R", "N"), unused=(0,)),
    "zoo": Table("zoo.data", 18, 17, unused=(0,)),
}


def bytes_of(path: Path) -> bytes:
    """The content of a file, decompressed."""
    try:
        return UNPACKED.get(path.suffix, bytes)(path.read_bytes())
    except OSError as error:
        raise ConvertError(f"{path}: {error.strerror or error}") from error
    except (EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise ConvertError(f"{path}: damaged or cut short: {error}") from error


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is neither empty nor a comment."""
    for number, line in enumerate(bytes_of(path).decode("latin-1").splitlines(), 1):
        text = line.partition("#")[0].rstrip()
        if text.strip():
            yield number, text


def stem_of(path: Path) -> str:
    """The published name of a file, without the ending of its compression."""
    return path.stem if path.suffix in UNPACKED else path.name


def write(path: Path, content: bytes) -> None:
    """Write gzip, the same bytes for the same content."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, "wb") as file:
            file.write(gzip.compress(content, mtime=0))
    except OSError as error:
        raise ConvertError(f"{error.filename}: {error.strerror}") from error
    print(path)


def write_lines(path: Path, lines: Iterable[str], source: str) -> None:
    """Write lines of text, made from the files `source`, which must have some."""
    content = "".join(f"{line}\n" for line in lines)
    if not content:
        raise ConvertError(f"{source}: no rows")
    write(path, content.encode())


def mixed(rows: Sequence[str]) -> list[str]:
    """The rows in a fixed random order: many published files are sorted by class."""
    return [rows[k] for k in np.random.RandomState(0).permutation(len(rows))]


def mnist(path: Path, folder: Path) -> None:
    """Check an idx file of MNIST and write it to mnist/."""
    name = stem_of(path).replace(".idx", "-idx")
    if name not in MNIST:
        raise ConvertError(f"{path}: the files of MNIST are {', '.join(MNIST)}")
    content, dimensions = bytes_of(path), 3 if "idx3" in name else 1
    head = 4 * (1 + dimensions)
    if len(content) < head or content[:4] != bytes([0, 0, 8, dimensions]):
        raise ConvertError(f"{path}: not an idx file of {'images' if dimensions == 3 else 'labels'}")
    sizes = struct.unpack(f">{dimensions}I", content[4:head])
    size = int(np.prod(sizes, dtype=np.int64))
    if len(content) != head + size:
        raise ConvertError(f"{path}: {len(content) - head:,} bytes of data; its header says {size:,}")
    write(folder / "mnist" / f"{name}.gz", content)


def uci(path: Path, folder: Path) -> None:
    """Write a UCI .data file as uci/NAME/NAME.svm.gz."""
    names = [name for name, table in UCI.items() if table.file == stem_of(path)]
    if not names:
        known = ", ".join(table.file for table in UCI.values())
        raise ConvertError(f"{path}: the known files are {known}")
    table = UCI[names[0]]
    rows = {number: _cells(path, number, line, table) for number, line in lines_of(path)}
    ids = _ids(list(rows.values()), table)
    lines = [_svmlight(f"{path}, line {number}", row, table, ids) for number, row in rows.items()]
    write_lines(folder / "uci" / names[0] / f"{names[0]}.svm.gz", mixed(lines), str(path))


def _cells(path: Path, number: int, line: str, table: Table) -> list[str]:
    cells = [cell.strip() for cell in line.split(table.separator)]
    if len(cells) != table.columns:
        raise ConvertError(f"{path}, line {number}: {len(cells)} columns, not {table.columns}")
    return cells


def _ids(rows: Sequence[Sequence[str]], table: Table) -> dict[tuple[int, str], int]:
    """Ids from 1: of each column of numbers (with the value ""), and of each value of the others."""
    found: list[tuple[int, str]] = []
    for column in range(table.columns):
        if column in table.words:
            found += [(column, value) for value in sorted({row[column] for row in rows})]
        elif column != table.label and column not in table.unused:
            found.append((column, ""))
    return {one: number for number, one in enumerate(found, 1)}


def _svmlight(where: str, row: Sequence[str], table: Table, ids: dict[tuple[int, str], int]) -> str:
    """A row as svmlight; zeros and missing numbers are left out."""
    label = row[table.label]
    if not table.classes:
        _number(where, label)
    elif label in table.classes:
        label = "+1" if label == table.classes[0] else "-1"
    else:
        raise ConvertError(f"{where}: the label is {label!r}, not {' or '.join(table.classes)}")
    words = [label]
    for column, text in enumerate(row):
        if (column, text) in ids and text:
            words.append(f"{ids[column, text]}:1")
        elif (column, "") in ids and text != MISSING:
            value = _number(where, text)
            words += [f"{ids[column, '']}:{value:.7g}"] if value else []
    return " ".join(words)


def _number(where: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConvertError(f"{where}: {text!r} is not a number") from error


def _features(path: Path, number: int, text: str) -> str:
    """The features of a line, ``id:value id:value ...``."""
    if not _FEATURES.fullmatch(text):
        raise ConvertError(f"{path}, line {number}: the features are not id:value pairs")
    return text.strip()


def svmlight(path: Path, target: Path) -> None:
    """Write a two-class file of LIBSVM or SVM-light without its comments, in the order of its rows."""
    found = []
    for number, line in lines_of(path):
        label, _, features = line.partition(" ")
        if label not in ("1", "+1", "-1"):
            raise ConvertError(f"{path}, line {number}: the label is {label!r}, not +1 or -1")
        found.append(f"{label} {_features(path, number, features)}")
    write_lines(target, found, str(path))


def acq(paths: Sequence[Path], folder: Path) -> None:
    """Write train.dat and test.dat of SVM-light's example1 to reuters/, as acq_train and acq_test."""
    for path in paths:
        if stem_of(path) not in ("train.dat", "test.dat"):
            raise ConvertError(f"{path}: the files of SVM-light's example are train.dat and test.dat")
        svmlight(path, folder / "reuters" / f"acq_{stem_of(path)}.gz")


class Story(NamedTuple):
    """A story of RCV1: its topics and its features, as text."""

    topics: tuple[str, ...]
    features: str


def of_libsvm(path: Path, names: Sequence[str]) -> Iterator[Story]:
    """Stories of a multi-label LIBSVM file, ``3,17 id:value ...``; label k is the topic names[k]."""
    for number, line in lines_of(path):
        labels, _, features = ("", "", line.strip()) if line[0] == " " else line.partition(" ")
        try:
            topics = tuple(names[int(label)] for label in labels.split(",") if label)
        except (ValueError, IndexError) as error:
            raise ConvertError(
                f"{path}, line {number}: {labels!r} are not labels below {len(names)}"
            ) from error
        yield Story(topics, _features(path, number, features))


def of_lyrl(path: Path, topics: dict[str, list[str]]) -> Iterator[Story]:
    """Stories of a file of vectors of RCV1-v2, ``document id:value ...``."""
    for number, line in lines_of(path):
        document, _, features = line.partition(" ")
        if document not in topics:
            raise ConvertError(f"{path}, line {number}: no topics for document {document!r}")
        yield Story(tuple(topics[document]), _features(path, number, features))


def qrels(path: Path) -> dict[str, list[str]]:
    """Topics by document of rcv1-v2.topics.qrels, ``topic document 1``."""
    found: dict[str, list[str]] = {}
    for number, line in lines_of(path):
        words = line.split()
        if len(words) != 3:
            raise ConvertError(f"{path}, line {number}: not a topic, a document and 1")
        found.setdefault(words[1], []).append(words[0])
    return found


def reader_of(topics: Path) -> Callable[[Path], Iterator[Story]]:
    """How to read stories: with topics by document, or with a list of the topics' names, one a line."""
    if "qrels" in topics.name:
        found = qrels(topics)
        return lambda path: of_lyrl(path, found)
    names = [text.strip() for _, text in lines_of(topics)]
    return lambda path: of_libsvm(path, names)


def rcv1(train: Sequence[Path], test: Sequence[Path], topics: Path, folder: Path) -> None:
    """Write the rows of RCV1 with CCAT as class 1, and their topics, without repeated rows."""
    stories, seen = reader_of(topics), set[str]()
    for part, paths in (("train", train), ("test", test)):
        kept = []
        for path in paths:
            for story in stories(path):
                if story.features not in seen:
                    seen.add(story.features)
                    kept.append(story)
        order = np.random.RandomState(0).permutation(len(kept))
        kept = [kept[k] for k in order]
        lines = [f"{'+1' if 'CCAT' in story.topics else '-1'} {story.features}" for story in kept]
        source, of_each = ", ".join(map(str, paths)), [" ".join(sorted(story.topics)) for story in kept]
        write_lines(folder / "rcv1" / f"rcv1_ccat_{part}.svm.gz", lines, source)
        write_lines(folder / "rcv1" / f"rcv1_{part}_topics.txt.gz", of_each, source)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m experiments.papers.convert",
        description="Convert data sets as they are published to the files that the experiments read.",
    )
    kinds = made.add_subparsers(dest="kind", required=True, metavar="KIND")
    for name, what in (
        ("mnist", "the idx files of MNIST"),
        ("uci", "UCI files: " + ", ".join(table.file for table in UCI.values())),
        ("acq", "train.dat and test.dat of SVM-light's example1"),
    ):
        one = kinds.add_parser(name, help=what)
        one.add_argument("files", nargs="+", type=Path, metavar="FILE")
    one = kinds.add_parser("rcv1", help="RCV1-v2: vectors as in LYRL2004, or LIBSVM's files with topics")
    one.add_argument("--train", nargs="+", type=Path, required=True, metavar="FILE")
    one.add_argument("--test", nargs="+", type=Path, required=True, metavar="FILE")
    names = "rcv1-v2.topics.qrels, or for LIBSVM's files a list of topics: the name of label 0, of 1 ..."
    one.add_argument("--topics", type=Path, required=True, metavar="FILE", help=names)
    for each in kinds.choices.values():
        each.add_argument("--data", type=Path, required=True, metavar="DIR", help="the data folder")
    return made


def main(words: Sequence[str] | None = None) -> None:
    """Convert; exit with a message for a file that is not what it should be."""
    given = parser().parse_args(words)
    try:
        if given.kind == "rcv1":
            rcv1(given.train, given.test, given.topics, given.data)
        elif given.kind == "acq":
            acq(given.files, given.data)
        else:
            for path in given.files:
                {"mnist": mnist, "uci": uci}[given.kind](path, given.data)
    except ConvertError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
