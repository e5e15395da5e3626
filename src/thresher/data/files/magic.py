"""What a binary file is, from its first bytes."""

from __future__ import annotations

from codecs import getincrementaldecoder

_MARKS = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_WIDE = ("UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE")
_SOME = 256
"""Bytes that are looked at"""
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
    wide = "" if known else _wide(head)
    return known or (f"{wide[:6]} text: convert it with iconv -f {wide} -t UTF-8" if wide else "")


def _wide(head: bytes) -> str:
    """The name of an encoding in units of 16 or 32 bits, for iconv; empty for anything but text in one.

    Without a mark it is the one in which the beginning is printable and has characters of ASCII, such as
    digits and delimiters: these are part of any data, and in another order of bytes they are other letters.
    """
    if marked := next((name for mark, name in _MARKS if head.startswith(mark)), ""):
        return marked
    for name in _WIDE:
        try:
            text = getincrementaldecoder(name)().decode(head[:_SOME])
        except UnicodeDecodeError:
            continue
        if (
            len(head) >= 8
            and any(map(str.isascii, text))
            and all(c.isprintable() or c in "\t\r\n" for c in text)
        ):
            return name
    return ""
