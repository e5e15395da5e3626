"""river's own tracks, run as river runs them: thresher through an adapter, beside river's linear models.

A track predicts each row of a data set, then the model learns it, one row a call. Data sets that river would
have to fetch from the network are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import peers, report
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import Model

OURS = "thresher, nothing chosen"


def ours(loss: str, outputs: str = "one") -> Any:
    """A thresher model as river's tracks take it: a classifier, or with squared loss a regressor."""
    from river import base

    kind = base.Regressor if loss == "squared" else base.Classifier

    class Learner(kind):  # type: ignore[valid-type, misc]
        """Predicts and learns row by row. Classes get numbers in the order in which they appear."""

        def __init__(self, loss: str, outputs: str) -> None:
            self.loss, self.outputs = loss, outputs
            self._model = Model("ft-ftrl", loss, outputs=outputs)
            self._classes: list[Any] = [False, True] if outputs == "one" else []

        _multiclass = outputs != "one"

        def learn_one(self, x: Mapping[str, Any], y: Any) -> None:
            if self.loss != "squared":
                if y not in self._classes:
                    self._classes.append(y)
                y = self._classes.index(y)
            self._model.learn([x], [y])

        def predict_one(self, x: Mapping[str, Any], **_: Any) -> Any:
            if self.loss == "squared":
                return float(self._model.predict([x])[0])
            if not self._model.examples:
                return None
            found = int(self._model.predict_proba([x])[0].argmax())
            return self._classes[found] if found < len(self._classes) else None

        @property
        def _raw_memory_usage(self) -> int:
            return int(self._model.nbytes)

    return Learner(loss, outputs)


def theirs(kind: str) -> dict[str, Any]:
    """Linear models of river, on standardised columns, as in its own benchmarks."""
    from river import linear_model, optim, preprocessing

    made = {
        "binary": {
            "river, LogisticRegression": linear_model.LogisticRegression(optimizer=optim.SGD(0.005)),
            "river, ALMAClassifier": linear_model.ALMAClassifier(),
        },
        "classes": {"river, SoftmaxRegression": linear_model.SoftmaxRegression()},
        "numbers": {
            "river, LinearRegression": linear_model.LinearRegression(),
            "river, PARegressor": linear_model.PARegressor(mode=1),
            "river, BayesianLinearRegression": linear_model.BayesianLinearRegression(),
        },
    }
    return {name: preprocessing.StandardScaler() | model for name, model in made[kind].items()}


def run(setting: Setting) -> list[Goal]:
    """Run the tracks; print a table for each."""
    if not peers.installed("river"):
        return []
    from river import evaluate

    tracks: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "binary": (evaluate.BinaryClassificationTrack(), lambda _: ours("logistic")),
        "classes": (
            evaluate.MultiClassClassificationTrack(),
            lambda data: ours("softmax", f"classes:0-{data.n_classes - 1}"),
        ),
        "numbers": (evaluate.RegressionTrack(), lambda _: ours("squared")),
    }
    for kind, (track, make) in tracks.items():
        for data in track:
            if not hasattr(data, "url"):
                _table(track, data, {OURS: make(data), **theirs(kind)})
    return []


def _table(track: Any, data: Any, models: Mapping[str, Any]) -> None:
    """Run one data set of a track."""
    rows, names = [], list[str]()
    for name, model in models.items():
        *_, last = track.run(model, data)
        names = [key for key in last if key not in ("Step", "Time", "Memory")]
        figures = [f"{last[key].get():,.4f}" for key in names]
        rows.append((name, *figures, f"{last['Time'].total_seconds():.2f}", f"{last['Memory'] / 1e3:,.0f}"))
    title = f"river's track {track.name!r}: {type(data).__name__}, {data.n_samples:,} rows"
    report.table(title, ("", *names, "wall s", "kB"), rows)
