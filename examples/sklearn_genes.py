"""Few patients, many genes: which of 20,000 columns tell two groups apart?

Run it: ``python examples/sklearn_genes.py``.

The data are simulated: 120 samples, correlated genes in modules of 50, and 10 genes that differ between the
groups. A grid search finds the penalty by cross-validation, for a model that predicts well; stability
selection finds genes that would be selected from other samples too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import thresher
from thresher.sklearn import SparseOnlineClassifier

SAMPLES, GENES, MODULE, TRUE = 120, 20_000, 50, 10
SHIFT = 1.5
"""difference between the groups, in standard deviations, of a gene that matters"""


def simulate(seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return expression levels ``(samples, genes)``, groups, and the genes that differ."""
    rng = np.random.default_rng(seed)
    modules = np.repeat(rng.normal(size=(SAMPLES, GENES // MODULE)), MODULE, axis=1)
    levels = 0.6 * modules + 0.8 * rng.normal(size=(SAMPLES, GENES))
    groups = np.arange(SAMPLES) % 2
    differing = np.sort(rng.choice(GENES // MODULE, TRUE, replace=False) * MODULE)
    levels[:, differing] += SHIFT * (groups[:, np.newaxis] - 0.5)
    return np.exp(levels), np.where(groups, "ill", "well"), differing


def search_penalty(levels: NDArray[Any], groups: NDArray[Any]) -> Any:
    """Search for the best penalty, on scaled logarithms."""
    model = make_pipeline(
        StandardScaler(), SparseOnlineClassifier("ftrl:alpha=0.1", passes=10, random_state=0)
    )
    grid = {"sparseonlineclassifier__l1": [5.0, 10.0, 20.0, 40.0]}
    return GridSearchCV(model, grid, cv=4).fit(np.log(levels), groups)


def select_genes(levels: NDArray[Any], groups: NDArray[Any], halves: int = 32) -> thresher.Selection:
    """The genes that live in most halves of the samples; at most one of them is expected to be false."""
    scaled = StandardScaler().fit_transform(np.log(levels))
    return thresher.select(scaled, groups == "well", bags=halves, false=1.0)


def main() -> None:
    levels, groups, differing = simulate()
    search = search_penalty(levels, groups)
    genes = len(search.best_estimator_[-1].feature_keys_)
    print(
        f"{SAMPLES} samples, {GENES:,} genes; best l1 {search.best_params_['sparseonlineclassifier__l1']:g}"
    )
    print(f"cross-validated accuracy {search.best_score_:.3f} with {genes} genes")
    found = select_genes(levels, groups)
    stable = found.keys[found.kept]
    right = np.isin(stable, differing).sum()
    print(f"of the {len(stable)} genes selected in most halves, {right} are among the {TRUE} that differ")
    shares = ", ".join(
        f"{gene} {share:.2f}" for gene, share in zip(stable, found.share[found.kept], strict=True)
    )
    print("gene and share of the halves in which it is selected:", shares)


if __name__ == "__main__":
    main()
