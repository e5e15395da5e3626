"""Any bytes as lines of each format: the parser agrees with a reference parser and stays in its memory.

Each line format has a second, plain parser in the tests, which must agree on every row, count and bad line,
and whose branches can be followed: hypothesis changes valid lines in every run of the tests, and `make fuzz`
lets atheris search as long as you like. Both read memory between protected pages, where a read or write
beyond the end kills the process.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.data.guarded import Places, ProtectedArenas, outcome, parser
from tests.data.lines import TESTED
from tests.data.reference import Row, bits, parse_text, rows_of
from tests.data.samples import SAMPLES
from tests.data.table_reference import parse_cells, parse_json
from tests.data.test_tables import KINDS
from thresher.data.files.blocks import LINES, PAD, Block
from thresher.data.layout import Layout


class Target(NamedTuple):
    """A parser and the reference parser that it must agree with."""

    sample: str
    layout: Layout
    parse: Callable[[bytes], Row | None]
    tokens: tuple[bytes, ...]
    """fragments of lines in this format"""

    def seeds(self) -> list[bytes]:
        """Initial texts, good and bad."""
        sample = SAMPLES[self.sample]
        return [*sample.good(8, 3), *sample.bad.values(), b"\n".join(sample.good(3, 4))]


def _lines() -> Iterator[tuple[str, Target]]:
    """The targets of each line format, with its plain layout and others."""
    for form, tested in TESTED.items():
        layouts = {form: Layout(form), **{f"{form}-{name}": one for name, one in tested.fuzzed.items()}}
        for name, layout in layouts.items():
            parse = partial(tested.parse, domain="binary", layout=layout)
            yield name, Target(form, layout, parse, (*tested.tokens,))


def _cells(form: str, delimiter: str) -> Target:
    parse = partial(parse_cells, delimiter=delimiter, kinds=KINDS)
    tokens = tuple(token.replace(b",", delimiter.encode()) for token in _TOKENS["csv"])
    return Target(form, SAMPLES[form].layout, parse, (*tokens, b"", b" "))


_TOKENS = {
    "csv": (
        *(
            *(b"1", b"-1", b"0.5", b"1e39", b"nan", b'"', b'""', b'"a"', b"a", b",", b"1.5.5", b"1e-5"),
            b"\xc3\xa4",
        ),
        *(b"\r", b"\t", b"\0"),
    ),
    "jsonl": (
        *(
            *(b"{", b"}", b"[", b"]", b",", b":", b'"', b'"label":1', b'"w":1', b'"x":0.5', b'"city":"a"'),
            b'"id":3',
        ),
        *(b"null", b"true", b"-0", b"1e400", b"NaN", b"\\ud800", b"\\", b"\xff", b"\r", b"\0"),
    ),
}
"""Fragments of lines."""
TARGETS: dict[str, Target] = {
    **dict(_lines()),
    "csv": _cells("csv", ","),
    "tsv": _cells("tsv", "\t"),
    "jsonl": Target("jsonl", SAMPLES["jsonl"].layout, partial(parse_json, kinds=KINDS), _TOKENS["jsonl"]),
}


class Checker:
    """The parser of one target, created once."""

    def __init__(self, name: str) -> None:
        self._target = TARGETS[name]
        self._places = Places()
        with tempfile.TemporaryDirectory() as folder:
            sample = SAMPLES[self._target.sample]
            self._parser = parser(sample, self._target.layout, Path(folder), ProtectedArenas())

    def __call__(self, text: bytes) -> None:
        """Raise AssertionError if a text is parsed wrongly; out-of-bounds access crashes the process."""
        text = text if text.endswith(b"\n") else text + b"\n"
        lines = text.split(b"\n")[:-1]
        rows, bad, blank = parse_text(text, "", lambda line, _: self._target.parse(line))
        parsed = self._parse(text)
        tally = parsed.tally
        assert rows_of(parsed.chunk) == bits(rows), text
        assert (tally.lines, tally.examples, tally.blank) == (len(lines), len(rows), blank), text
        assert tally.skipped == len(bad), text
        assert parsed.rejected == b"".join(line + b"\n" for line in bad), text
        refused = set(bad)
        places = [k + 1 for k, line in enumerate(lines) if line in refused]
        assert [one.line for one in parsed.bad] == places[:10], text
        assert [one.raw for one in parsed.bad] == bad[:10], text
        assert all(1 <= one.column <= len(one.raw) + 1 and "\n" not in str(one) for one in parsed.bad), text
        if 1 < len(lines) < 20:
            alone = [outcome(self._parse(line + b"\n")) for line in lines]
            assert [row for one in alone for row in one[0]] == bits(rows), text

    def _parse(self, text: bytes) -> Any:
        memory = self._places.at("text", len(text) + PAD)
        memory[:] = np.frombuffer(text + b'9:|\n"' * PAD, np.uint8)[: memory.size]
        return self._parser.parse(Block(memory, len(text), LINES, 0, 1, 0, 0))
