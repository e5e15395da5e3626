"""Generated data: text with the published shape of RCV1, and a stream of ever new features.

``rcv1like``: 781,265 training rows and 23,149 test rows, 47,236 features, about 76 per row, 905 MB of
svmlight text. Lengths are log-normal, document frequencies follow RCV1's curve, values are
(1 + ln tf) idf scaled to unit length, and half the words of a row come from one of 64 topics. The true
model is linear in 2,000 of the frequent features, noisy near the margin, with 2 % of the labels flipped.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from thresher.data import Chunk

FEATURES, TOPICS, TRAIN, TEST = 47_236, 64, 781_265, 23_149
_PIECE = 25_000
_LONGEST_ITEM = 17  # " 47236:0.00123456"
_RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, FEATURES)
_FREQUENCIES = (
    0.44,
    0.37,
    0.31,
    0.26,
    0.205,
    0.155,
    0.11,
    0.0715,
    0.0335,
    0.0165,
    0.0066,
    0.0015,
    5e-4,
    2.5e-5,
)


class Rcv1Like(NamedTuple):
    """The two files."""

    train: Path
    test: Path

    @property
    def megabytes(self) -> float:
        """Size of the training text."""
        return self.train.stat().st_size / 1e6


class _Words(NamedTuple):
    """The distributions that rows are drawn from; a word is identified by its frequency rank."""

    quantiles: NDArray[np.int32]
    topics: NDArray[np.int32]
    ids: NDArray[np.int32]
    idf: NDArray[np.float64]
    truth: NDArray[np.float64]


def rcv1like(folder: Path, scale: float = 1.0) -> Rcv1Like:
    """Return the files in `folder`, generated if missing; at a smaller scale, only the first rows."""
    folder.mkdir(parents=True, exist_ok=True)
    whole, test = folder / "rcv1like.train.svm", folder / "rcv1like.test.svm"
    rows = round(TRAIN * scale)
    train = whole if rows == TRAIN else folder / f"rcv1like-{rows}.train.svm"
    if not test.exists():
        print(f"generating {test} ...", flush=True)
        _write(test, TEST, stream=1)
    if not train.exists():
        print(f"generating {train} ...", flush=True)
        if whole.exists():
            _head(whole, train, rows)
        else:
            _write(train, rows, stream=0)
    return Rcv1Like(train, test)


def vw_text(source: Path, folder: Path | None = None, bar: bytes = b" | ") -> Path:
    """Return the same rows as VW text, written next to them (or to `folder`) if missing.

    `bar` goes between label and features; if it ends with a letter, features are words without a value.
    """
    kind = "" if bar == b" | " else f".{bar.strip(b' |').replace(b' ', b'-').decode()}"
    twin = (folder or source.parent) / f"{source.name.partition('.svm')[0]}{kind}.vw"
    if not twin.exists():
        partial = twin.with_suffix(".partial")
        opener = gzip.open if source.suffix == ".gz" else open
        with opener(source, "rb") as read, open(partial, "wb") as write:
            if bar.endswith(b" "):
                write.writelines(line.replace(b" ", bar, 1) for line in read)
            else:
                write.writelines(_as_words(line, bar) for line in read)
        partial.rename(twin)
    return twin


def _as_words(line: bytes, bar: bytes) -> bytes:
    """Return the row with a word for each id, and no values."""
    label, *features = line.split()
    start, _, letter = bar.rpartition(b" ")
    words = (b" " + letter + feature.partition(b":")[0] for feature in features)
    return label + start + b"".join(words) + b"\n"


def _head(source: Path, target: Path, rows: int) -> None:
    partial = target.with_suffix(".partial")
    with open(source, "rb") as read, open(partial, "wb") as write:
        write.writelines(islice(read, rows))
    partial.rename(target)


def rcv1like_chunks(rows: int = TRAIN) -> Iterator[Chunk]:
    """Yield the first training rows, without the rounding of the text."""
    for indptr, ids, values, positive in _pieces(rows, stream=0):
        labels = np.where(positive, 1, -1).astype(np.float32)
        yield Chunk.from_csr(indptr, ids[: indptr[-1]], values[: indptr[-1]], labels)


def _write(path: Path, rows: int, stream: int) -> None:
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        for piece in _pieces(rows, stream):
            file.write(_text(*piece).tobytes())
    partial.rename(path)


def _pieces(
    rows: int, stream: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]]:
    """Yield row starts, ids and values, and whether a row is positive."""
    words = _words()
    scores = _merged(*_tokens(np.random.default_rng([7, 9]), 20_000, words), *words)[3]
    cut, spread = np.quantile(scores, 0.53), scores.std()  # 47 % are positive
    for k, first in enumerate(range(0, rows, _PIECE)):
        rng = np.random.default_rng([7, stream, k])
        indptr, ids, values, scores = _merged(*_tokens(rng, _PIECE, words), *words)
        noisy = (scores - cut) / spread + 0.03 * rng.logistic(size=_PIECE)
        positive = (noisy > 0) != (rng.random(_PIECE) < 0.02)
        n = min(_PIECE, rows - first)
        yield indptr[: n + 1], ids, values, positive[:n]


def _words() -> _Words:
    rng = np.random.default_rng(7)
    ranks = np.arange(1, FEATURES + 1)
    frequency = np.exp(np.interp(np.log(ranks), np.log(_RANKS), np.log(_FREQUENCIES)))
    intensity = -np.log1p(-frequency)
    points = (np.arange(1 << 22) + 0.5) / (1 << 22)
    quantiles = np.searchsorted(np.cumsum(intensity / intensity.sum()), points)
    informative = 1 / (np.arange(12_000) + 51)
    chosen = rng.choice(12_000, 2_000, replace=False, p=informative / informative.sum())
    truth = np.zeros(FEATURES)
    truth[chosen] = rng.standard_t(4, 2_000)
    # a topic shuffles words of similar frequency, and favours those of one sign
    noise = rng.normal(0, 0.5, (TOPICS, FEATURES))
    side = np.where(np.arange(TOPICS) % 2, 0.6, -0.6)[:, np.newaxis] * np.sign(truth)
    topics = np.argsort(np.log(ranks) + noise - side, axis=1)
    ids = rng.permutation(FEATURES) + 1
    return _Words(
        quantiles.clip(0, FEATURES - 1).astype(np.int32),
        topics.astype(np.int32),
        ids.astype(np.int32),
        -np.log(frequency),
        truth,
    )


def _tokens(
    rng: np.random.Generator, rows: int, words: _Words
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Return row starts and topics, and for each token its frequency rank and whether the topic maps it."""
    lengths = np.clip(np.exp(rng.normal(np.log(61.5), 0.72, rows)), 4, 1500)
    starts = np.concatenate([[0], np.cumsum(np.maximum(rng.poisson(lengths), 3))])
    tokens = int(starts[-1])
    drawn = words.quantiles[rng.integers(0, len(words.quantiles), tokens, dtype=np.int32)]
    return starts, rng.integers(0, TOPICS, rows), drawn, rng.random(tokens, dtype=np.float32) < 0.5


