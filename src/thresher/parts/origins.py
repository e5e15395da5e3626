"""Which parts there are, and where those come from that are not built in: packages and files.

A package names its parts as entry points of the group ``thresher.parts``. They are looked up only when a name
is not known yet, or when all parts are listed: finding them takes some 20 ms, more with many packages. A file
is executed if the user names it; a model file names only what must be there, and nothing that it names is
executed but the entry points of installed packages.
"""

from __future__ import annotations

import copyreg
import hashlib
import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from thresher.engine.protocol import ATTRIBUTES, KINDS
from thresher.options.messages import as_shown, mention, shell_or_python, warn_user

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "thresher.parts"
"""The group of the entry points"""
REGISTRY: dict[str, dict[str, type]] = {kind: {} for kind in ATTRIBUTES}
"""Kind -> name -> class"""
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"([A-Za-z0-9][A-Za-z0-9.!+_-]*)?")
"""What the metadata of packages allow"""
_FILES: dict[str, tuple[Path, tuple[int, ...]]] = {}
"""Module -> the file that was executed, and its state then"""
_WARNED: set[str] = set()
MAIN = "thresher_main_"
"""Begins the name of the module that parts of a script belong to"""
_ELSEWHERE: dict[tuple[str, str], tuple[str, str]] = {}
"""Kind and name -> module and file of parts of the process that sent an estimator"""


class SpecError(ValueError):
    """An invalid SPEC. The message is one line."""

    def __str__(self) -> str:
        return as_shown(super().__str__())


class Need(NamedTuple):
    """A part that a model needs and that is not built in; where it comes from, as far as that is known."""

    kind: str
    name: str
    package: str = ""
    version: str = ""
    file: str = ""
    """name of the file that defines it, without its folder, if it is not from a package"""


def part_name(cls: type) -> str:
    """The name of a part: ``TruncatedGradient`` is ``truncated-gradient``."""
    own = cls.__qualname__.rpartition(".")[2]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", own).lower()


def entry_points() -> list[EntryPoint]:
    """All entry points that name parts."""
    from importlib import metadata

    return [*metadata.entry_points(group=ENTRY_POINTS)]


def load_named(name: str) -> None:
    """Import the package that has a part of this name, if there is one. SpecError; also for two packages.

    A part of the process that sent an estimator here comes first.
    """
    for kind in REGISTRY:
        if (kind, name) in _ELSEWHERE and name not in REGISTRY[kind]:
            _load_home(kind, name, *_ELSEWHERE[kind, name])
            return
    found = [one for one in entry_points() if one.name == name]
    if len(found) > 1:
        several = " and ".join(sorted(_package(one)[0] for one in found))
        raise SpecError(f"the packages {several} both have a part called {name}: uninstall one of them")
    for one in found:
        begin = f"package {_package(one)[0]}: its module {one.module}"
        with _registering():
            try:
                one.load()
            except (Exception, SystemExit) as error:
                raise SpecError(f"{begin} cannot be imported: {_in_words(error)}") from error
            if not any(name in known for known in REGISTRY.values()):
                raise SpecError(f"{begin} defines no part called {name}")


def _package(point: EntryPoint) -> tuple[str, str]:
    dist: Any = point.dist  # whose metadata may be incomplete
    return ("", "") if dist is None else (dist.name or "", dist.version or "")


def load_files(files: Iterable[str | os.PathLike[str]]) -> None:
    """Execute files of Python that define parts, unless they are as they were before. SpecError."""
    for given in files:
        file = Path(given)
        path = file.resolve()
        try:
            state = path.stat()
            if not path.is_file():
                what = "a folder" if path.is_dir() else "a pipe or a device"
                raise SpecError(f"{file}: {what}, not a file of Python")
            stamp = (state.st_mtime_ns, state.st_ino, state.st_size)
            hashed = hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:8]
            name = f"thresher_file_{re.sub(r'[^0-9A-Za-z]', '_', path.stem)}_{hashed}"
            there = any(cls.__module__ == name for cls in _all_parts().values())
            if not there or _FILES.get(name) != (path, stamp):
                with _registering():
                    _execute(file, path, name, stamp)
        except OSError as error:
            raise SpecError(f"{file}: {(error.strerror or str(error)).lower()}") from error


