"""Every error a user can cause: one printable line on standard error, the right exit status, no traceback."""

import gzip
import os
from pathlib import Path

import pytest

from tests.cli.conftest import ROWS, Thresher
from tests.learning.test_crafted import learned, nested
from tests.plain import not_compiled
from thresher.cli.errors import FAILED
from thresher.data import DataError, open_source
from thresher.data.errors import printable
from thresher.learning.files import model_file
from thresher.learning.files.model_file import ModelFileError, load_predictor

USAGE = {
    "train train.svm -m m --rule ftr": "did you mean ftrl?",
    "export model --to javascript": "onnx or json, not 'javascript'; did you mean js?",
    "train ab.csv -m m --by=": "--by: expected the name of a column, not ''",
    "train ab.csv -m m --where=": "--where: expected a condition, such as \"day < 20\", not ''",
    "evaluate model ab.csv --where=": "--where: expected a condition, such as \"day < 20\", not ''",
    "choose models -4 -m m": "no such option: -4; a value that begins with a dash comes after --",
    "name model train.svm -m m": "no such option: -m; did you mean -o?",
    "train ab.csv -m m --group=": "--group: expected the name or position of a column, not ''",
    "train train.svm -m m --order random": "not 'random'; did you mean once?",
    "train train.svm -m m --l1 1_0": "--l1: expected a number, not '1_0'",
    "train train.svm -m m --l1 1:9:3": "'1:9:3'; for several values, see thresher path and tune",
    "path train.svm -m f --l1 1_0:20:3": "must be ascending numbers above 0, not '1_0:20:3'",
    "-m m train train.svm": "no such option: -m; options come after the name of the command",
    "evaluate train.svm model": "train.svm is not a model, model is one: the model comes first",
    "train train.svm -m ab.csv": "ab.csv exists and is not a model: name another file, or remove it",
    "name model train.svm -o ab.csv": "ab.csv exists and is not a model",
    "train train.svm -m m --curve ab.csv": "ab.csv exists and is not a curve",
    "predict model test.svm -o ab.csv": "ab.csv exists and is not a file of predictions",
    "weights model --choose 1": "no such option: --choose; thresher choose MODELS WHICH -m MODEL takes one",
    "info model more": "unexpected argument more (see thresher info --help)",
    "train train.svm -m train.svm": "train.svm: named twice",
    "train ./*.svm -m train.svm": "train.svm exists and is not a model",
    "train train.svm -m m --curve m": "m: named twice",
    "train train.svm -m test.svm --holdout test.svm": "test.svm: named twice",
    "train - -m m --holdout -": "both the data and the hold-out",
    "predict model test.svm -o test.svm": "test.svm: named twice",
}
FAILURES = {
    "train none*.svm -m m": "none*.svm: no file matches",
    "train . -m m": "a directory",
    "train empty -m m": "empty: the file is empty",
    "train blank -m m": "no examples",
    "train binary -m m": "binary: a binary file",
    "train cut.gz -m m": "cut.gz: cannot be read (damaged or cut off)",
    "train damaged.gz -m m": "damaged.gz",
    "train bad.svm -m m": "bad.svm:2:5: expected a finite number",
    "train ab.csv -m m --label Label": "ab.csv: no column is called 'Label'; did you mean 'label'?",
    "train train.svm –rule ftrl -m m": "–rule: No such file or directory; did you mean --rule, with hyphens?",
    "train label.svm -m m": "label.svm:1:1: expected a label -1, 0 or 1",
    "train label.svm -m m --loss poisson": "label.svm:2:1: expected a label that is not negative",
    "train train.svm -m none/m": "no such directory",
    "train train.svm -m .": "a directory",
    "train train.svm -m m --curve none/c": "no such directory",
    "train train.svm -m m --holdout none.svm": "none.svm: No such file",
    "path train.svm -m f --holdout binary": "binary: a binary file",
    "path train.svm -m f --holdout blank": "blank: no examples",
    "train train.svm -m m --on-error quarantine=none/q": "no such directory",
    "train ab.csv -m m --scale max-abs --interact a,b": "column 'a' is scaled by max-abs after interactions",
    "train ab.csv -m m --scale max-abs --interact b,*": "after interactions are computed ('*')",
    "train train.svm -m m --rule sgd --loss squared --rate constant:1e30": "finite after example 2: divide",
    "predict train.svm test.svm": "train.svm: not a thresher model",
    "predict empty test.svm": "empty: not a thresher model",
    "predict . test.svm": "a directory, pipe or device, not a model",
    "predict model test.svm -o none/p": "no such directory",
    "evaluate short test.svm": "short: a damaged or truncated model",
    "evaluate model bad.svm": "bad.svm:2:5: expected a finite number",
    "info train.svm": "train.svm: not a thresher model",
    "train model -m m": "model: a model of thresher, not data",
    "train model -m m --format csv --label y": "model: a model of thresher, not data",
    "evaluate model model": "model: a model of thresher, not data",
}


