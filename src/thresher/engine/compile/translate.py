"""What Numba is told, and machine code made with it: imported only to compile.

Functions that only kernels call are translated once, and turned into machine code in the kernel.

Numba makes a library of each function that a kernel calls: it optimises it, generates machine code that never
runs, and links it into its callers, where all of that happens again at each level of calls. Here every
function is only translated; what Python calls is linked and optimised whole. The two hooks that Numba has for
that are `pipeline_class` and a library class. A first training run took 13.7 s of processor before, 7.9
after, and its loops are as fast. LLVM is told to inline scalars: left to itself, it made parsers 20 % slower.

Functions of one coordinate do no reference counting (`BORROWING`). Numba counts references to an array at
every call, and removes the counting only if it can analyse the control flow. One branch too many prevented
that: `ft-ftrl` took 28.5 ns per non-zero, and 12.0 without the counts; `normalized` took 10.1 and 9.3. (`sgd`
takes 3.8, `ftrl` 6.5.) The price is that such a function must neither create nor return an array, nor call
one that does: the array would be freed twice, or never. The compiler checks that, after a crash showed why.

Loops over outputs are vectorised only if LLVM finds no reference counts in them. Numba removes these between
two rounds of optimisation, and by default the first round does too little; at level ``max`` (used unless the
user sets NUMBA_OPT) it does the same work as the second, and compiling takes no longer. ns per non-zero to
read and to write a softmax model of 20 classes: `fobos` 20.7 and 11.8 before, 9.9 and 6.0 after. Lower levels
save at most 5 %, since half of compiling is type inference; other pass managers gained nothing.

What costs time to compile is avoided. Functions called from several places are not inlined
(`compiled_apart`); LLVM's own heuristics inlined all of them. Single instructions and copies of a clock are
emitted in place (`emits`). Numba makes a library of `in` with a tuple for each length, and of `min` and `max`
for each pair of types: parsers test bits (`among`), and loops do not call them. Allocating an array in a
kernel brings in numpy's allocation code, 0.1 s, and assigning to whole slices costs a second, for the
messages about shapes: kernels get their room as an argument, and write loops.

Numba reports a method of a part that it cannot compile from the kernel inwards, in some 40 lines. Here, the
compiler of the method raises an error that Numba lets pass: one line with the part, the method, the line of
its file and the reason.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined, misc, untyped-decorator"

from __future__ import annotations

import gc
import hashlib
import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numba
from llvmlite import ir
from numba import types as numba_types
from numba.core import cgutils, codegen, compiler, pythonapi, registry, serialize, typed_passes
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUTargetOptions
from numba.core.errors import NumbaError, TypingError, UnsupportedBytecodeError
from numba.core.imputils import lower_builtin
from numba.core.sigutils import normalize_signature
from numba.extending import overload, type_callable
from numba.np import arrayobj

from thresher.engine.compile import machine
from thresher.engine.compile.jit import DECLARED, InPlace
from thresher.engine.compile.machine import ORDERS
from thresher.engine.compile.notices import compiling, work_of
from thresher.engine.protocol import KINDS, PAIR, PROTOCOL, PartError

types: Any = numba_types  # has no type hints
_REFUSED = NumbaError, UnsupportedBytecodeError
_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)|at (?P<at>\S+\.py) \((?P<number>\d+)\)')
_FUNCTION = re.compile(r"Function\(<(?:built-in )?function (\w+)(?: at 0x\w+)?>\)")
_OTHERS = re.compile(r"[/\\](?:numba|thresher)[/\\]")
"""files that users have not written"""
_WRAPPED = re.compile(
    r"Failed in \w+ mode pipeline|During: |raised from |There are \d+ candidate|\s*- Of which "
)


def check_returned(function: Callable[..., Any], cls: type, returned: object) -> None:
    """`PartError` if the compiled method of a part returns another type than its verb."""
    verb = PROTOCOL[KINDS[cls]].get(function.__name__)
    what = "" if verb is None else verb.returns
    each = returned if what == PAIR and isinstance(returned, types.BaseTuple) else [returned]
    fits = len(each) == 1 + (what == PAIR) and all(
        isinstance(one, types.Number | types.Boolean) for one in each
    )
    if what and not fits:
        code = function.__code__
        raise PartError(
            f"{_begin(function, cls)} ({code.co_filename}, line {code.co_firstlineno}) must return {what},"
            f" from every branch, not {_type_name(returned)}"
        )


def _type_name(returned: object) -> str:
    """A type in the words of Python.

    >>> from numba import types
    >>> _type_name(types.none), _type_name(types.Optional(types.UniTuple(types.float64, 2)))
    ('None', '(float64, float64) or None')
    """
    if isinstance(returned, types.Optional):
        return f"{_type_name(returned.type)} or None"
    if isinstance(returned, types.BaseTuple):
        return f"({', '.join(map(_type_name, returned))})"
    return {"none": "None", "unicode_type": "text"}.get(str(returned), str(returned))


def _begin(function: Callable[..., object], cls: type) -> str:
    return f"{KINDS[cls]} {cls.__qualname__.rpartition('.')[2]}: {function.__name__}"


def _error_of(method: Callable[..., Any], cls: type, text: str) -> PartError:
    """What Numba says of a method of a part that it cannot compile."""
    code = method.__code__
    places = [(m["file"] or m["at"], int(m["line"] or m["number"])) for m in _PLACE.finditer(text)]
    own = code.co_filename, code.co_firstlineno
    places = [] if "unify return type" in text else places  # of all its branches, in any order
    file, line = next((place for place in places if not _OTHERS.search(place[0])), own)
    if file.rpartition("/")[2] == code.co_filename.rpartition("/")[2]:
        file = code.co_filename  # Numba's is relative
    return PartError(f"{_begin(method, cls)} ({file}, line {line}) cannot be compiled: {_reason(text)}")


def _reason(text: str) -> str:
    r"""Numba's reason, the innermost, in one line.

    >>> _reason("Failed in nopython mode pipeline (step: x)\nUnknown attribute 'f' of type A\n\nFile ...")
    "Unknown attribute 'f' of type A"
    >>> _reason("No implementation of function add found for signature:\n \n >>> add(float64, none)\n")
    'No implementation of function add found for signature: add(float64, none)'
    """
    lines = [_FUNCTION.sub(r"\1", line).strip().removeprefix("- ") for line in text.splitlines()]
    said = [line for line in lines if line and not _WRAPPED.match(line)]
    reason, *more = said or [text.strip()]
    while reason.endswith(":") and more:
        reason += f" {more.pop(0).removeprefix('>>> ')}"
    return f"{reason}: decorate it with numba.njit" if "<class 'function'>" in reason else reason


_APART = set[Any]()
"""Functions that LLVM must not inline"""


@dataclass(eq=False)
class _NoAddresses:
    """A code generator for functions without an address, which need no environment."""

    _generator: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, env: object) -> None:
        """Do nothing."""


class _Kept(codegen.JITCodeLibrary):
    """A library that Numba never loads: its own functions of memory have the same names."""

    def finalize(self) -> None:
        """Link all that is called, directly or not, each once; optimise the whole."""
        called, others, waiting = dict[Any, None](), dict[Any, None](), self._linking_libraries[::-1]
        while waiting:
            library = waiting.pop()
            if not isinstance(library, _Linked):
                others[library] = None
            elif library not in called:
                called[library] = None
                waiting += library._linking_libraries[::-1]
        self._linking_libraries = [*called, *others]
        super().finalize()

    def _optimize_final_module(self) -> None:
        for one in self._final_module.functions:
            if not one.is_declaration and one.linkage.name == "external" and one.name != _ENTRY:
                one.linkage = "linkonce_odr"
        super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _Linked(_Kept):
    """A library to link into others, without optimisation or machine code of its own."""

    @property
    def codegen(self) -> Any:
        return _NoAddresses(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def finalize(self) -> None:
        """Link nothing: what Python calls links all."""
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        return self._final_module

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self.codegen._data_layout


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(typed_passes.NativeLowering):
    """Lower typed statements to LLVM, into a `_Linked` library."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        if not state.flags.nrt:  # arrays that it creates would be freed twice, or never
            made = [state.return_type]
            for expression, signature in state.calltypes.items():
                if getattr(expression, "op", "") == "call":
                    called = getattr(state.typemap[expression.func.name], "typing_key", None)
                    made += [signature.return_type] * inspect.isfunction(called)
            for one in made:
                if state.targetctx.data_model_manager[one].contains_nrt_meminfo():
                    name = state.func_id.func_qualname
                    raise TypingError(
                        f"{name} makes or returns {one}, but does not count references: compute with numbers"
                        " only, or make it a helper"
                    )
        state.library = _Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        done: bool = super().run_pass(state)
        if state.func_id.func in _APART:
            function = state.library._final_module.get_function(state.cr.fndesc.mangled_name)
            function.add_function_attribute("noinline")
        return done


