"""A few JSON objects as columns for the compiled encoder, without pyarrow.

pyarrow takes 1.5 ms for one object of 40 fields and 2.2 ms for 32 of them; this takes .1 and .5 ms. Anything
unusual is left to the readers that say what is wrong with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import read_only
from thresher.data.columns import CATEGORICAL, LABEL, NUMBERS, SPELLED
from thresher.data.files.blocks import PAD
from thresher.data.formats.tables import arrow_rows as rows
from thresher.data.formats.tables.arrow_batches import Described, columns_read
from thresher.data.formats.tables.table_rows import GAPPED, Kinds
from thresher.data.text.spelling import GROWTH, spell_all

_SCALARS = (int, float, bool)
_PADDING = bytes(PAD)
_WORD = 8
_MOST_BITS = 1000
"""Larger whole numbers are left to others."""


class FewObjects:
    """The columns of objects that are numbers or categories.

    Their memory is one text: the numbers, the ends of the texts, the texts, and which numbers are there.
    """

    def __init__(self, kinds: Kinds, words: bool, written: Callable[[Any], str]) -> None:
        """`words` says whether labels are not numbers; `written` writes a number or boolean as a category."""
        self._written, read = written, columns_read(kinds)
        whats, spelled = [kinds.what[c] for c in read], [kinds.spelling_of(c) in SPELLED for c in read]
        numeric = NUMBERS if words else (*NUMBERS, LABEL)
        self._numbers = [k for k, what in enumerate(whats) if what in numeric]
        self._texts = [k for k, what in enumerate(whats) if what == CATEGORICAL]
        self._texts.sort(key=lambda k: not spelled[k])
        self._names = [[kinds.names[read[k]] for k in places] for places in (self._numbers, self._texts)]
        self._spelled = sum(spelled[k] for k in self._texts)
        self._width = sum(2 if kinds.codes[c] == GAPPED else 1 for c in read)
        self.others = [(k, c) for k, c in enumerate(read) if k not in {*self._numbers, *self._texts}]
        """the other columns: their rows in the table, and their numbers"""
        self._table = np.zeros((len(read), rows.FIELDS), np.int64)
        self._table[:, rows.COLUMN] = read
        self._table[self._texts, rows.FORM] = rows.LONG
        self._per_row, self._per_address = np.zeros_like(self._table), np.zeros_like(self._table)
        words_before = _WORD * np.arange(len(read))
        self._per_row[self._numbers, rows.DATA] = words_before[: len(self._numbers)]
        self._per_row[self._texts, rows.OFFSETS] = words_before[len(self._numbers) :][: len(self._texts)]
        self._per_address[self._numbers, rows.DATA] = 1
        self._per_address[self._texts, rows.OFFSETS] = 1

    def described(self, objects: Sequence[Mapping[str, Any]]) -> Described | None:
        """The columns of `objects`; None unless all values are numbers and texts where they should be."""
        count, (number_names, text_names) = len(objects), self._names
        numbers, texts = _columns(objects, number_names), _columns(objects, text_names)
        there = None if None not in numbers else [cell is not None for cell in numbers]
        try:
            if there is not None:
                numbers = [0.0 if cell is None else cell for cell in numbers]
            values = struct.pack(f"={len(numbers)}d", *numbers)
            if {*map(type, texts)} - {str}:
                texts = [cell if type(cell) is str else self._as_text(cell) for cell in texts]
            whole = "".join(texts)
            sizes = map(len, texts) if whole.isascii() else [len(cell.encode()) for cell in texts]
            ends = struct.pack(f"={len(texts) + 1}q", 0, *accumulate(sizes))
            text = whole.encode()
        except (struct.error, ValueError, TypeError, OverflowError):
            return None
        valid = b"" if there is None else self._bits(there, count)
        memory = np.frombuffer(b"".join((values, ends, text, valid, _PADDING)), np.uint8)
        at = memory.__array_interface__["data"][0]
        table = self._table + count * self._per_row + at * self._per_address
        text_at = at + len(values) + len(ends)
        table[self._texts, rows.DATA] = text_at
        if valid:
            each = -(-count // 8)
            table[self._numbers, rows.VALID] = text_at + len(text) + each * np.arange(len(self._numbers))
        held = [memory]
        if self._spelled:
            places = memory[len(values) : len(values) + len(ends)].view(np.int64)
            held += self._respell(table, text_at, places, count)
        return Described(table, held, count * self._width)

    def _as_text(self, cell: Any) -> str:
        if cell is None:
            return ""
        if type(cell) not in _SCALARS or (type(cell) is int and cell.bit_length() > _MOST_BITS):
            raise TypeError("a value is neither a text nor a number of some digits")
        return self._written(cell)

    @staticmethod
    def _bits(there: list[bool], count: int) -> bytes:
        """A bit for each number, column after column, each of which begins a byte."""
        return np.packbits(np.array(there).reshape(-1, count), axis=1, bitorder="little").tobytes()

    def _respell(
        self, table: NDArray[np.int64], text: int, places: NDArray[np.int64], count: int
    ) -> list[Any]:
        """Let the columns of values that are spelled point to their spellings; returns these."""
        cells, columns = self._spelled * count, self._texts[: self._spelled]
        out = np.empty(int(places[cells]) + GROWTH * cells + PAD, np.uint8)
        ends = np.empty(cells + 1, np.int64)
        spell_all(np.int64(text), read_only(places[: cells + 1]), out, ends)
        table[columns, rows.DATA] = out.ctypes.data
        table[columns, rows.OFFSETS] = ends.ctypes.data + _WORD * count * np.arange(len(columns))
        return [out, ends]


def _columns(objects: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Any]:
    """These fields of all objects, one field after the other; None where there is none."""
    return [*chain.from_iterable(zip(*(map(one.get, names) for one in objects), strict=True))]
