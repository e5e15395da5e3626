"""SPECs: parsing, writing, error messages; and which classes `part` rejects."""

import math
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher import parts
from thresher.engine.protocol import PROTOCOL, rebuilt
from thresher.parts import SpecError, rule_of
from thresher.parts.registry import REGISTRY, part

KINDS = sorted(parts.REGISTRY)
CLASSES = [(kind, name) for kind in KINDS for name in sorted(parts.REGISTRY[kind])]


@pytest.mark.parametrize(
    ("kind", "spec", "hints"),
    [
        ("rule", "", ["''", "known:"]),
        ("rule", "ftrl,l1=1", ["no rule is called 'ftrl,l1=1'; write ftrl:l1=1"]),
        ("rule", "hinge", ["no rule is called 'hinge'; it is a loss (loss=\"hinge\")"]),
        ("loss", "ftrl", ['it is a rule (rule="ftrl")']),
        (
            "rule",
            "sgd:lr=1",
            ["sgd has no parameter lr; its step size is the option rate, such as inverse-sqrt:"],
        ),
        ("rule", "adagrad-rda:eta0=1", ["did you mean eta? (it has eta, l1"]),
        ("rule", "sgd:foo=1", ["sgd has no parameter foo; it takes none"]),
        ("rate", "1e-3", ["did you mean constant:1e-3 or inverse-sqrt:1e-3?"]),
        ("rule", "cw:rate=1", ["cw has no parameter rate; it has eta"]),  # which is a probability there
        (
            "rule",
            "fobos:rate=0.1",
            ["no parameter rate; its step size is the option rate, such as", "l1, l2"],
        ),
        ("rule", "fobos:l1=inf", ["l1 must be finite and >= 0, not inf"]),
        ("rule", "ft-ftrl:forget=0.5", ["forget must be 0, or >= 1, not 0.5"]),
        ("rule", "adagrad-rda:1,2,3,4,5", ["adagrad-rda takes at most 4 values: eta, l1, l2, delta"]),
        ("rule", "truncated-gradient:every=inf", ["every must be finite and a whole number", "not inf"]),
        ("rule", "truncated-gradient:theta=theta", ["theta must be a number, not 'theta'"]),
        ("rule", "truncated-gradient:theta=gravity,gravity=theta", ["gravity", "theta"]),
        ("rule", "pegasos:project=maybe", ["project must be true or false, not 'maybe'"]),
        ("loss", 7, ["expected the name of a loss or a loss, not 7"]),
        ("loss", np.zeros(300), ["not array([0., 0., ", "..."]),
        ("rule", "ft-ftrl:group", ["write group=single|l2|linf"]),
        ("rule", "ft-ftrl:group=l2:3", ["no group is called 'l2:3'", "known: l2"]),
    ],
)
def test_a_wrong_spec_is_answered_in_one_line_that_helps(kind: str, spec: Any, hints: list[str]) -> None:
    with pytest.raises(parts.SpecError) as caught:
        parts.make(kind, spec)
    message = str(caught.value)
    assert "\n" not in message
    for hint in hints:
        assert hint in message


def test_a_part_of_another_kind_is_no_part_of_this_one() -> None:
    with pytest.raises(parts.SpecError, match="expected the name of a rule"):
        parts.make("rule", parts.make("loss", "hinge"))
    with pytest.raises(parts.SpecError, match="ftrl has no rate"):
        parts.make("rule", "ftrl", rate=parts.make("rate", "constant"))


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ("truncated-gradient:gravity=0.25,theta=gravity", {"gravity": 0.25, "theta": 0.25}),
        ("truncated-gradient:theta=gravity", {"gravity": 1e-6, "theta": 1e-6}),
        ("ftrl:half-life=7,l1=2", {"half_life": 7.0, "l1": 2.0}),
        ("ft-ftrl:half_life=inf", {"half_life": math.inf}),
        (" truncated-gradient : 0.5 , inf , 10 ", {"gravity": 0.5, "theta": math.inf, "every": 10.0}),
        ("truncated-gradient:0.5,every=3", {"gravity": 0.5, "every": 3.0}),
        ("fobos:l1=1e-3", {"l1": 1e-3, "l2": 0.0}),
        ("pegasos:l2=1,project=No,skip_correct=TRUE", {"project": False, "skip_correct": True}),
        ("pegasos:1,0,1", {"l2": 1.0, "project": False, "skip_correct": True}),
    ],
)
def test_what_a_spec_makes(spec: str, fields: dict[str, Any]) -> None:
    made = parts.make("rule", spec)
    for field, value in fields.items():
        assert getattr(made, field) == value
        assert type(getattr(made, field)) is type(value)


