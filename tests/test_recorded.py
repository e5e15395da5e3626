"""What commands and functions say to wrong usage, compared with what they said when it was recorded.

To record again, and look at what `git diff` shows::

    python -m tests.recorded record tests/recorded/kept --kept
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recorded.masks import changed, without_models
from tests.recorded.running import place, recorded
from tests.recorded.sessions import Session, sessions

KEPT = Path(__file__).parent / "recorded" / "kept"
SESSIONS = {one.name: one for one in sessions() if one.keep}


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    with place() as made:
        yield made


@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS)
def test_a_session_says_what_it_said(session: Session, folders: Path) -> None:
    change = changed(session.name, KEPT / f"{session.name}.txt", without_models(recorded(session, folders)))
    again = f"python -m tests.recorded record tests/recorded/kept --kept --only {session.name}"
    assert not change, f"{change}\nif this is intended: {again}"


def test_only_these_are_kept() -> None:
    assert {path.stem for path in KEPT.glob("*.txt")} == {*SESSIONS}
