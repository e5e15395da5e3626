"""A rule from its SPEC and separate parameters: rate, penalties, step size."""

from __future__ import annotations

from typing import Any

from thresher.parts.registry import changed, check_field, make


def rule_of(rule: Any, rate: Any = None, eta0: float | None = None, **fields: float | None) -> Any:
    """The rule with its rate and some fields changed (None: unchanged). SpecError for a field it lacks.

    >>> rule_of("ft-ftrl", l1=2.0, alpha=None).l1
    2.0
    """
    made = make("rule", rule)
    flat: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if rate is not None or eta0 is not None:
        check_field(made, "rate", "rate" if rate is not None else "eta0")
        given = make("rate", made.rate if rate is None else rate)
        flat["rate"] = given if eta0 is None else changed("rate", given, {"eta0": eta0})
    return changed("rule", made, flat) if flat else made
