"""From reviews as JSON lines to a model of words and bigrams: thresher and scikit-learn. Needs --data."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import peers, report
from benchmarks.measure import Sample, python
from benchmarks.processes import thresher
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import api

OURS, THEIRS = "thresher", "scikit-learn, HashingVectorizer + SGDClassifier"
OPTIONS = ("--text", "text", "--ignore", "rating,id", "--ngrams", "words=1-2")
RULE = ("--rule", "ftrl:alpha=0.1,l1=1")
SKLEARN = """
import json, sys
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

def rows(path):
    with open(path, encoding="utf-8", newline="\\n") as file:
        both = [(row["text"], row["label"]) for row in map(json.loads, file)]
    return [text for text, _ in both], [label for _, label in both]

hashing = HashingVectorizer(ngram_range=(1, 2))
texts, labels = rows(sys.argv[1])
model = SGDClassifier(loss="log_loss", max_iter=1, tol=None).fit(hashing.transform(texts), labels)
if len(sys.argv) > 2:
    texts, labels = rows(sys.argv[2])
    print(1 - model.score(hashing.transform(texts), labels), int((model.coef_ != 0).sum()))
"""


def plain(setting: Setting, part: str) -> Path | None:
    """Return the unpacked reviews of a part; None if they are missing."""
    packed = setting.data / f"imdb/imdb-{part}.jsonl.gz" if setting.data else None
    if packed is None or not packed.exists():
        return None
    path = setting.loads / f"imdb-{part}.jsonl"
    if not path.exists():
        setting.loads.mkdir(parents=True, exist_ok=True)
        with gzip.open(packed) as read, open(path.with_suffix(".partial"), "wb") as write:
            shutil.copyfileobj(read, write)
        path.with_suffix(".partial").rename(path)
    return path


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    train, test = plain(setting, "train"), plain(setting, "test")
    if train is None or test is None:
        return []
    with TemporaryDirectory(dir=setting.loads) as folder:
        path = Path(folder) / "model"
        chosen: dict[str, Callable[[], Sample]] = {OURS: partial(thresher, train, path, *OPTIONS, *RULE)}
        if peers.installed("sklearn"):
            chosen[THEIRS] = partial(python, "-c", SKLEARN, train)
        found = setting.in_turn(chosen, warm=tuple(chosen))
        model = api.load(path)
        scores = [(OURS, float(api.evaluate(model, test)["error"]), len(model.keys))]
    if THEIRS in found:
        error, count = python("-c", SKLEARN, train, test).output.split()
        scores.append((THEIRS, float(error), int(count)))
    size = train.stat().st_size / 1e6
    report.times(f"from reviews, {size:.0f} MB of JSON lines, to a model", found, THEIRS, {"MB/s": size})
    report.table(
        "quality of the models",
        ("", "test error", "non-zeros", "peak MB"),
        [(name, f"{e:.2%}", f"{n:,}", report.figure(found[name].peak, ".0f")) for name, e, n in scores],
    )
    if THEIRS not in found:
        return []
    times, words = report.ratio(found, THEIRS, OURS)
    return [Goal("from reviews to a model, scikit-learn's time : thresher's", ">= 10", words, times >= 10)]
