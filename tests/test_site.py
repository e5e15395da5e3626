"""The site: omitted pages, numbers of laws, pictures."""

import importlib
import re
from pathlib import Path

import pytest

import thresher
from docs import gallery
from tests.pages import DOCS, ROOT, text_of
from tests.plain import compile_nothing
from thresher.parts import make


@pytest.mark.parametrize("package", ["thresher", "thresher.sklearn", "thresher.river"])
def test_the_reference_has_all_that_is_exported(package: str) -> None:
    page = text_of("docs/api")
    named = set(re.findall(r"^\.\. auto\w+:: (\S+)|`thresher\.(?:sklearn\.)?(\w+)`", page, re.MULTILINE))
    names = {name for pair in named for name in pair}
    assert set(importlib.import_module(package).__all__) <= names
    assert thresher.__version__


def test_every_rule_has_its_place_in_the_gallery() -> None:
    rules = {path.stem for path in (DOCS / "rules").glob("*.md")} - {"README"}
    page = text_of("docs/gallery")
    named = set(re.findall(r"rules/([\w-]+)\.md", page)) | {"ft-ftrl"}
    assert rules - named == {"pa", "pa-ii", "scw-ii"}, "told on the pages of pa-i and scw"
    shown = re.findall(r"pictures/(\w+)-(?:light|dark)\.svg", page)
    assert sorted(shown) == sorted([*gallery.FAMILIES, *gallery.FAMILIES])


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draw the pictures of two families, twice."""
    place = tmp_path_factory.mktemp("pictures")
    families = {name: gallery.FAMILIES[name] for name in ("default", "none")}
    with pytest.MonkeyPatch.context() as monkeypatch:
        compile_nothing(monkeypatch)
        monkeypatch.setattr(gallery, "FAMILIES", families)
        for again in ("once", "twice"):
            gallery.main(place / again)
    return place


def test_pictures_are_the_same_and_of_rules(drawn: Path) -> None:
    once = {path.name: path.read_bytes() for path in (drawn / "once").iterdir()}
    twice = {path.name: path.read_bytes() for path in (drawn / "twice").iterdir()}
    assert once == twice
    assert set(once) == {
        f"{name}-{scheme}.svg" for name in ("default", "none") for scheme in ("light", "dark")
    }
    for lines in gallery.FAMILIES.values():
        for line in lines:
            assert make("rule", line.rule)


def test_pictures_show_what_the_page_says(plainly: None) -> None:
    """When its feature becomes noise, a sparse rule sets the weight to zero, and sgd does not."""
    chunks = gallery.stream()
    sparse = gallery.followed(gallery.Line("ft-ftrl:l1=3"), chunks)
    dense = gallery.followed(gallery.Line("sgd", gallery.SLOW), chunks)
    assert max(sparse[: gallery.USEFUL]) > 0.5
    assert sparse[-100:] == [0.0] * 100
    assert min(abs(weight) for weight in dense[-100:]) > 0


def test_what_the_site_needs_is_an_extra_of_its_own() -> None:
    """Neither users nor the tests install Sphinx."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = text[text.index("\ndocs = [") : text.index("\nbench = [")]
    conf = (DOCS / "conf.py").read_text(encoding="utf-8")
    for module in ("myst_parser", "sphinx_copybutton", "pydata_sphinx_theme"):
        assert module in conf
        assert module.replace("_", "-") in extra
        assert text.count(module.replace("_", "-")) == 1
