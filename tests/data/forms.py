"""Formats of lines: some text of each, with bad lines, and a plain parser of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from tests.data.reference import Row, parse_text
from tests.data.vw_reference import parse_vw_line
from thresher.data.layout import Layout


def some_text(lines: int, seed: int = 0) -> bytes:
    random = np.random.default_rng(seed)
    rows = []
    for k in range(lines):
        if k % 17 == 5:
            rows.append(random.choice(["# a comment", "", "broken line", "1 5:x", "3 1:1"]))
        else:
            ids = random.integers(0, 10**6, random.integers(0, 9))
            rows.append(" ".join([str(random.choice([-1, 1])), *(f"{i}:{random.normal():.6g}" for i in ids)]))
    return "\n".join(rows).encode()


def some_vw(lines: int, seed: int = 0) -> bytes:
    random = np.random.default_rng(seed)
    rows = []
    for k in range(lines):
        if k % 17 == 5:
            rows.append(random.choice(["", " \t", "broken line", "1 | 5:", "3 |f a", "|f a"]))
        else:
            ids = random.integers(0, 10**6, random.integers(0, 9))
            spaces = [
                f"|{random.choice(['', 'f', 'user:2'])} {i}:{random.normal():.6g} w{i % 9}" for i in ids
            ]
            rows.append(" ".join([str(random.choice(["-1", "1 0.5", "1 2 0 'tag"])), *spaces, "|"]))
    return "\n".join(rows).encode()


def parse_vw(text: bytes, domain: str) -> tuple[list[Row], list[bytes], int]:
    return parse_text(text, domain, partial(parse_vw_line, layout=Layout("vw")))


class Form(NamedTuple):
    """A format of lines: an ending that tells it, some of it with bad lines, a plain parser of it."""

    ending: str
    some: Callable[[int, int], bytes]
    parse: Callable[[bytes, str], tuple[list[Row], list[bytes], int]]


FORMS = {"svmlight": Form("svm", some_text, parse_text), "vw": Form("vw", some_vw, parse_vw)}
