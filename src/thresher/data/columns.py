"""Tables: the kind of each column, settled once and kept in the layout.

They are settled when a file is opened, from the first MiB of text or from the schema, and never from a block:
the meaning of a row must not depend on how a file is cut. The beginning of a pipe is kept and read again; of
one whose rows `predict` is to answer as they come, only the first row.

The values of some columns are known beside the rows, since models are learned for each, or rows counted: the
keys of a row do not tell them. So readers give the texts in these columns (`Source.sliced`, `Chunk.cells`),
whether or not the column is a feature.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data import layout as layouts
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError, first_few, shorten
from thresher.data.feature_specs import as_list, in_list, names_in, pieces_in, unquote
from thresher.data.labels import list_words
from thresher.data.layout import SettledLayout, has_columns
from thresher.data.source import Source
from thresher.data.text.spelling import respell
from thresher.options.messages import mention

KINDS = IGNORE, ABSENT, EMPTY, GROUP, LIST, CATEGORICAL, TEXT, NUMERIC, BINS, LABEL, WEIGHT, OFFSET = (
    *("ignore", "absent", "empty", "group", "list", "categorical", "text"),
    *("numeric", "bins", "label", "weight", "offset"),
)
"""Kinds of columns. An absent column is not read and may be missing from the file. An empty column had no
value where the kinds were settled; it is not read, but a value in it is noticed. The place of a kind among
all is its code in compiled code (`table_rows`)."""
UNREAD = (IGNORE, ABSENT, EMPTY)
"""Kinds of columns that are not read, and may be missing from a file."""
FEATURES = (NUMERIC, BINS, CATEGORICAL, LIST, TEXT)
"""Kinds of columns that yield features."""
NUMBERS = (NUMERIC, BINS, WEIGHT, OFFSET)
"""Kinds of columns that hold numbers, besides the labels."""
SINGLE = (WEIGHT, OFFSET, GROUP)
"""Kinds of which there is one column at most, which yields no features."""
AS_TEXT, AS_NUMBER, AS_BOOLEAN, AS_DATE = "text", "number", "boolean", "date"
"""What the values of a column were in the training data: texts and dates, which are features as they are
written, or values, which are spelled as `text.spelling` does."""
SPELLED = (AS_NUMBER, AS_BOOLEAN)
_SHOWN, _LONGEST = 12, 60
_NEAR = 0.75
"""Names at least so similar may be one, misspelt"""
MOST_COLUMNS, LONGEST_NAME = 1_000_000, 1 << 16
"""Maximum number of columns of a table, and of characters in the name of one"""
_BY_STAR, _BY_PATTERN, _BY_NAME = 1, 2, 3
WILD = re.compile(r"[*?\[]")
_POSITIONS = re.compile(r"(\d+)(?:-(\d+))?")
_SEVERAL = re.compile(r"[*?\[]|^\d+(-\d+)?$")


_BY_OPTION = (NUMERIC, BINS, CATEGORICAL, TEXT, IGNORE)
"""Kinds that an option of the same name gives to any number of columns"""


def check_settled(layout: layouts.SettledLayout) -> layouts.SettledLayout:
    """`layout`; raises `DataError` unless its columns and kinds are consistent."""
    for what, given, known in (
        ("kinds", layout.kinds, KINDS),
        ("spelling", layout.spelling, (AS_TEXT, AS_DATE, *SPELLED, "")),
    ):
        if len(given) != len(layout.columns) or not {*given}.issubset(known):
            known_ones = ", ".join(filter(None, known))
            raise DataError(f"layout.{what}: expected one for each of the columns, of {known_ones}")
    if several := [kind for kind in SINGLE if layout.kinds.count(kind) > 1]:
        raise DataError(f"the layout has several columns of the kind '{several[0]}', of which there is one")
    if layout.offset and (layout.format, layout.offset) != ("vw", layouts.BASE):
        raise DataError(f"the layout's offset must be {layouts.BASE}, of vw, or empty, not '{layout.offset}'")
    check_once(layout.columns, "layout")
    return layout


LEARN_A_TABLE = "let a new model learn a table, Model.learn(rows, label=...)"
_NO_LABEL = f"name the label column ({mention(label='COL')})"


def settle(
    given: layouts.AnyLayout,
    names: Sequence[str],
    guesses: Sequence[str],
    file: str,
    later: Iterable[str] = (),
    open_ended: bool = False,
    spelling: Mapping[str, str] | None = None,
    labelled: bool = True,
) -> layouts.SettledLayout:
    """The layout with the kind of each of the columns `names`: as given by `given`, otherwise as guessed.

    Columns of `later` files are added if an option names them. If `open_ended`, further columns may appear,
    so an option may also name a column that nobody has seen yet. `spelling` is what the values of each column
    are, texts if it is not known.

    Raises `DataError` if a name occurs twice, an option names no column, two options disagree about a
    column, or no column is the label of data that are `labelled`.
    """
    layout = given.unsettle()
    check_sizes(names, file)
    # without the labels and weights that the options replace
    replaced = [kind for kind in (LABEL, *SINGLE) if getattr(layout, kind)]
    extended = layout if isinstance(layout, layouts.Extension) else layouts.Extension()
    before = {name: kind for name, kind in extended.known if kind not in replaced}
    seen = [*dict.fromkeys([*names, *later, *before])]
    kinds = {**dict(zip(names, guesses, strict=True)), **before}
    if labelled and not layout.label and LABEL not in before.values() and "label" not in kinds:
        if isinstance(given, layouts.SettledLayout):
            why = "the model knows no columns: give rows as in training"
            raise DataError(f"{file}: a table, and {why}, or {LEARN_A_TABLE}")
        raise DataError(f"{file}: {_NO_LABEL}; the columns are: {_listed(names)}")
    find, find_place = finder(seen), finder(names)
    patterns = _label_patterns(layout, names, before) if labelled else []
    options = (
        *((LABEL, pattern) for pattern in patterns),
        *((kind, getattr(layout, kind)) for kind in SINGLE if getattr(layout, kind)),
        *((kind, pattern) for kind in _BY_OPTION for pattern in getattr(layout, kind)),
    )
    chosen = dict[str, tuple[str, int]]()
    for kind, pattern in options:
        found = (find_place if _POSITIONS.fullmatch(pattern) else find)(pattern)
        if not found and open_ended and kind not in (LABEL, *SINGLE) and not _SEVERAL.search(pattern):
            found = [pattern]
        if not found and not (kind == IGNORE and WILD.search(pattern)):
            raise DataError(f"{file}: no column is called '{pattern}'; {column_meant(pattern, names)}")
        _assign(chosen, kind, pattern, found, file)
    for name in before.keys() & chosen.keys():
        if chosen[name][0] != before[name] and chosen[name][1] == _BY_NAME:
            raise DataError(f"{file}: the model was trained with '{name}' as {before[name]}")
    kinds |= {name: kind for name, (kind, _) in chosen.items() if name not in before}
    # several columns of one name can be left out if all of them are meant, not only some
    meant, repeated = Counter[str](), {name: count for name, count in Counter(names).items() if count > 1}
    for pattern in layout.ignore if repeated else ():
        times = 1 if _POSITIONS.fullmatch(pattern) else len(names)
        meant.update({name: times * count for name, count in Counter(find_place(pattern)).items()})
    named = [*before, *(name for name, count in repeated.items() if meant[name] >= count)]
    check_once(names, file, [one for one in named if kinds[one] == IGNORE])
    counts = Counter(kinds.values())
    if not counts[TEXT] and layout.ngrams != layouts.Layout.ngrams:
        raise DataError(f"{file}: n-grams need a text column ({mention(text='COL')})")
    for one in SINGLE:
        if counts[one] > 1:
            raise DataError(f"{file}: only one column can be the {one}")
    labels = [one for pattern in patterns for one in find(pattern)]
    if twice := [name for name, count in Counter(labels).items() if count > 1]:
        raise DataError(f"{file}: {mention('label')} names '{twice[0]}' twice")
    there = {*names, *before}
    spelled = {**(spelling or {}), **extended.trained.spelling_of}
    return layouts.SettledLayout(
        **{**layout.shared(), "group": "", "offset": "", "text": ()},
        labels=tuple(labels) if len(labels) > 1 else (),
        awaited=tuple(name for name in kinds if name not in there),
    ).with_kinds(kinds, {name: spelled.get(name) or AS_TEXT for name in kinds})


def for_new_data(trained: layouts.SettledLayout, chosen: Mapping[str, Any]) -> layouts.AnyLayout:
    """How to read new data for a model `trained` on other data; `chosen` are the fields of `Layout` you give.

    The new data may have another format. Raises `DataError` if the options would change the features.
    """
    for name in (*layouts.FEATURE_FIELDS, "classes"):
        have = getattr(trained, name)
        if chosen.get(name, have) != have:
            had = f"was trained {layouts.as_option(name, have)}"
            if name == "classes" and have:
                had = f"has the classes {list_words(have)}"
            raise DataError(f"the model {had}; leave {mention(name)} out")
    columns = {name: chosen[name] for name in layouts.COLUMN_OPTIONS if chosen.get(name)}
    if trained.columns and "weight" in chosen:
        trained = move_column(trained, WEIGHT, columns.pop("weight", ""))
    if LABEL in columns and trained.kinds.count(LABEL) == 1 and not names_in(columns[LABEL])[1:]:
        trained = move_column(trained, LABEL, columns.pop(LABEL))
    if trained.columns and LABEL in columns and LABEL not in trained.kinds:
        raise DataError(
            f"labels were given beside the table in training: {LABELS_BESIDE},"
            f" and leave {mention('label')} out"
        )
    if columns and not (trained.columns and same_columns(layouts.Layout(**columns), trained, "the model")):
        which = "other columns" if trained.columns else "no columns"
        raise DataError(f"the model was trained with {which}; leave {mention(*columns)} out")
    written = {name: chosen[name] for name in ("header", *layouts.SYNTAX_FIELDS) if name in chosen}
    return replace(trained.in_format(chosen.get("format") or trained.format), **written)


LABELS_BESIDE = "give them as y, in Python"
"""What to do about the labels of a model whose table held none"""


def move_column(trained: layouts.SettledLayout, kind: str, column: str) -> layouts.SettledLayout:
    """The layout with the labels, or the importances, in `column`, or without any if it is empty.

    `DataError` if the column is something else in the model.
    """
    kinds = {one: IGNORE if had == kind else had for one, had in trained.kind_of.items()}
    if column:
        name = next(iter(matching(column, trained.columns)), column)
        if (had := trained.kind_of.get(name, IGNORE)) not in (*UNREAD, kind):
            raise DataError(f"the model was trained with '{name}' as {had}; leave {mention(kind)} out")
        kinds[name] = kind
    return trained.with_kinds(kinds)


def extending(
    trained: layouts.SettledLayout, chosen: Mapping[str, Any], grouped: bool = False
) -> layouts.AnyLayout:
    """How to read data for a model that starts from one `trained` on other data, or goes on from it.

    The columns of that model keep their kinds; new ones become features, as `chosen` or as they look. Its
    groups are those of its own rows, unless the new rows are `grouped` alike.
    Raises the errors of `for_new_data`.
    """
    if not trained.columns or chosen.get("header", trained.header) != trained.header:
        return for_new_data(trained, chosen)
    if not (grouped or chosen.get("group")):
        trained = trained.without_groups()
    given = {name: chosen[name] for name in layouts.COLUMN_OPTIONS if chosen.get(name)}
    known = {name: kind for name, kind in trained.kind_of.items() if kind != EMPTY}
    find = finder(trained.columns)
    for option, value in given.items():
        said = names_in(value) if option == LABEL else [value] if isinstance(value, str) else value
        named = [name for one in said for name in find(one) or [one]]
        if any(known.get(name, option) not in (option, ABSENT) for name in named):
            raise DataError(f"the model was trained with other columns; leave {mention(option)} out")
        known = {name: kind for name, kind in known.items() if kind != ABSENT or name not in named}
    like = for_new_data(trained, {name: value for name, value in chosen.items() if name not in given})
    patterns = (one for one in trained.ignore if WILD.search(one))
    given["ignore"] = tuple(dict.fromkeys([*patterns, *given.get("ignore", ())]))
    return layouts.Extension(
        **{**like.shared(), **given},
        trained=trained,
        known=tuple(known.items()),
    )


def same_columns(given: layouts.Layout, settled: layouts.SettledLayout, whose: str) -> bool:
    """Whether the column options `given` agree with the layout `settled` for the data `whose`.

    Raises `DataError` as `settle` does.
    """
    if not any(getattr(given, name) for name in layouts.COLUMN_OPTIONS):
        return True
    found = as_list(settled.labels or [name for name, kind in settled.kind_of.items() if kind == LABEL])
    again = settle(replace(given, label=given.label or found), settled.columns, settled.kinds, whose)
    return (again.kinds, again.labels) == (settled.kinds, settled.labels)


def _label_patterns(layout: layouts.Layout, names: Sequence[str], before: Mapping[str, str]) -> list[str]:
    """The names, positions and patterns of the label columns.

    A list is not split at commas in the name of a column, quoted or not: the longest wins.

    >>> _label_patterns(layouts.Layout(label="price, net,qty"), ["price, net", "qty"], {})
    ['price, net', 'qty']
    >>> _label_patterns(layouts.Layout(label='"price, net",qty'), ["price", "price, net", "qty"], {})
    ['price, net', 'qty']
    """
    if not layout.label and isinstance(layout, layouts.Extension) and LABEL in before.values():
        return [*layout.trained.labels] or [name for name, kind in before.items() if kind == LABEL]
    parts, found, start, known = pieces_in(layout.label or "label"), list[str](), 0, frozenset(names)
    most = 1 + max((name.count(",") for name in names), default=0)
    while start < len(parts):
        counts = range(min(most, len(parts) - start), 0, -1)
        count = next((n for n in counts if ",".join(parts[start : start + n]) in known), 0)
        found.append(",".join(parts[start : start + count]) if count else unquote(parts[start]))
        start += count or 1
    return [part for part in found if part]


def check_sizes(names: Sequence[str], file: str) -> None:
    """Raise `DataError` for more columns, or a longer name, than any table has."""
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{file}: {too_many(len(names))}")
    if long := next((name for name in names if len(name) > LONGEST_NAME), None):
        most = f"the longest allowed has {LONGEST_NAME:,}"
        raise DataError(f"{file}: the name of a column has {len(long):,} characters ({most})")


def too_many(columns: int) -> str:
    """What is wrong with a table of so many columns."""
    return f"{columns:,} columns (at most {MOST_COLUMNS:,} are read; for more features, use svmlight)"


def check_once(names: Iterable[str], file: str, ignored: Container[str] | None = None) -> None:
    """`DataError` if two columns have one name, but for those `ignored`; None: none can be."""
    for name, count in Counter(names).items():
        if count > 1 and name not in (ignored or ()):
            leave_out = "" if ignored is None else f", or use {mention(ignore=as_option_value([name], ()))}"
            raise DataError(f"{file}: two columns are called '{name}': rename one{leave_out}")


def _assign(
    chosen: dict[str, tuple[str, int]], kind: str, pattern: str, names: Sequence[str], file: str
) -> None:
    """Set the kind of columns: the more precise option wins, and among patterns ``--ignore``.

    A single name or number is more precise than a pattern or range, and that more than ``*``.
    """
    precision = _BY_STAR if pattern == "*" else _BY_PATTERN
    if pattern in names or len(names) == 1:
        precision = _BY_NAME
    for name in names:
        before, was = chosen.get(name, (kind, 0))
        if before in (LABEL, *SINGLE) and name in chosen:
            was = _BY_NAME
        ignored = kind == IGNORE and precision == was == _BY_PATTERN
        if before != kind and precision == was and not ignored:
            raise DataError(f"{file}: '{name}' is listed in both {mention(before)} and {mention(kind)}")
        if precision > was or ignored:
            chosen[name] = kind, precision


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """The columns that match a name, a position (from 1), a range of positions or names, or a pattern.

    >>> matching("2-3", ["a", "b", "c"]), matching("2-3", ["4", "3", "2", "1"])
    (['b', 'c'], ['3', '2'])
    """
    return finder(names)(pattern)


def finder(names: Sequence[str]) -> Callable[[str], list[str]]:
    """`matching` for many patterns and the same columns."""
    known = frozenset(names)

    def find(pattern: str) -> list[str]:
        if pattern in known:
            return [pattern]
        if found := _POSITIONS.fullmatch(pattern):
            first, last = int(found[1]), int(found[2] or found[1])
            if found[1] in known and found[2] in known:  # as for one number, names go before places
                return [name for name in names if name.isdecimal() and first <= int(name) <= last]
            return list(names[first - 1 : last]) if 1 <= first <= last <= len(names) else []
        if WILD.search(pattern):
            return [*filter(re.compile(fnmatch.translate(pattern)).match, names)]
        for dash in re.finditer("-", pattern):  # from one name to another: C14-C21
            first_name, last_name = pattern[: dash.start()], pattern[dash.end() :]
            if first_name in known and last_name in known:
                return list(names[names.index(first_name) : names.index(last_name) + 1])
        return []

    return find


def tester(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a column is one of some names, or matches one of some patterns."""
    known = frozenset(patterns)
    wild = re.compile("|".join(map(fnmatch.translate, filter(WILD.search, known))) or r"(?!)")
    return lambda name: name in known or wild.match(name) is not None


