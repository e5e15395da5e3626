"""Each problem gives one warning with a remedy; similar but harmless data give none."""

import json
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from tests.plain import compiled_if, not_compiled
from tests.streams import cut
from thresher import Chunk, TroubleWarning, cv, ensemble, evaluate, path, train, tune
from thresher.data.layout import SettledLayout
from thresher.data.stored import read, said
from thresher.learning.diagnostics.advice import scale_remedy
from thresher.learning.diagnostics.findings import worse_than_base
from thresher.learning.diagnostics.run_findings import Run, troubles_of
from thresher.learning.diagnostics.stream_statistics import StreamStatistics, base_rate_loss
from thresher.learning.model.model import Model
from thresher.learning.model.objective import Objective
from thresher.learning.model.recipe import Recipe

OTHERWISE = {"rule", "loss", "outputs", "admit", "scale"}
"""Options that make a model learn with other compiled code than the default, which many tests need."""


pytestmark = pytest.mark.usefixtures("as_commands_say")


def warned(data: Any, **options: Any) -> dict[str, str]:
    """The warnings of a training by name; each was also issued once as a Python warning."""
    default = not OTHERWISE & options.keys()
    with compiled_if(default), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = train(data, **options)
    heard = [str(one.message) for one in caught if one.category is TroubleWarning]
    assert heard == [f"{message} [{name}]" for name, message in model.warnings]
    assert all("\n" not in one for one in heard)
    return dict(model.warnings)


def clicks(n: int, *more: float, seed: int = 0, shift: float = 0.0) -> list[tuple[float, dict[int, float]]]:
    """Rows with three features, one of them informative, and in every row `more` with these values."""
    chance = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        site = int(chance.integers(1, 3))
        label = float(chance.random() < (0.3 if site == 1 else 0.7) + shift)
        rows.append((label, {site: 1.0, 3: float(chance.random()), **dict(enumerate(more, 4))}))
    return rows


chunk = Chunk.of_rows


def table(n: int = 400, **columns: Any) -> pa.Table:
    labels = [label for label, _ in clicks(n)]
    sites = [f"s{min(row)}" for _, row in clicks(n)]
    return pa.table({"label": labels, "site": sites, **columns})


HOUR = [14102100 + k % 24 for k in range(400)]


def test_features_of_very_different_scale_are_named_with_the_option() -> None:
    found = warned(table(hour=HOUR), rule="ftrl")
    assert list(found) == ["scales"]
    assert "column hour up to 14,102,123" in found["scales"]
    assert "--scale max-abs" in found["scales"]


@pytest.mark.parametrize("options", [{"rule": "ftrl", "scale": "max-abs"}, {"rule": "normalized"}, {}])
def test_what_copes_with_scales_is_not_warned_of_them(options: dict[str, Any]) -> None:
    assert warned(table(hour=HOUR), **options) == {}


def test_features_without_columns_are_numbered() -> None:
    found = warned(chunk(clicks(400, 1e6)), rule="ftrl")
    assert list(found) == ["scales"]
    assert "feature 4 up to 1,000,000" in found["scales"]
    assert warned(chunk(clicks(400, 1.0)), rule="ftrl") == {}


def test_a_hold_out_decides_if_it_is_large() -> None:
    rows = clicks(600, 1e6)
    assert "the held-out loss" in warned(chunk(rows), rule="ftrl", holdout="every-5th")["scales"]
    # With 19 held-out examples, most may be wrong by chance.
    rows = clicks(400)
    held = [(1.0 - label, features) for label, features in clicks(119)]
    assert "the held-out loss" in warned(chunk(rows), holdout=chunk(held), passes=1)["worse-than-constant"]
    assert warned(chunk(rows), holdout=chunk(held[:19]), passes=1) == {}


def test_the_remedy_for_scales_names_no_rule_like_the_one_in_use() -> None:
    remedies = {name: scale_remedy(Recipe(name, "logistic")) for name in ("ft-ftrl", "normalized", "ftrl")}
    assert "--rule" not in remedies["ft-ftrl"] + remedies["normalized"]
    assert "--scale max-abs" in remedies["ft-ftrl"]
    assert "--rule ft-ftrl" in remedies["ftrl"]


