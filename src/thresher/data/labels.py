"""Which labels an example may have, by the name of the domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError

BINARY, REAL, NONNEGATIVE = 0, 1, 2
DOMAINS = {"binary": BINARY, "real": REAL, "nonnegative": NONNEGATIVE}
"""Domain names and the numbers compiled code knows them by."""

MEANING = {
    "binary": "a label -1, 0 or 1",
    "real": "a finite number as label",
    "nonnegative": "a label that is not negative",
}
"""What each domain expects, for messages. In `binary`, 0 and -1 both mean the negative class."""


def domain_code(domain: str) -> int:
    """The number of a domain; `DataError` for a name that is none."""
    if domain not in DOMAINS:
        raise DataError(f"no label domain '{domain}': choose among {', '.join(DOMAINS)}")
    return DOMAINS[domain]


def allowed(labels: NDArray[np.float32], domain: str) -> NDArray[np.bool_]:
    """Which of `labels` (n,) lie in `domain`, as (n,) bool."""
    code = domain_code(domain)
    if code == BINARY:
        binary: NDArray[np.bool_] = (labels == 0) | (np.abs(labels) == 1)
        return binary
    finite: NDArray[np.bool_] = np.isfinite(labels)
    return finite & (labels >= 0) if code == NONNEGATIVE else finite


def check_labels(labels: NDArray[np.float32], domain: str) -> None:
    """`DataError` naming the first label outside `domain`."""
    wrong = np.flatnonzero(~allowed(labels, domain))
    if len(wrong):
        raise DataError(f"example {wrong[0] + 1}: expected {MEANING[domain]}, found {labels[wrong[0]]:g}")
