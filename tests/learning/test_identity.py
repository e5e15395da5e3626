"""Every pass and every resumption sees the same data, identified by their content."""

import bz2
import gzip
import io
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.commands import own_cache
from tests.data.tables import WRITERS
from tests.data.test_tables import some_rows
from tests.learning.test_checkpoints import ROWS
from tests.stopping import once_learned, stopping
from thresher import Model, open_source
from thresher.data import DataError
from thresher.data.layout import Layout
from thresher.data.order import make_order
from thresher.engine.atomic import cache_folder
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.training.interruption import Interrupted
from thresher.learning.training.passes import Passes
from thresher.learning.training.trainer import Trainer, TrainingPlan

CHECKPOINT = Path("checkpoint")
CHANGED = "changed since it was first read"
TABLE = Layout(weight="w", numeric=("x", "y"), categorical=("id",))


class Form:
    """A way of storing 300 rows, some of which may be changed."""

    def __init__(self, name: str, pack: Callable[[bytes], bytes] | None = None) -> None:
        self.name, self._pack = name, pack
        self.layout = None if pack else TABLE
        self.block = 1 << 14 if pack else 1 << 12  # dozens of chunks of text, a few of a table

    def write(self, changed: int | None = None, rows: int = 280) -> None:
        """Write the rows, with another label for row `changed`. Sizes may differ."""
        if self._pack is not None:
            lines = ROWS[:rows]
            if changed is not None:
                lines = [*lines[:changed], flipped(lines[changed]), *lines[changed + 1 :]]
            Path(self.name).write_bytes(self._pack(b"".join(lines)))
            return
        table = some_rows(rows)
        if changed is not None:
            table[changed]["label"] *= -1
        WRITERS[self.name](table, Path(self.name))


def flipped(line: bytes) -> bytes:
    """The line with the other label, of the same length if possible."""
    label, blank, rest = line.partition(b" ")
    return (b"1" if label.startswith(b"-") else b"-1") + blank + rest


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, 1, mtime=0)


