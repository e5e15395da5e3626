"""``thresher from-vw``: the printed commands run, and learn what Vowpal Wabbit learns."""

import math
import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from thresher.cli.from_vw import _KNOWN, _TASK

ALONE = "give the vw command alone; of the shell, only < FILE"
EMPTY = "expected a command of Vowpal Wabbit, such as 'vw -d DATA -f MODEL'"
ROWS, WORDS = 150, [f"w{k}" for k in range(20)]


def rows(kind: str) -> Iterator[str]:
    """VW text with words, and a user and an ad whose product matters."""
    made = random.Random(1)
    effects = {word: made.gauss(0, 0.8) for word in WORDS}
    for _ in range(ROWS):
        words = [made.choice(WORDS) for _ in range(made.randint(3, 6))]
        user, ad, noise = made.randrange(4), made.randrange(3), made.random()
        mean = sum(map(effects.__getitem__, words)) + (1.5 if (user + ad) % 2 else -1.5)
        label = {
            "sign": 1 if noise < 1 / (1 + math.exp(-mean)) else -1,
            "number": round(mean + noise / 4, 3),
            "count": int(math.exp(min(mean / 2, 2.0)) + noise),
            "class": 1 + user % 3,
            "labels": ",".join(map(str, sorted({user, ad}))),
        }[kind]
        yield f"{label} |text {' '.join(words)} |user u{user} |ad a{ad}\n"


# Vowpal Wabbit 9.11.9 learned the same rows with these average losses; None where it tells shares of errors
COMMANDS = [
    ("vw -d number.vw -f m", 3.890),
    ("number.vw -f m -l 0.1 --quiet", 4.941),
    ("vw -d sign.vw -f m --loss_function logistic -q ua --ngram t2 --invert_hash 'the weights'", 0.6270),
    ("vw -d sign.vw -f m --loss_function=logistic --cubic tua --noconstant -b24", 0.6064),
    ("vw -d sign.vw -f m --loss_function hinge --ftrl --ftrl_alpha 0.1 --ftrl_beta 1 --l1 0.1", 0.8741),
    ("vw -d sign.vw -f m --loss_function logistic --coin", 0.6796),
    ("vw -d sign.vw -f m --loss_function logistic --l1 1e-5 --l2 1e-6", 0.6701),
    ("vw -d number.vw -f m --sgd -l 0.05 --power_t 0.3 --initial_t 1", 3.752),
    ("vw -d number.vw -f m --sgd -l 0.05 --l1 1e-3", 4.217),
    ("vw -d number.vw -f m --adaptive -l 0.3", 3.560),
    ("vw -d number.vw -f m --loss_function quantile --quantile_tau 0.8", 0.5720),
    ("vw -d count.vw -f m --loss_function poisson -l 0.05", 2.101 / 2),  # which is half the deviance here
    ("vw -d class.vw -f m --oaa 3 --probabilities", None),
    ("vw -d labels.vw -f m --multilabel_oaa 4", None),
    ("vw -d sign.vw -f m --passes 3 -c -k --loss_function logistic --random_seed 7", None),
    ("vw -d sign.vw -f m --loss_function logistic --bfgs --l2 1 --passes 2 -c", None),
    ("vw -d number.vw -f m --bootstrap 3 --readable_model out --initial_t 0", None),
]


@pytest.fixture
def files(folder: Path) -> Path:
    for kind in ("sign", "number", "count", "class", "labels"):
        (folder / f"{kind}.vw").write_text("".join(rows(kind)))
    return folder


def run(thresher: Thresher, printed: str) -> None:
    words, _, file = printed.partition(" > ")
    ran = thresher.ok(*shlex.split(words)[1:])
    if file:
        Path(*shlex.split(file)).write_text(ran.out)


@pytest.mark.usefixtures("files", "plainly")
@pytest.mark.parametrize(("line", "loss"), COMMANDS)
def test_what_is_printed_learns_as_well(thresher: Thresher, line: str, loss: float | None) -> None:
    printed = thresher.ok("from-vw", line).out.splitlines()
    assert thresher.ok("from-vw", "--", *shlex.split(line)).out.splitlines() == printed
    for one in printed:
        run(thresher, one)
    if loss is not None:
        said = thresher.ok("info m --json").json
        assert said["progressive_loss"] == pytest.approx(loss, rel=0.16)
    if "invert_hash" in line:
        assert re.search(r"\ttext=w\d+ w\d+\t", Path("the weights").read_text())


