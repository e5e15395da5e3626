"""Parts that are not built in: of packages and of files, on the command line, in Python and in models."""

import gc
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.commands import RUN, SAMPLE, own_cache, run, start
from tests.own_packages import LOSS, install, install_template, rule
from tests.stopping import once_learned, stopping
from thresher.cli import app
from thresher.engine.compile.notices import COMPILING
from thresher.learning.files import model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes, from_bytes
from thresher.parts import REGISTRY, SpecError, load_files, lookup, names
from thresher.parts.origins import ENTRY_POINTS

pytestmark = pytest.mark.usefixtures("plainly")

gc.freeze()
X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] > 0, 1, -1)
NEED = "needs the rule forgetful-sgd of the package own-package: pip install own-package==0.1.0"


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parts and modules of a test are forgotten after it."""
    for kind in REGISTRY:
        monkeypatch.setitem(REGISTRY, kind, dict(REGISTRY[kind]))
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if name.split(".")[0] in ("own_package", "first", "second", "broken", "empty"):
            del sys.modules[name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def forget(name: str, *modules: str) -> None:
    for known in REGISTRY.values():
        known.pop(name, None)
    for module in modules:
        sys.modules.pop(module, None)


def test_a_package_on_the_command_line(tmp_path: Path) -> None:
    """Its rule trains, the model predicts and goes on in other processes; without it, they say what to do."""
    install_template(tmp_path / "site")
    found = f"import sys\nsys.path[:0] = [{str(tmp_path / 'site')!r}]\n{RUN}"
    train = ["train", SAMPLE, "--rule", "forgetful-sgd:eta=1,decay=1e-3", "--passes", "1", "--json", "-q"]

    def status(*words: object, code: str = found) -> tuple[int, str, str]:
        return run(*words, folder=tmp_path, code=code)

    code, out, err = status(*train, "-m", "a")
    assert (code, err) == (0, "")
    assert json.loads(out)["progressive_loss"] < 0.6
    assert "\nforgetful-sgd:eta=0.1,decay=0.0001\n" in status("rules")[1]
    code, predicted, err = status("predict", "a", SAMPLE)
    assert (code, err, predicted.count("\n")) == (0, "", 2000)
    assert status("train", SAMPLE, "--continue", "a", "-m", "b", "-q")[0] == 0
    assert "--rule forgetful-sgd:eta=1.0,decay=0.001" in status("info", "a")[1]
    code, _, err = status("train", SAMPLE, "--continue", "a", "-m", "b", code="")
    assert (code, err) == (1, f"thresher: a: {NEED}\n")
    assert status("predict", "a", SAMPLE, code="")[1] == predicted, "weights need no rule"
    code, _, err = status(*train, "-m", "b", code="")
    assert (code, err.startswith("thresher: no rule is called 'forgetful-sgd'; ")) == (2, True)


def test_code_of_a_file_is_compiled_once(tmp_path: Path) -> None:
    """All other code is that of other tests; what is compiled here goes with the folder."""
    (tmp_path / "mine.py").write_text(rule("MineAlone", 1.5))
    own, said, code = ["--rule", "mine-alone", "--module", "mine.py"], [], tmp_path / "cache" / "code"
    code.mkdir(parents=True)
    for known in (own_cache(tmp_path / "known") / "code").glob("*.nbc"):
        (code / known.name).symlink_to(known.resolve())
    for _ in range(2):
        with start("train", SAMPLE, "-m", "a", "--passes", "1", *own, folder=tmp_path) as process:
            said.append(process.communicate(timeout=300)[1].decode())
        assert process.returncode == 0, said
    assert [COMPILING in one for one in said] == [True, False]


def test_a_package_in_python(site: Path) -> None:
    install_template(site)
    model = thresher.train(X, Y, rule="forgetful-sgd", passes=1)
    assert model.nonzero == 3
    assert "forgetful-sgd" in names("rule")
    assert "forgetful-sgd" not in names("loss")
    with pytest.raises(SpecError, match=r'no loss is called .*; it is a rule \(rule="forgetful-sgd"\)'):
        thresher.train(X, Y, loss="forgetful-sgd")


def test_a_package_that_fails(site: Path) -> None:
    """Asked for, it is an error; where all parts are listed, a line of warning."""
    install(site, "broken", "1", {"lost": "broken", "nowhere": "not_there.rules"}, "import nothing_like_it\n")
    install(site, "empty", "1", {"missing": "empty", "no-class": "empty:NoClass"}, "x = 1\n")
    errors = {
        "lost": "package broken: its module broken cannot be imported: ModuleNotFoundError: No module named"
        " 'nothing_like_it'",
        "nowhere": "package broken: its module not_there.rules cannot be imported: ModuleNotFoundError: No"
        " module named 'not_there'",
        "missing": "package empty: its module empty defines no part called missing",
        "no-class": "package empty: its module empty cannot be imported: AttributeError: module 'empty' has"
        " no attribute 'NoClass'",
    }
    for name, text in errors.items():
        with pytest.raises(SpecError) as caught:
            lookup("rule", name)
        assert str(caught.value) == text
    with pytest.warns(UserWarning, match="package") as told:
        assert "ftrl" in names("rule")
    assert sorted(str(one.message) for one in told) == sorted(errors.values())


def test_names_that_are_taken(site: Path) -> None:
    """Built-in parts stay what they are; of two packages neither is taken."""
    install(site, "first", "1", {"ftrl": "first", "twice": "first"}, rule("Ftrl"))
    install(site, "second", "1", {"twice": "second", "both": "second"}, rule("Both"))
    ftrl = REGISTRY["rule"]["ftrl"]
    assert lookup("rule", "ftrl") is ftrl
    with pytest.raises(SpecError, match="the packages first and second both have a part called twice:"):
        lookup("rule", "twice")
    with pytest.warns(UserWarning, match="package") as told:
        assert "both" in names("rule")
    said = sorted(str(one.message) for one in told)
    assert [one.partition(" ")[0] for one in said] == ["package", "the"]
    assert "first cannot be imported: TypeError: a rule is already called ftrl" in said[0]
    assert REGISTRY["rule"]["ftrl"] is ftrl


def test_a_package_does_not_replace_the_part_of_another(site: Path) -> None:
    install(site, "first", "1", {"both": "first"}, rule("Both"))
    install(site, "second", "1", {"other": "second"}, rule("Both", 2.0) + rule("Other"))
    first = lookup("rule", "both")
    with pytest.raises(SpecError, match="called both is in the module first and in the module second"):
        lookup("rule", "other")
    assert lookup("rule", "both") is first
    assert "other" not in REGISTRY["rule"]


def test_nothing_is_looked_up_for_built_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from importlib import metadata

    asked, entry_points = list[str](), metadata.entry_points

    def looked_up(**given: Any) -> Any:
        asked.append(given.get("group", ""))
        return entry_points(**given)

    monkeypatch.setattr(metadata, "entry_points", looked_up)
    model = Model("sgd", "hinge", rate="power")
    model_file.save(model, tmp_path / "m")
    thresher.load(tmp_path / "m")
    Model.load(tmp_path / "m")
    header, _ = model_file.read(tmp_path / "m")
    assert "needs" not in header
    assert ENTRY_POINTS not in asked, "other libraries have groups of their own"


# Files

WRONG = {
    "x = 1\n\nfoo(\n": "mine.py:3: SyntaxError: '(' was never closed",
    "x = 1\n\nfoo()\n": "mine.py:3: NameError: name 'foo' is not defined",
    "import sys\nsys.exit(3)\n": "mine.py:2: SystemExit: 3",
    "x = 1\n": 'mine.py: defines no part: a class with @part("rule") or the like',
    "\x00\x01": "mine.py: not Python: ",
    rule("Ftrl"): "mine.py:5: TypeError: a rule is already called ftrl: give Ftrl another name",
    rule("Mine").replace('("w",)', '"w"'): "mine.py:5: TypeError: rule Mine: SLOTS must be a tuple of names",
}


@pytest.mark.parametrize("source", WRONG, ids=[*map(str, range(len(WRONG)))])
def test_what_is_wrong_with_a_file(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(source)
    known = {kind: dict(parts) for kind, parts in REGISTRY.items()}
    with pytest.raises(SpecError) as caught:
        load_files(["mine.py"])
    assert str(caught.value).startswith(WRONG[source])
    assert "\n" not in str(caught.value)
    assert known == REGISTRY
    assert [*tmp_path.iterdir()] == [tmp_path / "mine.py"], "nothing is written beside it"


def test_an_example_names_the_package_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(SpecError, match=r"ImportError: .*pip install nats-py"):
        load_files([Path(__file__).parents[1] / "examples" / "nats_stream.py"])


def test_a_file_is_executed_again_if_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(rule("Mine"))
    load_files([file])
    first = REGISTRY["rule"]["mine"]
    load_files([file, str(file)])
    assert REGISTRY["rule"]["mine"] is first
    file.write_text(rule("Mine").replace("eta: float = 0.1", "eta: float = 0.25"))
    load_files([file])
    assert lookup("rule", "mine")().eta == 0.25


def test_every_command_with_parts_or_a_model_takes_files() -> None:
    """But for the solver, whose losses are built in."""
    for name in app.NAMES:
        command = app.command_of(name)
        takes = {"rule", "rules", "loss", "losses"} & command.known.keys()
        takes |= {one.metavar for one in command.arguments} & {"MODEL", "MODEL|DIR", "A", "B"}
        lists = name in ("rules", "losses", "rates")
        assert ("modules" in command.known) == (bool(takes) or lists) or name == "boost", name
        if "modules" in command.known:
            assert command.known["modules"].flag == "--module"


def test_a_model_names_the_file_of_its_rule(tmp_path: Path) -> None:
    file, path = tmp_path / "mine.py", tmp_path / "m"
    file.write_text(rule("Mine"))
    model = thresher.train(X, Y, rule="mine", passes=1, modules=file)
    thresher.save(model, path)
    header, _ = model_file.read(path)
    assert header["needs"] == [["rule", "mine", "", "", "mine.py"]]
    forget("mine")
    assert thresher.load(path).nonzero == 3, "weights need no rule"
    with pytest.raises(ModelFileError) as caught:
        Model.load(path)
    assert (
        str(caught.value)
        == f'{path}: needs the rule mine, which mine.py defines: use modules="mine.py" or import it first'
    )
    thresher.info(path)
    with pytest.raises(ModelFileError, match="needs the rule mine"):
        from_bytes(as_bytes(model))
    forget("mine")
    with pytest.raises(SpecError, match="no such file"):
        thresher.load(path, modules=["no.py"])
    file.write_text(file.read_text() + "\n")
    more = thresher.train(X + 1, Y, continue_from=path, passes=1, modules=[file])
    assert more.examples == 120


def test_on_the_command_line_a_file_is_named_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LOSS.format(name="MySquare"))
    (tmp_path / "d.svm").write_text("".join(f"{k % 3} {1 + k % 3}:1\n" for k in range(60)))
    own = ["--module", "mine.py"]
    assert run("train", "d.svm", "-m", "m", "--loss", "my-square", *own, folder=tmp_path)[0] == 0
    for words in (["predict", "m", "d.svm"], ["info", "m"]):
        code, _, err = run(*words, folder=tmp_path)
        assert (code, err) == (
            1,
            "thresher: m: needs the loss my-square, which mine.py defines: use --module mine.py\n",
        )
        code, out, err = run(*words, *own, folder=tmp_path)
        assert (code, err) == (0, "")
    assert "--module mine.py" in out
    assert "needs                  loss my-square (mine.py)\n" in out
    (tmp_path / "ours.py").write_text(rule("Ours"))
    own = ["--module", "ours.py"]
    words = ["train", "d.svm", "-m", "m", "--rule", "ours", "--loss", "squared", *own]
    assert run(*words, folder=tmp_path)[0] == 0
    code, out, err = run("info", "m", folder=tmp_path)
    assert (code, err) == (0, "")
    assert out.endswith("\ncommand                none: its rule is unknown: use --module ours.py\n")
    code, out, err = run("info", "m", *own, folder=tmp_path)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].endswith("--module ours.py")
    assert "thresher train DATA" in out


def test_a_model_names_its_package(site: Path, tmp_path: Path) -> None:
    install_template(site)
    model = thresher.train(X, Y, rule="forgetful-sgd", passes=1)
    thresher.save(model, tmp_path / "m")
    header, _ = model_file.read(tmp_path / "m")
    assert header["needs"] == [["rule", "forgetful-sgd", "own-package", "0.1.0", ""]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Model.load(tmp_path / "m")
    install_template(site, "0.2.0")
    with pytest.warns(UserWarning, match=r"the model was made with own-package 0\.1\.0; 0\.2\.0 is install"):
        Model.load(tmp_path / "m")
    with warnings.catch_warnings():  # once
        warnings.simplefilter("error")
        Model.load(tmp_path / "m")
    forget("forgetful-sgd", "own_package", "own_package.rules")
    install(site, "own-package", "0.2.0", {}, "")
    with pytest.raises(ModelFileError, match=NEED):
        Model.load(tmp_path / "m")
    install(site, "first", "1", {"forgetful-sgd": "first"}, rule("ForgetfulSgd"))
    with pytest.raises(ModelFileError, match="of own-package, but here it is one of first"):
        Model.load(tmp_path / "m")


def test_a_part_that_became_built_in_is_not_taken_for_it(tmp_path: Path) -> None:
    model = Model("sgd", rate="constant")
    model.learn(X, Y)
    for need in (["rule", "sgd", "own-package", "1", ""], ["rule", "sgd", "", "", "mine.py"]):
        model_file.write(
            tmp_path / "m", {**model_file.header_of(model), "needs": [need]}, model_file.tensors_of(model)
        )
        with pytest.raises(ModelFileError, match=r"needs the rule sgd of (own-package|mine\.py), but"):
            Model.load(tmp_path / "m")


def test_checkpoints_name_it(tmp_path: Path) -> None:
    """Of one model and of an ensemble."""
    (tmp_path / "mine.py").write_text(rule("Mine", 2.0))
    (tmp_path / "d.svm").write_text("".join(f"{k % 2} {1 + k % 2}:1\n" for k in range(60)))
    load_files([tmp_path / "mine.py"])
    calls: list[Any] = [thresher.train, thresher.ensemble]
    for call in calls:
        name = call.__name__
        more: dict[str, Any] = {"checkpoint": tmp_path / name, "rule": "mine", "passes": 2}
        with stopping(once_learned(70)), pytest.raises(KeyboardInterrupt):
            call(tmp_path / "d.svm", **more)
        forget("mine")
        with pytest.raises(ModelFileError, match=r"needs the rule mine, which mine\.py defines"):
            call(tmp_path / "d.svm", resume=True, **more)
        call(tmp_path / "d.svm", resume=True, modules=tmp_path / "mine.py", **more)


def test_frontiers_and_ensembles_name_it(site: Path, tmp_path: Path) -> None:
    install_template(site)
    thresher.path(X, Y, rule="forgetful-sgd", l1=[0.01, 0.1], passes=1).save(tmp_path / "f", state=True)
    thresher.ensemble(X, Y, rule="forgetful-sgd", models=2, passes=1).save(tmp_path / "e")
    lanes = ModelSet([Recipe("ftrl"), Recipe("forgetful-sgd")])
    assert model_file.needing(*lanes.models)["needs"][0][1] == "forgetful-sgd"
    forget("forgetful-sgd", "own_package", "own_package.rules")
    install(site, "own-package", "0.2.0", {})
    for name, again in (("f", thresher.path), ("f", thresher.train), ("e", thresher.ensemble)):
        with pytest.raises(ModelFileError, match=NEED):
            again(X, Y, continue_from=tmp_path / name)
    assert len(Ensemble.load(tmp_path / "e").models) == 2


def test_a_model_file_executes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever paths and modules it names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(rule("Mine"))
    model = thresher.train(X, Y, rule="mine", passes=1, modules="mine.py")
    forget("mine")
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'done')!r}, 'w')\n" + rule("Mine"))
    monkeypatch.syspath_prepend(str(tmp_path))
    header = {**model_file.header_of(model), "needs": [["rule", "mine", "", "", str(tmp_path / "evil.py")]]}
    for need in (["rule", "mine", "evil", "1", "evil.py"], ["rule", "evil", "evil:Mine", "1", "evil"]):
        for own in ([need], [*header["needs"], need]):
            model_file.write(tmp_path / "m", {**header, "needs": own}, model_file.tensors_of(model))
            with pytest.raises(ModelFileError, match="needs the rule"):
                Model.load(tmp_path / "m")
    wrongs: list[Any] = ["evil.py", [["rule", "mine"]], [["rule", "mine", 1, "", ""]], {"rule": "mine"}]
    for wrong in wrongs:
        model_file.write(tmp_path / "m", {**header, "needs": wrong}, model_file.tensors_of(model))
        with pytest.raises(ModelFileError, match="needs"):
            Model.load(tmp_path / "m")
    odd = ["a; rm -rf b", "--index-url=http://a", "-r/etc/passwd", "a @ https://a/a.whl", "a\nb"]
    for package, version in [*((one, "1") for one in odd), ("a", "1 -r b"), ("a", "@ https://a")]:
        need = ["rule", "mine", package, version, ""]
        model_file.write(tmp_path / "m", {**header, "needs": [need]}, model_file.tensors_of(model))
        with pytest.raises(ModelFileError, match="needs the rule mine of the package") as caught:
            Model.load(tmp_path / "m")
        assert "pip install" not in str(caught.value), "no name of a package is nothing to type"
    assert not (tmp_path / "done").exists()
    assert "evil" not in sys.modules


def test_what_a_file_prints_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"print('hello')\n{rule('Mine')}")
    code, out, err = run("rules", "mine", "--module", "mine.py", folder=tmp_path)
    assert code == 0
    assert "hello" not in out
    assert "hello" in err
