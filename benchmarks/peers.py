"""The other learners. Peers that are not installed are left out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import Sample, python
from thresher.data import Chunk

VW_ARGUMENTS = "from vowpalwabbit import Workspace\nimport sys\nWorkspace(sys.argv[1]).finish()"
SKLEARN_FROM_TEXT = """
import sys
import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file(sys.argv[1], dtype=np.float32)
X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
SGDClassifier(loss="log_loss", penalty="l1", alpha=1e-6).partial_fit(X, y, classes=[-1, 1])
"""
RIVER_ROWS = 20_000


class Scored(NamedTuple):
    """Test error (a share) and non-zero weights of a peer, and the time and memory of training."""

    error: float
    nonzero: int
    sample: Sample


def installed(module: str) -> bool:
    """Whether a peer can be imported."""
    return find_spec(module) is not None


def csr(chunk: Chunk, dtype: Any, columns: int = 0) -> Any:
    """Convert a chunk to the matrix that scikit-learn takes, with 32-bit indices."""
    from scipy.sparse import csr_matrix

    shape = (len(chunk), max(columns, int(chunk.keys.max()) + 1))
    parts = chunk.values.astype(dtype), chunk.keys.astype(np.int32), chunk.indptr.astype(np.int32)
    return csr_matrix(parts, shape=shape)


def sklearn_l1(alpha: float, shuffle: bool = False) -> Any:
    """Return SGDClassifier with logistic loss, L1 and its default step sizes; it shuffles by default."""
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss="log_loss", penalty="l1", alpha=alpha, shuffle=shuffle)


def sklearn_pass(chunk: Chunk, dtype: Any, shuffle: bool) -> Callable[[], Any]:
    """Time one pass of SGD with L1 over rows in memory."""
    matrix, labels = csr(chunk, dtype), chunk.labels.astype(dtype)
    sklearn_l1(1e-6)  # exclude the import from the time
    return lambda: sklearn_l1(1e-6, shuffle).partial_fit(matrix, labels, classes=[-1, 1])


def river_pass(chunk: Chunk) -> Callable[[], Any]:
    """Time one pass of logistic SGD with L1 over the first `RIVER_ROWS` rows, as dicts."""
    from river import linear_model, optim

    rows = []
    for i in range(min(RIVER_ROWS, len(chunk))):
        span = slice(int(chunk.indptr[i]), int(chunk.indptr[i + 1]))
        features = dict(zip(chunk.keys[span].tolist(), chunk.values[span].tolist(), strict=True))
        rows.append((features, bool(chunk.labels[i] > 0)))

    def learn() -> None:
        model = linear_model.LogisticRegression(optim.SGD(0.5), l1=1e-6)
        for features, label in rows:
            model.learn_one(features, label)

    return learn


def vw(arguments: str) -> Sample:
    """Run the Python package in a process; it has no command line of its own."""
    return python("-c", VW_ARGUMENTS, f"--quiet {arguments}")


def vw_here(arguments: str) -> None:
    """Run the package in this process."""
    from vowpalwabbit import Workspace

    Workspace(f"--quiet {arguments}").finish()


def vw_text(chunk: Chunk) -> bytes:
    """Return the rows as VW text."""
    ends = chunk.indptr.tolist()
    pairs = [f"{k}:{v:.7g}" for k, v in zip(chunk.keys.tolist(), chunk.values.tolist(), strict=True)]
    rows = (
        f"{label:.9g} | {' '.join(pairs[lo:hi])}\n"
        for label, lo, hi in zip(chunk.labels.tolist(), ends, ends[1:], strict=False)
    )
    return "".join(rows).encode()


def vw_margins(
    train: Path, test: Path, options: str, folder: Path, loss: str = "logistic"
) -> tuple[Any, int, Sample]:
    """Train on text, save the model for prediction only, and test it; return predictions and non-zeros."""
    model, readable, predictions = folder / "vw.model", folder / "vw.txt", folder / "vw.predictions"
    sample = vw(f"-d {train} --loss_function {loss} {options} -f {model} --predict_only_model")
    vw(f"-t -d {test} -i {model} -p {predictions} --readable_model {readable}")
    weights = re.findall(r"^\d+:(\S+)", readable.read_text(encoding="utf-8"), re.MULTILINE)
    return np.loadtxt(predictions, ndmin=1), sum(float(weight) != 0 for weight in weights), sample


def vw_learned(
    texts: Sequence[bytes],
    options: str,
    keys: int,
    classes: int,
    passes: int,
    loss: str = "logistic",
    bits: int = 1,
) -> tuple[Any, int]:
    """Train on rows with keys below `keys`, one class against the rest, with at least 2^`bits` weights.

    `texts` are the training and test rows. Returns predictions and non-zeros.
    """
    if classes:
        options += f" --oaa {classes}"
        keys <<= (classes - 1).bit_length()  # number of adjacent weights per key
    options += f" -b {max(keys.bit_length(), bits)}"
    with TemporaryDirectory() as name:
        folder = Path(name)
        if passes > 1:
            options += f" --passes {passes} --holdout_off --cache_file {folder / 'cache'}"
        train, test = folder / "train.vw", folder / "test.vw"
        for path, text in zip((train, test), texts, strict=True):
            path.write_bytes(text)
        margins, nonzero, _ = vw_margins(train, test, options, folder, loss)
    return margins, nonzero


def vw_scored(train: Path, test: Path, options: str, folder: Path) -> Scored:
    """Return the test error of `vw_margins`."""
    margins, nonzero, sample = vw_margins(train, test, options, folder)
    with open(test, "rb") as file:
        labels = np.array([float(line.split(b" ", 1)[0]) for line in file])
    return Scored(float(np.mean((margins > 0) != (labels > 0))), nonzero, sample)


def sklearn_scored(train: Chunk, test: Chunk, alpha: float) -> Scored:
    """Train one pass in memory; return the error on the test rows."""
    columns = int(max(train.keys.max(), test.keys.max())) + 1
    matrix, labels = csr(train, np.float64, columns), train.labels.astype(np.float64)
    model = sklearn_l1(alpha)
    wall, cpu = time.perf_counter(), time.process_time()
    model.partial_fit(matrix, labels, classes=[-1, 1])
    sample = Sample(time.perf_counter() - wall, time.process_time() - cpu)
    wrong = model.predict(csr(test, np.float64, columns)) != test.labels
    return Scored(float(np.mean(wrong)), int(np.count_nonzero(model.coef_)), sample)