class LinkedCompiler(compiler.CompilerBase):
    """Compiles functions for `_Kept` libraries: only these have machine code."""

    def compile_extra(self, function: Any) -> Any:
        """The function; `PartError` if it is a method of a part and cannot be compiled, or what it calls."""
        kinds = self.state.args
        cls: Any = getattr(kinds[0], "instance_class", None) if kinds else None
        own: Any = getattr(cls, function.__name__, None)
        if cls not in KINDS or function is not own:
            return super().compile_extra(function)
        try:
            compiled = super().compile_extra(function)
        except _REFUSED as error:
            raise _error_of(function, cls, str(error)) from None
        check_returned(function, cls, compiled.signature.return_type)
        return compiled

    def define_pipelines(self) -> list[Any]:
        """Numba's pipeline with another last step."""
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        for place, (one, words) in enumerate(passes.passes):
            if one is typed_passes.NativeLowering:
                passes.passes[place] = (_LinkedLowering, words)
        passes.finalize()
        return [passes]


_ALL: Any = {"error_model": "numpy", "_nrt": True, "no_cfunc_wrapper": True}
_CALLED: Any = {**_ALL, "pipeline_class": LinkedCompiler}
_BORROWING: Any = {**_CALLED, "_nrt": False}
OPTIONS: dict[str, Any] = {
    "scalar": {**_BORROWING, "forceinline": True},
    "borrowing": _BORROWING,
    "apart": {**_BORROWING, "forceinline": False},
    "helper": _CALLED,
    "inlined": {**_CALLED, "forceinline": True},
}
"""How functions that kernels call are compiled"""
if "NUMBA_OPT" not in os.environ:
    # At lower levels, reference counts are removed only after vectorisation, and so prevent it.
    numba.config.OPT = type(numba.config.OPT)("max")


