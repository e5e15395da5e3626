"""Code blocks of the docs, and comparison of their output."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(console|python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPEED = re.compile(r"(seconds|seconds compiling|examples per second) +[\d.,]+")
"""what a run says of its own speed; of compiling only where it had to"""

PAGES = ("README", *sorted(str(p.relative_to(ROOT).with_suffix("")) for p in DOCS.rglob("*.md")))


def text_of(page: str) -> str:
    return (ROOT / f"{page}.md").read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    return [found for name, found in BLOCK.findall(text_of(page)) if name == kind]


def session(text: str) -> list[tuple[str, str]]:
    steps: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        elif line.startswith("> ") or steps[-1][0].endswith("\\\n"):
            steps[-1] = (steps[-1][0] + line.removeprefix("> "), "")
        else:
            steps[-1] = (steps[-1][0], steps[-1][1] + line)
    return steps


def printed(wanted: str, found: str) -> bool:
    """Whether `found` matches a page: ``...`` stands for any lines, and speeds may differ."""
    lines = [r"(?:.*\n)*" if line.strip() == "..." else re.escape(line + "\n") for line in timeless(wanted)]
    return re.fullmatch("".join(lines), "".join(line + "\n" for line in timeless(found))) is not None


def timeless(text: str) -> list[str]:
    """The nonblank lines, without speeds."""
    lines, timed = [], False
    for line in filter(str.strip, text.splitlines()):
        columns = line.split()
        if line.startswith(" ") and columns[-1] in ("rows/s", "seconds"):
            timed = True
        elif timed and re.fullmatch(r" +\d.*\d", line):
            line = line[: -len(columns[-1])].rstrip()
        if not SPEED.fullmatch(line):
            lines.append(line)
    return lines
