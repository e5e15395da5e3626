"""The figures and tables of the papers, made again: ``python -m experiments.papers --data DATA``.

Each module is one figure or table: its `page` takes the data sets and returns what docs/papers shows. With
`Sets.quick` it uses small data that ship or are generated, and takes seconds.
"""

from __future__ import annotations

import importlib

from experiments.papers.page import Page
from experiments.papers.sets import Sets

NAMES = (
    "langford-features",
    "langford-auc",
    "langford-curves",
    "langford-regret",
    "oiwa-frequency",
    "singer-ball",
    "singer-on-the-fly",
    "singer-solvers",
    "singer-mixed",
    "singer-rare",
    "singer-topics",
    "singer-sparsity",
    "singer-boosting",
    "reid-transcript",
    "bottou-svmsgd",
    "daume-order",
    "daume-sparse",
    "daume-hashing",
)
"""the pages, in the order of docs/papers/README.md; names of modules with a hyphen for each underscore"""


def make(name: str, sets: Sets) -> Page:
    """The page `name`. `MissingDataError` if `sets` lacks what it needs."""
    page = importlib.import_module(f"experiments.papers.{name.replace('-', '_')}").page(sets)
    assert isinstance(page, Page)
    return page
