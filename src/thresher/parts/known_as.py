"""Names of parts and parameters in other libraries, and their nearest equivalents here."""

from __future__ import annotations

from thresher.options.messages import mention_command

_SPARSE, _ADAPTS = "ft-ftrl", ", which adapts the step of each weight too"
_BOOST = f"; {mention_command('boost')} solves such problems in memory"


def _all(names: str, part: str, more: str = "") -> dict[str, tuple[str, str]]:
    return dict.fromkeys(names.split(), (part, more))


NAMES: dict[str, dict[str, tuple[str, str]]] = {
    "rule": {
        **_all("lasso", _SPARSE, " with the loss squared and an l1"),
        **_all("elastic-net elasticnet", "fobos", " with an l1 and an l2"),
        **_all("ridge", "fobos", " with an l2 and the loss squared"),
        **_all("logistic-regression logisticregression", _SPARSE, " with the loss logistic"),
        **_all("linear-regression", _SPARSE, " with the loss squared"),
        **_all("svm linear-svm linearsvc svc", "pegasos", " with the loss hinge"),
        **_all("sgdclassifier", "sgd", "; fobos adds an l1 or l2"),
        **_all("sgdregressor", "sgd", " with the loss squared; fobos adds an l1 or l2"),
        **_all("gd ogd gradient-descent momentum", "sgd"),
        **_all("adam adamw rmsprop adadelta", "adagrad-fobos", _ADAPTS),
        **_all("adagrad", "adagrad-fobos", " or adagrad-rda"),
        **_all("ftrl-proximal follow-the-regularized-leader", "ftrl"),
        **_all("ista fista proximal-gradient", "fobos"),
        **_all("mirror-descent", "adagrad-fobos"),
        **_all("dual-averaging", "rda"),
        **_all("exponentiated-gradient winnow", "eg"),
        **_all("passive-aggressive passiveaggressiveclassifier", "pa-i"),
        **_all("passiveaggressiveregressor", "pa-i", " with the loss absolute"),
        **_all("confidence-weighted", "cw"),
        **_all("vw", "normalized", ", Vowpal Wabbit's default"),
        **_all("nag", "normalized"),
        **_all("liblinear lbfgs saga coordinate-descent", _SPARSE, _BOOST),
        **_all("adaboost", _SPARSE, f" with the loss exponential{_BOOST}"),
    },
    "loss": {
        **_all("log log-loss logloss binary-crossentropy bce", "logistic"),
        **_all("cross-entropy", "logistic", "; softmax for several classes"),
        **_all("categorical-crossentropy multinomial multiclass", "softmax"),
        **_all("mse l2 squared-error least-squares", "squared"),
        **_all("mae l1 absolute-error epsilon-insensitive", "absolute"),
        **_all("pinball", "quantile"),
        **_all("svm", "hinge"),
        **_all("count", "poisson"),
        **_all("compound-poisson-gamma", "tweedie"),
    },
    "rate": {
        **_all("optimal", "inverse"),
        **_all("invscaling decay", "power"),
        **_all("sqrt", "inverse-sqrt"),
        **_all("fixed", "constant"),
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
