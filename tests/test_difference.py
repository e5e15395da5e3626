"""Which options may be otherwise where a run is resumed, goes on from a model, or starts from its weights."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thresher
from tests.plain import not_compiled
from tests.test_law_of_continuing import check_same
from thresher.learning.files import checkpoint
from thresher.learning.training.interruption import Interrupted
from thresher.options.lanes import PathCommand
from thresher.options.option import SHELL, options_of
from thresher.options.training import TrainCommand

FIRST: dict[str, Any] = {"rule": "fobos:l1=0.01", "passes": 2, "seed": 1, "holdout": 0.2}
"""What the first run is given"""
OTHER: dict[str, Any] = {
    **dict.fromkeys(("average", "centre", "calibrate", "label_weights"), True),
    **dict.fromkeys(("intercept", "header", "quoting", "cache"), False),
    **dict.fromkeys(("nonnegative", "nonpositive", "ignore", "label", "weight", "offset", "group"), "size"),
    **dict.fromkeys(("bins", "categorical"), "size"),
    **dict.fromkeys(("numeric", "text"), "shop"),
    **dict.fromkeys(("l1", "l2", "sample", "holdout"), 0.5),
    **dict.fromkeys(("early_stop", "threads"), 2),
    **dict.fromkeys(("seed", "report_every"), 7),
    **dict.fromkeys(("checkpoint_every", "bits"), 9),
}
OTHER |= {"rule": "ftrl", "rate": "constant:0.5", "alpha": 2.0, "eta0": 0.25, "loss": "hinge", "batch": 3}
OTHER |= {"outputs": "classes:0-1", "scale": "max-abs", "admit": "2,bits=10", "store": "hashed:9"}
OTHER |= {"dtype": "float64", "passes": 4, "replay": "64MB", "order": "once"}
OTHER |= {"format": "tsv", "delimiter": ";", "missing": "none", "where": "size > 2", "classes": "a,b"}
OTHER |= {
    "ngrams": "chars=2-3",
    "interact": "size,shop",
    "hash": "vw",
    "on_error": "skip",
    "choose": "1se",
    "judge": "auc",
}
"""Another value of each option, for one that makes sense for a run that has not begun yet"""
APART = {
    *("checkpoint", "resume", "continue_from", "init", "layout", "modules", "plot", "names"),
    *("workers", "ray", "groups", "offsets"),
}
"""Options of what is written, or by whom; how runs go on; a layout, which stands for its fields; arrays"""
ELSEWHERE = {"label_weights"}
"""What other formats than CSV take, and is refused here"""
OF_DATA = {"header", "delimiter", "hash"}
"""What is taken of other data, but these cannot be read so"""
FREE = {
    *(
        "passes",
        "early_stop",
        "judge",
        "report_every",
        "checkpoint_every",
        "on_error",
        "threads",
        "cache",
    ),
    *("format", "replay", "choose"),
}
"""What may be otherwise in a run that is resumed"""
NEXT = FREE | {"order", "holdout", "missing", "quoting", "where"}
"""What may be otherwise with other data"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    rows = [f"{k % 3 % 2},{k * 7 % 5},{'xyz'[k % 3]}" for k in range(60)]
    (tmp_path / "d.csv").write_text("\n".join(["label,size,shop", *rows]))
    (tmp_path / "e.csv").write_text("\n".join(["label,size,shop", *rows[40:], *rows[:15]]))
    with not_compiled():
        yield tmp_path / "d.csv"


def stop(data: Path, call: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Leave a checkpoint in the first pass."""
    save, stopping = checkpoint.save, [True]
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def saved(*given: Any) -> None:
        save(*given)
        if stopping:
            stopping.pop()
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", saved)
        with pytest.raises(Interrupted):
            call(data, checkpoint=data.with_name("c"), checkpoint_every=20, **options)


def test_every_option_is_here() -> None:
    both = [*options_of(TrainCommand).values(), *options_of(PathCommand).values()]
    assert {one.name for one in both if one.face != SHELL} == {*OTHER} | APART


def refused(call: Any, name: str, data: Path, **options: Any) -> None:
    with pytest.raises(ValueError, match=name) as caught:
        call(data, **options)
    message = str(caught.value)
    assert "\n" not in message
    if name not in ELSEWHERE | OF_DATA:
        assert re.search(r" (made|trained) (with|without) .*; leave .* out|give one of them", message)


@pytest.mark.parametrize("name", sorted(OTHER.keys() - {"choose"}))
def test_resumed(name: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop(data, thresher.train, monkeypatch, **FIRST)
    again = {**FIRST, "checkpoint": data.with_name("c"), "resume": True, name: OTHER[name]}
    if name in FREE:
        assert thresher.train(data, **again).examples == 48 * again["passes"]
    else:
        refused(thresher.train, name, data, **again)
        assert data.with_name("c").exists()


@pytest.mark.parametrize("name", sorted(OTHER.keys() - {"choose"}))
@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_gone_on(name: str, data: Path) -> None:
    model = thresher.train(data, **FIRST)
    again = {"continue_from": model, "holdout": 0.2, "checkpoint": data.with_name("c"), name: OTHER[name]}
    if name in NEXT:
        assert thresher.train(data.with_name("e.csv"), **again).examples > model.examples
    else:
        refused(thresher.train, name, data.with_name("e.csv"), **again)


@pytest.mark.parametrize(
    "name", ["l1", "alpha", "rule", "loss", "seed", "order", "holdout", "choose", "passes"]
)
def test_a_path_resumed(name: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"l1": "0.01:1:3", "passes": 2, "rule": "ftrl"}
    stop(data, thresher.path, monkeypatch, **first)
    other = {"l1": "0.01:1:4", "rule": "adagrad-fobos"}.get(name, OTHER[name])
    again = {**first, "checkpoint": data.with_name("c"), "resume": True, name: other}
    if name in FREE:
        assert len(thresher.path(data, **again).points) == 3
    else:
        refused(thresher.path, name, data, **again)


@pytest.mark.usefixtures("plainly")
def test_texts_and_offsets_of_vw_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "d.vw"
    rows = (f"{2 * (k % 2) - 1} 0.5 |t not {'good' if k % 2 else 'bad'} w{k % 5}\n" for k in range(48))
    data.write_text("".join(rows))
    first: dict[str, Any] = {
        "rule": "ftrl",
        "passes": 3,
        "text": "t",
        "ngrams": "words=1-2",
        "offset": "base",
    }
    stop(data, thresher.train, monkeypatch, **first)
    again = {**first, "checkpoint": data.with_name("c"), "resume": True}
    for name, other in (("text", "u"), ("ngrams", "words=2")):
        refused(thresher.train, name, data, **again | {name: other})
    check_same(thresher.train(data, **again), thresher.train(data, **first))
