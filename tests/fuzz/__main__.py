"""``python -m tests.fuzz NAME [--seconds S]``: find lines that a parser gets wrong, with atheris.

Atheris cannot trace compiled parsers, but it can trace the reference parsers they must agree with, so it
searches for new paths through those. The corpus is kept in build/fuzz, where failing texts are written too.
"""

import argparse
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tests.data", "json"]):
    from tests.fuzz.targets import TARGETS, Checker, Target

FOLDER = Path(__file__).parents[2] / "build" / "fuzz"


def prepared(name: str, target: Target) -> tuple[Path, Path]:
    """The corpus folder, filled with the seeds, and the dictionary."""
    corpus, words = FOLDER / name, FOLDER / f"{name}.dict"
    corpus.mkdir(parents=True, exist_ok=True)
    for k, seed in enumerate(target.seeds()):
        (corpus / f"seed{k}").write_bytes(seed)
    quoted = ("".join(f"\\x{byte:02x}" for byte in token) for token in target.tokens if token)
    words.write_text("".join(f'"{token}"\n' for token in quoted), encoding="ascii")
    return corpus, words


def main() -> None:
    """Run one target for the given time."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("name", choices=TARGETS, nargs="?", help="without one, the names are printed")
    options.add_argument("--seconds", type=int, default=60)
    chosen = options.parse_args()
    if chosen.name is None:
        print(*TARGETS)
        return
    corpus, words = prepared(chosen.name, TARGETS[chosen.name])
    arguments = [f"-max_total_time={chosen.seconds}", f"-dict={words}", f"-artifact_prefix={FOLDER}/"]
    atheris.Setup([sys.argv[0], *arguments, "-max_len=600", "-timeout=20", str(corpus)], Checker(chosen.name))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
