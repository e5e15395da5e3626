"""How Vowpal Wabbit parses lines of text: ``vw_features.py compare FILE...`` or ``vw_features.py record``.

`compare` parses every line of the files with thresher and with the package vowpalwabbit, and prints how many
features differ in index and by how much their values differ. `record` saves Vowpal Wabbit's features of the
lines below, for tests that run without the package.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from vowpalwabbit import Workspace

from thresher.data import concat, open_source
from thresher.data.layout import Layout

RECORD = Path(__file__).parents[1] / "tests/data/vw_features.json"
UNLABELLED = float(np.finfo(np.float32).max)
BITS = (18, 24)
LINES = [
    "1 1.0 |MetricFeatures:3.28 height:1.5 length:2.0 |Says black with stripes |OtherFeatures Legs:4.0 Has",
    "1 1.0 zebra|MetricFeatures:3.28 height:1.5 length:2.0 |Says black with white stripes",
    "-1 2.5 0 'tag | a b c",
    "|f unlabelled 12",
    "tag|f touches the bar",
    "'quoted |f a",
    "0.5 |f 13:3.9656971e-02 24:3.4781646e-02 69:4.6296168e-02",
    "1 | 13:3.9656971e-02 0 007:2 18446744073709551615 262144 262145",
    "1 |f 13 |g 13 |f 13 |12 13 |0 13",
    "1 | a a b |f x:2 x:-0.5",
    "1 |f :3 :4 a:1 :5 |g :1 | :2",
    "1 |f:2 city:paris city:b|c city:a:b :text x:0.25",
    "1 | price:.53 sqft:.32 age:.87 1924 rank:1e3 low:-2.5E-1",
    "1 |f a|g b|| c|h:0.5 d",
    "1 |f été:1.5 naïve x.y-z_w 1.5 -7 3rd",
    "1 |f \x0112:2 \x02word\x03",
    "1 |abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz:0.5 abc ab a",
]


def workspace(bits: int, seed: int) -> Workspace:
    """Return a parser of lines."""
    return Workspace(f"--quiet --noconstant -b {bits} --hash_seed {seed}")


def features(vw: Workspace, bits: int, line: str) -> tuple[Any, list[tuple[int, float]]]:
    """Return the label and weight of a line, and its features with their indices in the weight vector."""
    example = vw.parse(line)
    label = example.get_simplelabel_label()
    head = (None if label == UNLABELLED else label, example.get_simplelabel_weight())
    found = [(index % 2**bits, value) for index, value in example.iter_features()]
    vw.finish_example(example)
    return head, found


def record() -> None:
    """Save the features that the tests compare with."""
    rows = []
    for seed in (0, 5):
        spaces = {bits: workspace(bits, seed) for bits in BITS}
        for line in LINES:
            (label, weight), _ = features(spaces[BITS[0]], BITS[0], line)
            found = {f"features{bits}": features(vw, bits, line)[1] for bits, vw in spaces.items()}
            rows.append({"line": line, "seed": seed, "label": label, "weight": weight, **found})
    text = ",\n".join(json.dumps(row) for row in rows)
    RECORD.write_text(f"[\n{text}\n]\n", encoding="utf-8")


def compare(path: Path, bits: int = 24) -> str:
    """Compare both parsers on a file; return a line of text."""
    layout = Layout("vw", hash="vw", bits=bits)
    ours = concat(list(open_source(path, layout=layout, domain="open").chunks()))
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    vw, keys, worst, nnz = workspace(bits, 0), 0, 0.0, 0
    lines = [line for line in text.decode().split("\n") if line]
    for i, line in enumerate(lines):
        (label, weight), found = features(vw, bits, line)
        wanted: dict[int, float] = {}
        for key, value in found:
            wanted[key] = wanted.get(key, 0.0) + value
        span = slice(int(ours.indptr[i]), int(ours.indptr[i + 1]))
        have = dict(zip(ours.keys[span].tolist(), ours.values[span].tolist(), strict=True))
        keys += len(have.keys() ^ wanted.keys()) + (
            (label or 0.0, weight) != (ours.labels[i], ours.weights[i])
        )
        worst = max([worst, *(abs(have[k] / v - 1) for k, v in wanted.items() if k in have)])
        nnz += len(wanted)
    return f"{path.name}: {len(lines)} rows, {nnz} features, {keys} differ, values by at most {worst:.1e}"


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["record"]:
        record()
    elif sys.argv[1:2] == ["compare"]:
        for name in sys.argv[2:]:
            print(compare(Path(name)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
