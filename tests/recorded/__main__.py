"""Record what thresher does today, or compare it with what was recorded.

python -m tests.recorded record FOLDER
python -m tests.recorded compare FOLDER
"""

import argparse
import fnmatch
import sys
import time
from pathlib import Path

from tests.recorded.masks import changed, without_models
from tests.recorded.running import place, recorded
from tests.recorded.sessions import Session, sessions


def main(arguments: list[str] | None = None) -> int:
    known = argparse.ArgumentParser(prog="python -m tests.recorded", description=__doc__)
    known.add_argument("what", choices=("record", "compare"))
    known.add_argument("folder", type=Path, help="of the recordings, one text file per session")
    known.add_argument("--only", action="append", metavar="PATTERN", help="sessions of these names")
    known.add_argument("--kept", action="store_true", help="only those that stay as a test")
    known.add_argument("--times", action="store_true", help="print the seconds that each session takes")
    said = known.parse_args(arguments)
    chosen = [one for one in sessions() if _wanted(one, said.only, said.kept)]
    said.folder.mkdir(parents=True, exist_ok=True)
    different = 0
    with place() as folders:
        for session in chosen:
            began, path = time.perf_counter(), said.folder / f"{session.name}.txt"
            text = without_models(recorded(session, folders)) if said.kept else recorded(session, folders)
            if said.times:
                print(f"{time.perf_counter() - began:6.2f} {session.name}", flush=True)
            if said.what == "record":
                path.write_text(text, encoding="utf-8")
            else:
                different += _differs(session.name, path, text)
    if not (said.only or said.kept):
        different += _left_over(said.folder, chosen, said.what == "record")
    print(f"{len(chosen)} sessions" + (f", {different} differ" if said.what == "compare" else " recorded"))
    return int(said.what == "compare" and different > 0)


def _wanted(session: Session, only: list[str] | None, kept: bool) -> bool:
    return (not only or any(fnmatch.fnmatch(session.name, one) for one in only)) and (
        session.keep or not kept
    )


def _differs(name: str, path: Path, text: str) -> bool:
    """Print what has changed."""
    sys.stdout.write(change := changed(name, path, text))
    return bool(change)


def _left_over(folder: Path, chosen: list[Session], remove: bool) -> int:
    """Recordings of sessions that are no longer there."""
    names = {one.name for one in chosen}
    left = [path for path in sorted(folder.glob("*.txt")) if path.stem not in names]
    for path in left:
        if remove:
            path.unlink()
        else:
            print(f"{path.stem}: recorded, but no longer among the sessions")
    return 0 if remove else len(left)


if __name__ == "__main__":
    sys.exit(main())
