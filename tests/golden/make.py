"""Write files of this version into a new archive beside this module; README.md says what for.

``python -m tests.golden.make NAME`` makes NAME.tar.xz: rows, what was learned from them and saved, and
``expected.json``, which says of what kind each file is, which rows to try it on and what it then predicts.
"""

import argparse
import hashlib
import json
import os
import pickle
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import thresher
from tests.stopping import once_learned, stopping
from tests.streams import RULES, settings_of
from thresher.data.chunk import Chunk
from thresher.learning.training.interruption import Interrupted
from thresher.serving.service import LearningService
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

ROWS, SHOWN = 50, 12
TABLE, LINES, JSON, VW = "rows.csv", "rows.svm", "rows.jsonl", "rows.vw"
CLASSES, LABELS, VALUES = "classes.svm", "labels.svm", "values.svm"
COUNTS: dict[str, Any] = {"passes": 2, "label": "count", "ignore": "label"}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"rule-{name}": (LINES, {"rule": settings_of(name)[0]}) for name in RULES},
    "two-classes": (TABLE, {"passes": 2}),
    "names": (TABLE, {"passes": 2, "names": True}),
    "signs": (TABLE, {"passes": 2, "nonpositive": "hour"}),
    "interactions": (TABLE, {"passes": 2, "interact": "colour,hour"}),
    "texts": (TABLE, {"passes": 2, "text": "note", "ngrams": "words=1-2"}),
    "bins": (TABLE, {"passes": 2, "bins": "hour", "categorical": "count", "missing": "7"}),
    "standard": (TABLE, {"passes": 2, "rule": "ftrl", "scale": "standard"}),
    "max-abs": (TABLE, {"passes": 2, "rule": "fobos", "scale": "max-abs", "average": True}),
    "calibrated": (TABLE, {"passes": 2, "loss": "hinge", "calibrate": True}),
    "sampled": (TABLE, {"passes": 2, "sample": "no=0.5,correct"}),
    "weighed": (TABLE, {"passes": 2, "weight": "exposure"}),
    "offset": (TABLE, {**COUNTS, "loss": "poisson", "offset": "exposure"}),
    "quantile": (TABLE, {**COUNTS, "loss": "quantile:0.9"}),
    "huber": (TABLE, {**COUNTS, "loss": "huber", "rule": "adagrad-rda"}),
    "words": (TABLE, {"passes": 2, "label": "colour", "loss": "softmax", "calibrate": True}),
    "met-classes": (TABLE, {"passes": 2, "label": "colour", "outputs": "classes", "loss": "softmax"}),
    "one-vs-rest": (CLASSES, {"passes": 2, "outputs": "classes:1-3", "loss": "logistic"}),
    "softmax": (CLASSES, {"loss": "softmax", "outputs": "classes:1-3", "rule": "fobos:l1=0.01,group=l2"}),
    "crammer-singer": (CLASSES, {"loss": "crammer-singer", "outputs": "classes:1-3", "rule": "sgd"}),
    "labels": (LABELS, {"passes": 2, "outputs": "labels:0-3"}),
    "values": (VALUES, {"passes": 2, "outputs": "values:2", "loss": "squared"}),
    "hashed": (LINES, {"rule": "rda", "store": "hashed:6"}),
    "signed": (LINES, {"rule": "ftrl", "store": "hashed:6,signed"}),
    "direct": (LINES, {"rule": "ftrl", "store": "direct", "dtype": "float64", "intercept": False}),
    "admitted": (LINES, {"rule": "ftrl", "admit": "2,bits=10"}),
    "admitted-by-chance": (LINES, {"rule": "ftrl", "admit": "poisson:0.5,bits=10", "seed": 3}),
    "batch": (LINES, {"rule": "adagrad-rda", "batch": 7}),
    "faded": (LINES, {"passes": 2, "rule": "ft-ftrl:half_life=20,taper=1"}),
    "json": (JSON, {"passes": 2}),
    "vw": (VW, {"passes": 2}),
}
"""What is trained: the rows, and the options."""
STOPPED: dict[str, tuple[str, dict[str, Any]]] = {
    "train": (TABLE, {"passes": 3, "holdout": 0.2, "scale": "max-abs"}),
    "path": (LINES, {"passes": 2, "rule": "ftrl", "l1": [0.1, 1.0]}),
    "ensemble": (LINES, {"passes": 2, "rule": "ftrl", "models": 2}),
}
"""What is stopped in the middle, and written as a whole: the function, the rows, and the options."""
TOLD = ("kind", "examples", "nonzero", "features_seen", "progressive_loss", "record", "layout", "columns")
"""What `thresher.info` says of a model that must stay as it is"""
Entry = dict[str, Any]


