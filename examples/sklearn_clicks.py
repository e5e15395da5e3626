"""A stream of clicks: Criteo's rows, learned 25 at a time, each predicted before it is learned.

Run it: ``python examples/sklearn_clicks.py``.

13 columns of counts and 26 of categories go in as a table. Categories are hashed, so new ones may turn up at
any time. However the rows are split into calls, `partial_fit` gives the same model as one `fit` in the same
order.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from thresher.sklearn import SparseOnlineClassifier

DATA = Path(__file__).parent / "data" / "criteo_first200.txt.gz"
COUNTS = [f"I{k}" for k in range(1, 14)]
CATEGORIES = [f"C{k}" for k in range(1, 27)]
AT_ONCE = 25


def rows() -> tuple[pd.DataFrame, np.ndarray]:
    """Return table and labels; counts range from -1 to 1,000,000, so they are binned by logarithm."""
    table = pd.read_csv(DATA, sep="\t", header=None, names=["label", *COUNTS, *CATEGORIES], dtype=str)
    for name in COUNTS:
        count = pd.to_numeric(table[name])
        level = np.floor(np.log2(count.clip(lower=0) + 1))
        table[name] = level.map(lambda number: None if pd.isna(number) else f"{number:.0f}")
    return table.drop(columns="label"), table["label"].astype(int).to_numpy()


def streamed(table: pd.DataFrame, clicked: np.ndarray) -> tuple[SparseOnlineClassifier, np.ndarray]:
    """Return the model, and each row's predicted probability of a click before it was learned."""
    model = SparseOnlineClassifier("ftrl:alpha=0.05,l1=0.5", random_state=0)
    predicted = np.full(len(clicked), 0.5)
    for lo in range(0, len(clicked), AT_ONCE):
        now = slice(lo, lo + AT_ONCE)
        if lo:
            predicted[now] = model.predict_proba(table[now])[:, 1]
        model.partial_fit(table[now], clicked[now], classes=[0, 1])
    return model, predicted


def main() -> None:
    table, clicked = rows()
    model, predicted = streamed(table, clicked)
    print(
        f"{len(clicked)} displays, {clicked.mean():.1%} clicked; {model._model.features_seen:,} features seen"
    )
    print(f"{len(model.feature_keys_):,} of them have a weight")
    later = slice(AT_ONCE, None)
    progressive = log_loss(clicked[later], predicted[later])
    print(f"log loss before learning, from row {AT_ONCE + 1} on: {progressive:.4f}")
    share = np.full(len(clicked), clicked.mean())
    constant = log_loss(clicked[later], share[later])
    print(f"of always predicting {clicked.mean():.1%}, the share of all rows: {constant:.4f}")
    whole = SparseOnlineClassifier("ftrl:alpha=0.05,l1=0.5", passes=1, shuffle=False).fit(table, clicked)
    same = np.array_equal(whole.predict_proba(table), model.predict_proba(table))
    print(f"one fit in the same order predicts the same, bit for bit: {same}")


if __name__ == "__main__":
    main()
