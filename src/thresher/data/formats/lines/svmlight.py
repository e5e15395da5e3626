"""svmlight (libsvm) text: the Python side of its parser.

    label [qid:n] id:value id:value ... # comment
    label,label,... [qid:n] id:value id:value ... # comment

Numbers may be signed and scientific. Ids are whole numbers up to 2**64 - 1, from 0 or 1 on, in any order; the
values of repeated ids are added up. Blank and comment lines are ignored. A label alone is an example without
features. ``qid`` is no feature; the layout's `group` may name it. With several outputs, labels are a list: a
number for each output, or a set of classes. If the set is empty, the line begins with a blank.

If the layout has `label_weights`, ``:weight`` may follow the labels. Otherwise a colon in the first field
means that the line begins with a feature and has no label: a bad line, unless the domain is open.

``3:1 7:1`` may be a label, its weight and a feature, or two features. Nothing in the text decides, people
predict on rows without labels, and a wrong guess would be silent: so `label_weights` is an option, stored in
the layout.
"""

from __future__ import annotations

import re

from thresher.data.errors import DataError
from thresher.data.feature_specs import ANY
from thresher.data.features.factors import of_namespaces
from thresher.data.formats import line_status
from thresher.data.formats.lines import svmlight_rows
from thresher.data.formats.lines.parse_loop import OF_IDS, LineParser, Wording
from thresher.data.layout import AnyLayout
from thresher.data.sources.reader import Reading
from thresher.options.messages import mention

_EXPECTED = OF_IDS | {
    line_status.WEIGHT_NUMBER: "a number as importance weight after ':'",
    svmlight_rows.QID: "a number after 'qid:'",
}
_EXPECTED_WEIGHTED = _EXPECTED | {
    line_status.AFTER_LABEL: "a space or ':' after the label",
    line_status.NO_LABEL: "a label at the start of the line",
}
_QID = re.compile(rb"[ \t]*(?:[^ \t#]+[ \t]+)?qid:([^ \t\r#]+)")
_LISTED_WEIGHTED = "',', ':' or a space after the label"


def parser(layout: AnyLayout, reading: Reading) -> LineParser:
    """The parser of blocks of svmlight text."""
    wording = Wording(_EXPECTED, advice=_weights_message, tag=_qid)
    if layout.label_weights:
        wording = Wording(_EXPECTED_WEIGHTED, _LISTED_WEIGHTED, tag=_qid)
    grammar = svmlight_rows.Svmlight(layout.label_weights)
    return LineParser(grammar, wording, reading, of_namespaces(layout, _only_space))


def _qid(line: bytes) -> str | None:
    """The number after ``qid:``, as it is written; empty if there is none. None for a comment."""
    if line.lstrip(b" \t").startswith(b"#"):
        return None
    found = _QID.match(line)
    return found[1].decode("ascii", "backslashreplace") if found else ""


def _weights_message(outcome: int, line: bytes, place: int) -> str:
    wanted = outcome == line_status.NO_LABEL
    return f"; if the field is label:weight, use {mention(label_weights=True)}" if wanted else ""


def _only_space(name: str) -> int:
    if name not in ("", ANY):
        raise DataError(f"svmlight has no namespaces: use {mention(interact='*,*')}, not '{name}'")
    return 0
