"""scikit-learn estimators: thresher's rules with `fit`, `partial_fit` and `predict`.

They need scikit-learn (``pip install scikit-learn``).
"""

from __future__ import annotations

from thresher.sklearn.available import OLDEST
from thresher.sklearn.classifier import SparseOnlineClassifier
from thresher.sklearn.regressor import SparseOnlineRegressor

__all__ = ["OLDEST", "SparseOnlineClassifier", "SparseOnlineRegressor"]
