"""svmlight (libsvm) text: the Python side of its parser.

    label[:weight] [qid:n] id:value id:value ... # comment
    label,label,...[:weight] [qid:n] id:value id:value ... # comment

Numbers may be signed and scientific; ids count from 0 or 1 up to 2**64 - 1, in any order, and
repeated ones are added up. Blank lines and lines of comment are no examples; a label alone is an
example without features. ``qid`` is read past. For several outputs the labels are a list: a number for
each output, or the classes that hold, of which there may be none: such a line begins with a blank or a
colon and the weight.
"""

from __future__ import annotations

from thresher.data.errors import DataError
from thresher.data.interactions import ANY
from thresher.data.layout import Layout
from thresher.data.sources import crossing
from thresher.data.sources import line_rows as rows
from thresher.data.sources.factors import of_namespaces
from thresher.data.sources.line_parser import LineParser, Wording
from thresher.data.sources.parsed import Reading
from thresher.data.sources.svmlight_rows import Svmlight

_EXPECTED = {
    rows.LABEL: "a number as label",
    rows.LABEL_RANGE: "a finite label (float32)",
    rows.AFTER_LABEL: "a space or ':' after the label",
    rows.WEIGHT: "a number as importance weight after ':'",
    rows.WEIGHT_SIGN: "an importance weight that is finite and not negative",
    rows.LABEL_REPEATED: "each class once",
    rows.QID: "a whole number after 'qid:'",
    rows.KEY: "a feature id (a whole number from 0 on)",
    rows.KEY_RANGE: "a feature id below 2^64",
    rows.COLON: "':' after the feature id",
    rows.VALUE: "a number after ':'",
    rows.VALUE_RANGE: "a value that is finite in float32",
    rows.AFTER_VALUE: "a space after the number",
    rows.PRODUCTS: crossing.EXPECTED,
    rows.SUM_RANGE: "values of a repeated id with a sum finite in float32",
}
_LISTED = "',', ':' or a space after the label"


def svmlight_parser(layout: Layout, reading: Reading) -> LineParser:
    """The parser of blocks of svmlight text."""
    return LineParser(Svmlight(), Wording(_EXPECTED, _LISTED), reading, of_namespaces(layout, _only_space))


def _only_space(name: str) -> int:
    if name not in ("", ANY):
        raise DataError(f"svmlight has no namespace '{name}': all its features are in one, --interact '*,*'")
    return 0
