from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.data.lines.svmlight import parse_line
from tests.data.reference import bits, parse_text, read_all, rows_of, written
from thresher.data import DataError, concat, open_source
from thresher.data.layout import Layout, SettledLayout

BINARY = (
    "a label -1, 0 or 1"
    " (for other classes: --classes A,B; for many: --outputs classes; for a number: --loss squared)"
)

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

digits = st.text("0123456789", min_size=0, max_size=22)
numbers = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e30, 1e30).map(repr),
    st.decimals(-100, 100, places=5).map(lambda x: format(x, "f")),
    st.builds(
        lambda sign, a, b, e: f"{sign}{a}.{b}{e}",
        st.sampled_from(["", "+", "-"]),
        digits,
        digits,
        st.sampled_from(["", "e0", "E-3", "e+7", "e-44", "e38", "E-60", "e007"]),
    ),
    st.sampled_from(["0", "-0", "1e-50", "3.4028235e38", "3.4028236e38", "1e39", "1e-45", "16777217", "."]),
)
keys = st.one_of(
    st.integers(0, 20),
    st.integers(0, 10**7),
    st.integers(0, 2**64 - 1),
    st.sampled_from([2**64 - 1, 2**64, 10**19, 99999999, 10**8]),
).map(str)
features = st.builds(lambda key, value: f"{key}:{value}", keys, numbers)
blanks = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
odd = """x|1:|:|nan|1:inf|-1:1|1:2:3|1:1x|qid:7|3-4:1|5:1-2|5:--1|5:-|5:-.5|5:+1|+5:1|5:1e-3|5:-1.-5|5:1.|5:.5
5:1.5.5|5.5:1|12345678:1|123456789:1|5:12345678|5:123456789|5:0.123456789012345678|5:9.1234567890123456789|-|5:1e+|
\r|1:1\r|é|7:1,5"""
noise = st.sampled_from(odd.replace("|\n", "|").replace("\n", "|").split("|"))


@st.composite
def lines(draw: st.DrawFn) -> str:
    kind, blank = draw(st.integers(0, 9)), draw(st.sampled_from(["", "", "", " ", "\t "]))
    if kind == 0:
        return draw(st.sampled_from(["", "  ", "# only words 1:2", "\t", " # ", "\r"]))
    label = draw(
        st.sampled_from(["1", "-1", "+1", "0", "1.0", "-1e0", "1:0.5", "-1:2", "2", "1:-1", "a", ""])
    )
    parts = [label] + (
        [draw(st.sampled_from(["qid:12", "qid:0", "qid:x", "qid:-1", "qid:1.0", "qid:1e"]))]
        if kind == 1
        else []
    )
    tokens = draw(
        st.lists(st.one_of(features, features, features, noise) if kind < 4 else features, max_size=6)
    )
    text = blank + "".join(part + draw(blanks) for part in parts + tokens if part)
    text = text.rstrip(" \t") if draw(st.booleans()) else text
    return text + draw(st.sampled_from(["", "", "# 9:9", " #", "\r"]))


texts = st.tuples(st.lists(lines(), min_size=1, max_size=30), st.booleans()).map(
    lambda both: ("\n".join(both[0]) + ("\n" if both[1] else "")).encode()
)


@quick
@example(text=b"1 3:1 4:0.5\n-1 5:2\n1", domain="binary", weighted=False)
@given(text=texts, domain=st.sampled_from(["binary", "real", "nonnegative", "open"]), weighted=st.booleans())
def test_it_reads_as_a_simple_parser(tmp_path: Path, text: bytes, domain: str, weighted: bool) -> None:
    rows, bad, blank = parse_text(text, domain, partial(parse_line, weighted=weighted))
    if not text:
        return
    path, rejects = written(tmp_path, text), tmp_path / "rejects"
    options: dict[str, Any] = {"block_bytes": 64, "threads": 2, "on_error": f"quarantine={rejects}"}
    layout = Layout("svmlight", label_weights=weighted)
    source = open_source(path, domain=domain, layout=layout, **options)
    if rows:
        chunk = concat(list(source.chunks()))
        assert rows_of(chunk) == bits(rows)
    else:
        with pytest.raises(DataError, match="no examples"):
            list(source.chunks())
    report = source.report
    assert (report.examples, report.skipped, report.blank) == (len(rows), len(bad), blank)
    assert report.lines == len(rows) + len(bad) + blank
    assert report.merged == sum(row.merged for row in rows)
    assert rejects.read_bytes() == b"".join(line + b"\n" for line in bad)
    assert [one.raw for one in report.first_bad] == bad[:10]


def midpoint(number: float) -> Decimal:
    low = np.float32(number)
    return (Decimal(float(low)) + Decimal(float(np.nextafter(low, np.float32(np.inf))))) / 2


