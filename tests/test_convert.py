"""Published files become files that the experiments of the papers read."""

import bz2
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from benchmarks.corpora import corpora
from experiments.papers.convert import UCI, main
from experiments.papers.digits import MNIST
from experiments.papers.sets import Sets
from thresher.data import Chunk

ONES = ",1" * 29
# set -> two lines of its published file, and the same rows as label and features
CASES = {
    "spambase": (
        ["0," * 55 + "2.5,7,1", "0.25," + "0," * 56 + "0"],
        ["1 56:2.5 57:7", "-1 1:0.25"],
    ),
    "krvskp": (
        ["f" + ",n" * 35 + ",won", "t" + ",n" * 35 + ",nowin"],
        ["1 1:1" + "".join(f" {k}:1" for k in range(3, 38)), "-1" + "".join(f" {k}:1" for k in range(2, 38))],
    ),
    "shrooms": (
        ["p" + ",x" * 21 + ",u", "e" + ",x" * 21 + ",?"],
        [
            "1" + "".join(f" {k}:1" for k in [*range(1, 22), 23]),
            "-1" + "".join(f" {k}:1" for k in range(1, 23)),
        ],
    ),
    "ad": (
        [" 125, 12.5,   1.0,1" + ",0" * 1553 + ",1,ad.", "   ?,   ?,     ?,?,1" + ",0" * 1553 + ",nonad."],
        ["1 1:125 2:12.5 3:1 4:1 1558:1", "-1 5:1"],
    ),
    # ids: 1 "A1=?", 2 "A1=b", 3 A2, 4 A3, 5 "A4=u", ... 10 "A9=f", 11 "A9=t", ..., 16 A14, 17 A15
    "crx": (
        ["b,30.83,0,u,g,w,v,1.25,t,t,01,f,g,00202,0,+", "?,?,4,u,g,w,v,2,f,t,1,f,g,?,7,-"],
        [
            "1 2:1 3:30.83 5:1 6:1 7:1 8:1 9:1.25 11:1 12:1 13:1 14:1 15:1 16:202",
            "-1 1:1 4:4 5:1 6:1 7:1 8:1 9:2 10:1 12:1 13:1 14:1 15:1 17:7",
        ],
    ),
    "housing": (
        [" 0.5  18.00" + " 0" * 10 + "  4.98  24.00", " 0.0" * 13 + " 21.5"],
        ["24 1:0.5 2:18 13:4.98", "21.5"],
    ),
    "magic04": (
        ["28.7967,16.0021,2.6449,0,0.1982,27.7004,-22.011,-8.2027,40.092,81.8828,g", "0" + ",0" * 8 + ",2,h"],
        [
            "1 1:28.7967 2:16.0021 3:2.6449 5:0.1982 6:27.7004 7:-22.011 8:-8.2027 9:40.092 10:81.8828",
            "-1 10:2",
        ],
    ),
    "wbc": (
        ["1000025,5,1,0,1,2,?,3,1,1,2", "7,1,0,0,0,0,9,0,0,0,4"],
        ["-1 1:5 2:1 4:1 5:2 7:3 8:1 9:1", "1 1:1 6:9"],
    ),
    "wdbc": (
        ["842302,M,4" + ONES, "8,B" + ",0" * 29 + ",3"],
        ["1 1:4" + "".join(f" {k}:1" for k in range(2, 31)), "-1 30:3"],
    ),
    "wpbc": (["119,N,31" + ",0" * 31 + ",?", "8,R,61" + ",0" * 31 + ",2"], ["-1 1:31", "1 1:61 33:2"]),
    "zoo": (["bear,1" + ",0" * 15 + ",1", "wasp" + ",0" * 12 + ",6,0,0,0,6"], ["1 1:1", "6 13:6"]),
}


def as_text(chunk: Chunk) -> list[str]:
    """The rows as svmlight."""
    rows = []
    for i in range(len(chunk)):
        inside = slice(chunk.indptr[i], chunk.indptr[i + 1])
        pairs = zip(chunk.keys[inside], chunk.values[inside], strict=True)
        rows.append(" ".join([f"{chunk.labels[i]:g}", *(f"{key}:{value:g}" for key, value in pairs)]))
    return rows


