"""LibFFM text.

    label field:id:value field:id:value ... # comment
    label,label,... field:id:value field:id:value ... # comment

It is svmlight text in which features have fields, which are whole numbers like ids. The key of a feature is
its id alone, as in LibFFM, where an id belongs to one field: a line without its fields is the same example
in svmlight text. Fields are the namespaces of interactions.

LibFFM numbers features across all fields. If an id were hashed with its field, the same data as svmlight text
would have different keys.
"""

from __future__ import annotations

import re

from thresher.data.errors import DataError
from thresher.data.feature_specs import ANY, terms_of
from thresher.data.features.crossing import of_namespaces
from thresher.data.formats.lines.parse_loop import OF_IDS, LineParser
from thresher.data.formats.lines.svmlight import AFTER_FIELD, FIELD, Svmlight
from thresher.data.layout import AnyLayout
from thresher.data.sources.reader import Reading
from thresher.options.messages import mention

_EXPECTED = OF_IDS | {FIELD: "a field (a whole number below 2^64)", AFTER_FIELD: "':' after the field"}


def parser(layout: AnyLayout, reading: Reading) -> LineParser:
    """The parser of blocks of LibFFM text."""

    def field(name: str) -> int:
        if name == ANY:
            return 0
        if not re.fullmatch("[0-9]{1,20}", name) or int(name) >= 1 << 64:
            raise DataError(
                f"libffm: fields are whole numbers ({mention(interact='3,7')} or '*,*'), not '{name}'"
            )
        return int(name)

    crosses, factors = of_namespaces(layout, field), terms_of(layout.interact).factors
    grammar = Svmlight(ordered=False, fielded=True)
    return LineParser(grammar, reading, _EXPECTED, crosses=crosses, factors=factors)
