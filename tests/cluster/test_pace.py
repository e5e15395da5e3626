"""Which of readers and learner waits for the other."""

import itertools

import pytest

from thresher.cluster.readers import Pace

ROWS = 1000


@pytest.mark.parametrize(
    ("waiting", "learning", "reading", "readers", "said"),
    [
        (
            1.0,
            1.0,
            4.0,
            2,
            "2 workers read up to 500 rows/s, the learner learns up to 1,000: the learner waits; 4 ",
        ),
        (
            0.0,
            2.0,
            1.0,
            1,
            "1 worker reads up to 1,000 rows/s, the learner learns up to 500: the workers wait for",
        ),
        (
            0.0,
            1.0,
            1.0,
            1,
            "1 worker reads up to 1,000 rows/s, the learner learns up to 1,000: neither waits",
        ),
    ],
)
def test_the_side_that_waits_is_named(
    waiting: float, learning: float, reading: float, readers: int, said: str
) -> None:
    told, now = list[str](), [0.0]
    pace = Pace(readers, told.append, lambda: now[0])
    pace.ask()
    now[0] += 100.0  # starting up
    pace.receive()
    for _ in range(10):
        now[0] += learning
        pace.ask()
        now[0] += waiting
        pace.receive()
        pace.count(ROWS, reading)
    pace.finish()
    assert len(told) == 1
    assert told[0].startswith(said)


def test_a_short_pass_says_nothing_and_a_long_one_more_than_once() -> None:
    told, ticks = list[str](), itertools.count()
    short = Pace(2, told.append, lambda: 0.01 * next(ticks))
    long = Pace(2, told.append, lambda: 10.0 * next(ticks))
    for pace, lines in ((short, 0), (long, 3)):
        for _ in range(10):
            pace.ask()
            pace.receive()
            pace.count(ROWS, 0.5)
        pace.finish()
        assert len(told) == lines
        told.clear()


def test_batches_that_may_compile_say_nothing_of_reading() -> None:
    told, ticks = list[str](), itertools.count()
    pace = Pace(1, told.append, lambda: 5.0 * next(ticks))
    for _ in range(3):
        pace.ask()
        pace.receive()
        pace.count(ROWS, 0.0)
    pace.finish()
    assert told == []
