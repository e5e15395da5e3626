"""Random bytes, mutated lines and models: a sample of what is fuzzed, and tests for what that found."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.samples import SAMPLES
from tests.fuzz.models import CASES, corpus, small_and_plain, used, worker
from tests.fuzz.targets import TARGETS, Checker
from tests.streams import RULES
from thresher.learning.files import model_file

checker = cache(Checker)
CHANGES = ("insert", "replace", "delete", "repeat", "flip")


@st.composite
def texts(draw: st.DrawFn, name: str) -> bytes:
    """Lines of a format with a few mutations, or random fragments of lines."""
    target = TARGETS[name]
    token = st.sampled_from(target.tokens) | st.binary(max_size=3)
    if draw(st.integers(0, 4)) == 0:
        return b"".join(draw(st.lists(token | st.sampled_from([b" ", b"\n"]), max_size=60)))
    text = bytearray(b"\n".join(draw(st.lists(st.sampled_from(target.seeds()), min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 5))):
        at, more = draw(st.integers(0, len(text))), draw(st.integers(0, 9))
        change = draw(st.sampled_from(CHANGES))
        if change == "flip" and at < len(text):
            text[at] ^= 1 << more % 8
        elif change == "repeat":
            text[at:at] = text[at : at + 4 * more] * draw(st.sampled_from([1, 2, 20]))
        else:
            text[at : at + (0 if change == "insert" else more)] = draw(token) if change != "delete" else b""
    return bytes(text)


def test_every_format_of_lines_is_a_target() -> None:
    assert {target.sample for target in TARGETS.values()} == {
        name for name, sample in SAMPLES.items() if sample.packed
    }


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_examples_or_reported(name: str) -> None:
    @settings(max_examples=settings().max_examples * 3 // 2)
    @given(texts(name))
    def search(text: bytes) -> None:
        checker(name)(text)

    search()


FOUND = {
    "jsonl": [
        b'{"label": 1, "w": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"label": 1, "w": 1, "x": ' + b"1" * 5000 + b"}\n{}",
        b'{"label": 1, "w": 1, "id\\ud800": 1}\n{}\n{"label": 1, "w": 1}',
        b'{"label": -0, "w": 1}\n{"label": -0.0, "w": -0, "x": -0}\n{}',
    ],
    "vw": [b"1 1 0 0 | a", b"1 1 0 -0e7 'tag| a"],
}
"""Texts that once crashed a parser or were parsed wrongly."""


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_right(name: str) -> None:
    for text in FOUND[name]:
        checker(name)(text)


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
