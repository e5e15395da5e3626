"""A service that learns from clicks, an hour late: a stream of views is played against a real server.

Run it: ``python examples/serving.py`` (needs the packages of ``pip install '.[serve]'``).

Every hour some ads end and new ones begin. A model of the first hours is served in two ways: as it is, and
by ``thresher serve --learn``, which predicts each view when it is shown and gets to know an hour later
whether it was clicked. The clock is the stream's own: an hour is over after `VIEWS` views, so all this takes
seconds. At the end, the log of the server is learned by ``thresher train``, which gives the same model.

Then only clicks are told, at once, and a view without one is negative once it has waited for a second: at a
start, in a lull and at a peak, the mean prediction stays near the truth.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import thresher
from thresher.drawing import Axis, Series, chart

BUILD = Path(__file__).parent.parent / "build"
HOURS, KNOWN, VIEWS, AT_ONCE = 24, 6, 400, 40
ADS, NEW, SITES = 40, 4, 20
"""ads at one time, and how many of them are replaced every hour"""
PHASES = {"start": 200, "lull": 50, "peak": 400}
"""views at once while the traffic changes"""
TURNS, PAUSE = 60, 0.05
"""how often in each phase, and seconds between two"""
F64 = NDArray[np.float64]


class View(NamedTuple):
    """A view of an ad: what the server is asked, and what happens then."""

    asked: dict[str, str]
    clicked: int
    chance: float


def views(seed: int = 0, new: int = NEW, hours: int = HOURS) -> list[View]:
    """The stream; the chance of a click depends on the ad and on the site. Every hour `new` ads begin."""
    random = np.random.default_rng(seed)
    ads = random.normal(-1.5, 1.3, ADS + new * hours)
    sites = random.normal(0, 0.5, SITES)
    found = []
    for number in range(hours * VIEWS):
        ad = new * (number // VIEWS) + int(random.integers(ADS))
        site = int(random.integers(SITES))
        chance = float(1 / (1 + np.exp(-ads[ad] - sites[site])))
        asked = {"view": f"v{number}", "ad": f"ad {ad}", "site": f"site {site}"}
        found.append(View(asked, int(random.random() < chance), chance))
    return found


class Client:
    """Asks a server."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.close = self._connection.close

    def ask(self, method: str, path: str, rows: Sequence[dict[str, Any]] = ()) -> str:
        """The answer; the body is a line of JSON for each row."""
        body = "\n".join(map(json.dumps, rows))
        self._connection.request(method, path, body, {"Content-Type": "application/x-ndjson"})
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise RuntimeError(text)
        return text

    def predict(self, some: Sequence[View]) -> list[float]:
        """Chances of a click. The server keeps the rows until their labels come."""
        answer = self.ask("POST", "/predict?ids=view", [one.asked for one in some])
        return [json.loads(line)["probability"] for line in answer.splitlines()]

    def label(self, some: Sequence[View]) -> None:
        """Tell whether these views were clicked, and wait until that is learned, if it does not wait."""
        labels = [{"id": one.asked["view"], "label": one.clicked} for one in some]
        last = json.loads(self.ask("POST", "/label", labels))["last"]
        while self._learned() < last:
            time.sleep(0.002)

    def _learned(self) -> float:
        found = re.search(r"^thresher_learned_total (\S+)", self.ask("GET", "/metrics"), re.MULTILINE)
        assert found is not None
        return float(found[1])


@contextmanager
def server(model: Path, log: Path, *options: str) -> Iterator[Client]:
    """A server that learns, on any free port; stopped at the end, when it has written all that it knows."""
    command = [sys.executable, "-m", "thresher", "serve", str(model), "--learn", "--log", str(log), *options]
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        try:
            with closing(Client(_port(process))) as client:
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def _port(process: subprocess.Popen[str]) -> int:
    """The port of a server that has just been started."""
    said = ""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"at http://\S+:(\d+)$", line):
            return int(found[1])
        said += line
    raise RuntimeError(said)


def play(stream: Sequence[View], client: Client) -> list[float]:
    """Predict view after view; what became of it is told when another hour has passed."""
    answered = []
    for begin in range(0, len(stream), AT_ONCE):
        if begin >= VIEWS:
            client.label(stream[begin - VIEWS : begin - VIEWS + AT_ONCE])
        answered += client.predict(stream[begin : begin + AT_ONCE])
    client.label(stream[-VIEWS:])
    return answered


