"""Readers are let in between two turns of learning, and in the middle of a long one."""

import threading
import time

from thresher.serving.learning import Gate


def in_line(gate: Gate) -> None:
    """Return once a reader waits."""
    while gate._nobody.is_set():
        time.sleep(0.001)


def test_a_reader_comes_before_the_next_turn() -> None:
    gate, order = Gate(patience=60), list[str]()  # as long as a busy machine needs to let a thread run

    def reads() -> None:
        with gate.reading():
            order.append("read")

    with gate.learning():
        reader = threading.Thread(target=reads)
        reader.start()
        in_line(gate)
        order.append("first")
    with gate.learning():
        order.append("second")
    reader.join()
    assert order == ["first", "read", "second"]


def test_a_reader_comes_in_a_pause() -> None:
    gate, order = Gate(patience=60), list[str]()  # as long as a busy machine needs to let a thread run

    def reads() -> None:
        with gate.reading():
            order.append("read")

    with gate.learning():
        gate.pause()  # nobody waits
        reader = threading.Thread(target=reads)
        reader.start()
        in_line(gate)
        order.append("half")
        gate.pause()
        order.append("rest")
    reader.join()
    assert order == ["half", "read", "rest"]


def test_readers_without_end_do_not_stop_learning() -> None:
    gate, over = Gate(), threading.Event()

    def reads() -> None:
        while not over.is_set():
            with gate.reading():
                time.sleep(0.0005)

    readers = [threading.Thread(target=reads) for _ in range(4)]
    for one in readers:
        one.start()
    begun = time.monotonic()
    for _ in range(10):
        with gate.learning():
            gate.pause()
    over.set()
    for one in readers:
        one.join()
    assert time.monotonic() - begun < 5
