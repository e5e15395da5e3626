"""`thresher.path` in Python, and results to compute with."""

import itertools
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import sparse

import thresher
from tests.commands import SAMPLE
from thresher.data.errors import DataError
from thresher.learning.model.model import Model
from thresher.learning.training.scores import Scores
from thresher.learning.training.shares import held_out


def test_a_path_of_a_file(tmp_path: Path) -> None:
    found = thresher.path(SAMPLE, "ft-ftrl:relax=0.5", l1="0.1:2:3", passes=2)
    assert found.penalty == "l1"
    found.save(tmp_path / "f", "nnz:1000")
    again = thresher.load(tmp_path / "f")
    assert (again.points, again.choice, again.penalty) == (found.points, "nnz:1000", "l1")
    chosen, taken = again.number(), found.choose("nnz:1000")
    assert taken.nonzero == found.points[chosen].nonzero <= 1000
    for which in ("best", "1se", "nnz:1000"):
        assert again.choose(which).predict(SAMPLE).tobytes() == found.choose(which).predict(SAMPLE).tobytes()
    again.save(tmp_path / "again")
    assert (tmp_path / "again").stat().st_size > 0
    taken.learn(next(thresher.open_source(SAMPLE).chunks()))
    assert taken.examples > found.models[chosen].examples == 3600


@pytest.mark.usefixtures("plainly")
def test_data_in_memory_and_what_is_held_out() -> None:
    rng = np.random.default_rng(3)
    X = sparse.csr_matrix(rng.random((150, 12)) * (rng.random((150, 12)) < 0.3))
    y = np.where(X @ rng.normal(size=12) > 0, 1.0, -1.0)
    held = thresher.path((X[:100], y[:100]), holdout=(X[100:], y[100:]), average=True, passes=1)
    assert [point.holdout and point.holdout["examples"] for point in held.points] == [50] * 16
    assert held.models[0].examples == 100
    none = thresher.path((X, y), holdout="none", l1="1:2:2", passes=1)
    assert none.points[0].holdout is None
    assert none.models[0].examples == 150
    assert thresher.train((X, y), holdout="none", passes=1).examples == 150
    assert none.number() == min((0, 1), key=lambda k: none.points[k].loss)
    with pytest.raises(ValueError, match="1se needs the losses of held-out rows, two or more"):
        none.number("1se")


def test_models_that_stopped_in_different_passes_are_compared_side_by_side() -> None:
    found = thresher.path(
        SAMPLE, "ft-ftrl:alpha=10", l1="0.3:3:5", passes=15, holdout="every-5th", early_stop=1
    )
    rested = [model.examples for model in found.models]
    assert len(set(rested)) > 1
    chunks = thresher.open_source(SAMPLE).chunks()
    held = (chunk.take(held_out(0, len(chunk), 5, 0)) for chunk in chunks)
    scores = Scores(dict(enumerate(found.models)), held)
    best = found.number()
    errors = [scores.error_of_difference(k, best) for k in range(5)]
    assert [point.paired_error for point in found.points] == pytest.approx(errors)
    near = [k for k in range(5) if found.points[k].loss - found.points[best].loss <= (errors[k] or 0)]
    assert best != found.number("1se") == min(near, key=lambda k: found.points[k].nonzero)


def test_what_cannot_be() -> None:
    pairs = (({"a": 1.0}, k % 2) for k in itertools.count())
    with pytest.raises(DataError, match="read only once: give the penalties"):
        thresher.path(itertools.islice(pairs, 50))
    with pytest.raises(ValueError, match="perceptron has no penalty"):
        thresher.path(SAMPLE, "perceptron")
    for text in ("7", "1:2"):
        with pytest.raises(ValueError, match="penalties must be a range LO:HI:N, such as"):
            thresher.path(SAMPLE, l1=text)
    with pytest.raises(ValueError, match=r"penalties must be a range .*, auto:N or a list, not 7"):
        thresher.path(SAMPLE, l1=7)  # type: ignore[arg-type]
    for penalties, words in {
        (2.0, 1.0): "must be ascending numbers",
        (1.0,): "must have 2 to 256 penalties, not 1",
        (0.0, 1.0): "must be ascending numbers above 0",
        (1.0, None): "must be ascending numbers above 0",
        (1.0, float("inf")): "must be ascending numbers above 0",
    }.items():
        with pytest.raises(ValueError, match=words):
            thresher.path(SAMPLE, l1=list(penalties))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="path has no option pases; did you mean passes"):
        thresher.path(SAMPLE, pases=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="penalty"):
        thresher.path(SAMPLE, penalty=7)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"path has no option state; use frontier.save\(path, state=True\)"):
        thresher.path(SAMPLE, state=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="no penalty leaves a weight"):
        thresher.path([({}, 1), ({}, 0)] * 30)


def test_the_range_is_of_rows_that_weigh_something() -> None:
    with pytest.raises(ValueError, match="all importance weights are zero"):
        thresher.path((np.ones((40, 1)), np.arange(40) % 2, np.zeros(40)))
    X, y, importance = (np.arange(60) % 4.0).reshape(-1, 1), np.arange(60) % 2, np.zeros(5060)
    importance[5000:] = 1
    late = np.concatenate([np.zeros((5000, 1)), X]), np.concatenate([np.ones(5000), y]), importance
    found = [thresher.path(data, l1="auto:2").points for data in (late, (X, y))]
    assert [point.penalty for point in found[0]] == [point.penalty for point in found[1]]


ROWS = [({"size": 1.0 + k % 3, "<b>": float(k % 5)}, ["big", "small"][k % 2]) for k in range(60)]


@pytest.mark.usefixtures("plainly")
def test_a_model_in_a_notebook() -> None:
    model = thresher.train(ROWS, rule="sgd", names=True)
    html = model._repr_html_()
    root = ElementTree.fromstring(html)
    text = dict(
        zip((one.text for one in root.iter("th")), (one.text for one in root.iter("td")), strict=True)
    )
    assert text["non-zero weights"] == "2 of 2 features seen"
    assert "<b> " in f"{text['heaviest positive']} {text['heaviest negative']}"
    assert "<script" not in html
    assert "&lt;b&gt;" in html
    assert "non-zero weights" in Model("ftrl")._repr_html_()


@pytest.mark.usefixtures("plainly")
def test_progress_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    thresher.train(ROWS, rule="ftrl:l1=0.1", report_every=25, holdout="every-10th")
    head, *lines, held, last = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["examples", "since"]
    assert [line.split()[0] for line in lines] == ["25", "50"]
    assert {line.split()[3] for line in lines} <= {"big", "small"}
    assert held.startswith("pass 1, held-out: examples 6, loss ")
    assert last.split()[0] == "54"
    thresher.train(ROWS, rule="ftrl:l1=0.1", report_every=0)
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "1"
    thresher.ensemble(ROWS, rule="ftrl:l1=0.1", models=2, report_every=60)
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "60"
    thresher.train(ROWS, rule="ftrl:l1=0.1")
    assert not capsys.readouterr().out
    with pytest.raises(ValueError, match="report_every must be"):
        thresher.train(ROWS, report_every=-1)
