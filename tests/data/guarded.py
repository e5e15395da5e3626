"""Parse with guarded memory: a program that crashes if a parser reads or writes outside its arrays.

Every array passed to a parser lies right before or right after a protected page: the text with its spare
bytes, the columns in which rows are stored, the buffers of Arrow arrays.
"""

import ctypes
import faulthandler
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tests.data.reference import rows_of
from tests.data.samples import SAMPLES, VARIANTS, Sample
from thresher.data.features import ngrams
from thresher.data.files.blocks import LINES, PAD, Block
from thresher.data.files.streams import Previews
from thresher.data.formats.choosing import module_of
from thresher.data.formats.listing import LINES as LINE_FORMATS
from thresher.data.formats.tables import delimited
from thresher.data.formats.tables.arrow_batches import BatchParser, TableBlock
from thresher.data.formats.tables.arrow_files import settle_arrow
from thresher.data.labels import DOMAINS, domain_of
from thresher.data.layout import Layout
from thresher.data.sources.reader import Arenas, Reading, RowArrays, RowsAsked

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
SPARE = (b"\0", b"9", b'"', b"\n", b"\xff")
"""What the spare bytes after a text may contain."""
ODD = [
    *(b"1 " + b" ".join(b"%d:0.%d" % (k, k) for k in range(n)) for n in (7, 8, 30)),
    *(b"1 | " + b" ".join(b"w%d:0.%d a" % (k, k) for k in range(n)) for n in (7, 30)),
    *(b"1" * n for n in (1, 7, 8, 9, 63, 64, 65, 200)),
    *(b"0,3,5 1:1", b"1.5,2,-3 1:1", b"5,4,3,2,1,0 2:1", b"1,2,3,4 1:1", b" 1:1", b"2,2 | a", b"1,2,3 |f b"),
    *(b'1,1,0.5,2,"' + b"x" * n + b'",3' for n in (0, 40, 64)),
    *(b"1,1,0.5,2," + b'""' * n for n in (1, 2, 33)),
    *(
        *(b"-", b"+", b".", b"1e", b"1:", b"1 5:1.", b"1 5:-", b"1 5:1e+", b"1 qid:", b"1 '", b"|"),
        *(b"1 |f:", b"1 |f a:"),
    ),
    *(
        "1\t1\t\t\tÄ".encode() * 3,
        *(b"1,1,\xc3", b"1,1,,,\xe2\x82", b"1,1,,,a,\xf0\x9f", b"\xef\xbb\xbf", b"\xef\xbb"),
    ),
]


