"""Convert data sets as they are published to the files that the experiments read.

``.venv/bin/python -m experiments.papers.convert KIND FILE... --data DIR``, in the folder of the repository;
files may be plain, .gz, .bz2 or .xz. docs/papers/data.md tells where the files are from.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.papers.digits import mnist
from experiments.papers.published import (
    ConvertError,
    features_of,
    lines_of,
    number_of,
    save,
    stem_of,
    text_of,
)
from experiments.papers.stories import rcv1

MISSING = "?"


class Table(NamedTuple):
    """A UCI set: its file and the meaning of its columns, which count from 0."""

    file: str
    columns: int
    label: int
    classes: tuple[str, ...] = ()
    """the labels of class 1 and of class -1; without, labels are numbers and stay as they are"""
    numbered: int = 0
    """labels are the numbers from 1 to this one"""
    unused: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    """categories: one feature for each value, of which a missing one is one"""
    separator: str | None = ","


UCI = {
    "ad": Table("ad.data", 1559, 1558, ("ad.", "nonad.")),
    "spambase": Table("spambase.data", 58, 57, ("1", "0")),
    "krvskp": Table("kr-vs-kp.data", 37, 36, ("won", "nowin"), words=tuple(range(36))),
    "shrooms": Table("agaricus-lepiota.data", 23, 0, ("p", "e"), words=tuple(range(1, 23))),
    "crx": Table("crx.data", 16, 15, ("+", "-"), words=(0, 3, 4, 5, 6, 8, 9, 11, 12)),
    "housing": Table("housing.data", 14, 13, separator=None),
    "magic04": Table("magic04.data", 11, 10, ("g", "h")),
    "wbc": Table("breast-cancer-wisconsin.data", 11, 10, ("4", "2"), unused=(0,)),
    "wdbc": Table("wdbc.data", 32, 1, ("M", "B"), unused=(0,)),
    "wpbc": Table("wpbc.data", 35, 1, ("R", "N"), unused=(0,)),
    "zoo": Table("zoo.data", 18, 17, numbered=7, unused=(0,)),
}


def mixed(rows: Sequence[str]) -> list[str]:
    """The rows in a fixed random order: many published files are sorted by class."""
    return [rows[k] for k in np.random.RandomState(0).permutation(len(rows))]


def uci(paths: Sequence[Path], folder: Path) -> dict[Path, bytes]:
    """UCI .data files as uci/NAME/NAME.svm.gz."""
    contents = {}
    for path in paths:
        names = [name for name, table in UCI.items() if table.file == stem_of(path)]
        if not names:
            known = ", ".join(table.file for table in UCI.values())
            raise ConvertError(f"{path}: the known files are {known}")
        table = UCI[names[0]]
        rows = {number: _cells(path, number, line, table) for number, line in lines_of(path)}
        ids = _ids(list(rows.values()), table)
        lines = [_svmlight(f"{path}, line {number}", row, table, ids) for number, row in rows.items()]
        contents[folder / "uci" / names[0] / f"{names[0]}.svm.gz"] = text_of(mixed(lines), str(path))
    return contents


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
    if table.numbered:
        if label not in map(str, range(1, table.numbered + 1)):
            raise ConvertError(f"{where}: the label is {label!r}, not a number from 1 to {table.numbered}")
    elif not table.classes:
        number_of(where, label)
    elif label in table.classes:
        label = "+1" if label == table.classes[0] else "-1"
    else:
        raise ConvertError(f"{where}: the label is {label!r}, not {' or '.join(table.classes)}")
    words = [label]
    for column, text in enumerate(row):
        if (column, text) in ids and text:
            words.append(f"{ids[column, text]}:1")
        elif (column, "") in ids and text != MISSING:
            value = number_of(where, text)
            words += [f"{ids[column, '']}:{value:.7g}"] if value else []
    return " ".join(words)


def svmlight(path: Path) -> bytes:
    """A two-class file of LIBSVM or SVM-light without its comments, in the order of its rows."""
    found = []
    for number, line in lines_of(path):
        label, _, features = line.partition(" ")
        where = f"{path}, line {number}"
        if label not in ("1", "+1", "-1"):
            raise ConvertError(f"{where}: the label is {label!r}, not +1 or -1")
        found.append(f"{label} {features_of(where, features)}")
    return text_of(found, str(path))


def acq(paths: Sequence[Path], folder: Path) -> dict[Path, bytes]:
    """train.dat and test.dat of SVM-light's example1 as acq_train and acq_test of reuters/."""
    for path in paths:
        if stem_of(path) not in ("train.dat", "test.dat"):
            raise ConvertError(f"{path}: the files of SVM-light's example are train.dat and test.dat")
    return {folder / "reuters" / f"acq_{stem_of(path)}.gz": svmlight(path) for path in paths}


KINDS = {"mnist": mnist, "uci": uci, "acq": acq}


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
            contents = rcv1(given.train, given.test, given.topics, given.data)
        else:
            contents = KINDS[given.kind](given.files, given.data)
        save(contents)
    except ConvertError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