def convert(folder: Path, kind: str, *words: str | Path) -> Sets:
    """Convert, and open the folder as the pages do."""
    main([kind, *map(str, words), "--data", str(folder)])
    return Sets(folder)


@pytest.mark.parametrize("name", UCI)
def test_uci_files_become_what_the_pages_read(name: str, tmp_path: Path) -> None:
    lines, rows = CASES[name]
    given = tmp_path / UCI[name].file
    given.write_text("\n".join(lines) + "\n\n")
    sets = convert(tmp_path, "uci", given)
    if name == "zoo":
        found = sets.read("uci/zoo/zoo.svm.gz", "classes:1-7")
    else:
        found = sets.uci(name)
    assert sorted(as_text(found)) == sorted(rows)


def test_rows_are_mixed_the_same_way_each_time(tmp_path: Path) -> None:
    given = tmp_path / "spambase.data"
    given.write_text("".join(f"{k}{',0' * 56},{int(k < 50)}\n" for k in range(1, 101)))
    convert(tmp_path, "uci", given)
    target = tmp_path / "uci/spambase/spambase.svm.gz"
    before = target.read_bytes()
    convert(tmp_path, "uci", given)
    assert target.read_bytes() == before
    labels = [line.split()[0] for line in gzip.decompress(before).decode().splitlines()]
    assert labels.count("+1") == 49
    assert 15 < labels[:50].count("+1") < 35


def images(count: int) -> bytes:
    """An idx file: image k has the pixel k + 1 at place k."""
    pixels = np.zeros((count, 784), np.uint8)
    pixels[np.arange(count), np.arange(count)] = np.arange(count) + 1
    return struct.pack(">4I", 0x803, count, 28, 28) + pixels.tobytes()


def digits(count: int) -> bytes:
    """An idx file of labels 0, 1, ..."""
    return struct.pack(">2I", 0x801, count) + bytes(range(count))


def test_mnist_is_checked_and_read(tmp_path: Path) -> None:
    given = [tmp_path / f"{name}.bz2" for name in MNIST]
    for path in given:
        path.write_bytes(bz2.compress(images(3) if "idx3" in path.name else digits(3)))
    convert(tmp_path, "mnist", *given)
    (one,) = (corpus for corpus in corpora() if corpus.name == "MNIST")
    assert one.found(tmp_path)
    for part in one.load(tmp_path):
        assert as_text(part) == ["1 0:1", "2 1:2", "3 2:3"]


def test_stories_with_topics_become_ccat_and_topics(tmp_path: Path) -> None:
    """LIBSVM's files number the topics; a story that was there before is left out."""
    (tmp_path / "names.txt").write_text("C15\nCCAT\nGCAT\n")
    (tmp_path / "train.svm").write_text("0,1 3:0.5 7:0.25\n2 4:1\n2 4:1\n")
    (tmp_path / "test.svm").write_text(" 9:1\n2 4:1\n1,2 8:1\n")
    rcv1 = (
        "--train",
        tmp_path / "train.svm",
        "--test",
        tmp_path / "test.svm",
        "--topics",
        tmp_path / "names.txt",
    )
    sets = convert(tmp_path, "rcv1", *rcv1)
    train, test = sets.rcv1()
    assert sorted(as_text(train)) == ["-1 4:1", "1 3:0.5 7:0.25"]
    assert sorted(as_text(test)) == ["-1 9:1", "1 8:1"]
    train, test = sets.rcv1("GCAT")
    assert sorted(as_text(train)) == ["-1 3:0.5 7:0.25", "1 4:1"]
    assert sorted(as_text(test)) == ["-1 9:1", "1 8:1"]


def test_vectors_of_rcv1_find_their_topics_by_document(tmp_path: Path) -> None:
    (tmp_path / "rcv1-v2.topics.qrels").write_text("CCAT 2286 1\nGCAT 2287 1\nC15 2286 1\nMCAT 2288 1\n")
    (tmp_path / "train.dat").write_text("2286  3:0.5 7:0.25\n2287  4:1\n")
    (tmp_path / "test.dat").write_text("2288  4:0.5\n")
    topics = tmp_path / "rcv1-v2.topics.qrels"
    rcv1 = "--train", tmp_path / "train.dat", "--test", tmp_path / "test.dat", "--topics", topics
    sets = convert(tmp_path, "rcv1", *rcv1)
    assert sorted(as_text(sets.rcv1().train)) == ["-1 4:1", "1 3:0.5 7:0.25"]
    assert as_text(sets.rcv1("MCAT").test) == ["1 4:0.5"]


