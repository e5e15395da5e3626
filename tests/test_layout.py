"""Allowed imports, lengths and forbidden code, checked in the source with `ast`."""

import ast
import gc
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.code_lines import Size, size, total
from tests.oracles import ORACLES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "thresher"
SOURCES = sorted(PACKAGE.rglob("*.py"))
BESIDE = ("tests", "benchmarks", "examples", "experiments", "docs")
WRITTEN = [*SOURCES, *(p for d in BESIDE for p in sorted((ROOT / d).rglob("*.py")))]
RULES = [p for p in SOURCES if p.parent == PACKAGE / "parts" / "rules" and p.stem != "__init__"]

# folder -> what its modules may import of the package: a name ending in .* stands for all that is under it
ARROWS = {
    "engine": ("engine.*",),
    "parts": (
        "engine.compile.jit",
        "engine.protocol",
        "engine.verbs",
        "options.messages",
        "options.synonyms",
        "parts.*",
    ),
    "data": (
        *("_version", "engine.atomic", "engine.compile.jit", "engine.lookup"),
        *("engine.centring", "data.*", "options.messages", "options.synonyms"),
    ),
    # readers in other processes: they know data, not models
    "cluster": (
        *("engine.compile.jit", "engine.lookup", "data.*", "cluster.*"),
        *("options.data", "options.messages", "options.option"),
    ),
    # what users may say; each value is parsed by the module that knows its meaning, imported on use
    "options": (
        *("data.*", "options.*", "parts", "plans.folds", "plans.penalties", "learning.files.choice"),
        *("learning.inspection.plots", "learning.model.bags", "learning.model.prediction"),
        *("learning.model.recipe", "learning.training.passes"),
    ),
    # of parts only the registry, never a single part
    "learning": (
        *("engine.*", "cluster.remote_readers", "data.*", "drawing.*", "learning.*", "parts", "_version"),
        *("options.data", "options.kinds", "options.layouts", "options.messages"),
        *("options.model", "options.option", "options.synonyms"),
        *("batch.columns", "batch.newton", "batch.rounds"),  # which know no model
    ),
    # solvers know neither the online loop nor its rules; their results are read like any model
    "batch": (
        *("engine.compile.jit", "engine.kernels", "engine.outputs", "engine.protocol", "engine.verbs"),
        *("data.*", "options.kinds", "options.messages", "parts", "batch.*", "_version"),
        *("learning.model.objective", "learning.files.model_file", "learning.model.prediction"),
        *("learning.model.agreement", "learning.diagnostics.*"),
    ),
    # pictures: they know nothing of what they show
    "drawing": ("drawing.*",),
    # many models from one reading, using the public interface
    "plans": (
        *("cluster.remote_readers", "data.*", "drawing.*", "engine.atomic", "engine.lookup", "engine.sound"),
        *("learning.*", "plans.*", "options.*", "parts", "_version"),
    ),
    # what commands and functions do with models, once for both
    "runs": (
        *(
            *("batch.*", "cluster.remote_readers", "data.*", "engine.atomic", "exporting.*", "plans.*"),
            "learning.*",
        ),
        *("options.*", "parts", "reporting.*", "runs.*"),
    ),
    "api": (
        *(
            *("batch.*", "cluster.remote_readers", "data.*", "engine.atomic", "plans.*", "learning.*"),
            "options.*",
        ),
        "runs.*",
    ),
    # estimators use the rest, as the command line does
    "sklearn": (
        *("engine.atomic", "engine.protocol", "engine.index", "data.*", "exporting.*", "learning.*"),
        *("plans.*", "options.*", "parts", "sklearn.*", "_version"),
    ),
    # estimators for river, which learn row by row
    "river": ("data.errors", "data.inputs.any_data", "learning.model.model", "options.option"),
    # one page about a model, using the public interface
    "reporting": (
        *("cluster.remote_readers", "data.*", "drawing.*", "engine.atomic", "engine.lookup", "plans.*"),
        *("learning.*", "options.messages", "parts", "reporting.*", "_version"),
    ),
    # a model in other languages
    "exporting": (
        *("data.*", "engine.index", "engine.lookup", "engine.centring", "exporting.*", "learning.*"),
        *("options.messages", "parts", "_version"),
    ),
    # the laws, for parts of users
    "testing": (
        *("data.chunk", "engine.*", "learning.files.model_file", "learning.model.*"),
        *("learning.modelbytes", "parts", "testing.*"),
    ),
    # a model as a service: a face beside the command line, with what is an extra
    "serving": (
        *("_version", "data.*", "engine.atomic", "learning.*", "options.*", "runs.*", "plans.*"),
        "serving.*",
    ),
    "cli": (
        *("cluster.*", "engine.atomic", "engine.compile.notices", "learning.*", "batch.*"),
        *("plans.*", "data.*", "drawing.*", "options.*", "runs.*", "reporting.*", "parts", "serving.*"),
        *("cli.*", "_version"),
    ),
    "__init__": ("*",),
    "__main__": ("cli.*",),
    "_version": (),
}
# the rooms of data, each of which may import those before it
ROOMS = ("text", "files", "features", "sources", "formats.lines", "formats.tables")
# folder -> the most lines that its modules may have, those of code, and those of code that check, raise
# or explain (tests/code_lines.py): who adds says in the same commit what goes, or raises one and says why
SIZES = {
    "all": Size(57_917, 29_249, 4_225),
    "data": Size(16_883, 9_195, 1_051),
    "learning": Size(13_319, 6_848, 1_647),
    "parts": Size(5_239, 2_073, 201),
    "engine": Size(4_729, 2_166, 116),
    "plans": Size(2_979, 1_547, 249),
    "serving": Size(2_654, 1_548, 166),
    "options": Size(2_162, 961, 179),
    "sklearn": Size(1_385, 705, 119),
    "cli": Size(1_783, 805, 143),
    "cluster": Size(918, 504, 52),
    "river": Size(256, 81, 9),
    "reporting": Size(935, 564, 44),
    "batch": Size(1_265, 642, 52),
    "exporting": Size(744, 452, 42),
    "runs": Size(694, 391, 51),
    "drawing": Size(672, 377, 0),
    "api": Size(690, 101, 6),
    "testing": Size(475, 238, 92),
    "__init__": Size(102, 43, 2),
    "_version": Size(28, 7, 4),
    "__main__": Size(5, 1, 0),
}
# folder -> the most names that its modules may take from data and learning
DOORS = {"runs": 30, "sklearn": 30, "serving": 33, "reporting": 28, "exporting": 29}
# folder -> the only packages outside the standard library that its modules may import
OUTSIDE = {
    "engine": {"numba", "numpy", "llvmlite"},
    "parts": {"numba", "numpy"},
    "cluster": {"numpy", "pyarrow", "ray"},
    "drawing": set[str](),
    "testing": {"numpy"},
    "sklearn": {"numpy", "onnx", "pandas", "pyarrow", "scipy", "sklearn"},
    "river": {"numpy", "pandas", "polars", "river"},
    "__init__": set[str](),
    "__main__": set[str](),
}
# modules of which others import more than eight names: words of compiled loops, which are read as formulas
# are, and what the package offers
VOCABULARIES = {
    *("engine.verbs", "parts.ft_ftrl_state", "data.text.words", "data.labels"),
    *("data.formats.tables.json_cells", "api"),
}
# `thresher --help` and `import thresher` must be quick: what they import is imported on use
HEAVY = {"llvmlite", "matplotlib", "numba", "numpy", "pyarrow", "ray", "safetensors", "scipy", "sklearn"}
LAZY = {"cli", "__init__", "__main__"}
ON_USE = "thresher.cli.console"  # itself imported on use, so it may import what it likes
# used by --help; they import only the standard library, click and each other
LIGHT = {f"thresher.data.{name}" for name in ("errors", "feature_specs", "formats.listing")}
LIGHT |= {
    f"thresher.options.{path.stem}"
    for path in PACKAGE.glob("options/*.py")
    if path.stem not in ("checks", "layouts", "__init__")
}
# compiled code must be unpickled: its cache reads only files that nobody else can have written
KEEPS_COMPILED_CODE = PACKAGE / "engine" / "compile" / "codecache.py"
RUNS_CODE_ON_LOADING = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# fields of statements that hold other statements
BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
# only files with one of these words can have what it stands for
FORBIDDEN = re.compile(r"\bexcept\s*[:\\]|\beval\b|\bexec\b|\ballow_pickle\b")

