"""From the parameters of an estimator to parts: SPECs or part objects, flat shortcuts, nested names."""

from __future__ import annotations

from typing import Any

NESTED = ("rule", "loss", "rate")
"""Parameters that are parts, whose own parameters can be named behind two underscores: ``rule__alpha``"""


def rule_of(rule: Any, rate: Any, l1: float | None, l2: float | None, eta0: float | None) -> Any:
    """The rule with its rate and what was said flat; SpecError for what the rule does not have."""
    from thresher import parts

    made = parts.make("rule", rule)
    flat = {name: value for name, value in (("l1", l1), ("l2", l2)) if value is not None}
    if rate is not None or eta0 is not None:
        _check_field(made, "rate", "rate" if rate is not None else "eta0")
        given = parts.make("rate", made.rate if rate is None else rate)
        flat["rate"] = given if eta0 is None else changed("rate", given, {"eta0": eta0})
    return changed("rule", made, flat) if flat else made


def changed(kind: str, value: Any, fields: dict[str, Any]) -> Any:
    """The part with some fields changed: a SPEC if `value` is one. SpecError for what it does not have."""
    from thresher import parts
    from thresher.engine.protocol import rebuilt

    made = parts.make(kind, value)
    for field in fields:
        _check_field(made, field, field)
    new = rebuilt(made, **fields)
    return parts.spec_of(new) if isinstance(value, str) else new


def nested_of(kind: str, value: Any) -> dict[str, Any]:
    """What `changed` can change of a part, without the parts in it; nothing where `value` is no part."""
    from thresher import parts

    try:
        made = parts.make(kind, value)
    except ValueError:
        return {}
    return {field: getattr(made, field) for field in parts.parameters(type(made))}


def _check_field(part: Any, field: str, said: str) -> None:
    from thresher import parts

    if field not in type(part)._fields:
        name, known = parts.part_name(type(part)), ", ".join(type(part)._fields)
        raise parts.SpecError(f"{name} has no {field}, so {said} says nothing; it has {known}")
