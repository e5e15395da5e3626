"""``thresher info``: its figures are correct, and its command makes the model again."""

import gzip
import html
import os
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import thresher as package
from tests.cli.conftest import ROWS, Thresher
from tests.plain import not_compiled
from tests.stopping import full_disk, once_learned, stopping
from thresher import Chunk, Model, load
from thresher.learning.files import model_file
from thresher.options.option import command
from thresher.plans.models import Frontier

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "data"
CSV = "a=b,colour,size,n,note,y,skip,w\n" + "".join(
    f"{k % 4},{'red' if k % 3 else 'blue'},{k / 7:.2f},{k % 5},word{k % 6} more,{k % 2},{k},{1 + k % 2}\n"
    for k in range(60)
)
TABLE = "--label y --weight w --ignore skip --bins n --text note --categorical colour,a=b --interact colour,n"


@pytest.fixture
def table(folder: Path) -> Path:
    (folder / "t.csv").write_text(CSV)
    (folder / "h.csv").write_text(CSV.partition("\n")[2])
    for name in ("zoo.svm", "rcv1_small100.vw"):
        (folder / name).write_bytes(gzip.decompress((EXAMPLES / f"{name}.gz").read_bytes()))
    return folder


def test_effects_of_categories_need_names(thresher: Thresher, table: Path) -> None:
    finds = "thresher name MODEL DATA finds them and their columns"
    for data, so in (
        ("t.csv --label y --weight w", ", so the effects of categories are unknown"),
        ("t.csv --label y --weight w --text a=b,colour,note,skip", ", so the effects of words are unknown"),
        (
            "t.csv --label y --weight w --text colour --bins n",
            ", so the effects of bins and categories and words are unknown",
        ),
        ("rcv1_small100.vw", ""),
    ):
        thresher.ok(f"train {data} -m m -q --passes 1")
        assert thresher("info m").out.splitlines()[-1] == f"the weights have no names{so}: {finds}"
    thresher.ok("train t.csv --label y --weight w --by colour -m b -q --passes 1")
    thresher.ok("boost t.csv --label y --weight w --l1 0.1 -m boosted -q")
    thresher.ok(f"choose b {package.load('b').values[0]} -m one")
    with stopping(once_learned(40)):
        thresher("train t.csv --label y --weight w --by colour -m s -q --passes 1 --checkpoint-every 10")
    assert "no names" not in thresher.ok("info s.checkpoint").out  # which `name` does not take
    for alone in ("one", "boosted"):  # which have no effects, with names or without
        assert thresher(f"info {alone}").out.splitlines()[-1] == f"the weights have no names: {finds}"
    thresher.ok("name m rcv1_small100.vw")
    assert "no names" not in thresher("info m").out


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("more", ["", " --weights-only"])
def test_examples_left_out_of_a_sample(more: str, thresher: Thresher, folder: Path) -> None:
    trained = thresher(f"train train.svm --sample -1=0.3 --passes 1 --rule ftrl -m m --json{more}").json
    assert 0 < trained["left_out"] < trained["examples"]
    found = thresher("info m --json").json
    assert {name: found[name] for name in ("examples", "left_out")} == {
        name: trained[name] for name in ("examples", "left_out")
    }
    lines = [line.split("  ")[0::1] for line in thresher("info m").out.splitlines()]
    told = {line[0]: line[-1].strip() for line in lines}
    assert told["left out"] == f"{trained['left_out']:,}"
    assert told["examples"] == f"{trained['examples']:,}"
    assert "examples learned" not in told


MADE = [
    "train.svm --rule ftrl --no-intercept --weights-only --average",
    "train.svm --passes 3 --order once --seed 4 --holdout every-5th --rule sgd --rate power:eta0=0.5",
    "zoo.svm --loss softmax --rule ftrl:alpha=1,l1=0.1",
    "train.svm --holdout 0.4 --rule ftrl",
    "rcv1_small100.vw --hash vw --bits 18 --rule ftrl --names --passes 1",
    f"t.csv {TABLE} --rule ftrl --scale max-abs --numeric size",
    "h.csv --no-header --label 6 --ignore 7-8 --categorical 1-3 --bins 4 --interact 1,2 --missing x,9"
    " --names",
    "t.csv --label y --rule ftrl --text note --categorical colour --ignore 8,skip,s*,a=b",
    "h.csv --no-header --label 6 --rule ftrl --categorical 2,3 --ignore 1-4,5,7-8",
]


