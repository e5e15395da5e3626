"""Hold-outs: rows that meet a condition, and warnings about rows that are held out."""

import json
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from tests.covering import covering
from tests.plain import not_compiled
from tests.stopping import checkpoints_kept
from thresher.data import Chunk, DataError, open_source
from thresher.data.layout import Layout
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.modelbytes import as_bytes
from thresher.learning.training.holdout import difference
from thresher.learning.training.shares import MatchingRows, as_text, held_out, part_of

ROWS = 120
CHANCE = np.random.default_rng(3)
TABLE = pa.table(
    {
        "label": (CHANCE.random(ROWS) < 0.4).astype(int),
        "day": pa.array([None if k % 17 == 4 else k // 5 for k in range(ROWS)]),
        "x": CHANCE.random(ROWS).round(2) * 8,
        "city": [["Ulm", "Kiel", "Bonn's"][k % 3] for k in range(ROWS)],
        "new": [k % 4 == 1 for k in range(ROWS)],
    }
)
FORMS = ("parquet", "arrow", "csv", "jsonl")
OPTIONS: dict[str, Any] = {"rule": "ftrl:l1=0.01", "ignore": "day,new"}
pytestmark = pytest.mark.usefixtures("plainly", "own_folder")


def write(form: str, table: pa.Table = TABLE) -> str:
    name, rows = f"rows.{form}", table.to_pylist()
    if form == "parquet":
        pq.write_table(table, name, row_group_size=50)
    elif form == "arrow":
        with pa.ipc.new_stream(name, table.schema) as file:
            file.write_table(table, max_chunksize=30)
    elif form == "csv":
        table.to_pandas().astype({"day": "Int64"}).to_csv(name, index=False)
    else:
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def same(one: thresher.Model, other: thresher.Model) -> bool:
    pairs = zip(one.weights(), other.weights(), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs) and one.tally == other.tally


def parts_of(condition: Any, table: pa.Table = TABLE) -> tuple[pa.Table, pa.Table]:
    """The rows that do not meet a condition in Python, and those that do; a missing value meets none."""
    met = np.array([bool(condition(row)) for row in table.to_pylist()])
    return table.filter(pa.array(~met)), table.filter(pa.array(met))


CONDITIONS: dict[str, Any] = {
    "day >= 20": lambda r: r["day"] is not None and r["day"] >= 20,
    "day<2.5": lambda r: r["day"] is not None and r["day"] < 2.5,
    "day is null": lambda r: r["day"] is None,
    "day is not null and city != 'Bonn''s'": lambda r: r["day"] is not None and r["city"] != "Bonn's",
    "city in ('Ulm', 'Rom') and x > 4": lambda r: r["city"] == "Ulm" and r["x"] > 4,
    "new = true": lambda r: r["new"],
    '"x" <= 1.04': lambda r: r["x"] <= 1.04,
}


@pytest.mark.parametrize(
    ("form", "condition"), [*covering(FORMS, CONDITIONS), *covering(FORMS, CONDITIONS, seed=1)]
)
def test_the_rows_that_are_held_out(form: str, condition: str) -> None:
    """In every format those of the condition in Python, wherever blocks are cut."""
    assert 0 < len(parts_of(CONDITIONS[condition])[1]) < ROWS
    layout = Layout(form, ignore=("day", "new"), numeric=("x",), categorical=("city",))
    source = open_source(write(form), layout=layout, marked=condition, threads=2, block_bytes=300)
    for _ in range(2):
        chunks = [*source.chunks()]
        groups = np.concatenate([chunk.groups for chunk in chunks if chunk.groups is not None])
        met = [bool(CONDITIONS[condition](row)) for row in TABLE.to_pylist()]
        assert (groups != 0).tolist() == met


@pytest.mark.parametrize(("form", "passes"), covering([*FORMS, "table"], [1, 2]))
def test_it_is_training_on_the_rest_and_evaluation_on_the_rows_that_meet_it(form: str, passes: int) -> None:
    data = TABLE if form == "table" else write(form)
    condition = "day >= 20"
    rest, held = parts_of(CONDITIONS[condition])
    own = thresher.train(rest, passes=passes, **OPTIONS)
    for cache in (True, False, True):
        found = thresher.train(data, holdout=condition, passes=passes, cache=cache, **OPTIONS)
        assert same(found, own)
        assert found.record.holdout == condition
    whole = thresher.train(rest, holdout=held, passes=3, early_stop=1, order="once", **OPTIONS)
    assert same(
        thresher.train(data, holdout=condition, passes=3, early_stop=1, order="once", **OPTIONS), whole
    )


def test_as_the_filter_of_the_rows_that_are_read() -> None:
    name = write("parquet")
    held = thresher.train(name, holdout="city = 'Ulm'", where="day < 20", **OPTIONS)
    own = thresher.train(name, where="day < 20 and city in ('Kiel', 'Bonn''s')", **OPTIONS)
    assert same(held, own)
    path = thresher.path(name, "ftrl", l1=[0.1, 1.0], holdout="day < 12", ignore="day,new").points
    assert path[0].holdout is not None
    later, _ = parts_of(lambda r: r["day"] is not None and r["day"] < 12)
    model = thresher.train(later, path[0].spec, ignore="day,new")
    expected = thresher.evaluate(model, name, where="day < 12")
    assert {name: path[0].holdout[name] for name in ("examples", "loss", "error", "auc")} == {
        name: expected[name] for name in ("examples", "loss", "error", "auc")
    }


def test_no_row_or_every_row() -> None:
    name = write("csv")
    with pytest.warns(thresher.TroubleWarning, match=r"none meets day > 99.* \[empty-holdout\]"):
        model = thresher.train(name, holdout="day > 99", **OPTIONS)
    assert model.examples == ROWS
    for holdout in ("x >= 0", "label in (0, 1)"):
        with pytest.raises(DataError, match=r"leaves none of 120 rows to learn from: hold out others"):
            thresher.train(name, holdout=holdout, **OPTIONS)
    with pytest.raises(DataError, match="leaves none of 9 rows to learn from: hold out others"):
        thresher.train(np.eye(9), [1, 0, 1] * 3, groups=[1] * 9, holdout=0.9)


def test_bad_lines_are_no_row() -> None:
    lines = ["label,day,x"] + [f"{k % 2},{k},{k % 7}" for k in range(40)]
    lines[10], lines[30] = "1,9,oops", "1,29,oops,too"
    Path("bad.csv").write_text("\n".join([*lines, ""]))
    found = thresher.train("bad.csv", rule="ftrl", holdout="day >= 20", on_error="skip", numeric="x")
    assert found.examples == 19
    Path("good.csv").write_text("\n".join([*lines[:10], *lines[11:21], ""]))
    assert same(found, thresher.train("good.csv", rule="ftrl", numeric="x"))


def test_cells_that_are_missing_or_no_numbers_meet_no_comparison() -> None:
    Path("odd.csv").write_text("label,n,x\n1,NA,1\n0, 12 ,2\n1,word,3\n0,9,4\n1,1e1,5\n0,,6\n")
    layout = Layout("csv", missing=("NA",), ignore=("n",))
    for condition, held in (
        *(("n >= 10", [1, 4]), ("n != 9", [1, 4]), ("n is null", [0, 5]), ("n = 'word'", [2])),
        ("n in (9, 12)", [1, 3]),
    ):
        (chunk,) = open_source("odd.csv", layout=layout, marked=condition).chunks()
        assert chunk.groups is not None
        assert np.flatnonzero(chunk.groups).tolist() == held


@pytest.mark.parametrize("text", ["day >= 20", "day>=20", "  day is not null", '"a b" in (1, 2)', "x='a b'"])
def test_what_is_a_condition(text: str) -> None:
    part = part_of(text)
    assert isinstance(part, MatchingRows)
    assert part_of(as_text(part)) == part


def test_what_is_the_name_of_a_file() -> None:
    for text in ("test.svm", "day=20/part-0.csv", "s3://bucket/day=20/*", "in test.svm", "a is b.csv"):
        assert part_of(text) is None
    Path("day=20").write_text("1 1:1\n0 2:1\n")
    assert part_of("day=20") is None


@pytest.mark.parametrize(
    ("data", "holdout", "words"),
    [
        ("csv", "dya >= 20", r"rows\.csv: no column is called 'dya' \(hold-out: dya >= 20\)"),
        ("parquet", "dya >= 20", r"rows\.parquet: no column is called 'dya' \(hold-out: dya >= 20\)"),
        ("csv", "day => 20", "^holdout day => 20: expected a number, true, false"),
        ("parquet", "day > '20'", "column 'day' of type int64 cannot be compared with '20'"),
        ("csv", "day in (1, 'a')", r"column 'day' is compared with texts and others \(hold-out"),
        (
            "matrix",
            "day > 2",
            r"these data have no columns.*: hold out a share, holdout=0\.1, or the last rows",
        ),
    ],
)
def test_what_is_wrong(data: str, holdout: str, words: str) -> None:
    given: Any = (np.eye(4), [1, 0, 1, 0]) if data == "matrix" else write(data)
    with pytest.raises(ValueError, match=words):
        thresher.train(given, holdout=holdout)
    with pytest.raises(DataError, match="but the rows held out are not, whatever their"):
        thresher.train("missing.csv", holdout="day > 2", group="user")


def test_it_is_for_data_with_columns() -> None:
    Path("rows.svm").write_text("1 1:1\n0 2:1\n")
    with pytest.raises(DataError, match=r"^svmlight has no columns, and the hold-out, day > 2, is a"):
        thresher.train("rows.svm", holdout="day > 2")


def test_going_on_from_any_checkpoint() -> None:
    held: dict[str, Any] = {**OPTIONS, "passes": 2, "checkpoint": "spare", "checkpoint_every": 20}
    name, held["holdout"] = write("csv"), "day >= 20"
    with checkpoints_kept() as taken:
        whole = as_bytes(thresher.train(name, **held))
    assert len(taken) > 5
    for content in taken[::2]:
        Path("spare").write_bytes(content)
        assert as_bytes(thresher.train(name, resume=True, **held)) == whole
    Path("spare").write_bytes(taken[0])
    with pytest.raises(ModelFileError, match=r"made with holdout=.day >= 20.; leave holdout out"):
        thresher.train(name, resume=True, **held | {"holdout": "day >= 21"})


HELD = 400
X = np.eye(7)[np.arange(HELD) % 7]
Y = np.where(np.arange(HELD) % 5 < 2, 1, -1)
SORTED = np.sort(Y)
USERS = np.arange(HELD) // 2


def told(function: Any, y: Any = Y, **options: Any) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = function(X, y, **options)
    names = ("unlike-holdout", "no-groups", "empty-holdout")
    return {one.name: one.message for one in found.warnings if one.name in names}


def counts(positive: int, negative: int) -> Counter[float]:
    return Counter({1.0: positive, -1.0: negative})


@pytest.mark.parametrize(
    ("held", "learned", "words"),
    [
        (counts(20, 0), counts(50, 50), "all 20 held-out rows have the label 1, of the rows learned 50 %"),
        (
            counts(0, 20),
            counts(50, 50),
            "none of 20 held-out rows have the label 1, of the rows learned 50 %",
        ),
        (counts(9, 0), counts(50, 50), ""),  # fewer than ten of the other class are missing
        (counts(0, 500), counts(10, 990), ""),  # one class is rare
        (
            counts(40, 360),
            counts(800, 800),
            "10 % of the held-out rows have the label 1, of the rows learned 50 %",
        ),
        (counts(60, 40), counts(500, 500), ""),  # two standard errors
        (counts(5400, 4600), counts(50000, 50000), ""),  # eight standard errors, but a small difference
        (
            counts(60, 9940),
            counts(100, 99900),
            "0.6 % of the held-out rows have the label 1, of the rows learned 0.1 %",
        ),
        (counts(9, 991), counts(1, 8999), ""),  # too few to say
        (counts(50, 50), counts(0, 0), ""),
        (
            Counter({0.0: 50}),
            Counter({0.0: 300, 3.0: 100, 5.0: 50}),
            "all 50 held-out rows have the label 0, of",
        ),
        (Counter({2.0: 90, 3.0: 10}), Counter({2.0: 300, 3.0: 300}), "have the label"),
    ],
)
def test_what_is_told(held: Counter[float], learned: Counter[float], words: str) -> None:
    found = difference(held, learned)
    assert words in found
    assert bool(words) == bool(found)


@pytest.mark.parametrize("outputs", ["classes", "classes:1-3"])
def test_classes_of_several_are_called_by_their_words(outputs: str) -> None:
    words = np.array(["eggs", "ham", "spam"])[np.arange(HELD) * 3 // HELD]
    options: dict[str, Any] = {"outputs": outputs, "loss": "softmax", "passes": 1}
    with not_compiled():
        last = told(thresher.train, words, holdout="last:0.2", **options)
    assert "the label spam, of" in last["unlike-holdout"]


def test_chance_is_not_told() -> None:
    """Rows drawn at random, many times, with common and rare classes."""
    rng = np.random.default_rng(7)
    for share in (0.5, 0.1, 0.01, 0.001):
        for held, learned in ((100, 900), (1000, 9000), (20, 80)):
            for _ in range(300):
                a, b = rng.binomial(held, share), rng.binomial(learned, share)
                assert not difference(counts(a, held - a), counts(b, learned - b))


def test_the_last_rows_of_sorted_labels() -> None:
    found = told(thresher.train, SORTED, holdout="last:0.2")
    reason = (
        "all 80 held-out rows have the label 1, of the rows learned 25 %: if rows are not in the order of"
    )
    assert found["unlike-holdout"] == f"{reason} time, draw those held out, holdout=0.1"
    assert not told(thresher.train, SORTED, holdout=0.1)
    assert not told(thresher.train, holdout="last:0.2")
    assert "unlike-holdout" in told(thresher.path, SORTED, l1=[0.1, 1.0], holdout="last:0.2")
    assert "unlike-holdout" in told(thresher.tune, SORTED, rules=["ftrl"], budget=2, holdout="last:0.2")
    assert not told(thresher.train, np.sort(np.arange(HELD) % 9), loss="squared", holdout="last:0.2")


def test_folds() -> None:
    assert not told(thresher.cv, SORTED, folds=4, rule="ftrl:l1=0.1")
    found = told(thresher.cv, folds=2, rule="ftrl:l1=0.1", groups=Y, seed=5)
    assert "use another seed, or leave group out" in found["unlike-holdout"]
    assert not told(thresher.cv, folds=4, rule="ftrl:l1=0.1", groups=USERS)
    assert "no-groups" in told(thresher.cv, folds=4, rule="ftrl:l1=0.1", groups=[None] * HELD)


WEIGHTLESS = np.where(np.arange(HELD) < 320, 1, 0)


@pytest.mark.parametrize("held", ["last:0.2", Chunk.from_csr([0, 1, 2], [0, 1], [1, 1], [1, -1], [0, 0])])
@pytest.mark.parametrize(
    ("function", "options"),
    [
        (thresher.train, {"early_stop": 1, "passes": 3}),
        (thresher.path, {"l1": [0.1, 1.0], "early_stop": 1, "passes": 3}),
        (thresher.ensemble, {"models": 2, "passes": 2}),
        (thresher.tune, {"rules": ["ftrl"], "budget": 2}),
    ],
)
def test_rows_that_are_held_out_and_do_not_count(function: Any, options: Any, held: Any) -> None:
    found = told(function, sample_weight=WEIGHTLESS, holdout=held, **options)
    reason = "no held-out row has an importance above 0, so there is nothing to judge by"
    assert found["empty-holdout"].startswith(reason)
    assert found.keys() == {"empty-holdout"}


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_a_model_that_nothing_judges_makes_all_passes() -> None:
    model = thresher.train(X, Y, sample_weight=WEIGHTLESS, holdout="last:0.2", early_stop=1, passes=3)
    assert model.holdout is None
    assert model.examples == 3 * 320


def test_folds_that_nothing_judges() -> None:
    few = np.where(np.arange(HELD) < 20, 1, 0)
    found = told(thresher.cv, rule="ftrl:l1=0.1", folds=30, sample_weight=few)
    assert re.match(
        r"no row of fold \d+ has an importance above 0, so the figures are", found["empty-holdout"]
    )
    ones = np.where(np.arange(HELD) % 80 == 3, 1, -1)
    found = told(thresher.cv, ones, rule="ftrl:l1=0.1", folds=30)
    assert re.match(r"the rows of fold \d+ and \d+ more have one class only", found["unlike-holdout"])


def test_separate_data_of_one_class() -> None:
    held = Chunk.from_csr(np.arange(51), np.zeros(50, int), np.ones(50), np.ones(50))
    assert "has rows of one class only" in told(thresher.train, holdout=held)["unlike-holdout"]
    both = Chunk.from_csr(np.arange(51), np.zeros(50, int), np.ones(50), Y[:50])
    assert not told(thresher.train, holdout=both)
    assert not told(thresher.train, holdout=held.rows(0, 9))


def test_separate_data_meet_no_class_before_the_data_do() -> None:
    Path("d.csv").write_text("label,a\nb,1\nc,2\nb,1\n")
    Path("held.csv").write_text("label,a\nd,1\nc,2\n")
    assert thresher.train("d.csv", outputs="classes", holdout="held.csv").classes == ("b", "c", "d")


def test_groups_that_no_row_has() -> None:
    assert "one by one: leave group out" in told(thresher.train, groups=[""] * HELD, holdout=0.1)["no-groups"]
    assert not told(thresher.train, groups=USERS, holdout=0.1)


def test_namespaces_of_vw_text() -> None:
    """Their text is the group, and they stay features; another name is reported."""
    lines = [f"{y} |user u{k // 4} x:a |item i{k % 7}\n" for k, y in enumerate(Y)]
    Path("rows.vw").write_text("".join(lines))
    groups = [f"u{k // 4} x:a" for k in range(HELD)]
    found = thresher.train("rows.vw", "ft-ftrl:l1=0.01", group="user", holdout=0.2, passes=1)
    held = held_out(0, len(groups), 5, 0, _hashes(groups))
    assert found.examples == HELD - held.sum()
    with pytest.warns(thresher.TroubleWarning, match=r'no row has a group, .* leave group="usr" out'):
        thresher.train("rows.vw", "ft-ftrl:l1=0.01", group="usr", holdout=0.2, passes=1)


def _hashes(groups: list[str]) -> Any:
    from thresher.data.source import groups_of

    return groups_of(groups)


def test_a_holdout_that_is_learned_too(tmp_path: Path, plainly: None) -> None:
    file = tmp_path / "a.svm"
    file.write_text("1 1:1 2:1\n0 2:1\n" * 60)
    (tmp_path / "b.svm").write_text(file.read_text())
    (tmp_path / "link.svm").symlink_to(file)
    for held in (file, tmp_path / "link.svm"):
        with pytest.warns(thresher.TroubleWarning, match=rf"the hold-out, {held}, is among the data"):
            thresher.train(str(tmp_path / "[ab].svm"), rule="sgd", holdout=str(held))
    model = thresher.train(str(file), rule="sgd", holdout=str(tmp_path / "b.svm"))
    assert model.holdout is not None
    assert model.holdout["loss"] == thresher.evaluate(model, str(tmp_path / "b.svm"))["loss"]
    assert thresher.train(str(file), rule="sgd").holdout is None