def values_of(cls: Any, field: str, default: Any) -> st.SearchStrategy[Any]:
    if isinstance(default, bool):
        return st.booleans()
    if isinstance(default, tuple):  # a part of the kind that the field is named after
        return st.sampled_from([cls() for cls in REGISTRY[field].values()])
    ranges = {
        ">= 0": st.floats(0, 1e6),
        "> 0": st.floats(1e-300, 1e6),
        "inf": st.just(float("inf")),
        "0, or >= 1": st.just(0.0) | st.floats(1, 1e6),
        ">= 1": st.floats(1, 1e6),
        ">= 1, inf included": st.floats(1, 1e6) | st.just(float("inf")),
        ">= 1, or inf": st.floats(1, 1e6) | st.just(float("inf")),
        "in (0, 1)": st.floats(1e-9, 1 - 1e-9),
        "in (0.5, 1)": st.floats(0.5 + 1e-9, 1 - 1e-9),
        "in (1, 2)": st.floats(1 + 1e-9, 2 - 1e-9),
        "in [0, 1]": st.floats(0, 1),
        "a whole number >= 1": st.integers(1, 10**6).map(float),
        "any number": st.floats(-1e6, 1e6),
    }
    return ranges[getattr(cls, "LIMITS", {}).get(field, ">= 0")]


@pytest.mark.parametrize(("kind", "name"), CLASSES)
@settings(max_examples=max(15, settings().max_examples // 3))
@given(st.data())
def test_a_part_is_written_as_the_spec_that_makes_it(kind: str, name: str, data: st.DataObject) -> None:
    cls = parts.lookup(kind, name)
    fields = parts.parameters(cls).items()
    made = cls(**{field: data.draw(values_of(cls, field, default)) for field, default in fields})
    spec = parts.spec_of(made)
    assert parts.make(kind, spec) == made
    assert parts.spec_of(parts.make(kind, spec)) == spec
    assert parts.make(kind, made) is made


@pytest.mark.parametrize(("kind", "name"), CLASSES)
def test_whole_numbers_are_taken_as_numbers_and_limits_hold_in_python_too(kind: str, name: str) -> None:
    cls = parts.lookup(kind, name)
    for field, default in parts.parameters(cls).items():
        if isinstance(default, float) and values_of(cls, field, default) is not None:
            with pytest.raises(parts.SpecError, match=field):
                cls(**{field: math.nan})
            with pytest.raises(parts.SpecError, match=field):
                rebuilt(cls(), **{field: -math.inf})
            for wrong in ("1", None, True):
                with pytest.raises(parts.SpecError, match=rf"{field} must be a number, not {wrong!r}"):
                    cls(**{field: wrong})
    assert all(type(value) is not int for value in parts.make(kind, name))


def test_numbers_of_numpy_are_taken_as_numbers() -> None:
    made = parts.lookup("rule", "ftrl")(np.float32(0.5), np.int64(2), l1=np.float64(0.25), l2=3)
    assert made[:4] == (0.5, 2.0, 0.25, 3.0)
    assert {type(value) for value in made[:4]} == {float}
    with pytest.raises(parts.SpecError, match=r"l1 must be >= 0, not -1"):
        rebuilt(made, l1=np.int64(-1))
    with pytest.raises(parts.SpecError, match=r"l1 must be finite and >= 0, not inf"):
        rebuilt(made, l1=10**400)


# Classes that `part` rejects. Each is a complete rule except for one thing.


class _Whole(NamedTuple):
    amount: float = 1.0

    def clock0(self) -> None: ...

    def weight(self, S: Any, j: Any, now: Any) -> None: ...

    def step(self, S: Any, j: Any, w: Any, x: Any, slope: Any, now: Any) -> None: ...


def broken(**changes: Any) -> Any:
    """A copy of the whole rule with attributes changed, or left out where the change is None."""
    own = {"SLOTS": ("w",), "CLOCK": ("t",)}
    verbs = {verb: vars(_Whole)[verb] for verb in ("clock0", "weight", "step")}
    Broken = namedtuple("Broken", ["amount"])
    cls: Any = Broken
    for name, value in {**verbs, **own, **changes}.items():
        if value is not None:
            setattr(cls, name, value)
    return cls


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"weight": None}, r"must define weight\(self, S, j, now\)"),
        ({"step": None}, r"must define step\(self, S, j, w, x, slope, now\)"),
        ({"weight": lambda self, S, i, now: None}, r"weight takes \(self, S, j, now\), by these names"),
        ({"tick": lambda self, time: None}, r"tick takes \(self, clock\)"),
        ({"idle": lambda self, S, j: None}, r"idle takes \(self, S, j, w, now\)"),
        ({"SLOTS": None}, r"must say SLOTS"),
        ({"DRIFTS": ("owed",)}, r"must define drift, unless all of DRIFTS = \('owed',\) are in CLOCK"),
    ],
)
def test_part_says_what_a_rule_lacks(changes: dict[str, Any], hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        part("rule")(broken(**changes))
    assert "broken" not in REGISTRY["rule"]


@pytest.mark.parametrize(
    ("cls", "why"),
    [
        (type("Plain", (), {}), r"rule Plain must be a NamedTuple with a field or more"),
        (NamedTuple("Empty", []), "must be a NamedTuple with a field or more"),
    ],
)
def test_a_part_is_a_named_tuple_with_fields(cls: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        part("rule")(cls)


def test_a_rule_without_a_state_of_all_coordinates_needs_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "rule", dict(REGISTRY["rule"]))
    cls = part("rule")(broken(CLOCK=None, clock0=None))
    assert cls(1.0).clock0().tolist() == [0.0]
    assert part("rule")(broken(CLOCK=("t", "u"), clock0=None))(1.0).clock0().tolist() == [0.0, 0.0]


def test_a_loss_says_which_labels_it_takes() -> None:
    class Odd(REGISTRY["loss"]["hinge"]):  # type: ignore[misc]
        DOMAIN = "odd"

    with pytest.raises(TypeError, match="loss Odd: DOMAIN must be binary, real, nonnegative or positive"):
        part("loss")(Odd)


def test_a_whole_rule_is_taken_completed_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "rule", dict(REGISTRY["rule"]))
    cls = part("rule")(broken())
    assert REGISTRY["rule"]["broken"] is cls
    assert all(hasattr(cls, verb) for verb in PROTOCOL["rule"])
    assert cls(2).amount == 2.0
    with pytest.raises(parts.SpecError, match="amount must be >= 0"):
        cls(-2)


