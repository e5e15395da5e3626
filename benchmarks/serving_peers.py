"""``python -m benchmarks.serving_peers NAME PORT ROWS``: services that others would write round a learner.

Each learns the rows of a file of JSON lines, then answers ``/predict`` and ``/learn`` for a row or a list of
rows. None of them keeps on disk what it learns.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

Row = dict[str, Any]
LABEL = "label"


class Peer(Protocol):
    """A learner of one row at a time."""

    def predict(self, row: Row) -> float: ...

    def learn(self, row: Row) -> None: ...


class River:
    """river's logistic regression by FTRL, of features named as one-hot encoding names them.

    river's own encoder takes 2 ms a row here, for it asks all categories that it knows.
    """

    def __init__(self) -> None:
        from river import linear_model, optim

        self._model: Any = linear_model.LogisticRegression(optim.FTRLProximal())

    @staticmethod
    def _features(row: Row) -> Row:
        return {
            name if not isinstance(value, str) else f"{name}={value}": 1 if isinstance(value, str) else value
            for name, value in row.items()
            if name != LABEL
        }

    def predict(self, row: Row) -> float:
        return float(self._model.predict_proba_one(self._features(row))[True])

    def learn(self, row: Row) -> None:
        self._model.learn_one(self._features(row), row[LABEL] == 1)


class VowpalWabbit:
    """Vowpal Wabbit's Python package."""

    def __init__(self) -> None:
        from vowpalwabbit import Workspace

        self._model = Workspace("--ftrl -b 20 --loss_function logistic --link logistic --quiet")

    @staticmethod
    def _line(row: Row, label: str = "") -> str:
        words = [
            f"{name}={value}" if isinstance(value, str) else f"{name}:{value}"
            for name, value in row.items()
            if name != LABEL
        ]
        return f"{label} | {' '.join(words)}"

    def predict(self, row: Row) -> float:
        return float(self._model.predict(self._line(row)))

    def learn(self, row: Row) -> None:
        self._model.learn(self._line(row, "1" if row[LABEL] == 1 else "-1"))


class Constant:
    """Nothing: what the framework takes."""

    def predict(self, row: Row) -> float:
        return 0.25

    def learn(self, row: Row) -> None:
        pass


PEERS: dict[str, Callable[[], Peer]] = {"river": River, "vowpalwabbit": VowpalWabbit, "constant": Constant}


def application(peer: Peer) -> Any:
    """The service, of starlette."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def predict(request: Any) -> Any:
        rows = await request.json()
        if isinstance(rows, list):
            return JSONResponse([{"probability": peer.predict(row)} for row in rows])
        return JSONResponse({"probability": peer.predict(rows)})

    async def learn(request: Any) -> Any:
        rows = await request.json()
        for row in rows if isinstance(rows, list) else [rows]:
            peer.learn(row)
        return JSONResponse({"learned": len(rows) if isinstance(rows, list) else 1})

    routes = [Route("/predict", predict, methods=["POST"]), Route("/learn", learn, methods=["POST"])]
    return Starlette(routes=routes)


def trained(name: str, lines: Iterable[str]) -> Peer:
    """A peer that has learned."""
    peer = PEERS[name]()
    for line in lines:
        peer.learn(json.loads(line))
    return peer


if __name__ == "__main__":
    import uvicorn

    served = trained(sys.argv[1], Path(sys.argv[3]).read_text().splitlines())
    uvicorn.run(
        application(served), port=int(sys.argv[2]), log_level="error", loop="uvloop", http="httptools"
    )
