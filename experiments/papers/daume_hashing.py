"""The hash kernel: mean and variance of <phi(x), phi(z)> against the number of rows P (Daumé, chapter 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from thresher.data import Chunk
from thresher.data.features.murmur import hash_bytes
from thresher.drawing import Axis, Panel, Series, panels
from thresher.engine.index import make_index

BITS, PAIRS, SEEDS = (4, 5, 6, 7, 8, 9, 10, 11, 12), 50, 500
PLAIN, SIGNED, IDS = "without signs", "with signs", "without signs, ids"
NEAR_100 = 7  # bits
F64 = NDArray[np.float64]


class Spread(NamedTuple):
    """The excess of the hash kernel over <x, z>, averaged over pairs of rows; each array (P,)."""

    mean: F64
    error: F64
    """standard error of `mean`"""
    variance: F64
    """over seeds"""
    mean_told: F64
    """what the formula says"""
    variance_told: F64


def kernel(rows: Chunk, spec: str, seed: int) -> F64:
    """<phi(x), phi(z)> (pairs,) of rows 0 and 1, 2 and 3, ... in a hashed store."""
    index = make_index(spec, seed)
    found = index.find(rows.keys, rows.indptr, rows.values)
    row = np.repeat(np.arange(len(rows)), np.diff(found.indptr))
    used = slice(0, int(found.indptr[-1]))
    places = row * index.size + found.rows[used].astype(np.int64)
    phi = np.bincount(places, found.values[used], len(rows) * index.size).reshape(len(rows), index.size)
    product: F64 = np.sum(phi[0::2] * phi[1::2], axis=1)
    return product


def named(rows: Chunk) -> Chunk:
    """The same rows with the hash of a name for each id, as words in a text have."""
    ids, places = np.unique(rows.keys, return_inverse=True)
    hashes = np.array([hash_bytes(str(one).encode()) for one in ids], np.uint64)
    return replace(rows, keys=hashes[places])


def sums(rows: Chunk) -> tuple[F64, F64, F64]:
    """Of each pair: <x, z>, the sum of x_i z_j over i != j, and that of x_i² z_j² + x_i z_i x_j z_j."""
    keys, places = np.unique(rows.keys, return_inverse=True)
    dense = np.zeros((len(rows), len(keys)))
    dense[np.repeat(np.arange(len(rows)), np.diff(rows.indptr)), places] = rows.values
    x, z = dense[0::2], dense[1::2]
    product, squares = np.sum(x * z, axis=1), np.sum((x * z) ** 2, axis=1)
    every = np.sum(x * x, axis=1) * np.sum(z * z, axis=1) - squares
    return product, x.sum(axis=1) * z.sum(axis=1) - product, every + product**2 - squares


def spread(rows: Chunk, signed: str, bits: Sequence[int], seeds: int) -> Spread:
    """Measure mean and variance over seeds, for each P = 2^bits."""
    product, crossed, squares = sums(rows)
    excess = np.array(
        [[kernel(rows, f"hashed:{b}{signed}", seed) - product for seed in range(seeds)] for b in bits]
    )  # (P, seeds, pairs)
    by_seed, p = excess.mean(axis=2), 2.0 ** np.array(bits)
    return Spread(
        by_seed.mean(axis=1),
        by_seed.std(axis=1, ddof=1) / np.sqrt(seeds),
        excess.var(axis=1, ddof=1).mean(axis=1),
        np.zeros(len(bits)) if signed else crossed.mean() / p,
        squares.mean() / p * (1 if signed else 1 - 1 / p),
    )


def measured(rows: Chunk, bits: Sequence[int], seeds: int) -> dict[str, Spread]:
    """Both kernels with names of the words, and the plain one with their numbers."""
    words = named(rows)
    return {
        PLAIN: spread(words, "", bits, seeds),
        SIGNED: spread(words, ",signed", bits, seeds),
        IDS: spread(rows, "", bits, seeds),
    }


def page(sets: Sets) -> Page:
    """Measure both kernels."""
    bits, pairs, seeds = ((3, 5, 7), 3, 60) if sets.quick else (BITS, PAIRS, SEEDS)
    rows = sets.rcv1().train.rows(0, 2 * pairs)
    found = measured(rows, bits, seeds)
    return Page(
        title="How much noise does hashing add?",
        source="Daumé, *A Course in Machine Learning* (2012), section 12.5 with equations 12.10 to 12.14; "
        "Weinberger et al., *Feature Hashing for Large Scale Multitask Learning* (ICML 2009), lemma 2",
        claim="Hashing the features to P rows turns ⟨x, z⟩ into ⟨x, z⟩ plus products of features that share "
        "a row. The book says that for a pairwise independent hash the mean of this sum is zero and its "
        "variance falls as P⁻². Weinberger et al. add random signs, show that the mean is then ⟨x, z⟩, and "
        "give the variance.",
        method=f"{pairs} pairs of rows of RCV1-CCAT, each of length 1, with a name for each word, in the "
        f"stores `hashed:BITS` and `hashed:BITS,signed`, P = 2^BITS, with {seeds} seeds. Variances are "
        "over seeds; all figures are means over pairs. The formulas: the mean is Σ x_i z_j / P without "
        "signs and 0 with signs; the variance is Σ (x_i² z_j² + x_i z_i x_j z_j) / P, times 1 − 1/P "
        "without signs; i and j are any two different features.",
        verdicts=_verdicts(found, bits, sets.quick),
        pictures=[_picture(found, bits)],
        tables=[_table(found, bits)],
        notes="Two features share a row with probability 1/P. The excess is a sum over pairs of features "
        "that does or does not contain each pair, so both its mean and its variance fall as 1/P; P⁻² is how "
        "the square of the mean falls. Values of words are positive, so without signs the mean "
        "is positive, too.\n\nThe formulas are for random hashes. *Ids* are the numbers of the words in the "
        "file, which the store without signs scatters by a multiplication; it puts near numbers into "
        "different rows, so fewer of them meet than by chance.\n\nWhat this does to a model: "
        "[features](../features.md).",
    )


def _exponent(variance: F64, bits: Sequence[int]) -> float:
    """The exponent of P in the variance, by least squares."""
    return float(np.polyfit(bits, np.log2(variance), 1)[0])


def _verdicts(found: dict[str, Spread], bits: Sequence[int], quick: bool) -> list[Verdict]:
    plain, signed = found[PLAIN], found[SIGNED]
    ratios = np.concatenate([one.variance / one.variance_told for one in (plain, signed)])
    off = np.abs(signed.mean / signed.error).max()
    of_lemma = [
        Verdict(
            "with signs, the mean is ⟨x, z⟩",
            "lemma 2",
            f"at most {off:.1f} standard errors from it",
            bool(off < 3.5),
        ),
        Verdict(
            "the variance is that of the formula, which falls as 1/P",
            "lemma 2, with signs",
            f"{ratios.min():.2f} to {ratios.max():.2f} times the formula, with signs and without",
            bool(np.all(np.abs(ratios - 1) < (0.4 if quick else 0.1))),
        ),
    ]
    return of_lemma if quick else [*_of_the_book(plain, signed, bits), *of_lemma]


def _of_the_book(plain: Spread, signed: Spread, bits: Sequence[int]) -> list[Verdict]:
    powers = [_exponent(one.variance, bits) for one in (plain, signed)]
    k = list(bits).index(NEAR_100)
    biased = plain.mean[k] / plain.error[k]
    return [
        Verdict(
            "the variance falls as P⁻²",
            "O(P⁻²)",
            f"as P to the power {powers[0]:.2f} without signs, {powers[1]:.2f} with signs",
            all(abs(power + 2) < 0.2 for power in powers),
            "two features share a row with probability 1/P, and the variance of that event is about 1/P",
        ),
        Verdict(
            "for P near 100 it is about 0.0001",
            "0.0001",
            f"{plain.variance[k]:.4f} for P = {2**NEAR_100}",
            bool(plain.variance[k] < 0.0003),
            "0.0001 is 100⁻²",
        ),
        Verdict(
            "the mean of what hashing adds is zero, without signs",
            "zero",
            f"{plain.mean[k]:.3f} for P = {2**NEAR_100}, {biased:.0f} standard errors above zero",
            bool(abs(biased) < 3.5),
            "every pair of features adds x_i z_j / P: zero only with signs, or if features have mean zero",
        ),
    ]


def _picture(found: dict[str, Spread], bits: Sequence[int]) -> Picture:
    p = [float(2**b) for b in bits]
    x, plain = Axis("P, the number of rows", log=True, whole=True), found[PLAIN]
    shown = {name: one for name, one in found.items() if name != IDS}
    variances = [Series(name, p, one.variance.tolist(), "dots") for name, one in shown.items()]
    variances += [
        Series("formula", p, plain.variance_told.tolist(), quiet=True),
        Series("P⁻²", p, [each**-2 for each in p]),
    ]
    means = [Series(name, p, one.mean.tolist(), "dots") for name, one in shown.items()]
    means.append(Series("formula without signs", p, plain.mean_told.tolist(), quiet=True))
    svg = panels(
        "What hashing adds to the product of two stories",
        "Variance and mean of the hash kernel minus the true product against P, with and without signs.",
        [
            Panel(x, Axis("variance", log=True), variances),
            Panel(x, Axis("mean", low=0), means),
        ],
        height=290,
    )
    return Picture(svg, "Variance and mean of what hashing adds, against P, with and without signs")


def _table(found: dict[str, Spread], bits: Sequence[int]) -> str:
    heads = [f"{what}, {name}" for name in found for what in ("mean", "variance")]
    rows = []
    for k, b in enumerate(bits):
        cells = [
            f"{value:.4g} ({value / told:.2f})" if told else f"{value:.1g}"
            for one in found.values()
            for value, told in (
                (one.mean[k], one.mean_told[k]),
                (one.variance[k], one.variance_told[k]),
            )
        ]
        rows.append((f"{2**b:,}", *cells))
    caption = "In parentheses: as a multiple of the formula."
    return table(("P", *heads), rows, caption)
