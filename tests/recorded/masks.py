"""Outputs without what differs between two runs: times, speeds, folders, versions."""

import difflib
import json
import re
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.recorded.objects import digest
from thresher._version import __version__
from thresher.engine.compile.notices import COMPILING

_TIMED = re.compile(r"^( *(?:seconds|examples per second|rows/s) +)[\d.,]+$", re.MULTILINE)
_KEYS = ("seconds", "examples_per_second")
_ITEMS = re.compile(rf"""(['"]?\b(?:{"|".join(_KEYS)})['"]?[:=] ?)[\d.e+-]+""")
_COMPILED = re.compile(rf"^(?:{COMPILING}.*| *seconds compiling .*|thresher: {COMPILING}.*)\n", re.MULTILINE)
_MODEL = re.compile(rb'\{"__metadata__":\{"thresher":')
_LINES = 12
"""lines of a text file that are kept"""


def plain(text: str, folder: Path) -> str:
    """The text with what differs replaced."""
    text = _COMPILED.sub("", text)
    for place, name in (
        (str(folder.resolve()), "FOLDER"),
        (str(folder), "FOLDER"),
        (sys.executable, "PYTHON"),
    ):
        text = text.replace(place, name)
    text = re.sub(r"^(\S+ with \S+ loss.*): [\d.]+ s$", r"\1: # s", text, flags=re.MULTILINE)
    text = re.sub(r"\b0x[0-9a-f]{6,}", "0x#", text)
    text = _ITEMS.sub(r"\1#", _TIMED.sub(r"\1#", _without_speeds(text)))
    return text.replace(f"thresher {__version__}", "thresher VERSION").replace(
        f'"{__version__}"', '"VERSION"'
    )


def _without_speeds(text: str) -> str:
    """Tables without their last column, if that is a speed or a time."""
    lines, timed = list[str](), False
    for line in text.split("\n"):
        words = line.split()
        if words and line.startswith(" ") and words[-1] in ("rows/s", "seconds"):
            timed = True
        elif timed and re.fullmatch(r" +\d.*\d", line):
            line = line[: -len(words[-1])] + "#"
        lines.append(line)
    return re.sub(r" +#$", " #", "\n".join(lines), flags=re.MULTILINE)


def _without_rates(text: str) -> str:
    """A tab-separated table of progress without its last column, a speed."""
    head, *rows = text.splitlines(keepends=True) or [""]
    if not head.startswith("examples\t"):
        return text
    return "".join([head, *(row.rpartition("\t")[0] + "\t#\n" for row in rows)])


def output(text: str, folder: Path) -> str:
    """The same; JSON is spread over lines."""
    try:
        found = json.loads(text)
    except ValueError:
        return plain(text, folder)
    if not isinstance(found, dict):
        return plain(text, folder)
    found.pop("seconds_compiling", None)
    return plain(json.dumps(found, indent=1, ensure_ascii=False) + "\n", folder)


def file(name: str, data: bytes, folder: Path) -> str:
    """A file as a few lines; its text if that is short."""
    if _MODEL.match(data[8:64]):
        return model(name, data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"{name}: {len(data):,} bytes, {digest(data)}\n"
    text = _without_rates(output(text, folder))
    lines = text.splitlines()
    told = f"{name}: {len(lines):,} lines, {digest(text.encode())}\n"
    some = [] if name.endswith((".svg", ".html")) else lines[:_LINES]
    return told + "".join(f"  {line[:200]}\n" for line in some)


def without_models(text: str) -> str:
    """A recording with models named only: their last digits may differ on another processor."""
    return re.sub(r"^(\S+): model of .*\n(?:  .*\n)*", r"\1: a model\n", text, flags=re.MULTILINE)


def changed(name: str, path: Path, text: str) -> str:
    """What differs from the recording in a file; empty if nothing does."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    old, new = (one.splitlines(keepends=True) for one in (before, text))
    return "".join(difflib.unified_diff(old, new, f"{name} recorded", f"{name} now", n=4))


def model(name: str, data: bytes) -> str:
    """A model: a hash of all its bytes, its header, and a hash of each tensor."""
    (size,) = struct.unpack("<Q", data[:8])
    tensors: dict[str, Any] = json.loads(data[8 : 8 + size])
    header: dict[str, Any] = json.loads(tensors.pop("__metadata__")["thresher"])
    whole = f"model of {len(data):,} bytes, {digest(data)}"
    if "training" in header:  # which holds speeds, of as many digits as they have
        whole = "checkpoint"
        table = header["training"].get("table", [])
        header["training"]["table"] = [row[:-1] for row in table]
    lines = [f"{name}: {whole}"]
    for key in sorted(header.keys() - {"crc32", "version"}):
        value = json.dumps(header[key])
        readable = len(value) < 80 or key in ("recipe", "record")
        lines.append(f"  {key} {value if readable else digest(value.encode())}")
    for key in sorted(tensors):
        start, end = tensors[key]["data_offsets"]
        one = data[8 + size + start : 8 + size + end]
        lines.append(f"  {key} {tensors[key]['dtype']}{tensors[key]['shape']} {_content(one, tensors[key])}")
    return "\n".join(lines) + "\n"


def _content(data: bytes, described: dict[str, Any]) -> str:
    """The numbers of a short tensor, a hash of a long one."""
    types = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U64": "<u8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
    kind = types.get(described["dtype"])
    if kind is None or len(data) > 4 * np.dtype(kind).itemsize:
        return digest(data)
    return str(np.frombuffer(data, kind).tolist())
