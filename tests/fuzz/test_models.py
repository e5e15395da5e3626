"""A sample of what ``python -m tests.fuzz.models`` does, and regression tests for what it found."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.models import CASES, corpus, small_and_plain, used, worker
from tests.streams import RULES
from thresher.learning.files import model_file

MUTATIONS = range(140)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint of every case."""
    folder = tmp_path_factory.mktemp("corpus")
    with small_and_plain(compiled=False):
        corpus(CASES, folder)
    return folder


def test_every_rule_is_fuzzed() -> None:
    assert {case.spec.partition(":")[0] for case in CASES} == set(RULES)


def test_changed_models_are_refused_or_do_no_harm(written: Path) -> None:
    done = worker(MUTATIONS, written, compiled=False)
    last = done.stdout.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"mutation {last}: {done.stderr[-3000:]}"
    outcomes = json.loads(last)
    assert outcomes["ran"] > len(MUTATIONS) // 2
    assert outcomes["ModelFileError"] > len(MUTATIONS) // 2


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_training_leaves_is_sound(number: int, written: Path) -> None:
    path, case = written / f"{number}", CASES[number]
    with small_and_plain(compiled=False), np.errstate(all="ignore"):
        done = used(case, path, compiled=False)
    can_go_on = model_file.read(path)[0]["recipe"]["rule"] is not None
    assert done == ["ran", *(["ran" if can_go_on else "ModelFileError"] * 2)], case.name