@pytest.mark.usefixtures("files", "plainly")
def test_a_model_is_used(thresher: Thresher) -> None:
    run(thresher, thresher.ok("from-vw", "vw sign.vw -f m --loss_function logistic").out)
    used = "vw -t -i m sign.vw -p p.txt"
    for more, output in [
        ("", ""),
        (" --link logistic", "--output probability "),
        (" --link poisson", "--output label "),
        (" --probabilities", "--output probability "),
        (" --binary", "--output label "),
    ]:
        printed = thresher.ok("from-vw", used + more).out
        assert printed == f"thresher predict m sign.vw {output}-o p.txt\n"
        run(thresher, printed)
        assert len(Path("p.txt").read_text().splitlines()) == ROWS
    assert thresher.ok("from-vw", "vw -t -i m sign.vw").out == "thresher evaluate m sign.vw\n"
    goes_on = thresher.ok("from-vw", "vw -i m sign.vw -f n").out
    assert goes_on == "thresher train sign.vw -m n --format vw --continue m --passes 1\n"
    run(thresher, goes_on)
    assert thresher.ok("info n --json").json["examples"] == 2 * ROWS
    served = thresher.ok("from-vw", "vw --daemon -i m --port 26542").out
    assert served == "thresher serve m --port 26542 --learn --log log\n"
    assert thresher.ok("from-vw", "vw --daemon -t -i m").out == "thresher serve m\n"


def test_what_is_said_beside_the_command(thresher: Thresher) -> None:
    line = "vw -b 20 --nn 5 --ignore a b -p out --loss_function squared --oaa 3 --coin --l1 1 -q ab --ngram 2"
    ran = thresher.ok("from-vw", line)
    assert ran.out.startswith("thresher train - -m vw.model --format vw --loss logistic --outputs classes:3")
    assert "--interact a,b --text NAME --ngrams words=1-2," in ran.out
    assert [note.split(": ")[1] for note in ran.err.splitlines()] == [
        *("--bit_precision", "--nn", "--ignore", "--predictions", "--loss_function"),
        *("--coin", "namespace a", "namespace b", "namespace NAME", "--ngram"),
    ]
    for line, said in [
        ("vw d.vw --ngrm 2", "word 3, --ngrm: Vowpal Wabbit has no such option; did you mean --ngram?"),
        ("d.vw -x", "word 2, -x: Vowpal Wabbit has no such option"),
        ("vw d.vw --l1", "word 3, --l1: a value is missing"),
        ("vw d.vw --sgd=1", "word 3, --sgd=1: it takes no value"),
        ("vw d.vw --cb 4", "word 3, --cb: thresher has no counterpart, so there is no command"),
        ("vw d.vw --ngram t", "--ngram: expected a whole number of at least 1, found 't'"),
        ("vw d.vw --passes abc", "--passes: expected a whole number of at least 1, found 'abc'"),
        ("vw d.vw --oaa 1", "--oaa: expected a whole number of at least 2, found '1'"),
        ("vw d.vw -l -0.5", "--learning_rate: expected a number above 0, found '-0.5'"),
        ("vw d.vw --l1=-1", "--l1: expected a number of at least 0, found '-1'"),
        ("vw d.vw --l2 nan", "--l2: expected a number of at least 0, found 'nan'"),
        ("vw d.vw --link glf1", "--link: expected identity, logistic or poisson, found 'glf1'"),
        ("vw d.vw --bootstrap 1000", "--bootstrap: expected a whole number from 2 to 999, found '1000'"),
        (
            "vw d.vw --sgd --initial_t 0",
            "--initial_t: with 0 no step is above 0: leave it out, or give a larger number",
        ),
        ("vw --version", "word 2, --version: thresher has no counterpart, so there is no command"),
        ("cat d.vw | vw -f m", f"word 3, |: {ALONE}"),
        ("vw d.vw -f m>log", f"word 5, >: {ALONE}"),
        ("vw d.vw -f m &", f"word 5, &: {ALONE}"),
        ("vw", f"COMMAND: {EMPTY}"),
        ("", f"COMMAND: {EMPTY}"),
        ("vw -d 'd", "COMMAND: No closing quotation"),
    ]:
        ran = thresher("from-vw", line)
        assert (ran.status, ran.out, ran.err.strip()) == (2, "", f"thresher: {said}")