@pytest.mark.parametrize("word", ["a\nb'c%d\\e", "-\t-é", '$`"\x01!', "it's", "\udcff\n b"])
def test_a_word_is_quoted_for_any_shell(word: str) -> None:
    line = command("train", [word], [])
    assert line.isprintable()
    ran = subprocess.run(line.replace("thresher train", "printf '%s'", 1), shell=True, capture_output=True)
    assert ran.stdout == os.fsencode(word)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("options", MADE)
def test_the_command_makes_the_model_again(options: str, thresher: Thresher, table: Path) -> None:
    thresher.ok(f"train {options} -m first -q")
    words = shlex.split(thresher("info first --json").json["command"])
    data, model = words.index("DATA"), words.index("MODEL")
    words[data], words[model] = options.split()[0], "second"
    assert thresher(*words[1:], "-q").status == 0
    assert Path("first").read_bytes() == Path("second").read_bytes()


def test_bad_lines_and_early_stops_too(thresher: Thresher) -> None:
    rows = ROWS[:300]
    Path("bad.svm").write_bytes(b"".join([*rows[:100], b"oops\n", *rows[100:]]))
    over = "--rule sgd --loss hinge --rate constant:9 --holdout test.svm --passes 9 --early-stop 2"
    thresher(f"train bad.svm -m first -q --on-error skip {over}")
    told = thresher("info first --json").json
    assert (told["lines"]["skipped"], told["lines"]["lines"]) == (1, 301)
    words = shlex.split(told["command"].replace("DATA", "bad.svm").replace("MODEL", "second"))
    assert thresher(*words[1:], "-q").status == 0
    assert Path("first").read_bytes() == Path("second").read_bytes()


def test_what_it_began_with_is_asked_for_again(thresher: Thresher) -> None:
    thresher("train test.svm -m begun -q --rule ftrl")
    thresher("train train.svm -m first -q --rule ftrl --init begun")
    told = thresher("info first --json").json
    assert told["warm"]
    words = shlex.split(told["command"].replace("DATA", "train.svm").replace("INIT", "begun"))
    words[words.index("MODEL")] = "second"
    assert thresher(*words[1:], "-q").status == 0
    assert Path("first").read_bytes() == Path("second").read_bytes()
    with full_disk():
        thresher("train train.svm -m third -q --rule ftrl --init begun --checkpoint-every 300")
    assert thresher("train train.svm -m third -q --resume").status == 0
    assert Path("first").read_bytes() == Path("third").read_bytes()


@pytest.mark.parametrize("options", ["--l1 3 --l2 0.5 --method parallel --no-intercept", "--l1 1.5sd"])
def test_boost_too(thresher: Thresher, table: Path, options: str) -> None:
    thresher(f"boost train.svm -m first -q --loss logistic {options}")
    told = thresher("info first --json").json
    assert told["kind"] == "weights only"
    words = shlex.split(told["command"].replace("DATA", "train.svm").replace("MODEL", "second"))
    assert thresher(*words[1:], "-q").status == 0
    assert Path("first").read_bytes() == Path("second").read_bytes()


def test_a_rule_of_ones_own_is_shown_but_trained_by_no_command(thresher: Thresher, model: Path) -> None:
    header, tensors = model_file.read(model)
    header["recipe"]["rule"] = "tilted:eta=0.25"
    model_file.write(model, header, tensors)
    ran = thresher("info model --json")
    assert (ran.status, ran.json["rule"], ran.json.get("command")) == (0, "tilted:eta=0.25", None)
    assert thresher("report model -o r.html").status == 0
    assert "tilted:eta=0.25" in Path("r.html").read_text()


def test_figures_are_those_of_the_weights(thresher: Thresher, model: Path) -> None:
    told, predictor = thresher("info model --json").json, load("model")
    found = told["weights"]
    assert told["features_live"] == told["nonzero"] == found["positive"] + found["negative"]
    assert found["positive"] == (predictor.weights > 0).sum()
    weights = predictor.weights.astype(float)
    assert found["l1_norm"] == pytest.approx(np.abs(weights).sum())
    assert found["l2_norm"] == pytest.approx(np.linalg.norm(weights))
    assert found["largest"] == np.abs(weights).max()
    assert found["intercept"] == predictor.bias.tolist()
    header, tensors = model_file.read("model")
    assert told["examples"] == header["examples"] == 400 * told["record"]["passes"]
    assert told["features_seen"] == header["features_seen"]
    assert told["bytes"]["file"] == model.stat().st_size
    state = sum(a.nbytes for name, a in tensors.items() if name.startswith("state."))
    assert told["bytes"]["state"] == state
    lines = thresher("info model").out.splitlines()
    assert lines[0].split() == ["kind", "model"]
    assert f"{'features live':<22} {told['nonzero']}" in lines


