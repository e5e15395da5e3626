"""Newsgroup posts: which group is a post from?

Run it: ``python examples/sklearn_text.py`` uses a sample of 8 of the 20 newsgroups in `examples/data`;
``python examples/sklearn_text.py all`` uses all 20, which scikit-learn then downloads.

The first model takes raw texts: words are hashed, so there is no vocabulary to keep. The second uses
scikit-learn's TfidfVectorizer, which keeps a vocabulary and weights words by rarity. In both, most words have
no weight for any group.
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
SHOWN, MIN_POSTS = 5, 3
"""number of words shown per group, and in how many posts a word must occur"""


def sample(part: str) -> tuple[list[str], list[str]]:
    """Read the beginnings of posts, and their groups."""
    with gzip.open(DATA / f"newsgroups_{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
        posts = [json.loads(line) for line in lines]
    return [post["text"] for post in posts], [post["group"] for post in posts]


def everything(part: str) -> tuple[list[str], list[str]]:
    """Load the 20 newsgroups without headers, footers and quotes, which would give the group away."""
    from sklearn.datasets import fetch_20newsgroups

    bunch = fetch_20newsgroups(subset=part, remove=("headers", "footers", "quotes"))
    return bunch.data, np.array(bunch.target_names)[bunch.target].tolist()


def classifier(count: int, **options: Any) -> SparseOnlineClassifier:
    """Return a one-vs-rest classifier; l1 falls as 1 / sqrt(count), like the noise in a mean of gradients."""
    l1 = PENALTY / math.sqrt(count)
    return SparseOnlineClassifier("adagrad-rda:eta=0.3", "hinge", l1=l1, passes=8, random_state=0, **options)


def word_model(count: int) -> SparseOnlineClassifier:
    """Return a model of word counts, with every text scaled to unit length."""
    return classifier(count, layout=Layout(ngrams="words=1,norm"))


def tfidf_model(count: int) -> Any:
    """Return a pipeline with TF-IDF, in which rare words count for more."""
    return make_pipeline(TfidfVectorizer(sublinear_tf=True), classifier(count))


def top_words(model: Any, texts: list[str]) -> dict[str, list[str]]:
    """Return the words with the largest weights per group; the margin of a one-word text is its weight."""
    counts = Counter(word for text in texts for word in set(re.findall(r"[a-z]{3,}", text.lower())))
    words = sorted(word for word, count in counts.items() if count >= MIN_POSTS)
    best = np.argsort(-model.decision_function(words), axis=0, kind="stable")[:SHOWN].T
    return {group: [words[k] for k in row] for group, row in zip(model.classes_, best, strict=True)}


def main() -> None:
    posts = everything if sys.argv[1:] == ["all"] else sample
    texts, groups = posts("train")
    unseen, truth = posts("test")
    majority = max(truth.count(group) for group in set(truth)) / len(truth)
    print(f"{len(texts):,} posts to {len(set(groups))} groups, {len(unseen):,} later posts to test on")
    print(f"most frequent group: accuracy {majority:.3f}")
    model = word_model(len(texts)).fit(texts, groups)
    print(f"texts: accuracy {model.score(unseen, truth):.3f} with {len(model.feature_keys_):,} words")
    after = tfidf_model(len(texts)).fit(texts, groups)
    heavy, known = len(after[-1].feature_keys_), after[-1].n_features_in_
    print(f"TF-IDF: accuracy {after.score(unseen, truth):.3f} with {heavy:,} of {known:,} words")
    for group, words in top_words(model, texts).items():
        print(f"{group:24} {' '.join(words)}")


if __name__ == "__main__":
    main()
