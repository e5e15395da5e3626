"""Keys, hashes, draws and figures as the pages write them down, programmed again in plain Python."""

import math
from collections.abc import Iterator
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from thresher.data import open_source
from thresher.data.chunk import Chunk
from thresher.data.layout import Layout
from thresher.engine.index import HashedIndex
from thresher.learning.model.bags import Bags
from thresher.learning.model.preprocessing import Preprocessor

ALL, G = 2**64 - 1, 0x9E3779B97F4A7C15
SEEDS = [0, 7, 2**63 + 5]
KEYS = [0, 1, 17, 2**40 + 3, ALL]


def mix(k: int) -> int:
    return (k ^ k >> 32) * G & ALL


def scatter(m: int) -> int:
    n = (m ^ m >> 29) * 0xBF58476D1CE4E5B9 & ALL
    return n ^ n >> 32


def unit(h: int) -> float:
    return float(h >> 11) * 2.0**-53


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_and_signs_of_the_hashed_store(seed: int, signed: bool) -> None:
    index = HashedIndex(12, seed, signed)
    for key in KEYS:
        found = index.find(np.array([key], np.uint64), np.array([0, 1]), np.array([3], np.float32))
        h = mix(key ^ mix(seed))
        h = scatter(h) if signed else h
        assert found.rows[0] == h >> 64 - 12
        assert found.values[0] == (3 if h & 1 or not signed else -3)


def h(i: int, p: int, seed: int) -> int:
    return scatter(mix((i * G + scatter(mix((seed + p * G) & ALL))) & ALL))


def u(i: int, p: int, seed: int) -> float:
    return unit(h(i, p, seed))


ROWS = 180
FEW = [0, 2**63 + 5]


def rows_of(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed % 1000)
    return rng.normal(size=(ROWS, 2)), rng.integers(0, 2, ROWS)


def learned(X: Any, y: Any, rule: str = "sgd", **options: Any) -> dict[str, Any]:
    """The weights of a model: those of `sgd` tell which rows it learned, and in which order."""
    model = thresher.train(X, y, rule=rule, passes=1, centre=False, dtype="float64", **options)
    return {"weights": model.weights()[1].tolist(), "intercept": model.intercept}


