"""Laws 2, 3, 4, 6 and 8, for every rule of the registry: what changes no bit of a model.

How its stream is cut, how its rows are stored, and that it is stopped, inspected, saved or read elsewhere.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests import laws, streams
from tests.laws import SMALL_TABLES, comparable
from tests.plain import compiled_if, not_compiled
from tests.streams import KINDS, RULES, Stream, Vector, case, fingerprint, kinds_of, settings_of, stream
from thresher.data.chunk import Chunk
from thresher.engine.protocol import writes
from thresher.learning.files import model_file
from thresher.learning.model import batch_feeder as feed
from thresher.learning.model.model import Model
from thresher.parts.registry import REGISTRY

STORES = ["growing", "direct", "hashed:6"]
ROOT = Path(__file__).parent.parent
SURROUNDINGS = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
ROWS, FEATURES = 60, 40
KEYS = np.sort(np.random.default_rng(0).integers(0, 2**64, FEATURES, np.uint64))


@pytest.fixture(scope="session")
def dense() -> Stream:
    return stream(seed=11, rows=ROWS, features=FEATURES, density=0.1)


@pytest.fixture(scope="session")
def wide() -> Stream:
    """Examples with 64-bit keys, most of them rare."""
    return stream(seed=12, rows=ROWS, features=FEATURES, density=0.1, keys=KEYS)


def cases(name: str) -> list[tuple[str, str]]:
    """Settings of a rule in the growing store, and one of each kind of rule in other stores."""
    others = [(settings_of(name)[0], store) for store in STORES[1:] if name in KINDS]
    return [*((spec, "growing") for spec in kinds_of(name)), *others]


@contextmanager
def compiled_in_one_store(spec: str, store: str) -> Iterator[None]:
    """Stores other than the growing one use plain Python kernels; law 4 compiles for each."""
    with case(spec, store), compiled_if(store == "growing"):
        yield


def model_of(spec: str, **options: Any) -> Model:
    """A model of the dtype that is compiled for every rule."""
    return streams.model_of(spec, **{"dtype": "float32", **options})


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in SMALL_TABLES:
        monkeypatch.setattr(*one)


def learned(spec: str, chunk: Chunk, **options: Any) -> Model:
    model = model_of(spec, **options)
    model.learn(chunk)
    return model


# Law 2


@pytest.mark.parametrize("name", RULES)
def test_cutting_changes_nothing(name: str, dense: Stream, small_tables: None) -> None:
    for spec, store in cases(name):
        with compiled_in_one_store(spec, store):
            whole = laws.cutting(partial(model_of, spec, store=store), dense.chunk)
            assert whole.examples == np.count_nonzero(dense.importance)


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=max(4, settings().max_examples // 4))
@given(st.data())
def test_no_cut_changes_anything(name: str, data: st.DataObject) -> None:
    spec, store = data.draw(st.sampled_from(settings_of(name))), data.draw(st.sampled_from(STORES))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    examples = stream(seed=13, rows=30, features=20).chunk
    places = data.draw(st.lists(st.integers(0, 30), max_size=8))
    with not_compiled(), pytest.MonkeyPatch.context() as monkeypatch:
        make_small(monkeypatch)
        laws.cutting(partial(model_of, spec, store=store, dtype=dtype), examples, places)


def test_pieces_are_no_cut_either(dense: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = learned("fobos:l1=0.1", dense.chunk)
    monkeypatch.setattr(feed, "PIECE", 3)
    assert fingerprint(learned("fobos:l1=0.1", dense.chunk)) == fingerprint(whole)


# Law 3


@pytest.mark.parametrize("name", RULES)
def test_stopping_changes_nothing(name: str, wide: Stream, dense: Stream, small_tables: None) -> None:
    for spec, store in cases(name):
        with compiled_in_one_store(spec, store):
            data = dense if store == "direct" else wide
            laws.stopping(partial(model_of, spec, store=store, seed=3), data.chunk)


def test_a_restored_model_owns_its_state(dense: Stream) -> None:
    """What is learned after `restore` must not reach back into the arrays restored from."""
    for store in STORES:
        first = learned("fobos:l1=0.05", dense.chunk, store=store)
        before = fingerprint(first)
        second = model_of("fobos:l1=0.05", store=store)
        second.restore(first.state())
        second.learn(dense.chunk)
        assert fingerprint(first) == before


# Law 4


@pytest.mark.parametrize("name", RULES)
def test_the_store_changes_nothing(name: str, dense: Stream) -> None:
    freed = 0
    for spec in kinds_of(name):
        with case(spec), not_compiled():
            freed += check_stores(spec, "float64", dense)
    if all(writes(REGISTRY["rule"][name], verb) for verb in ("relocate", "idle")):
        assert freed > FEATURES / 2, "rows must move where they are pointed to"


@pytest.mark.parametrize("name", ["fobos", "ft-ftrl"])
def test_the_store_changes_nothing_in_compiled_code(name: str, dense: Stream) -> None:
    for spec in settings_of(name):
        with case(spec):
            check_stores(spec, "float32", dense)


def check_stores(spec: str, dtype: str, dense: Stream) -> int:
    """How many rows were freed by the store that sweeps."""
    return laws.stores(partial(model_of, spec, dtype=dtype), dense.chunk, FEATURES)


@pytest.mark.parametrize("name", RULES)
def test_keys_of_64_bits_are_kept_as_they_are(name: str, dense: Stream, small_tables: None) -> None:
    chunk = dense.chunk
    renamed = Chunk(chunk.indptr, KEYS[chunk.keys], chunk.values, chunk.labels, chunk.weights)
    few, many = (learned(settings_of(name)[0], c, store="growing") for c in (chunk, renamed))
    assert comparable(many, FEATURES, lambda j: KEYS[j]) == comparable(few, FEATURES)


def deaths_and_births(spec: str, chunk: Chunk) -> tuple[int, int]:
    """Rows freed, and created again, in a growing store that must sweep."""
    model = model_of(spec, store="growing", rate="power:0.2,1e30,0.5")
    model.learn(chunk)
    state = model.state()
    freed = int(state["counts"][1])
    return freed, freed + len(state["keys"]) - 1 - len(np.unique(chunk.keys))


@pytest.mark.parametrize(
    "spec",
    [
        *("truncated-gradient:gravity=0.2", "truncated-gradient:gravity=0.1,theta=0.3,every=3"),
        *("rounding:theta=0.3,every=2", "clipped-subgradient:l1=0.2", "fobos:l1=0.2"),
        *("fobos:l1=0.2,l2=0.1", "fobos-l2norm:l2norm=0.6"),
        *("stabilised:rejection=0.5,purging=0.6,every=3,stage=2", "ft-ftrl:forget=3"),
    ],
)
def test_rules_that_truncate_free_their_rows(spec: str, dense: Stream, small_tables: None) -> None:
    freed, reborn = deaths_and_births(spec, dense.chunk)
    assert freed > FEATURES
    assert reborn > 0


@pytest.mark.parametrize("name", RULES)
def test_idle_rows_are_as_good_as_new(name: str, dense: Stream) -> None:
    """What `idle` frees must read as zero now, and step like a row of zeros."""
    for spec in settings_of(name):
        with not_compiled():
            model = learned(spec, dense.chunk, dtype="float64")
        laws.idle_rows(model)


# Law 6


@pytest.mark.parametrize("name", RULES)
def test_looking_changes_nothing(name: str, dense: Stream, small_tables: None) -> None:
    for spec in kinds_of(name):
        with case(spec):
            laws.looking(partial(model_of, spec, store="growing"), dense.chunk)


# Law 8

READER = """
import sys
import numpy as np
from tests.test_laws_of_state import stream
from thresher.learning.files import model_file

