"""Texts become n-grams, alone and in columns of tables, the same in every format."""

import math
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.covering import covering
from tests.data.reference import Row, read_all, rows_of, same
from tests.data.tables import WRITERS, meaning, write_jsonl
from thresher.data import Chunk, open_source
from thresher.data.errors import DataError
from thresher.data.feature_specs import Grams, grams_of
from thresher.data.features.murmur import SHORT, VW, WIDE, hash_bytes, hash_one, padded_murmur3_64, seed_of
from thresher.data.features.ngrams import letters, rows_of_texts
from thresher.data.layout import Layout
from thresher.data.text.words import address
from thresher.engine.compile.jit import kernel

TEXT = "Über straße, İstanbul 東京 x1 _a ﬁne — it's NOT a 'test'. Not a test"


def lowered(word: str) -> str:
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in word)


def expected(text: str, grams: Grams, seed: int = 0) -> dict[int, float]:
    pattern = {"words": r"\w+", "letters": r"[^\W\d_]+", "blanks": r"\S+"}[grams.tokens]
    words = [word for word in re.findall(pattern, text) if len(word) >= grams.shortest]
    words = [lowered(word) for word in words] if grams.lowercase else words
    counts: Counter[int] = Counter()
    whole = " ".join(words)
    for size in range(max(grams.words[0], 1), grams.words[1] + 1):
        runs = [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]
        counts.update(hash_bytes(run.encode(), seed) for run in runs)
    for size in range(max(grams.chars[0], 1), grams.chars[1] + 1):
        pieces = [whole[i : i + size] for i in range(len(whole) - size + 1)]
        counts.update(hash_bytes(piece.encode(), seed ^ 1) for piece in pieces)
    values = {
        key: {"count": count, "binary": 1.0, "log": 1 + math.log(count)}[grams.scale]
        for key, count in counts.items()
    }
    length = math.sqrt(sum(np.float32(v) ** 2 for v in values.values())) if grams.norm else 1.0
    return {key: values[key] / length for key in sorted(values)}


def check(text: str, grams: Grams, seed: int = 0) -> None:
    texts = ["before", text, "", "and behind"]
    indptr, keys, values = rows_of_texts(texts, grams, seed)
    assert indptr[0] == 0
    for i, wanted in enumerate(expected(one, grams, seed) for one in texts):
        row = slice(indptr[i], indptr[i + 1])
        assert keys[row].tolist() == list(wanted)
        assert np.allclose(values[row], list(wanted.values()), rtol=1e-6)


@pytest.mark.parametrize(
    "spec",
    [
        *("", "words=1-3", "words=0,chars=2-4", "words=2,chars=1", "case,shortest=1", "scale=log,norm"),
        *("tokens=letters", "tokens=blanks,chars=2"),
    ],
)
def test_texts_of_many_scripts(spec: str) -> None:
    for text in (TEXT, TEXT * 60, "", "a", "  ", "to be or not to be"):
        check(text, grams_of(spec))
        check(text, grams_of(spec), 2**63 + 7)


@settings(max_examples=150)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from("ab Ab_,")),
    st.tuples(st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.integers(1, 4), st.integers(0, 2)),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from(["count", "binary", "log"]),
    st.booleans(),
    st.sampled_from(["words", "blanks"]),
)
def test_any_text(
    text: str,
    words: tuple[int, int],
    chars: tuple[int, int],
    lower: bool,
    shortest: int,
    scale: str,
    norm: bool,
    tokens: str,
) -> None:
    spans = (words[0], sum(words)), (chars[0], sum(chars))
    check(text, Grams(*spans, lower, shortest, scale, norm, tokens))


@settings(max_examples=150)
@given(st.binary(max_size=40))
def test_what_is_no_utf8_stands_between_words(raw: bytes) -> None:
    """Lone surrogates are the only strings without UTF-8; bytes that are not UTF-8 are read likewise."""
    text = raw.decode("utf-8", "surrogateescape")
    keys = rows_of_texts([text], grams_of(""))[1]
    assert keys.tolist() == list(expected(re.sub(r"[\udc80-\udcff]", " ", text), grams_of("")))


