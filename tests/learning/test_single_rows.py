"""Rows that are learned and predicted one by one: the bits, answers and messages of lists of them."""

import copy
import gc
import pickle
import threading
import tracemalloc
import warnings
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from tests.covering import covering
from tests.streams import CALM, LOSSES, RULES
from thresher import parts
from thresher.data.errors import DataError
from thresher.learning.model import single_rows
from thresher.learning.model.batch_feeder import BatchFeeder
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.modelbytes import as_bytes, from_bytes

NAMES = [f"n{k}" for k in range(7)]


def rows_of(seed: int, count: int = 60, far: float = 1.0) -> list[dict[Any, Any]]:
    """Rows with numbers of all sizes, categories, lists, and features that are absent."""
    draw, found = np.random.default_rng(seed), []
    for _ in range(count):
        row: dict[Any, Any] = {}
        for name in draw.permutation(NAMES).tolist():
            match draw.integers(14):
                case 0:
                    continue
                case 1:
                    row[name] = None
                case 2:
                    row[name] = draw.choice(["Ulm", "Bonn", "Rome"]).item()
                case 3:
                    row[name] = draw.choice(["a", "b", "c"], 2, replace=False).tolist()
                case 4:
                    row[name] = int(draw.integers(-1, 2))
                case 5:
                    row[name] = float(draw.normal() * far / 4)
                case 6:
                    row[name] = bool(draw.integers(2))
                case 7:
                    row[name] = np.float32(draw.normal() / 4)
                case _:
                    row[name] = float(draw.normal() / 4)
        found.append(row)
    return found


def label_for(model: Model, draw: Any) -> Any:
    head = model.head
    if head.outputs.kind == "classes":
        return int(draw.integers(head.outputs.low, head.outputs.high + 1))
    if head.classifies:
        return int(draw.integers(2))
    return float(draw.integers(1, 3)) if head.domain.whole or head.domain.low >= 0 else float(draw.normal())


def taught(one: Model, other: Model, seed: int, far: float = 1.0) -> None:
    """Let `one` learn rows in lists, and `other` the same rows in any mixture."""
    draw, rows = np.random.default_rng(seed), rows_of(seed, far=far)
    labels = [label_for(one, draw) for _ in rows]
    heavy = [float(draw.integers(0, 3)) for _ in rows]
    k = 0
    while k < len(rows):
        many = int(draw.integers(1, 6))
        part = slice(k, k + many)
        one.learn(rows[part], labels[part], heavy[part])
        if draw.integers(3):
            for each in zip(rows[part], labels[part], heavy[part], strict=True):
                other.learn_one(*each)
        else:
            other.learn(rows[part], labels[part], heavy[part])
        if not draw.integers(6):
            other.restore(copy.deepcopy(other.state()))
        k += many


def assert_same(one: Model, other: Model, seed: int = 7) -> None:
    assert as_bytes(one) == as_bytes(other)
    rows = rows_of(seed, 12)
    margins, labels = one.predict(rows), one.predict(rows, "label")
    shares = one.predict_proba(rows) if one.head.has_probabilities and one.head.classifies else None
    for model in (other, other.predictor()):
        for k, row in enumerate(rows):
            assert np.array_equal(np.asarray(model.predict_one(row)).ravel(), margins[k : k + 1].ravel())
            assert np.array_equal(np.asarray(model.score_one(row)).ravel(), margins[k : k + 1].ravel())
            assert model.predict_one(row, "label") == labels[k]
            assert shares is None or np.array_equal(model.predict_proba_one(row), shares[k])


def spec_of(rule: str) -> str:
    given = ",".join(f"{name}={value}" for name, value in CALM.get(rule, {}).items())
    return f"{rule}:{given}" if given else rule


def outputs_of(loss: str) -> str:
    return "classes:0-2" if hasattr(parts.make("loss", loss), "values_slopes") else "one"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("rule", "loss"), covering(RULES, [one for one in LOSSES if one != "each"]))