# Options that do not go together in thresher, each with what is left of the command, and what is said of it
LEFT = [
    (
        "vw sign.vw -i m -f n --noconstant -l 0.1 --random_seed 3 --bootstrap 2 -q ua --invert_hash i.txt",
        "thresher train sign.vw -m n --format vw --continue m --passes 1 --names\n"
        "thresher weights n > i.txt\n",
        "--noconstant, --learning_rate, --random_seed, --bootstrap, --quadratic: left out, since the model"
        " keeps what it has",
    ),
    (
        "vw sign.vw -f n --bfgs --bootstrap 2 --coin --readable_model r --invert_hash i.txt",
        "thresher train sign.vw -m n --format vw --loss squared --rule coin --passes 1 --ensemble 2\n",
        "--readable_model, --invert_hash: left out, since thresher name MODEL DATA names an ensemble",
    ),
    (
        "vw sign.vw -f n --readable_model r.txt --invert_hash i.txt --passes 2 --holdout_off --sgd",
        "thresher train sign.vw -m n --format vw --loss squared --rule sgd --rate power:eta0=0.5,t0=1,p=0.5"
        " --passes 2 --names\nthresher weights n > i.txt\nthresher weights n > r.txt\n",
        "",
    ),
    (
        "vw -f n --coin --ngram t2 a3 < sign.vw",
        "thresher train sign.vw -m n --format vw --loss squared --rule coin --text text,ad"
        " --ngrams words=1-3,tokens=blanks,case,shortest=1 --passes 1\n",
        "--ngram: one length, 3, holds for all; Vowpal Wabbit takes text 2, ad 3",
    ),
    (
        "vw -f n --coin --ngram 2 valued.vw",
        "thresher train valued.vw -m n --format vw --loss squared --rule coin --text user"
        " --ngrams words=1-2,tokens=blanks,case,shortest=1 --passes 1\n",
        "--ngram: left out for ad, text, whose words have values",
    ),
    (
        "vw -f n --coin --link logistic -q ua sign.vw",
        "thresher train sign.vw -m n --format vw --loss squared --rule coin --interact user,ad --passes 1\n",
        "--link: it changes what -p prints, and only losses of classes have probabilities",
    ),
    (
        "vw -f n --coin --lrq ua3 at2 sign.vw",
        "thresher train sign.vw -m n --format vw --loss squared --rule coin --passes 1\n",
        "--lrq: left out, since it has no counterpart",
    ),
    (
        "vw class.vw -f n --oaa 3 --probabilities -p out",
        "thresher train class.vw -m n --format vw --loss softmax --outputs classes:3"
        " --rule normalized:eta=0.5 --passes 1\n",
        "--predictions: not made while learning: use thresher predict MODEL DATA --output probability,"
        " on other rows",
    ),
]


@pytest.mark.usefixtures("files", "plainly")
def test_what_is_printed_runs(thresher: Thresher) -> None:
    Path("valued.vw").write_text("1 |text a b:2 |user c |ad:2.5 d e:.5\n-1 |text b |user:3 c e |ad d\n")
    run(thresher, thresher.ok("from-vw", "vw sign.vw -f m --loss_function logistic").out)
    for line, printed, said in LEFT:
        told = thresher.ok("from-vw", line)
        assert (line, told.out) == (line, printed)
        assert f"note: {said}" in told.err.splitlines() if said else "left out" not in told.err
        for one in printed.splitlines():
            run(thresher, one)


def test_every_option_is_known_once() -> None:
    """Of those in the help of Vowpal Wabbit, the switches of a task only as far as they begin it."""
    assert len(_KNOWN) > 150
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in _KNOWN)
    assert {name for name, (*_, remark) in _KNOWN.items() if remark == _TASK} > {
        "cb",
        "csoaa",
        "lda",
        "search_task",
    }
