"""The usual shapes of VW text, which take the fast path, and others among them."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.data.test_vw import LAYOUTS, check, lines, quick
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
def test_rows_without_labels_where_none_is_wanted(tmp_path: Path, text: list[str]) -> None:
    check(tmp_path, "\n".join([*text, ""]).encode(), "open", LAYOUTS[0])