# ways of setting an attribute of anything, and private names, alone or at the end of a dotted one
SETTING = ("setattr", "setitem", "delattr")
PRIVATE = re.compile(r"(.*\.)?_(?!_)\w+").fullmatch


class Import(NamedTuple):
    name: str
    line: int
    eager: bool
    """Done when the module is imported, not when a function runs or for a type checker only."""
    runs: bool
    """Done at some time, not for a type checker only."""


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(text_of(path), str(path))


@pytest.fixture(autouse=True, scope="module")
def trees_without_search_for_garbage() -> Iterator[None]:
    """The search would go through all trees again and again, for longer than all tests take."""
    gc.disable()
    yield
    parse.cache_clear()
    gc.enable()


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def within(node: ast.AST) -> list[ast.AST]:
    """The statements, handlers and cases directly inside a statement: its functions and imports are there."""
    blocks = [getattr(node, block) for block in BLOCKS if block in node._fields]
    return [inner for block in blocks for inner in block]


def show(path: Path) -> str:
    return str(path.relative_to(ROOT))


def folder(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def is_module(name: str) -> bool:
    place = ROOT.joinpath("src", *name.split("."))
    return place.is_dir() or place.with_suffix(".py").exists()


@cache
def imports(path: Path) -> tuple[Import, ...]:
    package = path.relative_to(ROOT / "src").with_suffix("").parts[:-1]

    def visit(node: ast.AST, eager: bool, runs: bool) -> Iterator[Import]:
        runs = runs and not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        eager = eager and runs and not isinstance(node, FUNCTIONS)
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, eager, runs) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                yield Import(whole if is_module(whole) else module, node.lineno, eager, runs)
        for inner in within(node):
            yield from visit(inner, eager, runs)

    return tuple(visit(parse(path), True, True))


