"""Readers are let in between two turns of learning, and in the middle of a long one."""

import threading
import time

import pytest

from thresher.serving.learning import Gate


def in_line(gate: Gate) -> None:
    """Return once a reader waits."""
    while gate._nobody.is_set():
        time.sleep(0.001)


@pytest.mark.parametrize("pauses", [False, True])
def test_a_reader_comes_before_the_next_turn_and_in_a_pause(pauses: bool) -> None:
    gate, order = Gate(patience=60), list[str]()  # as long as a busy machine needs to let a thread run

    def reads() -> None:
        with gate.reading():
            order.append("read")

    reader = threading.Thread(target=reads)
    with gate.learning():
        gate.pause()  # nobody waits
        reader.start()
        in_line(gate)
        order.append("first")
        if pauses:
            gate.pause()
            order.append("second")
    with gate.learning():
        order.append("last")
    reader.join()
    assert order == ["first", "read", *["second"] * pauses, "last"]


def test_readers_without_end_do_not_stop_learning() -> None:
    gate, over = Gate(), threading.Event()

    def reads() -> None:
        while not over.is_set():
            with gate.reading():
                time.sleep(0.0005)

    readers = [threading.Thread(target=reads) for _ in range(4)]
    for one in readers:
        one.start()
    for _ in range(10):
        with gate.learning():
            gate.pause()
    over.set()
    for one in readers:
        one.join()
