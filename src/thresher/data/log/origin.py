"""Which rows a log is for: how they were read, which labels they have, which model learns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thresher.data.columns import FEATURES, OFFSET
from thresher.data.labels import list_words
from thresher.data.layout import FEATURE_FIELDS, AnyLayout, Extension, SettledLayout
from thresher.options.messages import mention


@dataclass(frozen=True)
class LogOrigin:
    """Which rows a log is for."""

    layout: SettledLayout | None
    """how they were read"""
    domain: str
    """which labels they have"""
    model: str
    """the hash of the file of the model that learns them"""

    def unlike(self, other: LogOrigin) -> str:
        """In what another origin differs from this one; empty: in nothing but the file of the model."""
        have, found = self.layout or SettledLayout(), other.layout or SettledLayout()
        if features := other_features(have, found):
            return f"other features ({features})"
        known = len(have.classes)
        if known and self.domain == other.domain and have.classes == found.classes[:known] != found.classes:
            return f"more classes ({list_words(found.classes[known:])})"
        if (self.domain, have.classes) != (other.domain, found.classes):
            words = list_words(found.classes) or other.domain, list_words(have.classes) or self.domain
            return "other labels ({}, and not {})".format(*words)
        return "" if have == found else "rows read in another way"


def other_features(before: AnyLayout, now: AnyLayout) -> str:
    """The first of what differs in the features of rows with these layouts; empty if nothing does."""
    (known, shared), (found, own) = _features(before), _features(now)
    for name in sorted(known | found):
        if name not in found:
            return f"without column '{name}'"
        if known.get(name) != found[name]:
            changed = f"column '{name}' {found[name]}, not {known[name]}" if name in known else ""
            return changed or f"with column '{name}'"
    return next((f"another {mention(name)}" for name in shared if shared[name] != own[name]), "")


def _features(layout: AnyLayout) -> tuple[dict[str, str], dict[str, Any]]:
    """What determines the features of rows: kinds of columns, and options."""
    pairs = zip(getattr(layout, "columns", ()), getattr(layout, "kinds", ()), strict=True)
    known = layout.known if isinstance(layout, Extension) else pairs
    read = {name: kind for name, kind in known if kind in (*FEATURES, OFFSET)}
    return read, {name: getattr(layout, name) for name in (*FEATURE_FIELDS, "offset")}
