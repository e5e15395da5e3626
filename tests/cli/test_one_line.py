"""A message is one line of printable characters, whatever names of files and data hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from thresher.data import DataError, open_source
from thresher.data.errors import printable
from thresher.learning.files.model_file import ModelFileError, load_readout

ODD = "odd\nname\x1b[31m\r\u2028.svm"
WRITTEN = r"odd\nname\x1b[31m\r\u2028.svm"


def test_printable_text_stays_as_it_is() -> None:
    assert printable("größe.svm: 'a b' \\n") == "größe.svm: 'a b' \\n"
    assert printable(ODD) == WRITTEN
    assert printable(os.fsdecode(b"\xff")) == r"\udcff"


def test_messages_escape_the_names_of_files(thresher: Thresher) -> None:
    Path(ODD).write_text("1 5:x\n1 1:1\n")
    (bad := Path("bad\nmodel")).write_bytes(b"\x10\0\0\0\0\0\0\0" + b"x" * 40)
    commands = [
        ["train", ODD, "-m", "m"],
        ["train", "no\nsuch.svm", "-m", "m"],
        ["train", "train.svm", "-m", "no\nfolder/m"],
        ["train", "train.svm", "-m", "m", "--rule", "a\nb"],
        ["train", "train.svm", "-m", "m", "--passes", "a\nb"],
        ["train", "train.svm", "-m", "m", "--label", "a\nb"],
        ["evaluate", "bad\nmodel", "train.svm"],
        ["predict", "no\nmodel", "train.svm"],
    ]
    for command in commands:
        ran = thresher(*command)
        assert ran.status in (1, 2), command
        assert ran.out == ""
        assert ran.err.endswith("\n")
        assert ran.err[:-1].isprintable(), ran.err
    assert f"thresher: {WRITTEN}:1:5: expected" in thresher("train", ODD, "-m", "m").err
    with pytest.raises(DataError) as caught:
        list(open_source(ODD).chunks())
    assert str(caught.value).startswith(WRITTEN)
    with pytest.raises(ModelFileError, match=r"bad\\nmodel"):
        load_readout(bad)


def test_what_is_skipped_and_where_the_model_is_stay_on_their_lines(thresher: Thresher) -> None:
    Path(ODD).write_text("1 5:x\n1 1:1\n")
    ran = thresher("train", ODD, "-m", "my\nmodel", "-q", "--on-error", "skip")
    assert ran.status == 0
    assert ran.out.splitlines()[-1].endswith(r" my\nmodel")
    assert ran.err.splitlines() == [
        "skipped 1 bad line of 2:",
        f"  {WRITTEN}:1:5: expected a number after ':', found 'x'",
    ]
    assert thresher("train", ODD, "-m", os.fsdecode(b"m\xff"), "-q", "--on-error", "skip").status == 0
