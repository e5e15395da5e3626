"""``thresher follow``."""

from __future__ import annotations

import threading
from functools import partial

import click

from thresher.options.arguments import Argument
from thresher.options.option import Options
from thresher.options.serving import FollowCommand

_URL = Argument("URL", "The address of a server, such as http://127.0.0.1:8000.")
ARGUMENTS, OPTIONS = (_URL,), FollowCommand


def command(url: str, options: Options) -> None:
    """Keep a copy of the model of a server fresh, from its snapshots, until Ctrl-C.

    A server that does not learn, thresher serve MODEL, reads its file again when that is replaced. So it can
    be a replica.
    """
    from thresher.serving.following import Follower, keep_fresh, token_in

    token = "" if options["token"] is None else token_in(options["token"])
    follower = Follower(url, options["model"], token, options["most_model"].amount)
    wait = partial(threading.Event().wait, options["every"].amount)
    keep_fresh(follower, wait, partial(click.echo, err=True), options["once"])
