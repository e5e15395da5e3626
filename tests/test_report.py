"""The report: a complete, small, safe and correct page about a model."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

import thresher
from tests.drawing.test_charts import luminance
from thresher.data.features.names import Names
from thresher.drawing.svg import DARK, LIGHT
from thresher.learning.evaluation.curves import Ranking
from thresher.learning.model.model import Model
from thresher.reporting import html
from thresher.reporting.html import Markup, el
from thresher.reporting.weighing import _heaviest

pytestmark = [
    pytest.mark.usefixtures("plainly"),
    pytest.mark.filterwarnings("ignore::thresher.TroubleWarning"),
]
SIZE = 300_000
VOID = {"meta", "br", "hr"}
X = sparse.random(120, 60, 0.1, "csr", rng=np.random.default_rng(5))
SCORES = X @ np.random.default_rng(6).normal(size=60)
Y = np.where(SCORES > 0, 1, -1)
HOSTILE = [
    *("<script>alert(1)</script>", "</svg></style><img src=x>", "a\0b", "\u202egnp", "\"'&", "é" * 9),
    *("x" * 1_000_000, "&" * 5000, "http://evil.example/", "\ud7ff\ufffe", "-->", "]]>"),
]


class Checked(HTMLParser):
    """Collects elements; fails if they are unbalanced, or load or run something."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        assert tag not in {"script", "img", "link", "iframe", "object", "base", "form"}
        assert not [name for name in told if name.startswith("on") or name in {"src", "style", "srcset"}]
        assert str(told.get("href", "#")).startswith("#")
        assert len(told) == len(attrs)
        self.tags.append((tag, told))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [told for name, told in self.tags if name == tag]


def page_of(model: Any, folder: Path, data: Any = None, **options: Any) -> str:
    """The page, after the checks that every page must pass."""
    thresher.report(model, data, folder / "report.html", **options)
    raw = (folder / "report.html").read_bytes()
    assert len(raw) <= SIZE
    page = raw.decode()
    found = Checked(page)
    ids = [told["id"] for _, told in found.tags if "id" in told]
    assert len(ids) == len(set(ids))
    assert {str(one["href"])[1:] for one in found.named("a")} <= set(ids)
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in zip([0, *levels], levels, strict=False))
    assert all(one["role"] == "img" and one["aria-labelledby"] for one in found.named("svg"))
    assert all(one.get("scope") in ("col", "row") for one in found.named("th"))
    assert len(found.named("caption")) == len(found.named("table"))
    assert "default-src 'none'" in str([one.get("content") for one in found.named("meta")])
    assert [one["lang"] for one in found.named("html")] == ["en"]
    assert not re.search(r"url\(|@import|javascript:", page)
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "").replace(
        "http://evil", ""
    )
    assert all(c.isprintable() or c == "\n" for c in page)
    return page


def test_a_model_alone_and_on_test_data(tmp_path: Path) -> None:
    model = thresher.train((X[:80], Y[:80]))
    alone = page_of(model, tmp_path)
    assert "To measure the model on data that it has not seen" in alone
    page = page_of(model, tmp_path, (X[80:], Y[80:]))
    assert page == page_of(model, tmp_path, X[80:], y=Y[80:])
    for figure in ("error", "auc", "normalised_entropy", "log_loss"):
        value = thresher.evaluate(model, (X[80:], Y[80:]))[figure]
        assert f">{value:.4g}</td>" in page
    for title in (
        *("Calibration", "ROC curve", "Precision and recall", "How training went", "Settings and data"),
    ):
        assert f">{title}</h" in page


KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "classes": ({"loss": "softmax"}, np.digitize(SCORES, [-1, 0, 1])),
    "many classes": ({"loss": "softmax", "outputs": "classes:0-11", "l1": 0.0}, np.arange(120) % 12),
    "numbers": ({"loss": "squared"}, SCORES),
    "outputs": ({"loss": "squared", "outputs": "values:3"}, np.column_stack([SCORES] * 3)),
    "no probabilities": ({"loss": "hinge", "rule": "pa-i"}, Y),
    "weights that are all zero": ({"l1": 1e6}, Y),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model(kind: str, tmp_path: Path) -> None:
    options, labels = KINDS[kind]
    model = thresher.train((X[:80], labels[:80]), **options)
    page = page_of(model, tmp_path, (X[80:], labels[80:]))
    assert ("All weights are zero" in page) == (kind == "weights that are all zero")
    assert ("ROC curve" in page) == (kind in ("no probabilities", "weights that are all zero"))
    assert ("Of 12 outputs, the 10" in page) == (kind == "many classes")


