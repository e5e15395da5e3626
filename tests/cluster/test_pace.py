"""Which of readers and learner waits for the other."""

import pytest

from thresher.cluster.readers import Pace

TWO, ONE = (
    "2 workers read up to 500 rows/s, the learner learns",
    "1 worker reads up to 1,000 rows/s, the learner",
)


def told(readers: int, waiting: float, learning: float, reading: float) -> list[str]:
    """What is said in a pass of ten batches of 1,000 rows, after the first, for which all start up."""
    said, now = list[str](), [0.0]
    pace = Pace(readers, said.append, lambda: now[0])
    pace.ask()
    now[0] += 100.0
    pace.receive(0, 0.0)
    for _ in range(10):
        pace.ask()
        now[0] += waiting
        pace.receive(1000, reading)
        now[0] += learning
    pace.finish()
    return said


@pytest.mark.parametrize(
    ("readers", "waiting", "learning", "reading", "said"),
    [
        (2, 1.0, 1.0, 4.0, f"{TWO} up to 1,000: the learner waits; 4 workers could keep it busy"),
        (1, 0.0, 2.0, 1.0, f"{ONE} learns up to 500: the workers wait for the learner"),
        (1, 0.0, 1.0, 1.0, f"{ONE} learns up to 1,000: neither waits for the other"),
    ],
)
def test_who_waits_is_named(readers: int, waiting: float, learning: float, reading: float, said: str) -> None:
    assert told(readers, waiting, learning, reading) == [said]


def test_short_passes_and_batches_that_may_compile_say_nothing_and_long_passes_more_than_once() -> None:
    assert told(2, 0.01, 0.01, 0.5) == told(1, 5.0, 5.0, 0.0) == []
    assert len(told(2, 10.0, 10.0, 0.5)) == 3
