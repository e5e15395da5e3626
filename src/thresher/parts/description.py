"""What a part says of itself, taken from its docstring and its fields."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

from thresher.parts.registry import REGISTRY, limit_of, lookup, parameters, part_name, spec_of

_SENTENCE = re.compile(r"(.*?\.)(?:\s+[A-Z`]|$)", re.DOTALL)


class Parameter(NamedTuple):
    """A field that a SPEC can set, as it is written."""

    name: str
    default: str
    limit: str
    """what its value must be; empty where the docstring has to say it"""


class Description(NamedTuple):
    """A part for people to read. Texts keep the line breaks of the docstring and its empty lines."""

    name: str
    update: str
    """the mathematics: all that stands before the debt"""
    debt: str
    """of a rule: what an untouched coordinate owes"""
    notes: str
    """what stands behind it, such as known weaknesses"""
    reference: str
    rate: str
    """SPEC of the default rate, for rules that take one; else empty"""
    parameters: tuple[Parameter, ...]

    @property
    def spec(self) -> str:
        """The SPEC with every default written out."""
        fields = ",".join(f"{p.name}={p.default}" for p in self.parameters)
        return f"{self.name}:{fields}" if fields else self.name

    @property
    def line(self) -> str:
        """The first sentence."""
        first = " ".join(self.update.split("\n\n")[0].split())
        found = _SENTENCE.match(first)
        return found[1] if found else first


def describe(kind: str, name: str) -> Description:
    """The part of a kind called `name`; SpecError with near matches where there is none.

    The paragraph that begins with *Owed by* is the debt, the one with *Reference:* the reference;
    a doctest is left out.
    """
    cls = lookup(kind, name)
    rate = cls._field_defaults.get("rate")
    said: dict[str, list[str]] = {"update": [], "debt": [], "notes": [], "reference": []}
    for paragraph in (inspect.getdoc(cls) or "").split("\n\n"):
        if paragraph.startswith("Owed by "):
            said["debt"].append(paragraph)
        elif paragraph.startswith("Reference:"):
            said["reference"].append(paragraph.removeprefix("Reference:").strip())
        elif not paragraph.startswith(">>>"):
            said["notes" if said["debt"] else "update"].append(paragraph)
    return Description(
        name=name,
        rate="" if rate is None else spec_of(rate),
        parameters=tuple(_parameter(cls, *pair) for pair in parameters(cls).items()),
        **{section: "\n\n".join(paragraphs) for section, paragraphs in said.items()},
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