@pytest.mark.parametrize(("noise", "share"), [(0.03, 0.2), (0.05, 0.5)])
def test_labels_that_are_sorted_but_for_some_noise(noise: float, share: float) -> None:
    chance = np.random.default_rng(8)
    labels = (np.arange(3000) < share * 3000) ^ (chance.random(3000) < noise)

    def data(labels: NDArray[np.bool_]) -> Chunk:
        return Chunk.from_csr(range(3001), chance.integers(0, 9, 3000), np.ones(3000), labels)

    assert "nearly all labels are the same" in warned(data(labels), l1=0.0)["sorted-labels"]
    for sane in (chance.permutation(labels), np.repeat(chance.permutation(labels[::10]), 10)):
        assert "sorted-labels" not in warned(data(sane), l1=0.0)


@pytest.mark.parametrize("label", [1, 0])
def test_labels_that_are_all_the_same(label: int) -> None:
    data = Chunk.from_csr(range(151), [1] * 150, [1.0] * 150, [label] * 150)
    assert "all 150 labels are the same" in warned(data)["one-label"]
    assert "one-label" not in warned(data, loss="squared")


def test_classes_with_a_row_or_two() -> None:
    def found(labels: list[str], outputs: str = "classes") -> dict[str, str]:
        return warned(([{"a": 1.0}] * len(labels), labels), outputs=outputs, passes=1)

    words = ["ham", "spam"] * 60
    said = found([*words, "spma"])["lone-class"]
    assert said.startswith("1 of 3 classes have a row or two (spma: 1), and may take many predictions")
    assert "name the classes: --classes" in said
    assert (
        "2 of 4 classes have a row or two (spma: 2, hma: 1)"
        in found([*words, *["spma"] * 2, "hma"])["lone-class"]
    )
    ids = found([f"u{k}" for k in range(150)])
    assert "150 of 150 classes" in ids["lone-class"]
    assert "sorted-labels" not in ids  # though their numbers rise
    for sane in ([*words, *["spma"] * 3], [*words[:80], "rare"]):
        assert "lone-class" not in found(sane)
    with pytest.warns(TroubleWarning, match="no feature has a weight"):
        begun = train(([{"a": 1.0}] * 120, words), outputs="classes", passes=1)
    for labels, lone in ((["ham"] * 120 + ["spam"], False), ([*words, "spma"], True)):
        data = [{"a": 1.0}] * len(labels), labels
        assert ("lone-class" in warned(data, continue_from=begun, passes=1)) is lone
    assert "lone-class" not in found([*words, "spma"], "classes:1-3")
    assert "go on with --continue" in found(["ham"] * 150)["one-label"]


@pytest.mark.parametrize("word", ["nan", "NA", "?"])
def test_a_class_that_may_mean_a_missing_label(word: str) -> None:
    data = table().set_column(0, "label", pa.array([("a", "b", word)[k % 3] for k in range(400)]))
    found = warned(data, outputs="classes")
    assert f"the label {word} is a class of its own" in found["missing-labels"]
    assert "missing-labels" not in warned(data, outputs="classes", classes=("a", "b"), on_error="skip")


@pytest.mark.parametrize("columns", [{"a": 3.0}, {"a": 0.0}, {"a": 2.0, "b": 0.0}])
def test_columns_that_do_not_vary(columns: dict[str, Any]) -> None:
    rows = pa.table({"label": [0, 1] * 80, **{name: [value] * 160 for name, value in columns.items()}})
    found = warned(rows)
    assert (
        found["no-weights"]
        == "no feature has a weight, because none varies: give columns whose values differ"
    )
    assert (
        "none varies" in warned(Chunk.from_csr(range(151), [1] * 150, [3] * 150, [1, -1] * 75))["no-weights"]
    )


def test_a_loss_worse_than_that_of_a_constant() -> None:
    noise = [(float(k * k % 7 < 3), {1: 1.0, 2 + k % 5: 1.0, 7 + k * 31 % 11: 1.0}) for k in range(600)]
    found = warned(chunk(noise), rule="sgd", rate="constant:9")
    assert list(found) == ["worse-than-constant"]
    assert "(rate, currently constant:eta0=9.0)" in found["worse-than-constant"]
    assert warned(chunk(noise), rule="sgd", rate="constant:0.1") == {}


