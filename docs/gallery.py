"""Draw what each family of rules does to one weight: ``python docs/gallery.py FOLDER``.

The rules run as plain Python, so nothing has to be compiled. Each picture is drawn twice, for a light and
for a dark page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from thresher import Chunk, Model
from thresher.engine.compile.jit import Kernel

EXAMPLES, USEFUL, COLUMNS = 400, 200, 6
"""The weight drawn is that of column 0, which tells the label for the first `USEFUL` examples only."""


class Line(NamedTuple):
    """One rule in a picture."""

    rule: str
    rate: str | None = None
    loss: str = "logistic"


SLOW = "inverse-sqrt:1"
FAMILIES: dict[str, tuple[Line, ...]] = {
    "none": (Line("sgd", SLOW), Line("normalized"), Line("coin")),
    "shrinking": (
        Line("sgd", SLOW),
        Line("truncated-gradient:gravity=0.1,every=40", SLOW),
        Line("fobos:l1=0.1", SLOW),
        Line("cumulative:l1=0.1", SLOW),
    ),
    "cutting": (
        Line("sgd", SLOW),
        Line("rounding:theta=0.6,every=40", SLOW),
        Line("clipped-subgradient:l1=0.1", SLOW),
    ),
    "averaging": (
        Line("rda:l1=0.05,gamma=1"),
        Line("ftrl:alpha=0.5,l1=5"),
        Line("adagrad-rda:eta=0.5,l1=0.05"),
        Line("adagrad-fobos:eta=0.5,l1=0.05"),
    ),
    "default": (Line("ft-ftrl"), Line("ft-ftrl:l1=2"), Line("ft-ftrl:l1=3")),
    "ball": (
        Line("sgd", SLOW),
        Line("l1-ball:radius=1", SLOW),
        Line("l2-ball:radius=1", SLOW),
        Line("eg:norm=3,features=6", "constant:0.1"),
    ),
    "margin": (
        Line("perceptron", loss="perceptron"),
        Line("averaged-perceptron", loss="perceptron"),
        Line("pa-i:C=0.3", loss="hinge"),
        Line("arow:r=1", loss="hinge"),
        Line("pegasos:l2=0.02", loss="hinge"),
    ),
}
LIGHT = ("#3b4252", "#d5d9e0", ("#0063a6", "#b3470b", "#3b7a1e", "#8b3fa8", "#8a6d00"))
DARK = ("#d5d9e0", "#3b4252", ("#6cb6ff", "#f0a05a", "#7fce5f", "#d59bf0", "#e0c64a"))
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def stream() -> list[Chunk]:
    """Examples, one in each chunk: sparse; column 0 is useful for a time, column 1 always."""
    draw = np.random.default_rng(7)
    found = []
    for t in range(EXAMPLES):
        y = draw.choice([-1.0, 1.0])
        x = np.where(draw.random(COLUMNS) < 0.5, draw.choice([-1.0, 1.0], COLUMNS), 0.0)
        if t < USEFUL:
            x[0] = abs(x[0]) * y * draw.choice([1.0, 1.0, 1.0, 1.0, -1.0])
        x[1] = abs(x[1]) * y * draw.choice([1.0, 1.0, -1.0])
        (columns,) = np.nonzero(x)
        ends = np.array([0, len(columns)])
        found.append(Chunk.from_csr(ends, columns, x[columns], np.array([y])))
    return found


def followed(line: Line, chunks: list[Chunk]) -> list[float]:
    """The weight of column 0 after each example."""
    model, weights = Model(line.rule, line.loss, rate=line.rate), []
    for chunk in chunks:
        model.learn(chunk)
        weights.append({int(k): float(w) for k, w in zip(*model.weights(), strict=True)}.get(0, 0.0))
    return weights


def draw(lines: dict[str, list[float]], colours: Any, path: Path) -> None:
    """One picture."""
    ink, grid, palette = colours
    style = {
        "svg.hashsalt": path.name,
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 11,
        **dict.fromkeys(
            ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), ink
        ),
    }
    with mpl.rc_context(style):
        figure, axes = plt.subplots(figsize=(5.8, 3.3), layout="constrained")
        axes.axvspan(0, USEFUL, color=grid, alpha=0.35, lw=0)
        axes.axhline(0, color=ink, lw=0.8)
        for number, (name, weights) in enumerate(lines.items()):
            axes.plot(weights, label=name, color=palette[number], ls=STYLES[number], lw=1.8)
        axes.set(xlabel="example", ylabel="weight", xlim=(0, EXAMPLES))
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def main(folder: Path) -> None:
    """All pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    chunks = stream()
    known: dict[Line, list[float]] = {}
    for family, lines in FAMILIES.items():
        for line in lines:
            if line not in known:
                known[line] = followed(line, chunks)
        shown = {line.rule: known[line] for line in lines}
        draw(shown, LIGHT, folder / f"{family}-light.svg")
        draw(shown, DARK, folder / f"{family}-dark.svg")


if __name__ == "__main__":
    setattr(Kernel, "for_parts", lambda self, *parts: self.function)  # noqa: B010 - plain Python
    main(Path(sys.argv[1]))