@pytest.mark.usefixtures("plainly", "small_tables")
def test_rows_learned_one_by_one_are_rows(rule: str, loss: str) -> None:
    try:
        one, other = (Model(spec_of(rule), loss, outputs=outputs_of(loss)) for _ in range(2))
    except ValueError:
        pytest.fail(f"{rule} and {loss} fit")
    taught(one, other, len(rule) * 31 + len(loss))
    assert_same(one, other)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"store": "hashed:6"},
    {"store": "hashed:8,signed"},
    {"scale": "standard"},
    {"scale": "max-abs", "centre": False},
    {"centre": False},
    {"admit": 2},
    {"batch": 4},
    {"average": True, "rule": "fobos:l1=0.01"},
    {"intercept": False},
    {"dtype": "float64"},
    {"calibrate": True, "loss": "hinge"},
    {"sample": "0=0.5"},
    {"nonnegative": "*"},
    {"nonnegative": "n1", "rule": "fobos:l1=0.01"},
    {"outputs": "classes:0-2"},
    {"loss": "squared"},
    {"loss": "squared", "centre": False, "rule": "sgd", "rate": "constant:0.01"},
    {"half_life": 20},
]


@pytest.mark.parametrize("given", OPTIONS, ids=str)
@pytest.mark.usefixtures("plainly")
def test_whatever_is_unusual_goes_the_general_way(given: dict[str, Any]) -> None:
    given = dict(given)
    if half := given.pop("half_life", None):
        given["rule"] = f"ft-ftrl:half_life={half}"
    rule = given.pop("rule", "ft-ftrl")
    one, other = Model(rule, **given), Model(rule, **given)
    taught(one, other, 5, 1e6 if one.centres else 1.0)
    assert_same(one, other)


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each use of the general way."""
    calls: list[str] = []

    def noted(name: str) -> Any:
        way = getattr(Model, name)

        def call(model: Model, data: Any, *args: Any, **options: Any) -> Any:
            calls.extend([name] * isinstance(data, list))
            return way(model, data, *args, **options)

        return call

    for name in ("learn", "predict"):
        monkeypatch.setattr(Model, name, noted(name))
    return calls


@pytest.mark.usefixtures("plainly")
def test_only_the_first_rows_go_the_general_way(general: list[str]) -> None:
    model = Model()
    for k in range(10):
        model.learn_one({"size": float(k % 7), "city": "Ulm" if k % 2 else "Bonn"}, k % 2)
        model.predict_one({"size": 2.0, "city": "Ulm", "new": 1.0})
    assert general == ["learn"] * 3, "columns are made of the features of the first three"


@pytest.mark.parametrize("kind", [int, np.int64, np.uint64])
@pytest.mark.usefixtures("plainly")
def test_large_whole_numbers_are_rounded_once(kind: Any) -> None:
    large = kind(2**60 + 2**36 + 1)
    assert np.array([large]).astype(np.float32) != np.float32(float(large))
    for label, weight in ((large, 1), (1, large)):
        one, other = Model("sgd", "squared"), Model("sgd", "squared")
        for k in range(5):
            one.learn([{"a": float(k)}], [float(k)])
            other.learn_one({"a": float(k)}, float(k))
        one.learn([{"a": 1.0}], [label], [weight])
        other.learn_one({"a": 1.0}, label, weight)
        assert pickle.dumps(one.state()) == pickle.dumps(other.state())


@pytest.mark.usefixtures("plainly")
def test_only_so_many_labels_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.learning.model.model.LABELS", 4)
    one, other = Model(loss="squared"), Model(loss="squared")
    for k in range(30):
        one.learn([{"a": 1.0 + k % 3}], [str(k % 9)])
        other.learn_one({"a": 1.0 + k % 3}, str(k % 9))
        assert len(other._labels) <= 4
    assert as_bytes(one) == as_bytes(other)


@pytest.mark.parametrize("outputs", ["classes:0-4", "classes:1-5", "classes"])
@pytest.mark.parametrize("rule", ["sgd", "ft-ftrl", "arow", "simplex"])
@pytest.mark.usefixtures("plainly", "small_tables")
def test_classes_that_come_with_single_rows(rule: str, outputs: str) -> None:
    one, other = (Model(rule, "softmax", outputs=outputs) for _ in range(2))
    first = one.head.outputs.low
    for k, row in enumerate(rows_of(3)):
        label = first + min(k // 9, k % 5)
        one.learn([row], [label])
        other.learn_one(row, label)
        assert np.array_equal(other.predict_one(row), one.predict([row])[0])
    assert_same(one, other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("plainly")
def test_a_row_of_a_class_whose_loss_is_not_finite() -> None:
    one, other = (Model("sgd", "softmax", outputs="classes:0-2", rate="constant:1e38") for _ in range(2))
    said = list[list[str]]()
    for k in range(12):
        row = {"a": 1e3, "b": 1e9 if k > 4 else 1.0}
        said.append([])
        for learn in (partial(one.learn, [row], [k % 3]), partial(other.learn_one, row, k % 3)):
            try:
                learn()
            except DivergedError as error:
                said[-1].append(str(error))
    assert any(said)
    assert all(len(each) != 1 and len({*each}) < 2 for each in said)
    assert pickle.dumps(one.state()) == pickle.dumps(other.state())


class Strange(dict[str, float]):
    """A dictionary of another class."""


class Float:
    def __float__(self) -> float:
        return 2.5


STRANGE: list[Any] = [
    *({"a": float("nan")}, {"a": float("inf")}, {"a": 1e39}, {"a": 10**400}, {"a": -(10**400)}, {"a": 1e-60}),
    *({"a": True}, {"a": np.float64(2)}, {"a": np.int8(3)}, {"a": np.array([1.0])}),
    *({"a": np.array([1.0, 2])}, {"a": {"x"}}, {"a": []}, {"a": [None]}),
    *({"a": Decimal("1.5")}, {"a": Fraction(1, 3)}, {"a": Float()}, {"a": 1 + 2j}, {"a": {"b": 1}}),
    *({"a": [1, 2]}, {"a": ["x", "x"]}, {"a": [1.5]}, {"a": ("x", "y")}),
    *({"a": "x"}, {"a": ""}, {"a": b"x"}, {"a": "\ud800"}, {"\ud800": 1.0}, {"": 1.0}, {"a": object()}),
    *({3: 1.0}, {3: 1.0, "a": 2.0}, {-3: 1.0}, {2**64: 1.0}, {2**63 + 1: 1.0}, {1.5: 1.0}, {True: 1.0}),
    *({None: 1.0}, {("a", "x"): 1.0}, {b"a": 1.0}, {"a": None}, {}, {"a": 0.0}, {"a": -0.0}, {"a": 2.0**62}),
    *(Strange(a=1.0), OrderedDict(a=1.0), defaultdict(float, a=1.0), [1.0, 2.0], (1.0, 2.0), "some text"),
    *(np.array([1.0, 2.0]), [], "pyproject.toml"),
    *({f"name{k}": 1.0 + k for k in range(40)}, {"a": 1.0, "b": 70000.123, "c": -(2.0**40)}),
]


def outcome(call: Callable[..., Any], *given: Any) -> Any:
    """The answer, or the error, with the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found: Any = call(*given)
        except (ValueError, TypeError, ArithmeticError, RuntimeError, AttributeError) as error:
            found = type(error), str(error)
    return found, [str(one.message) for one in caught]