@pytest.mark.parametrize(("loss", "unit"), [("poisson", 1.0), ("gamma", 100.0), ("tweedie", 100.0)])
def test_a_mean_that_is_an_exponential_is_worse_than_a_constant(loss: str, unit: float) -> None:
    """Whatever the unit: the worst loss of a constant was that of exp(label), which is infinite."""
    labels = unit * np.random.default_rng(0).integers(loss == "gamma", 12, size=200)
    head, seen = Objective(loss), StreamStatistics()
    seen.add(Chunk.from_csr(np.zeros(201, int), [], [], labels), None)
    model, base = Model(Recipe(loss=loss)), base_rate_loss(head, seen)
    assert base is not None
    for times, told in (1.3, False), (3.0, True):
        seen.passes = [(times * base * seen.weight, seen.weight, None)]
        seen.marks = [(200, *seen.passes[0][:2])]
        found = {one.name: one.message for one in troubles_of(Run(seen, model))}
        assert ("worse-than-constant" in found) == told
    unit_told = (
        "divide the labels by 700, multiply predictions by it, and use" in found["worse-than-constant"]
    )
    assert unit_told == (loss == "tweedie"), "poisson has counts of about 1, and gamma measures the unit"


def test_offsets_that_make_a_loss_worse_than_that_of_a_constant() -> None:
    rows = chunk([(float(k % 3), {1: k % 7 / 7}) for k in range(200)])
    poisson: dict[str, Any] = {"loss": "poisson", "rule": "sgd", "passes": 1}
    years = np.full(200, 5.0)
    assert (
        "check the offsets (of an exposure" in warned(rows, offsets=years, **poisson)["worse-than-constant"]
    )
    assert warned(rows, offsets=np.log(years), **poisson) == {}


@pytest.mark.parametrize(
    ("loss", "labels", "least"),
    [
        ("logistic", [1, 0, 0, 0] * 50, -0.25 * math.log(0.25) - 0.75 * math.log(0.75)),
        ("logistic", [1] + [0] * 9999, -1e-4 * math.log(1e-4) - 0.9999 * math.log(0.9999)),
        ("hinge", [1, 0, 0, 0] * 50, 0.5),
        ("squared", [1, 2, 3, 6] * 50, 3.5),
        ("absolute", [1, 2, 3, 60] * 50, 15.0),
        ("poisson", [1, 2, 3] * 50, (math.log(1 / 2) + 3 * math.log(3 / 2)) / 3),
    ],
)
def test_the_loss_of_the_best_constant(loss: str, labels: list[float], least: float) -> None:
    seen = StreamStatistics()
    seen.add(Chunk.from_csr(np.zeros(len(labels) + 1, int), [], [], labels), None)
    assert base_rate_loss(Objective(loss), seen) == pytest.approx(least, rel=0.02)


