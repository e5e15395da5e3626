"""Real data in every format give the same model, bit for bit; hashes match Vowpal Wabbit's. Needs --data."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks import report, twins
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import train
from thresher.data import Chunk, concat, open_source
from thresher.data.layout import Layout
from thresher.learning.files import model_file

RAW, HASHED = "criteo/criteo_first10k.txt.gz", "criteo/criteo_hashed20_0-19999.svm.gz"
BITS = 20


class Hashed(NamedTuple):
    """A file of rows hashed by Vowpal Wabbit, compared with thresher's hashes of the same rows."""

    rows: int
    features: int
    same: bool
    """labels and keys"""
    doubled: int
    """values that are 2 instead of 1: two names of a row share an index"""
    others: int
    """other values that differ"""


def models(rows: list[twins.Cells], folder: Path) -> dict[str, tuple[Any, ...]]:
    """Return header and tensors of a model for each format, without its layout and its line counts."""
    found = {}
    for name, write in twins.WRITERS.items():
        write(rows, folder / name)
        model = train(
            folder / name, "ftrl:alpha=0.1,l1=0.5", layout=twins.layout_of(name), passes=2, cache=False
        )
        header = model_file.header_of(model)
        header["recipe"] = {key: value for key, value in header["recipe"].items() if key != "layout"}
        header.pop("record")
        tensors = {key: array.tobytes() for key, array in model_file.tensors_of(model).items()}
        found[name] = (header, tensors)
    return found


def hashed(raw: Path, file: Path, count: int, folder: Path) -> Hashed:
    """Compare the first `count` rows of a click log, hashed by ``--hash vw``, with a file of hashed rows."""
    text, expected = folder / "raw.vw", folder / "hashed.svm"
    with gzip.open(raw, "rt", encoding="utf-8", newline="\n") as read, open(text, "w") as write:
        for line in islice(read, count):
            label, *cells = line.rstrip("\n").split("\t")
            names = zip(twins.COLUMNS[1:], cells, strict=True)
            words = " ".join(f"{name}={cell}" for name, cell in names if cell)
            write.write(f"{'1' if label == '1' else '-1'} |categorical {words}\n")
    with gzip.open(file, "rb") as packed, open(expected, "wb") as plain:
        plain.writelines(islice(packed, count))
    ours, theirs = _all(text, Layout("vw", hash="vw", bits=BITS)), _all(expected, Layout("svmlight"))
    pairs = (ours.indptr, theirs.indptr), (ours.keys, theirs.keys), (ours.labels, theirs.labels)
    same = all(np.array_equal(a, b) for a, b in pairs)
    differ = ours.values != theirs.values if same else np.ones(1, bool)
    twice = (ours.values == 2) & (theirs.values == 1) if same else np.zeros(1, bool)
    return Hashed(len(ours), ours.nnz, same, int(np.sum(differ & twice)), int(np.sum(differ & ~twice)))


def _all(path: Path, layout: Layout) -> Chunk:
    return concat([concat([chunk]) for chunk in open_source(path, layout=layout).chunks()])


def run(setting: Setting) -> list[Goal]:
    """Train from every format, compare, print and check the goals."""
    if setting.data is None or not (setting.data / RAW).exists():
        return []
    with TemporaryDirectory() as folder:
        found = models(twins.rows_of(setting.data / RAW), Path(folder))
        sizes = {name: (Path(folder) / name).stat().st_size / 1e6 for name in found}
        against = hashed(setting.data / RAW, setting.data / HASHED, 10_000, Path(folder))
    first = next(iter(found.values()))
    rows = [
        (name, f"{sizes[name]:.2f}", f"{model[0]['nonzero']:,}", "yes" if model == first else "NO")
        for name, model in found.items()
    ]
    report.table("10,000 clicks of Criteo, two passes", ("", "MB", "non-zeros", "same as the first"), rows)
    equal = sum(model == first for model in found.values())
    doubled = (
        f"{against.doubled} values of {against.features:,} are 2 for 1, {against.others} differ otherwise"
    )
    return [
        Goal("formats that give the same model", f"{len(found)}", f"{equal}", equal == len(found)),
        Goal(
            "Criteo hashed like Vowpal Wabbit: labels and indices",
            "equal",
            f"{'equal' if against.same else 'not equal'}; {doubled}",
            against.same and against.others == 0,
        ),
    ]
