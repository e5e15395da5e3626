"""The example of several images: for the same error, groups keep far fewer elements, and the right ones."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from examples import images
from tests.pages import text_of

ROOT = Path(__file__).parent.parent


def test_groups_need_fewer_elements_for_the_same_error() -> None:
    """On images other than those of the example."""
    of = images.scene(seed=1)
    single, grouped, capped = (images.sparsest(of, group) for group in images.GROUPS)
    for found in (single, grouped, capped):
        assert 0.8 * images.WANTED < found.error <= images.WANTED < images.NOISE
    assert images.TRUE <= grouped.elements <= single.elements / 2
    assert images.TRUE <= capped.elements <= single.elements / 2
    assert grouped.weights == images.IMAGES * grouped.elements
    assert grouped.weights < single.weights < images.IMAGES * single.elements


def test_the_dictionary_is_what_the_images_are_made_of() -> None:
    of = images.scene()
    chunk = images.pixels(of)
    assert len(chunk) == images.SIDE**2
    assert np.linalg.matrix_rank(of.clean) == images.IMAGES
    amounts = np.linalg.lstsq(of.atoms[:, of.chosen], of.clean, rcond=None)[0]
    assert np.allclose(of.atoms[:, of.chosen] @ amounts, of.clean)
    assert np.abs(amounts).min() > 0.2


def test_as_a_script_it_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "images.py"), run_name="__main__")
    (shown,) = re.findall(
        r"^\$ python examples/images.py\n(.*?)^```$", text_of("docs/outputs"), re.DOTALL | re.MULTILINE
    )
    assert capsys.readouterr().out == shown
    assert "<svg" in (ROOT / "build" / "images.svg").read_text(encoding="utf-8")[:1000]
