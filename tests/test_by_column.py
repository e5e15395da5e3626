"""A model for each value of a column: each equals, bit for bit, one that was trained on its rows alone."""

import shlex
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from tests.commands import run
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.learning.diagnostics.findings import TroubleWarning
from thresher.learning.files import model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model import bags
from thresher.learning.model.bags import ByColumn
from thresher.learning.model.ensemble import ModelsByValue, load
from thresher.learning.model.model_set import Part
from thresher.serving.bodies import Bodies

SHOPS = ["Ulm", "Kiel", "Bonn", "Genoa"]


def table(rows: int = 160, seed: int = 0, shops: list[str] = SHOPS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    shop = rng.choice(shops, rows)
    frame = pd.DataFrame({"shop": shop, "x": rng.normal(size=rows), "day": rng.choice([*"abcd"], rows)})
    signs = np.where(shop == shops[0], 1, -1)
    frame["label"] = np.where(signs * frame.x + rng.normal(size=rows) > 0, 1, -1)
    return frame


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    table().to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def by(data: Any, column: str = "shop", **options: Any) -> ModelsByValue[Any]:
    found = thresher.ensemble(data, models=f"by:{column}", **{"report_every": None, **options})
    assert isinstance(found, ModelsByValue)
    return found


def check_equal(one: Any, other: Any) -> None:
    """Settled weights, intercepts and, for models, the whole state."""
    assert one.intercept == other.intercept
    mine, theirs = one.state(), other.state()
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name].tobytes() == theirs[name].tobytes(), name


