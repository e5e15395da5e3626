"""A sample of what ``python -m tests.fuzz.models`` does, and regression tests for what it found."""

import json
from pathlib import Path

from tests.fuzz.models import CASES, corpus, small_and_plain, worker
from tests.streams import RULES

MUTATIONS = range(140)


def test_every_rule_is_fuzzed() -> None:
    assert {case.spec.partition(":")[0] for case in CASES} == set(RULES)


def test_changed_models_are_refused_or_do_no_harm(tmp_path: Path) -> None:
    with small_and_plain(compiled=False):
        corpus(CASES, tmp_path)
    done = worker(MUTATIONS, tmp_path, compiled=False)
    last = done.stdout.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"mutation {last}: {done.stderr[-3000:]}"
    outcomes = json.loads(last)
    assert outcomes["ran"] > len(MUTATIONS) // 2
    assert outcomes["ModelFileError"] > len(MUTATIONS) // 2