def test_comments_of_svm_light_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "train.dat").write_text("# a comment\n1 6:0.5 9:0.25 # and one more\n-1 7:1\n")
    sets = convert(tmp_path, "acq", tmp_path / "train.dat")
    assert as_text(sets.read("reuters/acq_train.dat.gz")) == ["1 6:0.5 9:0.25", "-1 7:1"]


NO_PAIRS = (
    b"3:e.E+-",
    b"3:nan",
    b"3:inf",
    b"3:1_0",
    b"3:.",
    b"3:",
    b"-3:1",
    b"3:0.57:0.25",
    b"3:1,4:1",
    b"3:0x1",
)
NO_DIGITS = [
    # the product of these sizes is 2^64, which is 0 for 64 bits
    ("images-idx3", struct.pack(">4I", 0x803, 2**30, 2**17, 2**17), "131072 x 131072 pixels, not 28 x 28"),
    ("images-idx3", struct.pack(">4I", 0x803, 784, 1, 1) + bytes(784), "1 x 1 pixels, not 28 x 28"),
    ("images-idx3", struct.pack(">4I", 0x803, 2, 10, 10) + bytes(200), "10 x 10 pixels, not 28 x 28"),
    ("images-idx3", struct.pack(">4I", 0x803, 0, 28, 28), "0 images, not 1 to"),
    ("images-idx3", struct.pack(">4I", 0x803, 2**32 - 1, 28, 28), "4,294,967,295 images, not 1 to"),
    ("labels-idx1", struct.pack(">2I", 0x801, 2) + bytes([1, 255]), "a label 255; labels are 0 to 9"),
    ("labels-idx1", struct.pack(">2I", 0x801, 2) + bytes(3), "more bytes of data; its header says 2"),
    ("labels-idx1", struct.pack(">2I", 0x801, 3) + bytes(2), "2 bytes of data; its header says 3"),
]


@pytest.mark.parametrize(
    ("kind", "name", "content", "complaint"),
    [
        ("uci", "iris.data", b"1,2\n", "the known files are ad.data, "),
        ("uci", "wdbc.data.gz", b"1,2\n", "Not a gzipped file"),
        ("uci", "wdbc.data.gz", gzip.compress(b"1,2\n", mtime=0)[:-6], "damaged or cut short"),
        ("uci", "wdbc.data.bz2", bz2.compress(b"1,2\n")[:-6], "damaged or cut short"),
        ("uci", "wdbc.data.xz", b"1,2\n", "damaged or cut short"),
        ("uci", "wdbc.data", b"\n", "wdbc.data: no rows"),
        ("uci", "wdbc.data", b"8,X" + b",0" * 30, "line 1: the label is 'X', not M or B"),
        ("uci", "zoo.data", b"\nbear,1,0\n", "line 2: 3 columns, not 18"),
        ("uci", "housing.data", b"1 " * 12 + b"x 2\n", "line 1: 'x' is not a number"),
        ("mnist", "train-images.idx", b"", "the files of MNIST are train-images-idx3-ubyte, "),
        ("mnist", "t10k-labels-idx1-ubyte", images(1), "not an idx file of labels"),
        (
            "mnist",
            "t10k-images-idx3-ubyte",
            images(2)[:-1],
            "1,567 bytes of data; its header says 1,568",
        ),
        ("acq", "train.dat", b"1 3:1\n2 4:1\n", "line 2: the label is '2', not \\+1 or -1"),
        ("acq", "train.dat", b"1 3:1\n-1 4;1\n", "line 2: the features are not id:value pairs"),
        ("acq", "train.dat", b"", "train.dat: no rows"),
        ("acq", "other.dat", b"", "are train.dat and test.dat"),
        *(
            ("acq", "train.dat", b"1 3:1\n-1 " + pair + b"\n", "line 2: the features are not")
            for pair in NO_PAIRS
        ),
        ("acq", "train.dat", b"1 3:1e999\n", "line 1: '1e999' is too large for float32"),
        ("acq", "train.dat", b"1 3:-1e39\n", "line 1: '-1e39' is too large for float32"),
        (
            "acq",
            "train.dat",
            b"1 18446744073709551616:1\n",
            r"line 1: the id 18446744073709551616 is not below",
        ),
        *(
            ("uci", "housing.data", b"1 " * 12 + cell + b" 2\n", f"line 1: '{cell.decode()}' is ")
            for cell in (b"nan", b"inf", b"-Infinity", b"1e400", b"1_0", b"0x1", b"1e39")
        ),
        ("uci", "housing.data", b"1 " * 13 + b"nan\n", "line 1: 'nan' is not a number"),
        (
            "uci",
            "zoo.data",
            b"bear,1" + b",0" * 15 + b",9\n",
            "line 1: the label is '9', not a number from 1 to 7",
        ),
        *(("mnist", f"t10k-{name}-ubyte", content, why) for name, content, why in NO_DIGITS),
    ],
)
def test_a_file_that_is_something_else_is_refused(
    kind: str, name: str, content: bytes, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit, match=complaint):
        convert(tmp_path / "out", kind, tmp_path / name)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.dat").write_text("1 3:1\n")
    with pytest.raises(SystemExit, match=r"train.dat.*: (Not a directory|File exists)"):
        convert(tmp_path / "train.dat", "acq", tmp_path / "train.dat")


