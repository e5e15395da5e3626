"""What a model and its weights share: predictions for whatever holds examples, weights by name."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.features.names import Names
from thresher.data.layout import SettledLayout
from thresher.learning.given import Data, as_source
from thresher.learning.head import F64, Head, Output
from thresher.learning.keywords import SourceOptions, check_names, layout_like, parted

if TYPE_CHECKING:
    import pandas as pd

    from thresher.learning.readout import Readout


def source_for(model: Any, data: Data, domain: Any, **reading: Any) -> Any:
    """`data` as a source for a model that there is, read as its training data were but for what is said.

    A model without a layout learned matrices, or Chunks: a table without labels is then a matrix to it.
    """
    of_layout, options = parted(reading)
    layout = layout_like(model.layout, options.pop("layout", None), of_layout)
    return as_source(data, domain, layout=layout or SettledLayout(), **options)


class Fitted(Protocol):
    """A fitted estimator of `thresher.sklearn`."""

    @property
    def model_(self) -> Any:
        """Its model."""


class Predictor:
    """Something with weights."""

    head: Head
    names: Names | None

    def margins(self, chunk: Chunk) -> F64:
        """Weighted sums ``(n,)`` float64 of the rows of `chunk`, ``(n, outputs)`` for many."""
        raise NotImplementedError

    def _weights(self) -> Readout:
        raise NotImplementedError

    def respond(self, margins: F64, output: Output) -> F64:
        """What `margins` mean: see `predict`."""
        raise NotImplementedError

    def predict(self, data: Data, output: Output = "margin", **reading: Unpack[SourceOptions]) -> F64:
        """Predictions ``(n,)`` float64, ``(n, outputs)`` for many; changes nothing.

        Args:
            data: examples, whose labels are ignored and need not be there: a path, a glob or several; a table
                (pandas, polars, pyarrow); a matrix (numpy, scipy); a list of dictionaries; a Chunk.
            output: ``margin``, the weighted sum; ``probability``, the link of the loss at it (of the positive
                class, where there are two); ``label``, the class as the training data wrote it ``(n,)``, or
                for regression the predicted mean.
            reading: how `data` are read, where it is not as the training data were: the options of
                `thresher.open_source` and the fields of a `Layout`.

        Raises ValueError for an output that this loss does not have, `DataError` for data that cannot be
        read.
        """
        return self._of_all(data, self.predict, reading, lambda margins: self.respond(margins, output))

    def predict_proba(self, data: Data, **reading: Unpack[SourceOptions]) -> F64:
        """Probabilities ``(n, classes)`` float64: of the negative and the positive class, or of each.

        Those of one class against the rest are divided by their sum; with outputs ``labels`` each stands
        alone. Arguments and errors are those of `predict`; ValueError for a loss without probabilities.
        """
        return self._of_all(data, self.predict_proba, reading, self.head.probabilities)

    def _of_all(
        self, data: Data, method: Callable[..., Any], reading: Any, respond: Callable[[F64], F64]
    ) -> F64:
        if isinstance(data, Chunk) and not reading:
            data.check_arrays()
            return respond(self.margins(data))
        check_names(method, reading, SourceOptions)
        source = source_for(self, data, self.head.open_domain, unlabelled=True, **reading)
        found = [respond(self.margins(chunk)) for chunk in source.chunks()]
        return np.concatenate(found) if found else respond(self.margins(concat([])))

    def weights_frame(self, top: int | None = None) -> pd.DataFrame:
        """The weights that are not zero as a table of pandas, largest magnitude first.

        Columns are ``feature`` (its name where it is known, else its key as text), ``key``, with many outputs
        ``output`` (the class, or the number of the value), and ``weight``. `name_features`, or ``names=True``
        in training, finds the names; those of numeric columns are always known.

        Args:
            top: only so many.

        Raises ImportError without pandas.
        """
        from thresher.learning.feature_names import known_names

        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("weights_frame needs pandas: pip install pandas") from error
        readout = self._weights()
        heaviest, names = readout.heaviest(top), known_names(readout)
        keys = [key for key, _, _ in heaviest]
        columns: dict[str, Any] = {
            "feature": [names.get(key, str(key)) for key in keys],
            "key": np.array(keys, np.uint64),
        }
        if self.head.outputs.kind != "one":
            columns["output"] = np.array([one for _, one, _ in heaviest], np.int64) + self.head.outputs.low
        weights: NDArray[Any] = np.array([weight for _, _, weight in heaviest], readout.weights.dtype)
        return pd.DataFrame({**columns, "weight": weights})


AnyModel = Predictor | Fitted
"""A Model, a Readout, or a fitted estimator"""
ModelOrFile = AnyModel | str | PathLike[str]
