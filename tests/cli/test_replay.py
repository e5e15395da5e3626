"""``--passes auto`` and ``--replay`` on the command line."""

import io
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.conftest import Thresher
from tests.models import one_of
from tests.stopping import in_pass, once_learned, stopping
from thresher.parts.rules.ft_ftrl import FtFtrl

pytestmark = pytest.mark.usefixtures("narrow")
MADE = 5
"""Passes over the 200 rows"""


@pytest.fixture(autouse=True)
def automatic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FtFtrl, "AUTOMATIC", True)
    for module in ("learning.training.passes", "plans.tune"):
        monkeypatch.setattr(f"thresher.{module}.passes_for", lambda size: MADE)


def test_the_number_of_passes_is_shown_and_repeats_the_model(thresher: Thresher) -> None:
    ran = thresher.ok("train train.svm -m a --json")
    assert ran.json["passes"] == MADE
    (said,) = [line for line in ran.err.splitlines() if "replaying" in line]
    assert said == f"replaying 200 rows from memory, pass 2 of {MADE}; since last: loss on rows seen before"
    info = thresher("info a --json").json
    assert info["record"]["passes"] == MADE
    command = shlex.split(info["command"])
    assert command[command.index("--passes") + 1] == str(MADE)
    words = [{"DATA": "train.svm", "MODEL": "b"}.get(word, word) for word in command[1:]]
    again = thresher(*words)
    assert "replaying" not in again.err
    assert Path("a").read_bytes() == Path("b").read_bytes()


@pytest.mark.parametrize("options", ["--replay 0", "--replay 1KB", "--passes 1"])
def test_one_pass_is_shown_too_where_it_is_not_the_default(options: str, thresher: Thresher) -> None:
    assert thresher(f"train train.svm -m a --json {options}").json["passes"] == 1
    assert " --passes 1 " in f"{thresher('info a --json').json['command']} "


def test_rules_by_name_make_one_pass_and_need_not_say_so(thresher: Thresher) -> None:
    assert thresher("train train.svm -m a --rule sgd --json").json["passes"] == 1
    assert "--passes" not in thresher("info a --json").json["command"]


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(closed=False, buffer=io.BytesIO(content)))