def play_clicks(stream: Sequence[View], client: Client) -> dict[str, tuple[float, float]]:
    """Predict the views of each phase and tell the clicks alone; mean chance and mean prediction."""
    means, begin = dict[str, tuple[float, float]](), 0
    for phase, count in PHASES.items():
        answered, first = list[float](), begin
        for _ in range(TURNS):
            some = stream[begin : begin + count]
            answered += client.predict(some)
            if clicks := [one for one in some if one.clicked]:
                client.label(clicks)
            begin += count
            time.sleep(PAUSE)
        chances = [one.chance for one in stream[first:begin]]
        means[phase] = float(np.mean(chances)), float(np.mean(answered))
    return means


def same_model(model: Path, log: Path) -> bool:
    """Whether ``thresher train`` makes the model of the server from its log."""
    again = log / "again.model"
    thresher.train(log, continue_from=model).save(again)
    return again.read_bytes() == (log / "model").read_bytes()


def losses(stream: Sequence[View], chances: Sequence[float] | F64) -> F64:
    """The loss of each view."""
    p = np.array(chances)
    return -np.log(np.where([one.clicked for one in stream], p, 1 - p))


def draw(curves: dict[str, F64], picture: Path) -> None:
    """Draw the progressive losses: means over all views so far."""
    begin = VIEWS // 2  # means over a few views say little
    drawn = []
    for name, loss in curves.items():
        counts = np.arange(1, len(loss) + 1)
        so_far = (np.cumsum(loss) / counts)[begin::AT_ONCE]
        drawn.append(Series(name, (KNOWN + counts / VIEWS)[begin::AT_ONCE].tolist(), so_far.tolist()))
    text = chart(
        "Progressive loss of the predictions that were answered",
        "A model that does not learn gets worse as the ads that it knows end; the server gets better.",
        Axis("hour", whole=True),
        Axis("mean log loss so far"),
        drawn,
    )
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(text, encoding="utf-8")


def main() -> None:
    """Play the stream, print a table, draw the picture, and compare the server with ``thresher train``."""
    made = views()
    stream = made[KNOWN * VIEWS :]
    with tempfile.TemporaryDirectory() as name:
        model, log = Path(name) / "clicks.model", Path(name) / "clicks.log"
        still = begun(made[: KNOWN * VIEWS], model)
        with server(model, log) as client:
            answered = play(stream, client)
        same = same_model(model, log)
    curves = {
        "does not learn": losses(stream, still.predict_proba([one.asked for one in stream])[:, 1]),
        "learns, an hour late": losses(stream, answered),
        "the true chances": losses(stream, [one.chance for one in stream]),
    }
    print(f"{len(stream):,} views in {HOURS - KNOWN} hours; mean log loss of what was answered")
    print(f"\n{'':22} {'first hour':>10} {'last hour':>10} {'all':>10}")
    for title, loss in curves.items():
        first_hour, last_hour = loss[:VIEWS].mean(), loss[-VIEWS:].mean()
        print(f"{title:22} {first_hour:10.4f} {last_hour:10.4f} {loss.mean():10.4f}")
    print(f"\nthresher train on the log gives the model of the server, byte for byte: {same}")
    draw(curves, BUILD / "serving.svg")
    print("progressive loss: build/serving.svg")
    only_clicks()


def begun(made: Sequence[View], model: Path) -> thresher.Model:
    """A model of the first hours, which is saved."""
    found = thresher.train(
        [one.asked for one in made], [one.clicked for one in made], ignore=["view"], passes=1
    )
    found.save(model)
    return found


def only_clicks() -> None:
    """Let a server learn from clicks alone while the traffic changes."""
    count = TURNS * sum(PHASES.values())
    made = views(new=0, hours=2 * count // VIEWS)
    with tempfile.TemporaryDirectory() as name:
        model, log = Path(name) / "clicks.model", Path(name) / "clicks.log"
        begun(made[count:], model)
        with server(model, log, "--unlabelled", "negative", "--wait", "1s") as client:
            means = play_clicks(made[:count], client)
        titles = f"{'views':>10} {'mean chance':>12} {'predicted within a tenth':>26}"
        print(f"\n{'only clicks are told':22} {titles}")
        for phase, (chance, predicted) in means.items():
            near = abs(predicted - chance) < 0.1 * chance
            print(f"{phase:22} {TURNS * PHASES[phase]:10,} {chance:12.4f} {near!s:>26}")
        print(f"\nthe model of the log, byte for byte: {same_model(model, log)}")


if __name__ == "__main__":
    main()
