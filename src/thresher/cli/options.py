"""Options that several commands share, and the checks made before any work is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import UsageError
from thresher.cli.plain_values import Bounds
from thresher.data.formats.listing import DEFAULT, EXAMPLES, FORMATS, listed

if TYPE_CHECKING:
    from thresher.data.layout import AnyLayout, SettledLayout

_QUARANTINE = "quarantine="


def _check_on_error(text: str) -> str:
    if text not in ("fail", "skip") and (not text.startswith(_QUARANTINE) or text == _QUARANTINE):
        from thresher.data.hints import did_you_mean

        near = did_you_mean("on-error", text, ("fail", "skip", "quarantine=FILE"))
        raise typer.BadParameter(f"expected fail, skip or quarantine=FILE, not '{text}'{near}")
    return text


_TEXTS = listed([form.title for name, form in FORMATS.items() if name in EXAMPLES], "or")
_OTHERS = "; ".join(form.title for name, form in FORMATS.items() if name not in EXAMPLES)
_ENDINGS = ", ".join(form.endings[0] for form in FORMATS.values() if form.endings)
Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        show_default=False,
        help=f"Files, URLs, globs, or - for standard input: {_TEXTS}, plain"
        f" or compressed by gzip, bz2, xz or zstd; {_OTHERS}.",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model written by thresher train.")
]
OnError = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        callback=_check_on_error,
        help="What to do about a bad line: fail, skip, or quarantine=FILE.",
    ),
]


MOST_THREADS = 1024
Threads = Annotated[
    int | None,
    typer.Option(metavar="N", help="Threads that read and parse.  [default: one per processor, at most 4]"),
    Bounds(1, MOST_THREADS),
]


def _check_format(text: str | None) -> str | None:
    from thresher.data.errors import DataError
    from thresher.data.formats.choosing import check_format

    try:
        return text if text is None else check_format(text)
    except DataError as error:
        raise typer.BadParameter(str(error)) from error


Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        callback=_check_format,
        help=f"{listed([*FORMATS], 'or')}.  [default: the model's; for a new one, by file name: "
        f"{_ENDINGS}; any other, such as .txt, .data or .dat, is {DEFAULT}]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


_COLUMNS = "COL,..."


@dataclass(frozen=True)
class Writing:
    """Options for the format of DATA and for which rows to read; use with `takes`."""

    form: Format = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line names the columns.  [default: header]"
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="BYTE", help="Byte between the cells of CSV and TSV; \\t is a tab.  [default: comma, tab]"
        ),
    ] = None
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="CELL,...",
            help="Cells of CSV and TSV that mean a missing value, in addition to empty ones.",
        ),
    ] = None
    quoting: Annotated[
        bool | None,
        typer.Option(
            "--quoting/--no-quoting",
            help="Whether cells of CSV may be quoted. If not, a quote is a character like any other."
            "  [default: quoting]",
        ),
    ] = None
    quoted_newlines: Annotated[
        bool | None,
        typer.Option(
            "--quoted-newlines/--no-quoted-newlines",
            help="Whether quoted cells of CSV may contain line breaks.  [default: no-quoted-newlines]",
        ),
    ] = None
    label_weights: Annotated[
        bool | None,
        typer.Option(
            "--label-weights/--no-label-weights",
            help="Whether svmlight lines may begin with label:weight. If not, a first field with a colon "
            "is a feature, and the row has no label.  [default: no-label-weights]",
        ),
    ] = None
    where: Annotated[
        str,
        typer.Option(
            metavar="FILTER",
            show_default=False,
            help="Which rows of Parquet or Arrow DATA to read: COL = VALUE or another comparison, COL"
            " in (VALUE, ...), COL is null, COL is not null; join several with and; put strings and dates "
            "in single quotes.",
        ),
    ] = ""
    ignore: Annotated[str | None, typer.Option(metavar=_COLUMNS, help="Columns to leave out.")] = None

    def given(self) -> dict[str, Any]:
        """Fields of a layout that describe the format of DATA."""
        from thresher.data.listed import names_in

        given: dict[str, Any] = {
            "header": self.header,
            "delimiter": "\t" if self.delimiter == r"\t" else self.delimiter,
            "missing": None if self.missing is None else names_in(self.missing),
            "quoting": self.quoting,
            "quoted_newlines": self.quoted_newlines,
            "label_weights": self.label_weights,
        }
        return {name: value for name, value in given.items() if value is not None}

    def like(self, trained: SettledLayout | None) -> AnyLayout | None:
        """How to read DATA for prediction: the layout of the training data, changed by the options given."""
        from thresher.data.layout import AnyLayout
        from thresher.data.listed import names_in

        given = self.given()
        if more := names_in(self.ignore or ""):
            given["ignore"] = (*(trained.ignore if trained else ()), *_unknown(more, trained))
        trained = trained and trained.ungrouped()
        if self.form is None and not given:
            return trained
        base: AnyLayout = trained or AnyLayout()
        return _checked(lambda: replace(base if self.form is None else base.in_format(self.form), **given))

    def opened(self, model: Any, data: Sequence[str], domain: Any, **reading: Any) -> Any:
        """DATA as a source for `model`, read like the training data except for the options given."""
        from thresher.data import open_source
        from thresher.learning.agreement import check_format, in_agreement

        layout = self.like(model.layout)
        check_format(model, layout)
        source = open_source(data, layout=layout, domain=domain, where=self.where, **reading)
        return in_agreement(model, source)


def _unknown(names: Sequence[str], trained: SettledLayout | None) -> list[str]:
    """The columns that the model does not have; UsageError for its features, which it needs."""
    from thresher.data.columns import EMPTY, FEATURES

    kinds = dict(zip(trained.columns, trained.kinds, strict=True)) if trained else {}
    if needed := [name for name in names if kinds.get(name) in FEATURES]:
        raise UsageError(f"--ignore {needed[0]}: the model was trained on this column and needs it")
    return [name for name in names if kinds.get(name, EMPTY) == EMPTY]


def _checked(made: Callable[[], AnyLayout]) -> AnyLayout:
    from thresher.data.errors import DataError

    try:
        return made()
    except DataError as error:
        raise UsageError(str(error)) from error


_OF_FEATURES = ("bits", "hash", "ngrams")
_OF_COLUMNS = ("numeric", "bins", "categorical", "text", "ignore")


@dataclass(frozen=True)
class Table(Writing):
    """Adds the options for how DATA become features."""

    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Label column of a table: its name, or its number, counted from 1; K columns, separated "
            "by commas, for --outputs values:K.  [default: label]",
        ),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="WORD,...",
            help="Labels that are words, in the order of their classes; of two, the second is the positive "
            "class.  [default: found by reading the labels first, and sorted]",
        ),
    ] = None
    weight: Annotated[str | None, typer.Option(metavar="COL", help="Column of the importance weight.")] = None
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Keep rows with the same value on one side of --holdout and in one fold: a column, which "
            "is then no feature; qid in svmlight; tag, or a namespace, in VW text.",
        ),
    ] = None
    numeric: Annotated[
        str | None,
        typer.Option(
            metavar=_COLUMNS,
            help="Numeric columns: names, numbers, ranges (2-14, C14-C21) or patterns (I*), separated by "
            "commas; a name with a comma is in double quotes.  [default: those that hold only numbers]",
        ),
    ] = None
    bins: Annotated[
        str | None,
        typer.Option(
            metavar=_COLUMNS,
            help="Columns of counts, put in bins that widen with the count: each bin is a feature.",
        ),
    ] = None
    categorical: Annotated[
        str | None,
        typer.Option(
            metavar=_COLUMNS,
            help="Categorical columns: each value is a feature.  [default: all other columns]",
        ),
    ] = None
    text: Annotated[
        str | None,
        typer.Option(metavar=_COLUMNS, help="Text columns: their words or other n-grams are features."),
    ] = None
    ngrams: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Which n-grams: words=LO-HI, chars=LO-HI, case (keep capitals), tokens=words|letters|blanks,"
            " shortest=N, scale=count|binary|log, norm; separated by commas.  [default: words=1]",
        ),
    ] = None
    interact: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B[,C]",
            help="Add products of features of two or three columns (or patterns) or namespaces (* for "
            "any); repeat for more.  [default: none]",
        ),
    ] = None
    bits: Annotated[
        int | None,
        typer.Option(metavar="B", help="Bits of the keys that names are hashed to.  [default: all 64]"),
        Bounds(1),
    ] = None
    hash: Annotated[
        str | None,
        typer.Option(
            metavar="HASH",
            help="How names are hashed: 64, or vw (with --bits) for the indices of Vowpal Wabbit."
            "  [default: 64]",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Also the fields for how DATA become features."""
        from thresher.data.listed import names_in, unquoted

        given = super().given() | {name: getattr(self, name) for name in ("label", *_OF_FEATURES)}
        given |= {name: unquoted(text) for name in ("weight", "group") if (text := getattr(self, name))}
        given |= {name: names_in(text) for name in _OF_COLUMNS if (text := getattr(self, name))}
        given |= {"classes": names_in(self.classes)} if self.classes else {}
        given |= {"interact": tuple(self.interact)} if self.interact else {}
        return {name: value for name, value in given.items() if value is not None}

    def layout(self, before: SettledLayout | None = None) -> AnyLayout:
        """How to read DATA: as the options say, which must agree with the layout `before`, if any."""
        from thresher.data.columns import same_columns
        from thresher.data.layout import COLUMN_OPTIONS, Layout, as_option

        given = self.given()
        layout = _checked(lambda: Layout(self.form or "", **given))
        if before is None:
            return layout
        own = [name for name in COLUMN_OPTIONS if name in given and (before.columns or name != "group")]
        columns = {name: given.pop(name) for name in own}
        for name, have in {**vars(before), "delimiter": before.delimited_by}.items():
            if given.get(name, have) != have:
                flag = name.replace("_", "-")
                raise UsageError(f"the model was trained {as_option(name, have)}; leave --{flag} out")
        if not same_columns(Layout(before.format, **columns), before, "the checkpoint"):
            raise UsageError(f"the checkpoint was made with other columns; leave --{' --'.join(columns)} out")
        return before if self.form is None else before.in_format(self.form)

    def for_warm_start(self, trained: SettledLayout | None) -> AnyLayout:
        """How to read DATA for a model that starts from the weights of one `trained` on other data."""
        from thresher.data.columns import extending

        if trained is None:
            return self.layout()
        return _checked(lambda: extending(trained, {**self.given(), "format": self.form}))


