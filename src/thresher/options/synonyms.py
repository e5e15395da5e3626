"""Names that other tools use for options, values and commands, and the names of thresher."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from thresher.data.formats.listing import FORMATS, KNOWN_AS

_OPTIONS: dict[tuple[str, ...], str] = {
    ("passes", "rounds", "thresher train --passes N"): "epochs epoch n-epochs num-epochs max-iter n-iter"
    " iterations iters max-epochs",
    ("alpha", "rate"): "learning-rate lr eta eta0 step step-size stepsize learning-rate-init l power-t",
    ("l1",): "lambda lambda1 penalty reg regularization regularisation reg-alpha sparsity C lasso",
    ("l2", "rule=fobos:l2=L"): "l2 lambda2 ridge weight-decay elastic-net elasticnet l1-ratio reg-lambda",
    ("rule",): "algorithm algo optimizer optimiser solver method learner model-type",
    ("rule=ftrl",): "ftrl",
    ("rule=sgd",): "sgd",
    ("rule=normalized",): "adaptive normalized invariant",
    ("loss",): "objective criterion loss-function lossfn loss-fn",
    ("loss=logistic:positive=N",): "class-weight class-weights pos-weight scale-pos-weight",
    ("holdout",): "validation val valid validate test test-set test-size eval dev held-out hold-out"
    " validation-split val-split validation-fraction validation-set eval-set split holdout-every"
    " holdout-period train-size test-data",
    (
        "choose=nnz:N",
        "thresher path DATA --choose nnz:N -m MODEL",
    ): "nonzero nonzeros non-zero non-zeros nnz n-nonzero"
    " max-nonzero n-nonzero-coefs max-features n-features-to-select max-weights num-features-to-keep",
    ("early-stop", "patience"): "early-stopping early-stopping-rounds n-iter-no-change patience early-stop"
    " early-terminate",
    ("order=once",): "shuffle random-order random permute",
    ("seed",): "random-state random-seed rng",
    ("batch",): "batch-size minibatch mini-batch bs",
    ("average",): "averaging averaged polyak",
    ("intercept",): "fit-intercept bias constant",
    ("no-intercept", "intercept"): "noconstant no-bias no-constant",
    ("outputs",): "classes n-classes num-classes num-class multiclass multilabel oaa csoaa",
    ("scale",): "standardize standardise normalize normalise scaler scaling",
    ("store=hashed:BITS", "bits"): "hash-bits bit-precision n-features hashing b",
    ("dtype",): "precision float float-type",
    ("label",): "target y target-column label-column response labels outcome label-col target-col",
    ("sample",): "sampled subsample sample-size downsample undersample",
    ("group",): "groups group-by groupby qid query-id",
    ("classes=NEGATIVE,POSITIVE",): "pos-label positive-class positive neg-label negative",
    ("weight",): "sample-weight weights weight-column importance",
    ("offset",): "base-margin init-score exposure",
    ("numeric",): "numerical numeric-features num-features continuous",
    (
        "numeric",
        "categorical",
        "text",
    ): "features columns feature-columns x cols usecols keep-columns include",
    ("categorical",): "cat cat-features categorical-features categories categoricals one-hot",
    ("text",): "text-columns text-features tfidf",
    ("ignore",): "drop exclude skip-columns id id-column",
    ("interact",): "interactions quadratic cubic cross crosses",
    ("ngrams",): "ngram ngram-range",
    ("delimiter",): "sep separator",
    ("no-quoting", "quoting"): "no-quotes no-quote quote quotes quotechar quote-char quote-style quote-none",
    ("quoted-newlines",): "newlines-in-values newlines multiline multi-line",
    ("missing",): "na na-values null missing-values nan",
    ("format",): " ".join(("type input-format file-format", *FORMATS, *KNOWN_AS)),
    ("no-header", "header"): "no-headers noheader",
    ("header",): "has-header headers",
    ("threads",): "jobs n-jobs num-threads nthread cores j",
    ("workers",): "num-workers n-workers processes",
    ("ray",): "cluster address ray-address",
    ("on-error",): "skip-bad bad-lines on-bad-lines ignore-errors skip-errors",
    ("model", "output-file"): "save out output output-model final-regressor model-file f o",
    ("output-file",): "predictions save",
    ("output",): "proba predict-proba link probability probabilities",
    ("output=label",): "binary",
    ("init",): "warm-start initial-regressor start-from pretrained i",
    ("resume",): "continue restart save-resume",
    ("checkpoint-every",): "save-every checkpoint",
    ("report-every",): "progress print-every log-every verbose-every verbose v P",
    ("cache",): "c cache-file",
    ("quiet",): "silent no-progress",
    ("folds", "thresher cv"): "folds cv k kfold k-fold n-folds n-splits cross-validate cross-validation",
    ("budget", "thresher tune"): "budget trials n-trials n-iter max-trials grid-search tune",
    ("rules",): "rule algorithm",
    ("top",): "n head limit",
    ("tolerance",): "tol epsilon",
    ("thresher train DATA -m MODEL",): "d data train input",
    ("thresher evaluate MODEL DATA",): "t testonly test-only evaluate metric metrics score scoring",
    ("thresher predict MODEL DATA -o FILE",): "p predict",
    ("thresher name MODEL DATA",): "names name feature-names",
    ("thresher weights MODEL",): "readable-model invert-hash audit coef",
    ("thresher path DATA -m MODEL",): "choose choice",
    ("thresher boost",): "bfgs adaboost",
}
"""Options (or ``option=value``), and the names that other tools use for them.