@pytest.mark.parametrize(
    ("loss", "classes", "least"),
    [("softmax", 3, math.log(3)), ("softmax", 1000, math.log(1000)), ("crammer-singer", 3, 1.0)],
)
def test_the_loss_of_the_best_constant_of_classes(loss: str, classes: int, least: float) -> None:
    """Of classes in turn a sample would have some alone: each stride-th."""
    seen, rows = StreamStatistics(), 3 * classes
    labels = 1 + np.arange(rows) % classes
    for part in np.split(labels, [classes // 2]):
        seen.add(Chunk.from_csr(np.zeros(len(part) + 1, int), [], [], part), None, 1)
    assert base_rate_loss(Objective(loss, f"classes:{classes}"), seen) == pytest.approx(least, rel=0.002)
    seen.add(Chunk.from_csr([0, 0], [], [], [1], [9.0]), None, 1)
    assert base_rate_loss(Objective(loss, f"classes:{classes}"), seen) is None


@pytest.mark.parametrize(("loss", "label"), [("perceptron", 1.0), ("wealth", 2.0), ("logistic", 1.0)])
def test_where_nothing_can_be_beaten_there_is_no_such_loss(loss: str, label: float) -> None:
    """The perceptron has no loss at zero, wealth grows without bound, and one class teaches nothing."""
    labels = [label] * 100 if loss == "logistic" else [label, 0.0] * 50
    seen = StreamStatistics()
    seen.add(Chunk.from_csr(np.zeros(101, int), [], [], labels), None)
    assert base_rate_loss(Objective(loss), seen) is None


def in_order(rows: list[tuple[float, dict[int, float]]]) -> Chunk:
    return chunk(sorted(rows, key=lambda row: row[0]))


def test_sorted_labels() -> None:
    rows = clicks(400)
    found = warned(in_order(rows))
    assert list(found) == ["sorted-labels"]
    assert "--order once" in found["sorted-labels"]
    assert "the label changes once in 400 rows" in found["sorted-labels"]
    assert warned(in_order(rows), order="once") == {}
    assert warned(chunk(rows)) == {}


@pytest.mark.parametrize("kept", [1, 5, 3])
def test_sorted_labels_are_noticed_whatever_is_held_out(kept: int) -> None:
    """16 runs of one label in 690 rows, of which every fifth, every third or none is held out."""
    rows = [(float(k // 44 % 2), row) for k, (_, row) in enumerate(clicks(690))]
    learned = [row for k, row in enumerate(rows) if kept == 1 or k % kept]
    found = warned(chunk(learned))["sorted-labels"]
    times = round(len(learned) / 2)
    assert f"the label changes 15 times in {len(learned)} rows, where a random order" in found
    assert abs(int(found.split("about ")[1].split(")")[0]) - times) <= 1


def test_labels_in_short_runs_or_rare_are_not_sorted() -> None:
    rows = [(float(k // 9 % 2), row) for k, (_, row) in enumerate(clicks(690))]
    assert "sorted-labels" not in warned(chunk(rows))
    rows = clicks(2000, shift=-0.27)
    assert sum(label for label, _ in rows) > 300
    assert "sorted-labels" in warned(in_order(rows))
    assert warned(chunk([(float(k in (20, 700, 1500)), row) for k, (_, row) in enumerate(rows)])) == {}


def test_rare_labels_of_large_importance_are_not_sorted() -> None:
    """20 of 2,000 rows, which weigh as much as the others, change the label no more often than 40 times."""
    labels, seen = np.arange(2000) % 100 == 50, StreamStatistics()
    seen.add(Chunk.from_csr(np.zeros(2001, int), [], [], labels, np.where(labels, 99.0, 1.0)), None)
    seen.passes = [(0.0, seen.weight, None)]
    assert seen.rises + seen.falls == 40
    assert "sorted-labels" not in {one.name for one in troubles_of(Run(seen, Model(Recipe())))}


def test_sorted_numbers_and_a_walk() -> None:
    steps = np.random.default_rng(3).normal(size=500)
    walk = np.cumsum(steps)
    rows = [{1: 1.0, 2: float(k % 3)} for k in range(500)]

    def data(labels: Any) -> Chunk:
        return chunk([(float(y), row) for y, row in zip(labels, rows, strict=True)])

    assert "sorted-labels" in warned(data(np.sort(steps)), loss="squared")
    assert "sorted-labels" in warned(data(-np.sort(steps)), loss="squared")
    assert "sorted-labels" not in warned(data(walk), loss="squared")
    assert "sorted-labels" not in warned(data(steps), loss="squared")


@pytest.mark.usefixtures("plainly")
def test_one_of_several_models_with_weights_is_enough() -> None:
    """The model with the lowest progressive loss has no weights: these labels are random."""
    rows = [(float(k * k % 7 < 3), {1 + k * 31 % 11: 1.0}) for k in range(400)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = path(chunk(rows), rule="ftrl", l1="0.01:1e6:3", holdout="none")
    losses = [point.progressive_loss for point in found.points]
    assert [point.nonzero > 0 for point in found.points] == [True, False, False]
    assert min(losses, key=lambda loss: loss or 0.0) != losses[0]
    with pytest.warns(TroubleWarning, match="no feature has a weight"):
        path(chunk(rows), rule="ftrl", l1="1e5:1e6:3", holdout="none")


def test_a_held_out_loss_that_rises_pass_after_pass() -> None:
    chance = np.random.default_rng(5)
    rows = [(float(k * k % 7 < 3), dict(enumerate(chance.normal(size=40).tolist()))) for k in range(100)]
    options: dict[str, Any] = {"rule": "sgd", "rate": "constant:0.05", "holdout": "every-2nd"}
    found = warned(chunk(rows), passes=6, **options)
    assert "--early-stop 1" in found["overfitting"]
    assert "overfitting" not in warned(chunk(rows), passes=6, early_stop=1, **options)
    assert "overfitting" not in warned(chunk(rows), passes=1, **options)
    assert warned(chunk(clicks(600)), passes=4, holdout="every-5th") == {}


@pytest.mark.parametrize("places", [[1], [7, 8, 250], list(range(1, 400, 3))])
def test_what_was_seen_does_not_depend_on_cuts(places: list[int]) -> None:
    whole, parts = StreamStatistics(), StreamStatistics()
    data = chunk(clicks(400, *map(float, range(1, 90))))
    layout = SettledLayout()
    whole.add(data, layout)
    for part in cut(data, places):
        parts.add(part, layout)
    assert said(whole) == said(parts)
    assert len(whole.labels) <= 256
    again = read(StreamStatistics, json.loads(json.dumps(said(parts))), "seen")
    assert said(again) == said(parts)


MANY: list[Callable[..., Any]] = [
    lambda data, **more: path(data, l1="0.1:1:3", **more),
    lambda data, **more: cv(data, l1="0.1:1:3", folds=3, **more),
    lambda data, **more: tune(data, rules=["ft-ftrl"], budget=4, **more),
    lambda data, **more: ensemble(data, models=3, **more),
]


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("learn", MANY)
def test_many_models_are_warned_of_once(learn: Callable[[Chunk], Any]) -> None:
    with pytest.warns(TroubleWarning) as caught:
        found = learn(in_order(clicks(400)))
    assert [name for name, _ in found.warnings] == ["sorted-labels"]
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("replays", "end", "told"), [(False, 1.03, True), (True, 1.03, False), (True, 1.2, True)]
)
def test_passes_that_nobody_chose_are_told_of_only_where_they_do_clear_harm(
    replays: bool, end: float, told: bool
) -> None:
    with not_compiled():
        model, seen = train([{"a": 1.0}] * 10, [1, 0] * 5, passes=1), StreamStatistics()
        seen.passes = [(10.0, 10.0, 1.0), (19.0, 20.0, end)]
        found = [trouble.name for trouble in troubles_of(Run(seen, model, replays=replays))]
    assert ("overfitting" in found) == told


LEVELS = {"two": (1e8, np.arange(200) % 2), "one": (2.0**24, np.arange(200) % 2), "billions": (1e9, None)}


@pytest.mark.parametrize(("level", "spread"), LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("sign", [1, -1])
def test_labels_that_float32_does_not_tell_apart(level: float, spread: Any, sign: int) -> None:
    chance = np.random.default_rng(0)
    X = chance.normal(size=(200, 2))
    y = sign * level + (X[:, 0] if spread is None else spread)
    data = Chunk.from_csr(np.arange(201) * 2, np.tile([1, 2], 200), X.ravel(), y)
    found = warned(data, loss="squared")
    assert [*found] == ["unresolved-labels"]
    assert f"labels around {sign * level:.4g} differ by no more than" in found["unresolved-labels"]
    (shift,) = re.findall(r"subtract (\S+) from the labels$", found["unresolved-labels"])
    near = Chunk.from_csr(data.indptr, data.keys, data.values, y - float(shift))
    assert "unresolved-labels" not in warned(near, loss="squared")
    with not_compiled():
        model = train(near, loss="squared", passes=1, rule="sgd")
        with pytest.warns(TroubleWarning, match=r"labels around .* \[unresolved-labels\]"):
            evaluate(model, data)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=r".*\[unresolved-labels\]")
            evaluate(model, near)


@pytest.mark.parametrize("classes", [2, 3])
def test_data_on_which_a_model_is_worse_than_a_constant(classes: int) -> None:
    random = np.random.default_rng(3)
    X = random.normal(size=(300, 2))
    y = np.digitize(X[:, 0], [0.0, 1.0][: classes - 1])
    model: Any = train(X, y, outputs="one" if classes == 2 else "classes")

    def told(X: Any, y: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            evaluate(model, X, y)
        return [str(one.message) for one in caught]

    (message,) = told(-2 * X, y)
    assert message.startswith("the log loss is ")
    assert ", that of the base rate, the best constant, " in message
    assert ": check that labels and columns mean the same as in the training data" in message
    assert told(X, y) == told(-2 * X[:100], y[:100]) == []


def worse(loss: str, **figures: float) -> bool:
    """Whether these figures of 1,000 rows are worse than those of a constant."""
    return bool(worse_than_base({"examples": 1000, **figures}, Objective(loss)))


def test_worse_than_a_constant_by_more_than_chance() -> None:
    """Probabilities that scatter about the base rate, by the standard error of the difference."""
    random = np.random.default_rng(0)
    y, rounds = random.random((1000, 400)) < 0.3, 0.0
    margins = math.log(3 / 7) + random.normal(size=(1000, 1)) * 0.13
    for truth in y.T:
        share = truth.mean()
        base = -share * math.log(share) - (1 - share) * math.log(1 - share)
        loss = float(np.logaddexp(0.0, np.where(truth, -1, 1) * margins[:, 0]).mean())
        rounds += worse("logistic", log_loss=loss, base_log_loss=base)
    assert rounds / 400 < 0.1
    assert worse("logistic", log_loss=0.61, base_log_loss=0.6)
    assert not worse("logistic", log_loss=0.605, base_log_loss=0.6)
    assert worse("tweedie", deviance=1.88, base_deviance=1.0)
    assert not worse("tweedie", deviance=1.2, base_deviance=1.0)
