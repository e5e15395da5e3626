"""Law 12, of logs: a log is the rows that were appended to it, however many came at a time."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.covering import covering_for
from tests.data.logs import NOON, LogEntry, pieces, write_log
from tests.data.tables import write_csv
from tests.learning.test_resume_in_python import stopping as stopping
from tests.streams import KINDS, case, kinds_of, model_of, stream
from tests.test_law_of_continuing import STORES, bits, halves, rows_of, write
from thresher.data.chunk import Chunk
from thresher.data.log.records import GONE, KEPT, ROWS
from thresher.learning.model.recipe import Recipe

ROWS_OF_ALL = 60
Log = Callable[..., Path]


pytestmark = pytest.mark.usefixtures("plainly")


@pytest.fixture(scope="module")
def whole() -> Chunk:
    return stream(seed=21, rows=ROWS_OF_ALL, features=20).chunk


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log of rows, in records of random sizes and segments of a few records, and others among them."""

    def made(chunk: Chunk, layout: Any = None, domain: str = "binary") -> Path:
        entries = [LogEntry(ROWS, one, {}, NOON) for one in pieces(chunk, seed=len(chunk))]
        entries.insert(2, LogEntry(KEPT, chunk.rows(3, 5), {"ids": ["a", "b"]}, NOON))
        entries.insert(4, LogEntry(GONE, note={"ids": ["a"]}, time=NOON))
        folder = tmp_path / f"log {len([*tmp_path.iterdir()])}"
        return write_log(folder, entries, layout, domain, segment_bytes=900)

    return made


def saved(model: Any, path: Path) -> bytes:
    model.save(path)
    return path.read_bytes()


def check(chunk: Chunk, recipe: Recipe, log: Log, place: Path, domain: str = "binary", **more: Any) -> None:
    """Train on the first rows, and go on with the others: the file is that of the rows in memory."""
    first, second = halves(chunk)
    before, folder = thresher.train(first, recipe, passes=1, **more), log(second, domain=domain)
    expected = saved(thresher.train(second, continue_from=before, passes=1, **more), place)
    assert saved(thresher.train(folder, continue_from=before, passes=1, **more), place) == expected


@pytest.mark.parametrize("name", KINDS[::2])
def test_a_log_is_its_rows(name: str, whole: Chunk, log: Log, tmp_path: Path) -> None:
    for spec, store in covering_for(name, kinds_of(name), STORES):
        with case(spec, store):
            check(whole, model_of(spec, store=store, dtype="float32").recipe, log, tmp_path / "m")


def of_kind(kind: str, chunk: Chunk) -> tuple[Chunk, str]:
    """The rows with labels of another kind, and their domain."""
    number = np.arange(len(chunk))
    classes = number * 7 % 3
    if kind == "classes:0-2":
        return Chunk.from_csr(chunk.indptr, chunk.keys, chunk.values, classes), kind
    each = (classes[:, None] == np.arange(3)) * 2.0 - 1
    domain = "values:3,real" if kind == "values:3" else kind
    return Chunk.from_csr(chunk.indptr, chunk.keys, chunk.values, each), domain


@pytest.mark.parametrize(
    ("outputs", "loss"), [("classes:0-2", "softmax"), ("labels:0-2", "logistic"), ("values:3", "squared")]
)
def test_with_many_outputs(outputs: str, loss: str, whole: Chunk, log: Log, tmp_path: Path) -> None:
    data, domain = of_kind(outputs, whole)
    for rule, batch in (("ft-ftrl", 1), ("ftrl", 8)):
        recipe = Recipe(rule, loss=loss, outputs=outputs, batch=batch)
        check(data, recipe, log, tmp_path / "m", domain)


def test_several_passes_and_learn(whole: Chunk, log: Log) -> None:
    first, second = halves(whole)
    folder = log(second)
    before = thresher.train(first, "ftrl", batch=7, passes=1)
    every: list[dict[str, Any]] = [{"passes": 3}, {"passes": 3, "order": "once"}]
    for asked in every:
        found = thresher.train(folder, continue_from=before, **asked)
        assert bits(found) == bits(thresher.train(second, continue_from=before, **asked))
    learned = [thresher.train(first, "ftrl", batch=7, passes=1) for _ in range(2)]
    learned[0].learn(folder)
    learned[1].learn(second)
    for model in learned:
        model.finish()
    assert bits(learned[0]) == bits(learned[1])


def test_unasked_a_log_is_learned_in_one_pass(whole: Chunk, log: Log) -> None:
    first, second = halves(whole)
    before = thresher.train(first)
    assert before.record.passes > 1
    folder, expected = log(second), thresher.train(second, continue_from=before, passes=1, replay=0)
    for data in (folder, str(folder), [folder]):
        assert bits(thresher.train(data, continue_from=before)) == bits(expected)


@pytest.mark.parametrize("name", ["train", "path", "cv"])
def test_what_trains_on_rows_trains_on_a_log(name: str, whole: Chunk, log: Log) -> None:
    every: dict[str, Any] = {"path": {"l1": "0.2:2:5"}, "cv": {"l1": "0.2:2:2", "folds": 3}}
    more = every.get(name, {})
    function = getattr(thresher, name)
    found, expected = (function(data, passes=1, **more) for data in (log(whole), whole))
    if name == "cv":
        assert repr(found) == repr(expected)
        return
    each: Any = [getattr(one, "models", [getattr(one, "model", one)]) for one in (found, expected)]
    assert [bits(model) for model in each[0]] == [bits(model) for model in each[1]]


