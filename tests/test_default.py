"""What the default promises: no scales to choose, no noise features, one example or many at a step."""

import gzip
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracles import run
from tests.plain import compiled_if, not_compiled
from tests.streams import Stream, Vector, model_of, read_weights, stream, stream_of
from tests.test_laws_of_state import make_small
from thresher import TroubleWarning, evaluate, train
from thresher.cli.main import status_of
from thresher.data.chunk import Chunk
from thresher.engine.kernels import LAST_MARGIN
from thresher.learning.files import model_file
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.parts import SpecError, spec_of
from thresher.parts.ft_ftrl_state import SPREAD
from thresher.parts.rules.ft_ftrl import FtFtrl
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

POWERS = 2.0 ** np.array([0, 30, -30, 5, -7, 12, 1, -60])


def test_all_ways_to_train_have_the_same_default(capsys: pytest.CaptureFixture[str]) -> None:
    makers: list[Any] = [train, Model, SparseOnlineClassifier, SparseOnlineRegressor]
    rules = {inspect.signature(maker).parameters["rule"].default for maker in makers}
    assert rules == {"ft-ftrl"}
    assert status_of(["train", "--help"]) == 0
    assert "[default: ft-ftrl]" in " ".join(capsys.readouterr().out.split())


def test_the_knob_has_one_name_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`l1` and `alpha` beside the rule are those of its SPEC; they are errors for rules without them."""
    data, expected = (
        stream(46, 60, 8),
        "ft-ftrl:alpha=2.0,l1=0.5,adapt=0.3,forget=0.0,group=single,relax=0.25,taper=1500.0,half_life=inf",
    )
    assert spec_of(Model(l1=0.5, alpha=2).rule) == expected
    assert spec_of(train(data.chunk, l1=0.5, alpha=2).rule) == expected
    for estimator in (SparseOnlineClassifier, SparseOnlineRegressor):
        fitted = estimator(l1=0.5).set_params(rule__alpha=2).fit(data.X, np.sign(data.y))
        assert spec_of(fitted._model.rule) == expected
    rows, model = tmp_path / "rows.svm", tmp_path / "a.model"
    rows.write_text("1 1:1 2:3\n-1 2:1\n" * 20)
    told = ["train", str(rows), "-m", str(model), "--no-cache"]
    assert status_of([*told, "--l1", "0.5", "--alpha", "2"]) == 0
    assert model_file.read(model)[0]["recipe"]["rule"] == expected
    assert status_of([*told, "--rule", "sgd", "--l1", "0.5"]) == 2
    assert "sgd has no parameter l1" in capsys.readouterr().err
    assert status_of([*told, "--l1", "nan"]) == 2


def margins_of(model: Model, chunk: Chunk) -> Vector:
    """The loss of each example before it was learned."""
    found = np.zeros(len(chunk))
    for i in range(len(chunk)):
        model.learn(chunk, i, i + 1)
        found[i] = model.state()["tally"][LAST_MARGIN]
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_powers_of_two_in_a_feature_change_no_bit_of_a_prediction(loss: str, dtype: str) -> None:
    data = stream(43, 300, 8)
    other = stream_of(data.X * POWERS, data.X != 0, data.y, data.importance)
    with not_compiled():
        ours, theirs = (model_of("ft-ftrl:l1=0.5", loss, dtype=dtype) for _ in range(2))
        assert (margins_of(ours, data.chunk) == margins_of(theirs, other.chunk)).all()
    assert (read_weights(theirs, 8) * POWERS == read_weights(ours, 8)).all()
    assert np.abs(read_weights(ours, 8)).max() > 0.1


@pytest.mark.parametrize("power", [-40, 20])
@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile:tau=0.25"])
def test_powers_of_two_in_the_targets_change_predictions_alone(loss: str, power: int) -> None:
    data = stream(44, 300, 8, domain="real")
    other = stream_of(data.X, data.X != 0, data.y * 2.0**power, data.importance)
    with not_compiled():
        ours, theirs = (model_of("ft-ftrl:l1=0.5", loss) for _ in range(2))
        margins = margins_of(ours, data.chunk), margins_of(theirs, other.chunk)
    assert (margins[0] * 2.0**power == margins[1]).all()
    assert np.ptp(margins[0]) > 0.1


@pytest.mark.parametrize("rows", [500, 20_000])
@pytest.mark.parametrize("density", [0.05, 1.0])
def test_so_many_standard_deviations_of_noise_are_left_out(rows: int, density: float) -> None:
    """Random labels: |z| exceeds l1 standard deviations no more often than a normal variable does."""
    rng = np.random.default_rng(rows)
    features = 200
    shares = {1.0: 0.317, 2.0: 0.0455}
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < density)
    noise = stream_of(X, X != 0, rng.choice([-1.0, 1.0], rows), np.ones(rows))
    for l1, share in shares.items():
        model = Model(f"ft-ftrl:l1={l1}")
        model.learn(noise.chunk)
        found, error = model.nonzero / features, np.sqrt(share / features)
        assert 0.6 * share - 2 * error < found < share + 3 * error


@pytest.mark.parametrize(("rows", "share"), [(2000, 0.02), (20_000, 0.01), (5000, 0.99)])
def test_rare_events_are_predicted_better_than_by_their_share(rows: int, share: float) -> None:
    """Ten of 250 features in a row, a fifth of them informative; so many positives, or negatives."""
    rng = np.random.default_rng(rows)
    drawn = rng.choice(
        250, size=(rows + 10_000, 10), p=1 / np.arange(10, 260) / (1 / np.arange(10, 260)).sum()
    )
    X = np.zeros((rows + 10_000, 250), np.float32)
    X[np.arange(len(X))[:, np.newaxis], drawn] = 1
    margins = X @ (rng.normal(size=250) * (rng.random(250) < 0.2)) + rng.logistic(size=len(X))
    y = margins > np.quantile(margins, 1 - share)
    model = train(X[:rows], y[:rows])
    assert evaluate(model, X[rows:], y[rows:])["normalised_entropy"] < 0.98


def test_noise_beside_rare_labels_is_left_out_too() -> None:
    """Of 200 random columns in 2,000 rows with 2 % positives, each is in 100 rows: two positives."""
    rng = np.random.default_rng(2000)
    X = (rng.random((2000, 200)) < 0.05).astype(np.float64)
    noise = stream_of(X, X != 0, np.where(rng.random(2000) < 0.02, 1.0, -1.0), np.ones(2000))
    for l1, share in ((1, 0.317), (2, 0.0455)):
        model = Model(l1=l1)
        model.learn(noise.chunk)
        assert model.nonzero / 200 < share + 3 * np.sqrt(share / 200)


def repeated(data: Stream, passes: int) -> dict[str, Any]:
    return {name: np.concatenate([getattr(data, name)] * passes) for name in ("X", "y", "importance")}


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("relax", [0.0, 0.1, 0.7])
@pytest.mark.parametrize(("count", "features", "positives"), [(60, 8, 0), (150, 4, 0), (150, 4, 8)])
def test_a_later_pass_is_no_new_evidence(relax: float, count: int, features: int, positives: int) -> None:
    """In later passes threshold and steps are those of the dense recursion, and the last shrink nothing."""
    data, passes = stream(45, count, features), 3
    if positives:
        few = np.where(np.argsort(np.argsort(data.X[:, 0])) < positives, 1.0, -1.0)
        data = stream_of(data.X, data.X != 0, few, data.importance)
    spec = f"ft-ftrl:alpha=0.3,l1=0.5,relax={relax},taper=0"
    rows = repeated(data, passes)
    told, untold = model_of(spec), model_of(spec)
    for number in range(1, passes + 1):
        told.begin_pass(number, passes)
        told.learn(data.chunk)
        untold.learn(data.chunk)
        told.begin_pass(number, passes)  # twice, as after a stop: nothing changes
    trained = train(data.chunk, spec, passes=passes, dtype="float64", cache=False, centre=False)
    expected = run("ft-ftrl", told.rule, told.loss, **rows, intercept=True, passes=passes)
    assert np.allclose(read_weights(told, features), expected.weights, rtol=0, atol=1e-10)
    assert (np.abs(read_weights(untold, features) - expected.weights).max() > 1e-3) == (
        features == 8 or positives > 0 or relax > 0
    )
    assert (read_weights(trained, features) == read_weights(told, features)).all()


def test_the_last_passes_learn_the_weights_that_were_chosen() -> None:
    """They are the nonzero ones of the passes before, and not shrunk. Rows after them go on from there."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(300, 40))
    y = np.where(rng.random(300) < 1 / (1 + np.exp(-2 * X[:, :4].sum(axis=1))), 1.0, -1.0)
    data = stream_of(X, X != 0, y, np.ones(300))
    before, shrunk, free = (
        read_weights(train(data.chunk, f"ft-ftrl:l1=3,relax={relax}", passes=passes), 40)
        for passes, relax in ((2, 0.0), (4, 0.0), (4, 0.5))
    )
    assert ((before != 0) == (np.arange(40) < 4)).all()
    assert ((free != 0) == (before != 0)).all()
    assert (free[:4] > 1.05 * shrunk[:4]).all()
    assert np.count_nonzero(shrunk) > 4
    model = train(data.chunk, "ft-ftrl:l1=3,relax=1", passes=4)
    assert model.state()["clock"][FtFtrl.CLOCK.index("pass")] == 4.0
    at_end = read_weights(model, 40)
    model.learn(data.chunk, 0, 1)
    assert 0 < np.abs(read_weights(model, 40) - at_end).max() < 0.05


