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
# The names that each file uses. Of a class of Numba: what our subclass calls or replaces; `dispatcher` is
# what `numba.njit` returns, `state` what passes of the compiler hand on.
INSIDE = {
    "data/text/words.py": """
        numba.core.cgutils.alloca_once_value
        numba.core.cgutils.create_struct_proxy
        numba.core.cgutils.for_range
    """,
    "engine/compile/codecache.py": """
        numba.core.caching._Cache.__init__
        numba.core.caching._Cache.cache_path
        numba.core.caching._Cache.disable
        numba.core.caching._Cache.enable
        numba.core.caching._Cache.flush
        numba.core.caching._Cache.load_overload
        numba.core.caching._Cache.save_overload
        numba.core.compiler.CompileResult._rebuild
        numba.core.environment.Environment._memo
        numba.core.environment._rebuild_env
        numba.core.environment.lookup_environment
        numba.core.registry.cpu_target.target_context.codegen
        numba.core.runtime.nrt.rtsys.initialize
        numba.core.serialize.dumps
        """,
    "engine/compile/inplace.py": "numba.core.imputils.lower_builtin",
    "engine/compile/jit.py": """
        dispatcher._cache
        numba.core.codegen.JITCodeLibrary._codegen
        numba.core.codegen.JITCodeLibrary._ensure_finalized
        numba.core.codegen.JITCodeLibrary._final_module
        numba.core.codegen.JITCodeLibrary._finalize_dynamic_globals
        numba.core.codegen.JITCodeLibrary._finalize_final_module
        numba.core.codegen.JITCodeLibrary._finalized
        numba.core.codegen.JITCodeLibrary._get_module_for_linking
        numba.core.codegen.JITCodeLibrary._optimize_final_module
        numba.core.codegen.JITCodeLibrary._optimize_functions
        numba.core.codegen.JITCodeLibrary._verify_declare_only_symbols
        numba.core.codegen.JITCodeLibrary.codegen
        numba.core.codegen.JITCodeLibrary.get_pointer_to_function
        numba.core.codegen.JITCodeLibrary.name
        numba.core.codegen.JITCodeLibrary.serialize_using_object_code
        numba.core.compiler.CR_FIELDS
        numba.core.compiler.CompileResult
        numba.core.compiler.Compiler.compile_extra
        numba.core.compiler.Compiler.state
        numba.core.compiler.CompilerBase.compile_extra
        numba.core.compiler.CompilerBase.define_pipelines
        numba.core.compiler.CompilerBase.state
        numba.core.compiler.DefaultPassBuilder.define_nopython_pipeline
        numba.core.compiler_machinery.register_pass
        numba.core.errors.TypingError
        numba.core.typed_passes.NativeLowering.run_pass
        state.args
        state.calltypes
        state.cr
        state.flags
        state.func_id
        state.library
        state.return_type
        state.targetctx
        state.typemap
        """,
    "engine/compile/part_errors.py": """
        numba.core.errors.ForceLiteralArg
        numba.core.errors.NumbaError
        numba.core.errors.UnsupportedBytecodeError
        """,
    "engine/lanes.py": """
        numba.core.cgutils.alloca_once
        numba.core.cgutils.raw_memcpy
        numba.core.cgutils.unpack_tuple
        numba.np.arrayobj.populate_array
        """,
    "engine/lookup.py": """
        numba.core.cgutils.create_struct_proxy
        numba.core.cgutils.get_or_insert_function
        """,
}


def names_of(path: Path) -> frozenset[str]:
    """The names of Numba and llvmlite in a file, each as long as it stands there."""
    return Uses(ast.parse(path.read_text(encoding="utf-8"))).names


class Uses(ast.NodeVisitor):
    """Collects names."""

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
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"\b(numba|llvmlite)\b", path.read_text(encoding="utf-8")):
            names = names_of(path)
            for name in names:
                assert is_there(name), f"{path.name}: the installed Numba has no {name}"
            if inside := {name for name in names if not DOCUMENTED.fullmatch(name)}:
                found[str(path.relative_to(PACKAGE))] = inside
    assert found == {path: set(names.split()) for path, names in INSIDE.items()}


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
