"""Random recipes of models, their data, and whether each export of one predicts what the model does.

``python -m tests.exporting.recipes FIRST LAST`` tries more of them than the tests do.
"""

import json
import math
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

import thresher
from tests.data.reference import float32_of
from tests.exporting.engines import c_program, js_answers, sanitized
from tests.exporting.rows import NUMBERS
from tests.plain import not_compiled
from thresher.data.errors import DataError
from thresher.data.features.murmur import hash_bytes
from thresher.engine.centring import FAR
from thresher.engine.lookup import mix, scatter
from thresher.exporting.onnx import KEYS
from thresher.learning.model.divergence import DivergedError
from thresher.options.option import UsageError

TRAINED, ROWS = 90, 60
NAMES = ("x", "X", "thresher_margin", "sp ace", 'od""d', "Größe", "weight_0", "category_1")
"""As CSV quotes them"""
WORDS = ("Oslo", "oslo", "St. John's", "1", "1.0", "NULL", "true", "a\\b")
LOSSES = ("logistic", "logistic:positive=4", "hinge", "squared-hinge", "modified-huber", "exponential")
OF_NUMBERS = ("squared", "poisson", "huber", "absolute")
RULES = ("ft-ftrl", "ft-ftrl", "ftrl:l1=0.5", "sgd", "adagrad-fobos", "fobos:l1=0.02", "pa-i", "arow")
STORES = (
    *("growing", "growing", "growing", "growing", "hashed:3", "hashed:5", "hashed:8", "hashed:4,signed"),
    *("hashed:8,signed", "hashed:6,7"),
)


class Drawn(NamedTuple):
    """A recipe: options of training, columns of numbers by where they lie, and kinds of labels."""

    options: dict[str, Any]
    centres: list[float]
    """0: mostly zeros"""
    words: int
    """columns of words"""
    ids: bool
    """rows of svmlight instead of a table"""
    labels: str
    """two, words, classes, numbers, several"""
    models: int


def drawn(seed: int) -> Drawn:
    """The recipe of a seed; few of them contradict themselves."""
    chance = np.random.default_rng([seed, 1])

    def one(*given: Any) -> Any:
        return given[chance.integers(len(given))]

    ids, words, models = bool(one(0, 0, 0, 1)), one(0, 1, 2), one(1, 1, 1, 3)
    labels = one("two", "two", "words", "classes", "numbers", "several" if ids else "two")
    labels = "two" if ids and labels == "words" else labels
    rule, store, several = one(*RULES), one(*STORES), labels in ("classes", "several")
    hashed, crossed = store != "growing", one(None, "w*,n*") if words and not ids else None
    losses = {"numbers": OF_NUMBERS, "classes": ("softmax", "crammer-singer", "logistic", "hinge")}
    table, average = not ids, one(None, None, True) if labels not in ("classes", "several") else None
    given = {
        "rule": rule,
        "store": store,
        "loss": one(*losses.get(labels, LOSSES[:1] if labels == "several" else LOSSES)),
        "outputs": {"classes": "classes:0-2", "several": "labels:0-2"}.get(labels),
        "dtype": one("float32", "float64"),
        "rate": one("constant:0.3", "power:0.2,10,0.5") if rule in ("sgd", "fobos:l1=0.02") else None,
        "centre": one(None, None, True, False),
        "scale": one(None, None, "standard", "max-abs") if not crossed else None,
        "calibrate": one(None, True)
        if labels in ("two", "words", "classes") and not average and models == 1
        else None,
        "names": None if hashed or models > 1 else True,
        "average": average,
        "nonnegative": one(None, "*")
        if rule in RULES[:6] and "signed" not in store and not several
        else None,
        "batch": one(None, None, 4) if rule not in ("pa-i", "arow") and not average else None,
        "l1": one(None, None, 1.0, 3.0, 100.0) if rule == "ft-ftrl" else None,
        "interact": crossed,
        "bits": one(None, None, None, 12) if table else None,
        **({"bins": one(None, None, None, "n0"), "text": one(None, None, None, "w0")} if crossed else {}),
    }
    options = {name: value for name, value in given.items() if value is not None}
    options |= {"centre": False} if "bits" in options else {}
    centres = [one(0.0, 1e-3, 5.0, -40.0, 2e5, 1e7) for _ in range(one(1, 3, 8))]
    return Drawn(options, centres, 0 if ids else words, ids, labels, models)


