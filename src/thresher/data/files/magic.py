"""What a binary file is, from its first bytes."""

from __future__ import annotations

_MODEL = b'{"__metadata__":{"thresher":'
"""What follows the length of the header in a model file"""
_MAGIC = (
    (b"PAR1", "Parquet: try --format parquet"),
    (b"ARROW1", "Arrow: try --format arrow"),
    (b"PK\x03\x04", "zip, npz or Excel: unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file: save the sheet as CSV"),
    (b"\x93NUMPY", "a NumPy array: load it with numpy.load and pass it to thresher.train in Python"),
    (b"\x80", "perhaps a pickle: load it in Python and pass the data to thresher.train"),
    (b"\x89HDF", "HDF5: read it in Python and pass the arrays to thresher.train"),
    (b"SQLite format 3", "a SQLite database: see docs/formats/databases.md"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
)  # fmt: skip


def begins_a_model(head: bytes) -> bool:
    """Whether a file with this beginning is a model or checkpoint of thresher."""
    return head[8:].startswith(_MODEL)


def binary_kind(head: bytes) -> str:
    """What a binary file that begins with `head` is, and how to read it; empty if unknown."""
    known = next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")
    return known or ("UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8" if _is_wide(head) else "")


def _is_wide(head: bytes) -> bool:
    """Whether text is in UTF-16: it has a mark, or every other byte of its first ones is zero."""
    first = head[:64] if len(head) > 64 else head[: len(head) // 2 * 2]
    zeros = {place: not any(first[place::2]) for place in (0, 1)}
    text = {place: all(first[place::2]) for place in (0, 1)}
    return head.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        len(first) >= 8 and ((zeros[0] and text[1]) or (zeros[1] and text[0]))
    )