FORMS = {
    "text": Form("rows.svm", bytes),
    "gzip": Form("rows.svm.gz", zipped),
    "bz2": Form("rows.svm.bz2", lambda content: bz2.compress(content, 1)),
    "zstd": Form("rows.svm.zst", lambda content: pa.compress(content, "zstd", asbytes=True)),
    "csv": Form("data.csv"),
    "json lines": Form("data.jsonl"),
    "parquet": Form("data.parquet"),
    "arrow file": Form("data.arrow"),
    "arrow stream": Form("data.arrows"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    monkeypatch.chdir(tmp_path)


def trainer(
    form: Form,
    passes: int = 1,
    *,
    cached: bool = False,
    order: str = "as-is",
    every: int = 0,
    held: str | None = None,
    data: Any = None,
) -> Trainer:
    source = open_source(data or form.name, layout=form.layout, block_bytes=form.block, threads=2)
    ready = make_order(order, 0)
    opened = Passes(source, 1 if ready.held else passes, cached=cached)
    plan = TrainingPlan(passes, holdout_every=every, checkpoint=CHECKPOINT)
    given = None if held is None else open_source(held, block_bytes=1 << 14)
    return Trainer(Model(), opened.first, plan, reread=opened.later, order=ready, holdout=given)


def stopped_after(ready: Trainer, examples: int) -> None:
    with stopping(once_learned(examples)), pytest.raises(Interrupted):
        ready.run()


def resumed(ready: Trainer) -> Trainer:
    loaded = checkpoint.load(CHECKPOINT)
    ready.models = loaded[0]
    with model_file.naming_file(CHECKPOINT):
        ready.continue_from(loaded[1])
    return ready


def refused(ready: Callable[[], Trainer], reason: str = CHANGED) -> None:
    """Resuming is a one-line error, before anything is learned."""
    going = ready()
    before = checkpoint.load(CHECKPOINT)[0].examples
    with pytest.raises((DataError, ModelFileError), match=reason) as caught:
        resumed(going).run()
    assert "\n" not in str(caught.value)
    assert going.model.examples in (0, before)


def keep_size(name: str) -> None:
    """Ignore sizes, since a changed size alone would be enough to refuse a file."""
    header, tensors = model_file.read(CHECKPOINT)
    header["training"]["data"][1] = os.path.getsize(name)
    model_file.write(CHECKPOINT, header, tensors)


@pytest.mark.parametrize(
    ("name", "order"),
    [*((name, "as-is") for name in FORMS)]
    + [(name, order) for name in ("text", "gzip", "parquet") for order in ("buffer:20", "every")],
)
def test_a_checkpoint_refuses_data_that_have_changed(name: str, order: str) -> None:
    form = FORMS[name]
    form.write()
    stopped_after(trainer(form, order=order), 100)
    form.write(changed=5)
    keep_size(form.name)
    refused(lambda: trainer(form, order=order))
    form.write()
    keep_size(form.name)
    assert resumed(trainer(form, order=order)).run().figures["examples"] == 280


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("every", [0, 3])
def test_in_a_later_pass_all_of_the_data_must_be_the_same(form: Form, every: int) -> None:
    form.write()
    stopped_after(trainer(form, 2, every=every), 330)
    form.write(changed=279)
    keep_size(form.name)
    refused(lambda: trainer(form, 2, every=every))


def test_what_was_not_read_yet_may_change() -> None:
    form = FORMS["text"]
    Path(form.name).write_bytes(b"".join(ROWS * 4))
    stopped_after(trainer(form), 100)
    content = Path(form.name).read_bytes()
    Path(form.name).write_bytes(content[: -len(ROWS[-1])] + ROWS[-1][:-2] + b"7\n")
    assert Path(form.name).read_bytes() != content
    assert resumed(trainer(form)).run().figures["examples"] == 4 * len(ROWS)


def test_every_file_that_was_read_must_be_the_same() -> None:
    for k in range(4):
        Path(f"{k}.svm").write_bytes(b"".join(ROWS[60 * k : 60 * k + 60]))
    names = [f"{k}.svm" for k in range(4)]
    form = FORMS["text"]
    stopped_after(trainer(form, data=names), 130)
    for name in names[:3]:
        content = Path(name).read_bytes()
        Path(name).write_bytes(content.replace(b"e-02", b"e-03", 1))
        refused(lambda: trainer(form, data=names), f"{name}: {CHANGED}")
        Path(name).write_bytes(content)
    assert resumed(trainer(form, data=names)).run().figures["examples"] == 240


def test_a_changed_size_is_said() -> None:
    form = FORMS["text"]
    form.write()
    stopped_after(trainer(form), 100)
    size = os.path.getsize(form.name)
    with open(form.name, "ab") as file:
        file.write(b"1 1:1\n")
    refused(lambda: trainer(form), f"of {size:,} bytes, which now have {size + 6:,}")


@pytest.mark.parametrize("cached_first", [True, False])
def test_a_cache_found_or_lost_meanwhile_changes_nothing(cached_first: bool) -> None:
    form = FORMS["text"]
    form.write()
    if cached_first:
        trainer(form, 2, cached=True).run()
    CHECKPOINT.unlink(missing_ok=True)
    stopped_after(trainer(form, 2, cached=cached_first), 100)
    if cached_first:
        shutil.rmtree(cache_folder() / "data")
    else:
        trainer(form, 2, cached=True).run()
    whole = resumed(trainer(form, 2, cached=True)).run()
    assert whole.figures["examples"] == 560
    shutil.rmtree(cache_folder() / "data")
    content = Path(form.name).read_bytes()
    Path(form.name).write_bytes(content.replace(b"e-02", b"e-03", 1))
    trainer(form, 2, cached=True).run()
    refused(lambda: trainer(form, 2, cached=True))


def test_a_hold_out_file_must_be_the_same() -> None:
    form, held = FORMS["text"], Path("held.svm")
    form.write()
    held.write_bytes(b"".join(ROWS[280:]))
    stopped_after(trainer(form, 3, held="held.svm"), 400)
    content = held.read_bytes()
    held.write_bytes(content.replace(b"e-02", b"e-03", 1))
    refused(lambda: trainer(form, 3, held="held.svm"), f"held.svm: {CHANGED}")
    held.write_bytes(content)
    resumed(trainer(form, 3, held="held.svm")).run()


def fed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> Trainer:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    return trainer(FORMS["text"], 2, cached=True, data="-")


@pytest.mark.parametrize(
    ("pack", "after"), [(bytes, 100), (zipped, 400), (bz2.compress, 100)], ids=["plain", "gzip", "bz2"]
)
def test_standard_input_must_be_fed_the_same(monkeypatch: pytest.MonkeyPatch, pack: Any, after: int) -> None:
    content = b"".join(ROWS)
    whole = fed(monkeypatch, pack(content))
    whole.run()
    stopped_after(fed(monkeypatch, pack(content)), after)
    other = content.replace(b"e-02", b"e-03", 1)
    refused(lambda: fed(monkeypatch, pack(other)))
    refused(lambda: fed(monkeypatch, pack(b"".join(ROWS[:30]))), "changed since|shorter than before")
    again = resumed(fed(monkeypatch, pack(content)))
    again.run()
    assert {k: v.tobytes() for k, v in again.model.state().items()} == {
        k: v.tobytes() for k, v in whole.model.state().items()
    }