@numba.njit
def _merged(starts, row_topic, drawn, own, quantiles, topics, ids, idf, truth):  # type: ignore[no-untyped-def]
    """Return row starts, ids (ascending in a row), values (rows of unit length) and true scores."""
    rank_of = np.empty(ids.size + 1, np.int64)
    rank_of[ids] = np.arange(ids.size)
    keys, values = np.empty(drawn.size, np.int32), np.empty(drawn.size)
    indptr, scores = np.zeros_like(starts), np.zeros(starts.size - 1)
    used = 0
    for i in range(starts.size - 1):
        row = np.empty(starts[i + 1] - starts[i], np.int32)
        for k in range(row.size):
            p = starts[i] + k
            row[k] = ids[topics[row_topic[i], drawn[p]] if own[p] else drawn[p]]
        row.sort()
        first, norm = used, 0.0
        for k in range(row.size):
            if k and row[k] == row[k - 1]:
                values[used - 1] += 1.0
            else:
                keys[used], values[used] = row[k], 1.0
                used += 1
        for p in range(first, used):
            values[p] = (1.0 + np.log(values[p])) * idf[rank_of[keys[p]]]
            norm += values[p] * values[p]
        for p in range(first, used):
            values[p] /= np.sqrt(norm)
            scores[i] += values[p] * truth[rank_of[keys[p]]]
        indptr[i + 1] = used
    return indptr, keys[:used], values[:used], scores


