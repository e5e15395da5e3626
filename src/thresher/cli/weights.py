"""``thresher weights``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from thresher.options.arguments import MODEL
from thresher.options.judging import WeightsCommand
from thresher.options.option import Options

ARGUMENTS, OPTIONS = (MODEL,), WeightsCommand


def command(model: str, options: Options) -> None:
    """Print feature, name if known, and weight, tab-separated, largest first; the intercept last.

    Names come from thresher train --names and thresher name; those of numeric columns are always known. Tabs
    and non-printable characters in them are escaped.

    With many outputs, the class (or the number of the output) comes before the weight. With --interval, which
    is for an ensemble, the weight is followed by the ends of its interval and by the share of the models in
    which it is not zero. With --effects, the effect comes last, - for the intercept.
    """
    from thresher.learning.files import model_file
    from thresher.learning.inspection.feature_names import is_nameable, known_names
    from thresher.options.messages import mention
    from thresher.options.option import UsageError

    path, top = Path(model), options["top"]
    if options["interval"] is not None and options["effects"] is not None:
        raise UsageError(f"{mention('effects')} are of one model: leave out {mention('interval')}")
    if options["interval"] is not None:
        from thresher.learning.model.ensemble import load
        from thresher.runs.predict import check_ensemble

        ensemble: Any = load(path)
        check_ensemble(ensemble, "an interval")
        readout, header = model_file.load_readout(model, "0")
        named = ensemble.models
        found = ensemble.weights(options["interval"])
        heaviest, biases = found.heaviest(top), found.biases()
    else:
        readout, header = model_file.load_readout(model)
        named = [readout]
        effect, none = _effects(readout, options["effects"])
        biases = [(one, *none) for one in readout.bias]
        heaviest = [
            (key, output, (weight, *effect(key, output))) for key, output, weight in readout.heaviest(top)
        ]
    called = {key: name for one in named for key, name in known_names(one).items()}.get
    rows = [(str(key), _shown(called(key)), output, numbers) for key, output, numbers in heaviest]
    if header["recipe"]["intercept"]:
        rows += [("intercept", "", output, numbers) for output, numbers in enumerate(biases)]
    click.echo("".join(_line(readout, *row) for row in rows), nl=False)
    if is_nameable(readout) and not all(name for _, name, *_ in rows[: len(heaviest)]):
        click.echo(f"some features have no names: thresher name {model} DATA finds them", err=True)
    if readout.unmet.any():
        each = ", ".join(map(str, readout.unmet.tolist()))
        click.echo(f"features that were never seen have the weight {each}", err=True)


def _effects(readout: Any, data: str | None) -> tuple[Callable[[int, int], tuple[str, ...]], tuple[str, ...]]:
    """What is printed of the effect of a feature on an output, and in place of that of the intercept."""
    if data is None:
        return lambda key, output: (), ()
    keys, effects = readout.effects(data)
    places = {key: k for k, key in enumerate(keys.tolist())}
    table = effects.reshape(len(keys), -1)
    return lambda key, output: (f"{table[places[key], output]:.6g}",), ("-",)


def _line(readout: Any, key: str, name: str, output: int, numbers: Any) -> str:
    many, first, words = readout.head.outputs.kind != "one", readout.head.outputs.low, readout.classes
    of = (str(_shown(words[output]) if words else first + output),) if many else ()
    written = [f"{one:.9g}" if type(one) is float else str(one) for one in numbers]
    return "\t".join((key, name, *of, *written)) + "\n"


def _shown(name: str | None) -> str:
    from thresher.data.errors import printable

    return "" if name is None else printable(name.replace("\\", r"\\"))
