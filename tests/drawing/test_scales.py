"""Axes: every value has a position; ticks are round, ordered and do not overlap."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.drawing.scales import (
    Axis,
    Scale,
    scale_of,
    ticks_across,
    ticks_upright,
    value_of,
    write_numbers,
)
from thresher.drawing.svg import width_of

ANY = st.floats(allow_nan=True, allow_infinity=True)
AXES = st.builds(Axis, log=st.booleans(), low=st.sampled_from([None, 0.01]), whole=st.booleans())


@given(axis=AXES, values=st.lists(ANY | st.integers(0, 10**12).map(float), max_size=20))
def test_every_value_that_can_be_shown_has_its_place(axis: Axis, values: list[float]) -> None:
    scale = scale_of(axis, values, 50, 600)
    places = [(value, scale.place(value)) for value in sorted(v for v in values if not math.isnan(v))]
    known = [place for _, place in places if place is not None]
    assert known == sorted(known)
    assert all(49.9 <= place <= 600.1 for place in known)
    for value, place in places:
        if abs(value) < 1e150 and (value >= 1e-150 or not axis.log):
            assert place is not None


@given(axis=AXES, values=st.lists(ANY | st.integers(0, 10**12).map(float), max_size=20))
def test_ticks_ascend_and_do_not_touch(axis: Axis, values: list[float]) -> None:
    scale = scale_of(axis, values, 50, 600)
    across, upright = ticks_across(scale), ticks_upright(scale._replace(start=300, end=20))
    for found in (across, upright):
        assert [tick.value for tick in found] == sorted({tick.value for tick in found})
    for a, b in pairwise(across):
        assert a.place + width_of(a.text, 12) / 2 < b.place - width_of(b.text, 12) / 2
    assert all(a.place - b.place > 12 for a, b in pairwise(upright))


@pytest.mark.parametrize(
    ("values", "axis", "texts"),
    [
        ([0.07, 0.39], Axis(), ["0.10", "0.15", "0.20", "0.25", "0.30", "0.35", "0.40"]),
        ([1, 1e6], Axis(log=True, whole=True), ["1", "10", "100", "1k", "10k", "100k", "1M"]),
        ([0, 3, 9000], Axis(log=True, whole=True), ["0", "10", "100", "1,000", "10,000"]),
        ([20, 90], Axis(log=True), ["20", "40", "60", "80"]),
        ([0.03, 3], Axis(log=True), ["0.05", "0.1", "0.2", "0.5", "1", "2"]),
        ([1e-9, 1e-2], Axis(log=True), ["1e-9", "1e-7", "1e-5", "0.001"]),
        ([0, 1], Axis(low=0, high=1, percent=True), ["0%", "20%", "40%", "60%", "80%", "100%"]),
        ([-3, 3], Axis(), ["−3", "−2", "−1", "0", "1", "2", "3"]),
        ([0, 2], Axis(whole=True), ["0", "1", "2"]),
        ([1e12, 1e12], Axis(), ["960G", "980G", "1T", "1.02T", "1.04T"]),
        ([], Axis(), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_what_ticks_say(values: list[float], axis: Axis, texts: list[str]) -> None:
    assert [tick.text for tick in ticks_across(scale_of(axis, values, 50, 350))] == texts


@given(st.floats(-6, 6), st.floats(0.3, 6))
def test_a_short_logarithmic_axis_has_two_ticks_or_more(low: float, decades: float) -> None:
    scale = scale_of(Axis(log=True), [10**low, 10 ** (low + decades)], 160, 0)
    assert len(ticks_upright(scale)) >= 2
    assert len(ticks_across(scale._replace(start=50, end=600))) >= 2


@given(st.lists(st.integers(-40, 40), min_size=2, max_size=9, unique=True), st.integers(-6, 12))
def test_ticks_are_told_apart(numbers: list[int], power: int) -> None:
    texts = write_numbers([k * 10.0**power for k in numbers])
    assert len(set(texts)) == len(numbers)


@given(ANY)
def test_a_value_is_short(value: float) -> None:
    assert len(value_of(value)) <= 14


def test_zero_has_a_place_of_its_own_on_a_logarithmic_axis() -> None:
    scale: Scale = scale_of(Axis(log=True), [0.0, 4.0, 64.0], 0, 100)
    places = [scale.place(value) for value in (0.0, 2.0, 4.0, -1.0)]
    assert places[0] == places[1]
    assert places[3] is None
    assert scale_of(Axis(log=True), [4.0, 64.0], 0, 100).place(0.0) is None
