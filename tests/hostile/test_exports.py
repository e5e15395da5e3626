"""A hundred thousand odd rows of each layout: run by make hostile."""

import warnings
from pathlib import Path

import pytest

import thresher
from tests.exporting.engines import c_program
from tests.exporting.rows import TRIALS, ExportTrial, trained, written
from tests.exporting.test_c import check


@pytest.mark.hostile
@pytest.mark.parametrize("trial", TRIALS, ids=lambda one: one.name)
def test_every_bit_of_many_rows(trial: ExportTrial, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = trained(trial, tmp_path)
    data = written(trial, tmp_path / trial.file, 100_000, 4)
    check(model, c_program(str(thresher.export(model, "c")), tmp_path / "model"), data, "margin")