def room(name: str) -> int:
    """Which of `ROOMS` a module is in; -1 if in none."""
    return next((k for k, one in enumerate(ROOMS) if name.startswith(f"thresher.data.{one}.")), -1)


def allowed(name: str, patterns: tuple[str, ...]) -> bool:
    for pattern in patterns:
        stem = pattern.removesuffix("*").removesuffix(".")
        if name == stem or (pattern.endswith("*") and (not stem or name.startswith(stem + "."))):
            return True
    return False


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    statements: list[ast.AST] = [parse(path)]
    for node in statements:  # which grows
        statements += within(node)
        if isinstance(node, FUNCTIONS):
            yield node


def docstring_lines(node: ast.AST) -> int:
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


def each_of(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test that checks all files and names those that fail."""

    def decorate(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            failed = []
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    failed.append(f"{show(path)}: {str(error).partition(chr(10))[0]}")
            assert not failed, "\n".join(failed)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


sources, written, rules = each_of(SOURCES), each_of(WRITTEN), each_of(RULES)


@sources
def test_imports_follow_the_arrows(path: Path) -> None:
    arrows = ARROWS[folder(path)]  # a new folder must list its allowed imports
    for found in imports(path):
        if found.name.split(".")[0] == "thresher":
            inner = found.name.removeprefix("thresher").removeprefix(".")
            assert allowed(inner, arrows), f"line {found.line}: {folder(path)} may not import {found.name}"


@sources
def test_rooms_of_data_import_those_before_them(path: Path) -> None:
    own = room(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
    for found in imports(path):
        assert own < 0 or room(found.name) <= own, (
            f"line {found.line}: {ROOMS[own]} may not import {found.name}"
        )


@sources
def test_imports_from_outside(path: Path) -> None:
    only = OUTSIDE.get(folder(path))
    for found in imports(path):
        top = found.name.split(".")[0]
        if top == "thresher" or top in sys.stdlib_module_names:
            continue
        assert top != "sklearn" or folder(path) == "sklearn", (
            f"line {found.line}: only the folder sklearn imports {top}"
        )
        if only is not None:
            assert top in only, f"line {found.line}: {folder(path)} may not import {top}"


@sources
def test_the_command_line_imports_on_use(path: Path) -> None:
    if folder(path) not in LAZY or path.stem == ON_USE.rpartition(".")[2]:
        return
    for found in imports(path):
        parts = found.name.split(".")
        heavy = parts[0] in HEAVY or (
            parts[0] == "thresher" and parts[1:2] not in ([], ["cli"], ["_version"])
        )
        heavy = heavy or found.name.startswith(ON_USE)
        assert found.name in LIGHT or not (found.eager and heavy), (
            f"line {found.line}: import {found.name} inside a function"
        )


def test_what_the_command_line_imports_at_once_is_light() -> None:
    for name in sorted(LIGHT):
        for found in imports(ROOT.joinpath("src", *name.split(".")).with_suffix(".py")):
            light = found.name in LIGHT or found.name.split(".")[0] in sys.stdlib_module_names
            assert light or not found.eager, (
                f"{name}, line {found.line}: import {found.name} inside a function"
            )


# public methods of a model that need what stands above it: `save`, pickling, `learn` from any data, tables
METHODS_THAT_REACH_UP = {
    *("files.model_file", "inspection.explanation", "inspection.feature_names", "inspection.notebooks"),
    "modelbytes",
}
METHODS_THAT_REACH_UP |= {"model.model", "model.prediction"}
# a loss and a rule have the name of the same algorithm
SHARED_NAMES = {"Perceptron"}


def graph(eager: bool) -> dict[str, set[str]]:
    """Module -> the modules it imports when it is imported itself, or at any time."""
    names = {path: ".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in SOURCES}
    return {
        name.removesuffix(".__init__"): {
            one.name for one in imports(path) if (one.eager if eager else one.runs)
        }
        for path, name in names.items()
    }


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules that import each other, directly or not."""

    def reached(name: str) -> set[str]:
        found, waiting = set[str](), [name]
        while waiting:
            new = edges.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    all_reached = {name: reached(name) for name in edges}
    circular = [name for name in edges if name in all_reached[name]]
    groups = {
        frozenset(other for other in circular if other in all_reached[name] and name in all_reached[other])
        for name in circular
    }
    return [set(group) for group in groups]


def test_no_module_imports_itself_by_a_detour() -> None:
    assert not cycles(graph(eager=True))
    conveniences = {f"thresher.learning.{name}" for name in METHODS_THAT_REACH_UP}
    assert [one for one in cycles(graph(eager=False)) if one != conveniences] == []


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(show(path))
    assert {name: found for name, found in homes.items() if len(found) > 1 and name not in SHARED_NAMES} == {}


@rules
def test_a_rule_is_one_short_file_with_an_oracle(path: Path) -> None:
    lines = len(text_of(path).splitlines())
    lines -= sum(docstring_lines(node) for node in ast.walk(parse(path)))
    imported = [node for node in parse(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
    lines -= sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imported)
    assert lines <= 80, f"{lines} lines, docstrings and imports not counted; 80 at most"
    assert path.stem.replace("_", "-") in ORACLES, "a rule needs its line in tests/oracles.py"


@each_of([*(PACKAGE / "parts").rglob("*.py"), ROOT / "examples" / "own_rule.py"])
def test_columns_of_the_state_and_places_in_the_clock_have_names(path: Path) -> None:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("S", "T", "now", "clock"):
            last = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
            assert not isinstance(last, ast.Constant), f"line {node.lineno}: {ast.unparse(node)}"


@sources
def test_no_part_is_told_apart_by_name(path: Path) -> None:
    if path.name == "registry.py":
        return
    kebab = {rule.stem.replace("_", "-") for rule in RULES}
    names = kebab | {rule.stem.replace("_", " ").title().replace(" ", "") for rule in RULES}
    if not any(name in text_of(path) for name in names):
        return
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Compare | ast.MatchValue):
            named = names.intersection(c.value for c in ast.walk(node) if isinstance(c, ast.Constant))
            assert not named, f"line {node.lineno}: compares with {named}; ask the part itself"


@cache
def size_of(path: Path) -> Size:
    return size(str(path.relative_to(PACKAGE)), text_of(path))


@pytest.mark.parametrize("wing", ["all", *sorted({folder(path) for path in SOURCES})])
def test_the_house_does_not_grow(wing: str) -> None:
    found = total(size_of(path) for path in SOURCES if wing in ("all", folder(path)))
    for what, now, most in zip(Size._fields, found, SIZES[wing], strict=True):
        assert now <= most, f"{what} of {wing}: {now:,}, {most:,} at most"


def test_few_modules_take_the_offsets_of_rows() -> None:
    asked = {"offsets", "offsets_if", "with_offsets"}
    others = {PACKAGE / "data/files", PACKAGE / "data/inputs/arrays.py", PACKAGE / "data/formats/tables"}
    found = [
        path
        for path in SOURCES  # messages of topics, diagonals of SciPy and arrays of Arrow have offsets too
        if others.isdisjoint({path, *path.parents})
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute) and node.attr in asked
    ]
    assert PACKAGE / "data/chunk.py" in found
    assert len({*found}) <= 15


