"""Table 1 of Duchi, Hazan and Singer (JMLR 2011): the four top topics of RCV1, hinge loss, one pass."""

from __future__ import annotations

TOPICS = ("ECAT", "CCAT", "GCAT", "MCAT")
ERRORS = {
    "FOBOS": (0.058, 0.111, 0.056, 0.056),
    "AdaGrad-FOBOS": (0.044, 0.053, 0.040, 0.034),
    "PA": (0.059, 0.107, 0.066, 0.053),
    "AROW": (0.049, 0.061, 0.044, 0.039),
}
"""test errors, by rule and topic"""
SHARES = {
    "AdaGrad-RDA": (0.086, 0.105, 0.080, 0.063),
    "AdaGrad-FOBOS": (0.238, 0.276, 0.225, 0.176),
}
"""shares of weights that are not zero"""
SOURCE = (
    "The published numbers are those of Table 1 of the JMLR paper. The paper itself was not at hand: they "
    "are taken from a summary of it that repeats the table. The shares of weights that FOBOS keeps are left "
    "out, because what is known of them disagrees. The paper used the whole of RCV1, about 800,000 articles "
    "with two million bigrams as features, so its numbers can only be compared roughly with ours."
)
