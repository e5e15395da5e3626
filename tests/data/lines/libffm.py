"""LibFFM text: good and bad lines, and a simple reference parser."""

import re

import numpy as np

from tests.data.lines import Tested, Variant
from tests.data.lines.svmlight import parse_line
from tests.data.reference import BadLineError, Row
from thresher.data.layout import Layout


def parse_libffm_line(line: bytes, domain: str, layout: Layout) -> Row | None:
    """The row of the svmlight text that remains without fields; the order of features does not matter."""
    text = line.removesuffix(b"\r").partition(b"#")[0].decode("latin-1")
    words = [word for word in re.split("[ \t]+", text) if word]
    unlabelled = domain == "open" and bool(words) and re.match(r"\+?[0-9]+:", words[0])
    first = 0 if unlabelled else 1
    for k in range(first, len(words)):
        field, _, words[k] = words[k].partition(":")
        if not re.fullmatch(r"\+?[0-9]+", field) or int(field) >= 2**64 or not words[k]:
            raise BadLineError(field)
    if "qid" in text:
        raise BadLineError(text)
    row = parse_line(" ".join(words).encode("latin-1"), domain)
    return row and row._replace(merged=len(row.features) < len(words) - first)


def some_libffm(count: int, seed: int) -> list[bytes]:
    random, lines = np.random.default_rng(seed), []
    for _ in range(count):
        ids = random.integers(0, 2 ** int(random.integers(1, 64)), random.integers(0, 9), np.uint64)
        fields = random.integers(0, 4, len(ids))
        features = (f"{f}:{i}:{random.normal():.6g}" for f, i in zip(fields, ids, strict=True))
        lines.append(" ".join([str(random.choice(["-1", "1", "+1", "0", "1 +2:+3:1"])), *features]).encode())
    return lines


_BAD = (
    *(b"x 1:1:1", b"nan 1:1:1", b"3 1:1:1", b"1x 1:1:1", b"1:1:1", b"1:1 1:1:1", b"qid:1 1:1:1", b"\xff\xfe"),
    *(b"1 5", b"1 5:1", b"1 5:1:", b"1 5:1:x", b"1 5:1:inf", b"1 5:1:1e39", b"1 5:1:1x", b"1 5:1:1:1"),
    *(b"1 -5:1:1", b"1 5:-1:1", b"1 5:1-1:1", b"1 5-1:1:1", b"1 w:1:1", b"1 5:w:1", b"1 :1:1", b"1 5::1"),
    *(b"1 18446744073709551616:1:1", b"1 5:18446744073709551616:1", b"1 qid:3 5:1:1", b"1 +:1:1"),
    *(b"1 1:3:3e38 2:3:3e38", b"1 5:1:1\r 5:2:1", b"1 5:1:1\0", b"1 5:1:1 \0 5:2:1", b"1\0"),
)
_TOKENS = (
    *(b"1", b"-1", b":", b"1:", b"1:2:", b":0.5", b":-1e-3", b":-", b"12345678:12345678:0.12345678", b"#"),
    *(b"18446744073709551615:", b"18446744073709551616:", b"-", b".", b"+", b"\t", b"\r", b"\0", b"nan"),
)
TESTED = Tested(
    some_libffm,
    _BAD,
    (b"", b" \t", b"# words 1:2:3", b"\r"),
    parse_libffm_line,
    _TOKENS,
    variants={"products": Variant(Layout("libffm", interact=("0,1", "2,2", "*,3")))},
)
