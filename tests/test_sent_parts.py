"""Parts of your own as copies, as pickles, and by their name in another process."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import clone

from thresher import part
from thresher.engine.protocol import KINDS
from thresher.parts import REGISTRY, SpecError, lookup
from thresher.parts.origins import MAIN, expect
from thresher.sklearn import SparseOnlineClassifier


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    before = dict(REGISTRY["rate"])
    yield
    REGISTRY["rate"].clear()
    REGISTRY["rate"].update(before)


def defined(*fields: str) -> Any:
    """A rate called `cooled` with these fields."""
    named: Any = NamedTuple  # which type checkers take with literal fields only
    made = named("Cooled", [(one, float) for one in fields])
    made.__new__.__defaults__ = (0.5,) * len(fields)
    made._field_defaults.update(dict.fromkeys(fields, 0.5))
    made.__module__, made.at = __name__, lambda self, t: 1.0
    return part("rate")(made)


def test_a_copy_is_of_the_class_of_its_original() -> None:
    cls = defined("one", "two")
    old, below = cls(1.0, 2.0), type("Below", (cls,), {})(1.0, 2.0)
    defined("two", "one")
    for made in (old, below):
        nested = SparseOnlineClassifier(rule="sgd", rate=made)
        for copied in (copy.copy(made), copy.deepcopy([made])[0], clone(nested).rate):
            assert type(copied) is type(made)
            assert copied == made


def test_fields_are_sent_by_name_and_are_those_of_the_class_there() -> None:
    sent = pickle.dumps(defined("one", "two")(1.0, 2.0))
    there = defined("two", "one")
    assert pickle.loads(sent) == there(one=1.0, two=2.0)
    defined("one", "three")
    with pytest.raises(SpecError, match=r"sent with the fields one, two, but has one, three in"):
        pickle.loads(sent)


def known_elsewhere(module: str, path: Path | None) -> Any:
    """Look up what a process sent whose module, and perhaps file, these are."""
    expect({("rate", "sent"): (module, str(path or ""))})
    return lookup("rate", "sent")


def test_what_is_not_known_here_is_an_error(tmp_path: Path) -> None:
    path, begin = tmp_path / "own.py", "the rate sent of another process is not known here: "
    end = ": put it in a module that both can import"
    for module, file, said in (
        ("thresher_file_own", path, f"{path}: no such file or directory"),
        (f"{MAIN}own", path, f"the script {path} defines it"),
        ("nothing_like_it", None, "No module named 'nothing_like_it'"),
        ("json", None, "json: defines no rate called sent"),
    ):
        with pytest.raises(SpecError) as caught:
            known_elsewhere(module, file)
        assert str(caught.value) == begin + said + end


def test_a_class_that_is_sent_whole_is_the_class_of_the_part() -> None:
    old = defined("one")
    old.__module__ = "__main__"
    receive, given = old(2.0).__reduce__()
    defined("one", "two")
    assert type(receive(*given)) is old
    del KINDS[old]
    assert type(receive(*given)) is old
    assert lookup("rate", "cooled") is old
    assert np.isfinite(receive(*given).one)
