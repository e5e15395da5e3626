"""Line formats: sample text of each, with bad lines, and the result of its reference parser."""

from functools import partial

import numpy as np

from tests.data.lines import TESTED
from tests.data.reference import Row, parse_text
from tests.data.samples import SAMPLES
from thresher.data.layout import Layout


def some_text(lines: int, seed: int = 0) -> bytes:
    random = np.random.default_rng(seed)
    rows = []
    for k in range(lines):
        if k % 17 == 5:
            rows.append(random.choice(["# a comment", "", "broken line", "1 5:x", "3 1:1"]))
        else:
            ids = random.integers(0, 10**6, random.integers(0, 9))
            rows.append(" ".join([str(random.choice([-1, 1])), *(f"{i}:{random.normal():.6g}" for i in ids)]))
    return "\n".join(rows).encode()


def some_lines(form: str, count: int, seed: int) -> bytes:
    return b"\n".join(SAMPLES[form].mixed(count, 0, seed)[0])


def reference(form: str, text: bytes, domain: str) -> tuple[list[Row], list[bytes], int]:
    """The result of a format's reference parser for a text: see `parse_text`."""
    return parse_text(text, domain, partial(TESTED[form].parse, layout=Layout(form)))