def protected(size: int, kind: Any = np.uint8, at_end: bool = True) -> NDArray[Any]:
    """An array of `size` entries between two protected pages, adjacent to one of them."""
    room = size * np.dtype(kind).itemsize
    pages = max(1, -(-room // PAGESIZE))
    memory = mmap(-1, (pages + 2) * PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        if _LIBC.mprotect(start + page * PAGESIZE, PAGESIZE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(memory, kind, size, (pages + 1) * PAGESIZE - room if at_end else PAGESIZE)


def moved(array: NDArray[Any], at_end: bool = True) -> NDArray[Any]:
    copy = protected(array.size, array.dtype, at_end)
    copy[:] = array.ravel()
    return copy


class Places:
    """Reusable protected memory: a new array overwrites the one before."""

    def __init__(self) -> None:
        self._regions = dict[object, NDArray[np.uint8]]()

    def at(self, name: object, size: int, kind: Any = np.uint8, at_end: bool = True) -> NDArray[Any]:
        """An array of `size` entries, at the end or the beginning of the named region."""
        room = size * np.dtype(kind).itemsize
        if name not in self._regions or len(self._regions[name]) < room:
            self._regions[name] = protected(-(-max(room, 1) // PAGESIZE) * PAGESIZE)
        region = self._regions[name]
        return (region[len(region) - room :] if at_end else region[:room]).view(kind)


_AT_A_TIME = 16
"""Chunks of the pieces of one text"""


class ProtectedArenas(Arenas):
    """Columns, each protected separately, for a few chunks at a time."""

    def __init__(self) -> None:
        super().__init__(0)
        self._places, self._turns = Places(), cycle(range(_AT_A_TIME))

    def columns(self, rows: int, nnz: int, width: int | None = None, shifted: bool = False) -> RowArrays:
        turn = next(self._turns)

        def one(name: str, size: int, kind: Any) -> NDArray[Any]:
            return self._places.at((name, turn), size, kind)

        return RowArrays(
            one("indptr", rows + 1, np.int64),
            one("keys", nnz, np.uint64),
            one("values", nnz, np.float32),
            one("labels", rows, np.float32),
            one("weights", rows, np.float32),
            one("offsets", (rows + 1) * shifted, np.float32),
            None if width is None else one("targets", rows * width, np.float32).reshape(rows, width),
        )


def parser(sample: Sample, layout: Layout, folder: Path, arenas: Arenas, domain: str = "binary") -> Any:
    """The parser of a line format, for files like those of the sample."""
    path = folder / f"data{sample.ending}"
    sample.write([*sample.head, *sample.good(20, 0)], path)
    if sample.format in LINE_FORMATS:
        form = module_of(sample.format).parser
    else:
        layout, form = module_of(sample.format).open_table(
            [str(path)], replace(layout, format=sample.format), Previews(), RowsAsked()
        )
    return form(layout, Reading(domain_of(domain), "quarantine", arenas))


def texts(sample: Sample) -> Iterator[bytes]:
    """Lines, good and bad, their beginnings and ends, and all of them together."""
    lines = [*sample.good(4, 1), *sample.bad.values(), *sample.empty, *sample.head, *ODD]
    yield b"".join(line + b"\n" for line in lines)
    step = 97 if sample.format == "jsonl" else 41  # parsing JSON takes longer
    for k, line in enumerate(lines):
        for size in range(k % step, len(line) + 1, step):
            yield line[:size] + b"\n"
            yield line[size:] + b"\n"


def outcome(parsed: Any) -> tuple[Any, ...]:
    return rows_of(parsed.chunk), parsed.tally, parsed.bad, parsed.rejected


def exactly(parsed: Any) -> tuple[Any, ...]:
    """The same with all arrays of the chunk."""
    chunk = parsed.chunk
    arrays = (chunk.indptr, chunk.keys, chunk.values, chunk.labels, chunk.weights, chunk.targets)
    held = [None if array is None else array.tobytes() for array in arrays]
    return held, parsed.tally, parsed.bad, parsed.rejected


def parse_lines(sample: Sample, layout: Layout, domain: str = "binary") -> int:
    """Parse all `texts` at both ends of memory, and in unprotected memory; returns how many."""
    with tempfile.TemporaryDirectory() as folder:
        careful = parser(sample, layout, Path(folder), ProtectedArenas(), domain)
        plain = parser(sample, layout, Path(folder), Arenas(1), domain)
    count, places = 0, Places()
    for text in texts(sample):
        spare = SPARE[count % len(SPARE)] * PAD
        whole = np.frombuffer(text + spare, np.uint8)
        usual = np.frombuffer(bytearray(text + b" " * PAD), np.uint8)
        found = exactly(plain.parse(Block(usual, len(text), LINES, 0, 1, 0, 0)))
        for at_end in (True, False):
            if isinstance(careful, delimited.DelimitedParser):
                careful.room = places.at("room", len(text) + PAD)
            memory = places.at("text", len(whole), at_end=at_end)
            memory[:] = whole
            block = Block(memory, len(text), LINES, 0, 1, 0, 0)
            if exactly(careful.parse(block)) != found:
                raise AssertionError(f"{sample.format}: {text!r} depends on what is behind it")
        count += 1
    return count


def arrow_moved(array: Any) -> Any:
    """A copy of an Arrow array with protected buffers of minimal length."""
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(arrow_moved(array.indices), arrow_moved(array.dictionary))
    kind, children = array.type, []
    lengths = [-(-len(array) // 8)]
    buffers = array.buffers()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children = [arrow_moved(array.values)]
        lengths.append((len(array) + 1) * (8 if pa.types.is_large_list(kind) else 4))
        buffers = buffers[:2]
    elif pa.types.is_boolean(kind):
        lengths.append(-(-len(array) // 8))
    elif pa.types.is_primitive(kind):
        lengths.append(len(array) * kind.bit_width // 8)
    else:
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        ends = np.frombuffer(buffers[1], np.int64 if wide else np.int32)
        lengths += [(len(array) + 1) * (8 if wide else 4), int(ends[len(array)])]
    held = list[Any]()
    for buffer, length in zip(buffers, lengths, strict=True):
        if buffer is None:
            held.append(None)
            continue
        copy = moved(np.frombuffer(buffer, np.uint8, length))
        held.append(pa.foreign_buffer(copy.ctypes.data, length, copy))
    return pa.Array.from_buffers(kind, len(array), held, -1, 0, children)


def parse_batches() -> int:
    """Parse record batches of every kind of column with protected buffers; returns how many."""
    random, count = np.random.default_rng(0), 0
    arenas = ProtectedArenas(), Arenas(1)
    for rows in (1, 2, 7, 8, 9, 255, 256, 257, 600):
        words = [None if k % 5 == 3 else "w" * int(n) for k, n in enumerate(random.integers(0, 40, rows))]
        lists = [None if k % 7 == 6 else words[k : k + k % 4] for k in range(rows)]
        columns = {"label": pa.array([1] * rows), "b": pa.array([k % 3 == 0 for k in range(rows)])}
        columns["i"] = pa.array([None if k % 4 == 2 else k for k in range(rows)])
        columns["f"] = pa.array(random.normal(size=rows), pa.float32())
        columns |= {
            str(kind): pa.array(words, kind) for kind in (pa.string(), pa.large_string(), pa.binary())
        }
        columns["t"] = pa.array(words, pa.string())
        columns["d"] = pa.array(words).dictionary_encode()
        columns["l"] = pa.array(lists, pa.list_(pa.string()))
        layout = Layout("arrow", text=("t",), ngrams="words=1-2,chars=2-4", categorical=("i",))
        safe = pa.RecordBatch.from_pydict({name: arrow_moved(array) for name, array in columns.items()})
        plain = pa.RecordBatch.from_pydict(columns)
        read_by, kinds = settle_arrow(layout, plain.schema, "the table", RowsAsked(), plain)
        found = []
        for batch, arena in zip((safe, plain), arenas, strict=True):
            reader = BatchParser([kinds], read_by, Reading(DOMAINS["binary"], "skip", arena))
            found.append(exactly(reader.parse(TableBlock(batch, 0, 0, rows, 0))))
        if found[0] != found[1]:
            raise AssertionError(f"{rows} rows depend on what is behind them")
        count += 1
    return count


def cases() -> Iterator[tuple[str, Sample, Layout, str]]:
    """Line formats: plain, with text columns, interactions, missing cells, several labels."""
    for name, sample in {**SAMPLES, **VARIANTS}.items():
        if sample.packed:
            yield name, sample, sample.layout, "binary"
    csv = SAMPLES["csv"]
    layout = replace(csv.layout, text=("city",), ngrams="words=1-2,chars=2-3")
    yield "csv, text", csv, layout, "binary"
    yield "csv, missing", csv, replace(csv.layout, missing=("NA",)), "binary"
    for form in LINE_FORMATS:
        for domain in ("labels:0-5", "values:3,real"):
            yield f"{form}, {domain}", SAMPLES[form], SAMPLES[form].layout, domain


def main() -> None:
    faulthandler.enable()
    if sys.argv[1:] == ["beyond"]:  # shows that it does crash
        print(ctypes.string_at(protected(10).ctypes.data, 11))
    rooms, places = ngrams.rooms_for, Places()

    def protected_rooms(longest: int) -> tuple[NDArray[Any], ...]:
        scratch, begins = rooms(longest)
        return places.at("scratch", scratch.size), places.at("begins", begins.size, np.int64)

    for module in (ngrams, delimited):
        setattr(module, "rooms_for", protected_rooms)  # noqa: B010 mypy would have it declared there
    for name, sample, layout, domain in cases():
        print(name, flush=True)
        print(parse_lines(sample, layout, domain), flush=True)
    print("batches", flush=True)
    print(parse_batches(), flush=True)


if __name__ == "__main__":
    main()
