"""Offsets of every format: read alike, required in prediction, and bad rows if they are no numbers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from thresher.data import DataError, open_source
from thresher.data.inputs.any_data import as_source
from thresher.data.inputs.matrices import identify
from thresher.data.layout import Layout
from thresher.options.option import UsageError

ROWS = 40
RNG = np.random.default_rng(1)
LABELS, X = RNG.integers(0, 5, ROWS), RNG.integers(-2, 3, ROWS)
SHIFTS = RNG.choice([-0.5, 0.0, 0.25, 2.0, 1.5], ROWS)
WORDS = RNG.choice(["a", "b"], ROWS)
GIVEN: dict[str, Any] = {"loss": "poisson", "rule": "ftrl", "passes": 1}
FORMS = ["csv", "tsv", "jsonl", "parquet", "arrow"]
BAD = {"": "an offset in column 'shift'", "x": "an offset that is finite", "nan": "an offset that is finite"}


def table() -> Any:
    return pa.table({"label": LABELS, "shift": SHIFTS, "x": X, "c": WORDS})


def write(path: Path, cells: list[Any]) -> Path:
    form, rows = path.suffix[1:], [*zip(LABELS.tolist(), cells, X.tolist(), WORDS.tolist(), strict=True)]
    if form in ("parquet", "arrow"):
        whole = table().set_column(1, "shift", pa.array(cells, pa.float64()))
        if form == "parquet":
            pq.write_table(whole, path)
        else:
            with pa.ipc.new_file(path, whole.schema) as writer:
                writer.write_table(whole)
    elif form == "jsonl":
        names = ("label", "shift", "x", "c")
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    else:
        comma = "," if form == "csv" else "\t"
        path.write_text(
            "\n".join(comma.join(map(str, row)) for row in [("label", "shift", "x", "c"), *rows]) + "\n"
        )
    return path


def vw(path: Path, bases: Any = SHIFTS) -> Path:
    lines = [f"{y} 1 {b} |f x:{x} {w}" for y, b, x, w in zip(LABELS, bases, X, WORDS, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


pytestmark = pytest.mark.usefixtures("plainly")


@pytest.mark.parametrize("form", FORMS)
def test_every_table_has_them(form: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"rows.{form}", SHIFTS.tolist())
    model, frame = thresher.train(path, offset="shift", **GIVEN), table()
    for data in (frame, frame.to_pandas(), pl.from_arrow(frame)):
        other = thresher.train(data, offset="shift", **GIVEN)
        assert np.array_equal(other.predict(path), model.predict(data))
    plain = thresher.train(frame.drop_columns("shift"), offsets=SHIFTS, **GIVEN)
    assert np.array_equal(plain.predict(frame.drop_columns("shift"), offsets=SHIFTS), model.predict(path))
    assert thresher.evaluate(model, path)["loss"] == pytest.approx(
        thresher.evaluate(plain, frame.drop_columns("shift"), offsets=SHIFTS)["loss"]
    )
    with pytest.raises(DataError, match="no column 'shift' \\(offset in the training data\\)"):
        model.predict(frame.drop_columns("shift"))


@pytest.mark.parametrize("bits", [0, 2])
@pytest.mark.parametrize("form", FORMS)
def test_each_row_has_its_own(form: str, bits: int, tmp_path: Path) -> None:
    path = write(tmp_path / f"rows.{form}", SHIFTS.tolist())
    layout = Layout(offset="shift", bits=bits, interact=("x,c",), categorical=("c",))
    whole = next(iter(open_source(path, layout=layout, domain="real").chunks()))
    assert whole.offsets is not None
    assert np.array_equal(whole.offsets, SHIFTS.astype(np.float32))
    assert not bits or whole.keys.max() < 4
    without = Layout(ignore=("shift",), bits=bits, interact=("x,c",), categorical=("c",))
    plain = next(iter(open_source(path, layout=without, domain="real").chunks()))
    assert np.array_equal(whole.keys, plain.keys)
    assert np.array_equal(whole.values, plain.values)


@pytest.mark.parametrize("cell", BAD)
def test_bad_cells_are_bad_rows(cell: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", ["0.5", cell, *SHIFTS.tolist()[2:]])
    with pytest.raises(DataError, match=f"rows.csv:3:.*{BAD[cell]}"):
        thresher.train(path, offset="shift", **GIVEN)
    assert thresher.train(path, offset="shift", on_error="skip", **GIVEN).examples == ROWS - 1


@pytest.mark.parametrize(("cell", "said"), [(None, BAD[""]), (np.nan, BAD["x"]), (1e39, BAD["x"])])
def test_bad_values_are_bad_rows(cell: Any, said: str, tmp_path: Path) -> None:
    cells = [0.5, cell, *SHIFTS.tolist()[2:]]
    path = write(tmp_path / "rows.parquet", cells)
    with pytest.raises(DataError, match=f"rows.parquet:2:2: expected {said}"):
        thresher.train(path, offset="shift", **GIVEN)
    path = write(tmp_path / "rows.jsonl", [0.5, None if cell is np.nan else cell, *SHIFTS.tolist()[2:]])
    with pytest.raises(DataError, match=r"rows\.jsonl:2"):
        thresher.train(path, offset="shift", **GIVEN)


@pytest.mark.parametrize(
    ("loss", "offset", "limits"),
    [
        *(("poisson", 50.0, "from -1e+15 to 34.53"), ("exponential", -50.0, "from -34.53 to 34.53")),
        *(("squared", 1e19, "from -4.997e+14 to 4.997e+14"), ("hinge", -1e19, "from -1e+15 to 1e+15")),
    ],
)
def test_offsets_have_limits_for_steps(loss: str, offset: float, limits: str, tmp_path: Path) -> None:
    cells = [0.5, offset, *SHIFTS.tolist()[2:]]
    path, given = write(tmp_path / "rows.csv", cells), GIVEN | {"loss": loss}
    said = (
        f"{re.escape(f'example 2: expected an offset {limits}, the limits of')}.*{re.escape(f'{offset:g}')}"
    )
    if loss in ("poisson", "squared"):  # the labels of the file are numbers
        with pytest.raises(DataError, match=said):
            thresher.train(path, offset="shift", **given)
    y = np.arange(ROWS) % 2
    with pytest.raises(DataError, match=said):
        thresher.train(np.ones((ROWS, 1)), y, loss, offsets=cells)
    model = thresher.train(np.eye(ROWS), y, loss, offsets=np.full(ROWS, np.sign(offset) * 34.0))
    before = model.predict(np.eye(ROWS), offsets=np.zeros(ROWS))
    with pytest.raises(DataError, match=": expected an offset"):
        model.learn(np.eye(ROWS), y, offsets=cells)
    assert np.isfinite(before).all()
    assert (model.predict(np.eye(ROWS), offsets=np.zeros(ROWS)) == before).all()


def test_bases_of_vw_text(tmp_path: Path) -> None:
    path = vw(tmp_path / "rows.vw")
    model = thresher.train(path, offset="base", **GIVEN)
    offsets: Any = next(iter(open_source(path, layout=model.layout, domain="real").chunks())).offsets
    assert np.array_equal(offsets, SHIFTS.astype(np.float32))
    rows = [{"x": float(x), w: 1.0} for x, w in zip(X, WORDS, strict=True)]
    beside = thresher.train((rows, LABELS), offsets=SHIFTS, **GIVEN)
    assert beside.predict(rows, offsets=SHIFTS) == pytest.approx(model.predict(path), abs=1e-6)
    with pytest.raises(DataError, match="expected a base of 0; to add bases to the margin"):
        thresher.train(path, **GIVEN)
    (tmp_path / "few.vw").write_text("1 1 0.5 |f x\n0 |f x\n1 1 oops |f x\n")
    with pytest.raises(DataError, match=r"few.vw:3:5: expected a base that is finite in float32, found"):
        thresher.train(tmp_path / "few.vw", offset="base", **GIVEN)
    source = open_source(tmp_path / "few.vw", layout=Layout(offset="base"), domain="real", on_error="skip")
    offsets = next(iter(source.chunks())).offsets
    assert offsets.tolist() == [0.5, 0.0]
    with pytest.raises(DataError, match='offsets are offset="base"'):
        thresher.train(path, offset="shift", **GIVEN)


LINES = {
    "svm": lambda y, shift, row: f"{y} " + " ".join(f"{k}:{v}" for k, v in row.items()),
    "vw": lambda y, shift, row: f"{y} | " + " ".join(f"{k}:{v}" for k, v in row.items()),
    "based.vw": lambda y, shift, row: f"{y} 1 {shift} | " + " ".join(f"{k}:{v}" for k, v in row.items()),
}


@pytest.mark.parametrize("form", LINES)
def test_the_largest_id_is_a_feature_in_every_format(form: str, tmp_path: Path) -> None:
    found, given = list[Any](), GIVEN | {"passes": 2, "centre": True}
    given |= {"offset": "base"} if form.startswith("based") else {}
    for name, keys in (("low", [1, 2, 3]), ("high", [4, 2**64 - 5, 2**64 - 1])):
        rows = [
            dict(zip(keys, [int(x), 2 + int(x > 0), int(w == "a")], strict=True))
            for x, w in zip(X, WORDS, strict=True)
        ]
        lines = [*map(LINES[form], LABELS, SHIFTS, rows)]
        path, half = tmp_path / f"{name}.{form}", tmp_path / f"{name}.half.{form}"
        path.write_text("\n".join(lines) + "\n")
        half.write_text("\n".join(lines[:25]) + "\n")
        models = [thresher.train(path, cache=cache, **given) for cache in (True, False)]
        models += [thresher.train(half, continue_from=models[0], passes=1)]
        assert {*models[0].weights()[0].tolist()} <= {*keys}
        found.append([(m.weights()[1].tolist(), m.intercept, m.predict(path).tolist()) for m in models])
    assert found[0] == found[1]
    assert len(found[0][0][0]) == 3


def test_the_log_of_rows_keeps_them(tmp_path: Path) -> None:
    from tests.data.logs import NOON, LogEntry, write_log
    from thresher.data.log.records import ROWS as OF_ROWS

    path = write(tmp_path / "rows.csv", SHIFTS.tolist())
    model = thresher.train(path, offset="shift", **GIVEN)
    chunk = next(iter(open_source(path, layout=model.layout, domain="real").chunks()))
    entries = [LogEntry(OF_ROWS, chunk.rows(k, k + 1), {}, NOON) for k in range(len(chunk))]
    folder = write_log(tmp_path / "log", entries, model.layout, "real")
    on_log, on_rows = (thresher.train(data, continue_from=model, passes=1) for data in (folder, path))
    assert np.array_equal(on_log.predict(path), on_rows.predict(path))
    none = thresher.train(path, ignore="shift", **GIVEN)
    with pytest.raises(DataError, match="other features than those of the model"):
        thresher.train(folder, continue_from=none, passes=1)


def test_what_has_offsets_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", SHIFTS.tolist())
    model = thresher.train(path, offset="shift", **GIVEN)
    thresher.save(model, tmp_path / "m.model")
    told = thresher.info(tmp_path / "m.model")
    assert "--offset shift" in told["command"]
    assert told["offset"] is True
    assert model.features_seen == 3
    frame = model.weights_frame()
    assert "shift" not in set(frame["feature"])
    with pytest.raises(DataError, match="only one column can be the offset"):
        model.predict(path, offset="x")


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="an export cannot express offsets: train without them"):
        thresher.export(thresher.train(table(), offset="shift", **GIVEN), "js")
    path = write(tmp_path / "rows.csv", SHIFTS.tolist())
    with pytest.raises(ValueError, match="an offset is added to one margin"):
        thresher.train(path, loss="softmax", offset="shift")
    with pytest.raises(ValueError, match="an offset is added to one margin"):
        thresher.train(path, loss="squared", outputs="values:2", label="label,x", offset="shift")
    with pytest.raises(UsageError, match="boost adds none"):
        thresher.boost(path, offset="shift")
    with pytest.raises(DataError, match="for files, name the column"):
        thresher.train(path, offsets=SHIFTS, **GIVEN)
    with pytest.raises(DataError, match="leave that or offsets= out"):
        thresher.train(table(), offset="shift", offsets=SHIFTS, **GIVEN)
    with pytest.raises(DataError, match="'x' is listed in both"):
        thresher.train(path, offset="x", numeric="x", **GIVEN)
    with pytest.raises(DataError, match="no column is called 'shft'"):
        thresher.train(path, offset="shft", **GIVEN)
    (tmp_path / "rows.svm").write_text("1 1:1\n0 2:1\n")
    with pytest.raises(DataError, match="offset is only for csv, tsv, jsonl, parquet and arrow"):
        thresher.train(tmp_path / "rows.svm", offset="x")


def test_a_model_learns_tables_one_after_the_other() -> None:
    from thresher.learning.model.model import Model

    model = Model("ftrl", "poisson")
    model.learn(table(), offset="shift")
    assert model.shifted
    model.learn(pd.DataFrame({"label": LABELS, "shift": SHIFTS, "x": X, "c": WORDS}))
    whole = thresher.train(pa.concat_tables([table(), table()]), offset="shift", **GIVEN)
    assert np.array_equal(model.predict(table()), whole.predict(table()))
    beside = Model("ftrl", "poisson", offset=True)
    beside.learn(np.eye(3), [1, 2, 0], offsets=np.ones(3))
    with pytest.raises(DataError, match="these data have none"):
        beside.learn(np.eye(3), [1, 2, 0])


def test_offsets_are_part_of_the_content_of_rows_in_memory() -> None:
    def content(offsets: Any) -> Any:
        source = identify(as_source((np.eye(4), np.ones(4)), "real", offsets=offsets))
        source.keep_hash = True
        assert sum(map(len, source.chunks())) == 4
        return source.content

    assert content(np.ones(4)) == content(np.ones(4)) != content(np.arange(4.0)) != content(None)
