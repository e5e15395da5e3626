"""What importances cost where negatives were sampled, and what learning without them gives.

    python -m experiments.sampling                   # clicks made here
    python -m experiments.sampling criteo.svm.gz ...  # files; the last fifth of the rows is for testing
    python -m experiments.sampling --sample [FILE ...] # what `--sample` saves, and the figures of its models

Positives are all kept, negatives with probability r, or all rows, with r = 1. Kept negatives have importance
1 / r, or no row has one, and each probability p is corrected to p / (p + (1 - p) / r). Figures are of all
test rows, averaged over five samples: log loss, AUC, and the sum of the predictions over the positives.
"""

from __future__ import annotations

import dataclasses
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from thresher import Chunk, TroubleWarning, train
from thresher.data.chunk import concat
from thresher.data.opening import open_source

SIZES = (3, 7, 24, 50, 200, 500, 1000, 2000, 5000, 5000, 8, 12)
RULES = ("ft-ftrl", "ftrl", "sgd", "adagrad-fobos", "adagrad-rda", "normalized")
RATES = (0.5, 0.2, 0.1, 0.05, 0.02)
F64 = NDArray[np.float64]


def made(rows: int, share: float = 0.02, seed: int = 1) -> Chunk:
    """Clicks on twelve columns of categories; a few values of each column are frequent."""
    chance, truth = np.random.default_rng(seed), np.random.default_rng(7)
    keys, margins, first = np.zeros((rows, len(SIZES)), np.uint64), np.zeros(rows), 1
    for column, size in enumerate(SIZES):
        often = np.arange(1, size + 1) ** -1.1
        values = chance.choice(size, rows, p=often / often.sum())
        keys[:, column], margins = first + values, margins + truth.normal(0, 0.5, size)[values]
        first += size
    low, high = -20.0, 5.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if link(margins + middle).mean() > share else (middle, high)
    labels = chance.random(rows) < link(margins + low)
    width = len(SIZES)
    return Chunk.from_csr(np.arange(0, rows * width + 1, width), keys.ravel(), np.ones(keys.size), labels)


def link(margins: F64) -> F64:
    """Margins to probabilities."""
    return np.asarray(1 / (1 + np.exp(-np.clip(margins, -35, 35))))


def figures(predicted: F64, positive: NDArray[np.bool_]) -> list[float]:
    """Log loss, AUC, and predicted over observed positives."""
    p = np.clip(link(predicted), 1e-9, 1 - 1e-9)
    loss = -np.log(np.where(positive, p, 1 - p)).mean()
    return [float(loss), float(roc_auc_score(positive, p)), float(p.mean() / positive.mean())]


def trials(learned: Chunk, test: Chunk, samples: int) -> Iterator[tuple[str, float, str, list[float]]]:
    """Rule, rate, way, and mean figures."""
    positive = learned.labels > 0
    for rule in RULES:
        yield rule, 1.0, "all rows", figures(margins(learned, test, rule), test.labels > 0)
        for rate in RATES:
            found: dict[str, list[list[float]]] = {}
            for seed in range(samples):
                kept = positive | (np.random.default_rng((99, seed)).random(len(learned)) < rate)
                for way, each in ways(learned.take(kept), test, rule, rate):
                    found.setdefault(way, []).append(figures(each, test.labels > 0))
            for way, several in found.items():
                yield rule, rate, way, np.mean(several, axis=0).tolist()


def ways(kept: Chunk, test: Chunk, rule: str, rate: float) -> Iterator[tuple[str, F64]]:
    """Margins of test rows by each way to learn from a sample."""
    importances = np.where(kept.labels > 0, 1.0, 1 / rate).astype(np.float32)
    counted = dataclasses.replace(kept, weights=importances)
    yield "corrected", margins(kept, test, rule) + np.log(rate)
    yield "importances", margins(counted, test, rule)
    if rate == min(RATES):
        divided = dataclasses.replace(kept, weights=importances / importances.mean())
        yield "importances over their mean", margins(divided, test, rule)
        yield "importances, 5 passes", margins(counted, test, rule, passes=5)
        yield "importances, averaged", margins(counted, test, rule, average=True)


def margins(learned: Chunk, test: Chunk, rule: str, **options: Any) -> F64:
    """Margins of test rows after learning."""
    return np.asarray(train(learned, rule=rule, **options).predict(test), np.float64)


def sampled(learned: Chunk, test: Chunk) -> None:
    """Print seconds of CPU time, rows learned, and figures of models that sample negatives themselves."""
    low, positive = f"{min(learned.labels.min(), 0):g}", test.labels > 0
    for rule in RULES[:2]:
        for sample in (None, f"{low}=0.1", f"{low}=0.1,correct", f"{low}=0.02,correct"):
            train(learned.rows(0, 1000), rule=rule, sample=sample, passes=1)  # compile
            begin = time.process_time()
            model = train(learned, rule=rule, sample=sample, passes=1)
            seconds = time.process_time() - begin
            p = link(np.asarray(model.predict(test), np.float64))
            numbers = " | ".join(f"{one:.4f}" for one in figures(model.predict(test), positive))
            rows = model.examples - model.left_out
            print(f"| `{rule}` | {sample} | {rows:,} | {seconds:.2f} | {numbers} | {gap(p, positive):.4f} |")


def gap(p: F64, positive: NDArray[np.bool_], bins: int = 15) -> float:
    """Expected calibration error over bins of equally many rows."""
    parts = np.array_split(np.argsort(p), bins)
    return float(sum(len(one) * abs(p[one].mean() - positive[one].mean()) for one in parts) / len(p))


def main(paths: list[str], rows: int = 600_000, samples: int = 5) -> None:
    """Print a table."""
    warnings.simplefilter("ignore", TroubleWarning)
    briefly = paths[:1] == ["--sample"]
    paths = paths[briefly:]
    chunks = [chunk for path in paths for chunk in open_source([path], domain="binary").chunks()]
    data = concat(chunks) if chunks else made(rows)
    cut = len(data) * 4 // 5 if paths else len(data) * 2 // 3
    learned, test = data.rows(0, cut), data.rows(cut, len(data))
    share = float((test.labels > 0).mean())
    constant = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    print(f"{len(learned):,} rows, {len(test):,} for testing, {share:.1%} positive; constant: {constant:.4f}")
    if briefly:
        sampled(learned, test)
        return
    for rule, rate, way, (loss, auc, sums) in trials(learned, test, samples):
        print(f"| `{rule}` | {rate:.0%} | {way} | {loss:.4f} | {auc:.3f} | {sums:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
