"""Law 12: serving is training. What a service has learned is what `train` learns from its log."""

import gc
import json
import shutil
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import thresher
from tests.streams import KINDS, RULES, cut, kinds_of, model_of, stream
from tests.waiting import until
from thresher import Model
from thresher.data.chunk import Chunk, concat
from thresher.data.log.segments import LogError, records_from
from thresher.data.log.source import LogSource
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.divergence import HEAVIEST, too_heavy
from thresher.learning.model.model_set import ModelSet
from thresher.options.serving import DROP, NEGATIVE, Quantity
from thresher.serving import appending
from thresher.serving.bodies import Bodies
from thresher.serving.errors import RefusedError
from thresher.serving.learning import MODEL
from thresher.serving.openapi import LabelsLearned
from thresher.serving.service import _TOGETHER, DEFAULTS, Bounds, LearningService, Service

ROWS = 40
ONE = (np.ones(1, np.float32), np.ones(1, np.float32))
"""a positive label, and its importance"""


AMOUNTS = {
    "wait": ("wait", "seconds"),
    **{f"keep_{of}": ("keep", of) for of in ("bytes", "seconds")},
    **{f"snapshot_{of}": ("snapshot_every", of) for of in ("rows", "seconds")},
}
"""How options are called here whose values are amounts: the option, and its unit"""
pytestmark = pytest.mark.usefixtures("plainly")


@pytest.fixture(scope="module")
def rows() -> Chunk:
    return stream(seed=31, rows=ROWS, features=12).chunk


@pytest.fixture
def model(tmp_path: Path, rows: Chunk) -> Path:
    path = tmp_path / "begin.model"
    thresher.train(rows.rows(0, 10), "ftrl:alpha=0.5,l1=0.1", passes=1).save(path)
    return path


@contextmanager
def serving(model: Path, folder: Path, said: Any = None, **settings: Any) -> Iterator[LearningService]:
    bounds = Bounds(**{one.name: settings.pop(one.name) for one in fields(Bounds) if one.name in settings})
    for name, (option, of) in AMOUNTS.items():
        if name in settings:
            settings[option] = Quantity(of, settings.pop(name))
    options, tell = DEFAULTS.but(**settings), ([] if said is None else said).append
    service = LearningService(model, folder, options, tell, bounds)
    service.start()
    try:
        yield service
    finally:
        service.close()


def told(service: LearningService, ids: Sequence[str], labels: Any, importances: Any) -> LabelsLearned:
    """What becomes of the labels of one request."""
    found: LabelsLearned = service.label([ids], labels, importances).result()[0]
    return found


def learned(service: LearningService) -> bool:
    """Whether the model has learned all rows."""
    status = service.status()
    return status.learned == status.sequence


def check_law(model: Path, folder: Path, place: Path) -> None:
    """The file of the server is the one of `train` on its log, byte for byte."""
    thresher.train(folder, continue_from=model).save(place)
    assert (folder / MODEL).read_bytes() == place.read_bytes()


@pytest.mark.parametrize("name", [*KINDS, "offsets"])
def test_serving_is_training(name: str, rows: Chunk, tmp_path: Path) -> None:
    model, folder, shifted = tmp_path / "begin.model", tmp_path / "log", name == "offsets"
    options: dict[str, Any] = {"offset": True} if shifted else {"batch": 1 + 2 * (len(name) % 2)}
    rows = rows.with_offsets(np.linspace(-1, 2, len(rows))) if shifted else rows
    recipe = model_of(kinds_of("ftrl" if shifted else name)[0], dtype="float32", **options).recipe
    thresher.train(rows.rows(0, 10), recipe, passes=1).save(model)
    with serving(model, folder) as service:
        for chunk in cut(rows.rows(10, ROWS), [1, 2, 20]):
            service.learn(chunk).result()
    check_law(model, folder, tmp_path / "expected")
    assert thresher.load(folder / MODEL).shifted == shifted


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_classes_that_come_while_serving(loss: str, tmp_path: Path) -> None:
    """By both ways of a label, before and after a restart; words that no row was learned of do not matter."""
    model, folder, path = tmp_path / "begin.model", tmp_path / "log", tmp_path / "begin.csv"
    path.write_text("label,a,b,c,d\nham,1,0,1,2\nspam,0,1,2,1\nham,2,1,0,1\n")
    thresher.train(path, loss=loss, outputs="classes", passes=1).save(model)

    def learn(service: LearningService, label: str, **features: float) -> None:
        body = json.dumps({"label": label, **features}).encode()
        service.learn(reader(service).read(body, "application/json", labelled=True).chunk).result()

    def reader(service: LearningService) -> Bodies:
        return Bodies(service.model, 100, service.words)

    with serving(model, folder) as service:
        learn(service, "eggs", c=1.0)
        learn(service, "ham", a=1.0)
        kept = reader(service).read(b'{"id": "k", "d": 1.0}', "application/json", labelled=False, ids="id")
        service.keep(["k"], kept.chunk).result()
        reader(service).read(b'{"label": "never", "d": 1.0}', "application/json", labelled=True)
        until(lambda: learned(service))
        assert service.model.classes[:3] == ("ham", "spam", "eggs")
    with serving(model, folder) as service:
        late = reader(service).read_labels(b'{"id": "k", "label": "late"}').chunk
        told(service, ["k"], late.labels, late.weights)
        learn(service, "7", c=2.0)
        until(lambda: learned(service))
        assert service.model.predict_one({"c": 2.0}, "label") in ("eggs", "7")
    check_law(model, folder, tmp_path / "expected")
    found = thresher.load(folder / MODEL)
    assert found.classes == ("ham", "spam", "eggs", "late", "7")


