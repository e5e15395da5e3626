"""The application: what each path answers, and what it refuses."""

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import thresher
from tests.serving.asking import Asked, Learning, Transport
from thresher.data.bodies import Rows
from thresher.data.errors import DataError
from thresher.learning.model.ensemble import load
from thresher.serving.bodies import Bodies
from thresher.serving.endpoints import NAMES
from thresher.serving.errors import RefusedError
from thresher.serving.openapi import ARROW, ENDPOINTS, Refusal
from thresher.serving.predicting import BatchKind
from thresher.serving.protocol import HttpConnection
from thresher.serving.service import Service

RED, BLUE = b'{"hour": 3, "colour": "red"}', b'{"hour": 3, "colour": "blue"}'
JSON = "application/json"


@pytest.fixture
def service(clicks: Path) -> Learning:
    return Learning(clicks)


@pytest.fixture
def ask(service: Learning) -> Asked:
    return Asked(service)


def test_predictions_are_those_of_the_model(ask: Asked, clicks: Path, tmp_path: Path) -> None:
    told = ask("POST", "/predict", RED + b"\n" + BLUE, content_type=JSON)
    (tmp_path / "rows.csv").write_text("hour,colour\n3,red\n3,blue\n")
    expected = thresher.load(clicks).predict(tmp_path / "rows.csv", output="probability")
    assert told.status == 200
    assert [one["probability"] for one in told.lines] == pytest.approx(expected.tolist(), rel=1e-9)
    text = ask("POST", "/predict?output=margin", b"hour,colour\n3,red\n", content_type="text/csv")
    terms = ask("POST", "/predict?output=explain", RED, content_type=JSON).lines[0]
    one = ask("POST", "/predict?output=explain&top=1", RED, content_type=JSON).lines[0]
    assert one["features"] == terms["features"][:1]
    assert one["rest"] == pytest.approx(sum(term["contribution"] for term in terms["features"][1:]))
    assert sum(one["contribution"] for one in terms["features"]) + terms["intercept"] == pytest.approx(
        terms["margin"]
    )
    margin = thresher.load(clicks).predict(tmp_path / "rows.csv", output="margin")[0]
    assert text.lines[0]["margin"] == pytest.approx(margin, rel=1e-9)


def test_a_large_body_is_predicted_elsewhere_all_the_same(service: Learning) -> None:
    ask = Asked(service, body=1_000_000, rows=10_000)
    told = ask("POST", "/predict", b"\n".join([RED] * 2_000), content_type=JSON)
    assert len(told.lines) == 2_000
    assert told.lines[0] == told.lines[-1] == ask("POST", "/predict", RED, content_type=JSON).lines[0]


def test_rows_are_learned_and_bad_ones_named(ask: Asked, service: Learning) -> None:
    rows = b'{"label": 1, "hour": 3}\n{"label": 7, "hour": 3}\n{"label": 0, "hour": 4, "colour": "red"}\n'
    told = ask("POST", "/learn", rows, content_type=JSON)
    assert told.status == 200
    assert told.json["errors"][0].keys() == {"line", "column", "error"}
    assert told.json["errors"][0]["line"] == 2
    expected = {"first": 1, "last": 2, "learned": 2, "refused": 1, "repeated": False}
    assert {name: told.json[name] for name in expected} == expected
    assert len(service.rows) == 2
    bad = ask("POST", "/learn", b'{"label": 7, "hour": 3}', content_type=JSON)
    assert bad.status == 400
    assert "line 1, column" in bad.json["error"]
    assert len(service.rows) == 2


def test_a_key_that_was_seen_is_not_learned_again(ask: Asked, service: Learning) -> None:
    row: dict[str, Any] = {"body": b'{"label": 1, "hour": 3}', "content_type": JSON, "idempotency_key": "a"}
    first, second = (ask("POST", "/learn", **row).json for _ in range(2))
    assert (first["learned"], first["repeated"]) == (1, False)
    assert (second["learned"], second["repeated"], second["first"]) == (0, True, first["first"])
    assert len(service.rows) == 1


