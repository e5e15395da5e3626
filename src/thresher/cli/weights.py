"""``thresher weights``."""

from __future__ import annotations

import click

from thresher.options.arguments import MODEL
from thresher.options.judging import WeightsCommand

ARGUMENTS, OPTIONS = (MODEL,), WeightsCommand


def command(model: str, options: WeightsCommand) -> None:
    """Print feature, name if known, and weight, tab-separated, largest first; the intercept last.

    Names come from thresher train --names and thresher name; those of numeric columns are always known. Tabs
    and non-printable characters in them are escaped.

    With many outputs, the class (or the number of the output) comes before the weight.
    """
    from thresher.learning.files import model_file
    from thresher.learning.inspection.feature_names import known_names

    readout, header = model_file.load_readout(model)
    many, first, words = readout.head.outputs.kind != "one", readout.head.outputs.low, readout.classes
    called = known_names(readout).get
    heaviest = readout.heaviest(options["top"])
    rows = [(str(key), _shown(called(key)), output, weight) for key, output, weight in heaviest]
    if header["recipe"]["intercept"]:
        rows += [("intercept", "", output, weight) for output, weight in enumerate(readout.bias)]
    lines = [
        f"{key}\t{name}\t"
        + (f"{_shown(words[output]) if words else first + output}\t" if many else "")
        + f"{weight!s}\n"
        for key, name, output, weight in rows
    ]
    click.echo("".join(lines), nl=False)
    if readout.unmet.any():
        each = ", ".join(map(str, readout.unmet.tolist()))
        click.echo(f"features that were never seen have the weight {each}", err=True)


def _shown(name: str | None) -> str:
    from thresher.data.errors import printable

    return "" if name is None else printable(name.replace("\\", r"\\"))
