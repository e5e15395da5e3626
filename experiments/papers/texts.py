"""Collections of texts as bags of words."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from experiments.papers.known import Contents
from experiments.papers.sets import MissingDataError, Parts, Sets, intact, signs
from thresher.data import Chunk

WORDS = r"[a-z]{2,}"
STORY = {"lewissplit": str, "topics_attr": str, "topics": list, "title": str, "body": str}


def newsgroups(sets: Sets, groups: Sequence[str]) -> Parts:
    """20 newsgroups by date: the bodies of all messages in some of the groups, without their headers."""
    parts = []
    for part in ("train", "test"):
        name = f"20news/20news-bydate-{part}.jsonl.gz"
        found = _documents(sets.path(name), {"group": str, "text": str})
        sets.found(name, Contents(len(found)))
        if absent := set(groups) - {one["group"] for one in found}:
            raise MissingDataError(f"{name}: no message of {', '.join(sorted(absent))}")
        parts.append(
            [(one["text"].partition("\n\n")[2], one["group"]) for one in found if one["group"] in groups]
        )
    return _bags(parts, groups)


def topics(sets: Sets, count: int) -> Parts:
    """Reuters-21578, ModApte: the stories with exactly one of the `count` most frequent topics."""
    name = "reuters/reuters21578.jsonl.gz"
    every = _documents(sets.path(name), STORY)
    used = [one for one in every if one["topics_attr"] == "YES"]
    splits = Counter(f"{one['lewissplit']} with topics" for one in used)
    parts = {key: splits[key] for key in ("TRAIN with topics", "TEST with topics")}
    sets.found(name, Contents(len(every), labels=parts))
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


def _documents(path: Path, fields: Mapping[str, type]) -> list[dict[str, Any]]:
    """The objects of a file, one a line, each with these fields of these types."""
    found = []
    with intact(path), gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            try:
                one = json.loads(line)
            except json.JSONDecodeError as error:
                raise MissingDataError(f"{path}, line {number}: not a JSON object: {error}") from error
            for field, kind in fields.items():
                if not isinstance(one, dict) or not isinstance(one.get(field), kind):
                    raise MissingDataError(f"{path}, line {number}: no {field!r} of type {kind.__name__}")
            found.append(one)
    if not found:
        raise MissingDataError(f"{path}: no lines")
    return found


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
