"""Law 1: lazy is eager. Every rule of the registry, in every setting, with every loss, against its oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import eager, oracles
from tests.oracles import ORACLES, Trace
from tests.plain import compiled_if, not_compiled
from tests.streams import (
    FLAT,
    LONG,
    LOSSES,
    NOTICEABLE,
    RATE,
    RATES,
    RULES,
    Stream,
    domain_of,
    has_rate,
    labels_of,
    model_of,
    read_weights,
    settings_of,
    stream,
    stream_of,
)
from thresher import parts
from thresher.data.chunk import Chunk
from thresher.learning.model import Model

SPECS = [spec for name in RULES for spec in settings_of(name)]
FIRST = [settings_of(name)[0] for name in RULES]
EXACT, SINGLE = 1e-10, 1e-4


def name_of(spec: str) -> str:
    return spec.partition(":")[0]


def oracle_of(model: Model, data: Stream, *, keep_path: bool = False) -> Trace:
    name = parts.part_name(type(model.rule))
    return oracles.run(
        name,
        model.rule,
        model.loss,
        data.X,
        data.y,
        data.importance,
        intercept=bool(len(model.state()["B"])),
        keep_path=keep_path,
    )


def check(model: Model, data: Stream, tolerance: float, expected: Trace | None = None) -> Trace:
    """Learn `data`; weights, intercept and progressive loss must be the oracle's."""
    expected = expected or oracle_of(model, data)
    model.learn(data.chunk)
    scale = max(1.0, np.abs(expected.weights).max(initial=0.0), abs(expected.intercept))
    found = read_weights(model, data.X.shape[1])
    assert np.abs(found - expected.weights).max(initial=0.0) <= tolerance * scale
    assert abs(model.intercept - expected.intercept) <= tolerance * scale
    assert model.tally.loss == pytest.approx(
        data.importance @ expected.losses, rel=10 * tolerance, abs=tolerance
    )
    assert model.tally.weight == pytest.approx(data.importance.sum())
    return expected


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_an_oracle_and_settings_that_name_it(name: str) -> None:
    assert name in ORACLES, f"write the dense recursion of {name} in tests/oracles.py and name it in ORACLES"
    for spec in settings_of(name):
        parts.make("rule", spec)


PAIRS = [
    *((spec, loss, True) for spec in FIRST for loss in LOSSES),
    *((spec, loss, True) for spec in SPECS if spec not in FIRST for loss in ("hinge", "logistic", "squared")),
    *((spec, loss, False) for spec in SPECS for loss in ("logistic", "squared")),
]
"""Every rule with every loss and intercepts or none, its other settings with a loss of each kind of slope"""


@pytest.mark.parametrize(("spec", "loss", "intercept"), PAIRS)
def test_lazy_is_eager(spec: str, loss: str, intercept: bool) -> None:
    data = stream(seed=1, domain=domain_of(loss))
    with not_compiled():  # compiled code is the same source, and takes a second per pair
        expected = check(model_of(spec, loss, intercept=intercept), data, EXACT)
    learned = np.abs(expected.weights).max() > 1e-3 or np.abs(expected.margins).max() > 1e-3
    assert learned or not expected.losses.any(), "nothing learned"


@pytest.mark.parametrize("rate", sorted(RATES))
@pytest.mark.parametrize("spec", [spec for spec in SPECS if has_rate(spec)])
def test_lazy_is_eager_at_every_rate(spec: str, rate: str) -> None:
    with not_compiled():
        check(model_of(spec, rate=RATES[rate]), stream(seed=2, rows=200), EXACT)


def test_every_rate_is_among_those_tested() -> None:
    assert set(RATES) == set(parts.REGISTRY["rate"])


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("spec", SPECS)
def test_single_precision_is_near(spec: str, loss: str) -> None:
    data = stream(seed=3, rows=400, domain=domain_of(loss), scale=0.5)
    with compiled_if(loss == "logistic"):
        check(model_of(spec, loss, dtype="float32"), data, SINGLE)


@st.composite
def streams(draw: st.DrawFn, domain: str) -> Stream:
    """Any pattern of features and importances; the values are random, so there are no ties."""
    features = draw(st.integers(1, 6))
    pattern = draw(st.lists(st.integers(0, 2**features - 1), max_size=40))
    stored = np.array([[row >> j & 1 for j in range(features)] for row in pattern], bool).reshape(
        -1, features
    )
    rows = len(pattern)
    importance = draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5]), min_size=rows, max_size=rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = np.where(stored, rng.uniform(-1, 1, stored.shape), 0.0)
    y = labels_of(domain, rng.normal(size=rows), rng)
    return stream_of(X, stored, y, np.array(importance))


@pytest.mark.parametrize("name", RULES)
@given(st.data())
def test_lazy_is_eager_on_any_stream(name: str, data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from(settings_of(name)))
    loss = data.draw(st.sampled_from(LOSSES))
    intercept = data.draw(st.booleans())
    examples = data.draw(streams(domain_of(loss)))
    with not_compiled():
        check(model_of(spec, loss, intercept=intercept), examples, EXACT)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spec", SPECS)
def test_vanishing_values_leave_weights_finite(spec: str, dtype: str) -> None:
    """Zeros, and numbers whose squares are zero in the state's dtype."""
    with compiled_if(dtype == "float32"):
        model = model_of(spec, dtype=dtype)
        for _ in range(3):
            model.learn(Chunk.of_rows([(1.0, {0: 0.0, 1: 1e-30, 2: 1e-45})]))
        model.learn(Chunk.of_rows([(1.0, dict.fromkeys(range(3), 1.0))]))
        assert np.isfinite(model.state()["S"]).all()
        assert np.isfinite(model.weights()[1]).all()


