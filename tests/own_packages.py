"""Packages with parts, installed offline: files on the module path, and the metadata that pip writes."""

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

from thresher.parts.origins import ENTRY_POINTS

TEMPLATE = Path(__file__).parent.parent / "examples" / "own_package"
RULE = """
from typing import NamedTuple
from thresher import part

@part("rule")
class {name}(NamedTuple):
    eta: float = 0.1
    SLOTS = ("w",)

    def weight(self, S, j, now):
        return S[j, 0]

    def step(self, S, j, w, x, slope, now):
        S[j, 0] = w - {factor} * self.eta * slope * x
"""
LOSS = """
from typing import NamedTuple
from thresher import part

@part("loss")
class {name}(NamedTuple):
    scale: float = 1.0

    def value_slope(self, margin, y):
        return self.scale * (margin - y) ** 2 / 2, self.scale * (margin - y)
"""
RATE = """
from typing import NamedTuple
from thresher import part

@part("rate")
class MyRate(NamedTuple):
    eta0: float = 0.1

    def at(self, t):
        return self.eta0 / (1.0 + 0.01 * t)
"""


def rule(name: str, factor: float = 1.0) -> str:
    """The source of a rule."""
    return RULE.format(name=name, factor=factor)


def install(site: Path, name: str, version: str, points: Mapping[str, str], source: str = "") -> None:
    site.mkdir(exist_ok=True)
    if source:
        (site / f"{name.replace('-', '_')}.py").write_text(source)
    for old in site.glob(f"{name.replace('-', '_')}-*.dist-info"):
        shutil.rmtree(old)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"[{ENTRY_POINTS}]", *(f"{point} = {where}" for point, where in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def install_template(site: Path, version: str | None = None) -> None:
    """The package in `examples/own_package`."""
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][ENTRY_POINTS]
    install(site, project["name"], version or project["version"], points)
    shutil.copytree(TEMPLATE / "src" / "own_package", site / "own_package", dirs_exist_ok=True)