def write_rows() -> None:
    chance, texts = np.random.default_rng(20), dict[str, list[str]]()
    texts[TABLE] = ["label,colour,hour,size,note,count,exposure"]
    for _ in range(ROWS):
        hour, exposure = int(chance.integers(0, 24)), chance.uniform(0.5, 3)
        size = "" if chance.random() < 0.1 else f"{chance.normal(5, 2):.2f}"
        colour, *words = map(str, chance.choice(["red", "green", "blue", "old"], 4))
        margin = (hour - 12) / 6 + (colour == "red") + chance.normal(0, 0.5)
        count, yes = chance.poisson(exposure * np.exp(margin / 3)), margin > 0
        cells = ["yes" if yes else "no", colour, hour, size, " ".join(words), count, f"{exposure:.2f}"]
        texts[TABLE].append(",".join(map(str, cells)))
        ids = sorted(chance.choice(12, 4, replace=False).tolist())
        features = " ".join(f"{one + 1}:{chance.uniform(0.2, 2):.2f}" for one in ids)
        kind = 1 + (3 in ids) + (5 in ids)
        labels = {LINES: int(kind > 1), CLASSES: kind, VALUES: f"{hour / 10},{kind}"}
        labels |= {LABELS: ",".join(str(one) for one in ids if one < 4)}
        lines = {name: f"{label} {features}" for name, label in labels.items()}
        lines[VW] = f"{2 * yes - 1} | {' '.join(words)} |n hour:{hour}"
        lines[JSON] = json.dumps({"label": int(yes), "colour": colour, "hour": hour, "tags": words})
        for name, line in lines.items():
            texts.setdefault(name, []).append(line)
    for name, some in texts.items():
        Path(name).write_text("".join(f"{line}\n" for line in some))


def margins_of(found: Any, data: str) -> Any:
    """What each of the models predicts for the first rows, with six digits."""
    some = getattr(found, "models", [found])
    margins = [np.asarray(thresher.predict(one, data, output="margin"))[:SHOWN] for one in some]
    return [[float(f"{one:.6g}") for one in own.ravel()] for own in margins]


def models() -> Iterator[Entry]:
    for name, (data, options) in MODELS.items():
        file = f"{name}.model"
        thresher.train(data, **options).save(file)
        again = thresher.train(data, continue_from=file, passes=1)
        one = {"kind": "model", "file": file, "data": data, "margins": margins_of(file, data)}
        told = {name: thresher.info(file)[name] for name in TOLD}
        yield {**one, "continued": margins_of(again, data), "told": told}
    thresher.save(thresher.boost(LINES, l1=0.1), "boost.model")
    yield {
        "kind": "weights",
        "file": "boost.model",
        "data": LINES,
        "margins": margins_of("boost.model", LINES),
    }


def many() -> Iterator[Entry]:
    for name, (data, options) in STOPPED.items():
        function, file = getattr(thresher, name), f"{name}.checkpoint"
        whole = function(data, **options)
        try:
            with stopping(once_learned(ROWS + 10)):
                function(data, **options, checkpoint=file, checkpoint_every=10)
        except Interrupted:
            one = {"function": name, "data": data, "margins": margins_of(whole, data)}
            yield {"kind": "checkpoint", "file": file, "options": options, **one}
        if name != "train":
            saved = f"{name}.model"
            whole.save(saved, state=True)
            again = function(data, continue_from=saved, passes=1)
            yield {"kind": "many", "file": saved, **one, "continued": margins_of(again, data)}
    found = thresher.select(LINES, bags=8, passes=2, nonzero=3, l1=0.1)
    found.save("selection.model")
    yield {
        "kind": "selection",
        "file": "selection.model",
        "share": found.share.tolist(),
        "kept": found.kept.tolist(),
    }


def logs() -> Iterator[Entry]:
    """The log of a server, with a row whose label came late."""
    before = "rule-ftrl.model"
    rows = [Chunk.of_rows([(1.0, {one: 1.0, 3: 0.5}), (-1.0, {one + 1: 2.0})]) for one in range(1, 6)]
    service = LearningService(Path(before), Path("log"))
    with closing(service):
        service.start()
        for k, chunk in enumerate(rows):
            service.learn(chunk, key=f"key {k}").result()
        service.keep(["late", "never"], rows[0]).result()
        service.label([["late"]], np.array([-1], np.float32), np.array([2], np.float32)).result()
    continued = margins_of(thresher.train("log", continue_from=before), LINES)
    yield {"kind": "log", "file": "log", "model": before, "rows": 11, "data": LINES, "margins": continued}


def pickles() -> Iterator[Entry]:
    X = np.random.default_rng(2).normal(size=(ROWS, 4)).round(2)
    y = X[:, 1] > 0.3
    np.savetxt("matrix.txt", X, fmt="%.2f")
    saved: dict[str, Any] = {
        "model": thresher.train(X, y, passes=1),
        "classifier": SparseOnlineClassifier("ftrl").fit(X, y),
        "regressor": SparseOnlineRegressor("ftrl").fit(X, X[:, 0]),
    }
    for name, one in saved.items():
        Path(f"{name}.pickle").write_bytes(pickle.dumps(one, protocol=5))
        margins = [float(f"{found:.6g}") for found in one.predict(X)[:SHOWN]]
        yield {"kind": "pickle", "file": f"{name}.pickle", "data": "matrix.txt", "margins": margins}


def write(archive: Path) -> None:
    """Write all into an archive, and its hash into the list."""
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        write_rows()
        expected = [*models(), *many(), *logs(), *pickles()]
        text = ",\n".join(json.dumps(one) for one in expected)
        Path("expected.json").write_text(f"[\n{text}\n]\n")
        with tarfile.open(archive, "x:xz") as file:
            file.add(".")
    with open(archive.parent / "SHA256SUMS", "a") as sums:
        sums.write(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="of the archive: the version, with a word if that has one already")
    target = Path(__file__).parent / f"{parser.parse_args().name}.tar.xz"
    if target.exists():
        parser.error(f"{target.name} exists, and is never written anew: give another name")
    write(target)