@sources
def test_a_module_of_which_much_is_used_is_imported_whole(path: Path) -> None:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            few = len(node.names) <= 8 or node.module.removeprefix("thresher.") in VOCABULARIES
            assert few, f"line {node.lineno}: import {node.module} and name what is used of it"


@pytest.mark.parametrize("wing", DOORS)
def test_a_wing_asks_for_few_things(wing: str) -> None:
    taken = {
        (node.module, alias.name)
        for path in SOURCES
        if folder(path) == wing
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ImportFrom) and re.match(r"thresher\.(data|learning)\b", node.module or "")
        for alias in node.names
    }
    assert len(taken) <= DOORS[wing], f"{wing} takes {len(taken)} names, {DOORS[wing]} at most"


@written
def test_nothing_is_swallowed_or_run_from_data(path: Path) -> None:
    for node in ast.walk(parse(path)) if FORBIDDEN.search(text_of(path)) else ():
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}: a bare except"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"eval", "exec"}, f"line {node.lineno}: {node.func.id}"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert ast.unparse(node.value) == "False", f"line {node.lineno}: allow_pickle"
    if path in SOURCES and path != KEEPS_COMPILED_CODE:
        loaders = [found for found in imports(path) if found.name.split(".")[0] in RUNS_CODE_ON_LOADING]
        assert not loaders, f"line {loaders[0].line}: {loaders[0].name}"


