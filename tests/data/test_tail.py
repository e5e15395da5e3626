"""Files that grow and are rotated, as topics: law 13 for them."""

import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import thresher
from tests.test_law_of_continuing import check_same
from tests.test_law_of_topics import lines_of, trained
from thresher import DataError, Model
from thresher.data.files.topic_lines import TopicFile
from thresher.data.files.topics import Extent, settle_topic

pytestmark = pytest.mark.usefixtures("plainly")
NAME = "clicks.jsonl"


class Growing:
    """A file of lines that a program appends to, and what it has appended."""

    def __init__(self, folder: Path) -> None:
        self.path, self.all = folder / NAME, b""

    def append(self, text: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(text)
        self.all += text

    def rename(self, to: str) -> None:
        self.path.rename(self.path.with_name(to))

    def copy_and_truncate(self, to: str) -> None:
        shutil.copy2(self.path, self.path.with_name(to))
        os.truncate(self.path, 0)


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


def read(growing: Growing, *earlier: Extent, start: str = "") -> tuple[bytes, Extent]:
    name = settle_topic(f"tail:{growing.path}{start}", earlier)
    with TopicFile(name) as file:
        return file.read(), name.extent


def test_a_growing_file_is_a_file(growing: Growing, tmp_path: Path) -> None:
    """Cut anywhere, also within lines: a line counts once its newline is there."""
    text = b"".join(one + b"\n" for one in lines_of("jsonl", 1))
    model: Model | None = None
    for begin, end in pairwise([0, 1500, 1501, 3000, len(text)]):
        growing.append(text[begin:end])
        model = trained(f"tail:{growing.path}", "jsonl", "ftrl", model)
    (whole := tmp_path / "whole.jsonl").write_bytes(text)
    assert isinstance(model, Model)
    check_same(model, thresher.train(whole, rule="ftrl", passes=1))
    assert model.record.topics[0].end == {NAME: len(text)}
    assert thresher.evaluate(model, f"tail:{growing.path}") == thresher.evaluate(model, whole)


ROTATED: list[tuple[Callable[[Growing, str], None], list[str]]] = [
    (Growing.rename, ["clicks.jsonl.1"]),
    (Growing.copy_and_truncate, ["clicks.jsonl.1"]),
    (Growing.rename, ["clicks-20261101.jsonl", "clicks-20261102.jsonl", "clicks-20261103.jsonl"]),
    (Growing.copy_and_truncate, ["clicks.jsonl.2026-11-01T00:00", "clicks.jsonl.2026-11-02T00:00"]),
]


@pytest.mark.parametrize(("rotate", "names"), ROTATED)
def test_rotation(rotate: Callable[[Growing, str], None], names: list[str], growing: Growing) -> None:
    """The rest of what was read before, then files rotated since, then the new one."""
    growing.append(b"a\nb\nc")
    found, extent = read(growing)
    assert found == b"a\nb\n"
    for k, name in enumerate(names):
        growing.append(b"d\ne\n%d" % k)
        rotate(growing, name)
        os.utime(growing.path.with_name(name), (k, k))
    growing.path.with_name("clicks.jsonl.bak").write_bytes(b"not this\n")
    growing.path.with_name("clicks.jsonl.model").write_bytes(b"nor this\n")
    growing.append(b"x\ny")
    more, after = read(growing, extent)
    lines = b"".join(b"%sd\ne\n%d\n" % (b"c" * (k == 0), k) for k in range(len(names)))
    assert (more, [*after.begin]) == (lines + b"x\n", [*names, NAME])
    growing.append(b"z\n")
    assert read(growing, after) == (
        b"yz\n",
        after._replace(begin={NAME: 2}, end={NAME: 5}, id=read(growing)[1].id, order=(NAME,)),
    )


def stored(extent: Extent) -> Extent:
    """As a header has it, whose names are sorted."""
    begin, end = ({one: ends[one] for one in sorted(ends)} for ends in (extent.begin, extent.end))
    return extent._replace(begin=begin, end=end)


def test_rotation_between_any_two_runs(growing: Growing) -> None:
    """Also where the new file is still empty, or has another spelling, as files keep what was read."""
    growing.append(b"a\n")
    found, extent = read(growing)
    for k in range(4):
        growing.append(b"b%d\n" % k)
        growing.rename(f"{NAME}-2026110{k}")
        os.utime(growing.path.with_name(f"{NAME}-2026110{k}"), (k, k))
        growing.append(b"" if k % 2 else b"c%d\n" % k)
        if k == 3:
            growing.path = growing.path.parent / "." / ".." / growing.path.parent.name / NAME
        more, extent = read(growing, stored(extent))
        found += more
    assert found == growing.all


def test_another_log_is_not_a_rotated_one(growing: Growing) -> None:
    growing.append(b"a\n")
    extent = read(growing)[1]
    growing.rename("clicks-20261101.jsonl")
    growing.append(b"b\n")
    for other in ("clicks2.jsonl", "clicks-2.jsonl", "clicks_3.jsonl"):
        growing.path.with_name(other).write_bytes(b"not this\n")
    assert read(growing, stored(extent))[0] == b"b\n"


def test_a_file_that_is_gone(growing: Growing) -> None:
    """What was read is neither there nor beside: refused, unless the new one is to be begun."""
    growing.append(b"a\nb\n")
    extent = read(growing)[1]
    for text in (b"c\n", b"c\nd\ne\n", b"a\n"):
        growing.path.write_bytes(text)
        with pytest.raises(DataError, match=r"clicks.jsonl: .* byte 4, .*\?from=earliest"):
            read(growing, extent)
        with pytest.warns(UserWarning, match="byte 4"):
            assert read(growing, extent, start="?from=earliest")[0] == text
        with pytest.warns(UserWarning, match="byte 4"):
            assert read(growing, extent, start="?from=latest")[0] == b""
    with pytest.raises(DataError, match="it has no times"):
        read(growing, start="?from=2026-11-01")
    growing.path.unlink()
    with pytest.raises(DataError, match="no such file"):
        read(growing, extent)


LACKING: list[tuple[list[str], str]] = [
    (["clicks.jsonl.2", "clicks.jsonl.1"], "clicks.jsonl.1"),
    (["clicks.jsonl.3", "clicks.jsonl.2", "clicks.jsonl.1"], "clicks.jsonl.2"),
    (["clicks.jsonl.7", "clicks.jsonl.8", "clicks.jsonl.9"], "clicks.jsonl.8"),
    (["clicks-20261101.jsonl", "clicks-20261102.jsonl"], "clicks-20261102.jsonl"),
]


@pytest.mark.parametrize(("names", "lost"), LACKING)
def test_a_file_between_that_is_packed(names: list[str], lost: str, growing: Growing) -> None:
    """Refused, unless what is there is to be read without it; and nothing is refused once it is unpacked."""
    growing.append(b"a\n")
    extent = read(growing)[1]
    older = growing.path.with_name("clicks-20261031.jsonl.gz"), growing.path.with_name(f"{NAME}.10.gz")
    for one in older:
        one.write_bytes(b"learned long ago")
    for k, name in enumerate(names):
        growing.append(b"%d\n" % k)
        growing.rename(name)
        os.utime(growing.path.with_name(name), (k, k))
    growing.append(b"z\n")
    plain, packed = growing.path.with_name(lost), growing.path.with_name(f"{lost}.gz")
    plain.rename(packed)
    why = rf"after {names[0]} is packed or gone: unpack it; \?from=earliest"
    with pytest.raises(DataError, match=why):
        read(growing, extent)
    with pytest.warns(UserWarning, match="packed or gone"):
        there = read(growing, extent, start="?from=earliest")[0]
    assert there == growing.all[2:].replace(b"%d\n" % names.index(lost), b"")
    with pytest.warns(UserWarning, match="packed or gone"):
        assert read(growing, extent, start="?from=latest")[0] == b""
    shutil.copy2(packed, plain)  # as gunzip --keep does
    assert read(growing, extent)[0] == growing.all[2:]


def test_two_files_that_begin_with_what_was_learned(growing: Growing) -> None:
    """Is the older one a copy, or the newer one another file? Refused, as bytes do not tell."""
    growing.append(b"a\n")
    extent = read(growing)[1]
    growing.append(b"b\n")
    growing.rename(f"{NAME}.1")
    growing.append(b"a\nc\n")
    with pytest.raises(DataError, match=rf"{NAME}.1 and {NAME} both begin .* byte 2: if .*remove"):
        read(growing, extent)
    with pytest.warns(UserWarning, match="both begin"):
        assert read(growing, extent, start="?from=earliest")[0] == b"b\na\nc\n"
    growing.path.with_name(f"{NAME}.1").unlink()
    assert read(growing, extent)[0] == b"c\n"


def test_a_link_to_the_newest(growing: Growing) -> None:
    """The same file under two names is one, and read once."""
    growing.append(b"a\n")
    growing.rename("clicks-20261101.jsonl")
    growing.path.symlink_to("clicks-20261101.jsonl")
    extent = read(growing)[1]
    growing.append(b"b\n")
    growing.path.unlink()
    growing.path.symlink_to("clicks-20261102.jsonl")
    growing.append(b"c\n")
    assert read(growing, extent)[0] == b"b\nc\n"


def test_an_option_given_twice(growing: Growing) -> None:
    growing.append(b"a\n")
    with pytest.raises(DataError, match=f"{NAME}: the option 'from' is given twice"):
        read(growing, start="?from=latest&from=earliest")


ODD = (b"\xff\0", b"\x1f\x8b", b"BZh", b"\0" * 9)
ROW = b'{"label": 1, "size": 1}'


@pytest.mark.parametrize(("form", "row"), [("jsonl", ROW), ("svmlight", b"1 1:1")])
@pytest.mark.parametrize("odd", ODD)
def test_lines_like_those_of_binary_files(odd: bytes, form: str, row: bytes, growing: Growing) -> None:
    """A file begins with its first line, but a run anywhere: it is a bad line like others."""
    growing.append(row + b"\n" + row.replace(b"1", b"0", 1) + b"\n")
    model = thresher.train(name := f"tail:{growing.path}", format=form, rule="ftrl")
    growing.append(odd + b"\n" + row + b"\n")
    with pytest.raises(DataError, match=f"{NAME}, byte {2 * len(row) + 2}:1:"):
        thresher.train(name, continue_from=model)
    assert thresher.train(name, continue_from=model, on_error="skip").examples == 3


def test_an_edit_is_noticed(growing: Growing) -> None:
    growing.append(b"a\nb\n" * 5000)
    extent = read(growing)[1]
    with growing.path.open("r+b") as file:
        file.seek(19_998)
        file.write(b"c")
    with pytest.raises(DataError, match="byte 20,000"):
        read(growing, extent)


def test_where_a_bad_line_is(growing: Growing) -> None:
    growing.append(b"\n".join([*lines_of("jsonl", 2)[:30], b"oops", b""]))
    place = growing.all.index(b"oops")
    with pytest.raises(DataError, match=f"{NAME}, {NAME}, byte {place:,}:1:1: expected"):
        thresher.train(f"tail:{growing.path}")
