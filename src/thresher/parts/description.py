"""Descriptions of parts, taken from their docstrings and fields."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

from thresher.parts.registry import REGISTRY, limit_of, lookup, parameters, part_name, spec_of

_SENTENCE = re.compile(r"(.*?\.)(?:\s+[A-Z`]|$)", re.DOTALL)


class Parameter(NamedTuple):
    """A field that a SPEC can set, as text."""

    name: str
    default: str
    limit: str
    """range of its values; empty if only the docstring says it"""


class Description(NamedTuple):
    """The description of a part. Texts keep the line breaks and empty lines of the docstring."""

    name: str
    update: str
    """the mathematics: everything before the lazy update"""
    lazy: str
    """the lazy update of a rule"""
    notes: str
    """everything after it, such as known weaknesses"""
    reference: str
    rate: str
    """SPEC of the default rate; empty for parts without a rate"""
    parameters: tuple[Parameter, ...]

    @property
    def spec(self) -> str:
        """The SPEC with all defaults."""
        fields = ",".join(f"{p.name}={p.default}" for p in self.parameters)
        return f"{self.name}:{fields}" if fields else self.name

    @property
    def line(self) -> str:
        """The first sentence."""
        first = " ".join(self.update.split("\n\n")[0].split())
        found = _SENTENCE.match(first)
        return found[1] if found else first


def describe(kind: str, name: str) -> Description:
    """Describe the part of a kind called `name`; SpecError with near matches if there is none.

    The paragraph that begins with *Lazy update:* is the lazy update, the one with *Reference:* the
    reference; doctests are left out.
    """
    cls = lookup(kind, name)
    rate = cls._field_defaults.get("rate")
    sections: dict[str, list[str]] = {"update": [], "lazy": [], "notes": [], "reference": []}
    for paragraph in (inspect.getdoc(cls) or "").split("\n\n"):
        if paragraph.startswith("Lazy update:"):
            sections["lazy"].append(paragraph.removeprefix("Lazy update:").strip())
        elif paragraph.startswith("Reference:"):
            sections["reference"].append(paragraph.removeprefix("Reference:").strip())
        elif not paragraph.startswith(">>>"):
            sections["notes" if sections["lazy"] else "update"].append(paragraph)
    return Description(
        name=name,
        rate="" if rate is None else spec_of(rate),
        parameters=tuple(_parameter(cls, *pair) for pair in parameters(cls).items()),
        **{section: "\n\n".join(paragraphs) for section, paragraphs in sections.items()},
    )


def _parameter(cls: Any, field: str, default: Any) -> Parameter:
    if isinstance(default, bool):
        return Parameter(field, str(default).lower(), "true or false")
    if isinstance(default, str):
        return Parameter(field, default, "")
    if isinstance(default, tuple):
        names = sorted(REGISTRY[field])
        return Parameter(field, part_name(type(default)), f"{', '.join(names[:-1])} or {names[-1]}")
    return Parameter(field, f"{default:g}", limit_of(cls, field))
