"""Train on a sample of RCV1, show what the model learned, draw how it learned. Run by ``make demo``.

Everything is done by the command ``thresher``; this file only calls it and draws the table it wrote.
"""

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
BUILD = HERE.parent / "build"
DATA = HERE / "data" / "rcv1_train2000.dat.gz"
LOSS, SINCE, ALIVE, SEEN = "#1b6ca8", "#9cc3dd", "#c0562b", "#8a8a8a"


def thresher(*arguments: str) -> None:
    """Run the command as a user would, showing it first."""
    shown = " ".join(a.removeprefix(f"{HERE.parent}/") for a in arguments)
    print(f"\n$ thresher {shown}", flush=True)
    subprocess.run([sys.executable, "-m", "thresher", *arguments], check=True)


def draw(curve: Path, picture: Path) -> None:
    """Progressive loss, and non-zero weights beside features seen, over the stream."""
    table = np.genfromtxt(curve, names=True, delimiter="\t")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(table["examples"], table["loss_since"], color=SINCE, label="since the line before")
    left.plot(table["examples"], table["average"], color=LOSS, linewidth=2, label="average")
    left.set(title="Progressive logistic loss", xlabel="examples", ylabel="loss", ylim=(0, None))
    left.legend(frameon=False)
    right.plot(table["examples"], table["features_seen"], color=SEEN, label="features seen")
    right.plot(table["examples"], table["nonzero"], color=ALIVE, linewidth=2, label="non-zero weights")
    right.set(title="Sparsity", xlabel="examples", ylabel="features", ylim=(0, None))
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture)


def main() -> None:
    """The whole demonstration."""
    BUILD.mkdir(exist_ok=True)
    model, curve, picture = BUILD / "demo.model", BUILD / "demo.tsv", BUILD / "demo.svg"
    print(
        f"{DATA.name}: 2,000 newswire stories of RCV1, is the topic CCAT? (source: examples/data/README.md)"
    )
    thresher(
        *("train", str(DATA), "--model", str(model)),
        *("--holdout", "every-5th", "--report-every", "100", "--curve", str(curve)),
    )
    thresher("weights", str(model), "--top", "10")
    draw(curve, picture)
    print(f"\nprogressive loss and sparsity over the stream: {picture.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