def learned(rows: int = 12) -> Model:
    model = Model()
    for k in range(rows):
        model.learn([{"a": float(k % 5) - 2, "b": float(k % 3), "c": "x" if k % 2 else "y"}], [k % 2])
    return model


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("place", range(len(STRANGE)))
@pytest.mark.usefixtures("plainly")
def test_strange_rows_have_the_outcome_of_the_general_way(place: int, fresh: bool) -> None:
    row = STRANGE[place]
    one, other = (Model() if fresh else learned() for _ in range(2))
    data: Any = ([row], [0.0]) if isinstance(row, str) else [row]
    expected = outcome(one.learn, [row], [1])
    assert outcome(other.learn_one, row, 1) == expected
    assert as_bytes(one) == as_bytes(other)
    if not fresh:
        expected, found = (outcome(one.predict, data), outcome(other.predict_one, row))
        if not isinstance(expected[0], tuple):
            expected = expected[0].item(), expected[1]
        assert repr(found) == repr(expected)
        assert as_bytes(one) == as_bytes(other)


LABELS = [2, -1, 0.5, "yes", True, np.True_, np.int64(1), np.float32(0), None, float("nan"), [1], [1, 0], "1"]
LABELS += [Decimal(1), 10**400, -0.0, b"1", object(), {}, 1 + 0j, np.array(1), np.array([1])]
LABELS += [np.float64(1), np.complex64(1), np.timedelta64(1), np.timedelta64(1, "ns"), np.datetime64(1, "s")]
LABELS += [np.void(b"ab"), np.zeros(1, [("x", "f4")])[0], np.str_("1"), np.bytes_(b"1"), np.longdouble("1.1")]
LABELS += [type("Unhashable", (str,), {"__hash__": None})("1"), np.float16(1), np.float32(1.1), np.uint8(1)]
WEIGHTS = [0, 0.0, 2, 0.25, -1, float("nan"), float("inf"), "1", None, True, np.float32(2), 1e-40, 1e39, [1]]


