"""Results to compute with: tables with the same columns, a model in a notebook."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

import thresher
from thresher.learning.inspection.frames import COLUMNS
from thresher.learning.model.model import Model

SHARED = list(COLUMNS)
ROWS = [({"size": 1.0 + k % 3, "<b>": float(k % 5)}, ["big", "small"][k % 2]) for k in range(60)]


@pytest.mark.usefixtures("plainly")
def test_every_result_has_the_same_columns(tmp_path: Path) -> None:
    found = thresher.path(ROWS, "ftrl", l1=[0.1, 1.0], holdout=0.2, seed=3)
    validated = thresher.cv(ROWS, "ftrl", l1=[0.1, 1.0], folds=3, refit=True)
    model = thresher.train(ROWS, rule="ftrl:l1=0.1", seed=4)
    tuned = thresher.tune(ROWS, rules=["ft-ftrl"], budget=4)
    evaluated = thresher.evaluate(model, ROWS)
    several = thresher.ensemble(ROWS, rule="ftrl:l1=0.1", models=3)
    frames = [one.frame() for one in (found, validated, model, tuned, evaluated, several)]
    for frame in frames:
        assert list(frame.columns)[: len(SHARED)] == SHARED
        assert {name: str(kind) for name, kind in frame.dtypes.items() if name in COLUMNS} == COLUMNS
    assert len(pd.concat(frames)) == sum(map(len, frames))
    of_path, of_folds, of_model, of_trials, of_figures, of_several = frames
    assert of_path.nonzero.tolist() == [point.nonzero for point in found.points]
    assert of_path.holdout_loss.tolist() == [point.loss for point in found.points]
    assert of_path[["rule", "penalty", "seed"]].to_numpy().tolist() == [["ftrl", 0.1, 3], ["ftrl", 1.0, 3]]
    assert of_path.chosen.tolist() == [k == found.number() for k in range(2)]
    assert of_folds.fold.tolist() == [1, 2, 3] * 2
    means = of_folds.groupby("penalty").holdout_loss.mean().tolist()
    assert means == pytest.approx([point.loss for point in validated.points])
    assert of_model.examples.tolist()[-1] == 60
    assert of_model.progressive_loss.tolist()[-1] == pytest.approx(model.curve[-1].average)
    assert (of_trials.chosen.sum(), of_trials.loc[tuned.chosen].holdout_loss) == (1, tuned.report["loss"])
    assert of_figures.holdout_loss.tolist() == [evaluated["loss"]]
    assert of_several.nonzero.tolist() == [one.nonzero for one in several.models]
    model.save(tmp_path / "m")
    pd.testing.assert_frame_equal(thresher.evaluate(tmp_path / "m", ROWS).frame(), of_figures)
    assert thresher.evaluate(several, ROWS).frame().rule[0] == "ftrl"
    assert thresher.evaluate(thresher.boost(ROWS), ROWS).frame().rule[0] is None
    assert (of_figures.nonzero[0], of_figures.rule[0]) == (model.nonzero, "ftrl")


@pytest.mark.usefixtures("plainly")
def test_a_table_needs_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    model = thresher.train(ROWS, rule="ftrl:l1=0.1")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="frame needs pandas: pip install pandas"):
        model.frame()


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
    thresher.train(ROWS, rule="ftrl:l1=0.1", report_every=25, holdout_every=10)
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