def test_rare_positives_lead_with_what_tells_something(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    rare = np.where(chance.random(120) < 0.1 + 0.1 * (SCORES > 0), 1, -1)
    model = thresher.train((X, rare))
    titles = re.findall("<dt>(.*?)</dt>", page_of(model, tmp_path, (X, rare)))
    assert titles == ["Normalised entropy", "AUC", "Calibration error", "Non-zero weights"]
    page = page_of(model, tmp_path, (X, rare))
    share = 100 * (rare > 0).mean()
    mean = 100 * model.predict(X, output="probability").mean()
    assert f"{mean:.3g}% predicted on average, {share:.3g}% came true" in page
    assert page.index("Normalised entropy: log") < page.index("Error: share of wrong predictions")
    no_odds = thresher.train((X, rare), rule="pa-i", loss="hinge")
    titles = re.findall("<dt>(.*?)</dt>", page_of(no_odds, tmp_path, (X, rare)))
    assert titles == ["AUC", "Error on test data", "Non-zero weights", "Training examples"]
    titles = re.findall("<dt>(.*?)</dt>", page_of(model, tmp_path, (X, Y)))
    assert titles[0] == "Error on test data"


def test_the_heaviest_weights_of_both_signs_have_whole_names(tmp_path: Path) -> None:
    names = [f"a column with a long name={k} and a value that is longer still, whatever" for k in range(60)]
    rows = [{names[k]: 1.0} for k in range(60)] * 4
    labels = [1 if k % 60 < 10 else -1 for k in range(240)]
    page = page_of(thresher.train(rows, labels, l1=0.0, names=True), tmp_path)
    positive, negative = page.index(">Heaviest positive</h3>"), page.index(">Heaviest negative</h3>")
    assert positive < negative
    assert f"<caption>{10} of 10, the heaviest first</caption>" in page[positive:negative]
    assert f"<caption>{20} of 50, the heaviest first</caption>" in page[negative:]
    shown = re.findall(r'<th scope="row">(a column.*?)</th>', page)
    assert len(shown) == 30
    assert set(shown) <= set(names)


def test_hostile_names_and_words(tmp_path: Path) -> None:
    model = thresher.train([({name: 1.0, "f": k / 9}, k % 2) for k in range(9) for name in HOSTILE], l1=0.0)
    keys = model.weights()[0].tolist()
    names = [name.encode("utf-8", "surrogatepass") for name in HOSTILE] + [b"\xff\xfe not UTF-8"]
    model.names = Names.of({key: names[k % len(names)] for k, key in enumerate(keys)})
    page = page_of(model, tmp_path)
    assert "&lt;script&gt;" in page
    assert "<script" not in page


def test_half_of_the_weights_of_a_class_speak_for_it(tmp_path: Path) -> None:
    """Here the heaviest weights are all negative."""
    model = thresher.train((X, np.arange(120) % 3 + 1), "sgd", outputs="classes", loss="softmax")
    predictor = model.predictor()
    predictor.weights[:] = -1.0 - np.arange(predictor.weights.size).reshape(predictor.weights.shape)
    predictor.weights[:7, 0] = 0.5
    shown = [_heaviest(predictor, k, 10) for k in range(2)]
    for (positive, negative), expected in zip(shown, ((5, 5), (0, 10)), strict=True):
        assert (len(positive), len(negative)) == expected
        assert all(weight > 0 for _, weight in positive)
        assert all(weight < 0 for _, weight in negative)
    predictor.weights[:, 0] = 0.5
    assert _heaviest(predictor, 0, 30)[1] == []


def test_a_page_stays_small_whatever_things_are_called(tmp_path: Path) -> None:
    """A quote takes six bytes in HTML."""
    chance, q = np.random.default_rng(5), '"'
    cells = {
        f"{k}{q * 700}": [f"{q * 50}{v}{q * 150}" for v in chance.integers(0, 40, 200)] for k in range(10)
    }
    frame = pd.DataFrame(cells).assign(y=[f"{q * 58}{v:02d}{q * 300}" for v in chance.integers(0, 10, 200)])
    model = thresher.train(frame, label="y", names=True, l1=0.0)
    page = page_of(model, tmp_path, frame, slices="*")
    assert f"By 0{'&quot;' * 29}…<" in page


def test_warnings_about_columns_are_those_of_the_test_data(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    rows = (f"{k % 2},2024-{1 + k % 12:02}-{1 + k % 28:02}\n" for k in range(200))
    data.write_text("label,day\n" + "".join(rows), encoding="utf-8")
    model = thresher.train(str(data))
    alone, page = page_of(model, tmp_path), page_of(model, tmp_path, str(data))
    assert "does not keep warnings about columns" in alone
    assert "holds dates, which are read as categories" not in alone
    assert "holds dates, which are read as categories" in page
    assert "does not keep warnings" not in page


def test_an_ensemble_has_no_report_but_its_models_have(tmp_path: Path) -> None:
    several = thresher.ensemble((X, Y), models=2)
    page_of(several.models[1], tmp_path)
    with pytest.raises(TypeError, match=r"Ensemble: give one of its \.models"):
        page_of(several, tmp_path)


def test_a_frontier_and_its_file(tmp_path: Path) -> None:
    frontier = thresher.path((X, Y), "ftrl", l1="0.1:4:4")
    page = page_of(frontier, tmp_path)
    assert "Loss against size" in page
    frontier.save(tmp_path / "f")
    assert "The heaviest weights" in page_of(tmp_path / "f", tmp_path)


def test_only_reports_are_overwritten(tmp_path: Path) -> None:
    model = Model("ftrl")
    (tmp_path / "notes.html").write_text("<!doctype html>mine")
    with pytest.raises(FileExistsError, match="is not a thresher report"):
        thresher.report(model, None, tmp_path / "notes.html")
    assert (tmp_path / "notes.html").read_text() == "<!doctype html>mine"
    thresher.report(model, None, tmp_path / "new.html")
    thresher.report(model, None, tmp_path / "new.html")


@pytest.mark.parametrize("rows", [5, 3000])
def test_curves_are_those_of_scikit_learn(rows: int) -> None:
    rng = np.random.default_rng(rows)
    truth = rng.random(rows) < 0.3
    truth[:2] = [True, False]
    scores, weights = np.round(rng.normal(size=rows) + truth, 1), rng.integers(1, 4, rows).astype(float)
    found = Ranking(scores, truth, weights)
    assert found.auc == pytest.approx(roc_auc_score(truth, scores, sample_weight=weights))
    mean = average_precision_score(truth, scores, sample_weight=weights)
    assert found.average_precision == pytest.approx(mean)
    x, y, _ = roc_curve(truth, scores, sample_weight=weights, drop_intermediate=False)
    assert np.array(found.roc()) == pytest.approx(np.column_stack([x, y]))
    precision, recall, _ = precision_recall_curve(truth, scores, sample_weight=weights)
    theirs = np.column_stack([recall, precision])[:-1][::-1]
    assert np.array(found.precision_recall()) == pytest.approx(theirs[theirs[:, 0] > 0])


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read(scheme: int) -> None:
    """WCAG AA: a contrast of 4.5 to 1 on every background of text."""
    colours = dict(re.findall(r"--(\w+):(#\w+)", re.findall(r":root{([^}]*)}", html.STYLE)[scheme]))
    assert {colours["paper"], colours["ink"]} <= {*LIGHT.values(), *DARK.values()}
    for text in ("ink", "faint", "link"):
        for ground in ("paper", "soft", *(["warn"] if text == "ink" else [])):
            a, b = sorted((luminance(colours[text]), luminance(colours[ground])))
            assert (b + 0.05) / (a + 0.05) >= 4.5, (text, ground)


def test_elements_escape_whatever_is_no_markup() -> None:
    assert el("p", "<&>", Markup("<br>"), title='"', class_="a") == (
        '<p title="&quot;" class="a">&lt;&amp;&gt;<br></p>'
    )


def test_the_figures_name_the_log_loss_once_and_weights_only_where_there_are_any(tmp_path: Path) -> None:
    model = thresher.train(X, Y)
    plain = page_of(model, tmp_path, X[80:], y=Y[80:])
    assert ">Log loss<" in plain
    assert ">Loss<" not in plain
    assert "Each example counts once" in plain
    others = plain.count(">Weight<")  # in the table of weights
    weighed = page_of(model, tmp_path, X[80:], y=Y[80:], sample_weight=np.arange(1.0, X.shape[0] - 79))
    assert "Each example counts by its importance" in weighed
    assert weighed.count(">Weight<") > others
    halves = np.tile([0.5, 1.5], X.shape[0])[: X.shape[0] - 80]
    assert "by its importance" in page_of(model, tmp_path, X[80:], y=Y[80:], sample_weight=halves), "mean 1"
    hinge = thresher.train(X, Y, loss="hinge")
    assert ">Loss<" in page_of(hinge, tmp_path, X[80:], y=Y[80:])


def test_a_selection(tmp_path: Path) -> None:
    X, Y = np.eye(4)[np.arange(40) % 4], np.where(np.arange(40) % 4 < 2, 1, -1)
    found = thresher.select(X, Y, bags=4, passes=1, nonzero=2)
    found.save(tmp_path / "s")
    thresher.report(tmp_path / "s", None, tmp_path / "s.html")
    page = (tmp_path / "s.html").read_text()
    assert f"{found.kept.sum()} of 4 features are kept" in page
    assert "The features that models of half of the rows agree on." in page
    assert "No warnings." in page
    thresher.report(found, None, tmp_path / "t.html")
    assert "Stable features" in (tmp_path / "t.html").read_text()
    with pytest.raises(ValueError, match="a selection has no model to measure"):
        thresher.report(tmp_path / "s", (X, Y), tmp_path / "s.html")


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_a_warning_says_why_all_weights_are_zero(tmp_path: Path) -> None:
    advice = "Train with a smaller penalty"
    assert advice in page_of(thresher.train((X[:80], Y[:80]), l1=1e6), tmp_path)
    page = page_of(thresher.train((X[:80], 1e8 + Y[:80]), loss="squared"), tmp_path)
    assert advice not in page
    assert "Labels around 1e+08" in page
