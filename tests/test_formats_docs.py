"""Commands on the pages print what the pages show, and their Python blocks run."""

import doctest
import os
import re
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.pages import DOCS, PAGES, ROOT, blocks, printed, session, text_of
from tests.plain import compiled_if
from tests.served import Shell, program, served
from thresher.data.formats.listing import FORMATS, LINES
from thresher.parts.registry import REGISTRY

FOLDER = DOCS / "formats"
ELSEWHERE = {
    "docs/formats/databases": "tests/test_databases.py",
    "docs/formats/memory": "tests/test_docs.py",
    "docs/from-river": "tests/test_river.py",
    "docs/python": "tests/test_docs.py",
    "docs/serving": "tests/serving/test_serving_docs.py",
    "docs/sklearn": "tests/estimators/test_examples.py",
}
FEW_ROWS = re.compile("thresher train (weather.csv|mail.csv|two.svm|.*zoo.model --rule pa-i) ")
"""Plain Python learns these rows in less time than their loop is compiled, which no other page needs."""
TESTED = [
    page
    for page in PAGES
    if page not in ELSEWHERE
    and (page == "docs/rules/README" or not page.startswith("docs/rules/"))  # tested in tests/test_docs.py
    and (blocks(page, "console") or blocks(page, "python"))
]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_page(name: str) -> None:
    form, text = FORMATS[name], (FOLDER / "README.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if re.match(rf"\|[^:|]*`{name}`", line))
    assert all(f"`{ending}`" in row for ending in form.endings)
    (page,) = re.findall(r"\]\((\w+\.md)\)", row)
    assert f"docs/formats/{Path(page).stem}" in TESTED, "a page has a set that is read, in a block of console"
    assert page == f"{name}.md" or name not in LINES


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with served() as shell:
        program(shell.folder / "python")
        yield shell


@pytest.mark.parametrize("page", TESTED)
def test_blocks_are_right(page: str, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print what the page shows; then Python blocks run in the same folder."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    known = {"PATH": f"{shell.folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    for command, wanted in (step for block in blocks(page, "console") for step in session(block)):
        with compiled_if(not FEW_ROWS.match(command)), own_parts_forgotten():
            done = shell.run(command, cwd=tmp_path, env=os.environ | known)
        said = done.stderr.splitlines(keepends=True)
        heard = "".join(x for x in said if not x.removeprefix("thresher: ").startswith("compiling"))
        found = (done.stdout + heard, heard + done.stdout)
        assert any(printed(wanted, text) for text in found), f"{command}{found[1]}"
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with own_parts_forgotten():
        for block in blocks(page, "python"):
            names = after(block, names)
    for made in tmp_path.glob("*/*.svg"):
        shown = DOCS / "pictures" / made.name
        if f"](pictures/{made.name})" in text_of(page):
            assert made.read_text() == shown.read_text(), "the picture is not that of the page's commands"


@contextmanager
def own_parts_forgotten() -> Iterator[None]:
    """What a command or a page defines is not known to the next, as in processes of their own."""
    with pytest.MonkeyPatch.context() as here:
        for kind, known in REGISTRY.items():
            here.setitem(REGISTRY, kind, dict(known))
        yield


def after(block: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a block and return its names. A block with prompts is a doctest; others must only run."""
    if ">>>" not in block:
        Path("block.py").write_text(block)
        return runpy.run_path("block.py", names)
    test = doctest.DocTestParser().get_doctest(block, names, "a block", None, 0)
    assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
    return test.globs
