"""Services: requests a second, delays, rows learned durably; beside services round other learners."""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.request import urlopen

import psutil

from benchmarks import peers, report, twins
from benchmarks.report import Goal
from benchmarks.serving_peers import PEERS
from benchmarks.setting import Setting

SCRIPT = Path(__file__).with_suffix(".lua")
SHORT = Path(__file__).parent.parent / "examples" / "data" / "criteo_first200.txt.gz"
RAW = "criteo/criteo_first10k.txt.gz"
CLIENTS, FEW, MANY, SYNCS = 64, 4, 1000, 200
MEDIA = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv",
    "arrows": "application/vnd.apache.arrow.stream",
    "json": "application/json",
}
"""Media types by the ending of a file"""
_PATIENCE = 120.0
"""Seconds until a service must answer"""


class Load(NamedTuple):
    """What clients send."""

    file: Path
    target: str = "/predict"
    clients: int = CLIENTS
    rows: int = 1
    """of a body"""


class Answers(NamedTuple):
    """What wrk tells."""

    answers: int
    seconds: float
    p50: float
    """milliseconds"""
    p99: float
    errors: int
    cpu: float = 0.0
    """seconds of the service"""

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.answers / self.seconds


@dataclass
class Service:
    """A process that serves."""

    process: psutil.Process
    port: int
    log: Path | None = None

    def ask(self, load: Load, seconds: float) -> Answers:
        """Send as many requests as are answered in some seconds."""
        before = self.process.cpu_times()
        with self.asking(load, seconds) as process:
            output, _ = process.communicate()
        after = self.process.cpu_times()
        cpu = after.user + after.system - before.user - before.system
        found = Answers(**json.loads(output.splitlines()[-1]), cpu=cpu)
        if found.errors:
            raise RuntimeError(f"{found.errors} errors of {found.answers} answers to {load}: {output}")
        return found

    def asking(self, load: Load, seconds: float) -> subprocess.Popen[str]:
        """The process that sends them."""
        media = MEDIA[load.file.suffix[1:]]
        told = {"BODIES": str(load.file), "TARGET": load.target, "MEDIA": media}
        words = ["wrk", "-t1", f"-c{load.clients}", f"-d{seconds:g}s", "-s", str(SCRIPT)]
        return subprocess.Popen(
            [*words, f"http://127.0.0.1:{self.port}"],
            env={**os.environ, **told},
            stdout=subprocess.PIPE,
            text=True,
        )

    def figure(self, name: str) -> float:
        """A figure of ``/metrics``."""
        with urlopen(f"http://127.0.0.1:{self.port}/metrics") as page:
            lines = page.read().decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