# Many steps, with settings under which weights keep becoming zero and nonzero: a million for some rules,
# whose oracles are compiled too, ten thousand for the others. In float32, the default dtype.


def compiled_oracle_of(model: Model, data: Stream) -> Trace:
    name = parts.part_name(type(model.rule))
    w = eager.run(name, model.rule, model.loss, data.X, data.y, data.importance, intercept=True)
    return Trace(w[:-1], float(w[-1]), np.empty(0), np.empty(0), None)


def agree(model: Model, data: Stream, tolerance: float, expected: Trace | None = None) -> None:
    expected = expected or compiled_oracle_of(model, data)
    model.learn(data.chunk)
    found = read_weights(model, data.X.shape[1])
    scale = np.abs(expected.weights).max()
    assert scale > 1e-3, "nothing to compare"
    assert np.abs(found - expected.weights).max() <= tolerance * max(1.0, scale)
    assert abs(model.intercept - expected.intercept) <= tolerance * max(1.0, scale)


FOLDED = [
    ("fobos:l1=1e-4,l2=0.1", FLAT, 1.0),  # the product grows by 2^40 every 2800 steps
    ("pegasos:l2=1e-3,skip_correct=true", RATE, 300.0),  # each step is projected by a large factor
    ("pegasos:l2=1e-3", RATE, 300.0),
    ("l2-ball:radius=0.1", RATE, 30.0),
    ("fobos-l2norm:l2norm=0.1", FLAT, 1.0),
]


def gentle(name: str) -> str:
    penalties = ",".join(f"{field}={NOTICEABLE / 10}" for field in parts.lookup("rule", name).PENALTIES)
    return f"{name}:{penalties}"


@pytest.mark.parametrize("spec", [gentle(name) for name in LONG])
def test_the_compiled_oracle_is_the_oracle(spec: str) -> None:
    model, data = model_of(spec), stream(seed=4, features=8)
    slow, fast = oracle_of(model, data), compiled_oracle_of(model, data)
    error = 1e-11 * max(1.0, np.abs(slow.weights).max())
    assert np.allclose(fast.weights, slow.weights, rtol=0, atol=error)
    assert fast.intercept == pytest.approx(slow.intercept, abs=error)


@pytest.fixture(scope="session")
def million() -> Stream:
    return stream(seed=5, rows=1_000_000, features=8)


@pytest.mark.parametrize("name", LONG)
def test_a_million_steps(name: str, million: Stream) -> None:
    expected = compiled_oracle_of(model_of(gentle(name)), million)
    agree(model_of(gentle(name), dtype="float32"), million, SINGLE, expected)
    agree(model_of(gentle(name)), million, EXACT, expected)


@pytest.mark.parametrize("name", sorted({*RULES} - {*LONG}))
def test_ten_thousand_steps(name: str, million: Stream) -> None:
    data, model = first(million, 10_000), model_of(gentle(name), dtype="float32")
    agree(model, data, SINGLE, oracle_of(model_of(gentle(name)), data))


@pytest.mark.parametrize(("spec", "rate", "scale"), FOLDED)
def test_common_scales_are_folded_many_times(spec: str, rate: str, scale: float) -> None:
    data = stream(seed=6, rows=15_000, features=8, scale=scale)
    model = model_of(spec, rate=rate)
    path, places = oracle_of(model, data, keep_path=True).path, folds(model, data)
    assert path is not None
    assert len(places) > 4
    for place in (places[0], places[1], places[len(places) // 2], places[-1]):
        for rows in (place, place + 1, place + 20):  # later steps may hide a wrong fold
            w = path[min(rows, len(data.y))]
            expected = Trace(w[:-1], w[-1], np.empty(0), np.empty(0), None)
            agree(model_of(spec, rate=rate), first(data, rows), EXACT, expected)


def test_generations_are_counted_anew_before_float32_cannot() -> None:
    """A rule that sets all weights to zero at once, started as if this had happened 2^23 - 2 times."""
    data = stream(seed=7, rows=400, features=8, density=0.2)
    late, early = (model_of("fobos-l2norm:l2norm=0.6", dtype="float32") for _ in range(2))
    state = {name: array.copy() for name, array in late.state().items()}
    place = late.rule.CLOCK.index("generation")
    state["clock"][place] = 2.0**23 - 2.0
    late.restore(state)
    highest, deaths = 0.0, 0
    for i in range(len(data.y)):
        for model in (late, early):
            model.learn(data.chunk, i, i + 1)
        highest = max(highest, late.state()["clock"][place])
        deaths += early.nonzero == 0
        assert read_weights(late, 8).tobytes() == read_weights(early, 8).tobytes()
    assert late.state()["clock"][place] < 2.0**20 < highest <= 2.0**23
    assert 10 < deaths < 390


def folds(model: Model, data: Stream) -> list[int]:
    """The numbers of examples after which the common scale is folded, seen in the clock."""
    scale = model.rule.CLOCK.index("product" if "product" in model.rule.CLOCK else "scale")
    places, before = [], 1.0
    for i in range(len(data.y)):
        model.learn(data.chunk, i, i + 1)
        after = model.state()["clock"][scale]
        if not 2.0**-20 < after / before < 2.0**20:
            places.append(i + 1)
        before = after
    return places


def first(data: Stream, rows: int) -> Stream:
    return Stream(data.chunk.rows(0, rows), data.X[:rows], data.y[:rows], data.importance[:rows])