@pytest.fixture(scope="module")
def packed() -> bytes:
    return gzip.compress(b"".join(ROWS[:400]), compresslevel=1)


@pytest.fixture
def bad_files(folder: Path, model: Path, packed: bytes) -> None:
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    contents = {
        "empty": b"",
        "ab.csv": b"label,a,b\n1,2,x\n0,3,y\n",
        "old.csv": b"label,a,b\r1,2,x\r0,3,y\r",
        "blank": b"\n# nothing\n\n",
        "binary": bytes(range(256)) * 20,
        "cut.gz": packed[: len(packed) // 2],
        "damaged.gz": bytes(damaged),
        "bad.svm": b"1 1:2\n1 7:nan\n",
        "label.svm": b"7 1:1\n-3 1:1\n",
        "short": model.read_bytes()[:-9],
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)


@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize(("command", "text"), USAGE.items())
def test_wrong_usage(thresher: Thresher, command: str, text: str) -> None:
    check_error(thresher, command, text, 2)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize(("command", "text"), FAILURES.items())
def test_failure(thresher: Thresher, command: str, text: str, request: pytest.FixtureRequest) -> None:
    if "constant:1e30" in command:
        request.getfixturevalue("plainly")
    check_error(thresher, command, text, 1)


def check_error(thresher: Thresher, command: str, text: str, status: int) -> None:
    before = {p.name: p.read_bytes() for p in Path().iterdir() if p.is_file()}
    ran = thresher(f"{command} -q" if command.startswith(("train", "boost")) else command)
    assert (ran.status, ran.out) == (status, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("thresher: ")
    assert text in line
    assert {p.name: p.read_bytes() for p in Path().iterdir() if p.is_file()} == before


def test_help_without_arguments(thresher: Thresher) -> None:
    ran = thresher.ok("")
    for command in ("train", "predict", "evaluate", "weights", "info", "rules", "rates"):
        assert f"\n  {command} " in ran.out
    assert "..." not in ran.out.split("Commands:")[1]  # no summary is cut


def test_what_cannot_be_written_to_is_told_before_training(
    thresher: Thresher, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "closed").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed")
    ran = thresher("train train.svm -m closed/m")
    assert ran.status == 1
    (line,) = ran.err.splitlines()
    assert line.endswith("closed: not writable")


def test_an_error_of_our_own_is_not_hidden(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: object) -> list[str]:
        raise ZeroDivisionError

    monkeypatch.setattr("thresher.data.opening.expand", broken)
    with pytest.raises(ZeroDivisionError):
        thresher("train train.svm -m m")


def test_an_empty_name_is_no_file(thresher: Thresher) -> None:
    for words in ("train train.svm -m", "train train.svm -m m --curve", "predict m d -o"):
        ran = thresher(*words.split(), "")
        assert (ran.status, ": expected the name of a file, not ''" in ran.err) == (2, True), words


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
        load_predictor(bad)


def test_what_is_skipped_and_where_the_model_is_stay_on_their_lines(thresher: Thresher) -> None:
    Path(ODD).write_text("1 5:x\n1 1:1\n")
    ran = thresher.ok("train", ODD, "-m", "my\nmodel", "-q", "--on-error", "skip")
    assert ran.out.splitlines()[-1].endswith(r" my\nmodel")
    assert ran.err.splitlines() == [
        "skipped 1 bad line of 2:",
        f"  {WRITTEN}:1:5: expected a number after ':', found 'x'",
    ]
    assert thresher("train", ODD, "-m", os.fsdecode(b"m\xff"), "-q", "--on-error", "skip").status == 0


COMMANDS = (
    *("predict m test.svm", "evaluate m test.svm", "weights m", "info m", "name m train.svm"),
    "train train.svm -m m --resume",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_one_line(command: str, folder: Path, thresher: Thresher) -> None:
    with not_compiled():
        model = learned("ftrl:l1=0.01")
    head, tensors = model_file.header_of(model), model_file.tensors_of(model)
    short = {name: array[:0] for name, array in tensors.items()}
    for crafted, arrays in (
        ({**head, "recipe": {**head["recipe"], "loss": 7}}, tensors),
        (head, short),
        ({**head, "training": {}}, {}),
    ):
        for name in ("m", "m.checkpoint"):
            model_file.write(folder / name, crafted, arrays)
        ran = thresher(*command.split())
        assert ran.status == FAILED
        assert len(ran.err.splitlines()) == 1
        assert ran.err.startswith("thresher: m")
    for name in ("m", "m.checkpoint"):
        nested(folder / name, 10**5)
    if "--resume" in command:
        (folder / "m").unlink()  # or it would be refused as a file that is not a model
    assert "the header does not match its checksum" in thresher(*command.split()).err
