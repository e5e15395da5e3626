"""Posts to newsgroups: which group is one from?

Run it: ``python examples/sklearn_text.py`` takes the sample of 8 of the 20 newsgroups in `examples/data`;
with ``all`` behind it, all posts to all 20, which scikit-learn then downloads.

Once texts go in as they are: their words are features, whose keys are hashes, so there is no vocabulary to
keep. Once behind scikit-learn's TfidfVectorizer, which keeps one and knows how rare each word is. Either way
most words weigh nothing, for any group.
"""

import gzip
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from thresher.data.layout import Layout
from thresher.sklearn import SparseOnlineClassifier

DATA = Path(__file__).parent / "data"
PENALTY = 0.012
TOLD, SEEN = 5, 3
"""Words shown for a group, and in how many posts each must stand."""


def sample(part: str) -> tuple[list[str], list[str]]:
    """Beginnings of posts, and their groups."""
    with gzip.open(DATA / f"newsgroups_{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
        posts = [json.loads(line) for line in lines]
    return [post["text"] for post in posts], [post["group"] for post in posts]


def everything(part: str) -> tuple[list[str], list[str]]:
    """The 20 newsgroups without what gives them away."""
    from sklearn.datasets import fetch_20newsgroups

    bunch = fetch_20newsgroups(subset=part, remove=("headers", "footers", "quotes"))
    return bunch.data, np.array(bunch.target_names)[bunch.target].tolist()


def classifier(count: int, **options: Any) -> SparseOnlineClassifier:
    """One group against the rest, from `count` texts: what gradients add up to by chance grows as a root."""
    l1 = PENALTY / math.sqrt(count)
    return SparseOnlineClassifier("adagrad-rda:eta=0.3", "hinge", l1=l1, passes=8, random_state=0, **options)


def of_texts(count: int) -> SparseOnlineClassifier:
    """Reads each text's words, as often as they stand there; every text is of unit length."""
    return classifier(count, layout=Layout(ngrams="words=1,norm"))


def of_rare_words(count: int) -> Any:
    """Behind a vocabulary in which rare words count for more."""
    return make_pipeline(TfidfVectorizer(sublinear_tf=True), classifier(count))


def telling(model: Any, texts: list[str]) -> dict[str, list[str]]:
    """The words that speak for a group most: a text of one word has the margin of its weight."""
    counts = Counter(word for text in texts for word in set(re.findall(r"[a-z]{3,}", text.lower())))
    words = sorted(word for word, count in counts.items() if count >= SEEN)
    best = np.argsort(-model.decision_function(words), axis=0, kind="stable")[:TOLD].T
    return {group: [words[k] for k in row] for group, row in zip(model.classes_, best, strict=True)}


def main() -> None:
    posts = everything if sys.argv[1:] == ["all"] else sample
    texts, groups = posts("train")
    unseen, truth = posts("test")
    often = max(truth.count(group) for group in set(truth)) / len(truth)
    print(f"{len(texts):,} posts to {len(set(groups))} groups, {len(unseen):,} later ones")
    print(f"always one group: accuracy {often:.3f}")
    model = of_texts(len(texts)).fit(texts, groups)
    print(f"texts: accuracy {model.score(unseen, truth):.3f} by {len(model.feature_keys_):,} words")
    after = of_rare_words(len(texts)).fit(texts, groups)
    heavy, known = len(after[-1].feature_keys_), after[-1].n_features_in_
    print(f"TF-IDF: accuracy {after.score(unseen, truth):.3f} by {heavy:,} of {known:,} words")
    for group, words in telling(model, texts).items():
        print(f"{group:24} {' '.join(words)}")


if __name__ == "__main__":
    main()
