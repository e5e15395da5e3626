"""The example of clicks that become known an hour later."""

import re
import runpy

import numpy as np
import pytest

from examples import serving
from tests.pages import DOCS, ROOT, text_of


def test_it_prints_and_draws_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "serving.py"), run_name="__main__")
    (shown,) = re.findall(r"^\$ python examples/serving.py\n(.*?)^```$", text_of("docs/serving"), re.M | re.S)
    said = capsys.readouterr().out
    assert said == shown
    assert "byte for byte: True" in said
    still, learns, true = (
        float(one) for one in re.findall(r"(\S+)$", said.partition("\n\n")[2][:300], re.M)[1:4]
    )
    assert true < learns < still - 0.03
    drawn = ROOT / "build" / "serving.svg"
    assert drawn.read_text() == (DOCS / "pictures" / "serving.svg").read_text()


def test_ads_come_and_go_and_chances_are_true() -> None:
    stream = serving.views(seed=1)
    hours = [
        {one.asked["ad"] for one in stream[k : k + serving.VIEWS]}
        for k in range(0, len(stream), serving.VIEWS)
    ]
    assert len(hours) == serving.HOURS
    assert not hours[0] & hours[serving.ADS // serving.NEW]
    assert len(hours[0] & hours[1]) > serving.ADS / 2
    clicked, chances = np.array([(one.clicked, one.chance) for one in stream]).T
    assert abs(clicked.mean() - chances.mean()) < 3 * np.sqrt(chances.mean() / len(stream))