def test_python_shows_the_same(thresher: Thresher, model: Path) -> None:
    told = thresher("info model --json").json
    assert told["command"].startswith("thresher train DATA -m MODEL --rule ")
    assert package.info("model") == told
    assert package.info(package.Model.load("model"))["command"] == told["command"]
    package.report("model", None, "r.html")
    assert html.escape(told["command"], quote=False) in Path("r.html").read_text()


def by_name(model: str) -> dict[str, int]:
    """How many weights each column has, computed from their names."""
    predictor, found = load(model), dict[str, int]()
    for key, weight in zip(predictor.keys.tolist(), predictor.weights.tolist(), strict=True):
        name = predictor.names.get(key)
        if name is None:
            continue
        factors = [
            next(column for column in CSV.splitlines()[0].split(",") if f"{factor}=".startswith(f"{column}="))
            for factor in name.split(" × ")
        ]
        found[" × ".join(factors)] = found.get(" × ".join(factors), 0) + (weight != 0)
    return found


def test_columns_by_effect(thresher: Thresher, table: Path) -> None:
    thresher(f"train t.csv -m m -q --rule ftrl:l1=0.01 --names {TABLE}")
    told = thresher("info m --json").json
    rows = {one.get("column", one.get("group")): one for one in [*told["columns"], *told["groups"]]}
    kinds = ["categorical", "categorical", "numeric", "bins", "text", "label", "ignore", "weight"]
    assert [one["kind"] for one in told["columns"]] == kinds
    expected = by_name("m")
    assert set(expected) == {"a=b", "colour", "size", "n", "note", "colour × n"}
    assert {name: rows[name]["features"] for name in expected} == expected
    effects = {name: rows[name]["effect"] for name in expected}
    assert effects == {str(name): one for name, one in load("m").record.effects}
    assert list(rows) == [*CSV.splitlines()[0].split(","), "colour × n"]
    assert "features" not in rows["y"]


def test_numeric_columns_are_known_without_names(thresher: Thresher, table: Path) -> None:
    thresher(f"train t.csv -m m -q --rule ftrl {TABLE}")
    told = thresher("info m --json").json
    size = next(one for one in told["columns"] if one["column"] == "size")
    assert size["features"] == 1
    (rest,) = told["groups"]
    assert rest["group"] is None
    assert rest["features"] == told["nonzero"] - 1
    assert "features" not in told["columns"][0]
    out = thresher("info m").out
    assert "(without a name)" in out
    assert "thresher name MODEL DATA" in out.splitlines()[-1]
    thresher("name m t.csv")
    out = thresher("info m").out
    assert "(without a name)" not in out
    assert "thresher name" not in out


def test_weights_by_namespace_and_by_class(thresher: Thresher) -> None:
    Path("n.vw").write_text("1 |a x y:2 |b x | bare\n0 |a z |b y\n" * 9)
    thresher("train n.vw -m m -q --rule ftrl --names")
    told = thresher("info m --json").json
    assert {one["group"]: one["features"] for one in told["groups"]} == {"": 1, "a": 3, "b": 2}
    with not_compiled():
        many = Model("ftrl:l1=0.3", "softmax", outputs="classes:4-6")
        many.learn(Chunk.of_rows([(4.0 + k % 3, {k % 5: 1.0, 9: 0.5}) for k in range(30)]))
    model_file.save(many, "many")
    found = thresher("info many --json").json
    weights = many.weights()[1]
    assert found["by_output"] == [
        {"output": str(4 + k), "nonzero": int((weights[:, k] != 0).sum()), "l1_norm": pytest.approx(total)}
        for k, total in enumerate(np.abs(weights).sum(axis=0).tolist())
    ]
    assert found["command"] is found["record"] is None


