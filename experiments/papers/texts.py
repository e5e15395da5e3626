"""Collections of texts as bags of words."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from experiments.papers.sets import Parts, Sets, signs
from thresher.data import Chunk

WORDS = r"[a-z]{2,}"


def newsgroups(sets: Sets, groups: Sequence[str]) -> Parts:
    """20 newsgroups by date: the bodies of all messages in some of the groups, without their headers."""
    parts = [
        [
            (one["text"].partition("\n\n")[2], one["group"])
            for one in _documents(path)
            if one["group"] in groups
        ]
        for path in (sets.path(f"20news/20news-bydate-{part}.jsonl.gz") for part in ("train", "test"))
    ]
    return _bags(parts, groups)


def topics(sets: Sets, count: int) -> Parts:
    """Reuters-21578, ModApte: the stories with exactly one of the `count` most frequent topics."""
    used = [
        one for one in _documents(sets.path("reuters/reuters21578.jsonl.gz")) if one["topics_attr"] == "YES"
    ]
    seen = Counter(topic for one in used for topic in one["topics"])
    largest = [topic for topic, _ in seen.most_common(count)]

    def stories(split: str) -> list[tuple[str, str]]:
        found = [(one, [topic for topic in one["topics"] if topic in largest]) for one in used]
        return [
            (f"{one['title']} {one['body']}", of[0])
            for one, of in found
            if len(of) == 1 and one["lewissplit"] == split
        ]

    return _bags([stories("TRAIN"), stories("TEST")], largest)


def _documents(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _bags(parts: Sequence[Sequence[tuple[str, str]]], classes: Sequence[str]) -> Parts:
    """Counts of the words of the training part; classes are numbered from 0, two are 1 and -1."""
    vectorizer = CountVectorizer(token_pattern=WORDS, dtype=np.float32)
    vectorizer.fit([text for text, _ in parts[0]])
    found = []
    for part in parts:
        matrix = vectorizer.transform([text for text, _ in part])
        matrix.sort_indices()
        numbers = np.array([classes.index(name) for _, name in part])
        labels = signs(numbers == 0) if len(classes) == 2 else numbers.astype(np.float32)
        found.append(Chunk.from_csr(matrix.indptr, matrix.indices, matrix.data, labels, np.ones(len(part))))
    return Parts(*found)
