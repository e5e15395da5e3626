"""The recipes of Singer's figures, on numbers made by hand: what they choose, count, compare and solve."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.learners import Figures
from experiments.papers import (
    duchi_table,
    singer_ball,
    singer_boosting,
    singer_mixed,
    singer_on_the_fly,
    singer_rare,
    singer_solvers,
    singer_sparsity,
    singer_topics,
)
from experiments.papers.generated import FREQUENT, directions, few_words
from experiments.papers.interior import interior_point
from experiments.papers.sets import Parts, Sets
from experiments.papers.softmax_ball import Optimum, Problem
from tests.plain import not_compiled
from thresher.batch.rounds import Round
from thresher.data import Chunk
from thresher.learning.model.recipe import Recipe

ROWS = few_words(40, 20)


class Topical:
    """Stands for `Sets`; each topic has a number of rows of its own."""

    quick = False

    def __init__(self) -> None:
        self.rows = dict(zip(duchi_table.TOPICS, (10, 20, 30, 40), strict=True))

    def rcv1(self, topic: str = "CCAT") -> Parts:
        return Parts(ROWS.train.rows(0, self.rows[topic]), ROWS.test)


# what the recipes choose


def test_sparsity_chooses_the_step_size_by_cross_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best eta in cross-validation, though it makes the most errors on the test rows."""

    def judged(recipes: Sequence[Recipe], rows: Chunk, folds: int, passes: int) -> list[float]:
        return [0.1 if "eta=0.3" in str(one.rule) or "r=3.0" in str(one.rule) else 0.2 for one in recipes]

    def tested(recipes: Sequence[Recipe], parts: Parts, passes: int) -> list[Figures]:
        errors = judged(recipes, parts.train, 1, 1)
        return [Figures(0.5 if error == 0.1 else 0.1, 7, float("nan")) for error in errors]

    monkeypatch.setattr(singer_sparsity, "errors_of_folds", judged)
    monkeypatch.setattr(singer_sparsity, "side_by_side", tested)
    plan = singer_sparsity.Plan((0.1, 0.3, 1.0), (1e-4, 1e-3), (1.0, 3.0), 2, (1,))
    topic = singer_sparsity.measured("a topic", ROWS, plan, 1)
    for points in topic.curves.values():
        assert [(point.eta, point.l1, point.error) for point in points] == [
            (0.3, 1e-4, 0.5),
            (0.3, 1e-3, 0.5),
        ]
    assert topic.arow.error == 0.5
    assert (topic.rows, topic.features) == ((40, 20), len(np.unique(ROWS.train.keys)))


def _ball_problem(seed: int) -> Problem:
    draw = np.random.default_rng(seed)
    digits = np.arange(60, dtype=np.uint8) % 3
    images = np.zeros((60, singer_ball.PIXELS), np.uint8)
    for image, digit in zip(images, digits, strict=True):
        image[draw.choice(12, 3, replace=False)] = image[12 + digit * 4 + draw.integers(0, 4)] = 255
    return Problem(singer_ball.pixels(images, digits), 24, 3)


