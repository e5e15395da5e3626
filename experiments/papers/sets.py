"""Data sets of the papers, in memory."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import mixed, read
from benchmarks.peers import csr
from experiments.papers.digits import checked
from experiments.papers.known import COMMITTED, TOP, Contents
from experiments.papers.published import ConvertError
from thresher.data import Chunk
from thresher.data.errors import OneLineError

SAMPLES = Path(__file__).parents[2] / "examples" / "data"
RCV1 = "rcv1/rcv1_ccat_{}.svm.gz"


class MissingDataError(Exception):
    """A file of the data folder is missing or damaged; the message, one line, names it."""


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """`MissingDataError` if the block, which reads this file, finds it damaged."""
    try:
        yield
    except (OneLineError, ConvertError) as error:  # they name the file
        raise MissingDataError(str(error)) from error
    except OSError as error:
        raise MissingDataError(f"{path} is damaged: {error.strerror or error}") from error
    except (EOFError, ValueError, zlib.error) as error:
        raise MissingDataError(f"{path} is damaged: {error}") from error


class Parts(NamedTuple):
    """A training part and a test part; labels are 1 and -1, classes from 0, or real numbers."""

    train: Chunk
    test: Chunk


class Sets:
    """Data sets from a folder; the small ones of `quick` need none."""

    def __init__(self, folder: Path | None, *, quick: bool = False) -> None:
        self.folder, self.quick = folder, quick
        self.used = set[str]()
        """the files read; whoever wants those of a page empties it before"""
        self.other: dict[str, str] = {}
        """files that are not what the committed pages were made from: what differs"""
        self._parse_rows = lru_cache(maxsize=8)(self._read)  # an unchanged file is parsed once

    def path(self, name: str) -> Path:
        """A file of the folder; `MissingDataError` if there is none."""
        if self.folder is None or not (self.folder / name).exists():
            raise MissingDataError(f"{name} is not in {self.folder}")
        if not (self.folder / name).is_file():
            raise MissingDataError(f"{self.folder / name} is not a file")
        self.used.add(name)
        return self.folder / name

    def found(self, name: str, ours: Contents) -> None:
        """Compare what is in a file with what the committed pages were made from."""
        known = COMMITTED.get(name)
        self.other.pop(name, None)
        if known is not None and (difference := ours.difference(known)):
            self.other[name] = f"{name}: {difference}"

    def read(self, name: str, domain: str = "binary") -> Chunk:
        """The rows of a file."""
        self.path(name)
        return self._parse_rows(name, domain)

    def _read(self, name: str, domain: str) -> Chunk:
        path = self.path(name)
        with intact(path):
            rows = read(path, domain)
        counts = Counter(f"class {label:g}" for label in rows.labels) if domain != "real" else {}
        self.found(name, Contents(len(rows), len(np.unique(rows.keys)), counts))
        return rows

    def rcv1(self, topic: str = "CCAT") -> Parts:
        """RCV1, a top category against the rest: 17,189 and 5,301 rows; quick: 200 and 100 of CCAT."""
        if self.quick:
            sample = read(SAMPLES / "rcv1_train2000.dat.gz", "binary")
            return Parts(sample.rows(0, 200), sample.rows(200, 300))
        found = (self._topic(part, topic) for part in ("train", "test"))
        return Parts(*found)

    def _topic(self, part: str, topic: str) -> Chunk:
        rows = self.read(RCV1.format(part))
        if topic == "CCAT":
            return rows
        topics = self._topics(f"rcv1/rcv1_{part}_topics.txt.gz")
        if len(topics) != len(rows):
            lines, named = f"{len(topics):,} lines", f"rcv1/rcv1_{part}_topics.txt.gz"
            raise MissingDataError(f"{named} has {lines}, and {RCV1.format(part)} {len(rows):,} rows")
        return replace(rows, labels=signs(np.array([topic in found for found in topics])))

    def _topics(self, name: str) -> list[list[str]]:
        path = self.path(name)
        with intact(path), gzip.open(path, "rt", encoding="ascii") as lines:
            topics = [line.split() for line in lines]
        counts = {topic: sum(topic in found for found in topics) for topic in TOP}
        self.found(name, Contents(len(topics), labels=counts))
        return topics

    def reviews(self, name: str) -> Parts:
        """Reviews of ``books``, ``dvd``, ``electronics`` or ``kitchen``: 2,000 rows to train."""
        found = (self.read(f"amazon-reviews/bow5000/{name}_{part}.svmlight.gz") for part in ("train", "test"))
        return Parts(*found)

    def mnist(self, part: str = "train") -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """MNIST, ``train`` or ``t10k``: images (n, 28, 28) and digits."""
        images = self._idx(f"mnist/{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
        digits = self._idx(name := f"mnist/{part}-labels-idx1-ubyte.gz", 8)
        if len(images) != len(digits):
            raise MissingDataError(f"{name} has {len(digits):,} labels for {len(images):,} images")
        return images, digits

    def _idx(self, name: str, header: int) -> NDArray[np.uint8]:
        path, images = self.path(name), header == 16
        with intact(path):
            found = np.frombuffer(checked(path, images), np.uint8, offset=header)
        counts = {} if images else Counter(f"class {digit}" for digit in found)
        self.found(name, Contents(len(found) // (784 if images else 1), labels=counts))
        return found

    def uci(self, name: str) -> Chunk:
        """A UCI set with its rows in a fixed random order, and two classes, or real targets (housing).

        Of the seven classes of zoo, mammals are 1 and all others -1.
        """
        domain = {"housing": "real", "zoo": "classes:1-7"}.get(name, "binary")
        rows = mixed(self.read(f"uci/{name}/{name}.svm.gz", domain))
        return replace(rows, labels=signs(rows.labels == 1)) if name == "zoo" else rows


def signs(positive: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Labels 1 and -1."""
    return np.where(positive, 1, -1).astype(np.float32)


def extended(chunk: Chunk, columns: int, more: Any) -> Chunk:
    """The rows with further columns: those of a matrix `more` (n, k), numbered from `columns` on."""
    from scipy.sparse import csr_matrix, hstack

    whole = hstack([csr(chunk, np.float32, columns), csr_matrix(more, dtype=np.float32)], format="csr")
    assert whole.shape[1] == columns + more.shape[1], "a key of the rows is as large as `columns`"
    return Chunk.from_csr(whole.indptr, whole.indices, whole.data, chunk.labels, chunk.weights)