@contextmanager
def served(*command: str | Path, log: Path | None = None) -> Iterator[Service]:
    """A Python module that serves; its port takes the place of the word PORT."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [str(port) if one == "PORT" else str(one) for one in command]
    with subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.PIPE) as process:
        try:
            _await(port, process)
            yield Service(psutil.Process(process.pid), port, log)
        finally:
            process.terminate()
            process.communicate()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            return
    process.kill()
    raise RuntimeError(f"the service does not answer: {process.communicate()[1].decode()[-2000:]}")


class Bodies:
    """Files of bodies for wrk."""

    def __init__(self, rows: list[twins.Cells], folder: Path) -> None:
        self._rows, self._folder = rows, folder
        (folder / "bodies").mkdir()

    def of(self, ending: str, count: int) -> Path:
        """Bodies of `count` rows each."""
        path = self._folder / "bodies" / f"{count}.{ending}"
        if not path.exists():
            with open(path, "wb") as file:
                rows = self._rows * -(-count // len(self._rows))
                for lo in range(0, len(rows) - count + 1, count):
                    body = self._written(rows[lo : lo + count], ending)
                    file.write(b"%d\n%b\n" % (len(body), body))
        return path

    def _written(self, rows: list[twins.Cells], ending: str) -> bytes:
        path = self._folder / f"data.{'jsonl' if ending == 'json' else ending}"
        twins.WRITERS[path.name](rows, path)
        body = path.read_bytes()
        if ending == "json" and len(rows) > 1:
            body = b"[%b]" % b",".join(body.splitlines())
        return body.rstrip(b"\n") if ending == "json" else body


def sync_seconds(folder: Path, size: int) -> float:
    """The median time of a write at the end of a file, and of its sync."""
    taken, block = list[float](), os.urandom(size)
    with TemporaryDirectory(dir=folder) as inner:
        file = os.open(Path(inner) / "synced", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for _ in range(SYNCS):
            os.write(file, block)
            begun = time.perf_counter()
            os.fdatasync(file)
            taken.append(time.perf_counter() - begun)
        os.close(file)
    return statistics.median(taken)


class Durable(NamedTuple):
    """Rows learned, and what the disk allows."""

    found: Answers
    allowed: float
    """requests a second, if each sync of the disk answers all clients"""
    learned: float
    """rows learned a second, until the last that was sent is learned"""


def learned(service: Service, load: Load, seconds: float) -> Durable:
    """Let a service learn, and measure what its disk takes for the same."""
    assert service.log is not None
    names = ("thresher_syncs_total", "thresher_log_bytes", "thresher_learned_total")
    before, begun = [service.figure(name) for name in names], time.perf_counter()
    found = service.ask(load, seconds)
    while service.figure(names[2]) < service.figure("thresher_sequence_total"):
        time.sleep(0.01)
    spent = time.perf_counter() - begun
    syncs, size, rows = (service.figure(name) - old for name, old in zip(names, before, strict=True))
    return Durable(found, load.clients / sync_seconds(service.log, int(size / max(1, syncs))), rows / spent)


def beside(service: Service, load: Load, seconds: float, other: Load) -> Answers:
    """Answers while a service learns as fast as it can."""
    with service.asking(other, seconds + 1) as learning:
        time.sleep(0.5)
        found = service.ask(load, seconds)
        learning.communicate()
    return found


def train(rows: list[twins.Cells], folder: Path) -> Path:
    """A model of the rows."""
    twins.WRITERS["data.jsonl"](rows, folder / "rows.jsonl")
    words = ("rows.jsonl", "-m", "clicks.model", "-q", "--numeric", "I*", "--categorical", "C*")
    subprocess.run([sys.executable, "-m", "thresher", "train", *words], cwd=folder, check=True)
    return folder / "clicks.model"


Measured = dict[str, list[Answers]]


def run(setting: Setting) -> list[Goal]:
    """Start the services, ask them in turn, print and check the goals."""
    if shutil.which("wrk") is None:
        print("\nservices: not measured, for wrk is not installed (apt-get install wrk)")
        return []
    source = SHORT if setting.data is None else setting.data / RAW
    rows = twins.rows_of(source)
    setting.loads.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=setting.loads) as name, ExitStack() as stack:
        folder = Path(name)
        model, log = train(rows, folder), folder / "log"
        bodies = Bodies(rows, folder)
        begin = ("thresher", "serve", model, "--port", "PORT")
        services = {"thresher": stack.enter_context(served(*begin))}
        learning = stack.enter_context(served(*begin, "--learn", "--log", log, log=log))
        for one in PEERS:
            if one == "constant" or peers.installed(one):
                words = ("benchmarks.serving_peers", one, "PORT", folder / "rows.jsonl")
                services[one] = stack.enter_context(served(*words))
        return _measured(setting, services, learning, bodies)


def _measured(
    setting: Setting, services: Mapping[str, Service], learning: Service, bodies: Bodies
) -> list[Goal]:
    seconds = 5.0 if setting.whole else 2.0
    loads = _loads(services, bodies)
    found: Measured = {name: [] for name in loads}
    singles, thousands, while_learning = list[Durable](), list[Durable](), list[Answers]()
    one = Load(bodies.of("json", 1), "/learn")
    many = Load(bodies.of("csv", MANY), "/learn", FEW, MANY)
    for service, load in loads.values():
        service.ask(load, 1)
    for load in (one, many):
        learning.ask(load, 1)
    for _ in range(setting.repeat):
        for name, (service, load) in loads.items():
            found[name].append(service.ask(load, seconds))
        singles.append(learned(learning, one, seconds))
        thousands.append(learned(learning, many, seconds))
        while_learning.append(beside(learning, Load(bodies.of("json", 1)), seconds, many))
    asked = {name: load for name, (_, load) in loads.items()}
    _tell(found | {"predicted while learning": while_learning}, asked)
    _tell_learned(singles, thousands)
    return _goals(found, singles, thousands, while_learning)


def _loads(services: Mapping[str, Service], bodies: Bodies) -> dict[str, tuple[Service, Load]]:
    """What is asked of whom."""
    found = {f"{name}, one row": (service, Load(bodies.of("json", 1))) for name, service in services.items()}
    for ending in ("jsonl", "csv", "arrows"):
        load = Load(bodies.of(ending, MANY), clients=FEW, rows=MANY)
        found[f"thresher, {MANY:,} rows, {ending}"] = services["thresher"], load
    for name, service in services.items():
        if name != "thresher":
            load = Load(bodies.of("json", MANY), clients=FEW, rows=MANY)
            found[f"{name}, {MANY:,} rows, json"] = service, load
    for name, service in services.items():
        if name != "thresher":
            found[f"{name}, one row learned, on no disk"] = service, Load(bodies.of("json", 1), "/learn")
    return found


def _median(answers: Iterable[Any], of: Callable[[Any], float]) -> float:
    return statistics.median(of(one) for one in answers)


def _tell(found: Measured, asked: Mapping[str, Load]) -> None:
    lines = []
    for name, answers in found.items():
        load = asked.get(name, Load(Path()))
        rate = _median(answers, lambda one: one.rate)
        delays = (f"{_median(answers, of):.2f}" for of in (lambda one: one.p50, lambda one: one.p99))
        cpu = _median(answers, lambda one: one.cpu / one.answers) / load.rows * 1e6
        lines.append(
            (name, f"{load.clients}", f"{rate:,.0f}", f"{rate * load.rows:,.0f}", *delays, f"{cpu:.1f}")
        )
    head = ("", "clients", "requests/s", "rows/s", "p50 ms", "p99 ms", "cpu µs a row")
    report.table("services, asked by wrk", head, lines)


def _tell_learned(singles: list[Durable], thousands: list[Durable]) -> None:
    lines = []
    for name, found, rows in (("one row", singles, 1), (f"{MANY:,} rows", thousands, MANY)):
        rates = [_median(found, lambda one: one.found.rate) * rows, _median(found, lambda one: one.learned)]
        delays = (_median(found, lambda one: one.found.p50), _median(found, lambda one: one.found.p99))
        allowed = _median(found, lambda one: one.allowed) * rows
        cells = [f"{one:,.0f}" for one in (*rates, allowed)]
        lines.append((name, *cells, *(f"{one:.2f}" for one in delays)))
    head = ("a body", "rows/s acknowledged", "learned", "the disk allows", "p50 ms", "p99 ms")
    report.table("labels learned, on the disk before the answer", head, lines)


def _goals(
    found: Measured, singles: list[Durable], thousands: list[Durable], while_learning: list[Answers]
) -> list[Goal]:
    rates = {name: _median(answers, lambda one: one.rate) for name, answers in found.items()}
    ours, p99 = rates["thresher, one row"], _median(found["thresher, one row"], lambda one: one.p99)
    others = [
        rates[f"{name}, one row"] for name in PEERS if f"{name}, one row" in rates and name != "constant"
    ]
    many = max(rate for name, rate in rates.items() if name.startswith(f"thresher, {MANY:,}")) * MANY
    durable = _median(singles, lambda one: one.found.rate / one.allowed)
    learned_rows = _median(thousands, lambda one: one.learned)
    beside_p99 = _median(while_learning, lambda one: one.p99)
    best = max(others, default=float("nan"))
    return [
        Goal("single rows predicted a second", ">= 20,000", f"{ours:,.0f}", ours >= 20_000),
        Goal("their p99, ms", "<= 5", f"{p99:.2f}", p99 <= 5),
        Goal("single rows : the better peer", ">= 2", f"{ours / best:.2f}", ours >= 2 * best),
        Goal(f"rows predicted a second, by {MANY:,}", ">= 300,000", f"{many:,.0f}", many >= 300_000),
        Goal("labels learned : what group commit allows", ">= 0.6", f"{durable:.2f}", durable >= 0.6),
        Goal(
            f"labels learned a second, by {MANY:,}",
            ">= 150,000",
            f"{learned_rows:,.0f}",
            learned_rows >= 150_000,
        ),
        Goal("predicted while learning: p99, ms", "<= 10", f"{beside_p99:.2f}", beside_p99 <= 10),
    ]