def one_of(n: int, seed: int) -> list[int]:
    return [n * j + math.floor(n * u(j, 2, seed)) for j in range(-(-ROWS // n))]


def several_of(m: int, n: int, seed: int) -> Iterator[int]:
    for j in range(-(-ROWS // n)):
        places = {(r + math.floor(n * u(j, 4, seed))) % n: n * j + r for r in range(n)}
        for k in range(m):
            first, end = k * n // m, (k + 1) * n // m
            yield places[first + math.floor((end - first) * u(j * m + k, 2, seed))]


@pytest.mark.parametrize("seed", FEW)
@pytest.mark.parametrize("share", ["1/5", "1/7", "2/5", "3/7", "7/9"])
def test_rows_that_are_held_out(share: str, seed: int, plainly: None) -> None:
    X, y = rows_of(seed)
    m, n = Fraction(share).numerator, Fraction(share).denominator
    held = [*several_of(m, n, seed)] if m > 1 else one_of(n, seed)
    rest = sorted({*range(ROWS)} - {*held})
    assert abs(ROWS - len(rest) - ROWS * m / n) <= 1
    assert learned(X, y, holdout=m / n, seed=seed) == learned(X[rest], y[rest], seed=seed)


@pytest.mark.parametrize("seed", FEW)
def test_folds(seed: int, plainly: None) -> None:
    X, y = rows_of(seed)
    folds = np.array(
        [sum(h(o, 3, seed) < h(i, 3, seed) for o in range(i - i % 4, i - i % 4 + 4)) for i in range(ROWS)]
    )
    found = thresher.cv(X, y, rule="sgd", folds=4, passes=1, centre=False, seed=seed, dtype="float64").points[
        0
    ]
    losses = []
    for k in range(4):
        model = thresher.train(
            X[folds != k], y[folds != k], rule="sgd", passes=1, centre=False, dtype="float64"
        )
        losses.append(thresher.evaluate(model, X[folds == k], y[folds == k])["loss"])
    assert found.figures["loss"] == pytest.approx(np.mean(losses), rel=1e-12)
    assert found.figures["loss_se"] == pytest.approx(np.std(losses, ddof=1) / 2, rel=1e-9)


@pytest.mark.parametrize("seed", FEW)
def test_groups(seed: int, plainly: None) -> None:
    X, y = rows_of(seed)
    groups = [{35: "", 36: "17.0"}.get(k % 37, f"user {k % 37}") for k in range(ROWS)]
    texts = [group.removesuffix(".0").encode() for group in groups]
    hashes = [int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts]
    hashes = [g if groups[i] else i for i, g in enumerate(hashes)]
    rest = [k for k, g in enumerate(hashes) if not u(g, 2, seed) < 0.3]
    found = learned(X, y, holdout=0.3, groups=groups, seed=seed)
    assert found == learned(X[rest], y[rest], seed=seed)
    assert ROWS / 2 < len(rest) < ROWS * 0.9


@pytest.mark.parametrize("seed", FEW)
def test_samples(seed: int, plainly: None) -> None:
    X, y = rows_of(seed)
    kept = [i for i in range(ROWS) if not u(i, 5, seed) >= (0.6 if y[i] else 0.3)]
    weights = [float(np.float32(1 / (0.6 if y[i] else 0.3))) for i in kept]
    found = learned(X, y, sample={0: 0.3, 1: 0.6}, seed=seed)
    assert found == learned(X[kept], y[kept], sample_weight=weights, seed=seed)
    corrected = learned(X, y, sample="0=0.3,1=0.6,correct", seed=seed)
    plain = learned(X[kept], y[kept], seed=seed)
    assert corrected["weights"] == plain["weights"]
    assert corrected["intercept"] == pytest.approx(plain["intercept"] + math.log(0.3 / 0.6), rel=1e-12)


@pytest.mark.parametrize("seed", FEW)
def test_orders(seed: int, plainly: None) -> None:
    X, y = rows_of(seed)
    rng = np.random.default_rng([seed, 1])
    once = rng.permutation(ROWS)
    assert learned(X, y, order="once", seed=seed) == learned(X[once], y[once], seed=seed)
    rng, buffer, left = np.random.default_rng([seed, 1]), [*range(50)], list[int]()
    for row in range(50, ROWS):
        place = math.floor(50 * rng.random())
        left.append(buffer[place])
        buffer[place] = row
    left += [buffer[k] for k in rng.permutation(50)]
    assert learned(X, y, order="buffer:50", seed=seed) == learned(X[left], y[left], seed=seed)


def draws(seed: int, i: int, models: int) -> Iterator[int]:
    below = [sum(math.exp(-1) / math.factorial(c) for c in range(j + 1)) for j in range(18)]
    r = scatter(mix((i * G + scatter(mix(seed + G & ALL))) & ALL))
    for k in range(models):
        u = unit(scatter(mix((r + (k + 1) * G) & ALL)))
        yield sum(p <= u for p in below)


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_of_ensembles(seed: int) -> None:
    found, apart = Bags.of(3, seed).draw(10, 200), Bags.of("disjoint:3", seed).draw(10, 200)
    for i in range(200):
        assert found[:, i].tolist() == [*draws(seed, 10 + i, 3)]
        r = scatter(mix(((10 + i) * G + scatter(mix(seed + G & ALL))) & ALL))
        assert apart[:, i].tolist() == [int(k == math.floor(3 * unit(r))) for k in range(3)]
    assert {0, 1, 2, 3} <= {*found.ravel().tolist()}


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_of_halves(seed: int) -> None:
    drawn, groups = Bags.of("halves:6:0.3", seed).draw(10, 200), np.arange(10, 210, dtype=np.uint64) // 3
    found = Bags.of("halves:6", seed).draw(10, 200, groups)
    for i in range(10, 210):
        for k in range(6):
            m, g = k // 2, int(groups[i - 10]) or i
            b, whole = ((scatter(mix((h(j, 1, seed) + (m + 1) * G) & ALL)) >> 63) for j in (i // 2, g))
            there = unit(scatter(mix((h(i, 6, seed) + (m + 1) * G) & ALL))) < 0.6
            assert drawn[k, i - 10] == (k == 2 * m + (i % 2 ^ b) and there)
            assert found[k, i - 10] == (k == 2 * m + whole)


@pytest.mark.parametrize(("rows", "features"), [(599, 20), (450, 20), (100, 20), (900, 20), (5000, 40)])
def test_the_number_of_passes(rows: int, features: int) -> None:
    rng = np.random.default_rng(rows)
    X, y = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.9), rng.integers(0, 2, rows)
    within = min(max(rows, 15 * features), 30 * features)
    by_rows = 5 + 35 * (within - 15 * features) // (15 * features)
    expected = min(by_rows, max(3, 4_000_000 // np.count_nonzero(X)))
    record = thresher.train(X, y).record
    assert record.passes == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_of_admission(seed: int) -> None:
    rows = 80
    keys = np.arange(100, 100 + rows, dtype=np.uint64)
    intake = Preprocessor(None, "poisson:0.3,bits=14", seed)
    kept = intake.transform(
        Chunk.from_csr(np.arange(rows + 1), keys, np.ones(rows), np.ones(rows)), again=False
    )
    expected = []
    for number, key in enumerate(keys.tolist()):
        u = scatter(mix(scatter(mix(key ^ seed)) ^ scatter(mix(number + seed & ALL))))
        expected += [key] if u >> 11 < 0.3 * 2**53 else []
    assert kept.keys.tolist() == expected
    assert 10 < len(expected) < 40


Z = 1.959963984540054


def frame(rows: int, numbers: bool) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    x = rng.normal(size=rows).astype(np.float32)
    y = x + rng.normal(size=rows)
    weights = rng.choice([0.5, 1.0, 3.0], rows)
    label = y.astype(np.float32) if numbers else (y > 0).astype(int)
    return pd.DataFrame({"x": x, "site": rng.choice(["a", "b"], rows), "n": weights, "label": label})


def of_mean(losses: Any, w: Any) -> tuple[float, float, float]:
    """A mean, and the ends of its interval."""
    mean, k = (w @ losses) / w.sum(), len(losses)
    error = math.sqrt((w**2 @ (losses - mean) ** 2) * k / (k - 1)) / w.sum()
    return mean, mean - Z * error, mean + Z * error


def wilson(share: float, n: float) -> tuple[float, float, float]:
    middle, half = share + Z**2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n * n))
    return share, (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)


def found_in(row: dict[str, Any], name: str) -> list[float]:
    return [row[name], row[f"{name}_low"], row[f"{name}_high"]]


@pytest.mark.parametrize("numbers", [False, True])
def test_slices(numbers: bool, plainly: None) -> None:
    data = frame(300, numbers)
    options: dict[str, Any] = {"weight": "n", "loss": "squared" if numbers else "logistic", "centre": False}
    model = thresher.train(data, rule="sgd", rate="constant:0.01", ignore="site", passes=1, **options)
    rows = thresher.evaluate(model, data, slices=["site"])["slices"]["site"]
    margins = model.predict(data, "margin")
    for row in rows:
        there = (data["site"] == row["value"]).to_numpy()
        m, w = margins[there], data["n"].to_numpy()[there]
        y = data["label"].to_numpy().astype(float)[there]
        n = w.sum() ** 2 / (w @ w)
        if numbers:
            squares = of_mean((m - y) ** 2, w)
            assert found_in(row, "loss") == pytest.approx(squares, rel=1e-6)
            assert found_in(row, "rmse") == pytest.approx(np.sqrt(squares), rel=1e-6)
            predicted, observed = m, y
        else:
            losses = np.log1p(np.exp(-(2 * y - 1) * m))
            assert found_in(row, "loss") == pytest.approx(of_mean(losses, w), rel=1e-6)
            wrong = ((m > 0) != (y > 0)) @ w / w.sum()
            assert found_in(row, "error") == pytest.approx(wilson(wrong, n), rel=1e-6)
            assert found_in(row, "observed") == pytest.approx(wilson(y @ w / w.sum(), n), rel=1e-6)
            predicted, observed = 1 / (1 + np.exp(-m)), y
        assert row["predicted"] == pytest.approx(predicted @ w / w.sum(), rel=1e-6)
        assert row["ratio"] == pytest.approx((predicted @ w) / (observed @ w), rel=1e-5)
    assert [row["value"] for row in rows] == ["b", "a"] or [row["value"] for row in rows] == ["a", "b"]


EVERY = 2**64 - 1
A, B = 0x87C37B91114253D5, 0x4CF5AD432745937F


def turned(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & EVERY


def finish(k: int) -> int:
    k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & EVERY
    k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & EVERY
    return k ^ k >> 33


def murmur(name: str, seed: int = 0) -> int:
    """The first half of MurmurHash3 x64_128."""
    text, h1, h2 = name.encode(), seed, seed
    for at in range(0, len(text), 16):
        block = text[at : at + 16]
        k1, k2 = (int.from_bytes(half, "little") for half in (block[:8], block[8:]))
        k1, k2 = turned(k1 * A & EVERY, 31) * B & EVERY, turned(k2 * B & EVERY, 33) * A & EVERY
        h1 ^= k1
        if len(block) == 16:
            h1 = ((turned(h1, 27) + h2) * 5 + 0x52DCE729) & EVERY
        h2 ^= k2
        if len(block) == 16:
            h2 = ((turned(h2, 31) + h1) * 5 + 0x38495AB5) & EVERY
    h1, h2 = h1 ^ len(text), h2 ^ len(text)
    h1 = h1 + h2 & EVERY
    h2 = h1 + h2 & EVERY
    return finish(h1) + finish(h2) & EVERY


def of(column: str, value: str) -> int:
    return murmur(value, murmur(column))


def product(*keys: int) -> int:
    more = {2: 0x9E3779B97F4A7C15, 3: 0xD1B54A32D192ED03}[len(keys)]
    return finish((sum(map(finish, keys)) + more) & EVERY)


def row_of(lines: str, file: Path, **layout: Any) -> dict[int, float]:
    file.write_text(lines)
    layout = {"label": "label", **layout} if file.suffix == ".csv" else layout
    source = open_source(file, layout=Layout(file.suffix[1:], **layout), domain="real")
    (chunk,) = source.chunks()
    return dict(zip(chunk.keys.tolist(), chunk.values.tolist(), strict=True))


LONG = "a name of more than sixteen bytes"
VISITS = f"label,{LONG},city,visits\n1,2.5,Ulm,40\n"


def test_columns_and_products(tmp_path: Path) -> None:
    found = row_of(VISITS, tmp_path / "t.csv", interact=(f"{LONG},city", f"{LONG},city,visits"))
    number, city, visits = murmur(LONG), of("city", "Ulm"), murmur("visits")
    assert found == {number: 2.5, city: 1, visits: 40, product(number, city): 2.5} | {
        product(number, city, visits): 100
    }


@pytest.mark.parametrize("value", [0.4, 1.9, 2, 2.5, 2.8, 3, 40, 5e6, -0.5, -3])
def test_bins(value: float, tmp_path: Path) -> None:
    size = abs(value)
    place = math.floor(size) if size <= 2 else math.floor(math.log(size) ** 2) + 2
    expected = of("visits", str(-place if value < 0 else place))
    found = row_of(f"label,visits\n1,{value!r}\n", tmp_path / "t.csv", bins=("visits",))
    assert found == {expected: 1}


@pytest.mark.parametrize("scale", ["count", "binary", "log"])
def test_n_grams(scale: str, tmp_path: Path) -> None:
    spec = f"words=1-2,chars=3,shortest=2,scale={scale},norm"
    found = row_of("label,t\n1,To be or a bee-bee\n", tmp_path / "t.csv", text=("t",), ngrams=spec)
    words, whole, counts = ["to", "be", "or", "bee", "bee"], "to be or bee bee", dict[int, int]()
    runs = [*words, *map(" ".join, pairwise(words))]
    keys = [of("t", run) for run in runs]
    keys += [murmur(whole[k : k + 3], murmur("t") ^ 1) for k in range(len(whole) - 2)]
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    values = {
        key: {"count": count, "binary": 1, "log": 1 + math.log(count)}[scale] for key, count in counts.items()
    }
    norm = math.sqrt(sum(value**2 for value in values.values()))
    assert found == pytest.approx({key: value / norm for key, value in values.items()}, rel=1e-6)


def test_vw_text(tmp_path: Path) -> None:
    found = row_of("1 |size:0.5 height:3 |looks :2 black at:Ulm :3 |  7:2 zebra :0.25\n", tmp_path / "t.vw")
    assert found == {
        of("size", "height"): 1.5,
        of("looks", "black"): 1,
        murmur("Ulm", of("looks", "at")): 1,
        7: 2,
        murmur("zebra"): 1,
        of("looks", "0"): 2,
        of("looks", "1"): 3,
        0: 0.25,
    }
