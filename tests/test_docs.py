"""Rule pages and verb tables agree with the docstrings; their examples are not run again."""

import doctest
import inspect
import re
import shlex
from pathlib import Path

import pytest

from docs.rule_pages import FOLDER, command, index, page, rules
from docs.testing_figures import PAGE, with_coverage, with_figures
from docs.verb_table import DESIGN, with_tables
from tests.pages import text_of
from thresher.cli.app import command_of
from thresher.engine.protocol import PROTOCOL
from thresher.parts import REGISTRY, describe, lookup, parameters

ROOT = Path(__file__).parent.parent
RULES = {rule.name: rule for rule in rules()}
every_rule = pytest.mark.parametrize("name", RULES)
STALE = "run `make pages`"


@every_rule
def test_a_page_is_its_docstring_and_an_example(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    head = page(RULES[name])
    assert text.startswith(head), STALE
    figures = text.removeprefix(head).removesuffix("```\n")
    found = {line[:22].rstrip(): line[22:].strip() for line in figures.splitlines()}
    assert list(found)[:5] == ["examples", "passes", "progressive loss", "nonzero", "features seen"]
    assert "holdout loss" in found
    assert {"holdout error", "holdout rmse"} & set(found)
    assert int(found["nonzero"].replace(",", "")) > 0


@every_rule
def test_a_page_tells_everything(name: str) -> None:
    """Every word of the docstring but the doctest, and every parameter."""
    doc, text = inspect.getdoc(lookup("rule", name)) or "", page(RULES[name])
    assert RULES[name].lazy, "a rule's docstring describes its lazy update"
    assert RULES[name].reference, "a rule's docstring ends with its reference"
    said = text.replace("\\", "").lower().split()
    for paragraph in doc.split("\n\n"):
        if not paragraph.startswith(">>>"):
            for heading in ("Reference:", "Lazy update:"):
                paragraph = paragraph.removeprefix(heading)
            assert set(paragraph.lower().split()) <= set(said)
    for field in parameters(lookup("rule", name)):
        assert f"\n| `{field}` | `" in text
    assert ("| `--rate` |" in text) == bool(RULES[name].rate)


def test_the_index_is_of_today() -> None:
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == index(list(RULES.values())), STALE


def test_the_laws_have_the_same_numbers_everywhere() -> None:
    pages = ("README.md", "CONTRIBUTING.md", "docs/how.md")
    law = re.compile(r"^(\d+)\. \*\*(.*?)[.,]?\*\*", re.MULTILINE)
    found = [law.findall((ROOT / page).read_text(encoding="utf-8")) for page in pages]
    assert found[0] == found[1] == found[2]
    numbers = [int(number) for number, _ in found[0]]
    assert numbers == [*range(1, 15)]
    told = [*ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py")]
    named = {int(one) for path in told for one in re.findall(r"\b[Ll]aw (\d+)", path.read_text())}
    assert named <= set(numbers)


def test_there_is_a_page_for_every_rule_and_no_other() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == {"README", *RULES}, STALE
    assert set(RULES) <= set(REGISTRY["rule"])


@every_rule
def test_an_example_is_a_command_that_holds(name: str) -> None:
    """As far as this can be checked without running it."""
    program, verb, *words = shlex.split(command(name))
    assert (program, verb) == ("thresher", "train")
    train = command_of("train")
    given = train.make_context("train", words).params
    from thresher import Model

    model = Model(given["rule"], given["loss"] or "logistic", rate=given["rate"])
    assert type(model.rule) is lookup("rule", name)


def test_pages_are_of_today() -> None:
    rounding = describe("rule", "rounding")
    assert "K = `every`: 0 if |w'| < theta." in rounding.line
    assert r"K = `every`: 0 if \|w'\| \< theta. |" in index([rounding])
    text = DESIGN.read_text(encoding="utf-8")
    assert with_tables(text) == text, STALE
    text = PAGE.read_text(encoding="utf-8")
    assert with_figures(text) == text, "run `python -m docs.testing_figures`"


def test_coverage_is_that_of_each_folder_and_of_all() -> None:
    def file(*counts: int) -> dict[str, dict[str, int]]:
        names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
        return {"summary": dict(zip(names, counts, strict=True))}

    files = {"cli/a.py": file(2000, 1999, 8, 4), "cli/b.py": file(0, 0, 0, 0), "api.py": file(10, 10, 0, 0)}
    report = {"meta": {"version": "7"}, "files": {f"src/thresher/{name}": one for name, one in files.items()}}
    text = PAGE.read_text(encoding="utf-8")
    again = with_coverage(with_coverage(text, report), report)
    assert "| api.py | 10 | 100.0 % | 0 |  |\n| cli | 2,000 | 99.9 % | 8 | 50.0 % |\n" in again
    assert "| all | 2,010 | 99.9 % | 8 | 50.0 % |\n" in again
    assert with_figures(again) == again


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in PROTOCOL for name in PROTOCOL[kind]])
def test_a_verb_says_its_default_in_its_first_line(kind: str, name: str) -> None:
    declared = PROTOCOL[kind][name]
    first = (declared.default.__doc__ or "").splitlines()[0]
    assert first.endswith(".")
    assert ("Default: " in first) != declared.required


def test_the_program_for_topics_is_the_one_that_is_tried() -> None:
    shown = text_of("docs/streams").partition("```py\n")[2].partition("```")[0]
    whole = (ROOT / "examples" / "topic_to_server.py").read_text(encoding="utf-8")
    assert whole.partition('"""\n\n')[2] == shown


@pytest.mark.parametrize("name", ["formats/memory", "formats/svmlight", "from-river", "python"])
def test_the_examples_of_a_page_hold(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testfile(str(FOLDER.parent / f"{name}.md"), module_relative=False)
    assert done.attempted > 5
    assert done.failed == 0
