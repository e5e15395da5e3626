"""A copy of the model of a server that is kept fresh, from its snapshots."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

from thresher.data.errors import OneLineError
from thresher.data.log.source import LogOrigin
from thresher.engine.atomic import whole_file
from thresher.learning.files import model_file
from thresher.options.option import UsageError
from thresher.options.serving import MOST_MODEL

_SECONDS = 30.0
"""How long an answer, or a part of one, is waited for"""
_MOST_SECONDS = 600.0
"""How long a model may take to arrive"""
_PIECE = 1 << 20


class FollowError(OneLineError):
    """The server cannot be followed: asking again will not help."""


class LostError(Exception):
    """The server does not answer as it should at the moment."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token is for one server."""

    def redirect_request(self, *given: object) -> None:
        """Go nowhere else."""


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


def token_in(file: Path) -> str:
    """The token in a file. `UsageError`, OSError."""
    token = file.read_bytes().strip()
    if not token or not all(33 <= byte < 127 for byte in token):
        raise UsageError(f"{file}: a token is a line of letters, digits and signs, without spaces")
    return token.decode()


class Follower:
    """Copies the snapshots of the server at `url` to `file`, whole or not at all."""

    def __init__(self, url: str, file: Path, token: str = "", most: float = MOST_MODEL.amount) -> None:
        """`FollowError` unless `url` is that of a server. A model of more bytes than `most` is not copied."""
        parts = urllib.parse.urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise FollowError(f"{url}: not the address of a server, such as http://127.0.0.1:8000")
        self.url, self.file, self._tag = f"{parts.geturl().rstrip('/')}/snapshot", file, ""
        self._token, self._most = token, most

    def look(self) -> bool:
        """Copy the snapshot if it is another than before; whether it was.

        `LostError`, `FollowError`, OSError.
        """
        headers = {"If-None-Match": self._tag} if self._tag else {}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            request = urllib.request.Request(self.url, headers=dict(headers))
            with _OPENER.open(request, timeout=_SECONDS) as answer:
                self._copy(answer)
                self._tag = answer.headers.get("ETag") or ""
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 304:
                    return False
                if error.code in (401, 403):
                    raise FollowError(f"{self.url}: the server wants a token, or another one") from None
                if error.code == 404:
                    raise FollowError(f"{self.url}: not a server of thresher") from None
                raise LostError(f"status {error.code}") from None
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            words = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
            raise LostError(words) from error
        return True

    def _copy(self, answer: http.client.HTTPResponse) -> None:
        if answer.length is None:
            raise LostError("the server did not say how long the model is")
        if answer.length > self._most:
            larger = f"a model of {answer.length:,} bytes: if it is yours, allow it with --most-model"
            raise FollowError(f"{self.url}: {larger}")
        with whole_file(self.file, "wb") as file:
            end = time.monotonic() + _MOST_SECONDS
            while piece := answer.read1(_PIECE):
                file.write(piece)
                if time.monotonic() > end:
                    raise LostError(f"the model did not arrive within {_MOST_SECONDS:.0f} s")
            file.flush()
            try:
                found = model_file.load_readout(file.name)[0]
            except model_file.ModelFileError as error:
                why = str(error).removeprefix(f"{file.name}: ")
                raise LostError(f"the server did not send a whole model: {why}") from error
            try:
                before = model_file.load_readout(self.file)[0]
            except model_file.ModelFileError:  # there is none
                return
            have, new = (LogOrigin(one.layout, str(one.head.domain), "") for one in (before, found))
            if other := have.unlike(new):  # which would break what uses the copy
                raise FollowError(f"{self.url}: a model of {other}, unlike {self.file}: remove that first")


def keep_fresh(
    follower: Follower, wait: Callable[[], bool], say: Callable[[str], None], once: bool = False
) -> None:
    """Copy snapshots until `wait` returns True; with `once` the newest. `FollowError`, OSError.

    With `once`, `LostError` too; else the server is asked again.
    """
    lost = ""
    while True:
        try:
            if follower.look():
                say(f"{follower.file} is as the server has it")
            lost = ""
        except LostError as error:
            if once:
                raise FollowError(f"{follower.url}: {error}") from error
            if str(error) != lost:
                say(f"{follower.url}: {error}; asking again")
            lost = str(error)
        if once or wait():
            return