@pytest.mark.usefixtures("plainly")
def test_with_a_group_no_pass_is_relaxed() -> None:
    data = stream(45, 60, 8)
    chunk = replace(data.chunk, labels=np.arange(60, dtype=np.float32) % 3 + 1)
    spec = "ft-ftrl:l1=0.5,group={},relax={}"
    for group, same in (("l2", True), ("single", False)):
        plain, relaxed = (
            train(chunk, spec.format(group, relax), loss="softmax", outputs="classes:3", passes=3)
            for relax in (0, 1)
        )
        assert (plain.state()["S"].tobytes() == relaxed.state()["S"].tobytes()) == same


def test_a_high_threshold_still_leaves_few_weights_to_noise_after_five_passes() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, 300))
    noise = stream_of(X, X != 0, rng.choice([-1.0, 1.0], 1000), np.ones(1000))
    with pytest.warns(TroubleWarning, match="no feature has a weight"):
        once, often = (train(noise.chunk, l1=3, passes=passes).nonzero for passes in (1, 5))
    assert once <= often <= 6


def test_steps_go_on_adapting_only_if_there_are_many_examples_per_feature() -> None:
    rng = np.random.default_rng(7)
    for rows, adapts in ((90, True), (89, False)):
        X = rng.normal(size=(rows, 3))
        data = stream_of(X, X != 0, np.where(X[:, 0] > 0, 1.0, -1.0), np.ones(rows))
        clocks = [train(data.chunk, passes=passes).state()["clock"] for passes in (1, 2)]
        h, spread = (
            np.array([clock[FtFtrl.CLOCK.index(name)] for clock in clocks]) for name in ("h", "spread")
        )
        assert (spread[1] > spread[0] > 0) == adapts
        assert (h[1] > h[0]) == adapts


