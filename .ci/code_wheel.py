"""Add a wheel with machine code to the folder that has the pure wheel: ``python .ci/code_wheel.py dist``.

The code is what `commands` and `from_python` compile, for processors with AVX2 (x86-64-v3). It calls nothing
of Numba, so any version of Numba may be installed beside it. A wheel is for one version of Python: its code
reads Python's objects where that version has them, and the keys under which it is found name its bytecode.
"""

import base64
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RULES = "ft-ftrl", "ftrl", "sgd", "fobos", "truncated-gradient"
LOSSES = {
    "logistic": ("rcv1_train2000.dat.gz", ""),
    "squared": ("prices.svm", ""),
    "softmax": ("zoo.svm.gz", "--outputs classes"),
}
"""Loss -> data that it learns with each rule, and options"""
READ = [
    *(f"a.{name}{text}" for name in ("csv", "tsv", "jsonl") for text in ("", " --text words")),
    "dates.csv --holdout 0.2",
    "wide.csv",
    "odd.vw",
    "newsgroups_train.jsonl.gz --label group --text text",
    "rcv1_small100.vw.gz",
    "criteo_hashed200.svm.gz",
]
"""Data that the default rule learns, with options"""
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
TAG = f"{PYTHON}-{PYTHON}-manylinux_2_17_x86_64"
DATE = 2020, 2, 2, 0, 0, 0  # as hatchling has it


def commands() -> Iterator[str]:
    """For each rule, loss and format, a model is made, continued and used."""
    trained = [
        f"{data} {options} --loss {loss} --rule {rule}"
        for loss, (data, options) in LOSSES.items()
        for rule in RULES
    ]
    for k, words in enumerate([*trained, *READ]):
        model = f"{k}.model -q --no-cache"
        yield f"train {words} -m {model}"
        yield f"train {words.split()[0]} -m {model} --continue {k}.model"
        yield f"predict {k}.model {words.split()[0]} -o {k}.predictions"
        yield f"evaluate {k}.model {words.split()[0]}"


def write_data(folder: Path) -> None:
    """Data of all formats, beside those of examples/data."""
    rows = [
        (k % 3 == 0, k % 7 / 2, "abc"[k % 3], f"word{k % 5} other", f"20{k % 40 + 10}-01-0{k % 9 + 1}")
        for k in range(300)
    ]
    names = "label", "number", "kind", "words", "date"
    for name, cut in (("a.csv", ","), ("a.tsv", "\t"), ("dates.csv", ",")):
        width = None if name == "dates.csv" else 4
        lines = [names, *((int(row[0]), *row[1:]) for row in rows)]
        (folder / name).write_text("".join(cut.join(map(str, line[:width])) + "\n" for line in lines))
    objects = [dict(zip(names[:4], (int(row[0]), *row[1:4]), strict=True)) for row in rows]
    (folder / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    wide = ["label", *map(str, range(80))], *([str(k % 2), *[str(k % 7)] * 80] for k in range(300))
    (folder / "wide.csv").write_text("".join(",".join(cells) + "\n" for cells in wide))
    (folder / "odd.vw").write_text("1 2.5 'tag |a:3 b:1e2 c:text\n-1 | 5 5 7:1.5\n" * 40)
    for path in (Path(__file__).parents[1] / "examples" / "data").iterdir():
        (folder / path.name).symlink_to(path)


def from_python() -> None:
    """Each rule with each loss, whatever its data need; models of rows in memory."""
    import numpy as np

    from thresher import Model
    from thresher.learning.training.ahead import learn_anything

    for rule in RULES:
        for loss, outputs in (("logistic", "one"), ("squared", "one"), ("softmax", "classes:3")):
            learn_anything(Model(rule, loss=loss, outputs=outputs))

    numbers = np.random.default_rng(0).normal(size=(60, 5))
    dictionaries = [{"a": float(x), "b": "text", "c": ["some", "words"]} for x, *_ in numbers]
    for rows in (numbers, dictionaries, ["words of a text"] * 60):
        for options in ({}, {"loss": "squared"}, {"loss": "softmax", "outputs": "classes:0-1"}):
            for rule in RULES:
                data: Any = rows
                model = Model(rule, **options)
                model.learn(data, (numbers[:, 0] > 0).astype(np.float32))
                model.predict(data)
    single = Model()
    single.learn_one(dictionaries[0], 1)
    single.predict_one(dictionaries[0])


def use(compiles: bool) -> None:
    """Run all of that in this folder, and check whether something had to be compiled."""
    from thresher.cli import main

    write_data(Path())
    for words in commands():
        status = main.status_of(words.split())
        assert status == 0, words
    from_python()
    assert ("numba" in sys.modules) == compiles, "the compiler was imported" if not compiles else "it was not"


def compile_into(folder: Path) -> None:
    """Run all of that, and put the code that it needs into a folder."""
    from functools import partial

    from thresher.engine.compile import codecache, machine

    target = {"NUMBA_CPU_NAME": machine.PORTABLE, "NUMBA_CPU_FEATURES": machine.ABILITIES}
    os.environ.update(target)
    codecache.SHIPPED = folder
    codecache.keep = partial(codecache.keep, shipped=True)
    use(compiles=True)


def add_wheel(dist: Path) -> None:
    """Write the wheel with machine code beside the pure one."""
    (pure,) = dist.glob("*-py3-none-any.whl")
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(pure) as archive:
        tree, work, code = (Path(scratch) / name for name in ("tree", "work", "tree/thresher/compiled"))
        archive.extractall(tree)
        work.mkdir()
        code.mkdir()
        # the order of sets, and so of functions in the code, depends on the seed
        told = {"PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "THRESHER_CACHE_DIR": str(work / "cache")}
        words = [sys.executable, str(Path(__file__).resolve()), "compile_into", str(code)]
        subprocess.run(words, cwd=work, env={**os.environ, **told}, check=True, stdout=subprocess.DEVNULL)
        names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
        files = {name: archive.read(name) for name in names}
        files |= {f"thresher/compiled/{path.name}": path.read_bytes() for path in sorted(code.iterdir())}
    (about,) = (name for name in files if name.endswith(".dist-info/WHEEL"))
    said = files[about].decode().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    files[about] = said.replace("Tag: py3-none-any", f"Tag: {TAG}").encode()
    record = about.replace("WHEEL", "RECORD")
    lines = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    with zipfile.ZipFile(dist / pure.name.replace("py3-none-any", TAG), "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, content)


def digest(content: bytes) -> str:
    """As RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["compile_into", folder]:
            compile_into(Path(folder))
        case ["use", wheel]:
            use(compiles=wheel.endswith("-py3-none-any.whl"))
        case [dist] if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
            add_wheel(Path(dist))
        case _:
            print("no wheel with machine code: it is for Linux on x86-64")
