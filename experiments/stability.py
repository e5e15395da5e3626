"""Stability selection on made data: how many kept features are false, how many true ones are found.

    python -m experiments.stability [--seeds 50]   # false and found features
    python -m experiments.stability --peer         # beside halves of LogisticRegression, one seed
    python -m experiments.stability --time         # 32 halves beside one run, from a file, in turn

A row has about 60 of 20,000 binary columns: half of the ten columns of each of twelve groups, so that those
of a group come together. 100 columns have a weight in the logistic model that draws the labels; the 50 or so
above 1.5 in size are called strong. A column is called false here if its weight is 0, whatever it stands
beside: the theorem counts fewer as false. A single model keeps the same number of columns, those with the
largest weights.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LogisticRegression

import thresher
from thresher.learning.model.bags import Bags
from thresher.plans.stability import threshold

COLUMNS, GROUP, GROUPS, TRUE, STRONG = 20_000, 10, 12, 100, 1.5
HALVES, FALSE = 32, 5.0
PEER_C = (0.03, 0.1, 0.3)
F64 = NDArray[np.float64]


def made(seed: int, rows: int) -> tuple[Any, NDArray[np.int64], F64]:
    """X, labels and true weights."""
    chance = np.random.default_rng(seed)
    often = np.arange(1, COLUMNS // GROUP + 1) ** -0.5
    groups = np.array(
        [chance.choice(len(often), GROUPS, replace=False, p=often / often.sum()) for _ in range(rows)]
    )
    columns = (groups[:, :, np.newaxis] * GROUP + np.arange(GROUP)).reshape(rows, -1)
    there = chance.random(columns.shape) < 0.5
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    X = csr_matrix((np.ones(ends[-1]), columns[there], ends), shape=(rows, COLUMNS))
    X.sort_indices()
    seen = np.flatnonzero(np.asarray(X.sum(axis=0)).ravel() >= rows / 100)
    weights = np.zeros(COLUMNS)
    sizes = STRONG * chance.uniform(0.5, 1.5, TRUE)
    weights[chance.choice(seen, TRUE, replace=False)] = chance.choice([-1, 1], TRUE) * sizes
    margins = X @ weights
    y = np.where(chance.random(rows) < 1 / (1 + np.exp(np.median(margins) - margins)), 1, -1)
    return X, y, weights


def judged(kept: NDArray[np.bool_], weights: F64) -> list[float]:
    """Columns kept, false ones among them, and the share of the strong ones found."""
    strong = np.abs(weights) >= STRONG
    return [kept.sum(), (kept & (weights == 0)).sum(), (kept & strong).sum() / strong.sum()]


def among(keys: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of columns."""
    mask = np.zeros(COLUMNS, np.bool_)
    mask[keys.astype(np.int64)] = True
    return mask


def heaviest(X: Any, y: Any, count: int, **options: Any) -> NDArray[np.bool_]:
    """The columns with the largest weights of one model."""
    keys, weights = thresher.train(X, y, **options).weights()
    return among(keys[np.argsort(-np.abs(weights), kind="stable")[:count]])


WAYS: dict[str, dict[str, Any]] = {
    "the default": {},
    "1 pass": {"passes": 1},
    "20 passes": {"passes": 20},
    "`--l1 1`": {"l1": 1.0},
    "`--l1 2.5`": {"l1": 2.5},
    "`--false 1`": {"false": 1.0},
    "`--rule adagrad-fobos:l1=0.001 --passes 5`": {"rule": "adagrad-fobos:l1=0.001", "passes": 5},
}


def compare(seeds: int, rows: int) -> None:
    """Print the table of ways."""
    found: dict[str, list[list[float]]] = {name: [] for name in WAYS}
    for seed in range(seeds):
        X, y, weights = made(seed, rows)
        for name, options in WAYS.items():
            if seed >= 10 and name != "the default":
                continue
            one = thresher.select(X, y, **options)
            kept = among(one.keys[one.kept])
            own = {k: v for k, v in options.items() if k != "false"}
            alone = heaviest(X, y, int(kept.sum()), **({"l1": 2.0} | own if "rule" not in own else own))
            found[name].append(
                [one.selected, one.threshold or np.nan, *judged(kept, weights), *judged(alone, weights)[1:]]
            )
        print(
            seed,
            {name: np.round(each[-1], 3).tolist() for name, each in found.items() if each},
            file=sys.stderr,
        )
    heads = "way, seeds, selected per half, threshold, kept, false (most), strong found"
    print(f"| {heads.replace(', ', ' | ')} | one model: false | strong found |")
    print("|---" * 9 + "|")
    for name, each in found.items():
        mean, most = np.nanmean(each, axis=0), np.max(each, axis=0)
        cells = [f"{mean[0]:.0f}", f"{mean[1]:.2f}", f"{mean[2]:.1f}", f"{mean[3]:.1f} ({most[3]:.0f})"]
        cells += [f"{mean[4]:.1%}", f"{mean[5]:.1f}", f"{mean[6]:.1%}"]
        print(f"| {name} | {len(each)} | {' | '.join(cells)} |")


def peer(rows: int) -> None:
    """Print what halves of LogisticRegression select, with the same halves and the same bound."""
    X, y, weights = made(0, rows)
    for c in PEER_C:
        start, shares, selected = time.perf_counter(), np.zeros(COLUMNS), []
        for learned in Bags.of(f"halves:{HALVES}").draw(0, rows):
            model = LogisticRegression(C=c, penalty="l1", solver="liblinear").fit(
                X[learned > 0], y[learned > 0]
            )
            lives = model.coef_[0] != 0
            shares += lives / HALVES
            selected.append(lives.sum())
        share = threshold(float(np.mean(selected)), COLUMNS, HALVES, FALSE)
        told = judged(shares >= (share or np.inf), weights)
        print(
            f"C={c}: {np.mean(selected):.0f} per half, threshold {share}, kept, false, found: {told},"
            f" {time.perf_counter() - start:.0f} s"
        )
    start = time.perf_counter()
    one = thresher.select(X, y)
    told = judged(among(one.keys[one.kept]), weights)
    print(
        f"thresher: {one.selected:.0f} per half, threshold {one.threshold}, kept, false, found: {told},"
        f" {time.perf_counter() - start:.0f} s"
    )


def timed(rows: int) -> None:
    """Print medians of three runs in turn: seconds of the commands, and of processor."""
    with tempfile.TemporaryDirectory() as folder:
        X, y, _ = made(0, rows)
        file = Path(folder) / "made.svm"
        dump_svmlight_file(X, y, str(file), zero_based=True)
        for passes in ("1", "5"):
            runs = {
                "one run": ["train", str(file), "-m", f"{folder}/m", "--l1", "2"],
                "32 halves": ["select", str(file), "-m", f"{folder}/s"],
            }
            took: dict[str, list[float]] = {name: [] for name in runs}
            for _round in range(4):  # the first compiles
                for name, words in runs.items():
                    start = time.perf_counter()
                    command = [sys.executable, "-m", "thresher", *words, "--passes", passes, "-q"]
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                    took[name].append(time.perf_counter() - start)
            one, many = (statistics.median(each[1:]) for each in took.values())
            print(f"passes {passes}: one run {one:.2f} s, 32 halves {many:.2f} s, {many / one:.1f} times")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--time", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.time:
        timed(given.rows)
    elif given.peer:
        peer(given.rows)
    else:
        compare(given.seeds, given.rows)


if __name__ == "__main__":
    main()