def called(subject: Any, way: str, method: Callable[..., Any]) -> None:
    """See `jit.declare`."""
    if way == "apart":
        _APART.add(subject)
    overload(subject, jit_options=OPTIONS[way], strict=False)(method)


def emits(what: InPlace, kind: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator for the function that emits the body of `what`: ``(context, builder, signature, values)``.

    `kind` maps the types of its parameters to that of its result, or to a signature. Numba does not treat it
    as a function, because it would count references for functions that create arrays.
    """
    typing: Any = type_callable(what)
    typing(lambda context: kind)

    def decorate(emit: Callable[..., object]) -> Callable[..., Any]:
        lowered: Any = lower_builtin(what, types.VarArg(types.Any))
        lowered(emit)
        return emit

    return decorate


def emitted(what: InPlace, signature: str) -> None:
    """See `jit.emitted`."""
    takes, result = normalize_signature(signature)

    def kind(*args: Any) -> Any:
        return result(*takes)

    parameters = [*inspect.signature(what.function).parameters.values()][1:]
    kind.__signature__ = inspect.Signature(parameters)

    @emits(what, kind)
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = what.function(builder, *values)
        if isinstance(found, list):
            return context.make_tuple(builder, signature.return_type, found)
        return context.get_dummy_value() if found is None else found


# Entries: functions that take their arguments as a tuple of Python objects

_WORD: Any = ir.IntType(64)
_POINTER: Any = ir.IntType(8).as_pointer()
_HALF: Any = ir.IntType(32)
_CLASS, _SIZE, _VALUE, _ITEMS = 8, 16, 16, tuple.__basicsize__
"""Offsets in CPython's objects: the class, the length of a tuple, a number, the items of a tuple"""
_DATA, _AXES, _SHAPE, _STRIDES, _DTYPE, _FLAGS = 16, 24, 32, 40, 56, 64
"""Offsets in NumPy's arrays, fixed by its binary interface"""
_ENTRY = "thresher_entry"
_HEADER = 80
"""Bytes of memory that counts references before its items: 5 words, and room to align the items at 32"""


class _Entry:
    """Emits a function that takes a tuple of Python objects, for a compiled one.

    It compares what the objects are with the words of `machine.Code`, in the same order, before it reads
    them; if one differs, it returns NotImplemented. Compiled code runs without the interpreter's lock.
    """

    def __init__(self, context: Any, library: Any, fndesc: Any, args: Any) -> None:
        if context.data_model_manager[fndesc.restype].contains_nrt_meminfo():
            raise TypingError(f"a kernel cannot return {fndesc.restype}")
        module = context.create_module("entry")
        kind = context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes)
        callee = ir.Function(module, kind, fndesc.llvm_func_name)
        entry = ir.Function(module, ir.FunctionType(_POINTER, [_POINTER, _WORD.as_pointer()]), _ENTRY)
        self.context, self.words, self.checked = context, entry.args[1], 1  # after two objects
        self.builder = builder = ir.IRBuilder(entry.append_basic_block("entry"))
        self.other = entry.append_basic_block("other")
        self.api = api = pythonapi.PythonAPI(context, builder)
        values = self.items(fndesc.argtypes, args, entry.args[0])
        unlocked = api.save_thread()
        status, result = context.call_conv.call_function(
            builder, callee, fndesc.restype, fndesc.argtypes, values
        )
        api.restore_thread(unlocked)
        with builder.if_then(status.is_error, likely=False):
            data, size = (builder.extract_value(builder.load(status.excinfoptr), k) for k in (0, 1))
            said = api.bytes_from_string_and_size(data, builder.sext(size, api.py_ssize_t))
            api.err_set_object(self.at(self.words, 8, _POINTER), said)
            builder.ret(cgutils.get_null_value(_POINTER))
        builder.ret(api.from_native_value(fndesc.restype, result, None))
        builder.position_at_end(self.other)
        other = self.at(self.words, 0, _POINTER)
        api.incref(other)
        builder.ret(other)
        _emit_memory(module)
        library.add_ir_module(module)

    def at(self, address: Any, offset: int, kind: Any) -> Any:
        """What is stored there."""
        address = self.builder.bitcast(address, _POINTER)
        place = self.builder.gep(address, [_WORD(offset)])
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()))

    def check(self, found: Any) -> None:
        """Go on only if a word is the next one that is expected."""
        self.checked += 1
        same = self.builder.icmp_unsigned("==", found, self.at(self.words, 8 * self.checked, _WORD))
        following = self.builder.append_basic_block()
        self.builder.cbranch(same, following, self.other)
        self.builder.position_at_end(following)

    def items(self, kinds: Any, given: Any, address: Any) -> list[Any]:
        """The values of a tuple."""
        self.check(self.at(address, _SIZE, _WORD))
        places = (self.at(address, _ITEMS + 8 * k, _POINTER) for k in range(len(given)))
        return [self.value(*one) for one in zip(kinds, given, places, strict=True)]

    def value(self, kind: Any, given: Any, address: Any) -> Any:
        """The value of this Numba type, read from a Python object like `given`."""
        self.check(self.at(address, _CLASS, _WORD))
        context, builder = self.context, self.builder
        if isinstance(kind, types.BaseTuple):
            return context.make_tuple(builder, kind, self.items(kind.types, given, address))
        if isinstance(kind, types.Array):
            self.check(self.at(address, _DTYPE, _WORD))
            axes, flags = (builder.zext(self.at(address, one, _HALF), _WORD) for one in (_AXES, _FLAGS))
            self.check(axes)
            self.check(builder.and_(flags, _WORD(ORDERS[kind.layout == "C"])))
            made, item = context.make_array(kind)(context, builder), context.get_data_type(kind.dtype)
            shape, strides = (self.at(address, one, _WORD.as_pointer()) for one in (_SHAPE, _STRIDES))
            arrayobj.populate_array(
                made,
                data=self.at(address, _DATA, item.as_pointer()),
                shape=[self.at(shape, 8 * axis, _WORD) for axis in range(kind.ndim)],
                strides=[self.at(strides, 8 * axis, _WORD) for axis in range(kind.ndim)],
                itemsize=_WORD(context.get_abi_sizeof(item)),
                meminfo=None,
            )
            return made._getvalue()
        if isinstance(kind, types.Boolean):
            return builder.icmp_signed("!=", self.api.object_istrue(address), _HALF(0))
        if isinstance(given, int):
            if not kind.signed:
                raise OverflowError(f"{given} is too large for 64 bits with a sign")
            found, failed = self.api.long_as_longlong(address), self.api.c_api_error()
            with builder.if_then(failed, likely=False):
                builder.ret(cgutils.get_null_value(_POINTER))  # OverflowError
            return found
        if isinstance(kind, types.Number):
            return self.at(address, _VALUE, context.get_data_type(kind))
        if isinstance(kind, types.NoneType):
            return context.get_dummy_value()
        raise NotImplementedError(f"a kernel cannot take {kind}")