def test_a_log_of_a_table_is_the_table(tmp_path: Path, log: Log) -> None:
    a, b = (tmp_path / f"{name}.csv" for name in "ab")
    write_csv(rows_of(1, 80), a)
    write_csv(rows_of(2, 50), b)
    before = thresher.train(a, passes=1, names=True, l1=0.5)
    layout = before.recipe.layout
    rows = thresher.data.open_source(b, layout=layout)
    (chunk,) = [*rows.chunks()]
    folder = log(chunk, layout)
    expected = thresher.train(b, continue_from=before, passes=1)
    found = thresher.train(folder, continue_from=before, passes=1)
    assert bits(found) == bits(expected)
    assert found.layout == expected.layout
    assert thresher.evaluate(before, folder)["loss"] == pytest.approx(thresher.evaluate(before, b)["loss"])
    assert np.array_equal(thresher.predict(before, folder), thresher.predict(before, b))
    assert thresher.train(folder, passes=1).layout == layout


def test_training_stops_and_resumes_in_the_middle_of_a_log(stopping: Any, tmp_path: Path, log: Log) -> None:
    a, b = (write(rows_of(seed, 150), tmp_path / f"{seed}.svm") for seed in (1, 2))
    before = thresher.train(a, passes=1, batch=3)
    (rows,) = [*thresher.data.open_source(b).chunks()]
    folder = log(rows, before.recipe.layout)
    for passes in (1, 2):
        more: dict[str, Any] = {"continue_from": before, "passes": passes}
        expected = saved(thresher.train(folder, **more), tmp_path / "m")
        more["checkpoint"] = tmp_path / "spare"
        stopping()
        with pytest.raises(KeyboardInterrupt):
            thresher.train(folder, **more, checkpoint_every=40)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        assert saved(thresher.train(folder, **more, resume=True), tmp_path / "m") == expected


LEFT_OUT = {"format": "csv", "label": "label", "numeric": "size", "interact": "size,city", "bits": 20}


@pytest.fixture
def models(tmp_path: Path) -> dict[str, thresher.Model]:
    """Models of two tables with different columns, and of a format without any."""
    for name in ("size", "weight"):
        write_csv([{"label": k % 2, name: k, "city": "ulm"} for k in range(60)], tmp_path / f"{name}.csv")
    found = {name: thresher.train(tmp_path / f"{name}.csv", passes=1) for name in ("size", "weight")}
    return found | {"svm": thresher.train(write(rows_of(1, 30), tmp_path / "a.svm"), passes=1)}


def test_a_log_of_others_is_an_error(models: dict[str, thresher.Model], log: Log, whole: Chunk) -> None:
    folder = log(whole, models["size"].layout)
    for other in (models["weight"], models["svm"]):
        calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
            (thresher.train, (folder,), {"continue_from": other}),
            (thresher.train, (folder,), {"init": other}),
            (thresher.predict, (other, folder), {}),
            (thresher.evaluate, (other, folder), {}),
        ]
        for function, data, options in calls:
            with pytest.raises(ValueError, match="the rows have other features than those of the model"):
                function(*data, **options)
    bare: Any = log(whole)
    with pytest.raises(ValueError, match="the rows have other features"):
        thresher.predict(models["size"], bare)


def test_what_a_log_does_not_have_is_an_error(
    models: dict[str, thresher.Model], tmp_path: Path, log: Log, whole: Chunk
) -> None:
    folder = log(whole, models["size"].layout)
    for name, value in LEFT_OUT.items():
        asked: Any = {name: value}
        with pytest.raises(ValueError, match=f"are features already: leave {name} out"):
            thresher.train(folder, **asked)
    with pytest.raises(ValueError, match="are features already: leave numeric out"):
        thresher.train(folder, continue_from=models["size"], numeric="other")
    every: list[tuple[str, Any, dict[str, Any]]] = [
        ("can only be read alone", [folder, log(whole)], {}),
        ("can only be read alone", [folder, tmp_path / "size.csv"], {}),
        ("the rows of a log have no columns such as 'size > 3'", folder, {"where": "size > 3"}),
        ("a matrix or a log has no feature names", folder, {"names": True}),
        ("are for files, not for data in memory or a log", folder, {"workers": 2}),
        ("no examples: the log holds no labelled rows yet", log(whole.rows(0, 0)), {}),
        ("expected a class from 0 to 2", folder, {"outputs": "classes:0-2", "loss": "softmax"}),
    ]
    for message, given, more in every:
        with pytest.raises(ValueError, match=message):
            thresher.train(given, **more)
    with pytest.raises(ValueError, match="a matrix or a log has no feature names"):
        thresher.name_features(models["size"], folder)
    with pytest.raises(ValueError, match="needs a table with columns; these data have none"):
        thresher.evaluate(models["size"], folder, slices="city")
