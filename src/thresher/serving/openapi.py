"""The endpoints, declared once: the router, the check of queries and ``/openapi.json`` follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from thresher._version import __version__

EXPLAIN = "explain"
OUTPUTS = ("probability", "label", "margin", EXPLAIN)
"""What can be asked for of a row"""
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


class Live(msgspec.Struct):
    """The process answers."""

    live: bool


class ServiceReady(msgspec.Struct):
    """The service can do its work, though perhaps not learn, for a reason."""

    ready: bool
    learning: bool
    reason: str


class WrongRow(msgspec.Struct):
    """A row that was not taken."""

    line: int
    column: int
    error: str


class RowsLearned(msgspec.Struct):
    """Rows are on disk."""

    first: int
    last: int
    learned: int
    refused: int
    errors: list[WrongRow]
    repeated: bool


class LabelsLearned(msgspec.Struct):
    """Labels are on disk: how many were learned, wait, and were known before; and ids that are not kept."""

    first: int
    last: int
    learned: int
    waiting: int
    repeated: int
    unknown: list[str]


class Promoted(msgspec.Struct):
    """Another model has taken over, after this row."""

    first: int
    last: int
    repeated: bool


class ServerName(msgspec.Struct):
    """Who answers."""

    name: str
    version: str
    extensions: list[str]


class ModelReady(msgspec.Struct):
    """The model can predict."""

    name: str
    ready: bool


class TensorKind(msgspec.Struct):
    """A tensor of the model; -1 stands for any number of rows."""

    name: str
    datatype: str
    shape: list[int]


class TensorData(TensorKind):
    """A tensor of an answer."""

    data: list[Any]


class DescribedModel(msgspec.Struct):
    """What the model takes and gives."""

    name: str
    platform: str
    inputs: list[TensorKind]
    outputs: list[TensorKind]


class Inferred(msgspec.Struct, omit_defaults=True):
    """Predictions as tensors."""

    model_name: str
    outputs: list[TensorData]
    id: str | None = None


class Refusal(msgspec.Struct):
    """Why a request was not done."""

    error: str


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
    gives: dict[int, tuple[str, str, Any]]
    """by status: the meaning, the media type, and the type of JSON; empty for an answer without a body"""
    takes: tuple[str, ...] = ()
    """media types of the body"""
    parameters: tuple[Given, ...] = ()

    @property
    def queries(self) -> frozenset[str]:
        """The names that its query may have."""
        return frozenset(one.name for one in self.parameters if one.place == "query")


_OUTPUT = Given("output", "What to say of a row.", choices=OUTPUTS)
_TOP = Given("top", "Of an explanation only so many features, and the sum of the others.")
_IDS = Given("ids", "The column with the id of a row, which is kept until /label names it.")
_KEY = Given(
    "Idempotency-Key", "A request with a key that was seen before is not learned again.", place="header"
)
_MODEL = Given("name", "The name of the model.", place="path")
_TAGS = Given("If-None-Match", "The ETag of the snapshot that the client has.", place="header")
_LINE = "One JSON object per row, in place of a bad one its error"

ENDPOINTS = {
    "predict": Endpoint(
        "POST",
        "/predict",
        "Predict each row of the body.",
        {200: (f"{_LINE}; or an Arrow stream, if accepted.", LINES, str), 400: (f"{_LINE}.", LINES, str)},
        ROWS,
        (_OUTPUT, _TOP, _IDS),
    ),
    "learn": Endpoint(
        "POST",
        "/learn",
        "Learn the labelled rows of the body.",
        {200: ("Rows are on disk.", JSON, RowsLearned)},
        ROWS,
        (_KEY,),
    ),
    "label": Endpoint(
        "POST",
        "/label",
        "Learn kept rows whose labels have become known: lines of {id, label} and, if wanted, weight.",
        {200: ("Labels are on disk.", JSON, LabelsLearned)},
        (LINES, JSON),
    ),
    "metrics": Endpoint("GET", "/metrics", "Figures for Prometheus.", {200: ("Figures.", "text/plain", str)}),
    "live": Endpoint("GET", "/health/live", "Whether the process answers.", {200: ("It does.", JSON, Live)}),
    "ready": Endpoint(
        "GET", "/health/ready", "Whether it can do its work.", {200: ("It can.", JSON, ServiceReady)}
    ),
    "live_v2": Endpoint("GET", "/v2/health/live", "As /health/live.", {200: ("It does.", JSON, Live)}),
    "ready_v2": Endpoint(
        "GET", "/v2/health/ready", "As /health/ready.", {200: ("It can.", JSON, ServiceReady)}
    ),
    "about": Endpoint(
        "GET", "/model", "What thresher info says of the model.", {200: ("Facts.", JSON, dict[str, Any])}
    ),
    "openapi": Endpoint(
        "GET", "/openapi.json", "This document.", {200: ("OpenAPI 3.1.", JSON, dict[str, Any])}
    ),
    "server": Endpoint("GET", "/v2", "Name and version of the server.", {200: ("Names.", JSON, ServerName)}),
    "described": Endpoint(
        *("GET", "/v2/models/{name}", "Inputs and outputs of the model."),
        {200: ("Tensors.", JSON, DescribedModel)},
        parameters=(_MODEL,),
    ),
    "infer": Endpoint(
        *("POST", "/v2/models/{name}/infer", "Predict in the Open Inference Protocol."),
        {200: ("Tensors.", JSON, Inferred)},
        (JSON,),
        (_MODEL,),
    ),
    "model_ready": Endpoint(
        *("GET", "/v2/models/{name}/ready", "Whether the model can predict."),
        {200: ("It can.", JSON, ModelReady)},
        parameters=(_MODEL,),
    ),
    "snapshot": Endpoint(
        *("GET", "/snapshot", "The newest model on disk."),
        {200: ("A model file.", "application/octet-stream", bytes), 304: ("The client has it.", "", None)},
        parameters=(_TAGS,),
    ),
    "promote": Endpoint(
        *("POST", "/promote", "Let a shadow model take over: {model}."),
        {200: ("It has.", JSON, Promoted)},
        (JSON,),
    ),
}
"""By the name of the function that answers"""
PATHS = tuple(one.path for one in ENDPOINTS.values())


def document() -> dict[str, Any]:
    """The service in OpenAPI 3.1."""
    types = [kind for one in ENDPOINTS.values() for _, _, kind in one.gives.values()] + [Refusal]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    left = iter(schemas)
    paths = {one.path: {one.method.lower(): _operation(name, one, left)} for name, one in ENDPOINTS.items()}
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "thresher serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": bearer}},
        "security": [{}, {"token": []}],
    }


def _operation(name: str, one: Endpoint, schemas: Iterator[Any]) -> dict[str, Any]:
    """What is said of an endpoint; `schemas` has that of each of its answers next."""
    refusal = {"schema": {"$ref": "#/components/schemas/Refusal"}}
    answers: dict[str, Any] = {
        str(status): {"description": words, "content": {JSON: refusal}} for status, words in FAULTS.items()
    }
    for status, (words, media, _) in one.gives.items():
        schema, answer = next(schemas), answers.setdefault(str(status), {"description": words})
        if media:
            answer["content"] = answer.get("content", {}) | {media: {"schema": schema}}
    found: dict[str, Any] = {"operationId": name, "summary": one.does, "responses": answers}
    for each in one.parameters:
        kind = {"type": "string", **({"enum": [*each.choices]} if each.choices else {})}
        told = {"name": each.name, "in": each.place, "description": each.does, "schema": kind}
        required = {"required": True} if each.place == "path" else {}
        found.setdefault("parameters", []).append(told | required)
    if one.takes:
        found["requestBody"] = {"required": True, "content": {media: {} for media in one.takes}}
    return found