def homes() -> dict[tuple[str, str], tuple[str, str]]:
    """Module and file of all parts that are not built in, for `expect` in another process."""
    return {key: _home_of(cls) for key, cls in _all_parts().items() if not is_built_in(cls)}


def expect(homes: dict[tuple[str, str], tuple[str, str]]) -> None:
    """Load these parts once they are asked for."""
    _ELSEWHERE.update(homes)


def reduce_part(self: Any) -> object:
    """``__reduce__`` of parts that are not built in: another process defines the class first."""
    cls = type(self)
    if cls not in KINDS:  # a subclass, which is found as any class is
        return copyreg.__newobj__, (cls, *self), getattr(self, "__dict__", None) or None  # type: ignore[attr-defined]
    kind, name, (module, file) = KINDS[cls], part_name(cls), _home_of(cls)
    where = cls if module == "__main__" else None  # typed at a prompt: cloudpickle sends it whole
    return _receive, (kind, name, module, file, where, self._asdict())


def _receive(kind: str, name: str, module: str, file: str, cls: Any, values: dict[str, Any]) -> object:
    if cls is not None and cls not in KINDS:
        REGISTRY[kind][name], KINDS[cls] = cls, kind
    if cls is None and name not in REGISTRY[kind]:
        _load_home(kind, name, module, file)
    made: Any = cls or REGISTRY[kind][name]
    if {*made._fields} != {*values}:
        here = f"{', '.join(made._fields)} in {_place(made)}: use one definition in both processes"
        raise SpecError(f"the {kind} {name} was sent with the fields {', '.join(values)}, but has {here}")
    return made(**values)


def _home_of(cls: type) -> tuple[str, str]:
    name = cls.__module__
    own = name in _FILES or name.startswith(MAIN)
    return name, os.path.abspath(str(sys.modules[name].__file__)) if own else ""


def _load_home(kind: str, name: str, module: str, file: str) -> None:
    """Define a part by its module or its file, which must be no script that runs. SpecError."""
    try:
        if module.startswith(MAIN):
            raise SpecError(f"the script {file} defines it")
        if file:
            load_files([file])
        else:
            import_module(module)
        if name not in REGISTRY[kind]:
            raise SpecError(f"{file or module}: defines no {kind} called {name}")
    except (ImportError, SpecError) as error:
        reason = f"the {kind} {name} of another process is not known here: {error}"
        raise SpecError(f"{reason}: put it in a module that both can import") from error


def _execute(file: Path, path: Path, name: str, stamp: tuple[int, ...]) -> None:
    before = _all_parts()
    loader = _FileOfParts(name, str(path))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name], _FILES[name] = module, (path, stamp)
    try:
        with redirect_stdout(sys.stderr):  # standard output is for results
            loader.exec_module(module)
        own = [one for one in vars(module).values() if getattr(one, "__module__", "") == name]
        bases = [base for one in own if isinstance(one, type) for base in one.__mro__]
        # a class may be known by its base here, such as the topics of a scheme
        if _all_parts() == before and not any(base.__module__.startswith("thresher.") for base in bases):
            raise SpecError(f'{file}: defines no part: a class with @part("rule") or the like')
    except (Exception, SystemExit) as error:
        del sys.modules[name], _FILES[name]
        if isinstance(error, OSError) and error.filename == str(path):
            raise
        if isinstance(error, SpecError) and str(error).startswith(f"{file}: "):
            raise
        lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == str(path)]
        if isinstance(error, SyntaxError) and error.filename in (str(path), None):
            lines = [error.lineno]
        line = f":{lines[-1]}" if lines and lines[-1] else ""
        what = "not Python: " if isinstance(error, SyntaxError | ValueError) and not line else ""
        raise SpecError(f"{file}{line}: {what}{_in_words(error)}") from error


