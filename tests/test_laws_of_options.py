"""Laws 2, 3, 6, 7, 8 and 11 for what a model does besides its rule, in plain Python.

An option of a model gets all of them with a line of `CASES`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import thresher
from tests import laws, streams
from tests.intakes import table
from tests.learning import test_calibration as calibrating
from tests.learning import test_centring as centring
from tests.learning import test_intake as intake
from tests.learning import test_sampling as sampling
from tests.test_law_of_continuing import bits, halves
from tests.test_law_of_offsets import OPTIONS as WITH_OFFSETS
from tests.test_law_of_offsets import recipe_of, with_shifts
from tests.test_laws_of_state import STORES
from thresher.data.chunk import Chunk
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes

pytestmark = pytest.mark.usefixtures("plainly")
ROWS, PLACES = 60, (0, 1, 1, 50, 51)


class Case(NamedTuple):
    make: Callable[..., Model]
    chunk: Chunk


STREAM = streams.stream(seed=5, rows=ROWS)
AVERAGED = {"rule": "fobos:l1=0.02", "rate": "constant:0.1", "average": True}
OTHERS: list[dict[str, Any]] = [
    *(AVERAGED, {"batch": 5}, {"seed": 5, "store": "hashed:5"}, {"intercept": False}),
    *({"dtype": "float64", "batch": 11}, {"admit": "poisson:0.5"}, {"scale": "max-abs"}),
]
store = cycle(STORES)
CASES: dict[str, Case] = {
    **{
        f"centre, {name}": Case(
            partial(centring.made, case, store=next(store)), centring.data_for(case).chunk.rows(0, ROWS)
        )
        for name, case in centring.CASES.items()
    },
    **{
        f"scale {scale}, admit {admit}, {name}": Case(
            partial(intake.made, case, scale=scale, admit=admit, store=next(store)),
            intake.labelled(case, table().chunk.rows(0, ROWS)),
        )
        for (name, case), (scale, admit) in zip(intake.CASES.items(), cycle(intake.WAYS), strict=False)
    },
    **{
        f"{what}, {name}": Case(partial(Model, **case), of.rows_for(case).rows(0, ROWS))
        for what, of in (("calibrate", calibrating), ("sample", sampling))
        for name, case in of.CASES.items()
    },
    **{
        f"offset, {case}": Case(partial(Model, recipe_of(case)), with_shifts(STREAM)[0].chunk)
        for case in WITH_OFFSETS
    },
    **{f"{case}": Case(partial(Model, Recipe(**{"rule": "ftrl", **case})), STREAM.chunk) for case in OTHERS},
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@each
def test_cutting_changes_nothing(case: Case) -> None:
    with laws.set_to(laws.SMALL_TABLES):
        laws.cutting(case.make, case.chunk, PLACES)


@each
def test_stopping_changes_nothing(case: Case) -> None:
    laws.stopping(case.make, case.chunk, PLACES)


@each
def test_looking_changes_nothing(case: Case) -> None:
    alone, watched = case.make(), case.make()
    for piece in streams.cut(case.chunk, PLACES):
        alone.learn(piece)
        watched.learn(piece)
        for one in (watched, watched.predictor()):
            one.predict(case.chunk)
        watched.weights()
        as_bytes(watched)
        assert streams.fingerprint(watched) == streams.fingerprint(alone)


@each
def test_lanes_are_runs(case: Case) -> None:
    """Beside lanes that learn together."""
    own = case.make().recipe
    others = [replace(own, rule=f"fobos:l1={l1}", rate="constant:0.001") for l1 in (0.01, 0.02, 0.05, 0.1)]
    laws.lanes_are_runs([own, *others], case.chunk)


@each
def test_what_is_saved_is_what_predicts(case: Case, tmp_path: Path) -> None:
    model = case.make()
    model.learn(case.chunk)
    model.finish()
    model_file.save(model, tmp_path / "m", state=False)
    read, _ = model_file.load_predictor(tmp_path / "m")
    near = 0 if model.recipe.batch == 1 else 1e-5  # plain Python rounds weights of batches otherwise
    for output in ("margin", *(("probability",) if model.recipe.calibrate else ())):
        for found in (read, model.predictor()):
            expected = model.predict(case.chunk, output)
            np.testing.assert_allclose(found.predict(case.chunk, output), expected, rtol=near, atol=near)
    assert not any(name.startswith(("state", "admit")) for name in model_file.read(tmp_path / "m")[1])


@each
@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_a_stream_continued_is_a_stream(case: Case, tmp_path: Path) -> None:
    (first, second), recipe = halves(case.chunk), replace(case.make().recipe, layout=None)
    thresher.train(first, recipe, passes=1).save(tmp_path / "m")
    found = thresher.train(second, continue_from=tmp_path / "m", passes=1)
    assert bits(found) == bits(thresher.train(case.chunk, recipe, passes=1))