def _emit_memory(module: object) -> None:
    """What Numba's own library does to allocate and free arrays: a count of references, then the items."""

    def function(name: str, result: Any, *kinds: Any) -> Any:
        return ir.Function(module, ir.FunctionType(result, kinds), name)

    malloc, free = function("malloc", _POINTER, _WORD), function("free", ir.VoidType(), _POINTER)
    made = function("NRT_MemInfo_alloc_aligned", _POINTER, _WORD, _HALF)
    made.linkage = "weak_odr"  # kept until it is known what is called
    builder = ir.IRBuilder(made.append_basic_block())
    memory = builder.call(malloc, [builder.add(made.args[0], _WORD(_HEADER))])
    with builder.if_then(cgutils.is_null(builder, memory), likely=False):
        builder.ret(memory)  # the caller raises MemoryError
    words = builder.bitcast(memory, _WORD.as_pointer())
    first = builder.add(builder.ptrtoint(memory, _WORD), _WORD(_HEADER))
    data = builder.and_(first, _WORD(-32 & (2**64 - 1)))
    for place, value in enumerate((_WORD(1), _WORD(0), _WORD(0), data, made.args[0])):
        builder.store(value, builder.gep(words, [_WORD(place)]))
    builder.ret(memory)
    for name in ("NRT_MemInfo_call_dtor", "NRT_Free"):
        freed = function(name, ir.VoidType(), _POINTER)
        freed.linkage = "weak_odr"  # kept until it is known what is called
        builder = ir.IRBuilder(freed.append_basic_block())
        builder.call(free, [freed.args[0]])
        builder.ret_void()