NO_TABLE = Table()


@dataclass(frozen=True)
class Judging(Writing):
    """Adds the option for importances, for commands that measure a model."""

    weight: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Importance column of a table: its name, or its number; '' counts all rows alike."
            "  [default: as in training]",
        ),
    ] = None

    def like(self, trained: SettledLayout | None) -> AnyLayout | None:
        """How to read DATA, with the importances in the column given."""
        from thresher.data.columns import for_new_data
        from thresher.data.layout import SettledLayout

        found, weight = super().like(trained), self.weight
        if weight is None:
            return found
        if not isinstance(found, SettledLayout):
            raise UsageError("the model was trained with no columns; leave --weight out")
        settled = found
        return _checked(lambda: for_new_data(settled, {"weight": weight}))


NO_WRITING = Writing()
NO_JUDGING = Judging()
"""No options given."""


def check_model_first(model: Path, data: Sequence[str], command: str) -> None:
    """UsageError if the model and the data are swapped."""
    from thresher.learning.modelfile import looks_like_ours

    found = [one for one in data if one != "-" and looks_like_ours(Path(one))]
    if found and model.is_file() and not looks_like_ours(model):
        first = f"thresher {command} {found[0]} {model}"
        raise UsageError(f"{model} is not a model, {found[0]} is one: the model comes first ({first})")


def quarantine_of(on_error: str) -> Path | None:
    """The file of ``quarantine=FILE``."""
    return Path(on_error.removeprefix(_QUARANTINE)) if on_error.startswith(_QUARANTINE) else None


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path]) -> None:
    """Check that outputs are writable and differ from inputs and each other; OSError, UsageError."""
    from thresher.learning.wholefile import check_writable

    taken = {_identity(Path(name)) for name in inputs if name != "-"}
    for path in outputs:
        if path is None:
            continue
        check_writable(path)
        place = _identity(path)
        if place in taken and (path.is_file() or not path.exists()):
            raise UsageError(f"{path}: named twice; it would be overwritten")
        taken.add(place)


def _identity(path: Path) -> object:
    """What two hard links to one file have in common; the path if the file does not exist yet."""
    place = Path(os.path.realpath(path))
    try:
        status = place.stat()
    except OSError:
        return place
    return status.st_dev, status.st_ino