def identity(wanted: str, names: Sequence[str], file: str) -> str:
    """The column that identifies rows, given its name or position. `DataError` unless there is one."""
    found = matching(wanted, names)
    if len(found) != 1:
        raise DataError(
            f"{file}: {mention('id')}: no column is called '{wanted}'; {column_meant(wanted, names)}"
        )
    return found[0]


def kinds_in(layout: layouts.SettledLayout, names: Sequence[str], file: str) -> list[str]:
    """The kind of each column of a file. Columns that `layout` does not know are ignored.

    Raises `DataError` if the label, the weight or all feature columns of `layout` are missing.
    """
    known, ignores = layout.kind_of, tester(layout.ignore)
    check_sizes(names, file)
    ignored = {name for name, kind in known.items() if kind == EMPTY and ignores(name)}
    kinds = [IGNORE if name in ignored else known.get(name, IGNORE) for name in names]
    check_once(names, file, {name for name, kind in zip(names, kinds, strict=True) if kind == IGNORE})
    there = set(names)
    some = any(kind in FEATURES for kind in kinds)
    for name, kind in known.items():
        if name in there or kind in UNREAD or (some and kind in FEATURES):
            continue
        what = f" ({kind} in the training data)"
        if kind == LABEL:  # those of another column may be meant
            what = f" of labels: name theirs, {mention('label')}, to evaluate"
        elif kind == WEIGHT:
            use = f"add it, with 1 in each row, or use {mention(weight='')} to evaluate"
            what = f" of importances: to count all rows alike, {use}"
        raise DataError(f"{file}: no column '{name}'{what}; {column_meant(name, names)}")
    return kinds


