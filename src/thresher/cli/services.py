"""Commands for servers and for this machine: ``serve``; ``warm``, ``cache``; ``rules``, ..."""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thresher.cli.parser import MODEL, Argument, command
from thresher.options.judging import CacheCommand, WarmCommand
from thresher.options.model import ModulesOption
from thresher.options.option import Options, UsageError
from thresher.options.serving import ServeCommand

if TYPE_CHECKING:
    pass

_CODE = re.compile(r"\S+-[0-9a-f]{32}\.nbc|\S+(\.[0-9a-f]{8}){2}\.partial|\S+\.py\d+\.(nbi|\d+\.nbc)")
"""File names that thresher creates: THRESHER_CACHE_DIR may be a folder with other files too."""


@command(ServeCommand, MODEL)
def serve(model: str, options: Options) -> None:
    """Answer requests over HTTP with a model, which may learn from them.

    POST /predict takes rows in any format that the model can read; POST /learn takes labelled ones. GET
    /openapi.json lists all paths. SIGTERM and Ctrl-C answer what has been asked, and end.
    """
    from thresher.cli.console import tell

    if Path(model).exists():
        tell(f"starting to serve {model}")  # what is imported and compiled takes seconds
    try:
        from thresher.serving import server
    except ModuleNotFoundError as error:
        if str(error.name).startswith("thresher"):
            raise
        raise UsageError(
            f"thresher serve needs {error.name}, which is not installed: pip install 'thresher[serve]'"
        ) from error
    server.serve(Path(model), options)


@command(WarmCommand)
def warm(options: Options) -> None:
    """Compile ahead of time what training and predicting need, so that your later runs need not wait.

    This covers runs with these rules, losses, formats and outputs. Code for --average, --batch, --store,
    --bins and --interact is compiled on first use.
    """
    for what, compile_it in _to_compile(options).items():
        started = time.perf_counter()
        compile_it()
        click.echo(f"{what}: {time.perf_counter() - started:.1f} s")


def _to_compile(options: Options) -> Mapping[str, Callable[[], None]]:
    """What to compile, in words, and what compiles it. `UsageError`."""
    from thresher import parts
    from thresher.data.formats.listing import FORMATS
    from thresher.learning.model.model import Model
    from thresher.learning.model.recipe import Recipe
    from thresher.learning.training.ahead import compile_now
    from thresher.options.layouts import of_options

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
    from thresher.data import open_source
    from thresher.data.layout import Layout
    from thresher.learning.model.preprocessing import Preprocessor

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sample.{name}"
        for write in _samples(name):
            write(path)
            source, intake = open_source(path, layout=Layout(gaps=True)), Preprocessor(centre=True)
            source.keep_hash = True
            intake.bind(source.layout)
            for chunk in source.chunks():
                intake.transform(chunk, again=False)
                chunk.take(chunk.weights > 0)  # as hold-outs do


def _samples(name: str) -> Iterator[Callable[[Path], Any]]:
    """Functions that write samples to cover all code that reads the format; wide tables have their own."""
    from thresher.data.formats.listing import EXAMPLES
    from thresher.data.layout import DELIMITERS
    from thresher.data.text.sorting import FEW

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


@command(CacheCommand)
def cache(options: Options) -> None:
    """Show or remove the contents of the cache folder: parsed data and compiled code."""
    from thresher.data.cache import cache_entries
    from thresher.engine.atomic import cache_folder

    kept = {name: cache_folder() / name for name in ("data", "code")}
    code = [path for path in kept["code"].rglob("*.*") if _CODE.fullmatch(path.name)]
    data = [*(entry.path for entry in cache_entries()), *kept["data"].glob("contents.json")]
    for (name, folder), files in zip(kept.items(), (data, code), strict=True):
        size = sum(_size(path) for path in files)
        done = ""
        if options["clear"] and folder.is_symlink():
            done = "left as it is, since it is a link, "
        elif options["clear"]:
            for path in files:
                path.unlink(missing_ok=True)
            for path in sorted({folder, *(path.parent for path in files)}, reverse=True):
                with contextlib.suppress(OSError):  # not empty
                    path.rmdir()
            done = "removed "
        click.echo(f"{done}{name}: {len(files):,} files, {size / 1e6:,.1f} MB in {folder}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # removed by another process
        return 0


def _list(kind: str, plural: str) -> None:
    """The command that lists all parts of a kind, or describes one of them."""

    def listed(name: str | None, options: Options) -> None:
        from thresher import parts

        found = [parts.describe(kind, one).summary for one in parts.names(kind)] if name is None else None
        click.echo("\n".join(found or [parts.describe(kind, str(name)).page]))

    listed.__name__ = plural
    listed.__doc__ = f"List the {plural}: parameters with defaults, what each does, its reference."
    command(ModulesOption, Argument("NAME", "Show everything about this one.", required=False))(listed)


for _kind, _plural in (("rule", "rules"), ("loss", "losses"), ("rate", "rates")):
    _list(_kind, _plural)
