"""Narrow tables: the default, and cross-validated L1 regression on standardised columns. Needs --data."""

from __future__ import annotations

from typing import Any

from benchmarks import peers
from benchmarks.corpora import Corpus, Parts, corpora
from benchmarks.defaults import ONE, OURS, Matrices, Ratios, Result, Rows, fitted, learners, losses
from benchmarks.report import Goal
from benchmarks.setting import Setting

SETS = ("spambase", "krvskp", "crx", "wbc", "wdbc", "wpbc", "housing", "diabetes")
ANCHOR = "L1, cross-validated, standardised"
MEAN, WORST = 0.95, 1.10


def run(setting: Setting) -> list[Goal]:
    """Train, test, print and check the goals."""
    if setting.data is None or not peers.installed("sklearn"):
        return []
    tables = [corpus for corpus in corpora() if corpus.name in SETS and corpus.found(setting.data)]
    return compared({corpus: corpus.load(setting.data) for corpus in tables})


def compared(tables: dict[Corpus, Parts]) -> list[Goal]:
    """Score the default and the anchor on each table."""
    ours = {name: learn for name, learn in learners().items() if name in (OURS, ONE)}
    contenders = {**ours, ANCHOR: anchor}
    rows: Rows = {
        corpus: {name: learn(corpus, parts) for name, learn in contenders.items()}
        for corpus, parts in tables.items()
    }
    if not rows:
        return []
    losses("narrow tables: test loss @ weights (*: used for choosing constants)", rows, contenders)
    goals = []
    for name in ours:
        found = Ratios.of(rows.values(), name, ANCHOR)
        said = f"{found.mean:.3f}, worst {found.worst:.2f}"
        met = (found.mean <= MEAN and found.worst <= WORST) if name == OURS else None
        goal = f"<= {MEAN}, worst <= {WORST:.2f}" if name == OURS else ""
        goals.append(Goal(f"{len(rows)} narrow tables, {name}: test loss over {ANCHOR}", goal, said, met))
    return goals


def anchor(corpus: Corpus, parts: Parts, folds: int = 3) -> Result:
    """Run L1 logistic regression or the Lasso; the penalty is the best in cross-validation."""
    from sklearn.linear_model import LassoCV, LogisticRegressionCV
    from sklearn.preprocessing import StandardScaler

    train, test = (part.toarray() for part in Matrices.of(parts))
    scaler = StandardScaler().fit(train)
    model: Any = LassoCV(cv=folds)
    if corpus.outputs == "one":
        model = LogisticRegressionCV(
            Cs=10, l1_ratios=(1,), solver="liblinear", cv=folds, scoring="neg_log_loss", random_state=0
        )
    return fitted(corpus, model, scaler.transform(train), scaler.transform(test), parts)
