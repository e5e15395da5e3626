"""Thirty days of rows, learned a day at a time: `--continue`, `--init`, and one stream. Needs --data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import thresher
from benchmarks import report
from benchmarks.corpora import read
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import Chunk
from thresher.data.chunk import concat

SETS = {
    "RCV1-CCAT": ("rcv1/rcv1_ccat_train.svm.gz", "rcv1/rcv1_ccat_test.svm.gz"),
    "Criteo": tuple(
        f"criteo/criteo_hashed20_{rows}.svm.gz" for rows in ("0-19999", "20000-39999", "40000-59999")
    ),
}
RULES = ("ft-ftrl", "ftrl", "adagrad-fobos")
DAYS = 30
CLOSE = 1.02
"""the loss of a model that goes on each day over that of one stream, at most"""


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    goals: list[Goal] = []
    for name, files in SETS.items():
        if setting.data is None or not all((setting.data / file).exists() for file in files):
            continue
        *days, test = _split(setting.data, files)
        for rule in RULES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", thresher.TroubleWarning)
                found = {
                    how: (_loss(model, test), model.nonzero) for how, model in _models(days, rule).items()
                }
            rows = [(how, f"{loss:.4f}", f"{size:,}") for how, (loss, size) in found.items()]
            report.table(f"{name}, {rule}: loss on day {DAYS + 1}", ("", "loss", "weights"), rows)
            one, same = found["one stream, one pass"], found["continue, one pass"]
            goals.append(
                Goal(f"{name}, {rule}: going on", "equals one stream", f"{same[0]:.4f}", same == one)
            )
            ratio = found["continue"][0] / one[0]
            goals.append(
                Goal(f"{name}, {rule}: going on by default", f"<= {CLOSE}", f"{ratio:.3f}", ratio <= CLOSE)
            )
    return goals


def _split(folder: Path, files: Sequence[str]) -> list[Chunk]:
    whole = concat([read(folder / file, "binary") for file in files])
    ends = np.linspace(0, len(whole), DAYS + 2).astype(int)
    return [whole.rows(*ends[k : k + 2].tolist()) for k in range(DAYS + 1)]


def _models(days: list[Chunk], rule: str) -> dict[str, thresher.Model]:
    whole = concat(days)
    return {
        "one stream, one pass": thresher.train(whole, rule=rule, passes=1),
        "one stream": thresher.train(whole, rule=rule),
        "continue, one pass": _daily(days, "continue_from", rule, passes=1),
        "continue": _daily(days, "continue_from", rule),
        "init": _daily(days, "init", rule),
        "the last day alone": thresher.train(days[-1], rule=rule),
    }


def _daily(days: list[Chunk], how: str, rule: str, **options: Any) -> thresher.Model:
    model = thresher.train(days[0], rule=rule, **options)
    for day in days[1:]:
        more: Any = {how: model, "rule": rule if how == "init" else None}
        model = thresher.train(day, **more, **options)
    return model


def _loss(model: thresher.Model, test: Chunk) -> float:
    margins, labels = model.predict(test), np.where(test.labels > 0, 1.0, -1.0)
    return float(np.logaddexp(0.0, -labels * margins).mean())
