"""river's own tracks, run as river runs them: `thresher.river` beside river's linear models.

A track predicts each row of a data set, then the model learns it, one row a call. Data sets that river would
have to fetch from the network are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import peers, report
from benchmarks.report import Goal
from benchmarks.setting import Setting

OURS = "thresher, nothing chosen"


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

    from thresher import river

    tracks: dict[str, tuple[Any, Callable[[], Any]]] = {
        "binary": (evaluate.BinaryClassificationTrack(), river.Classifier),
        "classes": (evaluate.MultiClassClassificationTrack(), river.MulticlassClassifier),
        "numbers": (evaluate.RegressionTrack(), river.Regressor),
    }
    for kind, (track, make) in tracks.items():
        for data in track:
            if not hasattr(data, "url"):
                _table(track, data, {OURS: make(), **theirs(kind)})
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
