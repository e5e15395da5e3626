"""Reading the digits of numbers that float32 does not have."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.data.text.numbers import read_double
from thresher.data.text.words import address
from thresher.engine.centring import rest_of
from thresher.engine.compile.jit import kernel

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"


@kernel
def _doubles(text, starts, out):
    at = address(text)
    for k in range(starts.size):
        out[k] = read_double(at, starts[k])


def test_decimals_become_the_nearest_float64() -> None:
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.normal(size=400) * 10.0 ** rng.integers(1, 21, 400), 2.0 ** np.arange(70)])
    words = [*map(repr, numbers.tolist()), *(f"{x:.18e}" for x in numbers), *(f"{x:+.4f}" for x in numbers)]
    words += [str(2**53 + 1), str(2**63 - 1), "1600000000123456789", "-16e8", "1.6e+09", "0012345678.90"]
    words = [word for word in words if sum(map(str.isdigit, word.partition("e")[0].lstrip("+-0"))) <= 19]
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    text = np.frombuffer(" ".join(words).encode() + b" " * 80, np.uint8).copy()
    found = np.empty(len(words))
    _doubles(text, starts[:-1], found)
    np.testing.assert_array_equal(found, [float(word) for word in words])


@pytest.mark.parametrize(
    ("number", "rest"), [(2.0**24 + 1, 1.0), (65536.0, 0.0), (0.1, 0.0), (-1.6e9 - 3, -3.0), (1e300, 0.0)]
)
def test_a_rest_is_what_float32_loses_of_a_large_number(number: float, rest: float) -> None:
    with np.errstate(over="ignore"):
        assert rest_of(number, np.float32(number)) == rest