def test_labels_come_late(ask: Asked, service: Learning) -> None:
    told = ask("POST", "/predict?ids=event", b'{"event": "a", "hour": 3}', content_type=JSON)
    assert told.lines[0]["id"] == "a"
    assert [*service.kept] == ["a"]
    late = ask("POST", "/label", b'{"id": "a", "label": 1}\n{"id": 7, "label": 0, "weight": 2}')
    assert late.json == {"first": 1, "last": 2, "learned": 2, "waiting": 0, "repeated": 0, "unknown": []}
    assert [(name, weight) for name, _, weight in service.labels] == [("a", 1.0), ("7", 2.0)]
    body = b'{"id": 1, "label": 1, "weight": 0}\n{"id": 2, "label": 1, "weight": 16777217.5}'
    assert ask("POST", "/label", body).status == 200
    assert [weight for *_, weight in service.labels[2:]] == [0.0, 16777218.0]


def test_a_row_with_a_wrong_id_costs_no_other_its_answer(ask: Asked, service: Learning) -> None:
    rows = ['{"event": "\\ud800", "hour": 3}', '{"event": "[1]", "hour": 3}', '{"event": ["a"], "hour": 3}']
    told = ask("POST", "/predict?ids=event", "\n".join(rows).encode(), content_type=JSON)
    assert told.status == 200
    assert ["error" in one for one in told.lines] == [True, False, True]
    assert [one["id"] for one in told.lines] == ["\\ud800", "[1]", '["a"]']
    assert [*service.kept] == ["[1]"]
    assert ask("POST", "/predict?ids=event", rows[0].encode(), content_type=JSON).status == 400
    assert [*service.kept] == ["[1]"]


@pytest.mark.parametrize(
    "given", ["1e3", "1.50", "-0", "12345678901234567890123", "true", '"1e3"', '"\\u00e9"']
)
def test_a_label_finds_its_row_however_the_id_is_written(ask: Asked, service: Learning, given: str) -> None:
    ask("POST", "/predict?ids=event", f'{{"event": {given}, "hour": 3}}'.encode(), content_type=JSON)
    assert ask("POST", "/label", f'{{"id": {given}, "label": 1}}'.encode()).status == 200
    assert [name for name, _, _ in service.labels] == [*service.kept]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the body is empty"),
        (b"{", "expected lines such as"),
        (b'[{"id": "a", "label": 1}]', "the body must have an object on each line: jq"),
        (b'{"id": "a"}', "line 1: expected a label in column 'label', found no such field"),
        (b'{"label": 1}', "no column is called 'id'"),
        (b'{"id": "a", "label": 7}', "line 1: expected a label -1, 0 or 1"),
        (b'{"id": "a", "label": "x"}', "line 1: expected a finite number as label"),
        (
            b'{"id": "b", "label": 1}\n{"id": "a", "label": 1, "weight": 3e38}',
            "line 2: expected an importance",
        ),
        (b'{"id": "a", "label": 1, "colour": 1}', "unknown field colour; expected lines such as"),
        (b'{"id": "\xff", "label": 1}', "line 1: expected UTF-8"),
        (b'{"id": null, "label": 1}', "line 1: expected an id: a text of 1 to 1,000 letters"),
        (b'{"id": 1, "label": 1}\n{"id": 2}', "line 2: expected a label"),
        (b'{"id": "' + b"a" * 1001 + b'", "label": 1}', "line 1: expected an id"),
        (b'{"id": "\\ud800", "label": 1}', "line 1: expected an id"),
        (b'{"id": ' + b"[" * 9000, "nested too deeply"),
        (b'{"id": ' + b'{"a": ' * 400 + b"1" + b"}" * 400 + b', "label": 1}', "nested too deeply"),
    ],
)
def test_labels_that_are_wrong_are_refused(ask: Asked, service: Learning, body: bytes, words: str) -> None:
    told = ask("POST", "/label", body)
    assert told.status == 400
    assert words in told.json["error"]
    assert not service.labels


