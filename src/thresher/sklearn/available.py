"""Check that scikit-learn is installed and new enough; imported before anything that needs it."""

from __future__ import annotations

from thresher.data.errors import NoPackageError

try:
    import sklearn
except ImportError as error:
    raise NoPackageError("thresher.sklearn", "scikit-learn") from error

OLDEST = (1, 6)
"""Oldest tested version of scikit-learn"""

if tuple(int(number) for number in sklearn.__version__.split(".")[:2]) < OLDEST:
    oldest = ".".join(map(str, OLDEST))
    raise ImportError(f"thresher.sklearn needs scikit-learn {oldest} or newer, not {sklearn.__version__}")
