"""Recognizing the kinds of Vowpal Wabbit labels other than numbers."""

from __future__ import annotations

import re

_BY_WORD = {
    b"shared": "the shared line of a multi-line example (contextual bandit or cost-sensitive)",
    b"***shared***": "the shared line of a multi-line example (contextual bandit or cost-sensitive)",
    b"ccb": "a conditional contextual bandit label (ccb)",
    b"slates": "a slates label",
    b"ca": "a continuous action label (ca action:cost:density)",
}
"""Kinds by the first word."""
_BY_SHAPE = (
    (re.compile(rb"[^:]*:[^:]*(:[^:]*)+"), "a contextual bandit label (action:cost:probability)"),
    (re.compile(rb"\d+:[^:]*"), "a cost-sensitive label (class:cost)"),
)
"""Kinds by the shape of any word."""
_NAME = re.compile(rb"(?!(?:nan|inf|infinity)$)[^\W\d][^\s:|#]*", re.IGNORECASE)


def kind_of_label(head: bytes) -> str:
    """The kind of label that the text before the first bar of a line looks like; empty if unknown."""
    words = _without_tag(head)
    if not words:
        return ""
    if words[0] in _BY_WORD:
        return _BY_WORD[words[0]]
    for shape, kind in _BY_SHAPE:
        if any(shape.fullmatch(word) for word in words):
            return kind
    return ""


def is_word(head: bytes) -> bool:
    """Whether the label in the text before the first bar of a line is a word."""
    words = _without_tag(head)
    return bool(words and _NAME.fullmatch(words[0]) and not kind_of_label(head))


def _without_tag(head: bytes) -> list[bytes]:
    words = head.split()
    tagged = words and (head[-1:] not in b" \t" or words[-1].startswith(b"'"))
    return words[:-1] if tagged else words
