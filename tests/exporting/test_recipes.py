"""Every export of models of random recipes predicts what they do; C runs with the sanitizers of gcc."""

from pathlib import Path

import pytest

from tests.exporting.recipes import tried

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_export_predicts_what_the_model_does(seed: int, tmp_path: Path) -> None:
    assert tried(seed, tmp_path)
