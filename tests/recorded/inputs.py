"""Files and Python objects that recorded calls read; always the same bytes."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

SAMPLES = Path(__file__).parents[2] / "examples" / "data"
MODELS = Path(__file__).parent / "models"
"""written by an earlier version"""
CITIES = ("Bonn", "Rome", "Ulm", "Oslo")
WORDS = ("cheap", "new", "red", "old", "large", "blue", "broken", "rare", "soft", "long")


class Dice:
    """Pseudo-random numbers that no library's release changes."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, n: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % n


@cache
def shop(n: int, seed: int) -> list[dict[str, Any]]:
    dice, rows = Dice(seed), list[dict[str, Any]]()
    for k in range(n):
        age, city, clicks = 18 + dice.below(60), CITIES[dice.below(4)], dice.below(40)
        words = " ".join(WORDS[dice.below(10)] for _ in range(3 + dice.below(4)))
        score = (age < 40) + (city != "Ulm") + ("cheap" in words) + dice.below(2)
        rows.append(
            {
                "label": int(score > 2),
                "age": age,
                "city": city,
                "clicks": clicks,
                "words": words,
                "user": f"u{k // 3}",
                "day": 1 + k * 28 // n,
                "w": 1 + dice.below(3),
                "price": round(10 + 0.5 * age + 3 * (city == "Rome") + dice.below(100) / 50, 2),
                "kind": ("ham", "spam", "eggs")[(score + (age > 60)) % 3],
            }
        )
    return rows


def table(n: int = 200, seed: int = 1, delimiter: str = ",", *columns: str) -> str:
    rows = [{name: row[name] for name in columns or row} for row in shop(n, seed)]
    lines = [rows[0].keys(), *(map(str, row.values()) for row in rows)]
    return "".join(delimiter.join(line) + "\n" for line in lines)


def svmlight(n: int = 200, seed: int = 1, form: str = "{label} {a}:1 {b}:0.5 9:{v}") -> str:
    return "".join(
        form.format(
            **row, a=1 + CITIES.index(row["city"]), b=5 + row["clicks"] % 4, v=row["age"] / 64, k=k, q=k // 3
        )
        + "\n"
        for k, row in enumerate(shop(n, seed))
    )


def jsonl(n: int = 200, seed: int = 1) -> str:
    names = ("label", "age", "city", "clicks", "words", "w")
    return "".join(json.dumps({name: row[name] for name in names}) + "\n" for row in shop(n, seed))


def arrow_table(n: int = 200, seed: int = 1) -> pa.Table:
    return pa.Table.from_pylist([{**row, "words": row["words"]} for row in shop(n, seed)])


def parquet(n: int = 200, seed: int = 1) -> bytes:
    out = pa.BufferOutputStream()
    pa.parquet.write_table(arrow_table(n, seed), out, row_group_size=64)
    return bytes(out.getvalue())


def arrow(stream: bool) -> bytes:
    out, rows = pa.BufferOutputStream(), arrow_table()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(out.getvalue())


def zstd(text: str) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(text.encode())
    return bytes(out.getvalue())


def stories(first: int, last: int) -> str:
    rows = gzip.decompress((SAMPLES / "rcv1_train2000.dat.gz").read_bytes()).decode().splitlines()
    return "".join(" ".join(row.split()[:9]) + "\n" for row in rows[first:last])


def with_bad(text: str, *bad: str) -> str:
    """The text with bad lines after its tenth, twentieth ... line."""
    lines = text.splitlines(keepends=True)
    for k, line in enumerate(bad):
        lines.insert(10 * (k + 1), line + "\n")
    return "".join(lines)


def two_numbers() -> str:
    return "a,b,age,city\n" + "".join(
        f"{row['price']},{row['clicks']},{row['age']},{row['city']}\n" for row in shop(120, 1)
    )


def lists() -> str:
    ages = [row["age"] for row in shop(120, 1)]
    labels = [[str(one) for one in range(1, 4) if (age + one) % 3] for age in ages]
    return "".join(f"{','.join(some)} {age % 7}:1 9:0.5\n" for some, age in zip(labels, ages, strict=True))


