"""Losses, rates and rules. Importing this package registers them all.

`make("rule", "ftrl:alpha=0.5")` makes a part; `REGISTRY` lists the classes by kind and name.
"""

import pkgutil
from importlib import import_module

from thresher.parts import groups, losses, rates, rules
from thresher.parts.clamped import LISTED, NONNEGATIVE, NONPOSITIVE
from thresher.parts.description import Description, describe
from thresher.parts.origins import REGISTRY, Need, SpecError, check_there, expect, homes, load_files, needs_of
from thresher.parts.registry import (
    AUTO,
    changed,
    clamped,
    fields_said,
    find,
    lacking,
    lookup,
    make,
    names,
    no_probabilities,
    parameters,
    part_name,
    rule_of,
    spec_of,
)

for _module in pkgutil.iter_modules(rules.__path__):
    import_module(f"{rules.__name__}.{_module.name}")

__all__ = [
    "AUTO",
    "LISTED",
    "NONNEGATIVE",
    "NONPOSITIVE",
    "REGISTRY",
    "Description",
    "Need",
    "SpecError",
    "changed",
    "check_there",
    "clamped",
    "describe",
    "expect",
    "fields_said",
    "find",
    "groups",
    "homes",
    "lacking",
    "load_files",
    "lookup",
    "losses",
    "make",
    "names",
    "needs_of",
    "no_probabilities",
    "parameters",
    "part_name",
    "rates",
    "rule_of",
    "rules",
    "spec_of",
]
