"""Messages while compiling: what is compiled and how long it takes."""

import importlib
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.telling import notices_to
from thresher.engine.compile import codecache, notices
from thresher.engine.compile.jit import Kernel, kernel
from thresher.engine.compile.notices import LEARNING, WORKS, compiling, when_compiling, work_of

SVMLIGHT = "compiling the reader of svmlight: about 5 s"


@pytest.fixture
def said() -> Iterator[list[str]]:
    found: list[str] = []
    with notices_to(found.append):
        yield found


def grammar_of(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"thresher.data.formats.lines.{module}"), name)(False)


def test_all_is_told_and_the_first_line_says_that_it_is_for_good(said: list[str]) -> None:
    reader = work_of(
        "thresher.data.formats.lines.line_rows.parse_lines", [grammar_of("svmlight", "Svmlight")]
    )
    assert reader is not None
    for work in (reader, None, LEARNING, reader):
        with compiling(work):
            pass
    assert said == [
        f"{SVMLIGHT}, once for these options",
        f"compiling the learning loop: about {LEARNING.seconds} s",
        "compiling the reader of svmlight again, for other options: about 5 s",
    ]


@pytest.mark.parametrize("function", WORKS)
def test_what_is_told_of_is_a_kernel(function: str) -> None:
    module, _, name = function.rpartition(".")
    assert isinstance(getattr(importlib.import_module(module), name), Kernel)
    assert WORKS[function].seconds > 0


def test_compiling_a_kernel_tells(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKS, f"{__name__}.plus", notices.Work("test", 1))

    def plus(a, b):  # type: ignore[no-untyped-def]
        return a + b

    compiled = kernel(plus)
    monkeypatch.setattr(codecache, "usable_folder", lambda: None)  # or it would be found compiled
    before = notices.seconds_compiling()
    assert (compiled(1, 2), compiled(1.0, 2.0)) == (3, 3.0)
    assert said == [
        "compiling the test: about 1 s, once for these options",
        "compiling the test again, for other options: about 1 s",
    ]
    assert notices.seconds_compiling() > before


def test_python_is_told_by_the_logger_or_nobody(caplog: pytest.LogCaptureFixture, said: list[str]) -> None:
    with notices_to(notices.log), caplog.at_level(logging.WARNING, "thresher"), compiling(LEARNING):
        pass
    assert [record.name for record in caplog.records] == ["thresher"]
    assert caplog.messages == [
        f"compiling the learning loop: about {LEARNING.seconds} s, once for these options"
    ]
    when_compiling(None)
    with compiling(LEARNING):
        pass
    assert said == []
