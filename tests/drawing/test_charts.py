"""Pictures are well-formed and reproducible; axes have round ticks, and a place for every value."""

import math
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from experiments.papers.bars import Bar, bars
from thresher.drawing import STYLESHEET, Axis, Series, chart
from thresher.drawing.charts import MOST
from thresher.drawing.scales import Scale, scale_of, ticks_across, ticks_upright, write_numbers
from thresher.drawing.svg import DARK, LIGHT, SERIES, clean, fit_text, width_of

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = st.text(st.characters(), max_size=30) | st.sampled_from(
    ["</svg><script>", "\x00\x1b[31m", "\u202eabc\u2066", "\"'&;", "]]>", "\ud800", "n" * 10_000, "漢" * 99]
)
ANY = st.floats() | st.sampled_from([1e12, 0.0, 5e-324])
KINDS = st.sampled_from(["line", "dots", "both", "steps"])


def parsed(text: str) -> ElementTree.Element:
    """The root of a picture, without elements that names could have injected."""
    root = ElementTree.fromstring(text)
    known = {"svg", "title", "desc", "style", "rect", "text", "path", "g", "circle", "polygon"}
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= known
    return root


def numbers(root: ElementTree.Element) -> list[str]:
    keys = ("d", "points", "x", "y", "cx", "cy", "width", "height", "transform")
    return [
        v for one in root.iter() for key in keys for v in re.findall(r"nan|inf|-?[\d.]+", one.get(key, ""))
    ]


@st.composite
def series(draw: Any) -> Series:
    n = draw(st.integers(0, 8))
    x, y, low, high = (draw(st.lists(ANY, min_size=n, max_size=n)) for _ in range(4))
    whether = draw(st.booleans())
    titles = draw(st.lists(HOSTILE, min_size=n, max_size=n))
    ends = {"low": low, "high": high} if whether else {}
    return Series(draw(HOSTILE), x, y, draw(KINDS), titles=titles, quiet=draw(st.booleans()), **ends)


@settings(max_examples=50)
@example([], "", False, [(0.0, 1.0, 5e-324)])
@example([], "", False, [(0.0, 1.0, math.inf), (1.0, 2.0, 1.0)])
@given(
    shown=st.lists(series(), max_size=4),
    title=HOSTILE,
    log=st.booleans(),
    strip=st.lists(st.tuples(ANY, ANY, ANY), max_size=3),
)
def test_a_chart_of_anything_is_well_formed(shown: list[Series], title: str, log: bool, strip: Any) -> None:
    axes = Axis(title, log=log), Axis(title)
    text = chart(title, title, *axes, shown, diagonal=title, strip=strip)
    root = parsed(text)
    places = numbers(root)
    assert not {"nan", "inf"} & set(places)
    assert all(abs(float(place)) < 2000 for place in places)
    assert text == chart(title, title, *axes, shown, diagonal=title, strip=strip)
    assert len(text) < 60_000
    text.encode()


def test_bars_begin_at_zero_with_their_names_and_values() -> None:
    root = parsed(bars("t", "d", [Bar("long " * 40, 0.2), Bar("short", -0.1)], axis="x", percent=True))
    named = [one for one in root.iter(f"{SVG}text") if one.get("class") == "name"]
    assert "".join(named[0].itertext()).endswith("…")
    assert named[0].find(f"{SVG}title").text == "long " * 40
    assert "".join(named[1].itertext()) == "short"
    up, down = (one for one in root.iter(f"{SVG}rect") if "bar" in (one.get("class") or ""))
    assert [up.get("class"), down.get("class")] == ["bar c1", "bar c2"]
    widths = [float(one.get("width") or 0) for one in (up, down)]
    assert widths[0] == pytest.approx(2 * widths[1], rel=1e-3)
    zero = float(up.get("x") or 0)
    assert float(down.get("x") or 0) + widths[1] == pytest.approx(zero, abs=0.1)
    texts = {"".join(one.itertext()): float(one.get("x") or 0) for one in root.iter(f"{SVG}text")}
    assert texts["20%"] > zero + widths[0]
    assert texts["\N{MINUS SIGN}10%"] < zero - widths[1]


@given(HOSTILE, st.floats(20, 400))
def test_texts_fit_and_show_no_control_characters(text: str, room: float) -> None:
    assert width_of(fit_text(text, room)) <= room
    assert clean(text).isprintable()


@pytest.mark.parametrize("kind", ["line", "dots", "steps"])
def test_many_points_are_thinned_out_but_not_their_extremes(kind: Any) -> None:
    x = [float(k) for k in range(100_000)]
    y = [math.sin(k / 500) for k in range(100_000)]
    y[31_415] = 7.0
    root = parsed(chart("t", "d", Axis(log=True), Axis(), [Series("s", x, y, kind)]))
    (top,) = {min(float(v) for v in numbers_of(root, kind)[1])}
    flat = parsed(chart("t", "d", Axis(), Axis(), [Series("s", [1.0, 2.0], [7.0, -1.0], "dots")]))
    assert top == min(float(v) for v in numbers_of(flat, "dots")[1])
    assert len(numbers_of(root, kind)[0]) <= 2 * MOST


