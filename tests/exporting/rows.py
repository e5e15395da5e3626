"""Rows in five layouts, with everything odd that a cell can hold, and a model for each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import thresher
from tests.plain import not_compiled
from thresher.data.text.numbers import NUMBER

NUMBERS = tuple(
    (
        b"0|1|-2.5|0.1|1e3|1.5E-2|.5|7.|+4| 8 |000123|-0|1e-320|123456789012345678901234567890|"
        b"0.00000000000000000000000000000000000000000000000001e40|16777217|"
        b"1.00000005960464477539062500000000001|1.000000059604644775390625|9007199254740993|1e-46|"
        b"70064923216240853546186479164495806564013097093825788587853e-104|3.4028235e38|65536.0078125|"
        b"1700000000.25|1.1754943e-38|-1.4e-45|2e-45|123456.789|1e18|8388608.5|2.5e10"
    ).split(b"|")
)
MISSING = (b"", b" ", b"\t ", b"  ")
WRONG = tuple((b"nan|inf|-inf|1e39|0x10|1e|--1|1.2.3|1 2|a|1,5|infinity|.").split(b"|"))
TRUTHS = (b"true", b"FALSE", b" True ", b"false")
WORDS = tuple(
    (
        b'red|blue|green|Red| red|red |o\'neil|say "hi"|a\\b|*/|</script>|\xff\xfe|\xc3(|'
        b"gr\xc3\xb6\xc3\x9fer|\xe6\x97\xa5\xe6\x9c\xac|aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|"
        b"sixteen letters.|x|${x}|`id`|%s%n|\\n|??/|--|; DROP TABLE t|\xed\xa0\x80|\x01\x7f"
    ).split(b"|")
)
VALUES = tuple(
    (
        b"1|1.0|01|1e0| 1 |+1|-1.50|100000000000000000000000|0.0000001|1.20e-9|1152921504606846976.0|"
        b"1.152921504606847e18|TRUE|false| True|NaN|-INF|inf|2024-05-01|2024-05-01T00:00:00|"
        b"2024-05-01 12:30:00.500|2024-05-01T12:30+02:00|12:30:00|2024-02-29 23:59:59Z|"
        b"2024-12-31T23:30:00-01:30|0000-01-01 00:00+01|2024-05-01 1:00|7.0.0|12:30:00.250|2024-13-01|"
        b"2024-05-01 12:30 utc|1e400|11111111111111111111111111111111111111111|0.1e1000000|-|x1"
    ).split(b"|")
)
TEXTS = (
    *(b"the cat sat on the mat", "Größe ÄÖÜ straße ŸÈ İstanbul".encode(), b"a bc  def\tghi_7", b"x", b"!?.,"),
    *(
        "日本語 テキスト 한국어 𝒜𝒷𝒸 ǅ".encode(),
        *(b"bad \xff\xfe bytes \xc3 here", b"the the the THE", b"1 22 333"),
    ),
    *(b"can't won't", b"\xf0\x9f\x98\x80 smile \xed\xa0\x80", b"word " * 60, b"\xe2\x82", b"CaSe MaTtErS"),
)


class ExportTrial(NamedTuple):
    name: str
    file: str
    header: bytes
    row: Callable[[np.random.Generator, float], tuple[bytes, float]]
    """a row without its label, of which a share of the numbers is odd, and what its label depends on"""
    line: Callable[[str, bytes], bytes]
    options: dict[str, Any]
    label: Callable[[float], str]
    ensemble: bool = False


def pick(chance: np.random.Generator, *pools: tuple[bytes, ...]) -> bytes:
    pool = pools[int(chance.integers(len(pools)))]
    return pool[int(chance.integers(len(pool)))]


def number(chance: np.random.Generator, odd: float) -> bytes:
    if chance.random() > odd:
        return f"{chance.normal(3, 2):.{chance.integers(1, 12)}g}".encode()
    if chance.random() < 0.02:
        return pick(chance, WRONG)
    if chance.random() < 0.2:
        half = np.float32(chance.normal()) + np.float64(np.spacing(np.float32(1))) / 2
        return f"{half:.{chance.integers(8, 40)}f}".encode()
    return pick(chance, NUMBERS, MISSING, TRUTHS)


def worth(cell: bytes) -> float:
    """What a label depends on: the number in a cell, if it is an ordinary one."""
    return float(cell) - 3 if NUMBER.fullmatch(cell) and abs(float(cell)) < 20 else 0.0


def quoted(cell: bytes, chance: np.random.Generator) -> bytes:
    if b"," in cell or cell.startswith(b'"') or chance.random() < 0.1:
        return b'"' + cell.replace(b'"', b'""') + b'"'
    return cell


def mixed(chance: np.random.Generator, odd: float) -> tuple[bytes, float]:
    word = pick(chance, WORDS) if chance.random() < 0.3 else (b"red", b"blue", b"NA")[chance.integers(3)]
    cells = [number(chance, odd), word, pick(chance, VALUES), number(chance, odd), number(chance, odd / 4)]
    if chance.random() < 0.002:
        cells[1] += b"\0"
    signal = float(word == b"red") + worth(cells[0]) / 2 + chance.normal() / 2
    return b",".join(quoted(one, chance) for one in cells), signal


def numeric(chance: np.random.Generator, odd: float) -> tuple[bytes, float]:
    cells = [number(chance, odd) for _ in range(4)]
    signal = worth(cells[0]) / 2 - worth(cells[2]) / 4 + chance.normal() / 4
    return b"\t".join(one.replace(b"\t", b" ") for one in cells), signal


def texts(chance: np.random.Generator, odd: float) -> tuple[bytes, float]:
    text = b" ".join(pick(chance, TEXTS) for _ in range(chance.integers(1, 4)))
    return quoted(text, chance) + b"," + number(chance, odd / 2).replace(b",", b"."), float(b"the" in text)


def ids(chance: np.random.Generator, odd: float) -> tuple[bytes, float]:
    count = int(chance.integers(0, 12))
    found = [
        b"%d:%s" % (chance.integers(40) ** 3, number(chance, odd / 2).strip() or b"0") for _ in range(count)
    ]
    return b" ".join(found), float(count) - 6


def clicks(chance: np.random.Generator, odd: float) -> tuple[bytes, float]:
    cells = [number(chance, odd / 2).replace(b"\t", b" ") for _ in range(3)]
    cells += [b"%08x" % int(chance.integers(3000) ** 2) for _ in range(6)]
    return b"\t".join(cells), chance.normal() + float(cells[4] < b"00400000")


def before(delimiter: str) -> Callable[[str, bytes], bytes]:
    return lambda label, row: label.encode() + delimiter.encode() + row


TRIALS = (
    ExportTrial(
        *("mixed", "d.csv", b'label,x,colour,value,count,"od""d, name"', mixed, before(",")),
        {
            "categorical": "colour,value",
            "bins": "count",
            "missing": "NA",
            "numeric": 'x,"od""d, name"',
            "interact": ["colour,value", 'x,"od""d, name"', "colour,x,x", "co*,co*"],
        },
        lambda signal: "yes" if signal > 0.5 else "no",
    ),
    ExportTrial(
        *("numeric", "d.tsv", b"", numeric, before("\t")),
        {"header": False, "label": "1", "numeric": "2-5", "loss": "softmax", "dtype": "float64"},
        lambda signal: str(int(np.clip(np.floor(signal), -1, 1)) + 2),
    ),
    ExportTrial(
        *("texts", "d.csv", b"label,body,x", texts, before(",")),
        {
            "text": "body",
            "numeric": "x",
            "loss": "modified-huber",
            "ngrams": "words=1-2,chars=2-3,shortest=1,scale=log,norm",
        },
        lambda signal: str(int(signal > 0)),
    ),
    ExportTrial(
        *("ids", "d.svm", b"", ids, before(" ")),
        {"store": "hashed:9,signed", "scale": "standard", "loss": "poisson", "rule": "adagrad-fobos"},
        lambda signal: str(int(max(signal, 0))),
    ),
    ExportTrial(
        *("clicks", "d.tsv", b"", clicks, before("\t")),
        {"header": False, "label": "1", "numeric": "2-4", "rule": "ftrl", "bits": 14, "scale": "max-abs"},
        lambda signal: str(int(signal > 0)),
        ensemble=True,
    ),
)


def written(trial: ExportTrial, path: Path, rows: int, seed: int, odd: float = 0.2) -> Path:
    """A file of `rows` odd rows."""
    chance = np.random.default_rng(seed)
    made = (trial.row(chance, odd) for _ in range(rows))
    lines = [trial.line(trial.label(signal), row) for row, signal in made]
    path.write_bytes(b"\n".join([trial.header] * bool(trial.header) + lines) + b"\n")
    return path


def trained(trial: ExportTrial, folder: Path, rows: int = 300) -> Any:
    data = written(trial, folder / f"train_{trial.file}", rows, 1, 0.01)
    train: Any = thresher.ensemble if trial.ensemble else thresher.train
    more = {"models": 3} if trial.ensemble else {}
    with not_compiled():
        return train(data, on_error="skip", passes=1, **trial.options, **more)
