"""The endpoints, declared once: the router, the check of queries and ``/openapi.json`` follow from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from thresher._version import __version__
from thresher.data import bodies

EXPLAIN = "explain"
OUTPUTS = ("probability", "label", "margin", EXPLAIN)
"""What can be asked for of a row"""
JSON, LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
MEDIA = {
    **dict.fromkeys((JSON, LINES, "application/jsonl"), "jsonl"),
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/x-vw": "vw",
    **dict.fromkeys(("text/x-svmlight", "text/x-libsvm"), "svmlight"),
    ARROW: "arrow",
}
"""The formats of bodies, by media type"""
ROWS = (*MEDIA, "application/octet-stream")
"""Media types of bodies with rows; the last stands for the format that the model was trained on"""
FAULTS = {
    400: "The request is wrong; nothing was done.",
    401: "The token is missing or wrong.",
    404: "There is no such path, model or row.",
    405: "The path has another method.",
    406: "The answer does not exist in the form that is accepted.",
    408: "The request took too long to arrive.",
    409: "The state of the service does not allow it.",
    413: "The body is too large.",
    415: "The body is of a kind that is not read.",
    422: "The key was used for other rows.",
    429: "Too much is waiting; try again later.",
    431: "The head is too large.",
    500: "A fault of the service.",
    503: "The service cannot do it now.",
}
"""What errors mean; each has the same body"""


class Live(msgspec.Struct):
    """The process answers."""

    live: bool


class ServiceReady(msgspec.Struct):
    """The service can do its work, though perhaps not learn, for a reason."""

    ready: bool
    learning: bool
    reason: str


class RowsLearned(msgspec.Struct):
    """Rows are on disk."""

    first: int
    last: int
    learned: int
    refused: int
    errors: list[bodies.WrongRow]
    repeated: bool


class LabelsLearned(msgspec.Struct):
    """Labels are on disk: how many were learned, wait, and were known before; and ids that are not kept."""

    first: int
    last: int
    learned: int
    waiting: int
    repeated: int
    unknown: list[str]


class Refusal(msgspec.Struct):
    """Why a request was not done."""

    error: str


class Given(NamedTuple):
    """A part of a query, or a header."""

    name: str
    does: str
    place: str = "query"
    choices: tuple[str, ...] = ()


class Endpoint(NamedTuple):
    """What may be asked, and how."""

    method: str
    path: str
    does: str
    gives: dict[int, tuple[str, str, Any]]
    """by status: the meaning, the media type, and the type of JSON; empty for an answer without a body"""
    takes: tuple[str, ...] = ()
    """media types of the body"""
    parameters: tuple[Given, ...] = ()


def _json_endpoint(
    method: str, path: str, does: str, means: str, kind: Any, takes: Any = (), parameters: Any = ()
) -> Endpoint:
    """What is answered in JSON of this kind."""
    return Endpoint(method, path, does, {200: (means, JSON, kind)}, takes, parameters)


_OUTPUT = Given("output", "What to say of a row.", choices=OUTPUTS)
_TOP = Given("top", "Of an explanation only so many features, and the sum of the others.")
_IDS = Given("ids", "The column with the id of a row, which is kept until /label names it.")
_KEY = Given(
    "Idempotency-Key", "A request with a key that was seen before is not learned again.", place="header"
)
_TAGS = Given("If-None-Match", "The ETag of the snapshot that the client has.", place="header")
_LATE = "Learn kept rows whose labels have become known: lines of {id, label} and, if wanted, weight."
_LINE = "One JSON object per row, in place of a bad one its error"

ENDPOINTS = {
    "predict": Endpoint(
        *("POST", "/predict", "Predict each row of the body."),
        {200: (f"{_LINE}; or an Arrow stream, if accepted.", LINES, str), 400: (f"{_LINE}.", LINES, str)},
        ROWS,
        (_OUTPUT, _TOP, _IDS),
    ),
    "learn": _json_endpoint(
        *("POST", "/learn", "Learn the labelled rows of the body.", "Rows are on disk."),
        RowsLearned,
        ROWS,
        (_KEY,),
    ),
    "label": _json_endpoint("POST", "/label", _LATE, "Labels are on disk.", LabelsLearned, (LINES, JSON)),
    "metrics": Endpoint("GET", "/metrics", "Figures for Prometheus.", {200: ("Figures.", "text/plain", str)}),
    "live": _json_endpoint("GET", "/health/live", "Whether the process answers.", "It does.", Live),
    "ready": _json_endpoint("GET", "/health/ready", "Whether it can do its work.", "It can.", ServiceReady),
    "about": _json_endpoint(
        "GET", "/model", "What thresher info says of the model.", "Facts.", dict[str, Any]
    ),
    "openapi": _json_endpoint("GET", "/openapi.json", "This document.", "OpenAPI 3.1.", dict[str, Any]),
    "snapshot": Endpoint(
        *("GET", "/snapshot", "The newest model on disk."),
        {200: ("A model file.", "application/octet-stream", bytes), 304: ("The client has it.", "", None)},
        parameters=(_TAGS,),
    ),
}
"""By the name of the function that answers"""


def document() -> dict[str, object]:
    """The service in OpenAPI 3.1."""
    types = [kind for one in ENDPOINTS.values() for _, _, kind in one.gives.values()] + [Refusal]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    left, refusal = iter(schemas), {"schema": {"$ref": "#/components/schemas/Refusal"}}
    paths = dict[str, Any]()
    for name, one in ENDPOINTS.items():
        answers: dict[str, Any] = {
            str(status): {"description": words, "content": {JSON: refusal}}
            for status, words in FAULTS.items()
        }
        for status, (words, media, _) in one.gives.items():
            schema, answer = next(left), answers.setdefault(str(status), {"description": words})
            if media:
                answer["content"] = answer.get("content", {}) | {media: {"schema": schema}}
        operation: dict[str, Any] = {"operationId": name, "summary": one.does, "responses": answers}
        for each in one.parameters:
            kind = {"type": "string", **({"enum": [*each.choices]} if each.choices else {})}
            said = {"name": each.name, "in": each.place, "description": each.does, "schema": kind}
            operation.setdefault("parameters", []).append(said)
        if one.takes:
            operation["requestBody"] = {"required": True, "content": {media: {} for media in one.takes}}
        paths[one.path] = {one.method.lower(): operation}
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "thresher serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": bearer}},
        "security": [{}, {"token": []}],
    }