class _FileOfParts(SourceFileLoader):
    """Reads a file of Python under any name; nothing is written beside it."""

    def get_code(self, fullname: str) -> CodeType:
        found: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return found


def _in_words(error: BaseException) -> str:
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(said.split())}".removesuffix(": ")


def _all_parts() -> dict[tuple[str, str], type]:
    return {(kind, name): cls for kind, known in REGISTRY.items() for name, cls in known.items()}


@contextmanager
def _registering() -> Iterator[None]:
    """Within this block parts are defined; if it fails, those of before stay. SpecError for a name twice."""
    before = {kind: known.copy() for kind, known in REGISTRY.items()}
    try:
        yield
        for (kind, name), cls in _all_parts().items():
            old = before[kind].get(name, cls)
            if _home(old) != _home(cls):
                raise SpecError(f"a {kind} called {name} is in {_place(old)} and in {_place(cls)}")
    except BaseException:
        for kind, known in REGISTRY.items():
            known.clear()
            known.update(before[kind])
        raise


def _home(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _place(cls: type) -> str:
    return str(_FILES[cls.__module__][0]) if cls.__module__ in _FILES else f"the module {cls.__module__}"


def is_built_in(cls: type) -> bool:
    """Whether a part belongs to thresher."""
    return _home(cls) == "thresher"


def needs_of(made: Iterable[Any]) -> list[Need]:
    """Where parts come from, and the parts in their fields, unless they are built in."""
    waiting, found = [*made], list[Need]()
    for one in waiting:  # which grows
        waiting += [inner for inner in one if isinstance(inner, tuple)]
        cls = next((cls for cls in type(one).__mro__ if cls in KINDS), None)
        if cls is not None and not is_built_in(cls):
            found.append(Need(KINDS[cls], part_name(cls), **_origin(cls, part_name(cls))))
    return list(dict.fromkeys(found))


def _origin(cls: type, name: str) -> dict[str, str]:
    """Package and version, or the file, of the class of a part; nothing if it was typed at a prompt."""
    if cls.__module__ not in _FILES:
        for point in entry_points():
            if point.name == name and point.module.partition(".")[0] == _home(cls):
                package, version = _package(point)
                return {"package": package, "version": version}
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return {"file": os.path.basename(file)} if file else {}


def check_there(needs: Sequence[Need]) -> None:
    """SpecError with what to install or to name, unless all these parts are there.

    One warning per process for a package of another version.
    """
    for need in needs:
        if need.name not in REGISTRY.get(need.kind, {}):
            load_named(need.name)
        cls = REGISTRY.get(need.kind, {}).get(need.name)
        if cls is None:
            raise SpecError(f"needs the {need.kind} {need.name}{_remedy(need)}")
        here = {"package": "thresher"} if is_built_in(cls) else _origin(cls, need.name)
        other = here.get("package", need.package)
        # names as package indexes compare them
        differs = len({re.sub(r"[-_.]+", "-", one).lower() for one in (other, need.package)}) > 1
        if is_built_in(cls) or (need.package and differs):
            origin = need.package or need.file or "a prompt"
            raise SpecError(f"needs the {need.kind} {need.name} of {origin}, but here it is one of {other}")
        if not need.package:
            continue
        text = f"made with {need.package} {need.version}; {here.get('version')} is installed"
        if here.get("version", need.version) != need.version and text not in _WARNED:
            _WARNED.add(text)
            warn_user(f"the model was {text}", UserWarning)


def _remedy(need: Need) -> str:
    """What the user can do. Models come from anywhere: what names no package or file is nothing to type."""
    if need.package:
        wanted = f"{need.package}=={need.version}" if need.version else need.package
        known = _PACKAGE.fullmatch(need.package) and _VERSION.fullmatch(need.version)
        return f" of the package {need.package}{f': pip install {shlex.quote(wanted)}' if known else ''}"
    if not need.file:
        return ", which was defined at a prompt: define it again first"
    file = os.path.basename(need.file)
    return f", which {file} defines: use {mention(modules=file)}{shell_or_python('', ' or import it first')}"
