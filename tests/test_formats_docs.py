"""The commands on the pages of formats and features print what the pages say."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.served import Shell, program, served
from thresher.data.formats.listing import FORMATS, LINES

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "formats"
ELSEWHERE = ("databases",)  # tests/test_databases.py
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = (
    "README",
    *(
        f"docs/formats/{page.stem}"
        for page in sorted(FOLDER.glob("*.md"))
        if page.stem not in ELSEWHERE and BLOCK.search(page.read_text(encoding="utf-8"))
    ),
    *(
        f"docs/{name}"
        for name in (
            "features",
            "interactions",
            "from-vw",
            "path",
            "cv",
            "tune",
            "default",
            "evaluate",
            "reading",
        )
    ),
)


def session(text: str) -> list[tuple[str, str]]:
    """Commands and what they print."""
    steps: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        elif line.startswith("> "):
            steps[-1] = (steps[-1][0] + line[2:], "")
        else:
            steps[-1] = (steps[-1][0], steps[-1][1] + line)
    return steps


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_page(name: str) -> None:
    form, text = FORMATS[name], (FOLDER / "README.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if re.match(rf"\|[^:|]*`{name}`", line))
    assert all(f"`{ending}`" in row for ending in form.endings)
    (page,) = re.findall(r"\]\((\w+\.md)\)", row)
    assert f"docs/formats/{Path(page).stem}" in PAGES, "a page has a set that is read, in a block of console"
    assert page == f"{name}.md" or name not in LINES


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """One that has ``thresher`` and this ``python``."""
    with served() as shell:
        program(shell.folder / "python")
        yield shell


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_print_what_it_says(page: str, tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    known = {"PATH": f"{shell.folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    blocks = BLOCK.findall((ROOT / f"{page}.md").read_text(encoding="utf-8"))
    steps = [step for block in blocks for step in session(block)]
    assert len(steps) > 1
    for command, wanted in steps:
        done = shell.run(command, cwd=tmp_path, env=os.environ | known)
        said = done.stderr.splitlines(keepends=True)
        heard = [line for line in said if not line.removeprefix("thresher: ").startswith("compiling")]
        assert done.stdout + "".join(heard) == wanted, command
