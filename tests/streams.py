"""Streams of examples, settings of every rule and fingerprints of models, for the laws.

The registry says which rules, losses and rates there are. A new rule is tested with its penalties at
`NOTICEABLE`, together and one at a time, and with each of its flags turned; `SETTINGS` adds settings that
matter for a particular rule.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.learning.model.model import Model

Vector = NDArray[np.float64]

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
        "gravity=0.05,theta=0.1",
        "gravity=0.02,every=3",
        "gravity=0.03,theta=gravity,every=2",
        "gravity=0.02,theta=0.15,every=7",
    ],
    "rounding": ["theta=0.05,every=4", "theta=0.2,every=3"],
    "subgradient": ["l1=0.1", "l1=0.05,theta=0.04"],
    "clipped-subgradient": ["l1=0.2"],
    "fobos": ["l1=0.1", "l1=0.05,l2=0.5", "l1=0.05,l2=0.5,next_rate=true"],
    "ft-fobos": ["l1=0.5", "l1=0.2,p=1,cap=0.1", "l1=0.5,p=3", "l1=0.3,p=1.5,cap=0.05", "l1=2,p=inf"],
    "ft-ftrl": [
        "alpha=0.2,l1=0.5",
        "alpha=0.3,l1=0.7,adapt=0",
        "alpha=0.2,l1=1,forget=3",
        "l1=0.7,taper=2",
        "l1=1.2,taper=1",
        "alpha=0.2,l1=0.5,half_life=7",
        "l1=0.3,forget=3,taper=2,half_life=20",
    ],
    "cumulative": ["l1=0.1"],
    "normalized": ["eta=0.1,adaptive=false", "eta=0.05"],
    "coin": ["wealth=0.1,alpha=20", "wealth=0.01,alpha=0.5"],
    "informative-truncation": ["gravity=0.1,every=3", "gravity=0.02,every=1", "gravity=0.02,every=50"],
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
        "alpha=0.2,beta=0,l1=0,l2=0",
        "alpha=0.2,l1=0.3,l2=0.5",
        "alpha=0.1,beta=0,l1=0.1",
        "alpha=0.2,l1=0.1,half_life=7",
        "alpha=0.1,beta=0,l1=0,half_life=20",
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
        "l2=0.3",
        "l2=1,project=false",
        "l2=1,skip_correct=true",
        "l2=2,project=false,skip_correct=true",
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
        first.setdefault(tuple(type(v) if isinstance(v, tuple) else bool(v) for v in made), spec)
    return list(dict.fromkeys([*first.values(), settings_of(name)[-1]]))


def averages(spec: str) -> bool:
    """Whether there is a formula for the sum of its weights between two visits."""
    rule: Any = parts.make("rule", spec)
    return rule.DRIFTS is not None and not (hasattr(rule, "half_life") and rule.half_life.fades())


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


class Stream(NamedTuple):
    chunk: Chunk
    X: Vector
    y: Vector
    importance: Vector


def stream_of(
    X: Vector, stored: NDArray[np.bool_], y: Vector, importance: Vector, keys: Any = None
) -> Stream:
    """The examples as a chunk and as float64 arrays of the same numbers; zero where nothing is `stored`."""
    row, column = np.nonzero(stored)
    names = np.arange(X.shape[1], dtype=np.uint64) if keys is None else keys
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    chunk = Chunk.from_csr(indptr, names[column], X[row, column], y, importance)
    exact = np.zeros(X.shape)
    exact[row, column] = X.astype(np.float32)[row, column]
    return Stream(chunk, exact, chunk.labels.astype(np.float64), chunk.weights.astype(np.float64))


def stream(
    seed: int = 0,
    rows: int = 120,
    features: int = 12,
    domain: str = "binary",
    *,
    density: float = 0.3,
    scale: float = 1.0,
    weighted: bool = True,
    keys: Any = None,
) -> Stream:
    """Random examples of a noisy linear model. Some rows are empty, and some stored values zero.

    Features have very different frequencies, so that some miss many steps. No two numbers tie: at
    a tie a rule may turn either way, and an oracle that adds in another order may turn the other.
    """
    rng = np.random.default_rng(seed)
    chances = np.minimum(1.0, density * 3.0 / np.arange(1, features + 1) ** 0.7)
    stored = rng.random((rows, features)) < chances
    stored[rng.random(rows) < 0.05] = False
    X = np.where(stored & (rng.random(stored.shape) < 0.95), scale * rng.uniform(-1, 1, stored.shape), 0.0)
    score = X @ rng.normal(size=features) / scale + 0.3 * rng.normal(size=rows)
    importance = rng.choice([0.5, 0.25, 1.0, 1.0, 1.7], rows) if weighted else np.ones(rows)
    return stream_of(X, stored, labels_of(domain, score, rng), importance, keys)


def labels_of(domain: str, score: Vector, rng: np.random.Generator) -> Vector:
    if domain == "binary":
        return np.where(score > 0, 1.0, -1.0)
    if domain == "nonnegative":
        return rng.poisson(np.exp(np.minimum(0.5 * score, 1.0))).astype(np.float64)
    return score


def domain_of(loss: str) -> str:
    return str(parts.lookup("loss", loss).DOMAIN)


def read_weights(model: Model, features: int) -> Vector:
    """All weights of a model whose keys are 0..features-1, zeros included."""
    readout = model.readout()
    out = np.full(features, float(readout.unmet[0]))
    out[readout.keys.astype(np.int64)] = readout.weights
    return out


def fingerprint(model: Model) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Every bit of the state from which learning continues."""
    return {
        name: (str(array.dtype), array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in model.state().items()
    }


def cut(chunk: Chunk, places: list[int]) -> Iterator[Chunk]:
    for lo, hi in pairwise([0, *sorted(places), len(chunk)]):
        yield chunk.rows(lo, hi)