@quick
@given(
    number=st.floats(0, 2.0**127, width=32),
    nudge=st.sampled_from(["0", "1e-30", "-1e-30", "1e-12", "-1e-12"]),
)
def test_numbers_between_two_float32s_go_to_the_right_one(tmp_path: Path, number: float, nudge: str) -> None:
    import decimal

    with decimal.localcontext() as context:
        context.prec = 200
        exact = format(midpoint(number) * (1 + Decimal(nudge)), "f" if number > 1e-20 else "e")
    text = f"{exact}:{exact} 3:{exact} 4:-{exact}\n".encode()
    layout = Layout("svmlight", label_weights=True)
    chunk = read_all(written(tmp_path, text), domain="real", layout=layout)
    assert rows_of(chunk) == bits(parse_text(text, "real", partial(parse_line, weighted=True))[0])


def test_the_largest_float32_has_an_end(tmp_path: Path) -> None:
    end = 2**128 - 2**103
    source = open_source(written(tmp_path, f"1 1:{end - 1}.999\n1 1:-{end}\n".encode()), on_error="skip")
    assert concat(list(source.chunks())).values.tolist() == [np.finfo(np.float32).max]
    assert source.report.first_bad[0].expected == "a value that is finite in float32"


def test_a_long_row_out_of_order_is_sorted_and_added_up(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    ids, values = random.integers(0, 3000, 5000), random.normal(size=5000)
    pairs = " ".join(f"{key}:{value!r}" for key, value in zip(ids.tolist(), values.tolist(), strict=True))
    text = f"1 {pairs}\n-1 1:1 2:2\n".encode()
    chunk = read_all(written(tmp_path, text))
    assert rows_of(chunk) == bits(parse_text(text, "binary", parse_line)[0])


WEIGHTS = "; if the field is label:weight, use --label-weights"
BAD = [
    # line, domain, column, expected, found
    ("3:1 7:1", "binary", 1, "a label", "'3:1'" + WEIGHTS),
    ("1:0.5 7:1", "binary", 1, "a label", "'1:0.5'" + WEIGHTS),
    (" 3:1 7:1", "real", 2, "a label", "'3:1'" + WEIGHTS),
    ("1e99:1 7:1", "real", 1, "a label", "'1e99:1'" + WEIGHTS),
    ("-1:2 7:1", "open", 1, "a label", "'-1:2'" + WEIGHTS),
    ("qid:3 7:1", "binary", 1, "a number as label", "'qid:3'"),
    (":2 7:1", "binary", 1, "a number as label", "':2'"),
    ("1 qid:1.5.5 1:1", "binary", 7, "a number after 'qid:'", "'1.5.5'"),
    ("1 +:1", "binary", 3, "a feature id (a whole number)", "'+:1'"),
    ("1 3:1\0 4:1", "binary", 6, "a space after the number", "'\\x00'"),
    (
        *("x 1:1", "binary", 1, "a number as label"),
        "'x'; to use words as labels, name them: --classes WORD,WORD,...",
    ),
    ("  yes", "real", 3, "a number as label", "'yes'"),
    ("nan 1:1", "real", 1, "a finite number as label", "'nan'"),
    ("1e99 1:1", "real", 1, "a finite label (float32)", "'1e99'"),
    ("2 1:1", "binary", 1, BINARY, "'2'"),
    ("-0.5 1:1", "nonnegative", 1, "a label that is not negative", "'-0.5'"),
    ("1x 1:1", "binary", 2, "a space after the label", "'x'"),
    ("1 qid:a 1:1", "binary", 7, "a number after 'qid:'", "'a'"),
    ("1 -3:1", "binary", 3, "a feature id (a whole number)", "'-3:1'"),
    ("1 word:1", "binary", 3, "a feature id (a whole number)", "'word:1'"),
    ("1 2:1 18446744073709551616:1", "binary", 7, "a feature id below 2^64", "'18446744073709551616:1'"),
    ("1 2:1 7", "binary", 8, "':' after the feature id", "the end of the line"),
    ("1 2:1 7 8:1", "binary", 8, "':' after the feature id", "a blank"),
    ("1 2:1 7.5:1", "binary", 8, "':' after the feature id", "'.5:1'"),
    ("1 12:x", "binary", 6, "a number after ':'", "'x'"),
    ("1 12:", "binary", 6, "a number after ':'", "the end of the line"),
    ("1 12: 5", "binary", 6, "a number after ':'", "a blank"),
    ("1 12:nan", "binary", 6, "a finite number after ':'", "'nan'"),
    ("1 12:-Infinity", "binary", 6, "a finite number after ':'", "'-Infinity'"),
    ("1 12:1e", "binary", 6, "a number after ':'", "'1e'"),
    ("1 12:.", "binary", 6, "a number after ':'", "'.'"),
    ("1 12:3.5e38", "binary", 6, "a value that is finite in float32", "'3.5e38'"),
    ("1 12:1.5x", "binary", 9, "a space after the number", "'x'"),
    ("1 12:1,5", "binary", 7, "a space after the number", "',5'"),
    ("1 3:1\r 4:1", "binary", 6, "a space after the number", "a blank"),
    ("1 3:3e38 3:3e38", "binary", 1, "values of a repeated id whose sum is finite in float32", "'1'"),
    ("1 5:\x07" + "y" * 60, "binary", 5, "a number after ':'", "'\\x07" + "y" * 39 + "...'"),
]


BAD_WEIGHTED = [
    ("1x 1:1", "binary", 2, "a space or ':' after the label", "'x'"),
    ("1: 1:1", "binary", 3, "a number as importance weight after ':'", "a blank"),
    ("1:-2 1:1", "binary", 3, "an importance weight that is finite and not negative", "'-2'"),
    ("1:1e39 1:1", "binary", 3, "an importance weight that is finite and not negative", "'1e39'"),
    ("1:2:3", "binary", 4, "a space after the number", "':3'"),
    (" 1:2 3:1", "binary", 2, "a label at the start of the line", "'1:2'"),
]


@pytest.mark.parametrize(
    ("line", "domain", "column", "expected", "found", "weighted"),
    [*((*case, False) for case in BAD), *((*case, True) for case in BAD_WEIGHTED)],
)
def test_a_bad_line_is_named_to_the_column(
    tmp_path: Path, line: str, domain: str, column: int, expected: str, found: str, weighted: bool
) -> None:
    layout = Layout("svmlight", label_weights=weighted)
    text = f"1 1:1\n# comment\n\n{line}\n1 1:1\n".encode()
    path = written(tmp_path, text, "train.svm")
    message = f"{path}:4:{column}: expected {expected}, found {found}"
    with pytest.raises(DataError) as caught:
        list(open_source(path, domain=domain, layout=layout).chunks())
    assert str(caught.value) == message
    source = open_source(path, domain=domain, on_error="skip", layout=layout)
    assert [len(chunk) for chunk in source.chunks()] == [2]
    assert [str(bad) for bad in source.report.first_bad] == [message]
    assert source.report.first_bad[0].raw == line.encode()
    assert (source.report.lines, source.report.blank, source.report.skipped) == (5, 2, 1)


def test_numbers_halfway_between_others_next_to_bad_lines(tmp_path: Path) -> None:
    tie = "1:8388608.5 2:8388609.5 2:0.500000029802322387695312500000000000000001"
    text = f"x\n1 {tie}\nx\n1 {tie} x\n-1 {tie}\n".encode()
    path = written(tmp_path, text)
    source = open_source(path, on_error="skip")
    chunk = concat(list(source.chunks()))
    assert rows_of(chunk) == bits(parse_text(text, "binary", parse_line)[0])
    assert [bad.line for bad in source.report.first_bad] == [1, 3, 4]


ROWS = [
    *(b"3:1 7:1", b"qid:3 3:1 7:1", b" 3:1 7:1", b"+3:1 7:1", b"qid:-1 +3:1 7:1", b"1 3:1 7:1"),
    b"-1 qid:1.0 3:1 7:1",
]


@pytest.mark.parametrize("domain", ["open", "values", "labels"])
def test_rows_without_a_label_keep_their_first_feature(tmp_path: Path, domain: str) -> None:
    chunk = read_all(written(tmp_path, b"\n".join(ROWS)), domain=domain)
    assert chunk.keys.tolist() == [3, 7] * len(ROWS)
    assert chunk.weights.tolist() == [1] * len(ROWS)
    assert chunk.labels.tolist() == [0] * 5 + [1, -1]


def test_label_weights_are_read_where_the_layout_has_them(tmp_path: Path) -> None:
    path = written(tmp_path, b"1:0.5 3:1\n-1:2 7:1\n1 3:1 7:1\n qid:2 3:1\nqid:1 7:1\n 5:1 9:1\n")
    layout = Layout("svmlight", label_weights=True)
    kept = open_source(path, layout=layout, domain="open").layout
    assert kept == SettledLayout("svmlight", label_weights=True)
    assert SettledLayout.from_dict(kept.as_dict()) == kept
    chunk = read_all(path, layout=layout, domain="open")
    assert chunk.labels.tolist() == [1, -1, 1, 0, 0, 0]
    assert chunk.weights.tolist() == [0.5, 2, 1, 1, 1, 1]
    assert chunk.keys.tolist() == [3, 7, 3, 7, 3, 7, 5, 9]
    assert SettledLayout.from_dict({"format": "svmlight"}).label_weights is False
    with pytest.raises(DataError, match=r"vw: --label-weights is only for svmlight"):
        open_source(path, layout=Layout("vw", label_weights=True))