@pytest.mark.parametrize(
    "spec",
    [
        *("words", "words=2-1", "words=0-2", "chars=-1", "scale=tf", "shortest=0", "norm=1", "words=0"),
        *("x", "tokens=x"),
    ],
)
def test_wrong_specs(spec: str) -> None:
    with pytest.raises(DataError):
        grams_of(spec)


@pytest.mark.parametrize(("tokens", "part"), [("words", r"\w"), ("letters", ""), ("blanks", r"\S")])
def test_every_character_is_known_and_lowered_as_python_does(tokens: str, part: str) -> None:
    known = letters(tokens)
    for code in [*range(0x3000), *range(0x3000, len(known), 37)]:
        letter = chr(code)
        lower = letter.lower() if len(letter.lower()) == 1 else letter
        is_part = letter.isalpha() if tokens == "letters" else bool(re.fullmatch(part, letter))
        assert known[code] == (ord(lower) << 1 | 1 if is_part else 0), hex(code)


def write_vw(rows: list[dict[str, Any]], path: Path) -> None:
    """Namespaces with the names of columns have their keys."""
    spaces = ((row["label"], row["n"], row["city"] or "", row["body"] or "") for row in rows)
    lines = ["{} | n:{} |city {} |body {}\n".format(*one) for one in spaces]
    path.write_text("".join(lines), encoding="utf-8")


# TSV is read as CSV is, but for quotes; no other test would compile its loop over texts
WRITTEN = {**{name: write for name, write in WRITERS.items() if name != "data.tsv"}, "data.vw": write_vw}
FORMATS = pytest.mark.parametrize("name", WRITTEN)
SPECS = ("words=1-2,scale=log", "words=0,chars=2-3,norm", "words=1,shortest=1,case")
OTHERS = {"label": "label", "n": "numeric", "city": "categorical"}
texts = st.none() | st.lists(st.sampled_from(["Fine", "fine,", "Öl", "東京", "a", "'x'", "_", "—"])).map(
    " ".join
)


def layout(spec: str, name: str) -> Layout:
    return Layout(text=("body",), ngrams=spec, numeric=() if name == "data.vw" else ("n",))


def table(bodies: list[str | None]) -> list[dict[str, Any]]:
    first = {"label": 1, "n": 0.5, "city": "Ulm", "body": "a fine day in Ulm"}
    return [first, *({"label": -1, "n": 2, "city": None, "body": body} for body in bodies)]


def wanted(rows: list[dict[str, Any]], spec: str) -> list[dict[int, float]]:
    found = []
    for row in rows:
        others = meaning(row, OTHERS)
        assert isinstance(others, Row)
        grams = expected(row["body"] or "", grams_of(spec), seed_of("body"))
        found.append(dict(sorted({**{key: float(v) for key, v in others.features.items()}, **grams}.items())))
    return found


def agrees(chunk: Chunk, rows: list[dict[int, float]]) -> bool:
    ends = chunk.indptr.tolist()
    for i, row in enumerate(rows):
        entries = slice(ends[i], ends[i + 1])
        if chunk.keys[entries].tolist() != list(row):
            return False
        if not np.allclose(chunk.values[entries], list(row.values()), rtol=1e-6):
            return False
    return len(chunk) == len(rows)


@pytest.mark.parametrize(("name", "spec"), covering([*WRITTEN], SPECS))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(texts, max_size=8))
def test_every_format_finds_the_same_words(tmp_path: Path, name: str, spec: str, bodies: Any) -> None:
    rows = table([body or None for body in bodies])
    WRITTEN[name](rows, tmp_path / name)
    assert agrees(read_all(tmp_path / name, layout=layout(spec, name)), wanted(rows, spec))


@cache
def long_texts() -> tuple[list[dict[str, Any]], list[dict[int, float]]]:
    """A table, and the features it has with the first of `SPECS`."""
    rng = np.random.default_rng(3)
    words = [f"word{k}" for k in range(300)]
    rows = table([" ".join(rng.choice(words, 500)) for _ in range(40)])
    return rows, wanted(rows, SPECS[0])