@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson"])
@pytest.mark.usefixtures("plainly")
def test_strange_labels_and_weights_have_the_outcome_of_the_general_way(loss: str) -> None:
    row = {"a": 1.5, "b": 2.0}
    one, other = (Model("ftrl:alpha=0.1", loss) for _ in range(2))
    for k in range(5):
        one.learn([{"a": float(k)}], [k % 2])
        other.learn_one({"a": float(k)}, k % 2)
    for label in LABELS * 2:
        expected = outcome(one.learn, [row], [label])
        assert outcome(other.learn_one, row, label) == expected, label
        assert as_bytes(one) == as_bytes(other), label
    for weight in WEIGHTS:
        expected = outcome(one.learn, [row], [1], [weight])
        assert outcome(other.learn_one, row, 1, weight) == expected, weight
        assert as_bytes(one) == as_bytes(other), weight


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([*NAMES, "", "n1=x", 5, 2**40]),
            st.one_of(
                st.none(),
                st.floats(),
                st.integers(),
                st.text(max_size=3),
                st.booleans(),
                st.lists(st.text(max_size=2), max_size=3),
            ),
            max_size=5,
        ),
        max_size=8,
    )
)
def test_any_rows_have_the_outcome_of_the_general_way(rows: list[Any]) -> None:
    one, other = learned(6), learned(6)
    for k, row in enumerate(rows):
        expected = outcome(one.learn, [row], [k % 2])
        assert outcome(other.learn_one, row, k % 2) == expected
    assert as_bytes(one) == as_bytes(other)


FORM = "give a dictionary of named features, a sequence of numbers or a text"
NOT_A_ROW: list[tuple[Any, str]] = [
    *((None, f"not NoneType: {FORM}"), (3, f"not int: {FORM}"), (b"x", f"not bytes: {FORM}")),
    *(({"a"}, f"not set: {FORM}"), (float("nan"), f"not float: {FORM}"), (object(), f"not object: {FORM}")),
    ([{"a": 1.0}], f"not list of dict: {FORM}; several rows are for learn and predict"),
    (["a text"], f"not list of str: {FORM}; several rows are for learn and predict"),
    ([[1.0, 2.0]], f"not list of list: {FORM}; several rows are for learn and predict"),
    (np.ones((1, 2)), f"not ndarray: {FORM}"),
    (pd.Series({"a": 1.0}), "not Series: give row.to_dict()"),
    (pd.DataFrame({"a": [1.0]}), 'not DataFrame: give rows.to_dict("records")[0]'),
    (pl.DataFrame({"a": [1.0]}), "not DataFrame: give rows.to_dicts()[0]"),
    (pl.Series([1.0]), "not Series: give row.to_list()"),
    (pa.table({"a": [1.0]}), "not Table: give rows.to_pylist()[0]"),
]


@pytest.mark.parametrize(("row", "said"), NOT_A_ROW, ids=[said[:25] for _, said in NOT_A_ROW])
@pytest.mark.usefixtures("plainly")
def test_what_is_not_one_row_is_refused(row: Any, said: str) -> None:
    for model in (Model(), learned()):
        before = as_bytes(model)
        calls: list[Callable[[], Any]] = [partial(model.learn_one, row, 1)]
        calls += [partial(model.predict_one, row), partial(model.predict_proba_one, row)]
        for call in calls:
            with pytest.raises(DataError) as error:
                call()
            assert str(error.value) == f"expected one row, {said}"
        assert as_bytes(model) == before
    with pytest.raises(DataError, match="not int: the row comes first, then its label"):
        Model().learn_one(1, {"a": 1.0})  # type: ignore[arg-type]


