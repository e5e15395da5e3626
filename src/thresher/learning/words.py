"""Option names of other tools, and the options of thresher with that meaning."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_SAID: dict[tuple[str, ...], str] = {
    ("passes", "rounds"): "epochs epoch n-epochs num-epochs max-iter n-iter iterations iters max-epochs",
    ("alpha", "rate"): "learning-rate lr eta eta0 step step-size stepsize learning-rate-init",
    ("l1",): "lambda lambda1 penalty reg regularization regularisation reg-alpha sparsity C",
    ("rule",): "algorithm algo optimizer optimiser solver method learner model-type",
    ("loss",): "objective criterion loss-function lossfn loss-fn",
    ("holdout",): "validation val valid validate test test-set test-size eval dev held-out hold-out"
    " validation-split val-split validation-fraction validation-set eval-set split holdout-every",
    ("early-stop", "patience"): "early-stopping early-stopping-rounds n-iter-no-change patience early-stop",
    ("order",): "shuffle random-order",
    ("seed",): "random-state random-seed rng",
    ("batch",): "batch-size minibatch mini-batch bs",
    ("average",): "averaging averaged polyak",
    ("intercept",): "fit-intercept bias constant",
    ("outputs",): "classes n-classes num-classes num-class multiclass multilabel",
    ("scale",): "standardize standardise normalize normalise scaler scaling",
    ("store", "bits"): "hash-bits bit-precision n-features hashing",
    ("dtype",): "precision float float-type",
    ("label",): "target y target-column label-column response labels",
    ("weight",): "sample-weight weights weight-column importance",
    ("numeric",): "numerical numeric-features num-features",
    ("categorical",): "cat cat-features categorical-features categories categoricals",
    ("text",): "text-columns text-features",
    ("ignore",): "drop exclude skip-columns",
    ("interact",): "interactions quadratic cubic cross crosses",
    ("ngrams",): "ngram ngram-range",
    ("delimiter",): "sep separator",
    ("missing",): "na na-values null missing-values",
    ("format",): "type input-format file-format",
    ("header",): "no-headers has-header",
    ("threads",): "jobs n-jobs num-threads nthread workers cores",
    ("on-error",): "skip-bad bad-lines on-bad-lines",
    ("model",): "save out output-model final-regressor model-file",
    ("output-file",): "out predictions save",
    ("output",): "proba predict-proba link",
    ("init",): "warm-start initial-regressor start-from pretrained",
    ("resume",): "continue restart",
    ("checkpoint-every",): "save-every checkpoint",
    ("report-every",): "progress print-every log-every verbose-every",
    ("quiet",): "silent verbose no-progress",
    ("folds",): "cv k kfold k-fold n-folds n-splits",
    ("budget",): "trials n-trials n-iter max-trials",
    ("rules",): "rule algorithm",
    ("top",): "n head limit",
    ("tolerance",): "tol epsilon",
}
"""Options, and the names that other tools use for them."""


def meant(word: str, options: Collection[str]) -> list[str]:
    """The `options` that an unknown `word` may mean: synonyms first, else the closest spelling.

    >>> meant("epochs", ["passes"]), meant("learning_rate", ["alpha", "rate"]), meant("pases", ["passes"])
    (['passes'], ['alpha', 'rate'], ['passes'])
    """
    plain = {one.replace("_", "-"): one for one in options}
    said = word.replace("_", "-")
    by_meaning = [one for group, words in _SAID.items() if said in words.split() for one in group]
    found = [plain[one] for one in dict.fromkeys(by_meaning) if one in plain]
    return found or [plain[one] for one in get_close_matches(said, plain, 1)]
