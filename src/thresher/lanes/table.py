"""Tables that compare many models, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.lanes.estimates import Estimate
from thresher.lanes.frontier import Judged, Point, choose
from thresher.lanes.tuning import Trial
from thresher.learning.figures import shown

_HEADS = {"nonzero": "non-zero", "paired_error": "± paired"}


def lines_of(dicts: Sequence[dict[str, Any]], keys: Sequence[str], chosen: int | None) -> list[str]:
    """A line for each model, with a star at the chosen one, and the reason if one was dropped."""
    heads = [_HEADS.get(key, key.replace("holdout_", "held-out ")).replace("_", " ") for key in keys]
    widths = [max(len(head), 10) for head in heads]
    lines = ["  " + "  ".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for k, one in enumerate(dicts):
        cells = (f"{shown(one.get(key)):>{width}}" for key, width in zip(keys, widths, strict=True))
        why = f"  ({one['dropped']})" if one.get("dropped") else ""
        lines.append(("* " if k == chosen else "  ") + "  ".join(cells) + why)
    return lines


def of_points(points: Sequence[Point], penalty: str, chosen: int | None) -> list[str]:
    """The table of a frontier."""
    dicts = [point.as_dict(penalty) for point in points]
    figures = dict.fromkeys(key for one in dicts for key in one if key.startswith("holdout_"))
    keys = [penalty, "nonzero", "progressive_loss", *figures]
    return lines_of(dicts, [key for key in keys if key != "holdout_examples"], chosen)


def of_estimates(estimates: Sequence[Estimate], penalty: str | None, chosen: int | None) -> list[str]:
    """The table of a cross-validation; weights are rounded, and ``1se``'s error follows the loss's error."""
    dicts = [one.as_dict(penalty) for one in estimates]
    keys = list(dict.fromkeys(key for one in dicts for key in one if key not in ("spec", "dropped")))
    keys.remove("paired_error")
    keys.insert(keys.index("loss_se") + 1 if "loss_se" in keys else len(keys), "paired_error")
    rows = [one | {"nonzero": one["nonzero"] and round(one["nonzero"])} for one in dicts]
    return lines_of(rows, keys, chosen)


def of_trials(trials: Sequence[Trial], chosen: int | None) -> list[str]:
    """The table of a tuner's settings."""
    rows = [{"setting": setting_of(one), **one.as_dict()} for one in trials]
    return lines_of(rows, ["round", "rows", "progressive_loss", "late_loss", "setting"], chosen)


def setting_of(trial: Trial) -> str:
    """The options that train this setting."""
    return trial.rule if trial.rate is None else f"{trial.rule} --rate {trial.rate}"


def best_of(judged: Sequence[Judged]) -> int | None:
    """Number of the model with the lowest loss; None if none has a loss."""
    try:
        return choose(judged, "best")
    except ValueError:
        return None
