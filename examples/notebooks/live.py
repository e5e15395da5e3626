"""
Live learning
=============

A service that answers requests, learns from what happens next, and loses nothing if it is killed. We start
one, ask it, teach it, kill it with ``SIGKILL``, and see whether it has forgotten anything.
"""

# %%
# A first model
# -------------
#
# 1,600 posts to newsgroups, in one pass: a stream that goes on is learned once.

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import thresher

DATA = next(p / "examples" / "data" for p in (Path.cwd(), *Path.cwd().parents) if (p / "examples").is_dir())
folder = Path(tempfile.mkdtemp())
model = thresher.train(DATA / "newsgroups_train.jsonl.gz", label="group", text="text", passes=1)
model.save(folder / "news.model")

# %%
# A server
# --------
#
# ``thresher serve --learn`` writes each row to a log before it acknowledges it. Port 0 is any free port.


def serve() -> tuple[subprocess.Popen[str], str]:
    """A server, and its address when it is ready."""
    words: list[str | Path] = [
        "serve",
        folder / "news.model",
        "--learn",
        "--log",
        folder / "log",
        "--port",
        "0",
    ]
    server = subprocess.Popen([sys.executable, "-m", "thresher", *words], stderr=subprocess.PIPE, text=True)
    for line in server.stderr or ():
        if found := re.search(r"at (http://\S+)$", line):
            return server, found[1]
    raise RuntimeError("the server did not start")


def ask(address: str, rows: list[dict[str, str]]) -> list[dict[str, object]]:
    """Send rows as JSON lines; return the lines of the answer."""
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return [json.loads(line) for line in answer.read().splitlines()]


server, address = serve()
question = [{"text": "The goalkeeper was on drugs"}]
print(ask(f"{address}/predict?output=label", question))

# %%
# Teach it
# --------
#
# That post was meant for doctors. We say so, and ask again.

print(ask(f"{address}/learn", [{"group": "sci.med", **question[0]}]))
while "thresher_learned_total 1" not in urllib.request.urlopen(f"{address}/metrics").read().decode():
    time.sleep(0.01)
print(ask(f"{address}/predict?output=label", question))

# %%
# Now it gets the 480 later posts, forty at a time: each is predicted, and then learned.

import gzip

later = DATA / "newsgroups_test.jsonl.gz"
posts = [json.loads(line) for line in gzip.decompress(later.read_bytes()).splitlines()]
wrong = []
for begin in range(0, len(posts), 40):
    some = posts[begin : begin + 40]
    answers = ask(f"{address}/predict?output=label", [{"text": post["text"]} for post in some])
    wrong += [answer["label"] != post["group"] for answer, post in zip(answers, some, strict=True)]
    ask(f"{address}/learn", some)
still = thresher.evaluate(model, later)["error"]
print(f"{sum(wrong) / len(wrong):.1%} wrong; of the model that stays as it was, {still:.1%}")

# %%
# Kill it
# -------
#
# No warning, no chance to write anything. Then start it again, with the same words.

server.send_signal(signal.SIGKILL)
server.communicate()
server, address = serve()
print(ask(f"{address}/predict?output=label", question))

# %%
# Everything that was acknowledged is in the log, and the log can be learned like any file. Told to stop,
# the server writes its newest model. It is the model that ``thresher.train`` makes of the log, byte for
# byte.

server.send_signal(signal.SIGTERM)
server.communicate()
again = thresher.train(folder / "log", continue_from=folder / "news.model")
again.save(folder / "again.model")
print((folder / "again.model").read_bytes() == (folder / "log" / "model").read_bytes())
shutil.rmtree(folder)