def columns_of(recipe: Drawn) -> list[str]:
    """Names of the columns as a header quotes them: some begin with n or w, which `interact` takes."""
    plain = any(name in recipe.options for name in ("interact", "bins", "text"))
    numbers = [f"n{k}" if plain else NAMES[k] for k in range(len(recipe.centres))]
    return numbers + [f"w{k}" for k in range(recipe.words)]


def written(recipe: Drawn, path: Path, rows: int, seed: int, odd: float) -> list[list[str]]:
    """Write rows to a file; the cells that they have beside the label."""
    chance, lines, found = np.random.default_rng([seed, 2]), list[str](), list[list[str]]()
    for _ in range(rows):
        cells, signal = list[str](), chance.normal() / 2
        for centre in recipe.centres:
            x = chance.normal()
            signal += x if centre else 0
            cells.append(
                f"{centre + x:.{chance.integers(9, 13)}g}" if centre else str(chance.integers(3) // 2 * 3)
            )
            if chance.random() < odd:
                cells[-1] = str(
                    chance.choice([*(one.decode() for one in NUMBERS[:12]), *[""] * (not recipe.ids)])
                )
        for _ in range(recipe.words):
            cells.append(str(chance.choice(WORDS)) if chance.random() < 0.9 else "")
            signal += cells[-1] in WORDS[:2]
        lines.append(line_of(recipe, cells, label_of(recipe.labels, signal)))
        found.append(cells)
    head = [] if recipe.ids else [",".join(["label", *(f'"{name}"' for name in columns_of(recipe))])]
    path.write_text("\n".join([*head, *lines]) + "\n")
    return found


def label_of(kind: str, signal: float) -> str:
    level = int(signal > 0.5) + int(signal > -0.5)
    if kind == "several":
        return ",".join(str(k) for k in range(level + 1))
    return {
        "two": str(int(signal > 0)),
        "words": "it's" if signal > 0 else "no",
        "numbers": f"{abs(signal):.3f}",
    }.get(kind, str(level))


def line_of(recipe: Drawn, cells: list[str], label: str) -> str:
    if recipe.ids:
        return " ".join(
            [label, *(f"{3 + 7**k}:{cell.strip() or 0}" for k, cell in enumerate(cells) if cell != "0")]
        )
    return ",".join([f'"{label}"' if "," in label else label, *(f'"{cell}"' for cell in cells)])


def made(recipe: Drawn, folder: Path, seed: int) -> Any:
    path = folder / ("train.svm" if recipe.ids else "train.csv")
    written(recipe, path, TRAINED, seed, 0.02)
    words = (
        {}
        if recipe.ids
        else {"categorical": [f"w{k}" for k in range(recipe.words) if "text" not in recipe.options]}
    )
    options = recipe.options | {name: one for name, one in words.items() if one}
    train: Any = thresher.ensemble if recipe.models > 1 else thresher.train
    more = {"models": recipe.models} if recipe.models > 1 else {}
    try:
        with not_compiled():
            found = train(
                path, passes=1 if recipe.options.get("calibrate") else 2, on_error="skip", **options, **more
            )
            return found.predictor() if recipe.models == 1 else found
    except (UsageError, DataError, OverflowError, DivergedError):  # plain Python's exp overflows
        return None


def tried(seed: int, folder: Path) -> str | None:
    """Compare what each export predicts with the model. What was compared; None: there is no such model."""
    recipe = drawn(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if (model := made(recipe, folder, seed)) is None:
            return None
        new = folder / ("new.svm" if recipe.ids else "new.csv")
        cells = written(recipe, new, ROWS, seed + 1_000_000, 0.1)
        output: Any = "probability" if model.head.has_probabilities else "label"
        named = output == "label" and model.head.classifies
        expected = {one: model.predict(new, one) for one in ("margin", *(() if named else (output,)))}
        labels = model.predict(new, "label")
        labels = labels if labels.dtype == object else model.head.to_lines(labels, "label")
        texts = dict[str, Any]()
        for target in ("json", "c", "js", "onnx"):
            try:
                texts[target] = thresher.export(model, target)
            except DataError:
                texts[target] = None
    said = [name for name, text in texts.items() if text is not None]
    if texts["json"] is None:
        assert not said, f"{said} of a model that cannot be exported"
        return "none"
    check_c(texts["c"], folder, new, expected, labels if model.head.classifies else None)
    check_js(texts["js"], folder, recipe, cells, expected, labels)
    if not {"text", "bins", "interact"} & {*recipe.options}:
        check_json(json.loads(texts["json"]), recipe, cells, expected["margin"])
    if texts["onnx"] is not None:
        check_onnx(texts["onnx"], recipe, cells, expected, labels if model.head.classifies else None)
    return " ".join(said)


def check_c(text: str, folder: Path, new: Path, expected: dict[str, Any], labels: Any) -> None:
    program = c_program(text, folder / "model", sanitized)
    for output, wanted in expected.items():
        status, out, err = program(output, new.read_bytes())
        assert (status, err) == (0, ""), f"C: {output}: {status} {err[:400]}"
        found = np.array([line.split(b"\t") for line in out.splitlines()], np.float64).reshape(wanted.shape)
        np.testing.assert_array_equal(found, wanted, err_msg=f"C: {output}")
    if labels is not None:
        assert program("label", new.read_bytes())[1].decode().splitlines() == [*labels], "C: labels"


def check_js(
    text: str, folder: Path, recipe: Drawn, cells: Any, expected: dict[str, Any], labels: Any
) -> None:
    rows = [pairs_of(row) for row in cells] if recipe.ids else [[*map(letters, row)] for row in cells]
    found = js_answers(text, folder / "model.js", rows)
    assert not [one for one in found if isinstance(one, str)], f"JavaScript: {found[0]}"
    margins = np.array([one[0] for one in found], np.float64)
    np.testing.assert_array_equal(
        margins, expected["margin"].reshape(margins.shape), err_msg="JavaScript: margins"
    )
    for wanted in [*expected.values()][1:]:
        own = np.array([one[1] for one in found], np.float64)
        np.testing.assert_allclose(
            own, wanted.reshape(own.shape), rtol=1e-14, err_msg="JavaScript: predictions"
        )
    if recipe.labels in ("two", "words"):
        assert [one[2] for one in found] == [*labels], "JavaScript: labels"


def letters(cell: str) -> str:
    return cell.encode().decode("latin-1")


def pairs_of(row: list[str]) -> list[Any]:
    return [[3 + 7**k, float(float32_of(cell.strip() or "0"))] for k, cell in enumerate(row) if cell != "0"]


def check_json(told: dict[str, Any], recipe: Drawn, cells: Any, wanted: Any) -> None:
    """From the words of docs/export.md."""
    each = [
        [margins_of(told, one, features_of(told, recipe, row)) for one in told["models"]] for row in cells
    ]
    found = np.mean(each, axis=1).reshape(wanted.shape)
    least = 1e-7 + 1e-13 * float(np.abs(wanted).max(initial=0))  # sums that cancel
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=least, err_msg="JSON")


def features_of(told: dict[str, Any], recipe: Drawn, row: list[str]) -> dict[int, float]:
    """Values by key; NaN is missing."""
    if recipe.ids:
        return dict(pairs_of(row))
    found = dict[int, float]()
    for column, cell in zip(told["columns"], row, strict=True):
        if column["kind"] == "categorical" and cell:
            found[hash_bytes(cell.encode(), int(column["seed"])) & int(told["mask"])] = 1.0
        elif column["kind"] == "numeric":
            absent = math.nan if told["missing_is_mean"] else 0.0
            x = float(cell) if cell.strip() else absent
            found[int(column["key"])] = x if abs(x) >= FAR else float(np.float32(x))
    return found


def margins_of(told: dict[str, Any], model: dict[str, Any], features: dict[int, float]) -> Any:
    weights = {int(key): np.array(one) for key, one in zip(model["keys"], model["weights"], strict=True)}
    means = {int(key): mean for key, mean in model["means"].items()}
    values = dict[int, np.float32]()
    for key in sorted({*features, *means}):
        x = features.get(key, 0.0)
        small = np.float32(x - means[key]) if key in means else np.float32(x)
        value = np.float32(float(small) / model["divisors"].get(str(key), 1.0))
        place, sign = place_of(told["store"], key)
        if not math.isnan(x):
            values[place] = np.float32(values.get(place, np.float32(0)) + sign * value)
    parts = [np.asarray(weights[key] * x, told["dtype"]) for key, x in values.items() if key in weights]
    return np.sum([np.array(model["intercepts"]), *parts], axis=0, dtype=np.float64)


def place_of(store: Any, key: int) -> tuple[int, np.float32]:
    """The number of a weight, and the sign of a value that it multiplies."""
    if store is None:
        return key, np.float32(1)
    word = mix(np.array([key ^ int(store["seed"])], np.uint64))
    word = scatter(word) if store["signed"] else word
    sign = -1 if store["signed"] and not int(word[0]) & 1 else 1
    return int(word[0]) >> (64 - store["bits"]), np.float32(sign)


def check_onnx(content: bytes, recipe: Drawn, cells: Any, expected: dict[str, Any], labels: Any) -> None:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    keys = session.get_modelmeta().custom_metadata_map.get(KEYS)
    if keys:
        each = [dict(pairs_of(row)) for row in cells]
        X = np.array([[row.get(int(key), 0.0) for key in keys.split()] for row in each])
    else:
        X = np.array([[float(one) if one.strip() else math.nan for one in row] for row in cells])
    found = session.run(None, {"X": X.astype(np.float32)})
    wanted, most = [*expected.values()][-1], 0.05 if max(recipe.centres) > FAR else 1e-4
    if labels is None:
        np.testing.assert_allclose(
            found[0].reshape(wanted.shape), wanted, rtol=1e-4, atol=most, err_msg="ONNX"
        )
        return
    own = found[1][:, 1] if wanted.ndim == 1 else found[1]
    np.testing.assert_allclose(own, wanted, rtol=1e-4, atol=most, err_msg="ONNX")
    sure = (
        abs(wanted - 0.5) > 2 * most
        if wanted.ndim == 1 and len(expected) > 1
        else np.ptp(np.sort(wanted)[:, -2:], axis=1) > 2 * most
        if wanted.ndim > 1
        else abs(wanted) > 2 * most
    )
    assert (np.array([*map(str, found[0])]) == np.array([*map(str, labels)]))[sure].all(), "ONNX: labels"


if __name__ == "__main__":
    from collections import Counter

    counted = Counter[str]()
    for seed in range(*map(int, sys.argv[1:3])):
        with tempfile.TemporaryDirectory(prefix="d-rec") as place:
            try:
                counted[str(tried(seed, Path(place)))] += 1
            except (AssertionError, ValueError, subprocess.SubprocessError) as error:
                counted["failed"] += 1
                print(seed, drawn(seed), f"{type(error).__name__}: {error}"[:1500], flush=True)
    print(counted)
