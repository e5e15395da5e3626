"""Names of parts and parameters in other libraries, and their nearest equivalents here."""

from __future__ import annotations

from thresher.options.messages import mention_command

ADAGRAD, SPARSE = "adagrad-fobos", "ft-ftrl"
BOOST = f"; {mention_command('boost')} solves such problems in memory"
NAMES: dict[str, dict[str, tuple[str, str]]] = {
    "rule": {
        "lasso": (SPARSE, " with the loss squared and an l1"),
        "elastic-net": ("fobos", " with an l1 and an l2"),
        "elasticnet": ("fobos", " with an l1 and an l2"),
        "ridge": ("fobos", " with an l2 and the loss squared"),
        "logistic-regression": (SPARSE, " with the loss logistic"),
        "logisticregression": (SPARSE, " with the loss logistic"),
        "linear-regression": (SPARSE, " with the loss squared"),
        "svm": ("pegasos", " with the loss hinge"),
        "linear-svm": ("pegasos", " with the loss hinge"),
        "linearsvc": ("pegasos", " with the loss hinge"),
        "svc": ("pegasos", " with the loss hinge"),
        "sgdclassifier": ("sgd", "; fobos adds an l1 or l2"),
        "sgdregressor": ("sgd", " with the loss squared; fobos adds an l1 or l2"),
        "gd": ("sgd", ""),
        "ogd": ("sgd", ""),
        "gradient-descent": ("sgd", ""),
        "momentum": ("sgd", ""),
        "adam": (ADAGRAD, ", which adapts the step of each weight too"),
        "adamw": (ADAGRAD, ", which adapts the step of each weight too"),
        "rmsprop": (ADAGRAD, ", which adapts the step of each weight too"),
        "adadelta": (ADAGRAD, ", which adapts the step of each weight too"),
        "adagrad": (ADAGRAD, " or adagrad-rda"),
        "ftrl-proximal": ("ftrl", ""),
        "follow-the-regularized-leader": ("ftrl", ""),
        "ista": ("fobos", ""),
        "fista": ("fobos", ""),
        "proximal-gradient": ("fobos", ""),
        "mirror-descent": (ADAGRAD, ""),
        "dual-averaging": ("rda", ""),
        "exponentiated-gradient": ("eg", ""),
        "winnow": ("eg", ""),
        "passive-aggressive": ("pa-i", ""),
        "passiveaggressiveclassifier": ("pa-i", ""),
        "passiveaggressiveregressor": ("pa-i", " with the loss absolute"),
        "confidence-weighted": ("cw", ""),
        "vw": ("normalized", ", Vowpal Wabbit's default"),
        "nag": ("normalized", ""),
        "liblinear": (SPARSE, BOOST),
        "lbfgs": (SPARSE, BOOST),
        "saga": (SPARSE, BOOST),
        "coordinate-descent": (SPARSE, BOOST),
        "adaboost": (SPARSE, " with the loss exponential" + BOOST),
    },
    "loss": {
        "log": ("logistic", ""),
        "log-loss": ("logistic", ""),
        "logloss": ("logistic", ""),
        "cross-entropy": ("logistic", "; softmax for several classes"),
        "binary-crossentropy": ("logistic", ""),
        "bce": ("logistic", ""),
        "categorical-crossentropy": ("softmax", ""),
        "multinomial": ("softmax", ""),
        "multiclass": ("softmax", ""),
        "mse": ("squared", ""),
        "l2": ("squared", ""),
        "squared-error": ("squared", ""),
        "least-squares": ("squared", ""),
        "mae": ("absolute", ""),
        "l1": ("absolute", ""),
        "absolute-error": ("absolute", ""),
        "epsilon-insensitive": ("absolute", ""),
        "pinball": ("quantile", ""),
        "svm": ("hinge", ""),
        "count": ("poisson", ""),
    },
    "rate": {
        "optimal": ("inverse", ""),
        "invscaling": ("power", ""),
        "sqrt": ("inverse-sqrt", ""),
        "fixed": ("constant", ""),
        "decay": ("power", ""),
    },
}
"""By kind: name elsewhere -> (part here, further words)"""
_STEP = ("eta0", "rate", "wealth", "alpha", "C", "eta", "gamma")
_SPARSITY = ("l1", "gravity", "theta", "radius", "norm")
PARAMETERS = {
    **dict.fromkeys(("rate", "lr", "learning-rate", "eta0", "eta", "alpha", "step", "step-size"), _STEP),
    **dict.fromkeys(("l1", "lambda", "lambda1", "penalty", "reg", "gravity", "threshold"), _SPARSITY),
    **dict.fromkeys(("l2", "lambda2", "ridge", "weight-decay"), ("l2", "l2norm")),
    **dict.fromkeys(("c", "aggressiveness"), ("C", "r")),
}
"""Parameter of other rules or libraries -> nearest parameters here"""
SPARSE_RULES = "ft-ftrl, ftrl, fobos, adagrad-rda and others"
"""Rules with an `l1`, for messages"""
