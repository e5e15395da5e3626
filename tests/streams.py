"""Settings of every rule and models of them, for the laws, with the streams of `thresher.testing`.

The registry says which rules, losses and rates there are. A new rule is tested with its penalties at
`NOTICEABLE`, together and one at a time, and with each of its flags turned; `SETTINGS` adds settings that
matter for a particular rule.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from thresher import parts
from thresher.learning.model.model import Model
from thresher.testing.laws import Examples as Stream
from thresher.testing.laws import Vector, cut, fingerprint, labels_of, read_weights, stream, stream_of

__all__ = ["Stream", "Vector", "cut", "fingerprint", "labels_of", "read_weights", "stream", "stream_of"]

NOTICEABLE = 0.02
RATE = "power:0.2,10,0.5"
FLAT = "power:0.1,1e30,0.5"
"""0.1 for ever, by the same compiled code as RATE."""
RULES = sorted(parts.REGISTRY["rule"])
LOSSES = sorted(parts.REGISTRY["loss"])
KINDS = ["ftrl", "fobos", "adagrad-fobos", "coin", "ft-fobos", "arow", "pegasos", "normalized", "ft-ftrl"]
KINDS += ["l1-ball", "fobos-linf", "simplex", "stabilised"]
"""A rule of each kind of state and clock: rows that stand still or owe, common scales, heaps, stacks, bursts.

Where every rule would have to be compiled once more, these are, and the others run as plain Python."""
LONG = ["fobos", "adagrad-fobos", "pegasos", "l1-ball"]
"""Rules that learn a million examples, and are compiled in float64 too.

