"""The data of the papers: damaged files are named, and data other than those of the committed pages too."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.papers import texts
from experiments.papers.sets import MissingDataError, Sets
from tests.test_convert import digits, images

GROUPS = ("sci.med", "sci.space")
NEWS = [
    {"group": group, "text": f"From: me\n\n{word} here"}
    for group, word in zip(GROUPS, ("pill", "star"), strict=True)
]
STORY = {"lewissplit": "TRAIN", "topics_attr": "YES", "topics": ["acq"], "title": "A", "body": "some words"}
CCAT = "rcv1/rcv1_ccat_{}.svm.gz"


def put(folder: Path, name: str, content: bytes | str, *, packed: bool = True) -> Path:
    """A file of the data folder."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(gzip.compress(raw) if packed else raw)
    return folder / name


def as_lines(objects: list[Any]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in objects)


def complete(folder: Path) -> Sets:
    """A small folder that has all that these tests read."""
    for part in ("train", "test"):
        put(folder, CCAT.format(part), "+1 3:1\n-1 4:1\n")
        put(folder, f"rcv1/rcv1_{part}_topics.txt.gz", "CCAT C15\nGCAT\n")
        put(folder, f"20news/20news-bydate-{part}.jsonl.gz", as_lines(NEWS))
    stories = [STORY, STORY | {"topics": ["earn"]}, STORY | {"lewissplit": "TEST"}]
    put(folder, "reuters/reuters21578.jsonl.gz", as_lines(stories))
    put(folder, "mnist/train-images-idx3-ubyte.gz", images(3))
    put(folder, "mnist/train-labels-idx1-ubyte.gz", digits(3))
    return Sets(folder)


READS: dict[str, Callable[[Sets], Any]] = {
    CCAT.format("train"): lambda sets: sets.rcv1(),
    "rcv1/rcv1_train_topics.txt.gz": lambda sets: sets.rcv1("GCAT"),
    "20news/20news-bydate-test.jsonl.gz": lambda sets: texts.newsgroups(sets, GROUPS),
    "reuters/reuters21578.jsonl.gz": lambda sets: texts.topics(sets, 2),
    "mnist/train-images-idx3-ubyte.gz": lambda sets: sets.mnist(),
    "mnist/train-labels-idx1-ubyte.gz": lambda sets: sets.mnist(),
}


@pytest.mark.parametrize(
    ("name", "damage"), [*zip(READS, ("cut", "plain", "folder", "letters", "empty", "cut"), strict=True)]
)
def test_a_damaged_file_is_named_in_one_line(name: str, damage: str, tmp_path: Path) -> None:
    sets = complete(tmp_path)
    READS[name](sets)
    path, sets = tmp_path / name, Sets(tmp_path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        content = {"plain": "no gzip", "letters": "\xfc \xff\n", "empty": ""}[damage].encode("latin-1")
        put(tmp_path, name, content, packed=damage != "plain")
    with pytest.raises(MissingDataError, match=name.rpartition("/")[2]) as raised:
        READS[name](sets)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("20news/20news-bydate-test.jsonl.gz", "{}\n", r"line 1: no 'group' of type str"),
        ("20news/20news-bydate-test.jsonl.gz", as_lines(NEWS[:1]), r"test.jsonl.gz: no message of sci.space"),
        ("mnist/train-labels-idx1-ubyte.gz", images(3), "labels-idx1-ubyte.gz: not an idx file of labels"),
        ("mnist/train-labels-idx1-ubyte.gz", digits(5), "train-labels.* has 5 labels for 3 images"),
        (
            "rcv1/rcv1_train_topics.txt.gz",
            "CCAT\n",
            "rcv1_train_topics.txt.gz has 1 lines, and .*_ccat_train.* 2 rows",
        ),
    ],
)
def test_a_file_that_is_something_else_is_named(
    name: str, content: bytes | str, complaint: str, tmp_path: Path
) -> None:
    complete(tmp_path)
    put(tmp_path, name, content)
    with pytest.raises(MissingDataError, match=complaint):
        READS[name](Sets(tmp_path))


def test_files_are_compared_when_they_are_read(tmp_path: Path) -> None:
    sets = complete(tmp_path)
    for read in READS.values():
        read(sets)
    assert sets.other[CCAT.format("train")] == (
        f"{CCAT.format('train')}: 2 rows where the committed page has 17,189"
    )
    assert set(READS) <= set(sets.other)
