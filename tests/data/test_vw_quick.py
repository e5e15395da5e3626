"""The usual shapes of VW text do not need the careful path, which is compiled when a line needs it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.lines.vw import parse_vw_line
from tests.data.reference import bits, parse_text, read_all, rows_of, written
from tests.data.test_vw import LAYOUTS, check, lines, quick
from thresher.data.formats.lines import line_rows
from thresher.data.formats.lines.vw import USUAL
from thresher.data.layout import Layout

names = st.one_of(st.text("abcxyz_-.'é", min_size=1, max_size=20), st.integers(0, 10**8 - 1).map(str))
sign = st.sampled_from(["", "-"])
numbers = st.one_of(
    st.builds("{}{}".format, sign, st.integers(0, 10**8 - 1)),
    st.builds("{}{}.{}".format, sign, st.integers(0, 9), st.text("0123456789", min_size=1, max_size=8)),
    st.builds("{}{}.{}e-{:02}".format, sign, st.integers(0, 9), st.integers(0, 10**7), st.integers(0, 14)),
)
features = st.one_of(names, st.builds("{}:{}".format, names, numbers))
namespaces = st.builds(
    "|{}{}{}".format,
    st.sampled_from(["", "f", "été"]),
    st.just(" "),
    st.lists(features, max_size=9).map(" ".join),
)
usual = st.builds(
    "{}{}".format,
    st.sampled_from(["1 ", "-1 ", " 0  "]),
    st.lists(namespaces, min_size=1, max_size=3).map(" ".join),
)
unlabelled = st.lists(namespaces, min_size=1, max_size=3).map(" ".join)
LINES = b"1 |f a:0.5 b:3 |g 12 c:1.5e-03\n\n-1 |f b a:-2 \n0 | 7:1 5:1 7:2\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Whether each call of the compiled parser used the careful path."""
    found, real = list[Any](), line_rows.parse_lines

    def spy(grammar: Any, *rest: Any) -> Any:
        found.append(grammar.careful)
        return real(grammar, *rest)

    monkeypatch.setattr(line_rows, "parse_lines", spy)
    return found


def expected(text: bytes) -> Any:
    return bits(parse_text(text, "binary", partial(parse_vw_line, layout=Layout("vw")))[0])


def test_usual_lines_need_no_care(tmp_path: Path, asked: list[Any]) -> None:
    assert rows_of(read_all(written(tmp_path, LINES, "a.vw"))) == expected(LINES)
    assert asked == [None]


@pytest.mark.parametrize(
    "line",
    [
        b"+1 | a\n",  # labels
        *(b"1 2 | a\n", b"1 't| a\n", b"1 t| a\n", b"10e-1 | a\n"),
        b"1 |f:2 a\n",  # scales
        b"1 | a:b\n",  # values
        *(b"1 | :3\n", b"1 | a:+1\n", b"1 | a:1e3\n", b"1 | a:0.1234567890123\n", b"1 | 123456789012 3\n"),
        b"1 | %s:1\n" % (b"a" * 70),
        b"1 | a\r\n",
    ],
)
def test_a_line_in_another_shape_is_read_with_care(line: bytes, tmp_path: Path, asked: list[Any]) -> None:
    text = LINES + line + LINES
    assert rows_of(read_all(written(tmp_path, text, "a.vw"))) == expected(text)
    assert asked == [None, True]
    asked.clear()
    assert rows_of(read_all(written(tmp_path, line + LINES, "b.vw"))) == expected(line + LINES)
    assert asked == [True]


@quick
@given(
    before=st.lists(usual, min_size=1, max_size=12),
    odd=st.lists(lines(), max_size=2),
    after=st.lists(usual, max_size=4),
    layout=st.sampled_from(LAYOUTS),
)
def test_usual_and_other_lines_are_what_a_simple_parser_reads(
    tmp_path: Path, before: list[str], odd: list[str], after: list[str], layout: Layout
) -> None:
    check(tmp_path, "\n".join([*before, *odd, *after, ""]).encode(), "binary", layout)


@quick
@given(text=st.lists(st.one_of(usual, unlabelled), min_size=1, max_size=12))
def test_rows_without_labels_are_usual_where_none_is_wanted(tmp_path: Path, text: list[str]) -> None:
    check(tmp_path, "\n".join([*text, ""]).encode(), "open", LAYOUTS[0])


@quick
@given(line=st.one_of(usual, unlabelled))
def test_what_is_usual_looks_so(line: str) -> None:
    assert USUAL.fullmatch(line.encode())