def unexpected(layout: layouts.SettledLayout, names: Sequence[str]) -> list[str]:
    """The columns of a file that the layout neither has nor ignores by a pattern."""
    known, ignores = frozenset(layout.columns), tester(layout.ignore)
    return [name for name in names if name not in known and not ignores(name)]


def check_same(layout: layouts.SettledLayout, names: Sequence[str], file: str) -> None:
    """Raise `DataError` unless a table has the feature columns of the layout, and no others."""
    check_once(names, file)
    for name in lacking(layout, names, OFFSET):
        raise DataError(f"{file}: no column '{name}'; {column_meant(name, names)}")
    for name in unexpected(layout, names):
        raise DataError(f"{file}: column '{name}' was not in the training data; drop it")


def lacking(layout: layouts.SettledLayout, names: Sequence[str], *besides: str) -> list[str]:
    """The columns of features, and of kinds `besides`, that a file does not have, except those awaited."""
    there = {*names, *layout.awaited}
    return [
        name for name, kind in layout.kind_of.items() if kind in (*FEATURES, *besides) and name not in there
    ]


def lacking_in_objects(
    layout: layouts.SettledLayout, fields: Sequence[str], file: str, new: Sequence[str] = ()
) -> list[str]:
    """The feature columns that objects with these `fields` lack because the name of one is misspelt.

    Objects may leave out what is missing, so that others may be lacking. `new` are columns that the model to
    start from did not have. If there are any fields, raises `DataError` as `kinds_in` does.
    """
    if fields:
        kinds_in(layout, [*dict.fromkeys([*fields, *layout.awaited])], file)
    strange = [*unexpected(layout, fields), *(name for name in new if name in fields)]
    return [*find_misspelt(strange, lacking(layout, fields)).values()]


