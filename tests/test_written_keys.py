"""Keys of names and values as docs/formats and docs/interactions.md define them, from MurmurHash3 itself."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from thresher.data import open_source
from thresher.data.layout import Layout

ALL = 2**64 - 1
A, B = 0x87C37B91114253D5, 0x4CF5AD432745937F


def turned(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & ALL


def finish(k: int) -> int:
    k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & ALL
    k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & ALL
    return k ^ k >> 33


def murmur(name: str, seed: int = 0) -> int:
    """The first half of MurmurHash3 x64_128."""
    text, h1, h2 = name.encode(), seed, seed
    for at in range(0, len(text), 16):
        block = text[at : at + 16]
        k1, k2 = (int.from_bytes(half, "little") for half in (block[:8], block[8:]))
        k1, k2 = turned(k1 * A & ALL, 31) * B & ALL, turned(k2 * B & ALL, 33) * A & ALL
        h1 ^= k1
        if len(block) == 16:
            h1 = ((turned(h1, 27) + h2) * 5 + 0x52DCE729) & ALL
        h2 ^= k2
        if len(block) == 16:
            h2 = ((turned(h2, 31) + h1) * 5 + 0x38495AB5) & ALL
    h1, h2 = h1 ^ len(text), h2 ^ len(text)
    h1 = h1 + h2 & ALL
    h2 = h1 + h2 & ALL
    return finish(h1) + finish(h2) & ALL


def of(column: str, value: str) -> int:
    return murmur(value, murmur(column))


def product(*keys: int) -> int:
    more = {2: 0x9E3779B97F4A7C15, 3: 0xD1B54A32D192ED03}[len(keys)]
    return finish((sum(map(finish, keys)) + more) & ALL)


def row_of(lines: str, file: Path, **layout: Any) -> dict[int, float]:
    file.write_text(lines)
    layout = {"label": "label", **layout} if file.suffix == ".csv" else layout
    source = open_source(file, layout=Layout(file.suffix[1:], **layout), domain="real")
    (chunk,) = source.chunks()
    return dict(zip(chunk.keys.tolist(), chunk.values.tolist(), strict=True))


LONG = "a name of more than sixteen bytes"
VISITS = f"label,{LONG},city,visits\n1,2.5,Ulm,40\n"


def test_columns_and_products(tmp_path: Path) -> None:
    found = row_of(VISITS, tmp_path / "t.csv", interact=(f"{LONG},city", f"{LONG},city,visits"))
    number, city, visits = murmur(LONG), of("city", "Ulm"), murmur("visits")
    assert found == {number: 2.5, city: 1, visits: 40, product(number, city): 2.5} | {
        product(number, city, visits): 100
    }


def test_bits(tmp_path: Path) -> None:
    found = row_of(VISITS, tmp_path / "t.csv", interact=(f"{LONG},city",), bits=20)
    number, city, visits = (key % 2**20 for key in (murmur(LONG), of("city", "Ulm"), murmur("visits")))
    assert found == {number: 2.5, city: 1, visits: 40, product(number, city) % 2**20: 2.5}


@pytest.mark.parametrize("value", [0.4, 1.9, 2, 2.5, 2.8, 3, 40, 5e6, -0.5, -3])
def test_bins(value: float, tmp_path: Path) -> None:
    size = abs(value)
    place = math.floor(size) if size <= 2 else math.floor(math.log(size) ** 2) + 2
    expected = of("visits", str(-place if value < 0 else place))
    found = row_of(f"label,visits\n1,{value!r}\n", tmp_path / "t.csv", bins=("visits",))
    assert found == {expected: 1}


@pytest.mark.parametrize("scale", ["count", "binary", "log"])
def test_n_grams(scale: str, tmp_path: Path) -> None:
    spec = f"words=1-2,chars=3,shortest=2,scale={scale},norm"
    found = row_of("label,t\n1,To be or a bee-bee\n", tmp_path / "t.csv", text=("t",), ngrams=spec)
    words, whole, counts = ["to", "be", "or", "bee", "bee"], "to be or bee bee", dict[int, int]()
    runs = [*words, *map(" ".join, pairwise(words))]
    keys = [of("t", run) for run in runs]
    keys += [murmur(whole[k : k + 3], murmur("t") ^ 1) for k in range(len(whole) - 2)]
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    values = {
        key: {"count": count, "binary": 1, "log": 1 + math.log(count)}[scale] for key, count in counts.items()
    }
    norm = math.sqrt(sum(value**2 for value in values.values()))
    assert found == pytest.approx({key: value / norm for key, value in values.items()}, rel=1e-6)


def test_vw_text(tmp_path: Path) -> None:
    found = row_of("1 |size:0.5 height:3 |looks :2 black at:Ulm :3 |  7:2 zebra :0.25\n", tmp_path / "t.vw")
    assert found == {
        of("size", "height"): 1.5,
        of("looks", "black"): 1,
        murmur("Ulm", of("looks", "at")): 1,
        7: 2,
        murmur("zebra"): 1,
        of("looks", "0"): 2,
        of("looks", "1"): 3,
        0: 0.25,
    }
