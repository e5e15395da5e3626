"""What the source uses of the inside of Numba, which any version of Numba may change.

Numba documents `numba.types` and `numba.extending`, and llvmlite `ir` and `binding`, for programs such as
this one; everything else is inside. To try a new version of Numba, install it and run the tests; then raise
the ceiling in pyproject.toml.
"""

import ast
import functools
import importlib
import inspect
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba.core import compiler, dispatcher, typed_passes

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "thresher"
DOCUMENTED = re.compile(
    r"numba(\.(types|extending|config|njit|typeof|__version__)(\..*)?)?|llvmlite(\.(ir|binding|__version__)(\..*)?)?"
)
INSIDE = {
    "data/text/words.py",
    *(f"engine/compile/{name}.py" for name in ("emitted", "translate")),
}
"""The files that use more than is documented"""


def names_of(path: Path) -> frozenset[str]:
    return Uses(ast.parse(path.read_text(encoding="utf-8"))).names


class Uses(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.known: dict[str, str] = {}
        """what local names stand for"""
        self.found = set[str]()
        self.visit(tree)
        whole = "\n".join(self.found)
        self.names = frozenset(name for name in self.found if f"{name}." not in whole)

    def visit_Import(self, node: ast.Import) -> None:
        for one in node.names:
            if one.name.partition(".")[0] in ("numba", "llvmlite"):
                assert "." not in one.name, f"import the parts of {one.name} by name"
                self.known[one.asname or one.name] = one.name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if module.partition(".")[0] in ("numba", "llvmlite"):
            self.known |= {one.asname or one.name: f"{module}.{one.name}" for one in node.names}
            self.found |= {f"{module}.{one.name}" for one in node.names}

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        name = None if node.value is None else self.name(node.value)
        if name is not None and isinstance(node.target, ast.Name):
            self.known[node.target.id] = name
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = ast.unparse(node.value)
        if (name := self.name(node)) is not None:
            self.found.add(re.sub(r"(\.__\w+__)+$", "", name))
        elif owner in ("state", "self.state"):
            self.found.add(f"state.{node.attr}")
        elif owner.endswith("compiled") and node.attr.startswith("_"):
            self.found.add(f"dispatcher.{node.attr}")
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        bases = [name for base in node.bases if (name := self.name(base)) is not None]
        for base in bases:
            theirs = resolved(base)
            of_self = {
                inner.attr
                for inner in ast.walk(node)
                if isinstance(inner, ast.Attribute)
                and ast.unparse(inner.value) in ("self", "super()", "library")
            }
            defined = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            self.found |= {f"{base}.{name}" for name in of_self | defined if has(theirs, name)}
        self.generic_visit(node)

    def name(self, node: ast.expr) -> str | None:
        """The full name of an expression such as ``cgutils.alloca_once``, if it begins with a known name."""
        if isinstance(node, ast.Attribute):
            owner = self.name(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        return self.known.get(node.id) if isinstance(node, ast.Name) else None


def resolved(name: str) -> Any:
    """What a full name stands for in the installed version; AttributeError if it is gone."""
    first, *others = name.split(".")
    found: Any = importlib.import_module(first)
    for word in others:
        if isinstance(found, ModuleType) and not hasattr(found, word):
            found = importlib.import_module(f"{found.__name__}.{word}")
        else:
            found = getattr(found, word)
    return found


def has(cls: Any, name: str) -> bool:
    """Whether objects of a class of Numba have an attribute, which may be set by a method."""
    return hasattr(cls, name) or name in sets(cls)


@functools.cache
def sets(cls: Any) -> set[str]:
    """The attributes that the methods of a class set on `self`."""
    own = [one for one in getattr(cls, "__mro__", ()) if one.__module__.startswith("numba.")]
    sources = map(inspect.getsource, own)
    return set(re.findall(r"self\.(\w+)(?: *,[^=\n]*)? = ", "\n".join(sources)))


def test_the_inside_of_numba_is_used_where_this_list_says_and_is_there() -> None:
    found = set[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"\b(numba|llvmlite)\b", path.read_text(encoding="utf-8")):
            names = names_of(path)
            for name in names:
                assert is_there(name), f"{path.name}: the installed Numba has no {name}"
            if not all(DOCUMENTED.fullmatch(name) for name in names):
                found.add(str(path.relative_to(PACKAGE)))
    assert found == INSIDE


def is_there(name: str) -> bool:
    """Whether the installed version has what a full name stands for."""
    first, _, last = name.partition(".")
    if first == "dispatcher":
        return has(dispatcher.Dispatcher, last)
    if first == "state":
        return (
            re.search(rf"state\.{last}\b", inspect.getsource(compiler) + inspect.getsource(typed_passes))
            is not None
        )
    owner, _, last = name.rpartition(".")
    try:
        resolved(name)
    except (AttributeError, ImportError):
        return has(resolved(owner), last)
    return True


def test_versions_of_numba_that_were_not_tried_are_excluded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    limits = [re.fullmatch(r"numba>=[\d.]+,<(\d+)\.(\d+)", one) for one in project["dependencies"]]
    ceiling = next(tuple(map(int, limit.groups())) for limit in limits if limit)
    assert tuple(map(int, numba.__version__.split(".")[:2])) < ceiling
