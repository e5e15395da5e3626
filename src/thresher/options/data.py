"""Options for how DATA are read and become features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from thresher.data.feature_specs import as_list
from thresher.data.formats.listing import DEFAULT, FORMATS, list_titles
from thresher.options import kinds
from thresher.options.option import PYTHON, Option

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from thresher.data.layout import AnyLayout
else:
    AnyLayout = ArrayLike = Any

Columns = str | int | Sequence[str | int]
"""Names, positions from 1, ranges and patterns: ``"2-14"``, ``"I*,day"``, ``["hour", "day"]``"""
MOST_THREADS = 1024
QUARANTINE = "quarantine="
_COLUMNS = "COL,..."
_ENDINGS = ", ".join(form.endings[0] for form in FORMATS.values() if form.endings)
_FLAG = kinds.Flag()


def _format(name: object) -> object:
    from thresher.data.formats.choosing import check_format

    return check_format(kinds.text(name))


def _on_error(what: object) -> str:
    from thresher.options.synonyms import did_you_mean

    known = "fail, skip or quarantine=FILE"
    if not isinstance(what, str) or what == QUARANTINE:
        raise kinds.WrongValueError(known)
    if what not in ("fail", "skip") and not what.startswith(QUARANTINE):
        raise kinds.WrongValueError(known, did_you_mean(what, ("fail", "skip")))
    return what


ON_ERROR, OF_BAD_LINES = kinds.Text(_on_error), "What to do about a bad line: fail, skip, or quarantine=FILE."
THREADS = Option(kinds.Whole(1, MOST_THREADS), "N", unset="one per processor, at most 4")


def _join(value: object) -> str:
    """Several columns, patterns or namespaces, as a list in one text."""
    return value if isinstance(value, str) else as_list(kinds.names(value))


class SyntaxOptions(TypedDict, total=False):
    """What is written where in DATA, and which columns are left out."""

    format: Annotated[
        str,
        Option(
            kinds.Text(_format),
            "FORMAT",
            unset=f"by file name: {_ENDINGS}; any other, such as .txt, .data or .dat, is {DEFAULT}; for a "
            "model, its own, or that of a table in another format by name and content",
        ),
        f"{list_titles([*FORMATS], 'or')}.",
    ]
    header: Annotated[bool, Option(_FLAG, unset="header"), "Whether the first line names the columns."]
    delimiter: Annotated[
        str,
        Option(
            kinds.Text(
                lambda given: "\t" if kinds.text(given) == r"\t" else str(given),
                write=lambda byte: byte.replace("\t", r"\t"),
            ),
            "BYTE",
            unset="comma, tab",
        ),
        "Byte between the cells of CSV and TSV; \\t is a tab.",
    ]
    missing: Annotated[
        str | Sequence[str],
        Option(kinds.WORDS, "CELL,..."),
        "Cells of CSV and TSV that mean a missing value, in addition to empty ones. A missing value adds "
        "nothing to a prediction; a missing number counts as the mean of its column if that is centred.",
    ]
    quoting: Annotated[
        bool,
        Option(_FLAG, unset="quoting"),
        "Whether cells of CSV may be quoted. If not, a quote is a character like any other.",
    ]
    label_weights: Annotated[
        bool,
        Option(_FLAG, unset="no-label-weights"),
        "Whether svmlight lines may begin with label:weight. If not, a first field with a colon is a "
        "feature, and the row has no label.",
    ]
    ignore: Annotated[Columns, Option(kinds.COLUMNS, _COLUMNS), "Columns to leave out."]


class WritingOptions(SyntaxOptions, total=False):
    """How an existing model reads DATA; options left out are those of its training data."""

    where: Annotated[
        str,
        Option(kinds.FILTER, "FILTER", default=""),
        "Which rows of a table to read: COL = VALUE or another comparison, COL in "
        "(VALUE, ...), COL is null, COL is not null; join several with and; put strings and dates in single "
        "quotes.",
    ]


class FeatureOptions(TypedDict, total=False):
    """How DATA become labels and features."""

    label: Annotated[
        Columns,
        Option(kinds.Text(_join, columns=True), "COL", unset="label"),
        "Label column of a table: its name, or its number, counted from 1; K columns, separated by commas, "
        "for --outputs values:K.",
    ]
    classes: Annotated[
        str | Sequence[str],
        Option(kinds.WORDS, "WORD,...", unset="found by reading the labels first, and sorted"),
        "Labels that are words, in the order of their classes; of two, the second is the positive class.",
    ]
    weight: Annotated[str | int, Option(kinds.COLUMN_OR_NONE, "COL"), "Column of the importance weight."]
    offset: Annotated[
        str | int,
        Option(kinds.COLUMN, "COL"),
        "Column of numbers that are added to the margin, in learning and in prediction; base in VW text.",
    ]
    group: Annotated[
        str | int,
        Option(kinds.COLUMN, "COL"),
        "Keep rows with the same value on one side of --holdout and in one fold: a column, which is then no "
        "feature; qid in svmlight; tag, or a namespace, in VW text.",
    ]
    numeric: Annotated[
        Columns,
        Option(kinds.COLUMNS, _COLUMNS, unset="those that hold only numbers"),
        "Numeric columns: names, numbers, ranges (2-14, C14-C21) or patterns (I*), separated by commas; a "
        "name with a comma is in double quotes.",
    ]
    bins: Annotated[
        Columns,
        Option(kinds.COLUMNS, _COLUMNS),
        "Columns of counts, put in bins that widen with the count: each bin is a feature.",
    ]
    categorical: Annotated[
        Columns,
        Option(kinds.COLUMNS, _COLUMNS, unset="all other columns"),
        "Categorical columns: each value is a feature.",
    ]
    text: Annotated[
        Columns,
        Option(kinds.COLUMNS, _COLUMNS),
        "Text columns, or namespaces of VW text: their words or other n-grams are features.",
    ]
    ngrams: Annotated[
        str,
        Option(kinds.TEXT, "SPEC", unset="words=1"),
        "Which n-grams: words=LO-HI, chars=LO-HI, case (keep capitals), tokens=words|letters|blanks, "
        "shortest=N, scale=count|binary|log, norm; separated by commas.",
    ]
    interact: Annotated[
        str | Sequence[str | Sequence[str]],
        Option(kinds.Repeated(kinds.Text(_join)), "A,B[,C]", unset="none"),
        "Add products of features of two or three columns (or patterns) or namespaces (* for any); repeat "
        "for more.",
    ]
    bits: Annotated[
        int, Option(kinds.Whole(1), "B", unset="all 64"), "Bits of the keys that names are hashed to."
    ]
    hash: Annotated[
        Literal["64", "vw"],
        Option(kinds.TEXT, "HASH", unset="64"),
        "How names are hashed: 64, or vw (with --bits) for the indices of Vowpal Wabbit.",
    ]


class LayoutOptions(SyntaxOptions, FeatureOptions):
    """How DATA are read and become features: the fields of a `Layout`."""


class TableOptions(WritingOptions, FeatureOptions):
    """The fields of a `Layout`, and which rows are read."""


class JudgingOptions(WritingOptions, total=False):
    """How DATA are read to measure a model."""

    label: Annotated[
        str | int,
        Option(kinds.COLUMN, "COL", unset="as in training"),
        "Label column of a table: its name, or its number.",
    ]
    weight: Annotated[
        str | int,
        Option(kinds.COLUMN_OR_NONE, "COL", unset="as in training"),
        "Importance column of a table: its name, or its number; '' counts all rows alike.",
    ]


class OnErrorOption(TypedDict, total=False):
    """What is done about bad lines."""

    on_error: Annotated[str, Option(ON_ERROR, "WHAT", default="fail"), OF_BAD_LINES]


class ElsewhereOptions(TypedDict, total=False):
    """Which other processes read; and the layout as an object."""

    workers: Annotated[
        int | None,
        Option(kinds.Whole(1, MOST_THREADS), "N", unset="none; with --ray, one per processor of the cluster"),
        "Processes that read and parse the files, through Ray; they change no result.",
    ]
    ray: Annotated[
        str | None,
        Option(kinds.TEXT, "ADDRESS"),
        "A Ray cluster whose machines read the files; auto: the one this machine is in.",
    ]
    layout: Annotated[AnyLayout | None, Option(kinds.Kind(), face=PYTHON)]


class ReadingOptions(OnErrorOption, ElsewhereOptions, total=False):
    """What is done about bad lines, and which threads and processes read."""

    threads: Annotated[int | None, THREADS, "Threads that read and parse."]


class ReadOptions(TableOptions, ReadingOptions, total=False):
    """How a model that exists reads data; options left out are those of its training data."""

    offsets: Annotated[ArrayLike | None, Option(kinds.Kind(), face=PYTHON)]