@FORMATS
def test_long_texts_threads_and_blocks(tmp_path: Path, name: str) -> None:
    rows, features = long_texts()
    WRITTEN[name](rows, tmp_path / name)
    chunks = []
    for threads, block in ((1, 1 << 22), (1, 5000), (3, 5000)):
        source = open_source(
            tmp_path / name, layout=layout(SPECS[0], name), threads=threads, block_bytes=block
        )
        chunks.append([row for chunk in source.chunks() for row in rows_of(chunk)])
    assert chunks[0] == chunks[1] == chunks[2]
    assert agrees(read_all(tmp_path / name, layout=layout(SPECS[0], name)), features)


@pytest.mark.parametrize(("name", "bits"), covering([*WRITTEN], [3, 20]))
def test_keys_of_fewer_bits(tmp_path: Path, name: str, bits: int) -> None:
    """The values of colliding names add up, and nothing else changes."""
    rows = table(["fine and short", None, "dull and long"])
    WRITTEN[name](rows, tmp_path / name)
    whole = read_all(tmp_path / name, layout=layout(SPECS[0], name))
    short = read_all(tmp_path / name, layout=replace(layout(SPECS[0], name), bits=bits))
    assert len(whole) == len(short) == 4
    for i in range(4):
        one, other = whole.rows(i, i + 1), short.rows(i, i + 1)
        folded: dict[int, float] = {}
        for key, value in zip(one.keys.tolist(), one.values.tolist(), strict=True):
            folded[key % 2**bits] = folded.get(key % 2**bits, 0.0) + value
        assert other.keys.tolist() == sorted(folded)
        assert np.allclose(other.values, [folded[key] for key in sorted(folded)])
    wrong = "no indices of Vowpal Wabbit" if name == "data.vw" else "the hash vw is only for VW text"
    with pytest.raises(DataError, match=wrong):
        open_source(tmp_path / name, layout=Layout(bits=18, hash="vw", text=("body",)))


def test_several_columns_of_text(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"label": 1, "title": "fine words", "body": "fine days"},
        {"label": 0, "title": None, "body": "x"},
    ]
    write_jsonl(rows, tmp_path / "a.jsonl")
    both = read_all(tmp_path / "a.jsonl", layout=Layout(text=("title", "body")))
    one = read_all(tmp_path / "a.jsonl", layout=Layout(text=("title",), ignore=("body",)))
    assert np.diff(both.indptr).tolist() == [4, 0]
    assert set(one.keys.tolist()) < set(both.keys.tolist())
    again = read_all(tmp_path / "a.jsonl", layout=Layout(text=("t*", "body")))
    assert same(both, again)


@given(st.binary(max_size=80), st.integers(0, 2**32 - 1))
def test_the_reference_says_the_same(name: bytes, seed: int) -> None:
    assert hash_bytes(name, seed) == mmh3.hash64(name, seed, signed=False)[0]
    assert hash_bytes(name, seed, SHORT) == mmh3.hash(name, seed, signed=False)


@kernel
def _padded(text, at, size, seed):  # type: ignore[no-untyped-def]
    return padded_murmur3_64(address(text), at, size, seed)


@pytest.mark.parametrize("size", [*range(20), 31, 32, 33])
def test_what_stands_around_a_name_is_not_read(size: int) -> None:
    name = np.random.default_rng(size).bytes(size)
    for around in (b"\x00", b"7", b"\xff"):
        text = np.frombuffer(around * 16 + name + around * 16, np.uint8)
        for kind in (WIDE, SHORT, VW):
            assert hash_one(text, 16, size, np.uint64(5), kind) == hash_bytes(name, 5, kind)
        assert _padded(text, 16, size, np.uint64(5)) == hash_bytes(name, 5)


@given(st.binary(max_size=20) | st.from_regex(rb"[0-9]{1,25}", fullmatch=True), st.integers(0, 2**32 - 1))
def test_vowpal_wabbits_hash_adds_numbers_to_the_seed(name: bytes, seed: int) -> None:
    inner = name.strip(bytes(range(33)))
    number = seed if not inner else seed + int(inner) if inner.isdigit() else None
    wanted = mmh3.hash(inner, seed, signed=False) if number is None else number % 2**64
    assert hash_bytes(name, seed, VW) == wanted


def test_seeds_of_namespaces() -> None:
    assert seed_of("", 7) == 7
    assert seed_of("user") == hash_bytes(b"user")
    assert len({seed_of("user"), seed_of("ad"), seed_of("user", 1)}) == 3
