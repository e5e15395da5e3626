"""The messages of remedies.toml, which tell users what to do, and those that are tried elsewhere."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet


class Case(NamedTuple):
    """What each field means stands in remedies.toml."""

    remedy: str
    command: str
    files: dict[str, str | bytes]
    mended: dict[str, str | bytes]
    fill: Mapping[str, str] = MappingProxyType({})
    then: str = ""
    before: tuple[str, ...] = ()
    python: bool = True


def svm(n: int = 200, form: str = "{y} {a}:1 {b}:1 5:{v}", seed: int = 1) -> str:
    """Rows of a label and three features, two of them informative."""
    chance = np.random.default_rng(seed)
    rows = [(int(chance.random() < 0.5), chance.random()) for _ in range(n)]
    cells = (
        {
            "y": y,
            "s": 2 * y - 1,
            "o": 0.25 + 0.25 * y,
            "a": 1 + y,
            "b": 3 + k % 2,
            "v": f"{v:.2f}",
            "k": k,
            "z": int(chance.random() < 0.5),
            "c": 2 + y,
            "h": 14102100 + k % 24,
            "d": f"{1 + k % 28:02}",
            "zip": 10000 + 317 * (k % 90),
        }
        for k, (y, v) in enumerate(rows)
    )
    return "".join(form.format(**one) + "\n" for one in cells)


def csv(head: str, form: str, n: int = 200) -> str:
    return f"{head}\n{svm(n, form)}"


def as_arrow(write: Any) -> bytes:
    """A table of Arrow as the bytes of a file."""
    table, out = pa.table({"label": [0, 1] * 100, "a": ["s1", "s2"] * 100}), pa.BufferOutputStream()
    if write is pa.ipc.new_file:
        with write(out, table.schema) as writer:
            writer.write_table(table)
    else:
        write(table, out)
    return bytes(out.getvalue())


ROWS, NUMBERS = svm(), csv("label,a,v", "{y},{a},{v}")
LINES = ROWS.splitlines(keepends=True)
MADE: dict[str, str | bytes] = {
    "ROWS": ROWS,
    "SORTED": "".join(sorted(LINES)),
    "POSITIVE": "".join(row for row in LINES if row[0] == "1"),
    "RARE": "".join(f"{int(k % 40 == 3)} {1 + k % 3}:1\n" for k in range(200)),
    "NUMBERS": NUMBERS,
    "TWICE": NUMBERS + NUMBERS,
    "CHANGED": svm(240, "{y} {a}:1") + svm(160, "{z} {a}:1"),
    "WEIGHTLESS": csv("label,x,w", "{y},{a},1", 20) + svm(20, "{y},{a},0"),
    "LONG": "".join(
        f'{{"label": {k % 2}, "a": "s{1 + k % 2}", "pad": "{"x" * 100_000}"}}\n' for k in range(12)
    ),
    "PARQUET": as_arrow(pyarrow.parquet.write_table),
    "ARROW": as_arrow(pa.ipc.new_file),
}


def content(made: str | dict[str, Any]) -> str | bytes:
    if isinstance(made, str):
        return MADE[made]
    head = f"{made['head']}\n" if "head" in made else str(MADE.get(made.get("of", ""), ""))
    rows = {name: made[name] for name in ("n", "form", "seed") if name in made}
    text = f"{head}{svm(**rows) if rows else ''}{made.get('end', '')}"
    return text.encode(made["encoding"]) if "encoding" in made else text


def case_of(said: dict[str, Any]) -> Case:
    usual = (
        {"d.csv": "NUMBERS"} if "d.csv" in f"{said['command']} {said.get('before')}" else {"d.svm": "ROWS"}
    )
    for key, given in (("files", usual), ("mended", {})):
        said[key] = {name: content(made) for name, made in said.get(key, given).items()}
    return Case(**said)


CASES = [case_of(said) for said in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["case"]]
NAMES = [
    *("user id", "a,b", "it's", 'q"q', "$x", "-x", "--x", "7", "[z]", "a\\b", "x.", "or"),
    *("to,x", "is it", "x\ty", "\x7f"),
]
"""Names of columns that a shell, Python or a list of columns might take for something else"""
STOPPED = "needs a run that was stopped"
ODD_FILES = "a file that another program wrote: tests/cli/test_odd_files.py"
OVERFLOWS = "a run that overflows, which plain Python warns of: tests/learning/test_divergence.py"
JUDGED = "asks the user to look at the data"
ELSEWHERE = {
    "{}: its lines have no header: add --no-header": "a topic: tests/test_law_of_topics.py",
    "; curl -d removes line ends: use --data-binary": "an option of curl: tests/serving/test_bodies.py",
    ", which {} defines: use --module {}": "tests/test_origins.py",
    "weights of features that were never seen: use another --rule": "tests/exporting/test_c.py",
    "a server that learns needs a log: use --learn and --log DIR together": "tests/serving/test_server.py",
    "the log of a server, not a model: thresher log {} shows what it holds": "tests/serving/test_service.py",
    "{} is for a server that learns: use --learn and --log DIR": "tests/serving/test_server.py",
    "{} text: convert it with iconv -f {} -t UTF-8": ODD_FILES,
    "jq -c 'if type == \"array\" then .[] else . end'": ODD_FILES,
    " and use --format jsonl": ODD_FILES,
    "use --no-quoting if quotes are part of cells, or write a quote inside a cell as two, in quotes, and rows"
    " with line breaks in cells as JSON lines or Parquet": "tests/data/test_delimited.py",
    "{}, so nothing was learned: check the importances": JUDGED,
    "{} must have an object on each line: jq -c '.[]' makes lines of a list,"
    " jq -c . of longer objects": "a body of a request: tests/serving/test_bodies.py",
    "; for a stream, name the file that reads it: --module FILE ({})": "a module: tests/data/test_remote.py",
    "remove it": "a column without a name, which options cannot name",
    "leave out the features with such values": "changes the data",
    ", or use --dtype float64": OVERFLOWS,
    "labels were given beside the table in training: {},"
    " and leave --label out": "a model of Python: tests/learning/test_first_hour.py",
    "add it, with 1 in each row,"
    " or use --weight '' to evaluate": "an option with an empty value: tests/cli/test_importance.py",
    "{}, from which --resume continues; this run starts anew and replaces it": STOPPED,
    "the checkpoint {}: leave --continue out": STOPPED,
    "give the one that was stopped again, with --resume": STOPPED,
    "All weights are zero, so every prediction is the same."
    " Train with a smaller penalty (--l1), or on more data.": "a sentence of the page that report writes",
}
"""Remedies that are not executed here, and why"""