VW = "{sign} {w} t{k}|u city_{city} age:{v} |n clicks_{b} x{a}"
FILES: dict[str, Callable[[], str | bytes]] = {
    "d.svm": svmlight,
    "e.svm": lambda: svmlight(80, 2),
    "f.svm": lambda: svmlight(80, 3),
    "long.svm": lambda: svmlight(1200, 4),
    "qid.svm": lambda: svmlight(form="{label} qid:{q} {a}:1 {b}:0.5 9:{v}"),
    "weighted.svm": lambda: svmlight(form="{label}:{w} {a}:1 {b}:0.5"),
    "numbers.svm": lambda: svmlight(form="{price} {a}:1 {b}:0.5 9:{v}"),
    "many.svm": lambda: svmlight(form="{day} {a}:1 {b}:0.5 9:{v}"),
    "words.svm": lambda: svmlight(form="{kind} {a}:1 {b}:0.5 9:{v}"),
    "lists.svm": lists,
    "stories.svm": lambda: stories(0, 300),
    "later.svm": lambda: stories(300, 400),
    "sorted.svm": lambda: "".join(sorted(svmlight().splitlines(keepends=True))),
    "d.csv": table,
    "e.csv": lambda: table(80, 2),
    "f.csv": lambda: table(80, 3),
    "plain.csv": lambda: table(200, 1, ",", "label", "age", "city"),
    "plain2.csv": lambda: table(80, 2, ",", "label", "age", "city"),
    "noheader.csv": lambda: table(200, 1, ",", "label", "age", "city").partition("\n")[2],
    "semicolon.csv": lambda: table(200, 1, ";", "label", "age", "city"),
    "na.csv": lambda: table(200, 1, ",", "label", "age", "city").replace(",33,", ",NA,"),
    "quoted.csv": lambda: (
        "label,age,note\n"
        + "".join(f'{row["label"]},{row["age"]},"in {row["city"]}, new"\n' for row in shop(120, 1))
    ),
    "d.tsv": lambda: table(200, 1, "\t", "label", "age", "city", "clicks"),
    "prices.csv": lambda: table(200, 1, ",", "price", "age", "city", "clicks"),
    "prices2.csv": lambda: table(80, 2, ",", "price", "age", "city", "clicks"),
    "kinds.csv": lambda: table(200, 1, ",", "kind", "age", "city", "words"),
    "kinds2.csv": lambda: table(80, 2, ",", "kind", "age", "city", "words"),
    "two.csv": two_numbers,
    "d.jsonl": jsonl,
    "e.jsonl": lambda: jsonl(80, 2),
    "d.parquet": parquet,
    "e.parquet": lambda: parquet(80, 2),
    "d.arrow": lambda: arrow(False),
    "d.arrows": lambda: arrow(True),
    "d.vw": lambda: vw(200, 1),
    "e.vw": lambda: vw(80, 2),
    "d.svm.gz": lambda: gzip.compress(svmlight().encode(), mtime=0),
    "d.svm.bz2": lambda: bz2.compress(svmlight().encode()),
    "d.svm.xz": lambda: lzma.compress(svmlight().encode()),
    "d.svm.zst": lambda: zstd(svmlight()),
    "bad.svm": lambda: with_bad(svmlight(), "1 x:1", "maybe 1:1", "1 3:1 2:nan", "1 1:1 1:2", "1 2:1e99"),
    "bad.csv": lambda: with_bad(
        table(200, 1, ",", "label", "age", "city"), "1,2", "x,3,Ulm", "1,many,Ulm", "1,2,Ulm,4", ",3,Ulm"
    ),
    "bad.jsonl": lambda: with_bad(
        jsonl(), "{", '{"label": "x"}', "[1]", '{"age": 3}', '{"label": 1, "age": {}}'
    ),
    "bad.vw": lambda: with_bad(vw(200, 1), "x |n a", "1 |n a:b", "no bar", "1 1 1 1 |n a"),
    "empty.svm": lambda: "",
    "empty.csv": lambda: "",
    "header.csv": lambda: "label,age,city\n",
    "blank.svm": lambda: "\n\n",
    "binary.svm": lambda: bytes(range(256)) * 4,
    "binary.csv": lambda: bytes(range(256)) * 4,
    "broken.svm.gz": lambda: gzip.compress(svmlight().encode(), mtime=0)[:300],
    "broken.parquet": lambda: parquet()[:200],
    "latin.csv": lambda: table(60, 1, ",", "label", "city").replace("Bonn", "Köln").encode("latin-1"),
    "one.svm": lambda: "1 1:1\n",
    "unlabelled.svm": lambda: svmlight(60, 2, "{a}:1 {b}:0.5 9:{v}"),
    "huge.svm": lambda: svmlight(120, 1, "{label} {a}:1e19 9:{v}e19"),
    "weightless.svm": lambda: svmlight(120, 1, "{label} {k}:1"),
}


def vw(n: int, seed: int) -> str:
    sign = VW.replace("{sign}", "{label}")
    return "".join(
        line.replace("0 ", "-1 ", 1) if line.startswith("0 ") else line
        for line in svmlight(n, seed, sign).splitlines(keepends=True)
    )


@cache
def content(name: str) -> bytes:
    """A file by name: one of `FILES`, a sample of examples/data, or a model of `MODELS`."""
    made = FILES.get(name)
    if made is not None:
        text = made()
        return text if isinstance(text, bytes) else text.encode()
    found = next((folder / name for folder in (SAMPLES, MODELS) if (folder / name).is_file()), None)
    if found is None:
        raise SystemExit(f"no input is called {name}")
    return found.read_bytes()


def files_of(name: str) -> Iterator[tuple[str, bytes]]:
    """The files of an input, which may be a folder of `MODELS`."""
    if (MODELS / name).is_dir():
        for path in sorted((MODELS / name).rglob("*")):
            if path.is_file():
                yield str(path.relative_to(MODELS)), path.read_bytes()
    else:
        yield name, content(name)


def namespace() -> dict[str, Any]:
    """What Python calls find beside their files: `frame`, `X`, `y` and others."""
    import pandas as pd
    import scipy.sparse

    import thresher
    import thresher.sklearn
    from tests.recorded import objects

    frame, later = (pd.DataFrame(shop(n, seed)) for n, seed in ((200, 1), (80, 2)))
    X = frame[["age", "clicks", "day"]].to_numpy(np.float64) / 32
    return {
        "np": np,
        "pd": pd,
        "pa": pa,
        "thresher": thresher,
        "sk": thresher.sklearn,
        "frame": frame,
        "later": later,
        "X": X,
        "S": scipy.sparse.csr_matrix(np.where(X > 1, X, 0)),
        "y": frame["label"].to_numpy(),
        "price": frame["price"].to_numpy(),
        "kind": frame["kind"].to_numpy(),
        "rows": [{"age": row["age"] / 32, f"city={row['city']}": 1.0} for row in shop(200, 1)],
        "texts": [str(row["words"]) for row in shop(200, 1)],
        "public": objects.public,
        "each": objects.each,
        "interrupted_after": objects.interrupted_after,
        "interrupted_when_printing": objects.interrupted_when_printing,
    }
