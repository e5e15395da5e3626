"""Namespaces, features and columns that options name and no row has are told of, in every format."""

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import thresher
from thresher.data import DataError, open_source
from thresher.data.layout import Layout

VW = "".join(f"{1 - 2 * (k % 2)} |user u{k % 3} n:{k % 5} |ad a{k % 2}\n" for k in range(40))
ROWS = [{"x": 1.0 + k % 3, "town": "UB"[k % 2]} for k in range(150)]
LABELS = [k % 2 for k in range(150)]


pytestmark = pytest.mark.usefixtures("as_commands_say")


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def said(*data: Any, **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", thresher.TroubleWarning)
        return dict(thresher.train(*data, **options).warnings).get("no-such-column", "")


@pytest.mark.parametrize(
    ("name", "text", "interact", "message"),
    [
        (
            "d.vw",
            VW,
            "u,a",
            r"no row has the namespace 'u' of the interaction u,a: check the name; its first letter",
        ),
        ("d.vw", VW, "user,typo", r"no row has the namespace 'typo' of the interaction user,typo: check"),
        ("d.vw", VW, ",ad", r"no row has the namespace '' of the interaction ,ad: check"),
    ],
)
def test_an_interaction_of_a_namespace_that_no_row_has(
    name: str, text: str, interact: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        thresher.train(written(tmp_path, name, text), "sgd", interact=interact, passes=1)


@pytest.mark.parametrize(
    ("name", "text", "interact"),
    [("d.vw", VW, "user,ad"), ("d.vw", VW, "user,*"), ("d.vw", VW, "*,*")],
)
@pytest.mark.parametrize("block", [1, 1 << 16])
def test_namespaces_some_row_has(name: str, text: str, interact: str, block: int, tmp_path: Path) -> None:
    path = written(tmp_path, name, text)
    assert thresher.train(path, "sgd", interact=interact, passes=1).warnings == []
    source = open_source(path, layout=Layout("vw", interact=(interact,)), block_bytes=block)
    list(source.chunks())
    named = sorted(one for one in interact.split(",") if one != "*")
    assert sorted(one.column for one in source.report.noticed if one.what == "found") == named


def test_data_that_go_on_get_a_warning_once(tmp_path: Path) -> None:
    path, model = written(tmp_path, "d.vw", VW), thresher.Model("sgd")
    with pytest.warns(thresher.TroubleWarning, match="no row has the namespace 'typo'"):
        model.learn(path, interact="user,typo")
    trained = thresher.train(path, "sgd", interact="user,ad", passes=1)
    one = written(tmp_path, "one.vw", "1 |user u1\n")
    trained.predict(one)
    trained.learn(one)
    assert thresher.train(one, continue_from=trained).warnings == []


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("option", ["nonnegative", "nonpositive"])
@pytest.mark.parametrize(
    ("data", "name"),
    [
        ((ROWS, LABELS), "typo"),
        ((ROWS, LABELS), "town"),  # a category, not a number
        (([*zip(ROWS, LABELS, strict=True)],), "typo"),
        ((["a red dog"] * 150, LABELS), "typo"),
        ("d.svm", "99"),
    ],
)
def test_a_sign_of_a_feature_that_no_row_has(option: str, data: Any, name: str, tmp_path: Path) -> None:
    if isinstance(data, str):
        data = (written(tmp_path, data, "1 1:1 2:1\n0 2:1\n" * 60),)
    known = "1" if name == "99" else "red" if data[0][0] == "a red dog" else "x"
    for passes in (1, 2):
        assert f"--{option} {name}" in said(*data, rule="sgd", passes=passes, **{option: [known, name]})
    assert not said(*data, rule="sgd", passes=1, **{option: known})


@pytest.mark.parametrize("name", ["d.csv", "d.parquet", ""])
def test_a_pattern_to_leave_out_that_matches_no_column(name: str, tmp_path: Path) -> None:
    frame: Any = pd.DataFrame(ROWS).assign(label=LABELS)
    data = frame if not name else str(tmp_path / name)
    if name:
        (frame.to_csv if name == "d.csv" else frame.to_parquet)(data, index=False)
    assert "no column matches --ignore 'tpyo*'" in said(data, rule="sgd", passes=1, ignore="tpyo*")
    assert not said(data, rule="sgd", passes=1, ignore="tow*")
