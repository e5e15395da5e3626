"""What `--calibrate` changes: calibration error and log loss of test rows, for many sets and rules.

    python -m experiments.calibration FOLDER  # the folder of data sets that docs/benchmarks.md describes

Each model learns its rows in one pass, with the defaults of its rule. Sets without test rows are shuffled and
a third of them is for testing; Criteo is split in the order of time. `hinge` and `crammer-singer` have no
probabilities: their figures without calibration are those of the logistic function, or softmax, of their
margins. The calibration error is the mean distance of prediction and outcome over ten equally large bins; of
several classes, that of the class predicted: how often it is right, given its probability.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import Chunk, Model, TroubleWarning
from thresher.data.chunk import concat
from thresher.data.opening import open_source
from thresher.learning.model.objective import FittedLink

F64 = NDArray[np.float64]
MODELS = (
    *(("ft-ftrl", "logistic"), ("ftrl", "logistic"), ("sgd", "logistic"), ("adagrad-rda", "logistic")),
    *(("normalized", "logistic"), ("arow", "logistic"), ("pa-i", "hinge"), ("ftrl", "hinge")),
)
OF_SEVERAL = (
    *(("ft-ftrl", "softmax"), ("ftrl", "softmax"), ("sgd", "softmax"), ("adagrad-rda", "softmax")),
    *(("normalized", "softmax"), ("ft-ftrl", "logistic"), ("arow", "logistic"), ("pa-i", "crammer-singer")),
)
TOPICS = ("CCAT", "ECAT", "GCAT", "MCAT")
UCI = ("spambase", "krvskp", "shrooms", "crx", "magic04", "wdbc", "ad")
BINS, MOST = 10, 30_000


def read(folder: Path, *names: str, domain: str = "binary") -> Chunk:
    """The rows of files."""
    paths = [str(folder / name) for name in names]
    return concat([chunk for path in paths for chunk in open_source([path], domain=domain).chunks()])


def parted(rows: Chunk, shuffled: bool = True) -> tuple[Chunk, Chunk]:
    """Two thirds to learn, one to test."""
    order = np.random.default_rng(0).permutation(len(rows)) if shuffled else np.arange(len(rows))
    order = order[:MOST]
    cut = 2 * len(order) // 3
    return rows.take(order[:cut]), rows.take(order[cut:])


def sets(folder: Path) -> dict[str, tuple[Chunk, Chunk]]:
    """Rows to learn and to test of each set."""
    found = {
        "rcv1": (read(folder, "rcv1/rcv1_ccat_train.svm.gz"), read(folder, "rcv1/rcv1_ccat_test.svm.gz"))
    }
    days = [f"criteo/criteo_hashed20_{a}-{a + 19999}.svm.gz" for a in (0, 20000)]
    found["criteo"] = parted(read(folder, *days), shuffled=False)
    found["w8a"] = parted(read(folder, "w8a/w8a.gz"))
    for name in ("books", "dvd", "electronics", "kitchen"):
        both = (f"amazon-reviews/bow5000/{name}_{part}.svmlight.gz" for part in ("train", "test"))
        found[name] = read(folder, next(both)), read(folder, next(both))
    acq = read(folder, "reuters/acq_train.dat.gz")
    order = np.random.default_rng(0).permutation(len(acq))
    found["acq"] = acq.take(order), read(folder, "reuters/acq_test.dat.gz")
    return found | {name: parted(read(folder, f"uci/{name}/{name}.svm.gz")) for name in UCI}


def with_labels(rows: Chunk, labels: list[str | None]) -> Chunk:
    """The rows that have a label, numbered from 0 in alphabetical order."""
    held = np.array([one is not None for one in labels])
    _, numbers = np.unique([one for one in labels if one is not None], return_inverse=True)
    found = rows.take(np.flatnonzero(held))
    return Chunk.from_csr(found.indptr, found.keys, found.values, numbers.astype(np.float32), found.weights)


def of_texts(lines: Iterable[dict[str, Any]], label: str) -> Chunk:
    """Hashed words with log counts, scaled to length 1."""
    rows, labels = list[tuple[float, dict[int, float]]](), list[str | None]()
    for line in lines:
        words = Counter(re.findall(r"\w+", line["text"].lower()))
        logs = {zlib.crc32(word.encode()) % 2**20: 1 + np.log(count) for word, count in words.items()}
        length = np.sqrt(sum(one**2 for one in logs.values())) or 1.0
        rows.append((0.0, {key: value / length for key, value in logs.items()}))
        labels.append(line[label])
    return with_labels(Chunk.of_rows(rows), labels)


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from map(json.loads, file)


def unpacked(path: Path) -> bytes:
    """What a file holds."""
    return gzip.decompress(path.read_bytes())


def topics_of(folder: Path, part: str) -> Chunk:
    """RCV1 documents with exactly one of the four top categories."""
    rows = read(folder, f"rcv1/rcv1_ccat_{part}.svm.gz")
    lines = unpacked(folder / f"rcv1/rcv1_{part}_topics.txt.gz").decode().splitlines()
    held = [sorted({*TOPICS} & {*line.split()}) for line in lines]
    return with_labels(rows, [one[0] if len(one) == 1 else None for one in held])


def digits_of(folder: Path, part: str) -> Chunk:
    """MNIST: pixels between 0 and 1."""
    images, labels = (
        np.frombuffer(unpacked(folder / f"mnist/{part}-{what}-ubyte.gz")[skip:], np.uint8)
        for what, skip in (("images-idx3", 16), ("labels-idx1", 8))
    )
    pixels = images.reshape(len(labels), -1)[:MOST]
    rows, columns = np.nonzero(pixels)
    indptr = np.searchsorted(rows, np.arange(len(pixels) + 1))
    values = pixels[rows, columns].astype(np.float32) / 255
    return Chunk.from_csr(indptr, columns, values, labels[:MOST].astype(np.float32))


def sets_of_several(folder: Path) -> dict[str, tuple[Chunk, Chunk]]:
    """Rows to learn and to test of each set of several classes, whose numbers begin with 0."""
    found = {"rcv1 topics": (topics_of(folder, "train"), topics_of(folder, "test"))}
    for name, path in (("news20", "news20-libsvm/news20.gz"), ("zoo", "uci/zoo/zoo.svm.gz")):
        rows = read(folder, path, domain="open")
        found[name] = parted(with_labels(rows, [f"{label:02.0f}" for label in rows.labels]))
    both = (lines_of(folder / f"20news/20news-bydate-{part}.jsonl.gz") for part in ("train", "test"))
    found["20news"] = of_texts(next(both), "group"), of_texts(next(both), "group")
    found["mnist"] = digits_of(folder, "train"), digits_of(folder, "t10k")
    return found


def figures(given: F64, labels: NDArray[np.int64]) -> tuple[float, float]:
    """Calibration error and log loss of probabilities ``(n, classes)``."""
    loss = -np.log(np.clip(given[np.arange(len(given)), labels], 2e-16, 1)).mean()
    top = np.full(len(given), 1) if given.shape[1] == 2 else given.argmax(axis=1)
    p, right = given[np.arange(len(given)), top], labels == top
    parts = np.array_split(np.argsort(p, kind="stable"), BINS)
    gaps = sum(len(one) * abs(p[one].mean() - right[one].mean()) for one in parts if len(one))
    return float(gaps / len(p)), float(loss)


def compared(learned: Chunk, test: Chunk, rule: str, loss: str, outputs: str) -> tuple[Any, ...]:
    """Both figures without and with calibration, and the numbers; None for the link of the loss."""
    model = Model(rule, loss, outputs=outputs, calibrate=True)
    model.learn(learned)
    margins, labels, found = model.predict(test), np.maximum(test.labels, 0).astype(np.int64), model.head
    plain = found.with_calibration(None if found.joint.PROBABILITY else FittedLink())
    own = found if found.has_probabilities else plain
    both = (figures(one.probabilities(margins), labels) for one in (plain, own))
    return *next(both), *next(both), found.calibrated()


def main(folder: str) -> None:
    """Print the tables, and how often the aims are met."""
    warnings.simplefilter("ignore", TroubleWarning)
    run(sets(Path(folder)), MODELS)
    run(sets_of_several(Path(folder)), OF_SEVERAL)


def run(given: dict[str, tuple[Chunk, Chunk]], models: Iterable[tuple[str, str]]) -> None:
    """Print the table of some sets."""
    high = halved = worse = total = 0
    print(
        "| set | model | error | calibrated | log loss | calibrated | a, b |\n|---|---|---|---|---|---|---|"
    )
    for name, (learned, test) in given.items():
        classes = int(max(learned.labels.max(), test.labels.max()))
        outputs = "one" if classes == 1 else f"classes:0-{classes}"
        for rule, loss in models:
            try:
                error, plain, own_error, own, found = compared(learned, test, rule, loss, outputs)
            except ValueError as reason:
                print(f"| {name} | `{rule}`, {loss} | {type(reason).__name__} |")
                continue
            numbers = "-" if found is None else f"{found.slope:.2f}, {found.intercept:.2f}"
            both = f"{100 * error:.2f} % | {100 * own_error:.2f} % | {plain:.4f} | {own:.4f}"
            print(f"| {name} | `{rule}`, {loss} | {both} | {numbers} |", flush=True)
            high, total = high + (error > 0.02), total + 1
            halved += error > 0.02 and own_error <= error / 2
            worse += own > 1.005 * plain
    print(f"\nof {total} models, {high} have an error above 2 %; it is halved in {halved} of these.")
    print(f"the log loss is more than 0.5 % higher in {worse} of {total}.")


if __name__ == "__main__":
    main(sys.argv[1])