def test_what_is_forgotten_frees_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of six features in a row, three are frequent, one of them informative; three occur only once."""
    make_small(monkeypatch)
    rng, rows = np.random.default_rng(6), 5000
    keys = np.concatenate([rng.integers(0, 40, (rows, 3)), 40 + np.arange(3 * rows).reshape(rows, 3)], axis=1)
    y = np.where((keys[:, :3] < 10).any(axis=1), 1.0, -1.0)
    chunk = Chunk.from_csr(np.arange(0, 6 * rows + 1, 6), keys.ravel(), np.ones(6 * rows), y)
    kept, forgetful = Model("ft-ftrl"), Model("ft-ftrl:forget=200")
    for model in (kept, forgetful):
        model.learn(chunk)
    assert len(kept.state()["S"]) >= kept.features_seen > 3 * rows
    assert len(forgetful.state()["S"]) < 0.4 * kept.features_seen
    assert forgetful.tally.average == pytest.approx(kept.tally.average, rel=0.05)
    assert 30 < forgetful.nonzero <= kept.nonzero


@pytest.mark.usefixtures("plainly")
def test_an_outlier_does_not_make_steps_explode() -> None:
    data = stream(47, 800, 8, domain="real")
    y = data.y.copy()
    y[400] *= 1e3
    other = stream_of(data.X, data.X != 0, y, data.importance)
    models = [train(one.chunk, "ft-ftrl", loss="squared", passes=1) for one in (data, other)]
    errors = [float(np.mean((model.predict(data.chunk) - data.y) ** 2)) for model in models]
    assert max(errors) < 0.5 * float(np.var(data.y))


def pinball(errors: Vector, tau: float) -> float:
    return float(np.mean(np.where(errors > 0, tau * errors, (tau - 1) * errors)))


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("tau", [0.0001, 0.999])
def test_quantiles_far_from_the_middle_do_not_run_away(tau: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    y = X @ np.array([2.0, 1, -1, 0.5, 0, 0]) + rng.normal(size=2000)
    data = stream_of(X, X != 0, y, np.ones(2000))
    predicted = train(data.chunk, loss=f"quantile:tau={tau}", passes=1).predict(data.chunk)
    assert pinball(data.y - predicted, tau) < 3 * pinball(data.y - np.quantile(data.y, tau), tau)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile:tau=0.3", "huber"])
def test_labels_may_lie_anywhere(loss: str) -> None:
    data = stream(50, 300, 8, domain="real")
    near, far = (
        stream_of(data.X, data.X != 0, np.round(data.y * 16) / 16 + k, data.importance) for k in (0, 4096)
    )
    margins = [train(one.chunk, loss=loss).predict(one.chunk) - k for one, k in ((near, 0), (far, 4096))]
    assert np.abs(margins[0] - margins[1]).max() < 1e-3


def classes_told_by(told: int, columns: int, classes: int, rows: int, seed: int) -> tuple[Chunk, Vector]:
    """Dense rows whose first columns are informative for every class; classes start at 1."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(rows, columns)).astype(np.float32), np.zeros((columns, classes))
    W[:told] = rng.normal(size=(told, classes))
    y = (X @ W + rng.gumbel(size=(rows, classes))).argmax(axis=1) + 1.0
    keys = np.tile(np.arange(columns), rows)
    return Chunk.from_csr(np.arange(rows + 1) * columns, keys, X.ravel(), y), y