@each_of([path for path in WRITTEN if path.is_relative_to(ROOT / "tests")])
def test_tests_set_no_private_names(path: Path) -> None:
    text = text_of(path)
    for node in ast.walk(parse(path)) if "setattr" in text or re.search(r"\._\w+ = ", text) else ():
        if isinstance(node, ast.Assign):
            private = [one.attr for one in node.targets if isinstance(one, ast.Attribute) and not is_own(one)]
            assert not [*filter(PRIVATE, private)], f"line {node.lineno}: sets {private}"
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(SETTING):
            named = [str(one.value) for one in node.args[:2] if isinstance(one, ast.Constant)]
            assert not [*filter(PRIVATE, named)], f"line {node.lineno}: sets {named}"
        if isinstance(node, ast.Constant) and "\nimport " in (program := str(node.value)):
            named = re.findall(r"^(?!self|cls)\w+(\._(?!exit)[a-z]\w*) = ", program, re.MULTILINE)
            named += re.findall(r"""["']_[a-zA-Z]\w*["']""", program) if "setattr(" in program else []
            assert not named, f"line {node.lineno}: a program that sets {named}"


def is_own(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")


def test_the_picture_of_the_layout_names_every_module() -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    picture = design.partition("## Layout")[2].partition("```")[2].partition("```")[0]
    named = set(re.findall(r"[\w*]+\.py", picture))
    commands = set(re.findall(r"\w+", picture.partition("  cli/ ")[2].partition(":")[0]))
    for path in SOURCES:
        known = path.stem in commands if path.parent.name == "cli" else path in RULES
        if not (known or path.stem.startswith("_")):
            assert any(fnmatch(path.name, name) for name in named), f"{show(path)} is not in the picture"
    names = {path.name for path in WRITTEN}
    assert not [name for name in named if not any(fnmatch(one, name) for one in names)]


def test_every_module_that_the_docs_name_exists() -> None:
    files = [f"/{show(path)}" for path in WRITTEN]
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for name in set(re.findall(r"[\w./*<>-]+\.py\b", text_of(page))):
            if not re.search(r"[A-Z<]", name):  # NAME.py stands for any name
                wanted = f"*/{name.lstrip('./')}"
                assert any(fnmatch(path, wanted) for path in files), f"{show(page)} names {name}"
