"""Compress several images at once, with few elements of a shared dictionary.

Each image is an output and each pixel an example. The features of a pixel are the values of the dictionary's
elements there: Gaussian bumps and waves. The images are combinations of the same few elements, in different
amounts, plus noise. A mixed norm (``group=l2`` or ``linf``) drops an element for all images or for none;
``single`` decides for each image separately. Every step uses all pixels, at a rate for which the objective
decreases. Each penalty is the strongest with which the error stays within the target. (After Singer,
*Efficient Algorithms for Learning Sparse Models from High Dimensional Data*, MLSS 2012.)
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import Model
from thresher.data import Chunk

BUILD = Path(__file__).parent.parent / "build"
SIDE, IMAGES, TRUE, NOISE = 16, 8, 10, 0.2
WANTED = 0.12
"""target error of a pixel; below that of the noisy images, `NOISE`"""
PASSES, PENALTIES = 20, [round(100 * 0.8**k, 1) for k in range(14)]
GROUPS = ("single", "l2", "linf")
F64 = NDArray[np.float64]


class Scene(NamedTuple):
    """The noisy images to learn from, and how they were generated."""

    atoms: F64
    """(pixels, elements): the dictionary"""
    clean: F64
    """(pixels, images): without noise"""
    noisy: F64
    chosen: NDArray[np.int64]
    """the elements used by the images"""


class Fit(NamedTuple):
    """A model of all images."""

    group: str
    l1: float
    elements: int
    """number used by at least one image"""
    weights: int
    error: float
    """root mean squared, relative to the images without noise"""
    images: F64


def bumps(across: int, width: float) -> F64:
    """Return Gaussian bumps on an `across` × `across` grid, 0 beyond three widths: (pixels, across²)."""
    y, x = np.divmod(np.arange(SIDE * SIDE), SIDE)
    v, u = np.divmod(np.arange(across * across), across)
    centre = SIDE / across
    squares = (x[:, None] - (u + 0.5) * centre) ** 2 + (y[:, None] - (v + 0.5) * centre) ** 2
    return np.where(squares < (3 * width) ** 2, np.exp(-squares / (2 * width**2)), 0.0)


def waves(most: int) -> F64:
    """Return cosines with fewer than `most` half periods in each direction: (pixels, most² - 1)."""
    turn = np.cos(np.pi / SIDE * np.outer(np.arange(SIDE) + 0.5, np.arange(most)))
    return np.asarray(np.kron(turn, turn), np.float64)[:, 1:]


def scene(seed: int = 0) -> Scene:
    """Generate images from the same elements."""
    random = np.random.default_rng(seed)
    atoms = np.hstack([bumps(8, 0.7), waves(8)])
    atoms /= np.sqrt((atoms**2).mean(axis=0))
    chosen = np.sort(random.choice(atoms.shape[1], TRUE, replace=False))
    amounts = random.uniform(0.25, 0.55, (TRUE, IMAGES)) * random.choice([-1, 1], (TRUE, IMAGES))
    clean = atoms[:, chosen] @ amounts
    return Scene(atoms, clean, clean + random.normal(0, NOISE, clean.shape), chosen)


def pixels(of: Scene, seed: int = 0) -> Chunk:
    """Return the pixels in random order, each with its values in all images."""
    order = np.random.default_rng(seed).permutation(len(of.atoms))
    rows, columns = np.nonzero(of.atoms[order])
    starts = np.searchsorted(rows, np.arange(len(order) + 1))
    return Chunk.from_csr(starts, columns, of.atoms[order][rows, columns], of.noisy[order])


def fit(of: Scene, data: Chunk, rate: str, group: str, l1: float) -> Fit:
    """Train `PASSES` steps, each on all pixels."""
    model = Model(
        f"fobos:l1={l1!r},group={group}",
        "squared",
        rate=rate,
        outputs=f"values:{IMAGES}",
        batch=len(data),
        intercept=False,
        store="direct",
    )
    for _ in range(PASSES):
        model.learn(data)
    keys, weights = model.weights()
    images = of.atoms[:, keys.astype(int)] @ weights
    error = float(np.sqrt(((images - of.clean) ** 2).mean()))
    return Fit(group, l1, len(keys), model.nonzero, error, images)


def sparsest(of: Scene, group: str, wanted: float = WANTED) -> Fit:
    """Fit with the strongest penalty whose error is at most `wanted`, or with the weakest."""
    data, rate = pixels(of), f"constant:{0.5 / float(np.linalg.norm(of.atoms, 2)) ** 2!r}"
    for l1 in PENALTIES:
        found = fit(of, data, rate, group, l1)
        if found.error <= wanted:
            break
    return found


def draw(of: Scene, fits: list[Fit], picture: Path) -> None:
    """Draw some images: without noise, with noise, and as each model predicts them."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    shown: list[tuple[str, Any]] = [("image", of.clean), ("with noise", of.noisy)]
    shown += [(f"{found.group}: {found.elements} elements", found.images) for found in fits]
    figure, axes = plt.subplots(3, len(shown), figsize=(2 * len(shown), 6.3), layout="constrained")
    for column, (title, images) in enumerate(shown):
        axes[0, column].set_title(title, fontsize=9)
        for row in range(3):
            image = images[:, row].reshape(SIDE, SIDE)
            axes[row, column].imshow(image, cmap="gray", vmin=of.clean.min(), vmax=of.clean.max())
            axes[row, column].set_axis_off()
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture)


def main() -> None:
    """Print the table and draw the picture."""
    of = scene()
    print(
        f"{IMAGES} images of {SIDE} x {SIDE} pixels, made of the same {TRUE} of {of.atoms.shape[1]} elements"
    )
    print(f"\n{'group':8} {'l1':>8} {'elements':>9} {'weights':>8} {'rmse':>8}")
    fits = [sparsest(of, group) for group in GROUPS]
    for found in fits:
        print(f"{found.group:8} {found.l1:8.1f} {found.elements:9} {found.weights:8} {found.error:8.4f}")
    if importlib.util.find_spec("matplotlib"):
        draw(of, fits, BUILD / "images.svg")
        print("\nimages before and after: build/images.svg")


if __name__ == "__main__":
    main()