def test_the_parts_that_come_with_thresher_keep_their_names() -> None:
    with pytest.raises(TypeError, match="a rule is already called sgd: give Sgd another name"):
        part("rule")(type("Sgd", (parts.REGISTRY["rule"]["sgd"],), {"SLOTS": ("w",), "CLOCK": ("t",)}))

    assert parts.REGISTRY["rule"]["sgd"].__module__ == "thresher.parts.rules.sgd"


@pytest.mark.parametrize(
    ("clock", "said"),
    [(np.zeros(3), r".*float64, \(3,\)"), (np.zeros(1, np.float32), r".*float32, \(1,\)"), ([0.0], "list")],
    ids=["too long", "float32", "a list"],
)
def test_a_clock_has_a_number_for_each_of_its_names(clock: Any, said: str) -> None:
    class Ticking(parts.REGISTRY["rule"]["sgd"]):  # type: ignore[misc]
        SLOTS, CLOCK = ("w",), ("t",)

        def clock0(self) -> Any:
            return clock

    with pytest.raises(TypeError, match=rf"rule Ticking: clock0 must return .* CLOCK = \('t',\), not {said}"):
        part("rule")(Ticking)
    assert "ticking" not in parts.REGISTRY["rule"]


@pytest.mark.parametrize(
    ("rule", "options", "meant"),
    [
        *(("adagrad-fobos", {"eta0": 1.0}, "eta"), ("pegasos", {"l1": 1.0}, None)),
    ],
)
def test_an_option_of_no_rule_leads_to_the_one_it_has(rule: str, options: Any, meant: str | None) -> None:
    (said,) = options
    text = rf"{rule} has no parameter {said}; " + (rf"did you mean {meant}\?" if meant else "it has l2, ")
    with pytest.raises(SpecError, match=text):
        rule_of(rule, **options)


@pytest.mark.parametrize("wrong", ["rul", "", dict])
def test_the_kind_must_be_one_there_is(wrong: Any) -> None:
    """A class is given where the parentheses after ``@part`` were forgotten."""
    with pytest.raises(TypeError, match=r'a part is one of .*@part\("rule"\)[^;]*; not'):
        part(wrong)