FIRST: dict[str, list[Any]] = {
    "named": [{"p": 1.0}, {"p": 0}, {"p": None}, {}, {"p": ["x"]}, "a text"],
    "a matrix": [[1.0], [0.0], (2.0,), np.array([1.0]), {3: 1.0}],
}


@pytest.mark.parametrize(
    ("kind", "store", "weight"),
    [case for n in (0, 1) for case in covering(FIRST, ["growing", "hashed:12"], [0.0, 1.0], seed=n)],
)
@pytest.mark.usefixtures("plainly")
def test_the_first_row_says_what_rows_there_are(kind: str, store: str, weight: float) -> None:
    others: list[Any] = [[1.0]] if kind == "named" else [{"p": 1.0}, "some text"]
    for first in FIRST[kind]:
        if isinstance(first, dict) and kind == "a matrix" and (store != "growing" or not weight):
            continue  # only the keys of weights tell ids from names
        model = Model(store=store)
        model.learn_one(first, 0, weight)
        predictor: Any = model.predictor()
        loaded, copied = from_bytes(as_bytes(model)), copy.copy(model)
        for other in others:
            calls = [partial(one.learn_one, other, 1) for one in (model, loaded, copied)]
            calls += [partial(one.predict_one, other) for one in (model, predictor, loaded)]
            for call in calls:
                with pytest.raises(DataError, match=f"the model was trained on {kind}"):
                    call()
        model.learn_one(first, 1)
    frame = pd.DataFrame({"p": [1.0, 2.0]})
    if kind == "named":
        with pytest.raises(DataError, match="give rows as dictionaries or texts, not DataFrame"):
            model.learn(frame, [0, 1])


@pytest.mark.usefixtures("plainly")
def test_words_are_named_with_the_first_row() -> None:
    model = Model()
    with pytest.raises(DataError, match='name them: classes="WORD,WORD'):
        model.learn_one({"p": 1.0}, "spam")
    model.learn_one({"p": 1.0}, "spam", classes="ham,spam")
    for k in range(9):
        model.learn_one({"p": float(k % 2)}, "spam" if k % 2 else "ham")
    assert model.predict_one({"p": 1.0}, "label") == "spam"
    other = Model()
    for k in range(-1, 9):
        other.learn([{"p": float(k % 2)}], ["spam" if k % 2 else "ham"], classes="ham,spam")
    assert as_bytes(model) == as_bytes(other)
    with pytest.raises(TypeError, match="Model has no option classes, which says how to read data"):
        Model(classes="ham,spam")


@pytest.mark.usefixtures("plainly")
def test_models_of_tables_learn_rows() -> None:
    rows = [{"size": float(k), "city": "Ulm" if k % 2 else "Bonn", "y": k % 2} for k in range(30)]
    one = thresher.train(rows, label="y", passes=1)
    other = copy.copy(one)
    plain = [{"size": row["size"], "city": row["city"]} for row in rows]
    one.learn(plain, [row["y"] for row in rows])
    for row in rows:
        other.learn_one({"size": row["size"], "city": row["city"]}, row["y"])
    assert as_bytes(one) == as_bytes(other)
    assert other.predict_one(plain[3]) == one.predict([plain[3]])[0]


def test_a_model_whose_state_is_replaced_is_read_anew() -> None:
    model = learned()
    row = {"a": 1.0, "b": 2.0, "c": "x"}
    before, state = model.predict_one(row), copy.deepcopy(model.state())
    for k in range(30):
        model.learn_one(row, k % 2)
    assert model.predict_one(row) != before
    model.restore(state)
    assert model.predict_one(row) == before
    again = from_bytes(as_bytes(model))
    assert again.predict_one(row) == before == pickle.loads(pickle.dumps(model.predictor())).predict_one(row)
    predictor = model.predictor()
    predictor.predict_one(row)
    other = copy.copy(predictor)
    other.bias = other.bias + 1
    assert other.predict_one(row) == other.predict([row])[0] != predictor.predict_one(row)


