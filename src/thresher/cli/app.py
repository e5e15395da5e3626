"""The subcommands of ``thresher``, the examples of their help, and tab completion for a shell.

The tests run the examples, in this order, in one folder.

A command's module is imported when it is called, and the list of all is a table, so ``thresher --help`` takes
0.09 s of processor and ``train --help`` 0.10. With typer, which has pydantic build a validator for each
option, they took 0.18 and 0.12. A run imports all parts (29 ms), because only importing them tells which rule
a name means.
"""

from __future__ import annotations

import functools
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from thresher._version import __version__
from thresher.cli.errors import OutputClosedError, what_ended
from thresher.cli.parser import REGISTERED, Command
from thresher.options.option import Options, UsageError

_LINES = """\
thresher train train.svm -m my.model --holdout 0.2
thresher train clicks.csv -m clicks.model --label click --passes 3 --order once --names
zcat train.svm.gz | thresher train - -m piped.model --rule ftrl:alpha=0.5,l1=1
thresher path train.svm -m front.model
thresher path train.svm -m small.model --choose nnz:100 --plot front.svg --table front.tsv
thresher path train.svm -m wider.model --l1 0.1:10:6 --holdout test.svm
thresher cv train.svm --folds 5
thresher cv train.svm --l1 0.5:4:4 --choose 1se -m best.model
thresher cv train.svm --rule pa-i --folds 3
thresher tune train.svm -m tuned.model
thresher tune train.svm -m tuned.model --rules ft-ftrl --budget 16
thresher tune train.svm -m tuned.model --budget 16 --holdout test.svm
thresher select train.svm -m selected.model
thresher select train.svm -m kept.model --false 2
thresher select clicks.csv -m stable.model --label click --bags 16 --names --table stable.tsv
thresher boost train.svm -m boosted.model --l1 1
thresher boost train.svm -m boosted.model --loss logistic --l1 0.5 --l2 0.1
thresher boost clicks.csv -m boosted.model --label click --method parallel
thresher predict my.model test.svm
thresher predict front.model test.svm --choose 1se --output probability -o predictions.txt
zcat train.svm.gz | thresher predict my.model - --output label
thresher evaluate my.model test.svm
thresher evaluate my.model test.svm --json
thresher evaluate clicks.model clicks.csv --on-error skip
thresher serve my.model
thresher serve clicks.model --port 9000 --token secret.txt
thresher serve my.model --learn --log events --wait 1h --unlabelled negative
thresher export my.model --to c -o model.c
thresher export clicks.model --to js -o model.js
thresher export clicks.model --to json > model.json
thresher report my.model
thresher report my.model test.svm -o report.html
thresher report clicks.model clicks.csv --slice hour
thresher weights my.model
thresher weights my.model --top 20
thresher weights clicks.model > weights.tsv
thresher choose front.model 1se -m sparse.model
thresher choose front.model nnz:100 -m small.model --json
thresher choose front.model 3 -m third.model
thresher info my.model
thresher info my.model --json
thresher info front.model
thresher log clicks.log
thresher log clicks.log --last 5
thresher log clicks.log --last 5 --json
thresher name clicks.model clicks.csv
thresher name clicks.model clicks.csv -o named.model
thresher name clicks.model clicks.csv --json
thresher rules
thresher rules ft-ftrl
thresher rules truncated-gradient
thresher losses
thresher losses logistic
thresher losses huber
thresher rates
thresher rates power
thresher rates inverse-sqrt
"""
EXAMPLES: dict[str, list[str]] = {}
"""By command name"""
for _line in _LINES.splitlines():
    EXAMPLES.setdefault(re.findall(r"thresher ([\w-]+)", _line)[0], []).append(_line)


def _print_completion(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print the completion of the user's shell. UsageError for one that cannot complete."""
    if wanted and not ctx.resilient_parsing:
        shell = Path(os.environ.get("SHELL", "")).name
        made = get_completion_class(shell)
        if made is None:
            raise UsageError(f"completion is for bash, zsh and fish; SHELL is '{shell}'")
        click.echo(made(ctx.command, {}, "thresher", "_THRESHER_COMPLETE").source())
        ctx.exit()


COMMANDS = {
    "train": ("learning", "Learn a sparse linear model from a stream."),
    "path": ("learning", "Learn a model for each of many penalties in one reading, and choose one."),
    "cv": ("learning", "Cross-validate many penalties in one reading, and choose one."),
    "tune": ("learning", "Race settings of several rules, and learn the best."),
    "select": ("learning", "Find the features that live in most halves of the rows."),
    "boost": ("learning", "Find the optimal sparse model for data in memory."),
    "predict": ("using", "Print one prediction per row."),
    "evaluate": ("using", "Measure a model on labelled data."),
    "serve": ("services", "Answer requests over HTTP with a model, which may learn from them."),
    "export": ("using", "Write a model in another language, to predict without Python."),
    "report": ("using", "Write an HTML page about a model: its training, quality and weights."),
    "weights": ("using", "Print the weights, largest first."),
    "choose": ("files", "Take one of many models out of their file."),
    "info": ("files", "Show what is in a model, and how it was made."),
    "log": ("files", "Show and check the log of a server."),
    "name": ("files", "Add the names of features to a model."),
    **{name: ("services", f"List the {name} and their parameters.") for name in ("rules", "losses", "rates")},
}
"""The module of each command, and what it does, in a line"""
NAMES = (*COMMANDS,)


@functools.cache
def command_of(name: str) -> Command:
    """What parses and runs a command: interruptions become our own exceptions."""
    module, short = COMMANDS[name]
    import_module(f"thresher.cli.{module}")
    run, options, arguments, hidden = REGISTERED[name]

    def guarded(**given: object) -> None:
        values = [given.pop(one.name) for one in arguments]
        values = [[*value] if isinstance(value, tuple) else value for value in values]
        made: Any = Options(options, {name: one for name, one in given.items() if one not in (None, ())})
        try:
            made.load_modules()
            if "workers" not in made:
                run(*values, made)
                return
            from thresher.cli.console import reading_elsewhere

            with reading_elsewhere(made):
                run(*values, made)
        except KeyboardInterrupt as error:
            raise what_ended(error) from error
        except BrokenPipeError as error:
            raise OutputClosedError from error

    examples = "\n".join(["\b", "Examples:", *(f"  {example}" for example in EXAMPLES[name])])
    shown = {"short_help": short, "help": run.__doc__, "epilog": examples}
    return Command(name, options, arguments, guarded, hidden=hidden, **shown)


class _Commands(click.Group):
    """All commands; their modules are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return [*NAMES]

    def get_command(self, ctx: click.Context, name: str) -> Command | None:
        """The command of this name."""
        return command_of(name) if name in NAMES else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in COMMANDS.items()])


@click.group("thresher", cls=_Commands)
@click.version_option(__version__, message="thresher %(version)s", help="Print the version.")
@click.option(
    "--show-completion",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print tab completion for your shell to load.",
)
def group() -> None:
    """Sparse linear models, learned from streams of any length."""


def run(arguments: list[str]) -> Any:
    """Run one command with its arguments; without arguments, print the help."""
    if arguments and arguments[0] not in NAMES and not arguments[0].startswith("-"):
        from thresher.options.synonyms import meant

        word = arguments[0]
        near = meant(word, [*NAMES, "--help", "--version"])
        if os.path.isfile(word):
            near = [f"train {word} -m MODEL"]
        more = f"; did you mean thresher {near[0]}?" if near else " (see thresher --help)"
        raise UsageError(f"no command is called '{word}'{more}")
    return group(arguments or ["--help"], prog_name="thresher", standalone_mode=False)
