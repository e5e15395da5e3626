"""Mutants: what each breaks, the text that it replaces in a function, and how that text is found.

A function is found by the end of its dotted name, `Class.method` or `module.function`, with more in front if
that is not unique. So a mutant outlives a move of its class, and after a move of a function only the module
changes. Texts are indented relative to their first line.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

WRITTEN = Path(__file__).with_name("mutants.toml")
_NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Mutant(NamedTuple):
    """One fault."""

    name: str
    breaks: str
    """what it breaks, in words"""
    function: str
    """the end of the dotted name of a function, a class or a module"""
    old: str
    """text that occurs once in it"""
    new: str
    fails: list[str]
    """the tests that must fail"""


class Place(NamedTuple):
    """Lines of a file that define something."""

    path: Path
    name: str
    """with the modules it is in"""
    first: int
    """counted from 0"""
    end: int


class Replaced(NamedTuple):
    """A file with a mutant."""

    path: Path
    before: str
    after: str


def all_mutants() -> list[Mutant]:
    """Those of `mutants.toml`, in its order."""
    written: dict[str, Any] = tomllib.loads(WRITTEN.read_text(encoding="utf-8"))
    return [Mutant(name, **fields) for name, fields in written.items()]


def replaced(mutant: Mutant, source: Path) -> Replaced:
    """The file below `source` that the mutant changes; `LookupError` unless it fits in exactly one place."""
    found = [one for one in _places(source) if f".{one.name}".endswith(f".{mutant.function}")]
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or "nothing"
        raise LookupError(f"{mutant.name}: {mutant.function} is the name of {names}")
    place = found[0]
    lines = place.path.read_text(encoding="utf-8").splitlines(keepends=True)
    body = "".join(lines[place.first : place.end])
    texts = [*_occurrences(body, mutant.old)]
    if len(texts) != 1:
        raise LookupError(f"{mutant.name}: {len(texts)} times in {place.name}:\n{mutant.old}")
    (start, end, indent) = texts[0]
    after = [
        *lines[: place.first],
        body[:start],
        _indented(mutant.new, indent),
        body[end:],
        *lines[place.end :],
    ]
    return Replaced(place.path, "".join(lines), "".join(after))


@contextmanager
def applied(mutant: Mutant, source: Path) -> Iterator[None]:
    """Within the block, the sources have this fault."""
    path, before, after = replaced(mutant, source)
    path.write_text(after, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


@cache
def _places(source: Path) -> tuple[Place, ...]:
    return tuple(place for path in sorted(source.rglob("*.py")) for place in _places_of(path, source))


def _places_of(path: Path, source: Path) -> Iterator[Place]:
    text = path.read_text(encoding="utf-8")
    name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
    yield Place(path, name, 0, text.count("\n") + 1)
    yield from _within(path, name, ast.parse(text))


def _within(path: Path, name: str, node: ast.AST) -> Iterator[Place]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, _NAMED):
            called = f"{name}.{inner.name}"
            first = min([inner.lineno, *(one.lineno for one in inner.decorator_list)])
            yield Place(path, called, first - 1, inner.end_lineno or first)
            yield from _within(path, called, inner)
        else:
            yield from _within(path, name, inner)


def _occurrences(body: str, text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and indentation of each."""
    for match in re.finditer(re.escape(text.partition("\n")[0]), body):
        line = body[body.rfind("\n", 0, match.start()) + 1 :]
        indent = line[: len(line) - len(line.lstrip(" "))]
        whole = _indented(text, indent)
        if body.startswith(whole, match.start()):
            yield match.start(), match.start() + len(whole), indent


def _indented(text: str, indent: str) -> str:
    """The text with all lines but the first moved to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(indent + line if line else "" for line in rest)])
