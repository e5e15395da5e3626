"""Once its code is compiled, nothing imports the compiler."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

from pyarrow import csv, parquet

from tests.commands import environment
from thresher.cli.main import status_of

WORK = """
import json, os, signal, socket, sys, threading, time, urllib.request

import numpy as np
from thresher.cli import main

done, compiling = [], []

def run(*words):
    assert main.status_of([*map(str, words)]) == 0, words
    note(*words)

def note(*words):
    done.append(words[0])
    slow = {"numba", "numpy.ma"} if len(done) == 1 else {"numba"}  # numpy.ma: a tenth of a short training
    if words[0] != "partial_fit":  # scikit-learn imports it
        slow.add("pandas")
    if slow & {*sys.modules}:
        compiling.append(words)

def asked(port):
    address = f"http://127.0.0.1:{port}/"
    for path in ("predict", "learn"):
        for _ in range(600):
            try:
                body = b"1 3:1 4:2\\n0 3:2 5:1\\n"
                urllib.request.urlopen(urllib.request.Request(address + path, body), timeout=10).read()
                note(path)
                break
            except OSError:
                time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)

for words in json.loads(sys.argv[2]):
    run(*words)
free = socket.create_server(("127.0.0.1", 0))
port = free.getsockname()[1]
free.close()
threading.Thread(target=asked, args=(port,)).start()
run("serve", "m", "--learn", "--log", f"log-{sys.argv[1]}", "--port", port)

from thresher.sklearn import SparseOnlineClassifier

X = np.random.default_rng(0).normal(size=(60, 4))
for _ in range(2):
    SparseOnlineClassifier().partial_fit(X, X[:, 0] > 0, classes=[False, True]).predict_proba(X)
note("partial_fit")
print(json.dumps([done, compiling]))
"""

ROWS = [(k % 3 == 0, f"{k % 7}.5", "abc"[k % 3], f"word{k % 5} other") for k in range(60)]
FILES = {
    "a.svm": "".join(f"{y:d} 3:{x} {ord(c)}:1\n" for y, x, c, _ in ROWS),
    "a.csv": "label,x,c,t\n" + "".join(f"{y:d},{x},{c},{t}\n" for y, x, c, t in ROWS),
    "a.jsonl": "".join(
        json.dumps({"label": int(y), "x": float(x), "c": c, "t": t}) + "\n" for y, x, c, t in ROWS
    ),
    "b.svm": "".join(f"{ord(c) - 97} 3:{x} {ord(c)}:1\n" for _, x, c, _ in ROWS),
}
DATA = [
    *([name] for name in ("a.svm", "a.jsonl", "a.parquet")),
    ["a.csv", "--text", "t"],
    ["b.svm", "--outputs", "classes"],
]
COMMANDS = [
    *(
        command
        for data, *options in DATA
        for command in (
            ["train", data, "-m", "m", *options],
            ["predict", "m", data, "-o", "p"],
            ["evaluate", "m", data],
        )
    ),
    *(["path", "a.svm", "-m", "f"], ["cv", "a.svm", "--l1", "1e-4:1e-3:2"]),
    ["train", "a.svm", "-m", "m", "--continue", "m"],
]


def test_what_is_compiled_needs_no_compiler(tmp_path: Path, own_folder: None) -> None:
    """Most is compiled in this process, which waits for other workers; a child would compile it again."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    table = csv.read_csv(tmp_path / "a.csv")
    parquet.write_table(table, tmp_path / "a.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [words for words in COMMANDS if status_of(words)] == []
    for state in ("cold", "warm"):
        words = [sys.executable, "-c", WORK, state, json.dumps(COMMANDS)]
        found = subprocess.run(words, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
    done, compiling = json.loads(found.stdout.splitlines()[-1])
    assert compiling == []
    assert {"train", "predict", "evaluate", "path", "cv", "serve", "learn", "partial_fit"} <= {*done}
