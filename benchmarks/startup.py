"""Start-up: help, and training on the 2,000 rows that come with the project."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import peers, report
from benchmarks.measure import python
from benchmarks.processes import thresher
from benchmarks.report import Goal
from benchmarks.setting import Setting

ROWS = Path(__file__).parent.parent / "examples" / "data" / "rcv1_train2000.dat.gz"
HELP, TRAIN = "thresher --help", "thresher train, 2,000 rows"


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals. A first run has cached compiled code and bytecode."""
    with TemporaryDirectory() as folder:
        contenders = {
            "python -c pass": partial(python, "-c", "pass"),
            HELP: partial(python, "-m", "thresher", "--help"),
            TRAIN: partial(thresher, ROWS, Path(folder) / "model"),
        }
        if peers.installed("sklearn"):
            contenders["importing scikit-learn's SGD"] = partial(
                python, "-c", "from sklearn.linear_model import SGDClassifier"
            )
        if peers.installed("vowpalwabbit"):
            contenders["importing vowpalwabbit"] = partial(python, "-c", "import vowpalwabbit")
        found = setting.in_turn(contenders, tuple(contenders), max(5, setting.repeat))
    report.times("start-up", found, HELP, {})
    return [
        Goal("thresher --help, seconds", "<= 0.25", f"{found[HELP].wall:.2f}", found[HELP].wall <= 0.25),
        Goal(
            "training on 2,000 rows, seconds", "<= 1.2", f"{found[TRAIN].wall:.2f}", found[TRAIN].wall <= 1.2
        ),
    ]
