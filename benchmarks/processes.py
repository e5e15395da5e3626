"""From a text file to a model file, including start-up: thresher, plain C, Vowpal Wabbit, scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import loads, measure, peers, report
from benchmarks.learning import ETA0, L1, RATE, RULE
from benchmarks.measure import Sample, python
from benchmarks.report import Goal
from benchmarks.setting import Setting

C_STREAM, TRUNCATED = "C, one core", "thresher, truncated gradient"
DEFAULT, FTRL = "thresher, defaults", "thresher, ftrl"
_SLOW = 200.0  # leave out scikit-learn's reader above this many MB of text


def thresher(path: Path, model: Path, *options: str) -> Sample:
    """Run ``thresher train`` on the text, in its own process."""
    return python("-m", "thresher", "train", path, "--model", model, "--no-cache", *options)


def contenders(setting: Setting, model: Path) -> dict[str, Callable[[], Sample]]:
    """Return all contenders that can run here."""
    path = setting.rcv1like.train
    found: dict[str, Callable[[], Sample]] = {}
    if setting.compiler:
        program = setting.c_program("stream")
        found[C_STREAM] = partial(measure.process, program, path, ETA0, L1)
    found[TRUNCATED] = partial(thresher, path, model, "--rule", RULE, "--rate", RATE)
    found[f"{TRUNCATED}, direct store"] = partial(
        thresher, path, model, "--rule", RULE, "--rate", RATE, "--store", "direct"
    )
    found[DEFAULT] = partial(thresher, path, model)
    found[FTRL] = partial(thresher, path, model, "--rule", "ftrl")
    if peers.installed("vowpalwabbit"):
        twin = loads.vw_text(path)
        for name, options in (("logistic", ""), ("logistic, L1", "--l1 1e-7"), ("FTRL", "--ftrl --l1 1")):
            arguments = f"-d {twin} --loss_function logistic {options} -f {model}.vw"
            found[f"Vowpal Wabbit (Python package), {name}"] = partial(peers.vw, arguments)
    if peers.installed("sklearn") and setting.rcv1like.megabytes <= _SLOW:
        found["scikit-learn, load_svmlight_file + SGD L1"] = partial(
            python, "-c", peers.SKLEARN_FROM_TEXT, path
        )
    return found


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    size = setting.rcv1like.megabytes
    with TemporaryDirectory(dir=setting.loads) as folder:
        chosen = contenders(setting, Path(folder) / "model")
        found = setting.in_turn(chosen, warm=(TRUNCATED, DEFAULT, FTRL))
    report.times(f"whole process, {size:.0f} MB of text to a model file", found, C_STREAM, {"MB/s": size})
    report.table(
        "peak memory of those processes",
        ("", "MB"),
        [(name, report.figure(s.peak, ".0f")) for name, s in found.items()],
    )
    best = found[TRUNCATED]
    c_time = f"; C {found[C_STREAM].wall:.2f}" if C_STREAM in found else ""
    measured = f"{best.wall:.2f} (least {best.least:.2f}, cpu {best.cpu:.2f}){c_time}"
    return [
        Goal(
            "from text to a model, seconds", "<= 1.5 if C takes 1.17", measured, setting.met(best.wall <= 1.5)
        ),
        _ratio(found, DEFAULT, FTRL, 1.1),
        Goal("its peak memory, MB", "<= 400", f"{best.peak:.0f}", setting.met(best.peak <= 400)),
    ]


def _ratio(found: dict[str, measure.Summary], one: str, other: str, most: float) -> Goal:
    value, text = report.ratio(found, one, other)
    return Goal(f"{one} : {other}", f"<= {most}", text, value <= most)
