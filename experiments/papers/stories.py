"""The stories of RCV1 and their topics, in the two ways in which they are published."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.papers.published import ConvertError, all_lines, features_of, lines_of, text_of

POSITIVE = "CCAT"
_LABELS = re.compile(r"[0-9]{1,9}(?:,[0-9]{1,9})*")


class Story(NamedTuple):
    """A story of RCV1: its topics and its features, as text."""

    topics: tuple[str, ...]
    features: str


def of_libsvm(path: Path, names: Sequence[str]) -> Iterator[Story]:
    """Stories of a multi-label LIBSVM file, ``3,17 id:value ...``; label k is the topic names[k]."""
    for number, line in lines_of(path):
        labels, _, features = ("", "", line) if line[0].isspace() else line.partition(" ")
        where = f"{path}, line {number}"
        numbers = [int(label) for label in labels.split(",")] if _LABELS.fullmatch(labels) else []
        if labels and not (numbers and max(numbers) < len(names)):
            raise ConvertError(f"{where}: {labels!r} are not labels below {len(names)}")
        yield Story(tuple(names[k] for k in numbers), features_of(where, features))


def of_lyrl(path: Path, topics: dict[str, list[str]]) -> Iterator[Story]:
    """Stories of a file of vectors of RCV1-v2, ``document id:value ...``."""
    for number, line in lines_of(path):
        document, _, features = line.partition(" ")
        where = f"{path}, line {number}"
        if document not in topics:
            raise ConvertError(f"{where}: no topics for document {document!r}")
        yield Story(tuple(topics[document]), features_of(where, features))


def qrels(path: Path) -> dict[str, list[str]]:
    """Topics by document of rcv1-v2.topics.qrels, ``topic document 1``."""
    found: dict[str, list[str]] = {}
    for number, line in lines_of(path):
        words = line.split()
        if len(words) != 3 or words[2] != "1":
            raise ConvertError(f"{path}, line {number}: not a topic, a document and 1")
        found.setdefault(words[1], []).append(words[0])
    return found


def names_of(path: Path) -> list[str]:
    """The topics of a list, one word a line. Lines are counted, so none may be empty or a comment."""
    lines = list(all_lines(path))
    while lines and not lines[-1][1].strip():
        lines.pop()
    names: list[str] = []
    for number, line in lines:
        if not re.fullmatch(r"\w+", line.strip()):
            raise ConvertError(
                f"{path}, line {number}: {line!r} is not the name of a topic, alone on its line; "
                "the name of label 0 is on line 1, that of label 1 on line 2 ..."
            )
        if line.strip() in names:
            raise ConvertError(f"{path}, line {number}: {line.strip()} is on two lines")
        names.append(line.strip())
    return names


def reader_of(topics: Path) -> Callable[[Path], Iterator[Story]]:
    """How to read stories: with topics by document, or with a list of the topics' names.

    A file whose first line has three words has topics by document.
    """
    first = next(lines_of(topics), (0, ""))[1].split()
    if len(first) == 3:
        found = qrels(topics)
        _require(topics, {topic for each in found.values() for topic in each})
        return lambda path: of_lyrl(path, found)
    names = names_of(topics)
    _require(topics, set(names))
    return lambda path: of_libsvm(path, names)


def _require(topics: Path, found: set[str]) -> None:
    if POSITIVE not in found:
        raise ConvertError(
            f"{topics}: the topic {POSITIVE}, in capitals, is not among the {len(found)} topics"
        )


def rcv1(train: Sequence[Path], test: Sequence[Path], topics: Path, folder: Path) -> dict[Path, bytes]:
    """The rows of RCV1 with CCAT as class 1, and their topics, without repeated rows, in a random order."""
    stories, seen = reader_of(topics), set[str]()
    files, positive = {}, 0
    for part, paths in (("train", train), ("test", test)):
        kept = []
        for path in paths:
            for story in stories(path):
                if story.features not in seen:
                    seen.add(story.features)
                    kept.append(story)
        order = np.random.RandomState(0).permutation(len(kept))
        kept = [kept[k] for k in order]
        positive += sum(POSITIVE in story.topics for story in kept)
        lines = [f"{'+1' if POSITIVE in story.topics else '-1'} {story.features}" for story in kept]
        source, of_each = ", ".join(map(str, paths)), [" ".join(sorted(story.topics)) for story in kept]
        files[folder / "rcv1" / f"rcv1_ccat_{part}.svm.gz"] = text_of(lines, source)
        files[folder / "rcv1" / f"rcv1_{part}_topics.txt.gz"] = text_of(of_each, source)
    if not positive:
        raise ConvertError(f"{topics}: none of the stories has the topic {POSITIVE}")
    return files