def test_a_group_finds_the_features_that_outputs_share() -> None:
    """Ten of 150 columns are informative for all five classes: groups keep fewer columns, with less loss."""
    chunk, _ = classes_told_by(10, columns=150, classes=5, rows=2000, seed=0)
    found = []
    for spec in ("l1=1.5,group=l2", "l1=1", "l1=2"):
        model = Model(f"ft-ftrl:{spec}", "softmax", outputs="classes:5")
        model.learn(chunk)
        alive = np.count_nonzero(model.weights()[1], axis=1)
        found.append((model.tally.average, len(alive), set(alive)))
    (loss, live, sizes), *alone = found
    assert sizes == {5}
    assert 8 <= live <= 20
    for other, kept, _ in alone:
        assert loss < 0.98 * other
        assert live < 0.7 * kept


def test_a_group_cannot_forget() -> None:
    with pytest.raises(SpecError, match="forget does not work with a group"):
        Model("ft-ftrl:forget=10,group=l2", "softmax", outputs="classes:3")


@pytest.mark.parametrize(("group", "loss"), [("single", "logistic"), ("l2", "softmax")])
def test_a_group_does_not_mind_the_scale_of_a_feature_in_float32(group: str, loss: str) -> None:
    """Compiled, because squares near the limits of float32 are not finite there."""
    rng, columns = np.random.default_rng(8), 6
    X = rng.normal(size=(200, columns)).astype(np.float32)
    y = (X[:, :3] + 0.5 * rng.normal(size=(200, 3))).argmax(axis=1) + 1.0
    found = []
    for power in (0, -90, 90):
        values = X.copy()
        values[:, 1] *= np.float32(2.0**power)
        chunk = Chunk.from_csr(np.arange(201) * columns, np.tile(np.arange(columns), 200), values.ravel(), y)
        model = Model(f"ft-ftrl:l1=0.5,group={group}", loss, outputs="classes:3")
        model.learn(chunk)
        found.append(model.predict(chunk))
    assert np.abs(found[0]).max() > 0.5
    assert all((margins == found[0]).all() for margins in found)


