"""Law 1: lazy is eager. Every rule of the registry, in every setting, with every loss, against its oracle."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import eager, oracles
from tests.covering import covering_for
from tests.laws import ORDINARY, ordinary, progressive, rounding, vanishing_values
from tests.oracles import ORACLES, Trace
from tests.plain import compiled_if, not_compiled
from tests.streams import (
    CALM,
    FLAT,
    KINDS,
    LONG,
    LOSSES,
    NOTICEABLE,
    RATE,
    RATES,
    RULES,
    Stream,
    case,
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
from thresher.learning.model.model import Model

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


def test_every_rule_has_an_oracle_and_settings_that_name_it() -> None:
    for name in RULES:
        assert name in ORACLES, (
            f"write the dense recursion of {name} in tests/oracles.py and name it in ORACLES"
        )
        for spec in settings_of(name):
            parts.make("rule", spec)


@cache
def short(domain: str) -> Stream:
    """Long enough for each rule to truncate, forget or begin a new stage more than once."""
    return stream(seed=1, rows=64, domain=domain)


@pytest.mark.parametrize("name", RULES)
def test_lazy_is_eager(name: str) -> None:
    for spec, loss, intercept in covering_for(name, settings_of(name), LOSSES, (True, False)):
        with case(spec, loss, intercept), not_compiled():  # compiling each pair would take a second
            model = model_of(spec, loss, intercept=intercept)
            expected = check(model, short(domain_of(loss)), EXACT)
            learned = np.abs(expected.weights).max() > 1e-3 or np.abs(expected.margins).max() > 1e-3
            assert learned or not expected.losses.any(), "nothing learned"


@pytest.mark.parametrize("name", [name for name in RULES if has_rate(name)])
def test_lazy_is_eager_at_every_rate(name: str) -> None:
    data = stream(seed=2, rows=80)
    for spec, rate in covering_for(name, settings_of(name), [*RATES.values()]):
        with case(spec, rate), not_compiled():
            check(model_of(spec, rate=rate), data, EXACT)


def test_every_rate_is_among_those_tested() -> None:
    assert set(RATES) == set(parts.REGISTRY["rate"])


@pytest.mark.parametrize("name", RULES)
def test_single_precision_is_near(name: str) -> None:
    specs = settings_of(name)
    for spec, loss in [*((spec, "logistic") for spec in specs), (specs[0], "squared")]:
        data = stream(seed=5, rows=100, domain=domain_of(loss), scale=0.5)
        with case(spec, loss), compiled_if(loss == "logistic"):
            check(model_of(spec, loss, dtype="float32"), data, SINGLE)


PENALTIES = (0.0, 1e-16, 1e-13, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
NOTHING = 1e-10  # a penalty that cannot matter, so the reference has none
STEPS = {"normals": RATE, "prices": "power:0.0137,10,0.5", "counts": "power:0.0137,10,0.5"}


def penalised(name: str, by: float) -> str:
    fields = CALM.get(name, {}) | dict.fromkeys(parts.lookup("rule", name).PENALTIES, by)
    return f"{name}:{','.join(f'{field}={value}' for field, value in fields.items())}"


def rounds_little(name: str, rows: int, cases: Sequence[tuple[Any, ...]]) -> int:
    """In either dtype, the rule learns what it learns in float64; the number of cases that can be learned."""
    compared, dtypes = 0, sorted({"float64", parts.lookup("rule", name).DTYPE})
    for by, what, loss in cases:
        data, rate = ordinary(what, rows, domain_of(loss)), STEPS[what]
        with case(name, by, what, loss), np.errstate(all="ignore"):
            exact = model_of(penalised(name, by if by > NOTHING else 0.0), loss, rate=rate)
            expected = progressive(exact, data)
            for dtype in dtypes:
                found = model_of(penalised(name, by), loss, rate=rate, dtype=dtype)
                compared += rounding(expected, found, data)
    return compared


@pytest.mark.parametrize("name", [*KINDS, "cumulative"])
def test_rounding_matters_little_on_ordinary_data(name: str) -> None:
    """Unit normals, prices and counts; penalties from what no dtype resolves to what leaves no weight.

    Many rows for a rule of each kind, which are compiled in both dtypes; few for all rules and losses, below.
    """
    strengths = PENALTIES if parts.lookup("rule", name).PENALTIES else PENALTIES[:1]
    assert rounds_little(name, 5_000, covering_for(name, strengths, ORDINARY, ["logistic"]))


@pytest.mark.parametrize("name", RULES)
def test_rounding_matters_little_with_any_loss(name: str) -> None:
    with not_compiled():
        assert rounds_little(name, 200, covering_for(name, PENALTIES, ORDINARY, LOSSES))


@st.composite
def streams(draw: st.DrawFn, domain: str) -> Stream:
    """Any pattern of features and importances; the values are random, so there are no ties."""
    features, rows = draw(st.integers(1, 6)), draw(st.integers(0, 40))
    drawn = np.frombuffer(draw(st.binary(min_size=rows, max_size=rows)), np.uint8)
    stored = (drawn[:, np.newaxis] >> np.arange(features) & 1).astype(bool)
    importance = np.array([0.0, 0.3, 1.0, 2.5])[drawn >> 6]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = np.where(stored, rng.uniform(-1, 1, stored.shape), 0.0)
    y = labels_of(domain, rng.normal(size=rows), rng)
    return stream_of(X, stored, y, importance)


@pytest.mark.parametrize("name", RULES)
@given(st.data())
def test_lazy_is_eager_on_any_stream(name: str, data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from(settings_of(name)))
    loss = data.draw(st.sampled_from(LOSSES))
    intercept = data.draw(st.booleans())
    examples = data.draw(streams(domain_of(loss)))
    with not_compiled():
        check(model_of(spec, loss, intercept=intercept), examples, EXACT)


@pytest.mark.parametrize("name", RULES)
def test_vanishing_values_leave_weights_finite(name: str) -> None:
    for spec in settings_of(name):
        for dtype in ("float32", "float64"):
            with case(spec, dtype), compiled_if(dtype == "float32"):
                vanishing_values(partial(model_of, spec, dtype=dtype))


# Many steps, with settings under which weights keep becoming zero and nonzero: a million for some rules,
# whose oracles are compiled too, thousands for all. In float32, the default dtype.


def compiled_oracle_of(model: Model, data: Stream) -> Trace:
    name = parts.part_name(type(model.rule))
    w = eager.run(name, model.rule, model.loss, data.X, data.y, data.importance, intercept=True)
    return Trace(w[:-1], float(w[-1]), np.empty(0), np.empty(0), None)


def agree(model: Model, expected: Trace, tolerance: float) -> bool:
    found = read_weights(model, len(expected.weights))
    scale = np.abs(expected.weights).max()
    assert np.abs(found - expected.weights).max() <= tolerance * max(1.0, scale)
    assert abs(model.intercept - expected.intercept) <= tolerance * max(1.0, scale)
    return bool(scale > 1e-3)


FOLDED = [
    ("fobos:l1=1e-4,l2=1", FLAT, 1.0),  # the product grows by 2^40 every 291 steps
    ("pegasos:l2=1e-3,skip_correct=true", RATE, 300.0),  # each step is projected by a large factor
    ("pegasos:l2=1e-3", RATE, 300.0),
    ("l2-ball:radius=0.1", RATE, 30.0),
    ("fobos-l2norm:l2norm=0.2", FLAT, 1.0),
]


def gentle(name: str) -> str:
    fields = dict.fromkeys(parts.lookup("rule", name).PENALTIES, NOTICEABLE / 10) or CALM.get(name, {})
    return f"{name}:{','.join(f'{field}={value}' for field, value in fields.items())}"


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
    for dtype, tolerance in (("float32", SINGLE), ("float64", EXACT)):
        model = model_of(gentle(name), dtype=dtype)
        model.learn(million.chunk)
        assert agree(model, expected, tolerance), "nothing to compare"


@pytest.mark.parametrize("name", RULES)
def test_thousands_of_steps(name: str) -> None:
    data, model = stream(seed=5, rows=2000, features=8), model_of(gentle(name), dtype="float32")
    model.learn(data.chunk)
    assert agree(model, oracle_of(model_of(gentle(name)), data), SINGLE), "nothing to compare"


@pytest.mark.parametrize(("spec", "rate", "scale"), FOLDED)
def test_common_scales_are_folded_many_times(spec: str, rate: str, scale: float) -> None:
    """Right after a fold the weights are compared, and after some steps: many steps may hide a wrong one."""
    data = stream(seed=6, rows=2000, features=8, scale=scale)
    with compiled_if(name_of(spec) in LONG):
        model = model_of(spec, rate=rate)
        path, last, compared = oracle_of(model, data, keep_path=True).path, -100, 0
        assert path is not None
        for rows, folded in enumerate(folding(model, data), 1):
            last = rows if folded else last
            if rows - last in (0, 1, 20):
                w = path[np.count_nonzero(data.importance[:rows])]
                compared += agree(model, Trace(w[:-1], w[-1], np.empty(0), np.empty(0), None), EXACT)
    assert compared > 12


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


def folding(model: Model, data: Stream) -> Iterator[bool]:
    """Learn example by example; whether the common scale is folded after it, seen in the clock."""
    scale = model.rule.CLOCK.index("product" if "product" in model.rule.CLOCK else "scale")
    before = 1.0
    for i in range(len(data.y)):
        model.learn(data.chunk, i, i + 1)
        after = model.state()["clock"][scale]
        yield not 2.0**-20 < after / before < 2.0**20
        before = after
