"""Write the tables of verbs in docs/design.md from their declarations: ``python docs/verb_table.py``."""

from __future__ import annotations

from pathlib import Path

from thresher.engine.protocol import PROTOCOL, Verb
from thresher.parts import REGISTRY

DESIGN = Path(__file__).parent / "design.md"
BEGIN, END = "<!-- verbs: written by `make pages` -->\n", "<!-- end of verbs -->\n"


def row(name: str, declared: Verb) -> str:
    """One verb: what it takes, what it says, what it does where it is not written."""
    first = (declared.default.__doc__ or "").splitlines()[0]
    text, _, default = first.partition(" Default: ")
    says = text.replace("``", "`") + ("" if declared.compiled else " Never compiled.")
    otherwise = "**required**" if declared.required else default.removesuffix(".")
    return f"| `{name}({', '.join(declared.parameters[1:])})` | {says} | {otherwise} |\n"


def tables() -> str:
    """A table for each kind of part."""
    text = ""
    for kind in REGISTRY:
        rows = "".join(row(name, declared) for name, declared in PROTOCOL[kind].items())
        text += f"\n| {kind} | | default |\n|---|---|---|\n{rows}"
    return text


def with_tables(design: str) -> str:
    """The text of docs/design.md with the tables of today."""
    before, _, rest = design.partition(BEGIN)
    return before + BEGIN + tables() + "\n" + END + rest.partition(END)[2]


def main() -> None:
    """Write them."""
    DESIGN.write_text(with_tables(DESIGN.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
