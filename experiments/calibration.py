"""What `--calibrate` changes: calibration error and log loss of test rows, for many sets and rules.

    python -m experiments.calibration FOLDER  # the folder of data sets that docs/benchmarks.md describes

Each model learns its rows in one pass, with the defaults of its rule. Sets without test rows are shuffled and
a third of them is for testing; Criteo is split in the order of time. `hinge` has no probabilities: its
figures without calibration are those of the logistic function of its margins. The calibration error is the
mean distance of prediction and outcome over ten equally large bins.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import Chunk, Model, TroubleWarning
from thresher.data.chunk import concat
from thresher.data.opening import open_source

F64 = NDArray[np.float64]
MODELS = (
    *(("ft-ftrl", "logistic"), ("ftrl", "logistic"), ("sgd", "logistic"), ("adagrad-rda", "logistic")),
    *(("normalized", "logistic"), ("arow", "logistic"), ("pa-i", "hinge"), ("ftrl", "hinge")),
)
UCI = ("spambase", "krvskp", "shrooms", "crx", "magic04", "wdbc", "ad")
BINS, MOST = 10, 30_000


def read(folder: Path, *names: str) -> Chunk:
    """The rows of files."""
    paths = [str(folder / name) for name in names]
    return concat([chunk for path in paths for chunk in open_source([path], domain="binary").chunks()])


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


def figures(p: F64, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Calibration error and log loss."""
    loss = -np.log(np.clip(np.where(positive, p, 1 - p), 2e-16, 1)).mean()
    parts = np.array_split(np.argsort(p, kind="stable"), BINS)
    gaps = sum(len(one) * abs(p[one].mean() - positive[one].mean()) for one in parts if len(one))
    return float(gaps / len(p)), float(loss)


def compared(learned: Chunk, test: Chunk, rule: str, loss: str) -> tuple[Any, ...]:
    """Both figures without and with calibration, and the numbers; None for the link of the loss."""
    model = Model(rule, loss, calibrate=True)
    model.learn(learned)
    margins, positive, found = model.predict(test), test.labels > 0, model.head.calibrated()
    plain = 1 / (1 + np.exp(-np.clip(margins, -700, 700)))
    own = plain if found is None else found.probabilities(margins)
    return *figures(plain, positive), *figures(own, positive), found


def main(folder: str) -> None:
    """Print a table, and how often the aims are met."""
    warnings.simplefilter("ignore", TroubleWarning)
    high = halved = worse = total = 0
    print(
        "| set | model | error | calibrated | log loss | calibrated | a, b |\n|---|---|---|---|---|---|---|"
    )
    for name, (learned, test) in sets(Path(folder)).items():
        for rule, loss in MODELS:
            try:
                error, plain, own_error, own, found = compared(learned, test, rule, loss)
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
