from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.data.errors import DataError
from thresher.data.feature_specs import Grams, grams_of
from thresher.data.features.murmur import hash_bytes
from thresher.data.features.ngrams import letters, rows_of_texts

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
        "",
        "words=1-3",
        "words=0,chars=2-4",
        "words=2,chars=1",
        "case,shortest=1",
        "scale=log,norm",
        "tokens=letters",
        "tokens=blanks,chars=2",
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


@given(
    st.from_regex(
        r"(words=[1-3]-[3-5]|chars=2|case|tokens=blanks|shortest=3|scale=(log|binary)|norm)(,(norm|case)){0,2}",
        fullmatch=True,
    )
)
def test_a_spec_says_all(spec: str) -> None:
    assert grams_of(grams_of(spec).spec) == grams_of(spec)


@pytest.mark.parametrize(
    "spec",
    [
        "words",
        "words=2-1",
        "words=0-2",
        "chars=-1",
        "scale=tf",
        "shortest=0",
        "norm=1",
        "words=0",
        "x",
        "tokens=x",
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
