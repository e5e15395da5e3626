"""Texts of a dozen groups: which package of Python's own library does a paragraph document?

Run it: ``python examples/sklearn_text.py``, or with ``newsgroups`` behind it for the 20 newsgroups, which
scikit-learn then downloads.

Texts go in as they are: their words and pairs of words are features, whose keys are hashes, so there is no
vocabulary to keep. One model holds all groups, by softmax, and most words weigh nothing.
"""

import ast
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from thresher.data.layout import Layout
from thresher.sklearn import SparseOnlineClassifier

GROUPS: tuple[str, ...] = (
    "asyncio",
    "ctypes",
    "email",
    "html",
    "http",
    "importlib",
    "json",
    "logging",
    "multiprocessing",
    "sqlite3",
)
GROUPS += ("unittest", "urllib", "wsgiref", "xml")
SHORTEST = 8
"""Words of a paragraph"""


def paragraphs(package: Path) -> Iterator[str]:
    """The paragraphs of all docstrings in a package."""
    for path in sorted(package.rglob("*.py")):
        if "test" in path.parts or "tests" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for text in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                    if len(text.split()) >= SHORTEST:
                        yield text


def documentation() -> tuple[list[str], list[str]]:
    """Paragraphs, each once, and the package that they stand in."""
    library = Path(sysconfig.get_paths()["stdlib"])
    found = {text: group for group in GROUPS for text in paragraphs(library / group)}
    return list(found), list(found.values())


def newsgroups() -> tuple[list[str], list[str]]:
    """The 20 newsgroups without what gives them away."""
    from sklearn.datasets import fetch_20newsgroups

    bunch = fetch_20newsgroups(subset="all", remove=("headers", "footers", "quotes"))
    return bunch.data, np.array(bunch.target_names)[bunch.target].tolist()


def learned(texts: list[str], groups: list[str]) -> tuple[Any, float]:
    """A model of three quarters of the texts, and the share of the others that it gets right."""
    train, test, y_train, y_test = train_test_split(texts, groups, random_state=0, stratify=groups)
    model = SparseOnlineClassifier(
        "adagrad-fobos:eta=0.5,l1=2e-4",
        "softmax",
        layout=Layout(ngrams="words=1-2,norm"),
        passes=8,
        random_state=0,
    )
    model.fit(train, y_train)
    return model, model.score(test, y_test)


def main() -> None:
    texts, groups = newsgroups() if sys.argv[1:] == ["newsgroups"] else documentation()
    model, accuracy = learned(texts, groups)
    often = max(groups.count(group) for group in set(groups)) / len(groups)
    features = model._model.features_seen
    print(f"{len(texts):,} texts of {len(model.classes_)} groups, {features:,} words and pairs of words")
    print(f"{len(model.feature_keys_):,} of them weigh something after {model.n_iter_} passes")
    print(f"test accuracy {accuracy:.3f}; always the largest group: {often:.3f}")
    for text in ("Parse the header of a mail message", "Send a request to the server and read the response"):
        print(f"{model.predict([text])[0]:10} {model.predict_proba([text]).max():.2f}  {text}")


if __name__ == "__main__":
    main()
