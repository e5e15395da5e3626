"""Averaged weights of many outputs, and of batches: the mean of the dense path, and the laws of state."""

import pytest

from tests.plain import not_compiled
from tests.test_averaging import SPECS, short_rings
from tests.test_laws_of_outputs import GROUPS, check, model_of, stream_for

__all__ = ["short_rings"]
BATCHES = [1, 7]
FIRST = SPECS


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("loss", ["softmax", "crammer-singer"])
@pytest.mark.parametrize("spec", [*SPECS, *GROUPS])
def test_the_mean(spec: str, loss: str, batch: int, short_rings: None) -> None:
    data = stream_for(loss, "classes", seed=1, rows=80)
    with not_compiled():
        check(model_of(spec, loss, "classes:3", batch=batch, average=True), data)