A command is suggested only where no option fits.
"""
_WORDS = sorted({word for words in _OPTIONS.values() for word in words.split() if len(word) > 3})
_ALIKE, _CLOSE, _FIRST = 0.8, 0.72, 3
"""How close the spelling of an option or of such a word must be; and if its first letters are the same"""
_VALUES: dict[str, dict[str, str]] = {
    "scale": {
        "max-abs": "minmax min-max maxabs max normalize normalise unit range 0-1 yes true",
        "standard": "standardize standardise standardized zscore z-score z std meanstd",
    },
    "order": {
        "once": "shuffle shuffled random permute permuted permutation yes true",
        "every": "reshuffle every-pass every-epoch each",
        "as-is": "none no false sequential file given",
        "buffer:N": "buffer buffered window",
    },
    "output": {
        "probability": "prob proba probs probabilities predict-proba p",
        "label": "class classes predict labels category mean expected expectation",
        "margin": "raw score scores decision decision-function logit link",
    },
    "dtype": {"float32": "single float f4 32", "float64": "double f8 64"},
    "on-error": {"skip": "ignore drop continue pass", "fail": "stop raise error", "quarantine=FILE": "save"},
}
"""Values of an option, and the names that other tools use for them."""
_COMMANDS = {
    "train": "fit learn build update teach",
    "evaluate": "test score eval validate metrics assess",
    "predict": "apply infer classify transform",
    "info": "inspect show describe summary view summarize cat",
    "weights": "coef coefficients features importance dump export convert print",
    "cv": "crossvalidate cross-validate kfold folds",
    "tune": "search grid-search gridsearch optimize optimise hyperopt autotune",
    "boost": "adaboost solve",
    "name": "names rename",
    "diff": "compare",
    "log": "wal journal fsck",
    "train --curve FILE": "plot curve graph chart",
    "--version": "version",
    "--help": "help usage man",
}
"""Commands, and the names that other tools use for them."""


def meant(word: str, options: Collection[str]) -> list[str]:
    """The `options` that an unknown `word` may mean: synonyms first, else the closest spelling.

    An entry may be ``option=value``, or a command line that begins with ``thresher``. A synonym of an option
    that is not among `options` means no other, however close its spelling.

    >>> meant("nonzero", ["on_error", "choose"]), meant("thresholds", ["threads"])
    (['choose=nnz:N'], [])
    >>> meant("epochs", ["passes"]), meant("learning_rate", ["alpha", "rate"]), meant("pases", ["passes"])
    (['passes'], ['alpha', 'rate'], ['passes'])
    >>> meant("shuffle", ["order"]), meant("folds", ["passes"])
    (['order=once'], ['thresher cv'])
    """
    plain = {one.replace("_", "-"): one for one in options}
    typed = word.replace("_", "-")
    typed = typed.lower() if len(typed) > 1 else typed  # -P is not -p
    by_meaning = [one for group, words in _OPTIONS.items() if typed in words.split() for one in group]
    found, commands = list[str](), list[str]()
    for one in dict.fromkeys(by_meaning):
        name, equals, value = one.partition("=")
        if one.startswith("thresher "):
            commands.append(one)
        elif name in plain and not (equals and found):
            found.append(f"{plain[name]}{equals}{value}")
    if by_meaning:
        return found or commands
    begun = [one for one in plain if one[:_FIRST] == typed[:_FIRST]]
    near = get_close_matches(typed, begun, 1, _CLOSE) or get_close_matches(typed, plain, 1, _ALIKE)
    near = near or get_close_matches(typed, _WORDS, 1, _ALIKE)
    return [plain[near[0]]] if near and near[0] in plain else meant(near[0], options) if near else []


def did_you_mean(option: str, value: str, known: Collection[str]) -> str:
    """The end of a message about a wrong value of an option; empty if no value is close.

    >>> did_you_mean("scale", "zscore", ["max-abs", "standard"])
    '; did you mean standard?'
    """
    plain = value.lower().replace("_", "-").replace(" ", "-")
    near = [one for one, words in _VALUES.get(option, {}).items() if plain in words.split()]
    near = near or get_close_matches(plain, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def command_meant(word: str, known: Collection[str]) -> list[str]:
    """What to type after ``thresher`` instead of an unknown command.

    >>> command_meant("test", ["train", "evaluate"]), command_meant("trian", ["train", "evaluate"])
    (['evaluate'], ['train'])
    """
    plain = word.lower().replace("_", "-").lstrip("-")
    by_meaning = [command for command, words in _COMMANDS.items() if plain in words.split()]
    return by_meaning or get_close_matches(plain, known, 1)
