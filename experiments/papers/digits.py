"""The idx files of MNIST, checked."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from experiments.papers.published import ConvertError, opened, stem_of

PARTS = ("train", "t10k")
MNIST = tuple(f"{part}-{kind}-ubyte" for part in PARTS for kind in ("images-idx3", "labels-idx1"))
SIDE, CLASSES, MOST = 28, 10, 1_000_000
_BLOCK = 1 << 20


def mnist(paths: Sequence[Path], folder: Path) -> dict[Path, bytes]:
    """The files of mnist/; those of one part must have as many images as labels."""
    contents, sources = {}, {}
    for path in paths:
        name = stem_of(path).replace(".idx", "-idx")
        if name not in MNIST:
            raise ConvertError(f"{path}: the files of MNIST are {', '.join(MNIST)}")
        target = folder / "mnist" / f"{name}.gz"
        contents[target], sources[target] = checked(path, "images" in name), path
    for images, labels in zip(MNIST[::2], MNIST[1::2], strict=True):
        pair = [folder / "mnist" / f"{name}.gz" for name in (images, labels)]
        counts = [_count(target, contents) for target in pair]
        if counts[0] != counts[1] and None not in counts:
            named = " and ".join(
                f"{sources.get(one, one)} has {n:,}" for one, n in zip(pair, counts, strict=True)
            )
            if any(target in contents for target in pair):
                raise ConvertError(f"as many images as labels are needed: {named}; convert both together")
    return contents


def _count(target: Path, contents: dict[Path, bytes]) -> int | None:
    """Rows of a file that is to be written, or was before; None if there is none."""
    if target in contents:
        head = contents[target][:8]
    elif target.is_file():
        try:
            with gzip.open(target) as file:
                head = file.read(8)
        except (OSError, EOFError, zlib.error):
            return None  # damaged: the pages refuse it
    else:
        return None
    return int.from_bytes(head[4:8], "big")


def checked(path: Path, images: bool) -> bytes:
    """The content of an idx file of images or of labels: what its header declares, and no more."""
    kind, dimensions = ("images", 3) if images else ("labels", 1)
    with opened(path) as file:
        head = file.read(4 * (1 + dimensions))
        if len(head) < 4 * (1 + dimensions) or head[:4] != bytes([0, 0, 8, dimensions]):
            raise ConvertError(f"{path}: not an idx file of {kind}")
        sizes = struct.unpack(f">{dimensions}I", head[4:])
        if sizes[1:] != (SIDE, SIDE)[: dimensions - 1]:
            raise ConvertError(f"{path}: images of {sizes[1]} x {sizes[2]} pixels, not {SIDE} x {SIDE}")
        if not 1 <= sizes[0] <= MOST:
            raise ConvertError(f"{path}: {sizes[0]:,} {kind}, not 1 to {MOST:,}")
        size, blocks, got = math.prod(sizes), [], 0
        while got <= size and (block := file.read(min(_BLOCK, size + 1 - got))):
            blocks.append(block)
            got += len(block)
    if got != size:
        found = f"{got:,}" if got < size else "more"
        raise ConvertError(f"{path}: {found} bytes of data; its header says {size:,}")
    content = b"".join(blocks)
    if not images and max(content) >= CLASSES:
        raise ConvertError(f"{path}: a label {max(content)}; labels are 0 to {CLASSES - 1}")
    return head + content
