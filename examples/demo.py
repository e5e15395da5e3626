"""Train on a sample of RCV1, show the weights, and plot the learning curve. Run by ``make demo``.

All work is done by the command ``thresher``; this file only calls it.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent / "build"
DATA = HERE / "data" / "rcv1_train2000.dat.gz"


def thresher(*arguments: str) -> None:
    """Print the command, then run it."""
    shown = " ".join(a.removeprefix(f"{HERE.parent}/") for a in arguments)
    print(f"\n$ thresher {shown}", flush=True)
    subprocess.run([sys.executable, "-m", "thresher", *arguments], check=True)


def main() -> None:
    """Run the demo."""
    BUILD.mkdir(exist_ok=True)
    model, picture = BUILD / "demo.model", BUILD / "demo.svg"
    print(
        f"{DATA.name}: 2,000 newswire stories from RCV1; is the topic CCAT? (source: examples/data/README.md)"
    )
    thresher(
        *("train", str(DATA), "--model", str(model)),
        *("--holdout", "every-5th", "--report-every", "400", "--plot", str(picture)),
    )
    thresher("weights", str(model), "--top", "10")
    print(f"\nprogressive loss and sparsity over the stream: {picture.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