def given_rcv1(folder: Path, topics: str, train: str, test: str) -> tuple[str | Path, ...]:
    """The options for files of these contents, the topics under a name that does not tell their format."""
    for name, content in (("topics.txt", topics), ("train.svm", train), ("test.svm", test)):
        (folder / name).write_text(content)
    return (
        *("--train", folder / "train.svm"),
        *("--test", folder / "test.svm"),
        *("--topics", folder / "topics.txt"),
    )


LIST, STORIES, TESTS = "C11\nC12\nGCAT\nCCAT\n", "3 3:0.5\n0,2 4:1\n", "3 9:1\n"


@pytest.mark.parametrize(
    ("topics", "train", "complaint"),
    [
        (LIST, "-1 3:0.5\n+1 4:1\n", "train.svm, line 1: '-1' are not labels below 4"),
        (LIST, "3 3:0.5\n+1 4:1\n", "train.svm, line 2: '[+]1' are not labels below 4"),
        (LIST, "4 3:0.5\n", "train.svm, line 1: '4' are not labels below 4"),
        (LIST, "1,,2 3:0.5\n", "train.svm, line 1: '1,,2' are not labels"),
        (LIST.lower(), STORIES, "topics.txt: the topic CCAT, in capitals, is not among the 4 topics"),
        (
            LIST.replace("CCAT", "CCAT  x"),
            STORIES,
            "topics.txt, line 4: 'CCAT  x' is not the name of a topic",
        ),
        ("# topics\n" + LIST, STORIES, "topics.txt, line 1: '# topics' is not the name of a topic"),
        ("C11\n\nCCAT\n", STORIES, "topics.txt, line 2: '' is not the name of a topic"),
        ("CCAT\nCCAT\n", STORIES, "topics.txt, line 2: CCAT is on two lines"),
        ("", STORIES, "topics.txt: the topic CCAT"),
        ("GCAT 2286 1\n", "2286 3:1\n", "topics.txt: the topic CCAT"),
        ("CCAT 2286 1\nGCAT 2287 0\n", "2286 3:1\n", "topics.txt, line 2: not a topic, a document and 1"),
        (LIST, "0 3:0.5\n", "none of the stories has the topic CCAT"),
        (LIST, "3 3:0.5 4:1e40\n", "train.svm, line 1: '1e40' is too large"),
    ],
)
def test_stories_whose_topics_are_in_doubt_are_refused(
    topics: str, train: str, complaint: str, tmp_path: Path
) -> None:
    words = given_rcv1(tmp_path, topics, train, "0 9:1\n")
    with pytest.raises(SystemExit, match=complaint):
        convert(tmp_path / "out", "rcv1", *words)
    assert not (tmp_path / "out").exists()


