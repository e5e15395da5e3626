"""Descriptions of parts, taken from their docstrings and fields."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import NamedTuple

from thresher.options.messages import flag_of
from thresher.parts.origins import REGISTRY, part_name
from thresher.parts.registry import LEAST, lookup, parameters, spec_of

_SENTENCE = re.compile(r"(.*?\.)(?:\s+[A-Z`]|$)", re.DOTALL)
_WIDTH, _RATE = 100, flag_of("rate")


class Parameter(NamedTuple):
    """A field that a SPEC can set, as text."""

    name: str
    default: str
    limit: str
    """range of its values; empty if only the docstring says it"""


class Description(NamedTuple):
    """The description of a part. Texts keep the line breaks and empty lines of the docstring."""

    kind: str
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

    @property
    def summary(self) -> str:
        """The part in a few lines, as ``thresher rules`` prints it."""
        lines = [self.line, f"step sizes: {_RATE}" if self.rate else "", self.reference]
        filled = [
            textwrap.indent(textwrap.fill(" ".join(line.split()), _WIDTH - 4, break_on_hyphens=False), "    ")
            for line in lines
            if line
        ]
        return "\n".join([self.spec, *filled, ""])

    @property
    def page(self) -> str:
        """All of it, as ``thresher rules NAME`` prints it."""
        lazy = f"Lazy update: {self.lazy}" if self.lazy else ""
        texts = [self.name, *(text for text in (self.update, lazy, self.notes) if text)]
        if self.reference:
            texts.append(f"Reference: {self.reference}")
        rate = f" {_RATE} {self.rate}" if self.rate else ""
        rows = [("parameter", "default", "must be"), *self.parameters]
        if self.rate:
            rows.append((_RATE, self.rate, "see thresher rates"))
        widths = [max(len(row[k]) for row in rows) for k in (0, 1)]
        table = "\n".join(f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows)
        return "\n\n".join([*texts, table, f"With all defaults: {flag_of(self.kind)} {self.spec}{rate}"])


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
    fields = list[Parameter]()
    for field, default in parameters(cls).items():
        if isinstance(default, bool):
            fields.append(Parameter(field, str(default).lower(), "true or false"))
        elif isinstance(default, tuple):
            *names, last = sorted(REGISTRY[field])
            fields.append(Parameter(field, part_name(type(default)), f"{', '.join(names)} or {last}"))
        else:
            fields.append(Parameter(field, f"{default:g}", cls.LIMITS.get(field, LEAST)))
    return Description(
        kind=kind,
        name=name,
        rate="" if rate is None else spec_of(rate),
        parameters=tuple(fields),
        **{section: "\n\n".join(paragraphs) for section, paragraphs in sections.items()},
    )