def test_a_label_may_be_a_word(tmp_path: Path) -> None:
    rows = "".join(f"{'spam' if k % 2 else 'ham'},{k % 2}\n" for k in range(60))
    (tmp_path / "mail.csv").write_text(f"label,x\n{rows}")
    thresher.train(tmp_path / "mail.csv", passes=1).save(tmp_path / "mail.model")
    service = Learning(tmp_path / "mail.model")
    ask = Asked(service)
    assert ask("POST", "/label", b'{"id": "a", "label": "spam"}\n{"id": "b", "label": "ham"}').status == 200
    labels = [label for _, label, _ in service.labels]
    assert labels[0] > labels[1]
    assert "one of the classes" in ask("POST", "/label", b'{"id": "a", "label": "eggs"}').json["error"]


def test_paths_methods_and_parameters_that_do_not_exist(ask: Asked) -> None:
    assert ask("GET", "/nothing").status == 404
    assert all(path in ask("GET", "/nothing").json["error"] for path in NAMES)
    assert ask("GET", "/predict/").status == 404
    wrong = ask("GET", "/predict")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert ask("POST", "/predict?output=x", RED).json == {
        "error": "output must be one of probability, label, margin, explain"
    }
    assert ask("POST", "/predict?ids=", RED).json == {"error": "the parameter ids is empty"}
    assert ask("POST", "/predict?outputs=margin", RED).json["error"].endswith("known: ids, output, top")
    assert ask("POST", "/predict?output=margin&output=label", RED).status == 400
    for path, one in ((one.path.replace("{name}", "clicks"), one) for one in ENDPOINTS.values()):
        assert ask(one.method, f"{path}?no=1").status == 400, path


def test_health_and_heads(ask: Asked, service: Learning) -> None:
    assert ask("GET", "/health/live").json == {"live": True}
    for path, status in (("/health/live", 200), ("/snapshot", 200), ("/nowhere", 404)):
        told, bare = ask("GET", path), ask("HEAD", path)
        assert (bare.status, bare.body, bare.headers) == (status, b"", told.headers)
    assert ask("GET", "/health/ready").json["ready"] is True
    service.refusal = RefusedError(503, "the disk is full", 5)
    assert (ask("GET", "/health/ready").status, ask("GET", "/health/ready").json["error"]) == (
        503,
        "the disk is full",
    )
    told = ask("POST", "/learn", b'{"label": 1, "hour": 3}', content_type=JSON)
    assert (told.status, told.headers["retry-after"]) == (503, "5")
    assert ask("POST", "/predict", RED, content_type=JSON).status == 200


def test_the_model_and_its_file(ask: Asked, clicks: Path) -> None:
    assert ask("GET", "/model").json["examples"] == 60
    told = ask("GET", "/snapshot")
    assert told.body == clicks.read_bytes()
    assert told.headers["content-length"] == str(len(told.body))
    assert ask("GET", "/snapshot", if_none_match=told.headers["etag"]).status == 304


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("colours") / "a.csv"
    rows = "".join(f"{'abc'[k % 3]},s{k % 4},{'red' if k % 5 else 'blue'}\n" for k in range(60))
    path.write_text(f"label,size,colour\n{rows}")
    thresher.train(path, passes=1).save(path.with_suffix(".model"))
    return path.with_suffix(".model")


BOTH = b'{"hour": 3, "colour": "red", "size": "s1"}'