def find_misspelt(strange: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """For `strange` columns the `known` one that each may mean, of nearly the same name, and no two the same.

    >>> find_misspelt(["Job", "JOB", "x"], ["job", "y"])
    {'Job': 'job'}
    """
    free, found = {name.casefold().strip(): name for name in known}, dict[str, str]()
    for name in strange:
        for near in get_close_matches(name.casefold().strip(), free, 1, _NEAR):
            found[name] = free.pop(near)
    return found


def as_option_value(wanted: Iterable[str], names: Sequence[str]) -> str:
    r"""Columns as the value of an option: a list of their names.

    Names that cannot be printed are replaced by positions among `names`, or patterns.

    >>> as_option_value(["age", "", "my city", "a,b"], ()), as_option_value(["x\ty"], ["label", "x\ty"])
    ('age,"",my city,"a,b"', '2')
    """
    return as_list(in_print(wanted, names))


def in_print(wanted: Iterable[str], names: Sequence[str]) -> list[str]:
    """Columns as options name them; those whose names cannot be printed by position, or by a pattern."""
    known = frozenset(names)
    places = {name: str(place) for place, name in enumerate(names, 1) if str(place) not in known}
    return [
        one if one.isprintable() else places.get(one) or "".join(c if c.isprintable() else "?" for c in one)
        for one in dict.fromkeys(wanted)
    ]


def column_meant(wanted_column: str, names: Sequence[str]) -> str:
    """The columns that a wrong name may mean, whatever their case; all columns if there are none."""
    if re.fullmatch(r"\d+(-\d+)?", wanted_column):
        return f"there {'are' if len(names) != 1 else 'is'} {len(names):,} column{'s' * (len(names) != 1)}"
    plain = {name.casefold().strip(): name for name in names}
    near = get_close_matches(wanted_column.casefold().strip(), plain, 1)
    return f"did you mean '{in_list(plain[near[0]])}'?" if near else f"the columns are: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    return first_few([in_list(shorten(name, _LONGEST)) for name in names], _SHOWN)


_TEXTS = 1 << 20
"""Spellings of values that are remembered"""


class ColumnValues:
    """The values of a column, numbered from 1 in the order of their first rows; 0 stands for none.

    One value has one spelling: ``1`` and ``1.0`` are the same number. `named` gives the value of a text in a
    column of numbers, if it is another. Values that are `known` have the first numbers. Beyond `most` values,
    all have the number `most`.
    """

    def __init__(
        self,
        column: str,
        layout: SettledLayout,
        most: int,
        named: Callable[[str], str] = respell,
        known: Sequence[str] = (),
    ) -> None:
        self.column, self._most = column, most
        self.is_number = layout.kind_of[column] in (NUMERIC, BINS)
        is_spelled = layout.spelling_of[column] in SPELLED
        self._named = named if self.is_number else respell if is_spelled else str
        self._missing = {"", *layout.missing}
        self.know(known)

    def know(self, values: Sequence[str]) -> None:
        """Number these values, the first of all."""
        self._texts = dict[str, int]()
        """the number of the value of texts that were met"""
        self.known = {value: k for k, value in enumerate(values, 1)}
        """the number of each value"""

    def numbers(self, texts: NDArray[Any], *, new: bool = True) -> NDArray[np.int64]:
        """The numbers of the values in cells ``(n,)``; of `new` values the next ones, else 0."""
        listed = texts.tolist()
        found = [*map(self._texts.get, listed)]
        if None in found:
            pairs = zip(listed, found, strict=True)
            found = [self._number(text, new) if number is None else number for text, number in pairs]
        return np.array(found, np.int64)

    def _number(self, text: str, new: bool) -> int:
        value = "" if text in self._missing or not text.strip() else self._named(text)
        number = self.known.get(value) if value else 0
        if number is None:
            number = len(self.known) + 1 if new else 0
            if not new or number == self._most:
                return number
            self.known[value] = number
        if len(self._texts) >= _TEXTS:
            self._texts.clear()
        self._texts[text] = number
        return number


def apart(
    chunk: Chunk, numbers: NDArray[np.integer[Any]], count: int
) -> tuple[NDArray[np.int64], Callable[[int], Chunk]]:
    """The order that sorts rows by their `numbers` (n,), below `count`, and the rows with a number."""
    short = numbers.astype(np.uint16) if count <= 1 << 16 else numbers  # sorted in a fifth of the time
    order = np.argsort(short, kind="stable")
    ends = [0, *np.cumsum(np.bincount(numbers, minlength=count)).tolist()]
    by_number = chunk.take(order)
    for array in by_number.arrays().values():
        array.setflags(write=False)  # once, and not for each number: see `read_only`
    return order, lambda number: by_number.rows(ends[number], ends[number + 1])


def read_beside(source: Source, columns: Sequence[str], named: Callable[[str], str]) -> None:
    """Let `source` give the cells of these columns, after those that it gives already, from now on.

    `DataError` if it cannot; `named` tells the option that wants a column.
    """
    layout = source.layout
    for column in columns:
        if not (has_columns(layout) and source.has_cells):
            raise DataError(f"{named(column)} needs a table with columns; these data have none")
        if column not in layout.columns:
            raise DataError(f"no column is called '{column}'; {column_meant(column, layout.columns)}")
        if (kind := layout.kind_of[column]) in (LABEL, WEIGHT, LIST):
            raise DataError(f"'{column}' is a {kind}: choose another column ({named(column)})")
    source.sliced = [*source.sliced, *columns]