@numba.njit
def _text(indptr, ids, values, positive):  # type: ignore[no-untyped-def]
    """Return the rows as svmlight text."""
    out = np.empty(3 * indptr.size + _LONGEST_ITEM * indptr[-1], np.uint8)
    at = 0
    for i in range(indptr.size - 1):
        if not positive[i]:
            out[at] = ord("-")
            at += 1
        out[at] = ord("1")
        at += 1
        for p in range(indptr[i], indptr[i + 1]):
            at = _item(out, at, ids[p], values[p])
        out[at] = ord("\n")
        at += 1
    return out[:at]


@numba.njit
def _item(out, at, key, value):  # type: ignore[no-untyped-def]
    """Write `` id:value``; the value is in 0.001 .. 1, with at most six significant digits."""
    zeros = 0
    while value < 0.1 and zeros < 2:
        value *= 10.0
        zeros += 1
    digits = min(999_999, max(100_000, int(np.rint(value * 1e6))))
    while digits % 10 == 0:
        digits //= 10
    out[at] = ord(" ")
    at = _digits(out, at + 1, key)
    out[at], out[at + 1], out[at + 2] = ord(":"), ord("0"), ord(".")
    at += 3
    for _ in range(zeros):
        out[at] = ord("0")
        at += 1
    return _digits(out, at, digits)


@numba.njit
def _digits(out, at, number):  # type: ignore[no-untyped-def]
    places, rest = 0, number
    while rest:
        rest //= 10
        places += 1
    for k in range(at + places - 1, at - 1, -1):
        out[k] = ord("0") + number % 10
        number //= 10
    return at + places


class Flood(NamedTuple):
    """A stream in which few features recur: every row has new ones that are never seen again.

    A row has `recurring` features from a pool of `pool` informative ones, each right in three rows of
    four, and `fresh` features of its own. All values are 1.
    """

    distinct: int = 20_000_000
    pool: int = 100_000
    recurring: int = 40
    fresh: int = 10
    piece: int = 5_000

    def chunks(self) -> Iterator[Chunk]:
        """Yield the stream, piece by piece."""
        rows, met, wide = self.piece, self.pool, self.recurring + self.fresh
        stratum = self.pool // self.recurring
        indptr = np.arange(rows + 1, dtype=np.int64) * wide
        values, weights = np.ones(rows * wide, np.float32), np.ones(rows, np.float32)
        rng = np.random.default_rng(7)
        while met < self.distinct:
            positive = rng.random(rows) < 0.5
            told = positive[:, np.newaxis] == (rng.random((rows, self.recurring)) < 0.75)
            keys = np.empty((rows, wide), np.uint64)
            pairs = rng.integers(0, stratum // 2, (rows, self.recurring))
            keys[:, : self.recurring] = np.arange(self.recurring) * stratum + 2 * pairs + told
            new = np.arange(met, met + rows * self.fresh).reshape(rows, self.fresh)
            keys[:, self.recurring :] = new + self.pool
            met += rows * self.fresh
            labels = np.where(positive, 1, -1).astype(np.float32)
            yield Chunk(indptr, keys.ravel(), values, labels, weights)
