"""VW text: good and bad lines, and a simple reference parser with its own hash functions."""

import re

import mmh3
import numpy as np

from tests.data.lines import Tested, Variant
from tests.data.reference import BadLineError, Row, float32_of, label_of
from thresher.data.layout import Layout

_ALL = 2**64 - 1
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BEGINS_NUMBER = re.compile(rb"[0-9]|[+-][0-9.]|\.[0-9]")
_NAME = re.compile(rb"[^ \t\r:|\0]*")
_TEXT = re.compile(rb"[^ \t\r\0]*")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def murmur(name: bytes, seed: int) -> int:
    """The first half of MurmurHash3 x64_128, with a 64-bit seed."""

    def turn(x: int, by: int) -> int:
        return (x << by | x >> 64 - by) & _ALL

    def finish(x: int) -> int:
        x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & _ALL
        x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & _ALL
        return x ^ x >> 33

    a, b = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h = k = seed
    whole = len(name) // 16 * 16
    for at in range(0, len(name), 16):
        low, high = (int.from_bytes(name[at + p : at + p + 8], "little") for p in (0, 8))
        if at < whole:
            h = turn(h ^ turn(low * a & _ALL, 31) * b & _ALL, 27)
            h = ((h + k) * 5 + 0x52DCE729) & _ALL
            k = turn(k ^ turn(high * b & _ALL, 33) * a & _ALL, 31)
            k = ((k + h) * 5 + 0x38495AB5) & _ALL
        else:
            h, k = h ^ turn(low * a & _ALL, 31) * b & _ALL, k ^ turn(high * b & _ALL, 33) * a & _ALL
    h, k = h ^ len(name), k ^ len(name)
    h = (h + k) & _ALL
    return (finish(h) + finish((k + h) & _ALL)) & _ALL


def vw_hash(name: bytes, seed: int) -> int:
    """The hash of a name in Vowpal Wabbit."""
    name = name.strip(bytes(range(33)))
    if all(48 <= byte <= 57 for byte in name):
        return seed + int(name or b"0")
    return mmh3.hash(name, seed & 0xFFFFFFFF, signed=False)


class _Line:
    """The rest of a line, from the first bar on."""

    def __init__(self, rest: bytes, layout: Layout) -> None:
        self.rest, self.layout = rest, layout
        self.hash = vw_hash if layout.hash == "vw" else murmur
        self.features: list[tuple[int, np.float32]] = []

    def take(self, pattern: re.Pattern[bytes]) -> bytes:
        found = pattern.match(self.rest)
        if found is None:
            raise BadLineError(self.rest)
        self.rest = self.rest[found.end() :]
        return found[0]

    def space_follows(self) -> None:
        if self.rest and self.rest[:1] not in (b" ", b"\t", b"|"):
            raise BadLineError(self.rest)

    def number(self) -> np.float32:
        value = float32_of(self.take(_NUMBER).decode())
        self.space_follows()
        return value

    def namespace(self) -> None:
        self.rest = self.rest[1:]
        vw, name, scale = self.layout.hash == "vw", self.take(_NAME), np.float32(1)
        seed = self.hash(name, self.layout.seed) if name else self.layout.seed
        if vw and not name and seed:
            seed = mmh3.hash(b"", seed, signed=False)
        if name and self.rest[:1] == b":":
            self.rest = self.rest[1:]
            scale = self.number()
        self.space_follows()
        unnamed = 0
        while (rest := self.rest.lstrip(b" \t")) and rest[:1] != b"|":
            self.rest = rest
            unnamed += self.feature(seed, scale, unnamed, ids=vw or not name)
        self.rest = rest

    def feature(self, seed: int, scale: np.float32, unnamed: int, ids: bool) -> bool:
        """Add a feature; returns whether it had no name."""
        name, value = self.take(_NAME), np.float32(1) * scale
        if self.rest[:1] != b":":
            self.space_follows()
            self.note(self.key(name, seed, ids), value)
            return False
        self.rest = self.rest[1:]
        if _BEGINS_NUMBER.match(self.rest):
            with np.errstate(over="ignore"):
                value = self.number() * scale
            if not np.isfinite(value):
                raise BadLineError(name)
            self.note(self.key(name or b"%d" % unnamed, seed, ids), value)
            return not name
        text = self.take(_TEXT)
        if not text or _NOT_FINITE.fullmatch(text):
            raise BadLineError(text)
        self.space_follows()
        self.note(self.hash(text, self.hash(name, seed)), np.float32(1))
        return False

    def key(self, name: bytes, seed: int, ids: bool) -> int:
        digits = re.fullmatch(b"[0-9]{1,20}", name)
        if ids and digits and self.layout.hash != "vw" and int(name) < 2**64:
            return int(name)
        return self.hash(name, seed)

    def note(self, key: int, value: np.float32) -> None:
        self.features.append((key & self.layout.mask, value))