def test_a_single_pass_after_several_adapts_the_step_size_again() -> None:
    data = stream(3, rows=300, features=40)
    with not_compiled():
        several: Any = train(data.chunk.rows(0, 100), passes=5)
        rest = data.chunk.rows(100, 300)
        once: Any = train(rest, continue_from=several, passes=1)
        again: Any = train(rest, continue_from=several, passes=5)
    spreads = [one.state()["clock"][SPREAD] for one in (several, once, again)]
    assert [spread > 0 for spread in spreads] == [False, True, False]


RCV1 = Path("examples/data/rcv1_train2000.dat.gz")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_that_all_but_cancels_out_is_no_scale(dtype: str) -> None:
    """Two examples pull a new feature in opposite directions, almost equally: the step size is as usual."""
    rows = [(1.0, {1: 1.0, 7: 1.0}), (-1.0, {7: 1.000001}), (1.0, {1: 1.0}), (-1.0, {2: 1.0})]
    with not_compiled():
        model = Model("ft-ftrl:l1=0", batch=2, intercept=False, dtype=dtype, centre=False)
        model.learn(Chunk.of_rows(rows))
        weights = dict(zip(*model.weights(), strict=True))
    assert 0 < abs(weights[7]) < abs(weights[1]) < 10


@pytest.mark.parametrize(
    ("dtype", "rows", "l1s", "batches"),
    [("float32", 400, [0.001, 1.0], [1, 7, 50])],
)
def test_steps_on_many_examples_learn_next_to_as_well(
    dtype: str, rows: int, l1s: list[float], batches: list[int], tmp_path: Path
) -> None:
    """A low threshold keeps features with almost no gradient, with weights of the usual size."""
    lines = gzip.decompress(RCV1.read_bytes()).splitlines(keepends=True)
    learned, held = tmp_path / "learned.svm", tmp_path / "held.svm"
    learned.write_bytes(b"".join(lines[:rows]))
    held.write_bytes(b"".join(lines[rows : 2 * rows]))
    with compiled_if(dtype == "float32"):
        for l1 in l1s:
            losses = [
                evaluate(train(learned, l1=l1, batch=batch, dtype=dtype, passes=2), held)["loss"]
                for batch in batches
            ]
            assert max(losses[1:]) < 1.1 * losses[0] < 0.5


def test_a_batch_that_is_not_learned_is_not_measured() -> None:
    """The second example has no finite loss; the clocks are as they were before the first."""
    with not_compiled(), np.errstate(all="ignore"):
        options: dict[str, Any] = {"batch": 2, "intercept": False, "dtype": "float64", "centre": False}
        model = Model("ft-ftrl:l1=0", "squared", **options)
        model.learn(Chunk.of_rows([(1.0, {1: 1.0}), (0.0, {2: 1.0})]))
        state = model.state()
        state["S"][:, 0][state["S"][:, 4] > 0] = 1e200
        model.restore(state)
        before = {name: model.state()[name].copy() for name in ("clock", "bclock")}
        with pytest.raises(DivergedError, match="the loss of example 3 is not finite"):
            model.learn(Chunk.of_rows([(3.0, {1: 1.0}), (1.0, {2: 1.0})]))
    assert all((model.state()[name] == before[name]).all() for name in before)
    assert before["clock"][0, 0] == 1
