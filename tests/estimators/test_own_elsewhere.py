"""Estimators with parts of your own are sent to processes that do not know the parts."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import pickle
from pathlib import Path

from thresher.parts import make
from thresher.parts.origins import load_files
from thresher.sklearn import SparseOnlineClassifier

load_files(["own.py"])
given = ["slid:eta=0.25", make("rule", "slid:eta=0.25")]
Path("sent").write_bytes(pickle.dumps([SparseOnlineClassifier(rule=one) for one in given]))
"""
OWN = """
from typing import NamedTuple

from thresher import part

W = 0


@part("rule")
class Slid(NamedTuple):
    eta: float = 0.5
    SLOTS = ("w",)

    def weight(self, S, j, now):
        return S[j, W]

    def step(self, S, j, w, x, slope, now):
        S[j, W] = w - self.eta * slope * x
"""
RECEIVER = """
import pickle
from pathlib import Path
from sklearn.base import clone
from thresher.parts import make, spec_of

for estimator in pickle.loads(Path("sent").read_bytes()):
    made = make("rule", clone(estimator).set_params(rule__eta=0.5).rule)
    print(spec_of(made), type(made)(eta=1.0).eta)
"""


def test_parts_of_a_file_are_known_where_they_are_sent(tmp_path: Path) -> None:
    for name, text in (("script.py", SCRIPT), ("own.py", OWN), ("receiver.py", RECEIVER)):
        (tmp_path / name).write_text(text)
    subprocess.run([sys.executable, "script.py"], check=True, cwd=tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "sent").write_bytes((tmp_path / "sent").read_bytes())
    receiver = [sys.executable, str(tmp_path / "receiver.py")]
    for folder in (".", "elsewhere"):
        ran = subprocess.run(receiver, cwd=tmp_path / folder, capture_output=True, text=True, check=True)
        assert ran.stdout.split("\n")[:-1] == ["slid:eta=0.5 1.0"] * 2