def _head(head: bytes, domain: str) -> tuple[np.float32, np.float32]:
    """Label and importance."""
    words = [word for word in re.split(b"[ \t]+", head) if word]
    if words and (head[-1:] not in b" \t" or words[-1][:1] == b"'"):
        words.pop()
    if len(words) > 3 or not (words or domain == "open"):
        raise BadLineError(head)
    numbers = [word.decode("latin-1") for word in words]
    label = label_of(numbers[0], domain) if numbers else np.float32(0)
    weight = float32_of(numbers[1]) if len(numbers) > 1 else np.float32(1)
    if weight < 0 or (len(numbers) > 2 and float32_of(numbers[2]) != 0):
        raise BadLineError(head)
    return label, weight


def parse_vw_line(line: bytes, domain: str, layout: Layout) -> Row | None:
    """The example on a line (without its newline), or None; raises `BadLineError`."""
    line = line.removesuffix(b"\r").lstrip(b" \t")
    if not line:
        return None
    head, bar, rest = line.partition(b"|")
    if not bar or b"\0" in head:
        raise BadLineError(line)
    label, weight = _head(head, domain)
    left = _Line(bar + rest, layout)
    while left.rest:
        left.namespace()
    features: dict[int, np.float32] = {}
    for key, value in left.features:
        with np.errstate(over="ignore"):
            features[key] = features[key] + value if key in features else value
    if not all(np.isfinite(value) for value in features.values()):
        raise BadLineError(line)
    return Row(label, weight, dict(sorted(features.items())), len(features) < len(left.features))


def some_vw(count: int, seed: int) -> list[bytes]:
    random, lines = np.random.default_rng(seed), []
    for _ in range(count):
        words = [
            f"{i}:{random.normal():.6g} w{i % 9}" for i in random.integers(0, 10**6, random.integers(0, 9))
        ]
        spaces = [f"|{random.choice(['', 'f', 'user:2'])} {word}" for word in words]
        lines.append(" ".join([str(random.choice(["-1", "1 0.5", "1 2 0 'tag"])), *spaces, "|"]).encode())
    return lines


def some_texts(count: int, seed: int) -> list[bytes]:
    random, lines = np.random.default_rng(seed), []
    for _ in range(count):
        words = [" ".join(random.choice(["Ein", "ol", "not", "x1"], random.integers(0, 7))) for _ in range(3)]
        lines.append(
            f"1 |user u{random.integers(9)}:2 |f {words[0]} |title:0.5 {words[1]}|f\t{words[2]} ".encode()
        )
    return lines


_BAD = (
    *(b"x | a", b"nan | a", b"3 | a", b"| a", b"1 -1 | a", b"1 1 0.5 | a", b"1 1 0 1 | a", b"1 't 2 | a"),
    *(b"1", b"1 |: a", b"1 |f: a", b"1 |f:1e39 a", b"1 |f a:", b"1 |f a:nan", b"1 |f a:3rd", b"1 |f a:1e39"),
    *(b"1 |f a:3e38 a:3e38", b"broken line", b"1 |f a\rb", b"\xff\xfe", b"1 |f:1e30 a:1e30"),
    *(b"1 |f a\0 b", b"1 |f\0 a", b"1 |f a:\0b", b"1 |f a:b\0", b"1 't\0| a", b"1 t\0|f a", b"1\0 |f a"),
    *(b"1:1:0.5 | a", b"1:0.5 2:1 | a", b"dog | a", b"ccb slot 0:1:0.5 | a"),
)
_TOKENS = (
    *(b"|", b"|f", b"|:", b":", b"'", b"1", b"-1", b"0.5", b":1", b":-2e3", b"1e39", b"a:b", b"a:1", b"nan"),
    *(b"18446744073709551616", b"\t", b"\r", b"\0", b"\xef\xbb\xbf"),
)
TESTED = Tested(
    some_vw,
    _BAD,
    (b"", b" \t", b"\r"),
    parse_vw_line,
    _TOKENS,
    variants={
        "products": Variant(Layout("vw", interact=("f,user", "f,f"), bits=20)),
        "texts": Variant(
            Layout("vw", text=("f", "title"), ngrams="words=1-2,chars=3", interact=("f,user",)), some_texts
        ),
    },
    fuzzed={"indices": Layout("vw", hash="vw", bits=18)},
)
