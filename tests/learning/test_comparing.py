"""``diff`` compared with a comparison weight by weight."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from thresher.data.errors import DataError
from thresher.data.features.names import Names
from thresher.data.layout import SettledLayout
from thresher.learning.files import model_file
from thresher.learning.inspection import describe
from thresher.learning.inspection.describe import compare
from thresher.learning.model.objective import Objective
from thresher.learning.model.prediction import Readout

WEIGHTS = st.dictionaries(
    st.integers(0, 2**64 - 1) | st.integers(0, 20),
    st.sampled_from([-2.0, -1.0, -0.25, 0.5, 1.0]),
    max_size=15,
)


def model(weights: dict[int, Any], outputs: str = "one", **more: Any) -> Readout:
    head = Objective("logistic", outputs)
    inner = () if head.count == 1 else (head.count,)
    values = np.array([weights[key] for key in sorted(weights)], np.float32).reshape(len(weights), *inner)
    keys = np.array(sorted(weights), np.uint64)
    layout = more.pop("layout", None)
    found = Readout(
        head, more.pop("store", "growing"), keys, values, np.zeros(head.count, np.float32), **more
    )
    found.layout = layout
    return found


def compared(a: Readout, b: Readout, top: int = 20) -> dict[str, Any]:
    return compare(a, b, (model_file.header_of(a), model_file.header_of(b)), top)


@settings(max_examples=60, deadline=None)
@given(WEIGHTS, WEIGHTS, st.integers(0, 6), st.sampled_from([1, 2, 5, 100]))
def test_every_weight_is_compared(a: dict[int, float], b: dict[int, float], top: int, step: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(describe, "STEP", step)
        found = compared(model(a), model(b), top)
    pairs = {key: (a.get(key, 0.0), b.get(key, 0.0)) for key in sorted(a.keys() | b.keys())}
    counts = dict.fromkeys(("added", "removed", "changed_sign", "grew", "shrank", "same"), 0)
    for was, now in pairs.values():
        if was == 0 or now == 0:
            kind = "added" if was == 0 else "removed"
        elif was * now < 0:
            kind = "changed_sign"
        else:
            kind = "same" if was == now else "grew" if abs(now) > abs(was) else "shrank"
        counts[kind] += 1
    assert {name: found[name] for name in counts} == counts
    moves = [abs(now - was) for was, now in pairs.values()]
    assert found["l1_distance"] == pytest.approx(sum(moves))
    assert found["l2_distance"] == pytest.approx(np.linalg.norm(moves))
    assert found["largest_change"] == max(moves, default=0.0)
    far = sorted(
        (key for key, (was, now) in pairs.items() if was != now), key=lambda k: -abs(np.diff(pairs[k])[0])
    )
    told = [(one["feature"], one["before"], one["after"]) for one in found["moved"]]
    assert told == [(key, *pairs[key]) for key in far[:top]]
    assert found["equal"] == (a == b)


def test_many_outputs_names_and_weights_that_begin_elsewhere() -> None:
    a = model({3: [1, 0], 9: [0.5, 0.5]}, "classes:4-5", unmet=np.array([0, 0.25], np.float32))
    b = model({3: [1, 2]}, "classes:4-5")
    a.names = Names.of({3: b"three"})
    found = compared(a, b)
    assert [tuple(one.values()) for one in found["moved"]] == [
        *((3, "three", "5", 0.0, 2.0), (9, None, "4", 0.5, 0.0), (9, None, "5", 0.5, 0.0)),
    ]
    assert (found["added"], found["removed"], found["same"]) == (1, 2, 1)
    assert compared(b, a)["moved"][0]["name"] == "three"


def test_intercepts_and_options_are_compared_too() -> None:
    a, b = model({1: 1.0}), model({1: 1.0})
    b.bias = np.ones(1, np.float32)
    found = compared(a, b)
    assert (found["equal"], found["intercept"], found["options"]) == (False, [[0.0], [1.0]], {})
    a.layout = SettledLayout(format="csv", columns=("y", "c"), kinds=("label", "categorical"))
    b.layout = SettledLayout(
        format="csv", columns=("y", "c", "d"), kinds=("label", "numeric", "text"), missing=("NA",)
    )
    assert compared(a, b)["options"] == {
        "missing": [(), ("NA",)],
        "spelling": [("", ""), ("", "", "")],
        "column c": ["categorical", "numeric"],
        "column d": [None, "text"],
    }
    assert compared(a, model({1: 1.0}, store="direct"))["options"].keys() >= {"store"}


IDS, TABLE = SettledLayout(format="svmlight"), SettledLayout(format="csv", columns=("y",), kinds=("label",))
VW = SettledLayout(format="vw")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"outputs": "labels:1-2"}, {"outputs": "classes:1-2"}, "labels:1-2 and classes:1-2"),
        ({"store": "hashed:5"}, {}, "hashed:5 and growing"),
        ({"store": "hashed:5,1"}, {"store": "hashed:5,2"}, "hashed:5,1 and hashed:5,2"),
        ({"layout": IDS}, {"layout": TABLE}, "ids and columns"),
        ({"layout": VW}, {"layout": SettledLayout(format="vw", bits=18)}, "bits 0 and 18"),
    ],
)
def test_what_cannot_be_compared(first: dict[str, Any], second: dict[str, Any], said: str) -> None:
    row = {1: [1.0, 2.0]} if "outputs" in first else {1: 1.0}
    with pytest.raises(DataError, match=said):
        compared(model(row, **first), model(row, **second))


def test_ids_in_vw_text_are_those_of_svmlight() -> None:
    assert compared(model({1: 1.0}, layout=IDS), model({1: 1.0}, layout=VW))["equal"]
    with pytest.raises(DataError, match="hashes of names in the other"):
        compared(model({1: 1.0}, layout=IDS), model({2**60: 1.0}, layout=VW))


@pytest.mark.usefixtures("plainly")
def test_info_and_diff_take_models_and_files(tmp_path: Path) -> None:
    rows, labels = [{"size": 3.0}, {"size": -2.0}] * 20, [1, -1] * 20
    one, other = (thresher.train(rows, labels, rule="ftrl", l1=l1) for l1 in (0.5, 1.0))
    one.save(tmp_path / "m")
    told, of_file = thresher.info(one), thresher.info(tmp_path / "m")
    assert of_file["model"] == str(tmp_path / "m")
    assert told == {**of_file, "model": None}
    assert told["examples"] == 40
    assert "examples learned       40\n" in repr(told)
    assert thresher.diff(tmp_path / "m", one) == {**thresher.diff(one, one), "equal": True}
    moved = thresher.diff(one, other)
    assert not moved["equal"]
    assert list(moved["options"]) == ["rule"]
    assert thresher.diff(one, other, top=0)["moved"] == []
    assert "option  A " in repr(moved)


def test_info_and_diff_refuse_what_is_no_model(tmp_path: Path) -> None:
    plain = model({1: 0.5})
    with pytest.raises(TypeError, match="expected a model, not int"):
        thresher.info(7)  # type: ignore[arg-type]
    with pytest.raises(model_file.ModelFileError, match="nowhere"):
        thresher.diff(plain, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="top must be a whole number, 0 or more"):
        thresher.diff(plain, plain, top=-1)
    with pytest.raises(DataError, match="stores differ"):
        thresher.diff(plain, model({1: 0.5}, store="hashed:4"))