def numbers_of(root: ElementTree.Element, kind: str) -> tuple[list[str], list[str]]:
    """The coordinates of the points of the only series."""
    if kind == "dots":
        dots = list(root.iter(f"{SVG}circle"))
        return [one.get("cx", "") for one in dots], [one.get("cy", "") for one in dots]
    (path,) = [one.get("d", "") for one in root.iter(f"{SVG}path") if "line" in one.get("class", "")]
    return re.findall(r"[MLH](-?[\d.]+)", path), re.findall(r"(?:[ML]-?[\d.]+ |V)(-?[\d.]+)", path)


def test_a_gap_breaks_the_line_and_a_lone_point_is_a_dot() -> None:
    y = [1.0, 2.0, math.nan, 3.0, math.nan, 4.0, 5.0]
    root = parsed(chart("t", "d", Axis(), Axis(), [Series("s", range(7), y)]))
    (path,) = [one.get("d", "") for one in root.iter(f"{SVG}path") if "line" in one.get("class", "")]
    assert path.count("M") == 2
    assert len(list(root.iter(f"{SVG}circle"))) == 1


def test_a_picture_says_what_it_is() -> None:
    root = parsed(chart("Loss & error", "It falls.", Axis("x"), Axis("y"), [], name="one"))
    assert (root.get("role"), root.get("aria-labelledby")) == ("img", "one-title one-desc")
    assert [(one.get("id"), one.text) for one in root[:2]] == [
        ("one-title", "Loss & error"),
        ("one-desc", "It falls."),
    ]
    assert "no data" in [one.text for one in root.iter(f"{SVG}text")]


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_stand_out_from_the_paper(scheme: dict[str, str]) -> None:
    def contrast(name: str) -> float:
        low, high = sorted(luminance(scheme[one]) + 0.05 for one in (name, "paper"))
        return high / low

    assert all(contrast(name) >= 4.5 for name in ("ink", "faint"))
    assert all(contrast(name) >= 3.0 for name in ("c0", *SERIES))


def test_colours_of_series_and_paper() -> None:
    shown = [Series(f"s{k}", [1, 2], [k, k + 1], "both") for k in range(6)]
    root = parsed(chart("t", "d", Axis(), Axis(), shown))
    lines = [
        one.get("class", "").split()[2] for one in root.iter(f"{SVG}path") if "line" in one.get("class", "")
    ]
    assert len(set(lines)) == 6
    order = [STYLESHEET.index(text) for text in ("--chart-paper:#ffffff", "scheme:dark", "@media print")]
    assert order == sorted(order)
    assert STYLESHEET.rindex("--chart-paper:#ffffff") > order[2]


NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
AXES = st.builds(Axis, log=st.booleans(), low=st.sampled_from([None, 0.01]), whole=st.booleans())


@given(axis=AXES, values=st.lists(NUMBERS | st.integers(0, 10**12).map(float), max_size=20))
def test_every_value_that_can_be_shown_has_its_place(axis: Axis, values: list[float]) -> None:
    scale = scale_of(axis, values, 50, 600)
    places = [(value, scale.place(value)) for value in sorted(v for v in values if not math.isnan(v))]
    known = [place for _, place in places if place is not None]
    assert known == sorted(known)
    assert all(49.9 <= place <= 600.1 for place in known)
    for value, place in places:
        if abs(value) < 1e150 and (value >= 1e-150 or not axis.log):
            assert place is not None


@given(axis=AXES, values=st.lists(NUMBERS | st.integers(0, 10**12).map(float), max_size=20))
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
        ([0.03, 3], Axis(log=True), ["0.05", "0.1", "0.2", "0.5", "1", "2"]),
        ([1e-9, 1e-2], Axis(log=True), ["1e-9", "1e-7", "1e-5", "0.001"]),
        ([0, 1], Axis(low=0, high=1, percent=True), ["0%", "20%", "40%", "60%", "80%", "100%"]),
        ([1e12, 1e12], Axis(), ["960G", "980G", "1T", "1.02T", "1.04T"]),
        ([], Axis(), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_what_ticks_say(values: list[float], axis: Axis, texts: list[str]) -> None:
    assert [tick.text for tick in ticks_across(scale_of(axis, values, 50, 350))] == texts


@given(st.lists(st.integers(-40, 40), min_size=2, max_size=9, unique=True), st.integers(-6, 12))
def test_ticks_are_told_apart(numbers: list[int], power: int) -> None:
    texts = write_numbers([k * 10.0**power for k in numbers])
    assert len(set(texts)) == len(numbers)


def test_zero_has_a_place_of_its_own_on_a_logarithmic_axis() -> None:
    scale: Scale = scale_of(Axis(log=True), [0.0, 4.0, 64.0], 0, 100)
    places = [scale.place(value) for value in (0.0, 2.0, 4.0, -1.0)]
    assert places[0] == places[1]
    assert places[3] is None
    assert scale_of(Axis(log=True), [4.0, 64.0], 0, 100).place(0.0) is None
