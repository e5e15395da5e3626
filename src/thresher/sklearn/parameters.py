"""Parameters of an estimator that are parts, and the nested names of what these have."""

from __future__ import annotations

from typing import Any

NESTED = ("rule", "loss", "rate")
"""Parameters that are parts, whose own parameters can be named behind two underscores: ``rule__alpha``"""


def nested_of(kind: str, value: Any) -> dict[str, Any]:
    """What `changed` can change of a part, without the parts in it; nothing where `value` is no part."""
    from thresher import parts

    try:
        made = parts.make(kind, value)
    except ValueError:
        return {}
    return {field: getattr(made, field) for field in parts.parameters(type(made))}
