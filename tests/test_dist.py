"""What is made ready to be published agrees with the project."""

import re
import tomllib
from pathlib import Path

from thresher._version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_names_this_version_and_licence() -> None:
    cited = dict(re.findall(r"^([a-z-]+): (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert (cited["version"], cited["license"]) == (__version__, PROJECT["license"])
    assert PROJECT["version"] == __version__


def test_the_workflows_call_what_there_is_and_try_each_python() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = {path.name: path.read_text() for path in (ROOT / ".github/workflows").iterdir()}
    called = {name: set(re.findall(r"- run: make ([a-z-]+)", text)) for name, text in texts.items()}
    assert called == {"check.yml": {"dist-check"}, "release.yml": {"dist-check"}}
    deep = re.findall(r"target: \[(.+)\]", texts["check.yml"])[0].split(", ")
    assert [one.split()[0] for one in deep] == ["fuzz", "hostile", "mutants"]
    assert {"dist", "dist-check", *(one.split()[0] for one in deep)} <= targets
    assert all("- run: .ci/run" in text for text in texts.values())
    assert "needs: [check, build]" in texts["release.yml"]
    named = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if "Python :: 3." in one]
    for text in texts.values():
        assert re.findall(r'"(3\.\d+)"', re.findall(r"python: \[(.+)\]", text)[0]) == named
