"""Tab completion: the script for a shell, and where it is installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_THRESHER_COMPLETE"
_PLACES = {
    "bash": (".bash_completions/thresher.sh", ".bashrc", "source '{script}'"),
    "zsh": (".zfunc/_thresher", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": (".config/fish/completions/thresher.fish", "", ""),
}
"""By shell, in the home folder: the script, the file that loads it, and the line that does."""


def options() -> list[click.Option]:
    """The options that install completion and show the script."""
    return [
        _option("--install-completion", _install, "Install completion for the current shell."),
        _option(
            "--show-completion",
            _show,
            "Show completion for the current shell, to copy it or customize the installation.",
        ),
    ]


def _option(name: str, act: Callable[[str], None], words: str) -> click.Option:
    def called(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            act(_shell())
            ctx.exit()

    return click.Option([name], is_flag=True, is_eager=True, expose_value=False, callback=called, help=words)


def _shell() -> str:
    """The name of the user's shell. UsageError for one that cannot complete."""
    from thresher.options.option import UsageError

    name = Path(os.environ.get("SHELL", "")).name
    if name not in _PLACES:
        raise UsageError(f"completion is for {', '.join(_PLACES)}; SHELL is '{name}'")
    return name


def _script(shell: str) -> str:
    from thresher.cli.app import GROUP

    made = get_completion_class(shell)
    assert made is not None
    return made(GROUP, {}, "thresher", _VARIABLE).source()


def _show(shell: str) -> None:
    click.echo(_script(shell))


def _install(shell: str) -> None:
    place, loader, line = _PLACES[shell]
    script = Path.home() / place
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_script(shell) + "\n")
    if loader:
        profile, line = Path.home() / loader, line.format(script=script)
        before = profile.read_text() if profile.exists() else ""
        if line not in before:
            profile.write_text(f"{before.rstrip()}\n{line}\n".lstrip("\n"))
    click.echo(f"{shell} completion installed in {script}")
    click.echo("Completion will take effect once you restart the terminal")
