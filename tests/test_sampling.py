"""The experiment of sampled negatives: every way is tried, and the correction is one."""

from typing import Any

import numpy as np
import pytest

from experiments import sampling


@pytest.mark.usefixtures("plainly")
def test_every_way_is_tried(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sampling, "RULES", ("ftrl",))
    monkeypatch.setattr(sampling, "RATES", (0.5, 0.2))
    sampling.main([], rows=900, samples=1)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("600 rows, 300 for testing")
    assert len(lines) == 1 + 2 + 5


def test_clicks_are_as_rare_as_wanted() -> None:
    labels = sampling.made(20_000, 0.03).labels > 0
    assert 0.025 < labels.mean() < 0.035


def test_the_correction_undoes_the_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that knows the share of positives in what was kept."""
    clicks = sampling.made(4000, 0.2)

    def known(learned: Any, test: Any, *_: Any, **__: Any) -> Any:
        share = (learned.labels > 0).mean()
        return np.full(len(test), np.log(share / (1 - share)))

    monkeypatch.setattr(sampling, "margins", known)
    kept = clicks.take((clicks.labels > 0) | (np.random.default_rng(1).random(len(clicks)) < 0.1))
    (_, margins), *_ = sampling.ways(kept, clicks, "ftrl", 0.1)
    share = (clicks.labels > 0).mean()
    assert sampling.link(margins).mean() == pytest.approx(share, rel=0.1)
    assert sampling.figures(margins, clicks.labels > 0)[2] == pytest.approx(1, rel=0.1)
