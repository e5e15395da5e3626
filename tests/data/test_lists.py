"""Lists of labels and labels that are words: laws 5 and 9, the cache, and the first look that finds them."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.lines.svmlight import parse_line
from tests.data.reference import BadLineError, bits, float32_of, parse_text, read_all, rows_of, written
from tests.data.tables import Streamed
from thresher.data import (
    Chunk,
    DataError,
    MemorySource,
    concat,
    open_source,
    table_source,
)
from thresher.data.labels import MOST_CLASSES, WordTable, any_words, domain_of
from thresher.data.layout import Layout, SettledLayout
from thresher.data.opening import with_words

BINARY = (
    "a label -1, 0 or 1"
    " (for other classes: --classes A,B; for many: --outputs classes; for a number: --loss squared)"
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DOMAINS = ["values:3,real", "values:2,binary", "labels:3-8", "labels:0-1", "values", "labels"]


def targets_of(line: bytes, domain: str, weighted: bool) -> tuple[list[float] | None, bytes]:
    """The targets on a line (None if the domain ignores them), and the line with one label instead."""
    text = line.partition(b"#")[0]
    kind, _, size = domain.partition(":")
    rest = text.lstrip(b" \t")
    blank = len(rest) < len(text)
    if not rest.strip():
        return None, line
    listed: list[bytes] = []
    if not (kind == "labels" and (blank or (weighted and rest.startswith(b":")))):
        token, believed = rest.split(None, 1)[0], weighted and not blank
        begins_feature = token.startswith(b"qid:") or (not believed and re.match(rb"\+?[0-9]+:", token))
        if not size and begins_feature:
            return None, b"0 " + rest
        if b":" in token and not believed:
            raise BadLineError(line)
        token = token.partition(b":")[0]
        listed, rest = token.split(b","), rest[len(token) :]
    else:
        rest = rest if rest.startswith(b":") else b" " + rest
    numbers = [float(float32_of(one.decode("latin-1"))) for one in listed]
    if kind == "values":
        if not size:
            return None, b"%s" % (listed[0] + rest)
        count, allowed = size.split(",")
        if len(numbers) != int(count) or (allowed == "binary" and not {*numbers} <= {-1.0, 0.0, 1.0}):
            raise BadLineError(line)
        return numbers, listed[0] + rest
    if not size:
        return None, (listed[0] if listed else b"0") + rest
    low, high = map(int, size.split("-"))
    if not {*numbers} <= {*range(low, high + 1)} or len({*numbers}) < len(numbers):
        raise BadLineError(line)
    held = [1.0 if k in numbers else -1.0 for k in range(low, high + 1)]
    return held, b"%d%s" % (int(held[0]), rest)


def simply_read(
    text: bytes, domain: str, weighted: bool
) -> tuple[list[Any], list[list[float] | None], list[bytes]]:
    rows, targets, bad = [], [], []
    for line in text.split(b"\n"):
        try:
            held, single = targets_of(line.removesuffix(b"\r"), domain, weighted)
            row = parse_line(single, "real", weighted)
        except BadLineError:
            bad.append(line)
            continue
        if row is not None:
            rows.append(row)
            targets.append(held)
    return rows, targets, bad


labels = st.one_of(
    st.integers(-1, 9).map(str),
    st.sampled_from(["0.5", "1e0", "+1", "nan", "x", "", "1e99", "8388608.5", "-"]),
)
heads = st.tuples(
    st.sampled_from(["", "", "", " ", "\t"]),
    st.lists(labels, max_size=4).map(",".join),
    st.sampled_from(["", "", "", ":2", ":", ":-1"]),
).map("".join)
tails = st.sampled_from(
    [" 1:1", " 2:0.5 7:1", " 3:1 3:1 # c", "", " 1:x", " qid:3 1:1", "\r", " 9:1 4,5", "# 3"]
)
texts = st.lists(st.tuples(heads, tails).map("".join), min_size=1, max_size=25).map(
    lambda lines: "\n".join(lines).encode()
)


@quick
@given(text=texts, domain=st.sampled_from(DOMAINS), block=st.integers(1, 200), weighted=st.booleans())
def test_lists_are_read_as_a_simple_parser_reads_them(
    tmp_path: Path, text: bytes, domain: str, block: int, weighted: bool
) -> None:
    rows, targets, bad = simply_read(text, domain, weighted)
    if not rows:
        return
    path, rejects = written(tmp_path, text), tmp_path / "rejects"
    options: dict[str, Any] = {"block_bytes": block, "threads": 2, "on_error": f"quarantine={rejects}"}
    layout = Layout("svmlight", label_weights=weighted)
    source = open_source(path, domain=domain, layout=layout, **options)
    chunk = concat(list(source.chunks()))
    assert rows_of(chunk) == bits(rows)
    if ":" in domain:
        assert chunk.targets.tolist() == targets
    else:
        assert chunk.targets is None
    assert rejects.read_bytes() == b"".join(line + b"\n" for line in bad)
    assert source.report.skipped == len(bad)
    assert source.report.lines == len(rows) + len(bad) + source.report.blank


WEIGHTS = "; if the field is label:weight, use --label-weights"
BAD = [
    # line, domain, column, expected, found
    ("1,2 1:1", "values:3,real", 4, "3 labels with ',' between them", "a blank"),
    ("1,2", "values:3,real", 4, "3 labels with ',' between them", "the end of the line"),
    ("1,2:1 1:1", "values:3,real", 1, "a label", "'1,2:1'" + WEIGHTS),
    ("1,2,3:1 1:1", "values:3,real", 1, "a label", "'1,2,3:1'" + WEIGHTS),
    ("3,4:2 1:1", "labels:3-8", 1, "a label", "'3,4:2'" + WEIGHTS),
    ("3:2 1:1", "labels:3-8", 1, "a label", "'3:2'" + WEIGHTS),
    (":2 1:1", "labels:3-8", 1, "a label", "':2'" + WEIGHTS),
    ("1,2,3,4 1:1", "values:3,real", 6, "3 labels with ',' between them", "',4'"),
    ("1,x,3 1:1", "values:3,real", 3, "a number as label", "'x'"),
    ("1,,3 1:1", "values:3,real", 3, "a number as label", "',3'"),
    ("1,2, 1:1", "values:3,real", 5, "a number as label", "a blank"),
    ("1,nan,3 1:1", "values:3,real", 3, "a finite number as label", "'nan'"),
    ("1,1e99,3 1:1", "values:3,real", 3, "a finite label (float32)", "'1e99'"),
    ("1,2x,3 1:1", "values:3,real", 4, "',' or a space after the label", "'x,3'"),
    ("1,2,1 1:1", "values:3,binary", 3, BINARY, "'2'"),
    ("1,1,-.5 1:1", "values:3,nonnegative", 5, "a label that is not negative", "'-.5'"),
    ("3,9,4 1:1", "labels:3-8", 3, "a class from 3 to 8 as label", "'9'"),
    ("3,4.5 1:1", "labels:3-8", 3, "a class from 3 to 8 as label", "'4.5'"),
    ("2 1:1", "labels:3-8", 1, "a class from 3 to 8 as label", "'2'"),
    ("3,5,3 1:1", "labels:3-8", 5, "each class once", "'3'"),
    ("3,5,3,4 1:1", "labels:3-8", 5, "each class once", "'3'"),
    (" 3,5 1:1", "labels:3-8", 3, "':' after the feature id", "',5'"),
    (",3 1:1", "labels:3-8", 1, "a number as label", "',3'"),
    (
        "3,17 1:1", "real", 2,
        "one label (lists need outputs labels:LO-HI or values:K)", "',17'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "domain", "column", "expected", "found"), BAD)
def test_a_bad_list_is_named_to_the_column(
    tmp_path: Path, line: str, domain: str, column: int, expected: str, found: str
) -> None:
    good = {"values": "1,1,1", "labels": "3", "real": "3"}[domain.partition(":")[0]]
    path = written(tmp_path, f"{good} 1:1\n\n{line}\n{good} 2:1\n".encode(), "train.svm")
    message = f"{path}:3:{column}: expected {expected}, found {found}"
    with pytest.raises(DataError) as caught:
        list(open_source(path, domain=domain).chunks())
    assert str(caught.value) == message
    source = open_source(path, domain=domain, on_error="skip")
    assert [len(chunk) for chunk in source.chunks()] == [2]
    assert [str(bad) for bad in source.report.first_bad] == [message]


def some_lists(count: int, seed: int = 0, outputs: int = 5) -> bytes:
    random = np.random.default_rng(seed)
    lines = []
    for k in range(count):
        held = ",".join(str(c) for c in np.flatnonzero(random.random(outputs) < 0.3) + 1)
        ids = np.sort(random.choice(50, random.integers(1, 5), replace=False))
        row = " ".join([held, *(f"{i}:{random.normal():.4g}" for i in ids)])
        lines.append("9 1:1" if k % 19 == 7 else row)
    return "\n".join(lines).encode()


def listed(path: object, **options: Any) -> list[Chunk]:
    return list(open_source(path, domain="labels:1-5", on_error="skip", **options).chunks())  # type: ignore[arg-type]


def test_targets_in_memory_are_checked_and_named() -> None:
    table = np.ones((2, 3))
    data = Chunk.from_csr([0, 1, 2], [1, 1], [1, 1], table)
    for domain in ("values:3,binary", "labels:4-6", "values"):
        MemorySource(data, domain)
    table[1, 2] = 2
    other = Chunk.from_csr([0, 1, 2], [1, 1], [1, 1], table)
    for domain in ("values:3,binary", "labels:4-6"):
        with pytest.raises(DataError, match=r"example 2: expected a label -1, 0 or 1 .*, found 2"):
            MemorySource(other, domain)
    with pytest.raises(DataError, match="expected 4 labels for each example, found 3"):
        MemorySource(data, "values:4,real")
    with pytest.raises(DataError, match="expected 2 labels for each example, found 1"):
        MemorySource(Chunk.from_csr([0, 1], [1], [1], [1]), "labels:1-2")


def test_one_label_a_line_has_no_targets(tmp_path: Path) -> None:
    text = b"1 1:1\n-1 2:1\n"
    assert read_all(written(tmp_path, text)).targets is None
    assert rows_of(read_all(written(tmp_path, text), domain="labels")) == bits(
        parse_text(text, "real", parse_line)[0]
    )


WORDS = tuple(sorted(["ad.", "nonad.", "Ünïcode", "a b", "7", "x" * 300, *(f"class{k}" for k in range(90))]))
LAYOUT = Layout(label="y", classes=WORDS)


def labels_of(source: Any) -> list[float]:
    found: list[float] = concat(list(source.chunks())).labels.tolist()
    return found


def some_words(count: int = 3000) -> list[str]:
    return [WORDS[k] for k in np.random.default_rng(0).integers(0, len(WORDS), count)]


def labelled(words: list[str], folder: Path) -> dict[str, Path]:
    table = pa.table({"y": words, "x": np.arange(len(words)) % 5})
    csv = "y,x\n" + "".join(f'"{w}",{i % 5}\n' if i % 3 else f" {w} ,{i % 5}\n" for i, w in enumerate(words))
    (folder / "a.csv").write_text(csv)
    rows = [{"y": word, "x": i % 5} for i, word in enumerate(words)]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(table, folder / "a.parquet")
    pq.write_table(table.set_column(0, "y", table["y"].dictionary_encode()), folder / "b.parquet")
    return {name: folder / name for name in ("a.csv", "a.jsonl", "a.parquet", "b.parquet")}


def test_words_are_numbered_in_their_order_in_every_format(tmp_path: Path) -> None:
    words = some_words()
    expected = [WORDS.index(word) + 5.0 for word in words]
    domain = domain_of(f"classes:5-{4 + len(WORDS)}")
    for path in labelled(words, tmp_path).values():
        assert labels_of(open_source(path, layout=LAYOUT, domain=domain)) == expected, path
        assert (
            labels_of(open_source(path, layout=LAYOUT, domain=domain, threads=2, block_bytes=999)) == expected
        )
    table = pa.table({"y": pa.array(words).cast(pa.large_binary()), "x": [1] * len(words)})
    assert labels_of(table_source(Streamed(table), layout=LAYOUT, domain=domain)) == expected


def test_lines_of_words(tmp_path: Path) -> None:
    layout = Layout("vw", classes=("no", "yes"))
    (tmp_path / "a.vw").write_text("yes | a\nno 2 'tag| b\nyes tag| c\n")
    source = open_source(tmp_path / "a.vw", layout=layout)
    assert labels_of(source) == [1, -1, 1]
    assert concat(list(source.chunks())).weights.tolist() == [1, 2, 1]
    layout = Layout("svmlight", classes=("no", "yes"), label_weights=True)
    (tmp_path / "a.svm").write_text("yes 1:2\nno:3 2:1 # yes\nyes\n")
    source = open_source(tmp_path / "a.svm", layout=layout)
    assert labels_of(source) == [1, -1, 1]
    assert concat(list(source.chunks())).weights.tolist() == [1, 3, 1]
    (tmp_path / "b.svm").write_text("yes 1:2\nmaybe 2:1\n")
    with pytest.raises(DataError, match=r"b.svm:2:1: expected one of the classes no, yes as label, found"):
        labels_of(open_source(tmp_path / "b.svm", layout=layout))


def looked(data: Any, on_error: str = "fail", layout: Layout | None = None) -> Any:

    def opened(layout: Any, domain: Any) -> Any:
        if isinstance(data, Streamed):
            return table_source(data, layout=layout, domain=domain)
        return open_source(data, layout=layout, domain=domain, on_error=on_error, block_bytes=1 << 12)

    return with_words(opened, layout or Layout(label="y"))


def test_a_look_finds_all_words_sorted(tmp_path: Path) -> None:
    words = some_words()
    for path in labelled(words, tmp_path).values():
        found = looked(path)
        assert found.classes == WORDS, path
        settled = open_source(path, layout=found, domain=f"classes:1-{len(WORDS)}").layout
        assert settled.classes == WORDS, path
        assert SettledLayout.from_dict(json.loads(json.dumps(settled.as_dict()))) == settled
    assert looked(Streamed(pa.table({"y": words, "x": [1] * len(words)}))).classes == WORDS


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "b.parquet"])
def test_numbers_in_a_column_of_texts_are_numbers(tmp_path: Path, name: str) -> None:
    path = labelled(["1", "0", " 1", "1.0", "-1e0"], tmp_path)[name]
    assert looked(path).classes == ()
    assert labels_of(open_source(path, layout=Layout(label="y"))) == [1, 0, 1, 1, -1]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "b.parquet"])
def test_what_is_no_number_there_is_a_bad_row(tmp_path: Path, name: str) -> None:
    path = labelled(["1", "0", "one", "1", "0"], tmp_path)[name]
    assert looked(path, "skip").classes == ()
    expected = (
        "expected a finite number as label in column 'y', found ' ?one ?'; to use words as labels, name"
    )
    with pytest.raises(DataError, match=expected):
        labels_of(open_source(path, layout=Layout(label="y")))
    path = labelled(["1", "0", "", "1", "0"], tmp_path)[name]
    with pytest.raises(DataError, match="expected a label in column 'y'"):
        labels_of(open_source(path, layout=Layout(label="y")))


def test_bad_rows_name_no_classes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,x\nham,1\njunk\nspam,2\njunk,1,2\nodd,high\n" + "ham,3\n" * 3000)
    assert looked(path, "skip", Layout(label="y", numeric=("x",))).classes == ("ham", "spam")
    with pytest.raises(DataError, match=r"a.csv:3:5: expected 2 columns"):
        looked(path)


def test_too_many_words_and_words_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y\n" + "".join(f"w{k}\n" for k in range(MOST_CLASSES + 1)))
    with pytest.raises(DataError, match=f"a.csv:{MOST_CLASSES + 2}:1: .* at most 65,536 different labels"):
        looked(path)
    path.write_bytes(b"y\nok\n\xff\xfe\n")
    with pytest.raises(DataError, match=r"the label '\\xff\\xfe' is not UTF-8"):
        looked(path)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=2, max_size=50, unique=True))
def test_a_table_of_words_is_a_dictionary(words: list[str]) -> None:
    table, met = WordTable(words, -3, 2), any_words().words
    assert [table.number_of(word.encode()) for word in words] == [-3 + 2 * k for k in range(len(words))]
    said = [word for word in words if not {*word} & {*"\0\r\n,."}]  # others may be lists, or whole numbers
    assert [met.number_of(word.encode()) for word in said * 2] == [*range(len(said))] * 2
    assert met.words() == {k: word.encode() for k, word in enumerate(said)}
    assert table.number_of(b"\xff") == table.number_of(b"") == 1 << 30
