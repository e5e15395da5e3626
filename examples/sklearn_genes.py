"""Few patients, many genes: which of 20,000 columns tell two groups apart?

Run it: ``python examples/sklearn_genes.py``.

The data are simulated: 120 samples, correlated genes in modules of 50, and 10 genes that differ between the
groups. A grid search finds the penalty by cross-validation; refitting on random halves of the samples then
shows which genes are selected reliably (Meinshausen and Buehlmann, Stability Selection, 2010).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


def count_selections(
    search: Any, levels: NDArray[Any], groups: NDArray[Any], draws: int = 20
) -> NDArray[Any]:
    """Count in how many of `draws` random halves of the samples each gene has a weight."""
    counts = np.zeros(levels.shape[1], int)
    halves = StratifiedShuffleSplit(draws, train_size=0.5, random_state=0)
    for half, _ in halves.split(levels, groups):
        fitted = search.best_estimator_.fit(np.log(levels[half]), groups[half])
        counts[fitted[-1].feature_keys_] += 1
    return counts


def main() -> None:
    levels, groups, differing = simulate()
    search = search_penalty(levels, groups)
    genes = len(search.best_estimator_[-1].feature_keys_)
    print(
        f"{SAMPLES} samples, {GENES:,} genes; best l1 {search.best_params_['sparseonlineclassifier__l1']:g}"
    )
    print(f"cross-validated accuracy {search.best_score_:.3f} with {genes} genes")
    counts = count_selections(search, levels, groups)
    stable = np.argsort(-counts, kind="stable")[:TRUE]
    right = np.isin(stable, differing).sum()
    print(f"of the {TRUE} genes selected most often, {right} are among the {TRUE} that differ")
    print("gene and number of times selected, of 20:", ", ".join(f"{gene} {counts[gene]}" for gene in stable))


if __name__ == "__main__":
    main()