def test_standard_input_is_replayed(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    assert thresher("train train.svm -m a -q").status == 0
    rows = Path("train.svm").read_bytes()
    pipe(monkeypatch, rows)
    assert thresher("train - -m b -q --no-cache").status == 0
    assert Path("a").read_bytes() == Path("b").read_bytes()
    pipe(monkeypatch, rows)
    assert stopped(thresher, "-q --no-cache", 512, "-").status == 130
    pipe(monkeypatch, rows[:-9])
    assert "changed since it was first read" in thresher("train - -m b -q --no-cache --resume").err
    pipe(monkeypatch, rows)
    assert thresher("train - -m b -q --no-cache --resume").status == 0
    assert Path("a").read_bytes() == Path("b").read_bytes()


def stopped(
    thresher: Thresher, options: str, after: int, data: str = "train.svm", command: str = "train"
) -> Any:
    with stopping(once_learned(after)):
        return thresher(f"{command} {data} -m b {options}")


def test_a_selection_is_saved_if_its_replay_is_stopped(thresher: Thresher) -> None:
    with stopping(in_pass(2)):
        ran = thresher("select train.svm -m b -q --bags 4")
    assert (ran.status, "in pass 2 of 5; the selection is in b" in ran.err) == (130, True)
    assert thresher("info b --json").json["kind"] == "selection"


@pytest.mark.parametrize("after", [200, 256])
@pytest.mark.parametrize("kind", ["", "--ensemble 2"])
def test_a_stopped_run_is_resumed_without_options(after: int, kind: str, thresher: Thresher) -> None:
    assert thresher(f"train train.svm -m a -q {kind}").status == 0
    ran = stopped(thresher, f"-q {kind}", after)
    assert ran.status == 130
    assert Path("b").exists() == (after > 200)
    if not kind:
        info = thresher("info b.checkpoint --json").json
        assert info["stopped"]["passes"] == ("auto" if after <= 200 else MADE)
        assert "--passes" not in info["command"]
    assert thresher(f"train train.svm -m b -q --resume {kind}").status == 0
    assert Path("a").read_bytes() == Path("b").read_bytes()


def test_a_resumed_run_takes_the_passes_that_it_is_given(thresher: Thresher) -> None:
    stopped(thresher, "-q", 256)
    ran = thresher("train train.svm -m b -q --resume --replay 1GB")
    assert ran.status == 2
    assert "made with --replay 64000000; leave --replay out" in ran.err
    assert thresher("train train.svm -m b -q --resume --passes 3").status == 0
    assert thresher("train train.svm -m a -q --passes 3").status == 0
    assert Path("a").read_bytes() == Path("b").read_bytes()


def test_a_replay_that_is_stopped_leaves_a_model(thresher: Thresher) -> None:
    ran = stopped(thresher, "-q", 512)
    assert ran.status == 130
    saved = "the model is saved in b; checkpoint in b.checkpoint, continue with --resume"
    assert ran.err == f"thresher: stopped after 512 examples, in pass 3 of {MADE}; {saved}\n"
    figures = thresher("info b --json").json
    assert (figures["kind"], figures["examples"], figures["command"]) == ("model", 512, None)
    assert f"\npasses                 stopped in pass 3 of {MADE}\n" in thresher("info b").out
    assert thresher("report b -o b.html").status == 0
    assert f"Training was stopped in pass 3 of {MADE}" in Path("b.html").read_text(encoding="utf-8")
    assert thresher("evaluate b test.svm --json").json["examples"] == 100


def test_a_replay_that_is_stopped_leaves_the_best_pass(thresher: Thresher) -> None:
    options = "-q --holdout test.svm --early-stop 9 --rule ft-ftrl:alpha=300,l1=0,relax=0"
    losses = [
        thresher(f"train train.svm -m a --passes {k} {options} --json").json["holdout_loss"]
        for k in (1, 2, 3)
    ]
    ran = stopped(thresher, options, 512)
    assert ran.status == 130
    assert thresher("evaluate b test.svm --json").json["loss"] == pytest.approx(min(losses[:2]))
    assert losses[1] != losses[0]


COMMANDS = {
    "path": "path train.svm --l1 0.5:2:2",
    "cv": "cv train.svm --l1 0.5:2:2 --folds 2",
    "tune": "tune train.svm --rules ft-ftrl --budget 2",
}


@pytest.mark.parametrize(
    ("command", "options"),
    [("path", ""), ("cv", "--replay 1KB --order once"), ("tune", "--passes 2"), ("tune", "")],
)
def test_many_models_print_the_passes_they_made(command: str, options: str, thresher: Thresher) -> None:
    made = {"": MADE, "--passes 2": 2}.get(options, 1)
    state = "--state" if command == "path" else ""
    ran = thresher(f"{COMMANDS[command]} -m many {options} {state} --json")
    assert (ran.status, ran.json["passes"]) == (0, made)
    words = shlex.split(ran.json["command"])[1:]
    assert words[words.index("--passes") + 1] == str(made)
    words[words.index("-m") + 1] = "one"
    holdout = ["--holdout", "every-10th"] * (command == "path")
    assert thresher(*words, *holdout, "-q").status == 0
    whole = one_of("many", ran.json["chosen"]) if command == "path" else Path("many").read_bytes()
    assert whole == Path("one").read_bytes()


def test_the_printed_command_centres_what_was_centred(thresher: Thresher) -> None:
    for rules in ("sgd,ft-ftrl", "ft-ftrl"):
        for centre in ("", "--no-centre"):
            ran = thresher(f"tune train.svm --rules {rules} --budget 2 -m many {centre} --json -q")
            words = shlex.split(ran.json["command"])[1:]
            words[words.index("-m") + 1] = "one"
            assert thresher(*words, "-q").status == 0
            assert Path("many").read_bytes() == Path("one").read_bytes()


def test_a_setting_that_diverges_in_a_later_pass_is_kept_as_it_was(
    thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thresher.learning.model.divergence import DivergedError
    from thresher.learning.model.model import Model

    def begin(self: Model, number: int, passes: int = 0) -> None:
        if number > 1:
            raise DivergedError("it is not finite")

    assert thresher(f"{COMMANDS['tune']} -m a -q --passes 1").status == 0
    monkeypatch.setattr(Model, "begin_pass", begin)
    ran = thresher(f"{COMMANDS['tune']} -m b -q")
    assert "warning: the best setting is kept as it was after one pass, since it diverged" in ran.err
    assert "--passes 1\n" in ran.out
    assert Path("a").read_bytes() == Path("b").read_bytes()
