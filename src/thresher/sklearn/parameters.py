"""Nested parameters of an estimator: those of its rule, loss and rate."""

from __future__ import annotations

from typing import Any

NESTED = ("rule", "loss", "rate")
"""Parameters that are parts; their own parameters are set with two underscores: ``rule__alpha``"""


def nested_of(kind: str, value: Any) -> dict[str, Any]:
    """Parameters of a part that `changed` accepts, without nested parts; empty if `value` is not a part."""
    from thresher import parts

    try:
        made = parts.make(kind, value)
    except ValueError:
        return {}
    return {field: getattr(made, field) for field in parts.parameters(type(made))}
