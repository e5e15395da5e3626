"""What an unknown name may mean: a name that other tools use, or the closest spelling."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

SYNONYMS = {
    "epochs": "passes",
    "iterations": "passes",
    "max-iter": "passes",
    "learning-rate": "alpha rate",
    "lr": "alpha rate",
    "lambda": "l1",
    "lasso": "l1 ft-ftrl",
    "optimizer": "rule",
    "objective": "loss",
    "validation": "holdout",
    "random-state": "seed",
    "batch-size": "batch",
    "shuffle": "order once",
    "random": "order once",
    "n-jobs": "threads",
    "target": "label",
    "sep": "delimiter",
    "drop": "ignore skip",
    "output": "output-file model",
    "normalize": "scale max-abs",
    "zscore": "standard",
    "proba": "output probability",
    "fit": "train",
    "test": "evaluate holdout",
    "svm": "hinge pegasos svmlight",
    "libsvm": "svmlight",
    "adam": "adagrad-fobos",
    "log-loss": "logistic",
    "mse": "squared",
    "mae": "absolute",
    "accuracy": "error",
    "penalty": "l1 l2",
    "c": "l1 l2",
    "patience": "early-stop",
    "cross-entropy": "logistic softmax",
    "javascript": "js",
}
"""Names that other tools use, and ours: of options, their values, commands, parts and formats"""
_CLOSE = 0.75
"""How close a spelling must be, of 1"""


def meant(word: str, known: Collection[str]) -> list[str]:
    """Those of the `known` names that an unknown `word` may mean: its synonyms, else the closest spelling.

    >>> meant("epochs", ["passes"]), meant("learning_rate", ["alpha", "rate"]), meant("pases", ["passes"])
    (['passes'], ['alpha', 'rate'], ['passes'])
    >>> meant("lamda", ["l1"]), meant("test", ["train", "evaluate"]), meant("thresholds", ["threads"])
    (['l1'], ['evaluate'], [])
    """
    plain = {one.replace("_", "-"): one for one in known}
    typed = word.replace("_", "-").lower()
    for near in (typed, *get_close_matches(typed, [*plain, *SYNONYMS], 3, _CLOSE)):
        if found := [plain[one] for one in SYNONYMS.get(near, near).split() if one in plain]:
            return found
    return []


def did_you_mean(word: str, known: Collection[str]) -> str:
    """The end of a message about an unknown name; empty if no name is close.

    >>> did_you_mean("zscore", ["max-abs", "standard"])
    '; did you mean standard?'
    """
    near = meant(word, known)
    return f"; did you mean {' or '.join(near)}?" if near else ""