def test_rows_that_come_one_by_one_are_learned_together(
    model: Path, rows: Chunk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, wait = list[int](), threading.Event.wait

    def waited(event: threading.Event, timeout: float | None = None) -> bool:
        if timeout == _TOGETHER and not turns:  # they come after the first, which has been noticed
            for k in range(1, ROWS):
                service.learn(rows.rows(k, k + 1)).result()
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", waited)
    with serving(model, tmp_path / "log") as service:
        service._learning._run.trainer.at_once = 0
        source: Any = service._learning._run.trainer.source
        turn = source.turn

        def counted(chunk: Chunk) -> Any:
            turns.append(len(chunk))
            return turn(chunk)

        source.turn = counted
        service.learn(rows.rows(0, 1)).result()
        until(lambda: learned(service))
    assert turns == [ROWS]


def test_a_turn_has_at_most_so_many_values(model: Path, rows: Chunk, tmp_path: Path) -> None:
    pauses = [10]
    with serving(model, tmp_path / "log") as service:
        trainer = service._learning._run.trainer
        assert 0 < trainer.at_once * service.model.head.count <= 1 << 15
        trainer.at_once, trainer.pause = 25, lambda: pauses.append(service.model.examples)
        service.learn(rows).result()
        until(lambda: learned(service))
    assert len(pauses) > 2
    for lo, hi in pairwise(sorted({*pauses, 10 + ROWS})):
        assert 0 < rows.indptr[hi - 10] - rows.indptr[lo - 10] <= 25 or hi - lo == 1


@pytest.mark.parametrize("name", RULES)
def test_the_heaviest_rows_leave_weights_finite(name: str, rows: Chunk) -> None:
    weights = np.where(np.arange(len(rows)) % 3 == 1, np.float32(HEAVIEST), np.float32(1))
    assert not too_heavy(rows.labels, weights).any()
    model = model_of(kinds_of(name)[0], dtype="float32")
    model.learn(replace(rows, weights=weights))  # or it says that it diverged
    assert np.isfinite(model.margins(rows)).all()


def test_every_snapshot_is_the_model_of_the_log_so_far(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder, copied = tmp_path / "log", tmp_path / "copied"
    with serving(model, folder, snapshot_rows=1) as service:
        for k in range(10, 14):
            service.learn(rows.rows(k, k + 1)).result()
            until(lambda: learned(service) and service.status().saved == service.status().sequence)
            shutil.copytree(folder, copied, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
            assert service.snapshot() == (folder / MODEL, k - 9)
            check_law(model, copied, tmp_path / "expected")


@pytest.mark.parametrize("saved", [7, 1000])
def test_a_killed_server_goes_on_with_its_log(model: Path, rows: Chunk, tmp_path: Path, saved: int) -> None:
    folder, found = tmp_path / "log", tmp_path / "killed"
    with serving(model, folder, snapshot_rows=saved) as service:
        for k in range(10, 30):
            service.learn(rows.rows(k, k + 1)).result()
        # as a kill would leave it, whatever is learned or saved by now
        shutil.copytree(folder, found, ignore=shutil.ignore_patterns(".*"))
    with serving(model, found) as service:
        until(lambda: service.status().ready)
        assert service.status().sequence == service.status().learned == 20
        service.learn(rows.rows(30, ROWS)).result()
    check_law(model, found, tmp_path / "expected")


def test_what_is_told_of_the_last_rows_outlasts_a_restart(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder, found = tmp_path / "log", list[Any]()
    for more in (rows.rows(10, 30), rows.rows(30, 40), None):
        with serving(model, folder) as service:
            until(lambda: service.status().ready)
            if found:
                assert service._learning.lately() == found[-1]
            if more is not None:
                for k in range(len(more)):
                    service.learn(more.rows(k, k + 1)).result()
                until(lambda: learned(service))
                found.append(service._learning.lately())
    assert found[-1].looked > 0
    assert np.isfinite(found[-1].predicted)
    assert found[0] != found[1]


@pytest.mark.parametrize("left", ["older", "none"])
def test_a_kill_between_the_state_and_the_model_leaves_no_old_model(
    model: Path, rows: Chunk, tmp_path: Path, left: str
) -> None:
    folder = tmp_path / "log"
    with serving(model, folder) as service:
        service.learn(rows.rows(10, 30)).result()
    newest = (folder / MODEL).read_bytes()
    (folder / MODEL).unlink()
    if left == "older":
        shutil.copy(model, folder / MODEL)
    with serving(model, folder) as service:
        until(lambda: service.status().ready)
        assert service.snapshot() == (folder / MODEL, 20)
        assert (folder / MODEL).read_bytes() == newest
    check_law(model, folder, tmp_path / "expected")


def test_a_key_is_learned_once(model: Path, rows: Chunk, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log") as service:
        first = service.learn(rows.rows(10, 12), key="a").result()
        assert (first.first, first.last, first.repeated) == (1, 2, False)
        assert service.learn(rows.rows(10, 12), key="a").result() == first._replace(repeated=True)
        assert service.learn(rows.rows(10, 12), key="b").result().last == 4
    with serving(model, tmp_path / "log") as service:
        assert service.learn(rows.rows(10, 12), key="a").result() == first._replace(repeated=True)
        assert service.status().sequence == 4


def test_a_log_has_one_way_to_write_the_negative_class(model: Path, rows: Chunk, tmp_path: Path) -> None:
    some = replace(rows.rows(0, 2), labels=np.array([0, 1], np.float32))
    with serving(model, tmp_path / "log") as service:
        service.learn(some).result()
        service.keep(["x"], some.rows(0, 1)).result()
        told(service, ["x"], np.zeros(1, np.float32), np.ones(1, np.float32))
    assert _logged(tmp_path / "log").labels.tolist() == [-1, 1, -1]
    other = tmp_path / "other.model"
    thresher.train(replace(rows, labels=(rows.labels > 0).astype(np.float32)), passes=1).save(other)
    with serving(other, tmp_path / "other", wait=0.01, unlabelled=NEGATIVE) as service:
        service.learn(replace(some, labels=np.array([-1, 1], np.float32))).result()
        service.keep(["x"], some.rows(0, 1)).result()
        until(lambda: service.status().sequence == 3)
    assert _logged(tmp_path / "other").labels.tolist() == [0, 1, 0]


def test_a_damaged_state_can_be_removed(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with serving(model, folder) as service:
        service.learn(rows).result()
    state = folder / "state"
    state.write_bytes(state.read_bytes()[:-9])
    for _ in range(2):  # the first leaves no lock
        with pytest.raises(LogError, match=r"state: .*damaged.*: remove it, and the log is learned again"):
            LearningService(model, folder)
    state.unlink()
    with serving(model, folder) as service:
        until(lambda: learned(service) and service.status().learned == ROWS)
    check_law(model, folder, tmp_path / "expected")


def test_a_start_that_is_refused_leaves_nothing_behind(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder, wrong = tmp_path / "log", tmp_path / "weights.model"
    Model.load(model).save(wrong, state=False)
    with pytest.raises(ModelFileError, match="contains only weights"):
        LearningService(wrong, folder)
    assert not folder.exists()
    folder.mkdir()
    (folder / "notes").write_text("mine")
    with pytest.raises(ModelFileError, match="contains only weights"):
        LearningService(wrong, folder)
    assert [one.name for one in folder.iterdir()] == ["notes"]
    with serving(model, folder) as service:
        service.learn(rows).result()
    with pytest.raises(LogError, match="of another model"):
        LearningService(wrong, folder)
    assert len(_logged(folder)) == ROWS


def _logged(folder: Path) -> Chunk:
    return concat([*LogSource(folder).chunks()])


@pytest.mark.parametrize("shifted", [False, True])
def test_labels_may_come_later(model: Path, rows: Chunk, tmp_path: Path, shifted: bool) -> None:
    if shifted:
        rows = rows.with_offsets(np.linspace(-1, 2, len(rows)))
        recipe = model_of("ftrl:alpha=0.5,l1=0.1", dtype="float32", offset=True).recipe
        thresher.train(rows.rows(0, 10), recipe, passes=1).save(model)
    folder, some = tmp_path / "log", rows.rows(10, 13)
    with serving(model, folder) as service:
        service.keep(["x", "y", "z"], some).result()
        assert (service.status().pending, service.status().sequence) == (3, 0)
    with serving(model, folder) as service:
        ids = ["z", "nobody", "x", "z"]
        labels, importances = np.array([1, 1, -1, 1], np.float32), np.array([1, 1, 2, 1], np.float32)
        done = told(service, ids, labels, importances)
        assert (done.learned, done.repeated, [*done.unknown]) == (2, 1, ["nobody"])
        assert (done.first, done.last) == (1, 2)
        assert service.status().pending == 1
    found = _logged(folder)
    assert np.array_equal(found.labels, np.array([1, -1], np.float32))
    assert np.array_equal(found.weights, np.array([1, 2], np.float32))
    expected = concat([some.rows(2, 3), some.rows(0, 1)])
    assert np.array_equal(found.keys, expected.keys)
    assert np.array_equal(found.values, expected.values)
    assert [*found.extras()] == ["offsets"] * shifted
    assert not shifted or (found.offsets == expected.offsets).all()
    check_law(model, folder, tmp_path / "expected")


def _given(*labels: float) -> Any:
    return np.array(labels, np.float32)


@pytest.mark.parametrize("restarted", [False, True])
def test_where_no_label_is_negative_rows_are_learned_in_the_order_of_the_views(
    model: Path, rows: Chunk, tmp_path: Path, restarted: bool
) -> None:
    folder, some, settings = tmp_path / "log", rows.rows(10, 14), {"wait": 1000.0, "unlabelled": NEGATIVE}
    with serving(model, folder, **settings) as service:
        service.keep([*"abcd"], some).result()
        found = told(service, ["c", "a", "c", "?"], _given(1, 1, 1, 1), _given(1, 2, 1, 1))
        assert found == LabelsLearned(0, 0, 0, 2, 1, ["?"])
        if not restarted:
            _expire(service)
        assert service.status().sequence == 4 * (not restarted)
    if restarted:
        with serving(model, folder, **settings) as service:
            assert told(service, ["a"], _given(1), _given(1)).repeated == 1
            _expire(service)
    rows_learned = _logged(folder)
    assert rows_learned.labels.tolist() == [1, -1, 1, -1]
    assert rows_learned.weights.tolist() == [2, 1, 1, 1]
    assert np.array_equal(rows_learned.keys, some.keys)
    with serving(model, folder, **settings) as service:
        found = told(service, ["a", "b"], _given(1, 1), _given(1, 1))
        assert (found.learned, found.waiting, found.repeated, found.unknown) == (0, 0, 1, ["b"])
    check_law(model, folder, tmp_path / "expected")


def _expire(service: LearningService) -> None:
    """As the sweeper does once all rows have waited."""
    negative = -1.0 if service.unlabelled == NEGATIVE else None
    service._appender.submit(appending.Draft.expire, appending.ticking(), negative).result()


def test_a_row_that_was_learned_as_negative_is_not_learned_again(
    model: Path, rows: Chunk, tmp_path: Path
) -> None:
    folder, some = tmp_path / "log", rows.rows(10, 11)
    for restarted in (False, True):
        with serving(model, folder, wait=1000.0, unlabelled=NEGATIVE) as service:
            assert service.keep(["a"], some).result().repeated == restarted
            if not restarted:
                _expire(service)
                assert service.keep(["a"], some).result().repeated
            found = told(service, ["a"], _given(1), _given(1))
            assert (found.learned, found.waiting, found.unknown) == (0, 0, ["a"])
            assert (service.status().sequence, service.status().pending) == (1, 0)


def test_what_becomes_of_a_row_depends_on_how_the_server_is_run(
    model: Path, rows: Chunk, tmp_path: Path
) -> None:
    folder, wait = tmp_path / "log", 1000.0
    for name, unlabelled in zip("bc", (NEGATIVE, DROP), strict=True):
        with serving(model, folder, wait=wait, unlabelled=unlabelled) as service:
            ids, some = [f"{name}{k}" for k in range(3)], rows.rows(10, 13)
            service.keep(ids, some).result()
            told(service, [f"{name}0"], _given(1), _given(3))
    with serving(model, folder, wait=wait, unlabelled=DROP) as service:
        told(service, ["b1", "c1"], _given(1, 1), _given(1, 1))
    with serving(model, folder, wait=wait, unlabelled=NEGATIVE) as service:
        _expire(service)
    found = _logged(folder)
    assert found.labels.tolist() == [1, 1, 1, 1, -1, -1]
    assert found.weights.tolist() == [3, 1, 1, 3, 1, 1]
    check_law(model, folder, tmp_path / "expected")


def test_predictions_stay_calibrated_at_a_start_in_a_lull_and_at_a_peak(tmp_path: Path) -> None:
    # every fifth view is clicked, a moment later; a row has waited after three turns
    count = 600
    clicked = np.arange(count) % 5 == 0
    labels, ones = np.where(clicked, 1, -1).astype(np.float32), np.ones(count, np.float32)
    data = Chunk(np.arange(count + 1), np.ones(count, np.uint64), ones, labels, ones)
    model, at, turns, means = tmp_path / "begin.model", 200, list[int](), list[float]()
    thresher.train(data.rows(0, at), "ftrl:alpha=0.5", passes=5).save(model)
    with serving(model, tmp_path / "log", wait=1000.0, unlabelled=NEGATIVE) as service:
        for views in (30, 30, 2, 2, 2, 2, 100, 100, 60):
            some, ids = data.rows(at, at + views), [str(k) for k in range(at, at + views)]
            margins = service.margins(some)
            means.append(service.model.respond(margins, "probability").mean())
            turns.append(appending.ticking())
            service.keep(ids, some).result()
            positive = [one for one in ids if clicked[int(one)]]
            told(service, positive, *[np.ones(len(positive), np.float32)] * 2)
            if len(turns) > 3:
                service._appender.submit(appending.Draft.expire, turns[-3], -1.0).result()
            until(lambda: learned(service))
            at += views
    assert np.abs(np.array(means) - clicked.mean()).max() < 0.1 * clicked.mean(), means


def test_mean_prediction_and_label_are_those_of_all_rows(model: Path, rows: Chunk, tmp_path: Path) -> None:
    """A large body counts for as much as it has rows, and its first rows count no more than others."""
    light = np.full(180, 1e-6, np.float32)  # the model stays as it is
    body = replace(
        rows.take(np.full(180, 10)),
        labels=np.repeat(np.array([1, -1], np.float32), [16, 164]),
        weights=2 * light,
    )
    single = replace(rows.rows(11, 12), labels=np.ones(1, np.float32), weights=light[:1])
    known = Service(model).model
    in_body, alone = (float(known.predict(one, "probability")[0]) for one in (body, single))
    assert abs(in_body - alone) > 0.05
    with serving(model, tmp_path / "log") as service:
        for one in [single] * 20 + [body]:
            service.learn(one).result()
            until(lambda: learned(service))
        found = service.status()
    assert found.label == pytest.approx((20 + 2 * 16) / 380, rel=1e-5)
    assert found.predicted == pytest.approx((20 * alone + 2 * 180 * in_body) / 380, rel=1e-4)


def test_readers_read_while_rows_are_learned(model: Path, rows: Chunk, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log") as service:
        service.learn(concat([rows] * 20)).result()  # in several turns
        over, read = threading.Event(), [0]

        def reads() -> None:
            while not over.is_set():
                assert np.isfinite(service.margins(rows)).all()
                read[0] += 1

        reader = threading.Thread(target=reads)
        reader.start()
        for _ in range(30):
            service.learn(rows).result()
        until(lambda: learned(service))
        over.set()
        reader.join()
        assert read[0] > 10
    check_law(model, tmp_path / "log", tmp_path / "expected")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_that_would_make_the_model_not_finite_are_skipped(tmp_path: Path, rows: Chunk) -> None:
    model, folder, again, said = *(tmp_path / name for name in ("begin", "log", "again")), list[str]()
    recipe = model_of("sgd", "squared", rate="constant:0.01", dtype="float32").recipe
    begin = thresher.train(rows.rows(0, 10), recipe, passes=1)
    begin.save(model)
    huge = replace(rows, values=rows.values * np.float32(1e30)).rows(10, 13)
    with serving(model, folder, said) as service:
        service.learn(huge).result()
        until(lambda: learned(service))
        assert np.array_equal(service.margins(rows), begin.margins(rows))
        for k in range(13, 20):
            service.learn(rows.rows(k, k + 1)).result()
        service.learn(huge).result()
        until(lambda: learned(service))
        assert (service.status().skipped, service.status().reason) == (6, "")
    assert said[0].startswith("rows that were not learned: ")
    assert "is not finite" in said[0]
    check_law(model, folder, tmp_path / "expected")
    begin.learn(rows.rows(13, 20))
    assert np.array_equal(thresher.load(folder / MODEL).margins(rows), begin.margins(rows))
    with serving(model, folder) as service:
        assert service.status().skipped == 6
        service.learn(concat([huge.rows(0, 1), rows.rows(20, 25)])).result()
        until(lambda: learned(service))
        assert service.status().skipped == 7
    check_law(model, folder, tmp_path / "expected")
    shutil.copytree(folder, again)
    (again / "state").unlink()
    with serving(model, again) as service:  # learns all from the beginning, in other pieces
        until(lambda: learned(service))
        assert service.status().skipped == 7
    assert (again / MODEL).read_bytes() == (folder / MODEL).read_bytes()


def test_a_model_whose_learning_fails_predicts_as_it_was(
    model: Path, rows: Chunk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, before = list[str](), thresher.load(model).margins(rows)
    with serving(model, tmp_path / "log", said) as service:
        monkeypatch.setattr(ModelSet, "learn", Mock(side_effect=ValueError("something is wrong")))
        service.learn(rows).result()
        until(lambda: bool(service.status().reason))
        assert said == ["learning has stopped: something is wrong"]
        assert np.array_equal(service.margins(rows), before)
        with pytest.raises(RefusedError, match="learning has stopped") as refused:
            service.learn(rows)
        assert refused.value.status == 503
        assert service.status().ready


def test_too_many_rows_that_wait_are_refused(model: Path, rows: Chunk, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log", most_pending=2) as service:
        with pytest.raises(RefusedError, match="at most 2 rows can wait") as refused:
            service.keep(["a", "b", "c"], rows.rows(0, 3)).result()
        assert refused.value.status == 413
        service.keep(["a", "b"], rows.rows(0, 2)).result()
        with pytest.raises(RefusedError, match="2 rows wait for their labels already") as refused:
            service.keep(["c"], rows.rows(2, 3)).result()
        assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})


def test_a_key_is_for_the_rows_that_it_was_for(model: Path, rows: Chunk, tmp_path: Path) -> None:
    some = rows.rows(0, 2)
    others = [
        rows,
        rows.rows(1, 3),
        replace(some, labels=-some.labels),
        replace(some, weights=2 * some.weights),
        replace(some, values=some.values + np.float32(1)),
    ]
    for restarted in (False, True):
        with serving(model, tmp_path / "log") as service:
            if not restarted:
                asked = [service.learn(one, key="a") for one in (some, *others)]  # perhaps in one write
                assert asked.pop(0).result().last == 2
                assert all(one.exception() is not None for one in asked)
            for one in others:
                with pytest.raises(RefusedError, match="this Idempotency-Key was used for other") as refused:
                    service.learn(one, key="a").result()
                assert refused.value.status == 422
            assert service.learn(concat([some]), key="a").result().repeated
            assert service.status().sequence == 2


def test_what_is_kept_is_bounded_in_bytes(model: Path, rows: Chunk, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log", kept_bytes=8000, wait=1000.0) as service:
        with pytest.raises(RefusedError, match="at most 8,000 bytes of rows can wait") as refused:
            service.keep([f"{k}" * 1000 for k in range(9)], rows.rows(0, 9)).result()
        assert refused.value.status == 413
        for _ in range(3):  # what goes makes room
            ids = [f"{k}" * 1000 for k in range(4)]
            service.keep(ids, rows.rows(0, 4)).result()
            with pytest.raises(RefusedError, match="bytes of rows wait for their labels already") as refused:
                service.keep(["x" * 3000], rows.rows(0, 1)).result()
            assert refused.value.status == 429
            assert service._appender.submit(appending.Draft.expire, appending.ticking(), None).result() == 4
        assert service._memory.kept_bytes == 0
        service.keep(ids, rows.rows(0, 4)).result()
        size = service._memory.kept_bytes
    with serving(model, tmp_path / "log") as service:
        assert service._memory.kept_bytes == size


def test_a_row_that_is_kept_keeps_nothing_else(model: Path, rows: Chunk, tmp_path: Path) -> None:
    whole = concat([rows] * 100)
    held = weakref.ref(whole.values)
    with serving(model, tmp_path / "log", wait=1000.0) as service:
        service.keep(["a"], whole.rows(0, 1)).result()
        service.learn(whole, key="k" * 1000).result()
        until(lambda: learned(service))
        del whole
        until(lambda: gc.collect() >= 0 and held() is None)
        assert [*map(len, service._memory.keys)] == [16]
        told(service, ["a"], *ONE)
    found, last = _logged(tmp_path / "log"), ROWS * 100
    assert np.array_equal(found.rows(last, last + 1).values, rows.rows(0, 1).values)


@pytest.mark.parametrize("days", [1, -1])
def test_a_clock_that_jumps_expires_and_removes_nothing(
    model: Path, rows: Chunk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    folder, some, label = tmp_path / "log", rows.rows(10, 11), np.ones(1, np.float32)
    settings: dict[str, Any] = {"wait": 7200.0, "unlabelled": NEGATIVE, "keep_seconds": 7200.0}
    with serving(model, folder, segment_bytes=1, snapshot_rows=1, **settings) as service:
        for k in range(3):
            service.learn(rows.rows(k, k + 1)).result()
        service.keep(["a"], some).result()
        set_clock(monkeypatch, days)
        service.keep(["b"], some).result()
        service.tend(appending.ticking() - 7_200_000_000)
        assert [*service._memory.kept] == ["a", "b"]
        assert len([*folder.glob("*.log")]) >= 5
        assert told(service, ["a"], label, label).waiting == 1
        assert told(service, ["a"], label, label).repeated == 1
    check_law(model, folder, tmp_path / "expected")


def test_rows_from_the_future_are_waited_for_as_long_as_others(
    model: Path, rows: Chunk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, some = tmp_path / "log", rows.rows(10, 11)
    with serving(model, folder, wait=7200.0) as service:
        for name, days in (("a", 1), ("b", 2), ("c", 0)):  # the clock goes forward, and back
            set_clock(monkeypatch, days)
            service.keep([name], some).result()
    monkeypatch.undo()
    with serving(model, folder, wait=7200.0) as service:
        assert [*service._memory.kept] == ["a", "b", "c"]
        since = [one.since for one in service._memory.kept.values()]
        assert since == sorted(since)
        assert since[-1] <= appending.ticking()
    with serving(model, folder, wait=0.01) as service:
        until(lambda: service.status().pending == 0)


@pytest.mark.parametrize("unlabelled", ["drop", NEGATIVE])
def test_rows_do_not_wait_while_the_server_is_down(
    model: Path, rows: Chunk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unlabelled: str
) -> None:
    folder, some, label = tmp_path / "log", rows.rows(10, 11), np.ones(1, np.float32)
    settings = {"wait": 7200.0, "unlabelled": unlabelled}
    with serving(model, folder, **settings) as service:
        for name, days in (("old", -3), ("learned", -2), ("a", -2)):
            set_clock(monkeypatch, days)
            service.keep([name], some).result()
        told(service, ["learned"], label, label)
    monkeypatch.undo()
    with serving(model, folder, **settings) as service:
        until(lambda: "old" not in service._memory.kept)  # the server was up for a day after it
        assert service.keep(["learned"], some).result().repeated
        found = told(service, ["a"], label, label)
        assert (found.learned + found.waiting, found.unknown) == (1, [])
    check_law(model, folder, tmp_path / "expected")


def set_clock(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    monkeypatch.undo()
    wall, seconds = time.time_ns, time.time
    monkeypatch.setattr(time, "time_ns", lambda: wall() + days * 86_400 * 10**9)
    monkeypatch.setattr(time, "time", lambda: seconds() + days * 86_400)


def test_what_is_learned_and_saved_need_not_be_kept(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder, whole = tmp_path / "log", tmp_path / "whole"
    for kept, place in ((np.inf, whole), (1, folder)):
        with serving(model, place, keep_bytes=kept, segment_bytes=1, snapshot_rows=1) as service:
            for k in range(10, 20):
                service.learn(rows.rows(k, k + 1)).result()
            some = rows.rows(20, 21)
            service.keep(["x"], some).result()
            for k in range(21, 25):
                service.learn(rows.rows(k, k + 1)).result()
            if kept == 1:
                until(lambda: len([*folder.glob("*.log")]) == 6)  # those from the kept row on, and a new one
                told(service, ["x"], *ONE)
                until(lambda: len([*folder.glob("*.log")]) == 1)
            else:
                told(service, ["x"], *ONE)
    with serving(model, folder) as service:
        service.learn(rows).result()
    with serving(model, whole) as service:
        service.learn(rows).result()
    assert (folder / MODEL).read_bytes() == (whole / MODEL).read_bytes()
    (folder / "state").unlink()
    with pytest.raises(LogError, match="begins with row 16, and state, which has learned those before, is"):
        LearningService(model, folder)


def test_the_log_of_another_model_is_refused(model: Path, rows: Chunk, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log") as service:
        service.learn(rows).result()
    with pytest.raises(ModelFileError, match=r"log: the log of a server, not a model: thresher log .*log"):
        thresher.load(tmp_path / "log")
    other = tmp_path / "other.model"
    thresher.train(rows, passes=1).save(other)
    with pytest.raises(LogError, match="of another model"):
        LearningService(other, tmp_path / "log")


def test_a_service_that_does_not_learn_predicts(model: Path, rows: Chunk) -> None:
    service = Service(model)
    assert np.array_equal(service.margins(rows), Model.load(model).margins(rows))
    with pytest.raises(RefusedError, match="does not learn"):
        service.learn(rows)
    service.close()


def test_a_file_that_is_replaced_is_read_again(model: Path, rows: Chunk) -> None:
    said = list[str]()
    service = Service(model, say=said.append)
    service.start()
    better = thresher.train(rows, "ftrl", passes=1)
    better.save(model)
    until(lambda: bool(said))
    assert said.pop() == f"reloaded {model}"
    assert np.array_equal(service.margins(rows), better.margins(rows))
    for content in (b"no model", None):
        model.unlink() if content is None else model.write_bytes(content)
        until(lambda: bool(said))
        assert said.pop().startswith(f"not reloaded: {model}")
        assert service.status().reason.startswith(f"not reloaded: {model}")
        assert np.array_equal(service.margins(rows), better.margins(rows))
    other = thresher.train(rows, loss="squared", passes=1)
    other.save(model)
    until(lambda: bool(said))
    assert said == [f"reloaded {model}, a model of other labels (real, and not binary)"]
    assert service.status()[:3] == (True, False, "")
    assert np.array_equal(service.margins(rows), other.margins(rows))
    service.close()


def test_the_name_of_a_weight_that_was_zero_in_between_is_kept(tmp_path: Path) -> None:
    table, model, folder = tmp_path / "a.csv", tmp_path / "named.model", tmp_path / "log"
    table.write_text("label,colour\n" + "1,red\n-1,blue\n" * 20)
    old = thresher.train(table, "ftrl:alpha=1,l1=1", names=True, passes=1, label="label")
    old.save(model)
    assert old.names is not None
    (chunk,) = thresher.open_source(table, layout=old.layout).chunks()
    red = chunk.rows(0, 1)
    key = int(red.keys[0])

    def weight(service: LearningService) -> float:
        with service._learning.gate.reading():
            return float(dict(zip(*service.model.weights(), strict=True)).get(key, 0.0))

    with serving(model, folder) as service:
        for _ in range(200):
            if weight(service) == 0:
                break
            service.learn(replace(red, labels=-red.labels)).result()
            until(lambda: learned(service))
        assert weight(service) == 0
    with serving(model, folder) as service:
        for _ in range(30):
            service.learn(red).result()
        until(lambda: learned(service))
        assert weight(service) != 0
    check_law(model, folder, tmp_path / "expected")
    assert key in dict(thresher.load(folder / MODEL).names or {})


def test_a_request_that_cannot_be_written_ends_no_thread(model: Path, rows: Chunk, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log") as service:
        some = rows.rows(0, 1)
        service.keep(["\ud800"], some).result()  # JSON can write it
        broken: Any = None
        with pytest.raises(RefusedError, match="cannot be written"):
            service._appender.submit(appending.Draft.learn, broken).result()
        with pytest.raises(RefusedError, match="more than 1,000 letters"):
            service.learn(some, key="k" * 1001).result()
        assert service.learn(some).result().last == 1
    check_law(model, tmp_path / "log", tmp_path / "expected")


def records_of(folder: Path) -> list[Any]:
    return [one for some in records_from(folder) for one in some]


def _log_bytes(folder: Path) -> int:
    while True:
        with suppress(FileNotFoundError):  # removed in the meantime
            return sum(path.stat().st_size for path in folder.glob("*.log"))


def test_a_small_log_is_kept_small(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder, kept = tmp_path / "log", 20_000
    for _ in range(2):
        with serving(model, folder, keep_bytes=kept, snapshot_rows=1) as service:
            for _ in range(25):
                service.learn(rows).result()
            until(lambda: learned(service) and service.status().saved == service.status().sequence)
            until(lambda: _log_bytes(folder) <= kept)
            assert service.status().sequence * 100 > kept
        assert _log_bytes(folder) > kept / 2
    with serving(model, folder, keep_bytes=kept // 4, snapshot_rows=1) as service:
        until(lambda: service.status().ready)
        until(lambda: _log_bytes(folder) <= kept // 4)  # also if nothing comes


def test_a_log_of_rows_without_labels_is_kept_small(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    settings: dict[str, Any] = {"keep_bytes": 20_000, "wait": 0.01, "snapshot_seconds": 0.01}
    with serving(model, folder, **settings) as service:
        service.learn(rows).result()
        for k in range(25):
            service.keep([f"{k} {i}" for i in range(ROWS)], rows).result()
        until(lambda: _log_bytes(folder) <= 20_000)
    with serving(model, folder, **settings) as service:  # goes on, though what it read last is gone
        service.learn(rows).result()
        until(lambda: learned(service))
        assert service.status().sequence == service.status().learned == 2 * ROWS


def test_a_log_is_kept_for_a_short_time(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with serving(model, folder, keep_seconds=1.0, snapshot_rows=1) as service:
        service.learn(rows).result()
        first = min(folder.glob("*.log"))
        until(lambda: not first.exists())  # though nothing comes after it


@pytest.mark.parametrize("name", ["log", "lock"])
def test_nothing_is_acknowledged_in_a_lost_file(model: Path, rows: Chunk, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "log"
    with serving(model, folder) as service:
        service.learn(rows.rows(0, 1)).result()
        until(lambda: learned(service))  # or the thread that learns might be the one that misses the file
        path = folder / "lock" if name == "lock" else next(folder.glob("*.log"))
        path.rename(tmp_path / "moved")
        with pytest.raises(RefusedError, match="removed or replaced while it was in use"):
            service.learn(rows.rows(1, 2)).result()
        (tmp_path / "moved").rename(path)


def test_many_ids_are_forgotten() -> None:
    memory = appending.Memory(most_kept=1, most_keys=10)
    memory.learned = {b"%d" % k: appending.LearnedRow(k, True) for k in range(200_000)}
    memory.keys = {b"%d" % k: appending.KnownRows(k, k, 0) for k in range(200_000)}
    memory.forget(before=199_990)
    assert (len(memory.learned), len(memory.keys)) == (10, 10)
