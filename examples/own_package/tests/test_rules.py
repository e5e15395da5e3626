from typing import Any

import numpy as np
from own_package.rules import ForgetfulSgd

from thresher.testing import check_rule


def dense(rule: Any, loss: Any, X: Any, y: Any, importance: Any) -> Any:
    """The same rule without laziness: every step changes all weights."""
    w = np.zeros(X.shape[1])
    for x, label, times in zip(X, y, importance, strict=True):
        slope = times * loss.value_slope(float(w @ x), float(label))[1]
        w = (1 - rule.decay) * (w - rule.eta * slope * x)
    return w


def test_forgetful_sgd() -> None:
    check_rule(ForgetfulSgd(decay=0.01), oracle=dense)