def test_the_format_of_topics_is_known_by_content(tmp_path: Path) -> None:
    topics = "CCAT 2286 1\nGCAT 2287 1\nCCAT 2288 1\n"
    words = given_rcv1(tmp_path, topics, "2286  3:0.5\n2287  4:1\n", "2288  9:1\n")
    sets = convert(tmp_path / "out", "rcv1", *words)
    assert sorted(as_text(sets.rcv1().train)) == ["-1 4:1", "1 3:0.5"]
    assert as_text(sets.rcv1().test) == ["1 9:1"]


def test_nothing_changes_if_a_later_file_is_bad(tmp_path: Path) -> None:
    convert(tmp_path / "out", "rcv1", *given_rcv1(tmp_path, LIST, STORIES, TESTS))
    before = {path: path.read_bytes() for path in (tmp_path / "out/rcv1").iterdir()}
    assert len(before) == 4
    words = given_rcv1(tmp_path, LIST, "3 7:0.5\n", "3 9;1\n")
    with pytest.raises(SystemExit, match=r"test\.svm, line 1"):
        convert(tmp_path / "out", "rcv1", *words)
    assert {path: path.read_bytes() for path in (tmp_path / "out/rcv1").iterdir()} == before


def test_nothing_changes_if_a_file_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert(tmp_path / "out", "rcv1", *given_rcv1(tmp_path, LIST, STORIES, TESTS))
    before = {path: path.read_bytes() for path in (tmp_path / "out/rcv1").iterdir()}
    synced = iter(range(9))

    def sync(descriptor: int) -> None:
        if next(synced) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("experiments.papers.together.os.fsync", sync)
    with pytest.raises(SystemExit, match=r"rcv1_.*\.gz: No space left on device"):
        convert(tmp_path / "out", "rcv1", *given_rcv1(tmp_path, LIST, "3 7:0.5\n", TESTS))
    assert {path: path.read_bytes() for path in (tmp_path / "out/rcv1").iterdir()} == before


@pytest.mark.parametrize(
    "tail", [":111" * 26 + " x", ":1" + "1" * 20_000 + "x", " 2:1" * 5_000 + " x", " " * 20_000 + "x"]
)
def test_bad_features_are_refused_in_a_time_in_proportion_to_them(tail: str, tmp_path: Path) -> None:
    (tmp_path / "train.dat").write_text(f"1 1{tail}\n")
    with pytest.raises(SystemExit, match="line 1: the features are not id:value pairs"):
        convert(tmp_path / "out", "acq", tmp_path / "train.dat")


def test_a_byte_order_mark_is_no_part_of_the_first_cell(tmp_path: Path) -> None:
    lines, rows = CASES["krvskp"]
    (tmp_path / "kr-vs-kp.data").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert sorted(as_text(convert(tmp_path, "uci", tmp_path / "kr-vs-kp.data").uci("krvskp"))) == sorted(rows)


def test_as_many_images_as_labels_are_needed(tmp_path: Path) -> None:
    given = [tmp_path / name for name in MNIST[:2]]
    given[0].write_bytes(images(3))
    given[1].write_bytes(digits(5))
    with pytest.raises(SystemExit, match=r"images.* has 3 and .*labels.* has 5; convert both together"):
        convert(tmp_path / "out", "mnist", *given)
    assert not (tmp_path / "out").exists()
    convert(tmp_path / "out", "mnist", given[0])
    with pytest.raises(SystemExit, match=r"has 3 and .* has 5"):
        convert(tmp_path / "out", "mnist", given[1])


def test_only_the_declared_bytes_are_read(tmp_path: Path) -> None:
    """What follows a file of two labels is damaged, and far too long to be read."""
    packed = gzip.compress(digits(2) + bytes(1 << 26))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(SystemExit, match="more bytes of data; its header says 2"):
        convert(tmp_path / "out", "mnist", tmp_path / "t10k-labels-idx1-ubyte.gz")
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(SystemExit, match="not an idx file of images"):
        convert(tmp_path / "out", "mnist", tmp_path / "t10k-images-idx3-ubyte.gz")