@pytest.mark.parametrize("kind", ["model", "calibrated", "predictor"])
def test_models_that_are_gone_leave_nothing(kind: str) -> None:
    model: Any = Model(calibrate=kind == "calibrated")
    for k in range(5):
        model.learn_one({"a": float(k)}, k % 2)
    model = model.predictor() if kind == "predictor" else model
    model.predict_one({"a": 1.0})
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_threads_and_longer_rows_leave_nothing() -> None:
    def kept() -> int:
        gc.collect()
        return sum(isinstance(one, single_rows.RowBuffers) for one in gc.get_objects())

    model, before = learned(), kept()
    for k in range(20):
        row = {f"n{j}": 1.0 for j in range(10 * k)}
        thread = threading.Thread(target=lambda row=row: [model.predict_one(row) for _ in range(3)])
        thread.start()
        thread.join()
    assert kept() - before == 1


class Calling:
    """A number that calls something when it is asked for."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def __float__(self) -> float:
        self._call()
        return 2.5


@pytest.mark.usefixtures("plainly", "small_tables")
def test_numbers_of_a_row_may_use_models() -> None:
    def use(model: Model, other: Model) -> None:
        other.learn_one({"a": 2.0, "b": 1.0}, 1, 7.0)
        model.learn_one({f"new{k}": 1.0 for k in range(30)}, 0, 0.5)
        model.predict_one({"a": 3.0})

    (one, other), others = (learned(), learned()), (learned(), learned())
    one.learn([{"a": Calling(lambda: use(one, others[0])), "b": 1.0}], [1], [2.0])
    other.learn_one({"a": Calling(lambda: use(other, others[1])), "b": 1.0}, 1, 2.0)
    assert as_bytes(one) == as_bytes(other)
    assert as_bytes(others[0]) == as_bytes(others[1])


def test_another_thread_cannot_learn_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model, row = learned(), {"a": 1.0}
    with model.feed.at_rest(), pytest.raises(RuntimeError, match="another thread is learning"):
        model.learn_one(row, 1)
    model.learn_one(row, 1)


@pytest.mark.usefixtures("plainly")
def test_ensembles_and_lanes() -> None:
    rows = [{"size": 3.0}, {"size": -2.0}] * 20
    found = thresher.ensemble(rows, [1, -1] * 20, models=3)
    assert found.predict_one(rows[0]) == found.predict(rows[:1])[0]
    lane = Model.lane(found.recipe, BatchFeeder(found.recipe))
    with pytest.raises(RuntimeError, match="this model is a lane"):
        lane.learn_one(rows[0], 1)
    predictor: Any = found.models[0].predictor()
    with pytest.raises(AttributeError, match="it can only predict"):
        predictor.learn_one(rows[0], 1)


def test_a_model_of_ten_weights_takes_twenty_kilobytes(tmp_path: Path) -> None:
    def small() -> Model:
        model = Model()
        for k in range(12):
            model.learn_one({f"n{j}": float(j * k % 7) - 3 for j in range(10)}, k % 2)
        model.predict_one({"n1": 1.0})
        return model

    small().save(tmp_path / "small.model")
    assert (tmp_path / "small.model").stat().st_size < 20_000
    gc.collect()
    tracemalloc.start()
    models = [small() for _ in range(50)]
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / len(models) < 20_000


@pytest.mark.usefixtures("plainly")
def test_rows_without_names() -> None:
    one, other = Model(), Model()
    for k in range(20):
        one.learn([[float(k % 3), 1.0, float(k % 4)]], [k % 2])
        other.learn_one([float(k % 3), 1.0, float(k % 4)], k % 2)
    assert as_bytes(one) == as_bytes(other)
    assert other.predict_one((1.0, 2.0, 3.0)) == one.predict([[1.0, 2.0, 3.0]])[0]
    with pytest.raises(
        DataError, match="the columns of the matrix are 0 to 1, but the model was trained on 0 to 2"
    ):
        other.predict_one([1.0, 2.0])
