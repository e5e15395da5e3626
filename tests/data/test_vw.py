"""VW text: the compiled parser compared with a reference parser and with Vowpal Wabbit."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.lines.vw import murmur, parse_vw_line
from tests.data.reference import bits, parse_text, read_all, rows_of, same, written
from tests.data.test_svmlight import blanks, keys, numbers
from thresher import train
from thresher.data import DataError, concat, open_source
from thresher.data.features.murmur import hash_bytes, seed_of
from thresher.data.layout import Layout, SettledLayout

ROOT = Path(__file__).parents[2]
SAID = json.loads((Path(__file__).parent / "vw_features.json").read_text(encoding="utf-8"))
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

LAYOUTS = [
    Layout("vw"),
    Layout("vw", seed=7, bits=10),
    Layout("vw", hash="vw", bits=18),
    Layout("vw", hash="vw", bits=61, seed=3),
]
names = st.one_of(
    st.text("abcxyz_-.'é", min_size=1, max_size=5),
    st.text("ab", min_size=1, max_size=80),
    st.sampled_from(["a", "b", "user", "\x01", "\x0112", "-5", "nan", "1.5", "007", "1e3", "\x1f7\x02"]),
    keys,
)
texts = st.sampled_from(["paris", "a:b", "b|c", "-x", ".", "-", "nancy", "nan", "+INF", "infinity", "e5", ""])
features = st.one_of(
    names,
    st.builds("{}:{}".format, names, numbers),
    st.builds("{}:{}".format, names, numbers),
    st.builds(":{}".format, numbers),
    st.builds("{}:{}".format, st.one_of(names, st.just("")), texts),
)
odd = st.sampled_from(
    ["a:", ":", "::", "a:1:2", "a:1x", "a\rb", "a:3rd", "a:--1", "a:1\r", "x:t\r", "a:1.5.5", "a:1e"]
)
labels = st.sampled_from(
    ["1", "-1", "0", "+1", "1.0", "-1e0", "1 2", "1 0.5 0", "-1 1e0 -0.0", "", "", "1 ", "\t-1"]
)
wrong = st.sampled_from(
    ["2", "a", "1 -1", "1 1 0.5", "1 1 0 1", "1 x", "1:2", "'t 1", "1 'a b", "nan", "1 1e39", "1#"]
)
tags = st.sampled_from([" ", " ", " ", " 't", " 't ", " tag", "tag", "'", "\t", "", " '|"])


@st.composite
def namespaces(draw: st.DrawFn, bad: bool) -> str:
    name = draw(st.one_of(st.just(""), st.sampled_from(["f", "g", "user", "5", "été", "a" * 40]), names))
    scale = draw(st.one_of(st.just(""), st.builds(":{}".format, numbers))) if name or bad else ""
    token = st.one_of(features, features, features, odd) if bad else features
    tokens = draw(st.lists(st.builds("{}{}".format, blanks, token), max_size=6))
    return "|" + name + scale + "".join(tokens) + draw(st.sampled_from(["", "", " ", "\t"]))


@st.composite
def lines(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(
            st.sampled_from(["", "  ", "\t", "\r", "1", "1 1:1", "tag", "\ufeff", "\r1 | a", "|", "#"])
        )
    head = draw(st.one_of(labels, labels, wrong) if kind < 3 else labels)
    spaces = draw(st.lists(namespaces(kind in (3, 4)), min_size=1, max_size=4))
    mark = draw(st.sampled_from(["", "", "", "\ufeff"]))
    return mark + head + draw(tags) + "".join(spaces) + draw(st.sampled_from(["", "", "\r"]))


def check(tmp_path: Path, text: bytes, domain: str, layout: Layout) -> None:
    plain = text.removeprefix("\ufeff".encode()) or b"\n"
    rows, bad, blank = parse_text(plain, domain, partial(parse_vw_line, layout=layout))
    path, rejects = written(tmp_path, text), tmp_path / "rejects"
    options = {"layout": layout, "domain": domain, "block_bytes": 64, "threads": 2}
    source = open_source(path, on_error=f"quarantine={rejects}", **options)  # type: ignore[arg-type]
    if rows:
        assert rows_of(concat(list(source.chunks()))) == bits(rows)
    else:
        with pytest.raises(DataError, match="no examples"):
            list(source.chunks())
    report = source.report
    assert (report.examples, report.skipped, report.blank) == (len(rows), len(bad), blank)
    assert report.lines == len(rows) + len(bad) + blank
    assert report.merged == sum(row.merged for row in rows)
    assert rejects.read_bytes() == b"".join(line + b"\n" for line in bad)
    assert [one.raw for one in report.first_bad] == bad[:10]


@quick
@given(
    text=st.lists(lines(), min_size=1, max_size=20).map(lambda some: "\n".join([*some, ""]).encode()),
    domain=st.sampled_from(["binary", "real", "open"]),
    layout=st.sampled_from(LAYOUTS),
)
def test_it_reads_as_a_simple_parser(tmp_path: Path, text: bytes, domain: str, layout: Layout) -> None:
    check(tmp_path, text, domain, layout)


def test_long_rows_of_names_are_sorted_and_added_up(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = []
    for size in (17, 100, 900, 2040, 2050, 3000):
        tokens = [
            f"w{k}:{v:.4f}"
            for k, v in zip(random.integers(0, size, size), random.normal(size=size), strict=True)
        ]
        rows.append(f"1 |f {' '.join(tokens)} |g {' '.join(tokens[:5])}")
    rows += [f"1 |f {' '.join(['same:0.1'] * 100)}", f"1 | {' '.join(map(str, range(99, -1, -1)))}"]
    text = "\n".join(rows).encode() + b"\n"
    for layout in LAYOUTS:
        expected = parse_text(text, "binary", partial(parse_vw_line, layout=layout))[0]
        assert rows_of(read_all(written(tmp_path, text), layout=layout)) == bits(expected)


KIND = "; this looks like %s, which is not supported"
BINARY = (
    "-1, 0 or 1 (for other classes: --classes A,B; for many: --outputs classes; for a number: --loss squared)"
)
BANDIT, COSTS = "a contextual bandit label (action:cost:probability)", "a cost-sensitive label (class:cost)"
SHARED = "the shared line of a multi-line example (contextual bandit or cost-sensitive)"
CCB = "a conditional contextual bandit label (ccb)"
NAMED = "; to use words as labels, name them: --classes WORD,WORD,..."
CONTINUOUS = "a continuous action label (ca action:cost:density)"
BAD = [
    # line, domain, column, expected, found
    ("?x | a", "binary", 1, "a number as label", "'?x'"),
    ("nan | a", "real", 1, "a finite number as label", "'nan'"),
    ("1e99 | a", "real", 1, "a finite label (float32)", "'1e99'"),
    ("2 | a", "binary", 1, f"a label {BINARY}", "'2'"),
    ("1:1:0.5 | a", "real", 2, "a space after the label", f"':1:0.5'{KIND % BANDIT}"),
    ("1 1:0.5:0.25 | a", "real", 4, "'|' or a space after the number", f"':0.5:0.25'{KIND % BANDIT}"),
    ("0:1 1:2:0.5 'tag| a", "open", 2, "a space after the label", f"':1'{KIND % BANDIT}"),
    ("3:0.5 2:1 | a", "binary", 1, f"a label {BINARY}", f"'3:0.5'{KIND % COSTS}"),
    ("1:0.5 |f a", "real", 2, "a space after the label", f"':0.5'{KIND % COSTS}"),
    ("shared |f a", "real", 1, "a number as label", f"'shared'{KIND % SHARED}"),
    ("ccb slot 0:1:0.5 0,1 | a", "real", 1, "a number as label", f"'ccb'{KIND % CCB}"),
    ("slates action 0 | a", "real", 1, "a number as label", f"'slates'{KIND % 'a slates label'}"),
    ("ca 1.5:2:0.1 | a", "real", 1, "a number as label", f"'ca'{KIND % CONTINUOUS}"),
    ("dog 2 't | a", "real", 1, "a number as label", "'dog'"),
    ("dog 2 't | a", "binary", 1, "a number as label", f"'dog'{NAMED}"),
    ("1,2 | a", "real", 2, "one label (lists need outputs labels:LO-HI or values:K)", "',2'"),
    ("1 |f a:x:1\0", "real", 11, "':', '|' or a space after the name", "'\\x00'"),
    ("1 |f a\0b c", "real", 7, "':', '|' or a space after the name", "'\\x00b'"),
    ("1 |f\0 a", "real", 5, "':', '|' or a space after the namespace", "'\\x00'"),
    ("1 'ta\0g| a", "real", 6, "'|' after the tag", "'\\x00g|'"),
    ("  |f a", "binary", 3, "a label before '|' (a word that touches '|' is a tag)", "'|f'"),
    ("1|f a", "binary", 1, "a label before '|' (a word that touches '|' is a tag)", "'1|f'"),
    ("1 x | a", "binary", 3, "a number as importance weight", "'x'"),
    ("1 -2 | a", "binary", 3, "an importance weight that is finite and not negative", "'-2'"),
    ("1 2x | a", "binary", 4, "'|' or a space after the number", "'x'"),
    ("1 1 0.5 | a", "binary", 5, "a base of 0; to add bases to the margin: --offset base", "'0.5'"),
    ("1 1 0 1 | a", "binary", 7, "no more than label, importance, base and tag before '|'", "'1'"),
    ("1 't 2 | a", "binary", 6, "'|' after the tag", "'2'"),
    ("1 2:3 5:1", "binary", 4, "'|' or a space after the number", "':3'"),
    ("1", "binary", 2, "'|' before the features", "the end of the line"),
    ("1 |: a", "binary", 4, "a name or a space after '|'", "':'"),
    ("1 |f: a", "binary", 6, "a number after ':'", "a blank"),
    ("1 |f:1e39 a", "binary", 6, "a scale that is finite in float32", "'1e39'"),
    ("1 |f:2x a", "binary", 7, "'|' or a space after the number", "'x'"),
    ("1 |f\r a", "binary", 5, "':', '|' or a space after the namespace", "a blank"),
    ("1 |f a\rb", "binary", 7, "':', '|' or a space after the name", "a blank"),
    ("1 |f a b:", "binary", 10, "a number or text after ':'", "the end of the line"),
    ("1 |f a: b", "binary", 8, "a number or text after ':'", "a blank"),
    ("1 |f a:nan", "binary", 8, "a finite number or text after ':'", "'nan'"),
    ("1 |f a:1e", "binary", 8, "a number or text after ':'", "'1e'"),
    ("1 |f a:3rd", "binary", 9, "'|' or a space after the number", "'rd'"),
    ("1 |f a:1e39", "binary", 8, "a value that is finite in float32", "'1e39'"),
    ("1 |f:1e30 a:1e30", "binary", 13, "a value that is finite in float32", "'1e30'"),
    ("1 |f a:3e38 a:3e38", "binary", 1, "values of a repeated feature whose sum is finite in float32", "'1'"),
    ("1 | a |g b:1:2", "binary", 13, "'|' or a space after the number", "':2'"),
]


@pytest.mark.parametrize(("line", "domain", "column", "expected", "found"), BAD)
def test_a_bad_line_is_named_to_the_column(
    tmp_path: Path, line: str, domain: str, column: int, expected: str, found: str
) -> None:
    text = f"1 |f a\n\n  \n{line}\n1 |f a\n".encode()
    path = written(tmp_path, text, "train.vw")
    message = f"{path}:4:{column}: expected {expected}, found {found}"
    with pytest.raises(DataError) as caught:
        list(open_source(path, domain=domain).chunks())
    assert str(caught.value) == message
    source = open_source(path, domain=domain, on_error="skip")
    assert [len(chunk) for chunk in source.chunks()] == [2]
    assert [str(bad) for bad in source.report.first_bad] == [message]
    assert (source.report.lines, source.report.blank, source.report.skipped) == (5, 2, 1)


def test_texts(tmp_path: Path) -> None:
    """A scale multiplies all n-grams; a word has no value; `tests/data/test_ngrams.py` has the keys."""
    layout = Layout("vw", text=("t", ""), ngrams="words=1-2,case", bits=30)
    path = written(tmp_path, b"1 |t:0.5 Not good Not good|u t:3 | 17 Not\n-1 |t |u good\r\n-1 |t", "a.vw")
    chunk = read_all(path, layout=layout)
    of_t = [("Not", 1.0), ("good", 1.0), ("Not good", 1.0), ("good Not", 0.5)]
    wanted = [(hash_bytes(gram.encode(), seed_of("t")), value) for gram, value in of_t]
    wanted += [(hash_bytes(b"t", seed_of("u")), 3.0)]
    wanted += [(hash_bytes(gram.encode()), 1.0) for gram in ("17", "Not", "17 Not")]
    row = slice(chunk.indptr[0], chunk.indptr[1])
    found = zip(chunk.keys[row].tolist(), chunk.values[row].tolist(), strict=True)
    assert [*found] == sorted((key % 2**30, value) for key, value in wanted)
    assert np.diff(chunk.indptr).tolist() == [8, 1, 0]
    for line, column, found_there in [("1 |t a b:2", 9, "':2'"), ("1 |t a\0b |u x", 7, "'\\x00b'")]:
        path = written(tmp_path, f"1 |t a |u b:2\n{line}\n".encode(), "b.vw")
        with pytest.raises(DataError) as caught:
            read_all(path, layout=layout)
        expected = "'|' or a space after the word, since the namespace is a text"
        assert str(caught.value) == f"{path}:2:{column}: expected {expected}, found {found_there}"
    with pytest.raises(DataError, match=r"n-grams need a namespace of text \(--text NAME\)"):
        open_source(path, layout=Layout("vw", ngrams="words=2"))


def test_names_are_hashed_with_their_namespace(tmp_path: Path) -> None:
    chunk = read_all(written(tmp_path, b"1 |user id42 7 |ad id42 | 7 city:x\n", "a.vw"))
    user, ad = seed_of("user"), seed_of("ad")
    assert (user, murmur(b"id42", user)) == (murmur(b"user", 0), hash_bytes(b"id42", user))
    wanted = [hash_bytes(b"id42", user), hash_bytes(b"7", user), hash_bytes(b"id42", ad), 7]
    wanted.append(hash_bytes(b"x", hash_bytes(b"city")))
    assert sorted(wanted) == chunk.keys.tolist()


def test_lists_of_labels_and_classes(tmp_path: Path) -> None:
    path = written(tmp_path, b"3,1 2 |f a\n |f b\n2 'tag |f a\n", "a.vw")
    assert read_all(path, domain="labels:1-3").targets.tolist() == [[1, -1, 1], [-1, -1, -1], [-1, 1, -1]]
    assert read_all(path, domain="labels").labels.tolist() == [3, 0, 2]
    path = written(tmp_path, b"3 | a\n1 0.5 | b\n", "b.vw")
    chunk = read_all(path, domain="classes:1-3")
    assert (chunk.labels.tolist(), chunk.weights.tolist()) == ([3, 1], [1, 0.5])
    with pytest.raises(DataError, match=r":1:1: expected a class from 1 to 2 as label, found '3'"):
        read_all(path, domain="classes:1-2")
    path = written(tmp_path, b"1.5,2 | a\n,|\n", "c.vw")
    with pytest.raises(DataError, match=r":2:1: expected a label before '\|'"):
        read_all(path, domain="values:2,real")
    assert read_all(path, domain="values").labels.tolist() == [1.5, 0]


def svmlight_and_vw(folder: Path) -> tuple[str, str]:
    import gzip

    text = gzip.decompress((ROOT / "examples/data/rcv1_train2000.dat.gz").read_bytes())
    twin = b"".join(line.replace(b" ", b" | ", 1) for line in text.splitlines(keepends=True))
    return written(folder, text, "a.svm"), written(folder, twin, "a.vw")


def test_one_set_in_both_formats_is_one_model(tmp_path: Path) -> None:
    first, second = svmlight_and_vw(tmp_path)
    a, b = read_all(first), read_all(second)
    assert a.nnz == 154_972
    assert same(a.at(None), b.at(None))
    models = [train(path, rule="ftrl:alpha=1,l1=1", passes=2, cache=False) for path in (first, second)]
    weights = [model.weights() for model in models]
    assert all(np.array_equal(x, y) for x, y in zip(*weights, strict=True))
    assert models[0].layout == SettledLayout("svmlight")
    assert models[1].layout == SettledLayout("vw")


@pytest.mark.parametrize("bits", [18, 24])
def test_features_are_those_of_vowpal_wabbit(tmp_path: Path, bits: int) -> None:
    for said in SAID:
        path = written(tmp_path, said["line"].encode() + b"\n", "one.vw")
        chunk = read_all(path, layout=Layout("vw", hash="vw", bits=bits, seed=said["seed"]), domain="open")
        wanted: dict[int, float] = {}
        for key, value in said[f"features{bits}"]:
            wanted[key] = wanted.get(key, 0.0) + value
        found = dict(zip(chunk.keys.tolist(), chunk.values.tolist(), strict=True))
        found = {key: value for key, value in found.items() if value != 0 or key in wanted}
        assert found.keys() == wanted.keys(), said["line"]
        assert list(found.values()) == pytest.approx([wanted[key] for key in found], rel=1e-6), said["line"]
        label = said["label"] if said["label"] is not None else 0.0
        assert (chunk.labels.tolist(), chunk.weights.tolist()) == ([label], [said["weight"]])


def test_real_stories_are_read_as_vowpal_wabbit_has_them() -> None:
    chunk = read_all(ROOT / "examples/data/rcv1_small100.vw.gz", layout=Layout("vw", hash="vw", bits=24))
    assert (len(chunk), int((chunk.labels > 0).sum())) == (100, 43)
    assert np.add.reduceat(chunk.values**2, chunk.indptr[:-1]) == pytest.approx(np.ones(100), rel=1e-5)