chunk = stream(seed=14, rows=60, features=40).chunk
for path in map(str.strip, sys.stdin):
    np.save(path + ".npy", model_file.load_predictor(path)[0].predict(chunk))
    print("done", flush=True)
"""


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Callable[[Path], Vector]]:
    """What another process predicts with a model file."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", READER], env=SURROUNDINGS, **pipes) as process:

        def predicted(path: Path) -> Vector:
            print(path, file=process.stdin, flush=True)
            assert process.stdout.readline() == "done\n"
            found: Vector = np.load(f"{path}.npy")
            return found

        yield predicted
        process.stdin.close()


@pytest.mark.parametrize("name", RULES)
def test_what_is_saved_is_what_predicts(name: str, elsewhere: Any, dense: Stream) -> None:
    unseen = stream(seed=14, rows=60, features=40).chunk
    for spec in kinds_of(name):
        with case(spec):
            laws.saving(partial(model_of, spec, store="growing"), dense.chunk, unseen, elsewhere)


@pytest.mark.parametrize("name", RULES)
def test_a_prediction_is_the_sum_over_the_weights_that_are_read(name: str, dense: Stream) -> None:
    for spec in kinds_of(name):
        with case(spec), not_compiled():
            model = learned(spec, dense.chunk, dtype="float64")
            margins, row = model.predict(dense.chunk), streams.read_weights(model, FEATURES)
            if not model.predictor().unmet.any():
                keys, weights = model.weights()
                row = np.zeros(FEATURES)
                row[keys.astype(int)] = weights
            assert np.allclose(margins, dense.X @ row + model.intercept, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", ["simplex:features=59", "eg:features=59,norm=1,signed=false"])
@pytest.mark.parametrize("options", [{"store": store} for store in STORES] + [{"outputs": "classes:3"}])
def test_weights_that_do_not_start_at_zero_are_all_told(
    spec: str, options: dict[str, Any], tmp_path: Path, plainly: None
) -> None:
    """Also those of features that were seen and never moved: the weights of each output sum to one."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((90, 57)) < 0.3, rng.random((90, 57)), 0.0)
    dense[1:, 50:] = 0.0
    dense[0] = 0.0
    dense[0, 50:] = 1000.0  # so much margin that the slope is zero, for the first class
    X = sparse.csr_array(dense)
    labels = rng.integers(1, 4, 90) if "outputs" in options else rng.choice([-1, 1], 90)
    labels[0] = 1
    chunk = Chunk.from_csr(X.indptr, X.indices, X.data, labels)
    model = Model(spec, "hinge", rate="constant:0.001", **options)
    model.learn(chunk)
    model_file.save(model, str(tmp_path / "m"), state=False)
    for found in (model, model.predictor(), model_file.load_predictor(tmp_path / "m")[0]):
        predictor = found.predictor() if isinstance(found, Model) else found
        table = predictor.weights.reshape(len(predictor.keys), -1)
        assert len(predictor.keys) == model.features_seen > 50
        never = (59 - model.features_seen) * predictor.unmet
        assert table.sum(axis=0) + never == pytest.approx(np.ones(table.shape[1]), abs=1e-9)
        assert found.nonzero == np.count_nonzero(table)
    moved = table != predictor.unmet
    assert not moved.all(), "every feature moved: nothing tested"
    assert len(model.weights()[0]) == table.any(axis=1).sum()
