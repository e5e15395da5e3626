"""Keyword options, and whether they describe the data (a `Layout`) or the model (a `Recipe`).

This is the only table of the keywords of `thresher.train` and related functions that are fields of another
class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from thresher.data.columns import EMPTY, for_new_data
from thresher.data.formats.choosing import check_format
from thresher.data.hints import meant
from thresher.data.layout import AnyLayout, Layout, SettledLayout
from thresher.data.listed import as_list, names_in
from thresher.learning.checks import check_flag
from thresher.learning.given import check_layout
from thresher.learning.recipe import Recipe
from thresher.parts import lacking

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from thresher.learning.recipe import Spec

Columns = str | int | Sequence[str | int]
"""Names, positions from 1, ranges and patterns: ``"2-14"``, ``"I*,day"``, ``["hour", "day"]``"""


class LayoutOptions(TypedDict, total=False):
    """How files and tables become features: the fields of a `Layout`."""

    format: str
    header: bool
    delimiter: str
    missing: str | Sequence[str]
    quoting: bool
    quoted_newlines: bool
    label_weights: bool
    classes: str | Sequence[str]
    label: Columns
    weight: str | int
    group: str | int
    numeric: Columns
    bins: Columns
    categorical: Columns
    text: Columns
    ngrams: str
    interact: str | Sequence[str | Sequence[str]]
    ignore: Columns
    bits: int
    hash: Literal["64", "vw"]


class WorkerOptions(TypedDict, total=False):
    """Which other processes read and parse the files: see `cluster.elsewhere.reads_elsewhere`."""

    workers: int | None
    ray: str | None


class BoostOptions(LayoutOptions, WorkerOptions, total=False):
    """How data become features, and what reads the files."""


class SourceOptions(LayoutOptions, WorkerOptions, total=False):
    """How an existing model reads data; options left out are those of its training data."""

    layout: AnyLayout | None
    on_error: str
    threads: int | None
    where: str


class ModelOptions(LayoutOptions, WorkerOptions, total=False):
    """The above, and fields of a `Recipe` and of its rule and rate."""

    rate: Spec | None
    batch: int
    average: bool
    scale: Literal["max-abs", "standard"] | None
    centre: bool | None
    admit: str | int | None
    store: str
    intercept: bool
    dtype: DTypeLike
    seed: int
    alpha: float | None
    l2: float | None
    eta0: float | None


class TrainOptions(ModelOptions, total=False):
    """The above, and the penalty, which `thresher.path` and `thresher.cv` vary themselves."""

    l1: float | None


OF_LAYOUT = frozenset(LayoutOptions.__annotations__)
_WATCH = "here the result has the figures"
COMMAND_ONLY = {
    "resume": "init=MODEL starts from a saved model",
    "checkpoint": "feed Model.learn in parts, and save the model between them",
    "checkpoint_every": "feed Model.learn in parts, and save the model between them",
    "report_every": "thresher.train prints the table of progress",
    "report": _WATCH,
    "quiet": "nothing is printed here",
    "json": _WATCH,
    "weights_only": "use model.save(path, state=False)",
    "curve": "model.curve has the points",
    "strict": "warnings.simplefilter('error', thresher.TroubleWarning) makes warnings errors",
}
"""Options of ``thresher train`` that Python has in another form"""
_LISTS = ("missing", "numeric", "bins", "categorical", "text", "ignore", "classes")
_FLAGS = ("header", "quoting", "quoted_newlines", "label_weights")


def check_names(function: Callable[..., Any], names: Mapping[str, Any], known: type) -> None:
    """Raise TypeError for an unknown name, and suggest the closest known one."""
    own = [
        name
        for name, one in signature(function).parameters.items()
        if one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    ]
    known_names = [*dict.fromkeys([*own, *known.__annotations__])]
    for name in names:
        if name not in known_names:
            if name in COMMAND_ONLY:
                raise TypeError(f"{name} is an option of the command line; {COMMAND_ONLY[name]}")
            rule = names.get("rule", Recipe.rule)
            near = meant(name, [one for one in known_names if one not in lacking(rule, known_names)])
            hint = f"; did you mean {' or '.join(map(_typed, near))}?" if near else ""
            hint = hint or f"; it has {', '.join(known_names)}"
            raise TypeError(f"{function.__name__} has no option {name}{hint}")


def _typed(target: str) -> str:
    """A suggestion as the user would type it."""
    name, equals, value = target.partition("=")
    if name.startswith("thresher "):
        return ".".join(name.split()[:2])
    return f'{name}="{value}"' if equals else name


def parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into fields of a layout and all others."""
    of_layout = {name: value for name, value in options.items() if name in OF_LAYOUT}
    return of_layout, {name: value for name, value in options.items() if name not in OF_LAYOUT}


def layout_given(layout: AnyLayout | None, options: Mapping[str, Any]) -> AnyLayout | None:
    """The given layout, or one made of the given fields; None if neither is given.

    ValueError if both are given, or for invalid values; `DataError` if no data can be read with these fields.
    """
    check_layout(layout)
    fields_given = _fields_given(options)
    if fields_given and layout is not None:
        raise ValueError(
            f"{next(iter(fields_given))} is a field of the layout: set it there, or leave out layout"
        )
    return Layout(**fields_given) if fields_given else layout


def layout_like(
    trained: SettledLayout | None, layout: AnyLayout | None, options: Mapping[str, Any]
) -> AnyLayout | None:
    """The layout of the training data, changed by the given options. Raises the errors of `layout_given`."""
    found = layout_given(layout, options)
    if found is None or trained is None or layout is not None:
        return found or trained
    fields_given = _fields_given(options)
    pairs = zip(trained.columns, trained.kinds, strict=True)
    known = frozenset(name for name, kind in pairs if kind != EMPTY)
    more = tuple(name for name in fields_given.pop("ignore", ()) if name not in known)
    like = for_new_data(trained, {"format": None, **fields_given})
    return replace(like, ignore=like.ignore + more)


def _fields_given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(name, value) for name, value in options.items() if value is not None}


def _value(name: str, value: Any) -> Any:
    """The value of a field, converted to its type. ValueError if it cannot be."""
    if name in _FLAGS:
        check_flag(name, value)
        return bool(value)
    if isinstance(value, Mapping):
        raise ValueError(f"{name} must not be a dictionary, {value!r}")
    if name in _LISTS:
        return names_in(value) if isinstance(value, str) else _texts(name, value)
    if name == "interact":
        specs = [value] if isinstance(value, str) else value
        return tuple(one if isinstance(one, str) else as_list(_texts(name, one)) for one in _several(specs))
    if name == "label":
        return value if isinstance(value, str) else as_list(_texts(name, value))
    if name in ("weight", "group") and isinstance(value, int):
        return str(value)
    wanted: type = type(getattr(Layout, name))
    if not isinstance(value, wanted) or isinstance(value, bool):
        kind = "text" if wanted is str else "a whole number"
        raise ValueError(f"{name} must be {kind}, not {value!r}")
    if name == "format":
        return check_format(str(value))
    return "\t" if (name, value) == ("delimiter", r"\t") else value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """Convert names and positions to strings; ValueError."""
    several = _several(value)
    for one in several:
        if not (isinstance(one, str) or hasattr(one, "__index__")) or isinstance(one, bool):
            raise ValueError(f"{name} must be names or positions of columns, not {one!r}")
    return tuple(str(one) for one in (sorted(several) if isinstance(value, Set) else several))


def _several(value: Any) -> list[Any]:
    return [*value] if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
