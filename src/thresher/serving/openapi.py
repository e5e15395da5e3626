"""The endpoints, declared once: the router, the check of queries and ``/openapi.json`` follow from it."""

from __future__ import annotations

from typing import Any, NamedTuple

from thresher._version import __version__
from thresher.serving.answers import OUTPUTS

JSON, LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
ROWS = (
    *(JSON, LINES, "application/jsonl", "text/csv", "text/tab-separated-values", "text/x-vw"),
    *("text/x-svmlight", "text/x-libsvm", "text/x-libffm", ARROW, "application/octet-stream"),
)
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


class Given(NamedTuple):
    """A part of a query, a header or a path."""

    name: str
    does: str
    place: str = "query"
    choices: tuple[str, ...] = ()


class Endpoint(NamedTuple):
    """What may be asked, and how."""

    method: str
    path: str
    does: str
    gives: dict[int, tuple[str, str]]
    """by status: the meaning and the media type; empty for an answer without a body"""
    takes: tuple[str, ...] = ()
    """media types of the body"""
    parameters: tuple[Given, ...] = ()

    @property
    def queries(self) -> frozenset[str]:
        """The names that its query may have."""
        return frozenset(one.name for one in self.parameters if one.place == "query")


_OUTPUT = Given("output", "What to say of a row.", choices=OUTPUTS)
_IDS = Given("ids", "The column with the id of a row, which is kept until /label names it.")
_KEY = Given(
    "Idempotency-Key", "A request with a key that was seen before is not learned again.", place="header"
)
_MODEL = Given("name", "The name of the model.", place="path")
_TAGS = Given("If-None-Match", "The ETag of the snapshot that the client has.", place="header")
_ACK = "Rows are on disk: {first, last, learned, refused, errors, repeated}."

ENDPOINTS = {
    "predict": Endpoint(
        "POST",
        "/predict",
        "Predict each row of the body.",
        {200: ("One JSON object per row, or an Arrow stream if it is accepted.", LINES)},
        ROWS,
        (_OUTPUT, _IDS),
    ),
    "learn": Endpoint(
        "POST", "/learn", "Learn the labelled rows of the body.", {200: (_ACK, JSON)}, ROWS, (_KEY,)
    ),
    "label": Endpoint(
        "POST",
        "/label",
        "Learn kept rows whose labels have become known: lines of {id, label} and, if wanted, weight.",
        {200: ("Labels are on disk: {first, last, learned, repeated, unknown}.", JSON)},
        (LINES, JSON),
    ),
    "metrics": Endpoint("GET", "/metrics", "Figures for Prometheus.", {200: ("Figures.", "text/plain")}),
    "live": Endpoint("GET", "/health/live", "Whether the process answers.", {200: ("It does.", JSON)}),
    "ready": Endpoint("GET", "/health/ready", "Whether it can do its work.", {200: ("It can.", JSON)}),
    "live_v2": Endpoint("GET", "/v2/health/live", "As /health/live.", {200: ("It does.", JSON)}),
    "ready_v2": Endpoint("GET", "/v2/health/ready", "As /health/ready.", {200: ("It can.", JSON)}),
    "about": Endpoint("GET", "/model", "What thresher info says of the model.", {200: ("Facts.", JSON)}),
    "openapi": Endpoint("GET", "/openapi.json", "This document.", {200: ("OpenAPI 3.1.", JSON)}),
    "server": Endpoint("GET", "/v2", "Name and version of the server.", {200: ("Names.", JSON)}),
    "described": Endpoint(
        *("GET", "/v2/models/{name}", "Inputs and outputs of the model."),
        {200: ("Tensors.", JSON)},
        parameters=(_MODEL,),
    ),
    "infer": Endpoint(
        *("POST", "/v2/models/{name}/infer", "Predict in the Open Inference Protocol."),
        {200: ("Tensors.", JSON)},
        (JSON,),
        (_MODEL,),
    ),
    "model_ready": Endpoint(
        *("GET", "/v2/models/{name}/ready", "Whether the model can predict."),
        {200: ("It can.", JSON)},
        parameters=(_MODEL,),
    ),
    "snapshot": Endpoint(
        *("GET", "/snapshot", "The newest model on disk."),
        {200: ("A model file.", "application/octet-stream"), 304: ("The client has it.", "")},
        parameters=(_TAGS,),
    ),
    "promote": Endpoint(
        *("POST", "/promote", "Let a shadow model take over: {model}."),
        {200: ("It has.", JSON)},
        (JSON,),
    ),
}
"""By the name of the function that answers"""
PATHS = tuple(one.path for one in ENDPOINTS.values())


def document() -> dict[str, Any]:
    """The service in OpenAPI 3.1."""
    paths = {one.path: {one.method.lower(): _operation(name, one)} for name, one in ENDPOINTS.items()}
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "thresher serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": error}, "securitySchemes": {"token": bearer}},
        "security": [{}, {"token": []}],
    }


def _operation(name: str, one: Endpoint) -> dict[str, Any]:
    wrong = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    answers: dict[str, Any] = {
        str(status): {"description": words, **({"content": {media: {}}} if media else {})}
        for status, (words, media) in one.gives.items()
    }
    answers |= {str(status): {"description": words, "content": wrong} for status, words in FAULTS.items()}
    found: dict[str, Any] = {"operationId": name, "summary": one.does, "responses": answers}
    if one.parameters:
        found["parameters"] = [_parameter(each) for each in one.parameters]
    if one.takes:
        found["requestBody"] = {"required": True, "content": {media: {} for media in one.takes}}
    return found


def _parameter(one: Given) -> dict[str, Any]:
    kind = {"type": "string", **({"enum": [*one.choices]} if one.choices else {})}
    required = {"required": True} if one.place == "path" else {}
    return {"name": one.name, "in": one.place, "description": one.does, "schema": kind, **required}
