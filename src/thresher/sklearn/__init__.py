"""scikit-learn estimators: thresher's rules with `fit`, `partial_fit` and `predict`.

They need scikit-learn (``pip install scikit-learn``).
"""

from __future__ import annotations

from thresher.sklearn.available import OLDEST
from thresher.sklearn.classifier import SparseOnlineClassifier
from thresher.sklearn.frontier import SparseFrontierClassifier, SparseFrontierRegressor
from thresher.sklearn.regressor import SparseOnlineRegressor
from thresher.sklearn.selector import SparseStabilitySelector

__all__ = [
    "OLDEST",
    "SparseFrontierClassifier",
    "SparseFrontierRegressor",
    "SparseOnlineClassifier",
    "SparseOnlineRegressor",
    "SparseStabilitySelector",
]