@pytest.mark.parametrize(
    ("target", "body"),
    [("/predict", BOTH), ("/predict?output=label", BOTH), ("/predict?output=explain", BOTH)],
)
def test_all_of_a_request_belongs_to_one_model(
    clicks: Path, colours: Path, target: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = Asked(Service(colours))("POST", target, body, content_type=JSON)
    service = Service(clicks)
    ask, read, found = Asked(service), Bodies.read, load(colours)
    before = ask("POST", target, body, content_type=JSON)

    def then_replaced(*given: Any, **more: Any) -> Rows:
        rows = read(*given, **more)
        service.model = found
        return rows

    monkeypatch.setattr(Bodies, "read", then_replaced)
    assert ask("POST", target, body, content_type=JSON) == before
    assert ask("POST", target, body, content_type=JSON) == after != before


def test_bodies_that_came_together_belong_to_one_model(clicks: Path, colours: Path) -> None:
    service = Service(clicks)
    ask, kind = Asked(service), BatchKind("/predict", JSON, "label")
    for path in (clicks, colours, clicks):
        service.model = load(path)
        expected = Asked(Service(path))("POST", "/predict?output=label", BOTH, content_type=JSON).body
        assert [one.body for one in ask.predicting.work([BOTH] * 2, ["", ""], kind)] == [expected] * 2


def test_a_body_is_limited_however_it_comes(ask: Asked, service: Learning) -> None:
    rows = RED + b" " * 10_000
    for body in (rows, [RED, b" " * 5_000, b" " * 5_000]):
        told = ask("POST", "/predict", body, content_type=JSON)
        assert (told.status, told.headers["connection"]) == (413, "close")
    packed = gzip.compress(rows)
    assert ask("POST", "/predict", packed, content_encoding="gzip", content_type=JSON).status == 413
    many = b"\n".join([RED] * 200)
    assert ask("POST", "/predict", many, content_type=JSON).status == 413
    assert ask("POST", "/label", b'{"id": 1, "label": 1}\n' * 101).status == 413
    # what was refused takes no room
    assert all(ask("POST", "/predict", RED, content_type=JSON).status == 200 for _ in range(9))


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_bodies_may_be_packed(ask: Asked, packing: str) -> None:
    packed = pa.compress(RED, packing, asbytes=True)
    told = ask("POST", "/predict", packed, content_encoding=packing, content_type=JSON)
    assert told.lines == ask("POST", "/predict", RED, content_type=JSON).lines
    damaged = ask("POST", "/predict", packed[:-3], content_encoding=packing, content_type=JSON)
    assert damaged.status == 400
    assert ask("POST", "/predict", b"no", content_encoding=packing, content_type=JSON).status == 400
    other = ask("POST", "/predict", RED, content_encoding="br")
    assert (other.status, other.headers["accept-encoding"]) == (415, "gzip, zstd")


def test_bodies_are_utf8_whatever_their_type_says(ask: Asked) -> None:
    for charset in ("utf-8", '"UTF-8"', "latin-1"):
        assert ask("POST", "/predict", RED, content_type=f"{JSON};a=b; Charset={charset}").status == 200
    told = ask(
        "POST", "/predict", '{"colour": "é"}'.encode("latin-1"), content_type=f"{JSON}; charset=latin-1"
    )
    assert (told.status, "expected UTF-8" in told.lines[0]["error"]) == (400, True)


def test_zstd_with_a_vast_window_is_named(ask: Asked, tmp_path: Path) -> None:
    text = RED + b"\n"
    frame = b"\x28\xb5\x2f\xfd\x00\xa8" + (len(text) << 3 | 1).to_bytes(3, "little") + text  # 2 GB
    (tmp_path / "rows.jsonl.zst").write_bytes(frame)
    told = ask("POST", "/predict", frame, content_encoding="zstd", content_type=JSON)
    said = "packed by zstd with a window of more than 128 MB: pack it again, with --long=27 at most"
    assert (told.status, told.json["error"]) == (400, f"the body: {said}")
    with pytest.raises(DataError, match=f"rows.jsonl.zst: {said}"):
        thresher.train(tmp_path / "rows.jsonl.zst", label="hour")


def test_a_client_that_leaves_is_not_answered(ask: Asked) -> None:
    assert ask("POST", "/predict", None, content_type=JSON).status == 0
    assert 'path="/predict",status="499"' in ask("GET", "/metrics").body.decode()


def test_a_fault_is_told_on_standard_error_only(
    ask: Asked, service: Learning, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(service, "margins", broken)
    told = ask("POST", "/predict", RED, content_type=JSON)
    assert told.status == 500
    assert "secret" not in told.body.decode()
    assert re.fullmatch(
        r"thresher: fault: ZeroDivisionError: secret detail \(\S+\)\n", capsys.readouterr().err
    )


def test_only_those_with_the_token(service: Learning) -> None:
    ask = Asked(service, token=True)
    told = ask("POST", "/predict", RED, content_type=JSON)
    assert (told.status, told.headers["www-authenticate"]) == (401, "Bearer")
    assert ask("GET", "/metrics", authorization="Bearer wrong").status == 401
    assert ask("GET", "/nothing").status == 401
    assert ask("GET", "/health/ready").status == 200
    assert ask("POST", "/predict", RED, content_type=JSON, authorization="Bearer secret").status == 200


def test_metrics_count_what_was_asked(ask: Asked) -> None:
    ask("POST", "/predict", RED + b"\n" + BLUE, content_type=JSON)
    ask("GET", "/a/path/of/a/scanner")
    page = ask("GET", "/metrics").body.decode()
    for line in (
        'thresher_requests_total{path="/predict",status="200"} 1.0',
        'thresher_requests_total{path="other",status="404"} 1.0',
        'thresher_request_seconds_count{path="/predict"} 1.0',
        *('thresher_rows_total{fate="predicted"} 2.0', "thresher_log_bytes 77.0"),
        *("thresher_sync_seconds_total 0.5", "thresher_ready 1.0", "thresher_requests_under_way 1.0"),
    ):
        assert line in page.splitlines(), line
    assert "_created" not in page


def test_what_is_loaded_before_the_first_client_is_not_counted(ask: Asked) -> None:
    ask.predicting.warm()
    page = ask("GET", "/metrics").body.decode()
    assert "thresher_rows_total{" not in page
    assert "\nthresher_columns_ignored_total 0.0\n" in page


def test_answers_end_with_a_line_end(ask: Asked) -> None:
    for method, path in (
        *(("GET", "/health/live"), ("GET", "/nowhere"), ("POST", "/predict"), ("POST", "/label")),
    ):
        assert ask(method, path, RED, content_type=JSON).body.endswith(b"}\n")


def test_the_document_has_every_path(ask: Asked) -> None:
    found = ask("GET", "/openapi.json").json
    assert found["openapi"].startswith("3.1")
    assert {*found["paths"]} == {*NAMES}
    told = json.dumps(found)
    for one in ENDPOINTS.values():
        operation = found["paths"][one.path][one.method.lower()]
        assert operation["summary"] == one.does
        assert {str(status) for status in one.gives} < operation["responses"].keys()
    assert '"$ref": "#/components/schemas/Refusal"' in told
    known = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
    assert {*re.findall(r'"\$ref": "([^"]*)"', told)} == known
    contents = [
        content
        for operation in (one for path in found["paths"].values() for one in path.values())
        for answer in operation["responses"].values()
        for content in answer.get("content", {}).values()
    ]
    assert all(one["schema"] for one in contents)
    refused = found["paths"]["/predict"]["post"]["responses"]["400"]["content"]
    assert refused.keys() == {JSON, "application/x-ndjson"}


def test_answers_have_the_schema_that_the_document_says(
    ask: Asked, service: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = {
        "learn": b'{"label": 1, "hour": 3}\n{"label": 7, "hour": 3}',
        "label": b'{"id": "a", "label": 1}',
    }
    for name, one in ENDPOINTS.items():
        _, media, kind = one.gives[200]
        if media == JSON:
            told = ask(one.method, one.path, bodies.get(name, b""), content_type=JSON)
            assert told.status == 200, told.body
            found = msgspec.json.decode(told.body, type=kind)
            assert msgspec.to_builtins(found) == told.json
            assert msgspec.json.encode(found, enc_hook=str) + b"\n" * told.body.endswith(b"\n") == told.body
    assert msgspec.json.decode(ask("GET", "/no").body, type=Refusal).error


def test_a_file_is_closed_though_its_client_has_left(ask: Asked, service: Learning, tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes(b"x" * (3 << 20))
    service.path, open_files = tmp_path / "a.model", Path("/proc/self/fd")
    before = len([*open_files.iterdir()]) if open_files.exists() else 0

    async def left() -> None:
        transport, connection = Transport(), HttpConnection(ask.site)
        connection.connection_made(transport)
        connection.data_received(b"GET /snapshot HTTP/1.1\r\nhost: a\r\n\r\n")
        connection.pause_writing()
        while not transport.written:
            await asyncio.sleep(0)
        transport.closed = True
        connection.connection_lost(None)
        await asyncio.gather(*ask.site.tasks)
        assert len(transport.written) < 2 << 20

    for _ in range(20):
        asyncio.run(left())
    assert not before or len([*open_files.iterdir()]) < before + 10


def test_answers_name_no_options(service: Learning) -> None:
    ask = Asked(service)
    for path, body, said in (
        ("/learn", b"hour,colour\n3,red\n", "no column 'label' of labels; the columns are: hour, colour"),
        ("/predict", b"hour,hour\n3,4\n", "two columns are called 'hour': rename one"),
        ("/predict?ids=key", b"hour,colour\n3,red\n", "no column is called 'key'"),
        ("/predict", b'hour,colour\n"3,red\n', "expected a quote that ends column 'hour' on its line"),
    ):
        text = ask("POST", path, body, content_type="text/csv").json["error"]
        assert said in text
        assert "--" not in text, text
        assert "=" not in text, text


@pytest.mark.parametrize("name", ["hour", "new", "label", "key"])
def test_columns_of_one_name_are_refused_in_arrow_too(ask: Asked, name: str) -> None:
    names, sink = ["hour", "colour", "label", "key", name, name], pa.BufferOutputStream()
    table = pa.table([[3], ["red"], [1], ["a"], [1], [1]], names)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    for path in ("/predict", "/predict?ids=key", "/learn"):
        told = ask("POST", path, sink.getvalue().to_pybytes(), content_type=ARROW)
        assert told.status == 400
        assert f"two columns are called '{name}': rename one" in told.json["error"]


def test_an_ensemble_whose_models_scale_differently_is_not_explained(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("label,size\n" + "".join(f"{k % 2},{k * k}\n" for k in range(60)))
    thresher.ensemble(tmp_path / "rows.csv", models=2, centre=True).save(tmp_path / "two.model")
    ask = Asked(Service(tmp_path / "two.model"))
    told = ask("POST", "/predict?output=explain", b'{"size": 3}', content_type=JSON)
    assert (told.status, told.json["error"]) == (400, "the models of this ensemble scale columns differently")
    by = thresher.ensemble(tmp_path / "rows.csv", models="by:size")
    by.save(tmp_path / "by.model")
    ask = Asked(Service(tmp_path / "by.model"))
    told = ask("POST", "/predict?output=explain", b'{"size": 3}', content_type=JSON)
    why = "each value of size has a model of its own"
    expected = f"{why}: ask a server of one of them, which thresher choose takes out"
    assert (told.status, told.json["error"]) == (400, expected)


def test_rows_that_a_server_is_not_to_learn_are_not_counted(clicks: Path) -> None:
    ask = Asked(Service(clicks))
    assert ask("POST", "/learn", RED, content_type=JSON).status == 404
    assert "thresher_rows_total{" not in ask("GET", "/metrics").body.decode()
