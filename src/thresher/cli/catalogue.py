"""``thresher rules``, ``losses`` and ``rates``: every part with its parameters and defaults."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import typer

PLURALS = {"rule": "rules", "loss": "losses", "rate": "rates"}


def lister(kind: str) -> Callable[[], None]:
    """The command that lists the parts of a kind."""

    def command() -> None:
        from thresher import parts

        for name, cls in sorted(parts.REGISTRY[kind].items()):
            typer.echo(_described(name, cls, parts.parameters(cls)))

    command.__doc__ = f"List the {PLURALS[kind]}: parameters with defaults, what each does, its reference."
    return command


def _described(name: str, cls: Any, parameters: dict[str, Any]) -> str:
    shown = ",".join(f"{field}={_short(value)}" for field, value in parameters.items())
    text = inspect.getdoc(cls) or ""
    update = " ".join(text.split("\n\n")[0].split())
    found = re.search(r"Reference: (.*?)(?:\n\n|$)", text, re.DOTALL)
    reference = f"\n    {' '.join(found[1].split())}" if found else ""
    rate = "\n    step sizes: --rate" if "rate" in cls._fields else ""
    return f"{name}:{shown}\n    {update}{rate}{reference}\n"


def _short(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
