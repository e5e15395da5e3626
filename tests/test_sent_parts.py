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
from thresher.parts import REGISTRY, SpecError, lookup
from thresher.parts.origins import DEFINED, MAIN, expect
from thresher.sklearn import SparseOnlineClassifier

SCRIPT = """
from typing import Final, NamedTuple
import numpy as np
from thresher import part

{}

def helper():
    return {}

@part("rate")
class Sent(NamedTuple):
    by: float = 0.5

    def at(self, t):
        return self.by + helper()
"""


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
    with pytest.raises(SpecError, match=r"sent with the fields one, two, but has the fields one, three in"):
        pickle.loads(sent)


def from_script(path: Path) -> Any:
    expect({("rate", "sent"): (f"{MAIN}{path.stem}_{path.parent.name}", str(path))})
    return lookup("rate", "sent")


@pytest.mark.parametrize(
    "constant",
    [
        "W: Final[int] = 3",
        "try:\n    import nothing_like_it\nexcept ImportError:\n    W = 3",
        "if __name__ == '__main__':\n    W = 4\nelse:\n    W = 3",
    ],
)
def test_constants_of_a_script_are_defined(constant: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(constant, "W"))
    assert from_script(tmp_path / "script.py")(0.5).at(1.0) == 3.5


@pytest.mark.parametrize("constant", ["W = np.float64(3)", "W = [3][0]", "if True:\n    print(W := 3)"])
def test_a_name_that_a_script_does_not_define_is_an_error(constant: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(constant, "max(one * W for one in (0, 1))"))
    with pytest.raises(SpecError) as caught:
        from_script(tmp_path / "script.py")
    assert str(caught.value) == (
        f"the rate sent of another process is not known here: {tmp_path / 'script.py'}: NameError: name 'W'"
        " is not defined, which helper reads; of a script, only imports, definitions and constants are"
        " executed in other processes: put it in a module that both can import"
    )


def test_a_script_that_has_moved_or_changed_is_an_error(tmp_path: Path) -> None:
    path, begin = tmp_path / "script.py", "the rate sent of another process is not known here: "
    with pytest.raises(SpecError) as caught:
        from_script(path)
    end = ": put it in a module that both can import"
    assert str(caught.value) == f"{begin}{path}: no such file or directory{end}"
    path.write_text(SCRIPT.format("W = 3", "W").replace("Sent", "Other"))
    with pytest.raises(SpecError) as caught:
        from_script(path)
    assert str(caught.value) == f"{begin}{path}: defines no rate called sent{end}"
    expect({("rate", "sent"): ("nothing_like_it", "")})
    with pytest.raises(SpecError, match=f"{begin}No module named 'nothing_like_it'{end}"):
        lookup("rate", "sent")


def test_a_class_that_is_sent_whole_is_the_class_of_the_part() -> None:
    old = defined("one")
    old.__module__ = "__main__"
    receive, given = old(2.0).__reduce__()
    defined("one", "two")
    assert type(receive(*given)) is old
    del DEFINED[old]
    assert type(receive(*given)) is old
    assert lookup("rate", "cooled") is old
    assert np.isfinite(receive(*given).one)
