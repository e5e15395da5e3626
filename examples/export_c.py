"""A model of clicks as C: exported, compiled, and compared with what Python predicts.

Run it: ``python examples/export_c.py`` (needs a C compiler to do more than write the file).

The rows are those of Criteo's click log, 13 counts and 26 categories, as text. The program that the C file
becomes with ``-DTHRESHER_MAIN`` reads the same file as ``thresher predict`` and prints the same lines.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tempfile
from pathlib import Path

import thresher

CLICKS = Path(__file__).parent / "data" / "criteo_first200.txt.gz"


def main() -> None:
    """Train on 200 rows, export, compile, and predict the same rows."""
    rows = gzip.decompress(CLICKS.read_bytes())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, source, program = folder / "clicks.tsv", folder / "clicks.c", folder / "clicks"
        data.write_bytes(rows)
        model = thresher.train(data, header=False, label=1, bins="2-14", categorical="15-40", passes=1)
        thresher.export(model, "c", source)
        print(f"a model of {model.nonzero} weights, in C")
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            return
        flags = ["-std=c99", "-O2", "-DTHRESHER_MAIN", "-DTHRESHER_DIGITS=17"]
        subprocess.run([compiler, *flags, source, "-o", program, "-lm"], check=True)
        done = subprocess.run([program, "margin"], input=rows, check=True, capture_output=True)
        same = [*map(float, done.stdout.split())] == model.predict(data).tolist()
        print(f"the program predicts {'the same bits' if same else 'other numbers'}")


if __name__ == "__main__":
    main()