def test_ball_chooses_the_radius_on_held_out_images_and_the_rate_by_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The training loss always prefers the largest ball."""
    problem, held = _ball_problem(0), _ball_problem(1)
    monkeypatch.setattr(held, "value", lambda W: abs(float(np.abs(W).sum(axis=0).max()) - 2.0))
    ends = {16.0: 0.3, 32.0: 0.1, 64.0: 0.2}

    def run(problem: Problem, optimum: Optimum, rule: str, rate: str, batch: int, steps: int) -> Any:
        schedule, _, size = rate.partition(":")
        unit = 1 / problem.curvature if rule.startswith("l1") else 1 / 2.0
        share = 0.25 if schedule == "constant" and batch == 5 else 1.0
        constant = round(float(size) * batch / unit / share, 6)
        return singer_ball.Course([1], [ends[constant]], 3, rate)

    monkeypatch.setattr(singer_ball, "run", run)
    plan = singer_ball.Plan(60, 4, 12, 5, tuple(ends), tuple(ends), 1e-3)
    found = singer_ball.compared("made", (problem, held), (1.0, 2.0, 4.0), plan)
    assert found.radius == 2.0
    assert found.optimum.gap <= plan.certain
    assert found.length == 4.0
    courses = [course for rules in found.courses.values() for course in rules.values()]
    assert [course.gaps for course in courses] == [[0.1]] * 4
    assert not any(course.at_edge for course in courses)


def test_solvers_choose_the_rate_with_the_lowest_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {2.0: [0.1, 0.5], 4.0: [0.9, 0.2], 8.0: [0.3, 0.3]}

    def online(problem: Any, rule: str, l1: float, rate: str, batch: int, passes: int) -> Any:
        return singer_solvers.Course(ends[float(rate.partition(":")[2])], [1, 1], 1.0, rate)

    monkeypatch.setattr(singer_solvers, "online", online)
    plan = singer_solvers.Plan(2, 1, [], [("constant", constant) for constant in ends])
    problem: Any = None
    assert singer_solvers.best_of(problem, "fobos", plan, 1.0, 1).rate == "constant:4.0"


def test_on_the_fly_takes_the_sparsest_within_a_point_of_the_lowest_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    figures = [(0.10, 90), (0.109, 30), (0.105, 40), (0.30, 1)]
    found = [Figures(error, weights, float("nan")) for error, weights in figures]
    monkeypatch.setattr(singer_on_the_fly, "side_by_side", lambda recipes, parts: found)
    recipes = [Recipe(f"ftrl:alpha=1.0,l1={l1}") for l1 in (1, 2, 3, 4)]
    choice = singer_on_the_fly.choose(recipes, ROWS)
    assert (choice.recipe, choice.error, choice.lowest, choice.kept) == (recipes[1], 0.109, 0.10, 30)
    assert choice.with_few == 0.30
    assert choice.edges({"alpha": (0.5, 1.0), "l1": (1, 2)}) == ["alpha", "l1"]
    assert choice.edges({"alpha": (0.5,), "l1": (1, 2, 3)}) == ["alpha"]


def test_rare_compares_at_about_the_same_number_of_weights() -> None:
    errors, weights = [0.10, 0.105, 0.2, 0.3], [100, 60, 30, 32]
    assert singer_rare.sparsest_of(errors, weights) == 1
    assert singer_rare.as_sparse(errors, weights, 31) == 2
    assert singer_rare.as_sparse(errors, weights, 32) == 2
    assert singer_rare.as_sparse(errors, weights, 45) == 3, "none is near: the nearest number"


def test_each_topic_is_measured_on_its_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    met: dict[str, list[int]] = {}

    def measured(name: str, parts: Parts, *rest: Any) -> Any:
        met.setdefault(name, []).append(len(parts.train))
        if len(met) == len(topical.rows):
            raise StopIteration

    topical: Any = Topical()
    for recipe in (singer_topics, singer_sparsity):
        met.clear()
        monkeypatch.setattr(recipe, "measured", measured)
        with pytest.raises(StopIteration):
            recipe.page(topical)
        assert {name: rows[0] for name, rows in met.items()} == topical.rows


def test_a_topic_of_rcv1_has_its_own_labels(tmp_path: Path) -> None:
    (tmp_path / "rcv1").mkdir()
    for part in ("train", "test"):
        with gzip.open(tmp_path / f"rcv1/rcv1_ccat_{part}.svm.gz", "wt") as file:
            file.write("1 1:1\n-1 2:1\n-1 3:1\n")
        with gzip.open(tmp_path / f"rcv1/rcv1_{part}_topics.txt.gz", "wt") as file:
            file.write("CCAT\nECAT C1\nGCAT ECAT\n")
    sets = Sets(tmp_path)
    found = {topic: sets.rcv1(topic).test.labels.tolist() for topic in ("CCAT", "ECAT", "GCAT", "MCAT")}
    assert found == {"CCAT": [1, -1, -1], "ECAT": [-1, 1, 1], "GCAT": [-1, -1, 1], "MCAT": [-1, -1, -1]}


# what they solve


def test_the_optimum_in_the_ball_is_certified() -> None:
    problem = _ball_problem(0)
    optimum = problem.minimised(2.0, 500, 1e-4)
    assert 0 <= optimum.gap <= 1e-4
    assert np.abs(optimum.weights).sum(axis=0).max() <= 2.0 + 1e-9
    assert optimum.value == problem.value(optimum.weights) < np.log(3) - 0.3
    worse = problem.minimised(2.0, 2)
    assert worse.value - worse.gap <= optimum.value <= worse.value
    draw = np.random.default_rng(0)
    for _ in range(20):
        inside = draw.normal(size=(24, 3))
        inside *= 2.0 / np.abs(inside).sum(axis=0)
        assert problem.value(inside) >= optimum.value - optimum.gap


def test_solvers_agree_on_the_minimum() -> None:
    """Boosting, whose objective is f*, and the interior point method, from the other side."""
    problem, l1 = singer_solvers.Problem(few_words(60, 0).train, 10), 2.0
    with not_compiled():
        least = problem.least(l1)
    *_, w = interior_point(problem.X, problem.y, l1)
    assert 0 <= problem.value(w, l1) - least < 1e-7
    assert 0.1 < least < problem.value(np.zeros(10), l1) - 0.01
    with not_compiled():
        course = singer_solvers.newton(problem, l1)
    assert 0 <= course.gaps[-1] < 1e-6 < course.gaps[0]


def test_boosting_minimises_the_exponential_loss() -> None:
    """Without weights it is 1 for each row; logistic loss would be log 2."""
    with not_compiled():
        solved = singer_boosting.solve(singer_boosting.Problem("made", ROWS.train, 2.0), "random")
    assert solved.rounds[0].objective == pytest.approx(len(ROWS.train))
    assert solved.rounds[-1].certificate <= singer_boosting.TOLERANCE
    assert solved.processor[0] == 0 < solved.seconds
    assert len(solved.processor) == len(solved.rounds)


def test_mixed_norms_are_the_ones_that_their_names_say() -> None:
    """One step from zero on one feature of two outputs, with gradients -6 and -2 and step 1/2."""
    data = Chunk.from_csr([0, 1], [0], [1.0], np.array([[3.0, 1.0]]))
    with not_compiled():
        found = {norm: singer_mixed.fitted(data, 1, norm, 2.0, 0.5, 1)[0] for norm in singer_mixed.NORMS}
    assert found["l1"] == pytest.approx([2.0, 0.0])
    assert found["l1/l2"] == pytest.approx(np.array([3.0, 1.0]) * (1 - 1 / np.sqrt(10)))
    assert found["l1/linf"] == pytest.approx([2.0, 1.0])


def test_the_largest_penalty_of_each_norm_leaves_no_weight() -> None:
    X, Y = np.array([[1.0]]), np.array([[3.0, 1.0]])
    data = singer_mixed.chunk_of(X, Y)
    for norm in singer_mixed.NORMS:
        (below,) = singer_mixed.penalties(X, Y, norm, 1, 0.9)
        with not_compiled():
            for l1, empty in ((below, False), (below / 0.9 * 1.001, True)):
                assert (not singer_mixed.fitted(data, 1, norm, l1, 0.5, 1).any()) == empty


# what they count


def test_on_the_fly_counts_shares_of_the_seen_and_of_all() -> None:
    """A rule without a penalty keeps a weight of all that it has seen."""
    rows = Chunk.of_rows([(1.0, {k: 1.0, k + 1: 1.0}) for k in range(20)])
    stream = singer_on_the_fly.Stream("made", 20, 42, rows, lambda: [rows])
    choice = singer_on_the_fly.Choice(Recipe("adagrad-rda:eta=1.0,l1=0"), 0.1, 0.1, 0.1, 21, 0)
    with not_compiled():
        (found,) = singer_on_the_fly.followed(stream, [choice])
    assert found.points[0].rows == 10
    assert found.points[-1].rows == 20
    for point in found.points:
        assert (point.of_seen, point.of_all) == (1.0, (point.rows + 1) / 42)


def test_a_share_that_grows_does_not_stay() -> None:
    def followed(*shares: float) -> singer_on_the_fly.Followed:
        choice = singer_on_the_fly.Choice(Recipe("ftrl"), 0.1, 0.1, 0.2, 1, 0)
        return singer_on_the_fly.Followed(
            choice,
            [singer_on_the_fly.Point(10 * (k + 1), share, share / 2) for k, share in enumerate(shares)],
        )

    stream = singer_on_the_fly.Stream("made", 40, 10, ROWS.train, lambda: [ROWS.train])
    for shares, holds, why in (
        ((0.9, 0.04, 0.03, 0.03), True, ""),
        ((0.0, 0.02, 0.03, 0.04), False, "still growing"),
        ((0.9, 0.06, 0.05, 0.04), False, "not few"),
    ):
        verdict = singer_on_the_fly._verdict("a rule", [followed(*shares)], [stream])
        assert (verdict.holds, why in verdict.why) == (holds, True)


def test_rare_words_count_as_right_only_with_their_own_sign() -> None:
    speaks = directions(5)
    assert set(speaks) == {-1.0, 1.0}
    times = np.array([50] * FREQUENT + [1, 3, 4, 9, 20])
    w = np.zeros(FREQUENT + 5)
    w[0] = FREQUENT  # mean size of garbage: 1
    w[FREQUENT:] = speaks * np.array([5.0, 0.0, 2.0, -3.0, 4.0])
    weights, garbage, shares, sizes, seldom = singer_rare._looked_at(w, times, 5)
    assert (weights, garbage, seldom) == (5, 1, 0.5)
    assert shares[:5] == [1.0, 0.0, 1.0, 1.0, 1.0]
    assert sizes[:5] == pytest.approx([5.0, 0.0, 2.0, -3.0, 4.0])


# what they conclude


def _compared(
    ball: Sequence[float], eg: Sequence[float], left: Sequence[int] = (5, 5)
) -> singer_ball.Compared:
    """With the same gaps in both settings; `left` weights of 10 in the ball, by setting."""
    courses = {
        setting: {
            singer_ball.BALL: singer_ball.Course([1, 2, 3], list(ball), nonzero, "constant:1"),
            singer_ball.EG: singer_ball.Course([1, 2, 3], list(eg), 10, "constant:1"),
        }
        for setting, nonzero in zip((singer_ball.ALL, singer_ball.SOME), left, strict=True)
    }
    optimum = Optimum(np.eye(10)[:1], 0.1, 0.0)
    return singer_ball.Compared("made", 1.0, optimum, 0.2, 10, 3.0, courses)


def test_ball_is_ahead_if_its_loss_is_lower_at_the_end() -> None:
    one = _compared([0.5, 0.4, 0.1], [0.3, 0.2, 0.15])
    assert one.ahead(singer_ball.ALL)
    assert one.changes(singer_ball.ALL) == [3]
    first, *_ = singer_ball._verdicts([one], False)
    assert first.holds
    assert "f - f* 0.100, EG 0.150 (the lead changes at gradient 3 of 3)" in first.ours
    behind = _compared([0.5, 0.4, 0.3], [0.3, 0.2, 0.1])
    assert not behind.ahead(singer_ball.SOME)
    assert [verdict.holds for verdict in singer_ball._verdicts([one, behind], False)[:2]] == [False, False]


def test_zeros_are_looked_for_in_all_runs() -> None:
    def verdicts(*left: int) -> list[bool]:
        return [one.holds for one in singer_ball._verdicts([_compared([1] * 3, [2] * 3, left)], False)[2:]]

    assert verdicts(5, 5) == [True, False]
    assert verdicts(1, 1) == [True, True]
    assert verdicts(10, 5) == [False, False]
    assert verdicts(1, 10) == [False, False]
    none = singer_ball._verdicts([_compared([1] * 3, [2] * 3, (10, 5))], False)[2]
    assert none.why == "no zeros in the L1 ball: made, deterministic"


def _solved(sweeps: int, processor: float) -> singer_boosting.Solved:
    rounds = [Round(k, k * sweeps, 9.0, 1e-5, 3, 99.0 - processor) for k in (0, 1)]
    return singer_boosting.Solved(rounds, [0.0, processor])


def test_boosting_compares_processor_time_and_rounds() -> None:
    runs = {"cyclic": _solved(50, 3.0), "random": _solved(10, 1.0), "parallel": _solved(60, 2.0)}
    more, cyclic, random = singer_boosting._verdicts({"made": runs}, False)
    assert (more.holds, cyclic.holds, random.holds) == (True, True, False)
    assert cyclic.ours == "made: parallel 2.00 s, cyclic 3.00 s"
    assert random.ours == "made: parallel 2.00 s (less if more than 2.0 machines share it), random 1.00 s"
    runs["parallel"] = _solved(40, 0.5)
    more, cyclic, random = singer_boosting._verdicts({"made": runs}, False)
    assert (more.holds, cyclic.holds, random.holds) == (False, True, True)


def test_an_interior_point_method_must_need_fewer_steps_and_more_work() -> None:
    def course(count: int, cost: float) -> singer_solvers.Course:
        return singer_solvers.Course([1.0] * (count - 1) + [1e-4], [1] * count, cost)

    for steps, cost, holds in ((3, 100.0, True), (9, 100.0, False), (3, 1.0, False)):
        found = {singer_solvers.INTERIOR: course(steps, cost), singer_solvers.FOBOS: course(6, 1.0)}
        assert singer_solvers._interior(found).holds == holds


def test_the_published_errors_support_the_claims_about_topics() -> None:
    errors = [
        {"FOBOS": 0.3, "AdaGrad-FOBOS": 0.1, "PA": 0.4, "AROW": 0.2},
        {"FOBOS": 0.1, "AdaGrad-FOBOS": 0.2, "PA": 0.4, "AROW": 0.3},
    ]
    assert list(singer_topics.leads(errors).values()) == [[0], [0], [0]]
    columns = zip(*duchi_table.ERRORS.values(), strict=True)
    published = [dict(zip(duchi_table.ERRORS, column, strict=True)) for column in columns]
    assert list(singer_topics.leads(published).values()) == [[0, 1, 2, 3]] * 3
