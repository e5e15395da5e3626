"""What the committed pages were made from: the sets, their files and contents, and which page needs which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

TOP = ("CCAT", "ECAT", "GCAT", "MCAT")


class Contents(NamedTuple):
    """What was counted in a file."""

    rows: int
    features: int = 0
    """features that occur, if the file has any"""
    labels: Mapping[str, int] = {}
    """rows by label; of stories, by topic; empty if the targets are numbers"""

    def difference(self, committed: Contents) -> str:
        """In what this differs from what the committed page was made from; empty if in nothing."""
        pairs = [("rows", self.rows, committed.rows), ("features", self.features, committed.features)]
        every = sorted({*self.labels, *committed.labels})
        pairs += [(f"rows of {one}", self.labels.get(one, 0), committed.labels.get(one, 0)) for one in every]
        return next(
            (f"{n:,} {what} where the committed page has {m:,}" for what, n, m in pairs if n != m), ""
        )


def _two(positive: int, negative: int, features: int) -> Contents:
    return Contents(positive + negative, features, {"class 1": positive, "class -1": negative})


def _many(*counts: int, first: int = 0, features: int = 0) -> Contents:
    labels = {f"class {k}": count for k, count in enumerate(counts, first)}
    return Contents(sum(counts), features, labels)


def _uci(name: str) -> tuple[str, ...]:
    return (f"uci/{name}/{name}.svm.gz",)


def _reviews(name: str) -> tuple[str, ...]:
    return tuple(f"amazon-reviews/bow5000/{name}_{part}.svmlight.gz" for part in ("train", "test"))


UCI = ("ad", "crx", "housing", "krvskp", "magic04", "shrooms", "spambase", "wbc", "wdbc", "wpbc", "zoo")
FILES: dict[str, tuple[str, ...]] = {
    "RCV1-CCAT": ("rcv1/rcv1_ccat_train.svm.gz", "rcv1/rcv1_ccat_test.svm.gz"),
    "topics of RCV1": ("rcv1/rcv1_train_topics.txt.gz", "rcv1/rcv1_test_topics.txt.gz"),
    "acq": ("reuters/acq_train.dat.gz", "reuters/acq_test.dat.gz"),
    "books": _reviews("books"),
    "dvd": _reviews("dvd"),
    "20 newsgroups": ("20news/20news-bydate-train.jsonl.gz", "20news/20news-bydate-test.jsonl.gz"),
    "Reuters-21578": ("reuters/reuters21578.jsonl.gz",),
    "MNIST": ("mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz"),
    **{name: _uci(name) for name in UCI},
}
"""the files of each set that the pages read"""

COMMITTED: dict[str, Contents] = {
    "rcv1/rcv1_ccat_train.svm.gz": _two(7_709, 9_480, 26_369),
    "rcv1/rcv1_ccat_test.svm.gz": _two(2_432, 2_869, 18_685),
    "rcv1/rcv1_train_topics.txt.gz": Contents(
        17_189, labels=dict(zip(TOP, (7_709, 2_521, 4_941, 5_050), strict=True))
    ),
    "rcv1/rcv1_test_topics.txt.gz": Contents(
        5_301, labels=dict(zip(TOP, (2_432, 809, 1_532, 1_494), strict=True))
    ),
    "reuters/acq_train.dat.gz": _two(1_000, 1_000, 7_034),
    "reuters/acq_test.dat.gz": _two(300, 300, 3_654),
    "amazon-reviews/bow5000/books_train.svmlight.gz": _two(1_000, 1_000, 4_818),
    "amazon-reviews/bow5000/books_test.svmlight.gz": _two(2_264, 2_201, 4_872),
    "amazon-reviews/bow5000/dvd_train.svmlight.gz": _two(1_000, 1_000, 4_835),
    "amazon-reviews/bow5000/dvd_test.svmlight.gz": _two(1_807, 1_779, 4_888),
    "20news/20news-bydate-train.jsonl.gz": Contents(11_314),
    "20news/20news-bydate-test.jsonl.gz": Contents(7_532),
    "reuters/reuters21578.jsonl.gz": Contents(
        21_578, labels={"TRAIN with topics": 9_603, "TEST with topics": 3_299}
    ),
    "mnist/train-images-idx3-ubyte.gz": Contents(60_000),
    "mnist/train-labels-idx1-ubyte.gz": _many(
        5_923, 6_742, 5_958, 6_131, 5_842, 5_421, 5_918, 6_265, 5_851, 5_949
    ),
    "uci/ad/ad.svm.gz": _two(459, 539, 1_263),
    "uci/crx/crx.svm.gz": _two(307, 383, 51),
    "uci/housing/housing.svm.gz": Contents(506, 13),
    "uci/krvskp/krvskp.svm.gz": _two(1_669, 1_527, 73),
    "uci/magic04/magic04.svm.gz": _two(12_332, 6_688, 10),
    "uci/shrooms/shrooms.svm.gz": _two(3_916, 4_208, 117),
    "uci/spambase/spambase.svm.gz": _two(1_813, 2_788, 57),
    "uci/wbc/wbc.svm.gz": _two(241, 458, 9),
    "uci/wdbc/wdbc.svm.gz": _two(212, 357, 30),
    "uci/wpbc/wpbc.svm.gz": _two(47, 151, 33),
    "uci/zoo/zoo.svm.gz": _many(41, 20, 5, 13, 4, 8, 10, first=1, features=16),
}

NEEDS: dict[str, tuple[str, ...]] = {
    "langford-features": ("RCV1-CCAT", *UCI),
    "langford-auc": ("RCV1-CCAT", *(name for name in UCI if name != "housing")),
    "langford-curves": ("RCV1-CCAT", *(name for name in UCI if name not in ("housing", "zoo"))),
    "langford-regret": ("krvskp",),
    "oiwa-frequency": ("books", "dvd", "20 newsgroups", "Reuters-21578"),
    "singer-ball": ("MNIST",),
    "singer-on-the-fly": ("RCV1-CCAT",),
    "singer-solvers": ("RCV1-CCAT",),
    "singer-mixed": ("MNIST",),
    "singer-rare": (),
    "singer-topics": ("RCV1-CCAT", "topics of RCV1"),
    "singer-sparsity": ("RCV1-CCAT", "topics of RCV1"),
    "singer-boosting": ("RCV1-CCAT",),
    "reid-transcript": ("RCV1-CCAT", "topics of RCV1"),
    "bottou-svmsgd": ("RCV1-CCAT",),
    "daume-order": ("acq", "RCV1-CCAT", "books"),
    "daume-sparse": ("RCV1-CCAT",),
    "daume-hashing": ("RCV1-CCAT",),
}
"""the sets that a page reads; those it only generates, or that ship in examples/data, are not listed"""


def files_of(page: str) -> set[str]:
    """The files that a page reads, also if another page of the same run has read them before."""
    return {name for one in NEEDS.get(page, ()) for name in FILES[one]}
