"""Count lines of code, and those of them that only check, raise or explain.

`python -m tests.code_lines` lists them by module of `src`, `python -m tests.code_lines FOLDER` by module of
another package, to compare.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (*FUNCTIONS, ast.ClassDef, ast.Module)
Placed = ast.stmt | ast.expr | ast.excepthandler
CHECKS = re.compile(r"_*(check|require|ensure|validate|verify|refuse|assert|complain|forbid|demand)")
TELLS = re.compile(r"Error|Finding|Trouble|Warning")
# in the path of a module that is there for nothing else
SUBJECTS = re.compile("diagnos|advice|agreement|error|finding|hint|leak|message|remed|synonym|troubl|warning")


class Size(NamedTuple):
    lines: int
    code: int
    """Lines on which a node of the syntax tree starts: no docstrings, signatures, decorators, imports."""
    checks: int
    """Lines of code in a `raise`, an `assert`, or an `if` that ends in `raise`; in a function that is named
    for a check, or returns an error, a finding, or a text of several words; or in a module of which these are
    the subject."""


def size(name: str, text: str) -> Size:
    """Of the module whose path in its package is `name`."""
    nodes = [*ast.walk(ast.parse(text))]
    code = {node.lineno for node in nodes if hasattr(node, "lineno")} - {*declaring(nodes)}
    checks = code if SUBJECTS.search(name) else code.intersection(checking(nodes))
    return Size(text.count("\n"), len(code), len(checks))


def total(sizes: Iterable[Size]) -> Size:
    return Size(*map(sum, zip(*sizes, strict=True)))


def declaring(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from lines(node, node)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield from (node.lineno, *range(node.lineno, node.body[0].lineno))
            for decorator in node.decorator_list:
                yield from lines(decorator, decorator)
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            yield from lines(node.body[0], node.body[0])


def checking(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.Raise | ast.Assert):
            yield from lines(node, node)
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            yield from lines(node, node.body[-1])
        elif isinstance(node, FUNCTIONS):
            returned = ast.unparse(node.returns) if node.returns else ""
            told = returned in ("str", "str | None") and says(node)
            if CHECKS.match(node.name) or TELLS.search(returned) or told:
                yield from lines(node.body[0], node.body[-1])


def says(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether there is a text of three words or more in it that is no docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    constants = (one.value for part in body for one in ast.walk(part) if isinstance(one, ast.Constant))
    return any(isinstance(text, str) and len(re.findall("[A-Za-z]{2,}", text)) >= 3 for text in constants)


def lines(first: Placed, last: Placed) -> range:
    return range(first.lineno, (last.end_lineno or last.lineno) + 1)


def main(package: Path) -> None:
    names = {str(path.relative_to(package)): path for path in package.rglob("*.py")}
    sizes = {name: size(name, path.read_text(encoding="utf-8")) for name, path in names.items()}
    for name, one in sorted(sizes.items(), key=lambda item: -item[1].checks):
        print(f"{one.checks:6,} of {one.code:6,}  {name}")
    whole = total(sizes.values())
    print(f"{whole.checks:6,} of {whole.code:6,}  in all: {whole.checks / whole.code:.1%}")


if __name__ == "__main__":
    main(Path([*sys.argv, "src/thresher"][1]))
