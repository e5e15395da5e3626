"""Compiling ahead of time what later runs need."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from thresher import parts
from thresher.data import open_source
from thresher.data.formats.listing import EXAMPLES, FORMATS
from thresher.data.layout import DELIMITERS, Layout
from thresher.data.text.sorting import FEW
from thresher.learning.model.model import Model
from thresher.learning.model.preprocessing import Preprocessor
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.scaling import alone
from thresher.learning.training.ahead import compile_now
from thresher.options.layouts import of_options
from thresher.options.option import Options, UsageError


def prepare(options: Options) -> Mapping[str, Callable[[], None]]:
    """What to compile, in words, and what compiles it. `UsageError`."""
    outputs, lenient = options["outputs"], options["losses"] == "all"
    models = dict[str, Model]()
    rules, losses = (
        [parts.part_name(parts.lookup(kind, name)) for name in _names(options[plural], parts.names(kind))]
        for kind, plural in (("rule", "rules"), ("loss", "losses"))
    )
    for rule in rules:
        for loss in losses:
            try:
                with of_options():
                    models[f"{rule} with {loss} loss"] = Model(Recipe(rule, loss, outputs=outputs))
            except UsageError:  # the loss does not fit the outputs
                if not lenient:
                    raise
    if not models:
        raise UsageError(f"no loss supports the outputs {outputs}")
    formats = _names(options["formats"], FORMATS)
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"no format is called '{name}'; known: all, {', '.join(FORMATS)}")
    reading = {f"reading {one}": partial(_read, one) for one in formats}
    return reading | {words: partial(compile_now, one) for words, one in models.items()}


def _names(text: str, every: Iterable[str]) -> list[str]:
    return [*every] if text == "all" else [name.strip() for name in text.split(",")]


def _read(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sample.{name}"
        for write in _samples(name):
            write(path)
            source, intake = open_source(path, layout=Layout(gaps=True)), Preprocessor(centre=True)
            source.keep_hash = True
            intake.bind(source.layout)
            for chunk in source.chunks():
                intake.transform(alone(chunk, source.layout), again=False)
                chunk.take(chunk.weights > 0)  # as hold-outs do


def _samples(name: str) -> Iterator[Callable[[Path], Any]]:
    """Functions that write samples to cover all code that reads the format; wide tables have their own."""
    if name not in EXAMPLES:
        yield lambda path: _write_table(name, path)
        return
    yield lambda path: path.write_text(EXAMPLES[name], encoding="ascii")
    if name in DELIMITERS:
        cells: tuple[list[str], ...] = ["label", *(f"c{k}" for k in range(FEW))], ["1"] * (FEW + 1), []
        wide = "\n".join(DELIMITERS[name].join(row) for row in cells)
        yield lambda path: path.write_text(wide, encoding="ascii")


def _write_table(name: str, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table({"label": [1, -1], "size": [0.5, 1.0], "colour": ["red", "blue"]})
    if name == "parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.feather.write_feather(table, path, compression="uncompressed")
