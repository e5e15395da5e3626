"""VW text: the Python side of its parser.

    [label [importance [base]]] [tag]|[namespace[:scale]] feature[:value] feature[:value] ... |...

A tag touches the first bar or begins with a single quote; it is ignored. Labels are as in svmlight text. A
feature without a value has the value 1. Values are multiplied by the scale of the namespace, and those of
repeated features are added up. ``name:text`` is a feature with the value 1, whatever the scale. A namespace
may occur again, or have no name. Blank lines are ignored.

The key of a name is its 64-bit hash, seeded with the hash of its namespace. In the namespace without a name,
whole numbers below 2**64 are ids, as in svmlight text. With the hash ``vw``, keys are the indices that Vowpal
Wabbit computes. If `bits` is given, only that many low bits of a key are kept.

Whole numbers in the unnamed namespace are ids so that ``1 | 3:0.5`` is svmlight's ``1 3:0.5``, and one model
fits both files. Lines on which Vowpal Wabbit guesses are bad lines: if it does not understand a line, it
drops the rest or assumes 0 (docs/formats/vw.md lists the differences). A base other than 0 is
refused unless bases are read as offsets (`data.offsets`): in files of other learners it is often a forgotten
field, and it changes every margin. Tags are ignored: a string for each row would cost
more than the row.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from thresher.data.feature_specs import terms_of
from thresher.data.features.factors import of_namespaces
from thresher.data.features.murmur import SHORT, VW, WIDE, hash_bytes
from thresher.data.formats import line_status
from thresher.data.formats.lines import vw_rows
from thresher.data.formats.lines.parse_loop import LineParser, Wording
from thresher.data.formats.lines.vw_labels import kind_of_label
from thresher.data.labels import ONE
from thresher.data.layout import BASE, AnyLayout
from thresher.data.sources.reader import TAG, Reading
from thresher.options.messages import mention

_EXPECTED = {
    line_status.NO_LABEL: "a label before '|' (a word that touches '|' is a tag)",
    vw_rows.BASE: f"a base of 0; to add bases to the margin: {mention(offset=BASE)}",
    vw_rows.FIELDS: "no more than label, importance, base and tag before '|'",
    vw_rows.AFTER_TAG: "'|' after the tag",
    vw_rows.BAR: "'|' before the features",
    vw_rows.NAMESPACE: "a name or a space after '|'",
    vw_rows.AFTER_NAMESPACE: "':', '|' or a space after the namespace",
    vw_rows.SCALE: "a number after ':'",
    vw_rows.SCALE_RANGE: "a scale that is finite in float32",
    vw_rows.AFTER_NAME: "':', '|' or a space after the name",
    line_status.VALUE: "a number or text after ':'",
    line_status.AFTER_VALUE: "'|' or a space after the number",
    line_status.SUM_RANGE: "values of a repeated feature whose sum is finite in float32",
}
_OF_BASES = {vw_rows.BASE: "a base that is finite in float32"}
_OF_HEAD = {
    *(line_status.LABEL_NUMBER, line_status.LABEL_DOMAIN, line_status.AFTER_LABEL),
    *(line_status.WEIGHT_NUMBER, line_status.WEIGHT_SIGN, line_status.AFTER_VALUE),
    *(vw_rows.BASE, vw_rows.FIELDS),
}


def _kind_message(outcome: int, line: bytes, place: int) -> str:
    head, bar, _ = line.partition(b"|")
    kind = kind_of_label(head) if bar and place <= len(head) and outcome in _OF_HEAD else ""
    return f"; this looks like {kind}, which is not supported" if kind else ""


def tag_of(line: bytes) -> str:
    """The tag of a line; a quote before it is not part of it. Empty if there is none."""
    head, bar, _ = line.partition(b"|")
    last = head.rstrip(b" \t").replace(b"\t", b" ").rpartition(b" ")[2]
    if bar and (head.endswith(last) or last.startswith(b"'")):
        return last.removeprefix(b"'").decode("utf-8", "backslashreplace")
    return ""


def text_of(line: bytes, namespace: bytes) -> str:
    """The features of a namespace in a line, as they are written; empty if there are none.

    >>> text_of(b"1 'tag|user:2 u17 from:ulm |item i4 |user u18", b"user")
    'u17 from:ulm u18'
    """
    words = list[bytes]()
    for part in line.removesuffix(b"\r").split(b"|")[1:]:
        name = part.replace(b"\t", b" ").partition(b" ")[0]
        if name.partition(b":")[0] == namespace:
            words += part[len(name) :].split()
    return b" ".join(words).decode("utf-8", "backslashreplace")


def parser(layout: AnyLayout, reading: Reading) -> LineParser:
    """The parser of blocks of VW text."""
    vw, based = layout.hash == "vw", layout.offset == BASE
    nameless = hash_bytes(b"", layout.seed, SHORT) if vw and layout.seed else layout.seed
    usual = (
        vw_rows.USUAL
        if reading.naming is None and reading.domain.kind == ONE and not (reading.domain.words or based)
        else None
    )
    grammar = vw_rows.Vw(
        *(np.uint64(layout.mask), np.uint64(layout.seed), np.uint64(nameless), vw or None),
        careful=None if usual else True,
        based=based,
    )

    grouped = "" if layout.group == TAG else layout.group
    tag = partial(text_of, namespace=grouped.encode()) if grouped else tag_of

    def seed(name: str) -> int:
        return hash_bytes(name.encode(), layout.seed, VW if vw else WIDE) if name else nameless

    return LineParser(
        grammar,
        Wording(_EXPECTED | (_OF_BASES if based else {}), usual=usual, tag=tag, advice=_kind_message),
        reading,
        of_namespaces(layout, seed),
        named=True,
        factors=terms_of(layout.interact).factors,
    )
