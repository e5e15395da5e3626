"""Data sets of every kind, in memory: unscaled, and shuffled if the file is sorted."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tasks import split_rows
from thresher.data import Chunk, concat, open_source
from thresher.data.layout import Layout

Parts = tuple[Chunk, Chunk]
UCI = ("spambase", "krvskp", "shrooms", "crx", "wbc", "wdbc", "wpbc")
CLICK_NUMBERS, CLICK_COLUMNS = 13, 39


class Corpus(NamedTuple):
    """A training part and a test part; `files` names the files that `load` reads from the data folder."""

    name: str
    outputs: str
    files: tuple[str, ...]
    load: Callable[[Path], Parts]
    chosen: bool = False
    """whether the constants of the default rule were chosen on this set; reported separately"""

    def found(self, folder: Path) -> bool:
        return all((folder / name).exists() for name in self.files)


def read(paths: Path | list[Path], domain: str, layout: Layout | None = None) -> Chunk:
    """Read all rows of the files."""
    chunk = concat(list(open_source(paths, domain=domain, layout=layout).chunks()))
    if domain != "binary":
        return chunk
    return replace(
        chunk, labels=np.where(chunk.labels > 0, 1, -1).astype(np.float32)
    )  # all learners take 1 and -1


def mixed(chunk: Chunk, rows: int | None = None) -> Chunk:
    """Return the rows in a fixed random order, or the first `rows` of them."""
    order = np.random.default_rng(0).permutation(len(chunk))[:rows]
    return concat([chunk.rows(int(i), int(i) + 1) for i in order])


def renumbered(parts: Parts) -> Parts:
    """Renumber the keys from 1, in order, for learners that need one column per key."""
    keys = np.unique(np.concatenate([part.keys for part in parts]))
    train, test = (
        replace(part, keys=np.searchsorted(keys, part.keys).astype(np.uint64) + 1) for part in parts
    )
    return train, test


def _files(train: str, test: str, domain: str, folder: Path, rows: int | None = None) -> Parts:
    return mixed(read(folder / train, domain), rows), read(folder / test, domain)


def _file(name: str, domain: str, folder: Path) -> Parts:
    return split_rows(mixed(read(folder / name, domain)))


def _texts(train: str, test: str, layout: Layout, domain: str, folder: Path) -> Parts:
    return renumbered((read(folder / train, domain, layout), read(folder / test, domain, layout)))


def _raw_clicks(name: str, folder: Path) -> Parts:
    numeric = tuple(f"{k}" for k in range(2, 2 + CLICK_NUMBERS))
    categories = tuple(f"{k}" for k in range(2 + CLICK_NUMBERS, 2 + CLICK_COLUMNS))
    layout = Layout(format="tsv", label="1", header=False, numeric=numeric, categorical=categories)
    return renumbered(split_rows(read(folder / name, "binary", layout)))


def digits(folder: Path, train: int = 10_000, test: int = 5_000) -> Parts:
    parts = []
    for name, rows in (("train", train), ("t10k", test)):
        pixels = idx(folder / f"mnist/{name}-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:rows]
        labels = idx(folder / f"mnist/{name}-labels-idx1-ubyte.gz", 8)[:rows]
        row, column = np.nonzero(pixels)
        indptr = np.concatenate([[0], np.cumsum((pixels > 0).sum(axis=1))])
        parts.append(Chunk.from_csr(indptr, column, pixels[row, column], labels + 1.0, np.ones(len(labels))))
    return parts[0], parts[1]


def idx(path: Path, head: int) -> Any:
    """Return the bytes of an MNIST file after its head: 16 bytes for images, 8 for labels."""
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=head)


def _dense(X: Any, y: Any) -> Chunk:
    row, column = np.nonzero(X)
    indptr = np.concatenate([[0], np.cumsum((X != 0).sum(axis=1))])
    return Chunk.from_csr(indptr, column, X[row, column], y, np.ones(len(y)))


def _diabetes(folder: Path) -> Parts:
    from sklearn.datasets import load_diabetes

    return split_rows(mixed(_dense(*load_diabetes(return_X_y=True, scaled=False))))


def _dear_houses(folder: Path) -> Parts:
    """Scale prices from thousands of dollars to dollars, and rooms to thousandths."""
    chunk = mixed(read(folder / "uci/housing/housing.svm.gz", "real"))
    values = np.where(chunk.keys == 6, chunk.values / 1000, chunk.values).astype(np.float32)
    return split_rows(replace(chunk, labels=(chunk.labels * 1000).astype(np.float32), values=values))


def _short(folder: Path) -> Parts:
    train, test = _files("reuters/acq_train.dat.gz", "reuters/acq_test.dat.gz", "binary", folder, 200)
    return train, test


def _reviews(name: str) -> tuple[tuple[str, str], Callable[[Path], Parts]]:
    names = (
        f"amazon-reviews/bow5000/{name}_train.svmlight.gz",
        f"amazon-reviews/bow5000/{name}_test.svmlight.gz",
    )
    return names, partial(_files, *names, "binary")


def _imdb(label: str, ignore: str, domain: str) -> tuple[tuple[str, str], Callable[[Path], Parts]]:
    names = "imdb/imdb-train.jsonl.gz", "imdb/imdb-test.jsonl.gz"
    layout = Layout(format="jsonl", label=label, text=("text",), ignore=(ignore, "id"))
    return names, partial(_texts, *names, layout, domain)


def _pair(train: str, test: str) -> tuple[tuple[str, str], Callable[[Path], Parts]]:
    return (train, test), partial(_files, train, test, "binary")


def _from_one_file(name: str, domain: str = "binary") -> tuple[tuple[str], Callable[[Path], Parts]]:
    return (name,), partial(_file, name, domain)


def corpora() -> Iterable[Corpus]:
    """Return all sets: small and large, sparse and dense, scaled and unscaled."""
    rcv1 = ("rcv1/rcv1_ccat_train.svm.gz", "rcv1/rcv1_ccat_test.svm.gz")
    hashed = ("criteo/criteo_hashed20_0-19999.svm.gz", "criteo/criteo_hashed20_20000-39999.svm.gz")
    raw, housing = "criteo/criteo_first10k.txt.gz", "uci/housing/housing.svm.gz"
    ads = ("ipinyou/train.fm.txt.gz", "ipinyou/test.fm.txt.gz")
    acq = ("reuters/acq_train.dat.gz", "reuters/acq_test.dat.gz")
    yield Corpus("RCV1-CCAT", "one", *_pair(*rcv1), chosen=True)
    yield Corpus("Criteo hashed", "one", *_pair(*hashed), chosen=True)
    yield Corpus("Criteo raw", "one", (raw,), partial(_raw_clicks, raw))
    yield Corpus("iPinYou", "one", *_pair(*ads))
    for k, name in enumerate(("books", "dvd", "electronics", "kitchen")):
        yield Corpus(name, "one", *_reviews(name), chosen=k % 2 == 0)
    yield Corpus("IMDB words", "one", *_imdb("label", "rating", "binary"))
    yield Corpus("Reuters acq", "one", *_pair(*acq), chosen=True)
    yield Corpus("short texts", "one", acq, _short)
    yield Corpus("w8a", "one", *_from_one_file("w8a/w8a.gz"), chosen=True)
    for k, name in enumerate(UCI):
        yield Corpus(name, "one", *_from_one_file(f"uci/{name}/{name}.svm.gz"), chosen=k % 2 == 1)
    yield Corpus("news20", "classes:1-20", *_from_one_file("news20-libsvm/news20.gz", "classes:1-20"))
    yield Corpus("MNIST", "classes:1-10", ("mnist/train-images-idx3-ubyte.gz",), digits)
    yield Corpus("zoo", "classes:1-7", *_from_one_file("uci/zoo/zoo.svm.gz", "classes:1-7"))
    yield Corpus("housing", "value", *_from_one_file(housing, "real"), chosen=True)
    yield Corpus("dear houses", "value", (housing,), _dear_houses)
    yield Corpus("diabetes", "value", (), _diabetes)
    yield Corpus("IMDB rating", "value", *_imdb("rating", "label", "real"))
