"""Which of two options applies to a column that both match."""

import pytest

from thresher.data import DataError
from thresher.data.columns import settle
from thresher.data.layout import Layout

NAMES = ("label", "id", "i1", "i2", "city", "n")


def kinds(**options: object) -> str:
    """The first letter of the kind of each column except the label; numeric by default."""
    found = settle(Layout("csv", **options), NAMES, ["label", *["numeric"] * 5], "t.csv").kinds  # type: ignore[arg-type]
    assert found[0] == "label"
    return "".join(kind[0] for kind in found[1:])


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"categorical": ("*",)}, "ccccc"),
        ({"categorical": ("*",), "ignore": ("id",)}, "icccc"),
        ({"categorical": ("*",), "ignore": ("i*",)}, "iiicc"),
        ({"categorical": ("*",), "ignore": ("2-4",)}, "iiicc"),
        ({"categorical": ("*",), "numeric": ("n",)}, "ccccn"),
        ({"categorical": ("*",), "numeric": ("i?", "n"), "ignore": ("id",)}, "inncn"),
        ({"categorical": ("2-6",), "ignore": ("i*",)}, "iiicc"),
        ({"categorical": ("2-6",), "numeric": ("3",)}, "cnccc"),
        ({"categorical": ("city",), "ignore": ("*",)}, "iiici"),
        ({"categorical": ("i[12]",), "ignore": ("*",)}, "iccii"),
        ({"categorical": ("*",), "weight": "n"}, "ccccw"),
    ],
)
def test_the_more_precise_holds(options: dict[str, object], found: str) -> None:
    assert kinds(**options) == found


@pytest.mark.parametrize(
    ("options", "column", "both"),
    [
        ({"categorical": ("id",), "ignore": ("id",)}, "id", "--categorical and --ignore"),
        ({"categorical": ("*",), "numeric": ("*",)}, "id", "--numeric and --categorical"),
        ({"categorical": ("i*",), "numeric": ("i[12]",)}, "i1", "--numeric and --categorical"),
        ({"weight": "n", "ignore": ("n",)}, "n", "--weight and --ignore"),
        ({"ignore": ("label",)}, "label", "--label and --ignore"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, object], column: str, both: str) -> None:
    with pytest.raises(DataError, match=f"^t.csv: '{column}' is listed in both {both}$"):
        kinds(**options)