OPTIONS: list[dict[str, Any]] = [
    {},
    {"passes": 1},
    {"passes": 3, "batch": 7},
    {"rule": "ftrl:l1=0.1", "passes": 2, "average": True},
    {"rule": "truncated-gradient:gravity=0.01", "scale": "standard", "passes": 2},
    {"store": "hashed:10", "passes": 2},
    {"admit": 2, "passes": 2},
    {"rule": "fobos:l1=0.01", "sample": "-1=0.5", "outputs": "one", "passes": 1},
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_each_model_is_the_one_of_its_rows_alone(options: dict[str, Any], parquet: Path) -> None:
    found = by(parquet, **options)
    assert sorted(found.values) == sorted(SHOPS)
    check_equal(found.models[0], thresher.train(parquet, report_every=None, **options))
    for shop in found.values:
        alone = thresher.train(parquet, where=f"shop = '{shop}'", report_every=None, **options)
        check_equal(found.of(shop), alone)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("plainly")
def test_formats_and_the_cut_of_the_stream_make_no_difference(
    parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = by(parquet, passes=2)
    table().to_csv(parquet.with_suffix(".csv"), index=False)
    table().to_json(parquet.with_suffix(".jsonl"), orient="records", lines=True, double_precision=15)
    forms = table(), parquet.with_suffix(".csv"), parquet.with_suffix(".jsonl")
    for data, (each, waiting) in zip(forms, ((1, 1), (64, 1), (10**6, 1 << 30)), strict=True):
        monkeypatch.setattr(ByColumn, "worth", each)
        monkeypatch.setattr(ByColumn, "most_waiting", waiting)
        found = by(data, passes=2)
        assert found.values == expected.values
        for one, other in zip(found.models, expected.models, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one.weights(), other.weights(), strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(
    ("stop", "options"),
    [
        *((1, {"passes": 3}), (2, {"batch": 7}), (5, {"passes": 3})),
        (5, {"passes": 3, "holdout": 0.2, "early_stop": 1}),
    ],
    ids=range(4),
)
def test_it_resumes_where_it_stopped(
    stop: int, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first pass, when not all values were met, and in a later one."""
    rows = pd.concat([table(210), table(150, 1, [*SHOPS, "Paris", "Rome"])])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    given = {**options, "order": "once", "data": tmp_path / "rows.csv"}
    whole, write, written = by(**given), model_file.write, list[Any]()

    def write_and_stop(*args: Any) -> None:
        write(*args)
        written.append(args)
        if len(written) == stop:
            raise KeyboardInterrupt

    monkeypatch.setattr(model_file, "write", write_and_stop)
    given |= {"checkpoint": tmp_path / "kept", "checkpoint_every": 135}
    with pytest.raises(KeyboardInterrupt):
        by(**given)
    found = by(**given, resume=True)
    assert found.values == whole.values
    for one, other in zip(found.models, whole.models, strict=True):
        check_equal(one, other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("plainly")
def test_it_goes_on_with_other_data_and_new_values(tmp_path: Path) -> None:
    first, second = table(), table(160, 1, [*SHOPS[1:], "Paris", "Rome"])
    whole = by(pd.concat([first, second], ignore_index=True), passes=1)
    by(first, passes=1).save(tmp_path / "first")
    found = by(second, passes=1, continue_from=tmp_path / "first")
    assert found.values == whole.values
    for one, other in zip(found.models, whole.models, strict=True):
        check_equal(one, other)
    with pytest.raises(ValueError, match="by"):
        by(second, column="day", continue_from=tmp_path / "first")
    with pytest.raises(ValueError, match="the ensemble was made with models='by:shop'; leave models out"):
        thresher.ensemble(table(), models=3, continue_from=by(table(), passes=1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("plainly")
def test_many_values_are_packed_in_a_file(tmp_path: Path) -> None:
    shops = [f"s{k}" for k in range(150)]
    rows = table(1200, shops=shops)
    found = by(rows, passes=1)
    found.save(tmp_path / "many")
    names = model_file.Contents.of(tmp_path / "many").header["crc32"]
    assert len(names) < 100, "not a tensor for each model"
    again = thresher.load(tmp_path / "many")
    assert isinstance(again, ModelsByValue)
    assert again.values == found.values
    assert again.predict(rows).tobytes() == found.predict(rows).tobytes()
    for shop in shops[::37]:
        one = load(tmp_path / "many", shop)
        assert one.predict(rows).tobytes() == found.of(shop).predict(rows).tobytes()
    end = by(rows, passes=1, continue_from=tmp_path / "many")
    assert end.models[1].examples == 2 * found.models[1].examples
    small = [model.nbytes for model in found.models[1:]]
    assert max(small) < 10_000, "bytes of keys and state"


def test_the_command_leaves_passes_open_where_values_make_their_own(tmp_path: Path) -> None:
    frame = table(4000, shops=["big"] * 20 + ["s1"])
    frame.assign(day=[f"d{k % 40}" for k in range(4000)]).to_csv(tmp_path / "DATA", index=False)
    for passes in ("auto", 2):
        told = f"train DATA --format csv --by shop -m m --passes {passes}"
        run(*told.split(), folder=tmp_path)
        info = thresher.info(tmp_path / "m")
        made = [one["examples"] / len(frame[frame["shop"] == one["model"]]) for one in info["each"][1:]]
        assert (made[0] != made[1], f"--passes {passes} " in info["command"]) == (passes == "auto", True)
        run(*shlex.split(info["command"])[1:], folder=tmp_path)
        assert (tmp_path / "MODEL").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_mean_of_no_weights_is_not_no_weight() -> None:
    frame = table(600, shops=["Ulm"] * 300 + [f"s{k}" for k in range(299)])
    found = by(frame, ignore="day", passes=1)
    assert found.nonzero == 0 < max(one.nonzero for one in found.models)
    assert found.record is not None
    assert not [one for one in found.record.warnings if "no feature has a weight" in one]


def test_rows_of_many_values_are_learned_together(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, learn = [0], Part.learn

    def counted(part: Part, chunk: Chunk, again: bool) -> Any:
        calls[0] += 1
        return learn(part, chunk, again)

    monkeypatch.setattr(Part, "learn", counted)
    shops = [f"s{k}" for k in range(100)]
    model = by(table(4096, shops=shops), passes=1, report_every=0)
    assert len(model.values) == 100
    assert calls[0] < 300  # and not all again at each power of two of rows


@pytest.mark.filterwarnings("ignore:column shop of the table has .Paris")
@pytest.mark.filterwarnings("ignore:.*missing-columns")
def test_a_row_is_predicted_by_the_model_of_its_value(tmp_path: Path) -> None:
    found, rows = by(table(), passes=1), table(50, 3)
    margins = found.predict(rows)
    for shop in SHOPS:
        mine = (rows["shop"] == shop).to_numpy()
        assert np.array_equal(margins[mine], found.of(shop).predict(rows)[mine])
    for unknown in ("Paris", None, ""):
        rows["shop"] = unknown
        assert np.array_equal(found.predict(rows), found.models[0].predict(rows))
    assert found.of("Paris") is found.models[0]
    assert found.predict(rows[:0]).shape == (0,)
    with pytest.raises(ValueError, match=r"look at those of one of them, such as model.of\(value\)"):
        found.weights()
    found.save(tmp_path / "found")
    with pytest.raises(ValueError, match="tells which model predicts a row"):
        found.predict(Chunk.of_rows([(1.0, {7: 2.0})]))
    with pytest.raises(ValueError, match="no model of Ulmm; did you mean Ulm"):
        load(tmp_path / "found", "Ulmm")
    with pytest.raises(ModelFileError, match=r"models by shop, not one: .*of\(value\)"):
        model_file.load_predictor(tmp_path / "found")
    for model in (found, tmp_path / "found"):
        with pytest.raises(DataError, match=r"models by shop, not one: .*of\(value\)"):
            thresher.export(model, "c")
    with pytest.raises(TypeError, match=r"ModelsByValue: give \.of\(value\)"):
        thresher.save(found, tmp_path / "one")
    for more in ([], ["--interval", 0.9]):
        status, _, said = run("weights", "found", *more, folder=tmp_path)
        assert (status, "models by shop, not one: thresher choose" in said) == (1, True)
    with pytest.raises(ValueError, match="no interval"):
        found.interval(rows)
    with pytest.raises(ValueError, match="no spread"):
        found.spread(rows)


@pytest.mark.filterwarnings("ignore:column shop of the table has .Paris")
def test_figures_have_a_line_for_each_value(tmp_path: Path) -> None:
    found, rows = by(table(), passes=1), table(160, 3, [*SHOPS, "Paris"])
    figures = thresher.evaluate(found, rows)
    lines = {line["value"]: line for line in figures["slices"]["shop"]}
    assert sorted(lines) == sorted([*SHOPS, "Paris"])
    for shop, line in lines.items():
        expected = thresher.evaluate(found.of(shop), rows[rows["shop"] == shop])
        assert line["loss"] == pytest.approx(expected["loss"], rel=1e-12)
    found.save(tmp_path / "found")
    told = thresher.info(tmp_path / "found")
    assert [one["model"] for one in told["each"]] == ["all", *found.values]
    assert thresher.info(found)["each"] == told["each"]


@pytest.mark.filterwarnings("ignore")
def test_all_means_all_rows_where_a_value_is_called_so(tmp_path: Path) -> None:
    found = by(table(shops=["all", "Kiel"]), passes=1)
    found.save(tmp_path / "found")
    for which, model in (("all", found.models[0]), ("Kiel", found.of("Kiel"))):
        assert load(tmp_path / "found", which).intercept == model.intercept
    assert found.of("all") is found.models[1 + found.values.index("all")]
    assert found.of("all").intercept != found.models[0].intercept
    with pytest.raises(ValueError, match="no model of an empty value; "):
        load(tmp_path / "found", "")


def test_numbers_have_one_spelling() -> None:
    rows = table()
    rows["shop"] = rows["shop"].map({name: k for k, name in enumerate(SHOPS)})
    found = by(rows, passes=1)
    assert sorted(found.values) == ["0", "1", "2", "3"]
    rows["shop"] = rows["shop"].astype(float)
    again = by(rows, passes=1)
    assert found.values == again.values
    assert found.predict(rows).tobytes() == again.predict(rows).tobytes()


def test_a_server_reads_the_column() -> None:
    found = by(table(), passes=1)
    rows = Bodies(found, 100).read(
        b'{"shop": "Kiel", "x": 1.5, "day": "a"}', "application/json", labelled=False
    )
    expected = found.of("Kiel").predict(pd.DataFrame({"shop": ["Kiel"], "x": [1.5], "day": ["a"]}))
    assert np.array_equal(found.margins(rows.chunk), expected)


@pytest.mark.parametrize(
    ("data", "column", "options", "said"),
    [
        (table(), "city", {}, "no column is called 'city'"),
        (table(), "label", {}, "'label' is a label"),
        ([({"a": 1.0}, 1), ({"b": 1.0}, -1)], "shop", {}, "models='by:shop' needs a table with columns"),
        (table(), "shop", {"passes": 2, "order": "every"}, "would have another number"),
        (table(), "shop", {"calibrate": True}, "calibrate=True is for one model"),
    ],
    ids=range(5),
)
def test_what_cannot_be(data: Any, column: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        by(data, column, **options)


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "MOST", 3)
    with pytest.raises(ValueError, match="more than 3 values"):
        by(table(), passes=1)


@pytest.mark.usefixtures("plainly")
def test_a_column_of_ids_is_told_of_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "IDS", 50)
    monkeypatch.setattr(bags, "FIRST_ROWS", 52)
    frame = table(80).assign(id=[f"u{k}" for k in range(80)])
    told = (
        r"^nearly every row has a value of its own in column id \(models='by:id'\), and each gets a model: "
        r"choose .*\[values-as-ids\]$"
    )
    with pytest.warns(TroubleWarning, match=told) as found:
        again = by(frame, "id", passes=2, ignore="id")
    assert sum("values-as-ids" in str(one.message) for one in found) == 1
    assert [one.name for one in again.warnings].count("values-as-ids") == 1
    with pytest.warns(TroubleWarning, match=told):
        many = by(table(200).assign(id=[f"u{k}" for k in range(200)]), "id", passes=1)
    names = {one.name for one in many.warnings}
    assert "id-columns" not in names
    monkeypatch.setattr(ByColumn, "settle", lambda *_: pytest.fail("it was told before the end of the pass"))
    with pytest.warns(TroubleWarning, match=told), pytest.raises(pytest.fail.Exception):
        by(frame, "id", replay="1MB", ignore="id")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*values-as-ids")
        by(frame[::-1], "id", passes=1, continue_from=again)
        by(frame.assign(id=[f"u{k // 2}" for k in range(80)]), "id", passes=1)


@pytest.mark.usefixtures("plainly")
def test_new_data_without_the_column_are_told_of(tmp_path: Path) -> None:
    frame, told = (
        table(),
        "no row has a value in column shop, so the model of all rows predicts each: fill it in",
    )
    ignored, kept = by(frame, ignore="shop"), by(frame)
    rows = frame.drop(columns="shop")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    for model, data in (
        (ignored, rows),
        (ignored, tmp_path / "rows.csv"),
        (ignored, frame.assign(shop="")),
        (kept, tmp_path / "rows.jsonl"),
    ):
        for use in (model.predict, partial(thresher.evaluate, model)):
            with pytest.warns(TroubleWarning, match=told) as found:
                use(data)
            assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", TroubleWarning)
        ignored.predict(frame.assign(shop=["", *["never seen"] * 159]))
        ignored.predict([{"x": 1.0, "day": "a"}])  # one row may lack it
    with pytest.warns(TroubleWarning, match="no column shop in") as found:
        kept.predict(tmp_path / "rows.csv")
    assert len(found) == 1, "a file that lacks a column is told of once"


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    found = by(table(1200, shops=[f"s{k}" for k in range(150)]), passes=1)
    found.save(tmp_path / "many")
    contents = model_file.Contents.of(tmp_path / "many")
    models = [contents.header_of(k) for k in range(len(contents))]
    assert models[1]["nonzero"] == found.models[1].nonzero
    table_of = {**contents.run["ensemble"], "values": contents.run["ensemble"]["values"][1:]}
    kept = [contents.model(k) for k in range(len(contents))]
    model_file.write_all(tmp_path / "fewer", kept, {"ensemble": table_of})
    with pytest.raises(ModelFileError, match="values: one for each model"):
        thresher.load(tmp_path / "fewer")