def raised_exception(error: RuntimeError) -> BaseException:
    """The exception that compiled code raised: `_Entry` gives its class and arguments as Numba keeps them."""
    cls, args, place = serialize._numba_unpickle(0, *error.args, *error.args)
    known = [one for one in args or () if not isinstance(one, ir.Value)]  # what is computed is not
    found: BaseException = cls(*known)
    if place is not None:
        found.add_note("in {}, {}:{}".format(*place))
    return found


def machine_code(function: Callable[..., object], args: tuple[object, ...]) -> tuple[bytes, bool]:
    """Compile a function for such arguments: what `machine.entry_of` takes, and whether it may be kept.

    Code has addresses of this process if it uses large constant arrays, or functions of other languages.
    """
    import_module("thresher.engine.compile.emitted")
    while DECLARED:
        DECLARED.pop(0)()
    flags: Any = compiler.Flags()
    CPUTargetOptions.parse_as_flags(flags, {"nopython": True, **_ALL})
    flags.no_compile = flags.no_cpython_wrapper = True
    cpu: Any = registry.cpu_target
    kinds = tuple(numba.typeof(one) for one in args)
    work = work_of(f"{function.__module__}.{function.__name__}", args)
    wanted = gc.isenabled()
    gc.disable()  # it would find nothing
    try:
        with compiling(work), global_compiler_lock:
            context, how = cpu.target_context, {"pipeline_class": LinkedCompiler}
            done = compiler.compile_extra(
                cpu.typing_context, context, function, kinds, None, flags, {}, **how
            )
            library = _Kept(context.codegen(), _ENTRY)
            with context.push_code_library(library):  # where casts of a returned constant are linked to
                _Entry(context, library, done.fndesc, args)
            library.add_linking_library(done.library)
            library.finalize()
            module = library._final_module
            needs, entry = list[str](), module.get_function(_ENTRY)
            for k, one in enumerate((*module.functions, *module.global_variables)):
                if one.is_declaration:
                    needs += [] if one.name.startswith("llvm.") else [one.name]
                elif one.name != _ENTRY:  # Numba's names may have addresses, and are those of other code too
                    one.linkage, one.name = "internal", f"_{k}"
            name = entry.name = hashlib.sha256(module.as_bitcode()).hexdigest()
            code = machine.pack(name, needs, library.codegen._tm.emit_object(module))
    finally:
        if wanted:
            gc.enable()
    return code, not library.has_dynamic_globals