What untouched weights owe adds up in a clock, in rows, in a common scale; is found in a heap."""
RATES = {
    "constant": "constant:0.1",
    "inverse": "inverse:0.5",
    "inverse-sqrt": "inverse-sqrt:0.3",
    "power": RATE,
}

SETTINGS: dict[str, list[str]] = {
    "truncated-gradient": [
        *("gravity=0.05,theta=0.1", "gravity=0.02,every=3", "gravity=0.03,theta=gravity,every=2"),
        "gravity=0.02,theta=0.15,every=7",
    ],
    "rounding": ["theta=0.05,every=4", "theta=0.2,every=3"],
    "subgradient": ["l1=0.1", "l1=0.05,theta=0.04"],
    "clipped-subgradient": ["l1=0.2"],
    "fobos": ["l1=0.1", "l1=0.05,l2=0.5", "l1=0.05,l2=0.5,next_rate=true"],
    "ft-fobos": ["l1=0.5", "l1=0.2,p=1,cap=0.1", "l1=0.5,p=3", "l1=0.3,p=1.5,cap=0.05", "l1=2,p=inf"],
    "ft-ftrl": [
        *("alpha=0.2,l1=0.5", "alpha=0.3,l1=0.7,adapt=0", "alpha=0.2,l1=1,forget=3", "l1=0.7,taper=2"),
        *("l1=1.2,taper=1", "alpha=0.2,l1=0.5,half_life=7", "l1=0.3,forget=3,taper=2,half_life=20"),
    ],
    "cumulative": ["l1=0.1"],
    "normalized": ["eta=0.1,adaptive=false", "eta=0.05"],
    "coin": ["wealth=0.1,alpha=20", "wealth=0.01,alpha=0.5"],
    "stabilised": [
        "rejection=0,purging=0,gravity=0.1,every=3,informative=true",
        "rejection=0,purging=0,gravity=0.05,every=3",
        "rejection=0,purging=0.6,gravity=0.02,every=5",
        "rejection=0.5,purging=0,every=4",
        "rejection=0.5,purging=0,every=4,informative=true",
        "rejection=0.7,purging=0.5,every=2,stage=7",
        "rejection=0.6,purging=0.3,annealing=3,every=5,stage=4,informative=true",
        "rejection=0.5,purging=0.4,annealing=0,every=1,stage=10",
    ],
    "l2-ball": ["radius=0.5", "radius=2", "radius=0.01"],
    "fobos-l2norm": ["l2norm=0.3", "l2norm=0.6", "l2norm=0"],
    "ft-cumulative": ["l1=0.5", "l1=0.2,p=1,cap=0.1", "l1=0.5,p=3", "l1=2,p=inf"],
    "rda": ["gamma=2,l1=0.05", "gamma=2,l1=0.01,rho=0.02"],
    "adagrad-fobos": ["eta=0.2,l1=0.1", "eta=0.2,l1=0.05,l2=0.3,delta=0.1", "eta=0.1,l1=0,l2=0,delta=0"],
    "adagrad-rda": ["eta=0.2,l1=0.05", "eta=0.2,l1=0.02,l2=0.05,delta=0.1", "eta=0.1,l1=0.01,delta=0"],
    "ftrl": [
        *("alpha=0.2,beta=0,l1=0,l2=0", "alpha=0.2,l1=0.3,l2=0.5", "alpha=0.1,beta=0,l1=0.1"),
        *("alpha=0.2,l1=0.1,half_life=7", "alpha=0.1,beta=0,l1=0,half_life=20"),
    ],
    "pa": ["eta=0.5"],
    "pa-i": ["C=0.01", "C=3"],
    "pa-ii": ["C=0.01", "C=3"],
    "arow": ["r=0.1", "r=20"],
    "cw": ["eta=0.6", "eta=0.99"],
    "scw": ["C=0.05", "C=3,eta=0.7"],
    "scw-ii": ["C=0.05", "C=3,eta=0.7"],
    "fobos-linf": ["linf=0.3", "linf=0.1", "linf=1"],
    "eg": ["norm=2,features=50", "norm=1,features=30,signed=false", "norm=3,features=1000"],
    "simplex": ["features=45", "features=60"],
    "l1-ball": ["radius=3", "radius=0.05", "radius=0.5"],
    "pegasos": [
        *("l2=0.3", "l2=1,project=false", "l2=1,skip_correct=true", "l2=2,project=false,skip_correct=true"),
    ],
}
# Parameters that keep a rule from diverging on a short stream with any loss.
CALM = {
    "pegasos": {"l2": 1.0},
    "ftrl": {"alpha": 0.2},
    "ft-ftrl": {"alpha": 0.2},
    "perceptron": {"eta": 0.1},
    "averaged-perceptron": {"eta": 0.1},
    "normalized": {"eta": 0.1},
    "eg": {"norm": 2.0, "features": 50.0},
    "simplex": {"features": 50.0},
    "coin": {"wealth": 0.1},
    "stabilised": {"every": 10.0},
    "adagrad-fobos": {"eta": 0.2},
    "adagrad-rda": {"eta": 0.2},
}


def settings_of(name: str) -> list[str]:
    """SPECs under which the rule `name` is tested."""
    cls: Any = parts.lookup("rule", name)
    calm = CALM.get(name, {})
    flags = [f for f, default in parts.parameters(cls).items() if isinstance(default, bool)]
    every = dict.fromkeys(cls.PENALTIES, NOTICEABLE)
    choices: list[dict[str, Any]] = [every]
    choices += [{**dict.fromkeys(every, 0.0), p: NOTICEABLE} for p in every if len(every) > 1]
    choices += [{**every, flag: not cls._field_defaults[flag]} for flag in flags]
    written = [",".join(f"{k}={v}" for k, v in {**calm, **choice}.items()) for choice in choices]
    return [f"{name}:{text}" for text in dict.fromkeys([*written, *SETTINGS.get(name, [])])]


def kinds_of(name: str) -> list[str]:
    """The first of the settings that differ in what is zero or turned on, and the last.

    Enough for what is done to a state, whatever the numbers.
    """
    first: dict[tuple[Any, ...], str] = {}
    for spec in settings_of(name):
        made: Any = parts.make("rule", spec)
        first.setdefault(
            tuple(type(v) if isinstance(v, tuple) else (bool(v), v == np.inf) for v in made), spec
        )
    return list(dict.fromkeys([*first.values(), settings_of(name)[-1]]))


def averages(spec: str) -> bool:
    """Whether there is a formula for the sum of its weights between two visits."""
    rule: Any = parts.make("rule", spec)
    return rule.DRIFTS is not None and not getattr(rule, "half_life", np.inf) < np.inf


def has_rate(spec: str) -> bool:
    return "rate" in parts.lookup("rule", spec.partition(":")[0])._fields


def model_of(spec: str, loss: str = "logistic", *, rate: str = RATE, **options: Any) -> Model:
    options.setdefault("dtype", "float64")
    options.setdefault("centre", False)  # tests/learning/test_centring.py centres
    options.setdefault("store", "growing")
    return Model(spec, loss, rate=rate if has_rate(spec) else None, **options)


@contextmanager
def case(*names: object) -> Iterator[None]:
    """Name one of many cases tried by one test, in the report of its failure."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {' '.join(map(str, names))}")
        raise


def domain_of(loss: str) -> str:
    return str(parts.lookup("loss", loss).DOMAIN)
