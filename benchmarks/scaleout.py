"""Files read by other processes: bytes sent, speed of a reader and of the learner, two workers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import clicklog, clicks, measure, report
from benchmarks.measure import Sample, Summary, timed
from benchmarks.passes import cached, one_pass
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.cluster.packing import Packed, Packer, unpack
from thresher.data import open_source
from thresher.data.chunk import StreamPosition
from thresher.data.sources.reader import Arenas, pieces_of, read_piece
from thresher.learning.model.model import Model

PARTS = 8
ONE, ALONE, TWO = "thresher, --threads 1", "thresher, --workers 1", "thresher, --workers 2"
WHOLE, RAY = (ONE, ALONE, TWO), "ray.init and ray.shutdown"
PACK, FED, CACHED = "read, parse and pack", "learn from packed blocks", "learn from the cache of a first pass"
START = "import ray; ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False); ray.shutdown()"


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    files = gzipped(setting)
    parquet = clicklog.table_twins(setting.clicks.train)["parquet"]
    found = [
        *_apart(setting, "RCV1-like, svmlight", [setting.rcv1like.train], None, 6),
        *_apart(setting, "clicks, gzip TSV", files, clicks.LAYOUT, 5),
        *_apart(setting, "clicks, Parquet", [parquet], clicks.LAYOUT, 5),
    ]
    return found + (_together(setting, files) if find_spec("ray") else [])


def gzipped(setting: Setting) -> list[Path]:
    """Split the clicks into several files, as in a log."""
    train = setting.clicks.train
    parts = [train.with_suffix(f".{k}.tsv.gz") for k in range(PARTS)]
    if not all(part.exists() for part in parts):
        with open(train, "rb") as lines:
            share = -(-sum(1 for _ in lines) // PARTS)
            lines.seek(0)
            for part in parts:
                with gzip.open(part, "wb", 6) as file:
                    file.writelines(islice(lines, share))
    return parts


def _apart(setting: Setting, name: str, data: Sequence[Path], layout: Any, goal: float) -> list[Goal]:
    """Measure the reader alone, and the learner alone: from packed blocks, and from a cache."""
    packed, model = list[Packed](), Model()
    source = open_source(data, layout=layout)
    with TemporaryDirectory(dir=setting.loads) as folder:
        later = cached(open_source(data, layout=layout), Path(folder), model)
        contenders: dict[str, Callable[[], Sample]] = {
            PACK: partial(timed, partial(_pack, source, packed)),
            FED: partial(timed, partial(_learn, packed, model)),
            CACHED: partial(timed, partial(one_pass, later, model)),
        }
        measured = setting.in_turn(contenders, warm=tuple(contenders))
    nnz, rows = sum(len(one.keys) for one in packed), sum(len(one.lengths) for one in packed)
    size, ratio = sum(one.nbytes for one in packed) / nnz, measured[CACHED].cpu / measured[FED].cpu
    units = {"ns/nnz": float(nnz), "rows/s": float(rows)}
    report.times(f"{name}: {size:.2f} bytes a non-zero", measured, CACHED, units)
    return [
        Goal(f"{name}, bytes a non-zero", f"<= {goal:g}", f"{size:.2f}", size <= goal),
        Goal(f"{name}, speed of learning from packed blocks x cache", ">= 0.8", f"{ratio:.2f}", ratio >= 0.8),
    ]


def _pack(source: Any, packed: list[Packed]) -> None:
    """Replace `packed` with the blocks of the source, copied as if they had been sent."""
    packer = Packer()
    packed.clear()
    for piece in pieces_of(source, StreamPosition(0, 0, 0)):
        for _, parsed in read_piece(source, piece):
            one = packer.pack(parsed)
            arrays: dict[str, Any] = {
                name: part for name, part in one._asdict().items() if isinstance(part, np.ndarray)
            }
            packed.append(one._replace(**{name: part.copy() for name, part in arrays.items()}))


def _learn(packed: Sequence[Packed], model: Model) -> None:
    arenas = Arenas(4)
    for one in packed:
        model.learn(unpack(one, arenas).chunk)


def _together(setting: Setting, files: Sequence[Path]) -> list[Goal]:
    """Measure whole processes, and how long Ray takes to start and stop."""
    with TemporaryDirectory(dir=setting.loads) as folder:
        models = {name: Path(folder) / name for name in WHOLE}
        contenders: dict[str, Callable[[], Sample]] = {
            name: partial(_train, files, path, *name.split()[1:]) for name, path in models.items()
        }
        contenders[RAY] = lambda: measure.python("-c", START)
        found = setting.in_turn(contenders, warm=WHOLE)
        bytes_of = {name: path.read_bytes() for name, path in models.items()}
    same = len(set(bytes_of.values())) == 1
    report.times(f"clicks in {PARTS} gzip files, whole processes", found, ONE, {})
    outputs = {name: json.loads(found[name].output) for name in WHOLE}
    learning = {name: float(one["seconds"]) for name, one in outputs.items()}
    _table_of_rates(found, outputs)
    ratio = learning[ONE] / learning[TWO]
    start = {name: found[name].wall - learning[name] for name in (ONE, TWO)}
    more = start[TWO] - start[ONE] - found[RAY].wall
    memory = found[TWO].peak - len(bytes_of[TWO]) / 2**20
    return [
        Goal("--workers 1 and 2, same model file", "yes", "yes" if same else "no", same),
        Goal("--workers 2, speed after start-up x --threads 1", ">= 1.6", f"{ratio:.2f}", ratio >= 1.6),
        Goal("--workers 2, start-up beyond that of Ray", "<= 1 s", f"{more:.2f} s", more <= 1),
        Goal(
            "--workers 2, memory of the learner beyond the model",
            "<= 500 MB",
            f"{memory:.0f} MB",
            memory <= 500,
        ),
    ]


def _table_of_rates(found: dict[str, Summary], outputs: dict[str, Any]) -> None:
    rows = [
        [name, f"{one['examples'] / float(one['seconds']):,.0f}", f"{found[name].peak:.0f}"]
        for name, one in outputs.items()
    ]
    report.table("rows a second after start-up, and memory of the learner", ["", "rows/s", "MB"], rows)


def _train(files: Sequence[Path], model: Path, *how: str) -> Sample:
    command = ("-m", "thresher", "train", *map(str, files), "--model", str(model), "--no-cache")
    return measure.python(*command, *clicks.COLUMNS, "--json", "--quiet", *how)
