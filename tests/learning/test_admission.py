"""Admission: features enter at their n-th occurrence, some earlier, none later."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.intakes import sightings
from thresher.data.chunk import Chunk
from thresher.learning.model.preprocessing import Admission, AdmissionTerms


def visits(seed: int, rows: int, names: int) -> Chunk:
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, names, np.uint64)
    found = [np.unique(keys[np.minimum(rng.zipf(1.3, 8), names) - 1]) for _ in range(rows)]
    indptr = np.cumsum([0, *(len(row) for row in found)])
    return Chunk.from_csr(indptr, np.concatenate(found), np.ones(indptr[-1]), np.ones(rows))


def is_in(chunk: Chunk, kept: Chunk) -> list[bool]:
    pairs = {
        (i, key) for i in range(len(kept)) for key in kept.keys[kept.indptr[i] : kept.indptr[i + 1]].tolist()
    }
    rows = np.repeat(np.arange(len(chunk)), np.diff(chunk.indptr)).tolist()
    return [(i, key) in pairs for i, key in zip(rows, chunk.keys.tolist(), strict=True)]


@pytest.mark.parametrize("needed", [1, 2, 7, 255])
def test_a_feature_enters_at_its_nth_sighting(needed: int) -> None:
    chunk = visits(1, 2000, 3000)
    admission = Admission(f"{needed},bits=22", 3)
    kept = admission.kept(chunk, 0, False)
    counts = sightings(chunk)
    assert max(counts) > 300
    assert is_in(chunk, kept) == [count >= needed for count in counts]
    often = Counter(chunk.keys.tolist())
    assert admission.waiting == sum(count < needed for count in often.values())
    assert kept.labels is chunk.labels


def test_false_positives_enter_too_early_and_none_too_late() -> None:
    chunk = visits(2, 3000, 3000)
    kept = is_in(chunk, Admission("4,bits=10", 3).kept(chunk, 0, False))
    late = [count >= 4 and not found for count, found in zip(sightings(chunk), kept, strict=True)]
    early = [count < 4 and found for count, found in zip(sightings(chunk), kept, strict=True)]
    assert not any(late)
    assert 0.02 < np.mean(early) < 0.5
    roomy = is_in(chunk, Admission("4,bits=14", 3).kept(chunk, 0, False))
    assert sum(roomy) < sum(kept)


def test_a_larger_filter_admits_fewer_too_early() -> None:
    """With four counters per feature, fewer than one in a hundred seen once share all their counters."""
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 2**64, 1 << 16, np.uint64)
    chunk = Chunk.from_csr(np.arange(len(keys) + 1), keys, np.ones(len(keys)), np.ones(len(keys)))
    shares = [Admission(f"2,bits={bits}", 0).kept(chunk, 0, False).nnz / len(keys) for bits in (16, 18, 20)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.2
    assert shares[1] < 0.1
    assert shares[2] < 0.002


def test_by_chance_a_feature_enters_after_a_geometric_number_of_sightings() -> None:
    keys = np.random.default_rng(6).integers(0, 2**64, 4000, np.uint64)
    rows = 60
    chunk = Chunk.from_csr(
        np.arange(rows + 1) * 4000, np.tile(np.sort(keys), rows), np.ones(rows * 4000), np.ones(rows)
    )
    seen = {}
    for seed in (0, 1):
        kept = Admission("poisson:0.2", seed).kept(chunk, 0, False)
        missed = np.array([rows - count for count in Counter(kept.keys.tolist()).values()])
        share = [np.mean(missed >= k) for k in range(5)]
        assert share == pytest.approx(0.8 ** np.arange(5), abs=0.03)
        seen[seed] = set(kept.rows(0, 1).keys.tolist())
    both = len(seen[0] & seen[1]) / len(seen[0])
    assert both == pytest.approx(0.2, abs=0.06)


@pytest.mark.parametrize(
    ("spec", "again"),
    [
        (5, "5,bits=24"),
        ("5", "5,bits=24"),
        ("5,bits=12", "5,bits=12"),
        ("poisson:0.1", "poisson:0.1,bits=24"),
    ],
)
def test_the_spec_of_an_admission_makes_it_again(spec: Any, again: str) -> None:
    assert AdmissionTerms.of(spec).spec == again == AdmissionTerms.of(again).spec


@pytest.mark.parametrize(
    "spec", ["", "x", "-1", "2.5", "poisson", "poisson:", "poisson:x", "5,6", "5,bits=", "5,bits=x"]
)
def test_what_is_no_admission_is_told(spec: str) -> None:
    with pytest.raises(ValueError, match="admit must be N or poisson:P"):
        AdmissionTerms.of(spec)