def test_a_checkpoint_says_how_to_go_on(thresher: Thresher) -> None:
    with full_disk():
        thresher("train train.svm -m m -q --rule ftrl --passes 2 --checkpoint-every 300 --holdout test.svm")
    told = thresher("info m.checkpoint --json").json
    assert (told["kind"], told["stopped"]["pass"], told["stopped"]["passes"]) == ("checkpoint", 2, 2)
    assert told["stopped"]["data"] == "train.svm"
    assert not told["lines"]  # of the blocks read so far, which say nothing of the rows learned
    assert told["examples"] == 600
    assert f"{'stopped pass':<22} 2" in thresher("info m.checkpoint").out.splitlines()
    words = shlex.split(told["command"])
    assert words == shlex.split("thresher train train.svm -m m --resume --holdout test.svm")
    assert thresher(*words[1:], "-q").status == 0
    thresher("train train.svm -m whole -q --rule ftrl --passes 2")
    assert Path("m").read_bytes() == Path("whole").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        "--l1 auto:3 --holdout none --passes 3 --order once",
        "--l1 0.1:2:3 --passes 2 --holdout test.svm --early-stop 1 --alpha 0.3",
    ],
)
def test_a_checkpoint_of_a_path_says_how_to_go_on(options: str, thresher: Thresher) -> None:
    command = f"path train.svm -m f -q --rule ftrl {options}"
    with full_disk(Frontier, "save"):
        thresher(f"{command} --checkpoint-every 90")
    words = shlex.split(thresher.ok("info f.checkpoint --json").json["command"])
    assert words[:5] == ["thresher", "path", "train.svm", "-m", "f"]
    assert "--resume" in words
    thresher.ok(*words[1:], "-q")
    thresher.ok(command.replace("-m f", "-m whole"))
    assert Path("f").read_bytes() == Path("whole").read_bytes()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("train train.svm --rule ftrl --ensemble disjoint:2", "--ensemble disjoint:2"),
        ("train t.csv --label y --rule ftrl --ignore skip --by colour", "--by colour"),
    ],
)
def test_the_command_of_many_models_makes_them_again(
    thresher: Thresher, table: Path, made: str, said: str
) -> None:
    assert thresher(f"{made} -m first -q").status == 0
    found = thresher("info first --json").json["command"]
    assert all(word in found for word in said.split())
    assert f"command{' ' * 16}thresher" in thresher("info first").out
    words = shlex.split(found.replace("DATA", made.split()[1]))
    words[words.index("MODEL")] = "second"
    assert thresher(*words[1:], "-q").status == 0
    assert Path("first").read_bytes() == Path("second").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        "--rule ftrl:alpha=0.3 --l1 0.1:2:3 --choose 1se --state --passes 2",
        "--rule ftrl --l1 0.1:20:4 --choose nnz:3 --holdout none --order once",
        "--rule ftrl --l1 0.1:2:3 --holdout test.svm",
    ],
)
def test_the_command_of_a_path_makes_the_chosen_model(thresher: Thresher, options: str) -> None:
    which = "nnz:3" if "nnz:3" in options else "1se" if "1se" in options else "best"
    thresher.ok(f"path train.svm -m first -q {options}")
    thresher.ok(f"choose first {which} -m chosen")
    words = shlex.split(thresher("info first --json").json["command"].replace("DATA", "train.svm"))
    words[words.index("MODEL")] = "second"
    thresher.ok(*words[1:], "-q")
    assert Path("chosen").read_bytes() == Path("second").read_bytes()


def test_the_weight_of_features_never_seen_is_told(folder: Path, thresher: Thresher, plainly: None) -> None:
    (folder / "rows.svm").write_text("1 1:1 2:1\n-1 3:1\n")
    assert thresher("train rows.svm --rule eg:features=4,signed=false,norm=1 -m m -q").status == 0
    never = next(line for line in thresher("info m").out.splitlines() if line.startswith("weight if never"))
    ran = thresher("weights m")
    rows = [line.split("\t") for line in ran.out.splitlines()]
    weights = [float(row[-1]) for row in rows if row[0] != "intercept"]
    assert len(weights) == 3
    assert sum(weights) + float(never.split()[-1]) == pytest.approx(1)
    assert ran.err == f"features that were never seen have the weight {float(ran.err.split()[-1])}\n"
    assert float(ran.err.split()[-1]) == pytest.approx(float(never.split()[-1]), rel=1e-5)
