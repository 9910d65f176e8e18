"""Whatever the OpenAPI document allows, and much that it does not, is answered as it says."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from shortlist.server import responses
from shortlist.server.app import create_api
from shortlist.store import MemoryStore
from tests.server.serving import QUESTION, Served, served

pytestmark = pytest.mark.slow

DOCUMENT: dict[str, Any] = create_api(MemoryStore()).openapi()
CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance),
    *(response_headers_conformance, response_schema_conformance),
]
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS: dict[tuple[str, str], Any] = {
    (method.upper(), path): one["responses"]
    for path, some in DOCUMENT["paths"].items()
    for method, one in some.items()
}
TEXTS = {"/runs/{run}/export.csv", "/runs/{run}/events", "/runs/{run}/report.html"}
SHAPELESS = {*TEXTS, "/plan.json"}


def shape_of(replies: Any) -> type[responses.Reply]:
    """Return the one shape of an operation's answers where all is well."""
    schemas = [
        reply["content"]["application/json"]["schema"] for status, reply in replies.items() if status < "3"
    ]
    (name,) = {schema["$ref"].rpartition("/")[2] for schema in schemas}
    found: type[responses.Reply] = getattr(responses, name)
    return found


SHAPES = {one: shape_of(replies) for one, replies in OPERATIONS.items() if one[1] not in SHAPELESS}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a run under way and one that has ended."""
    with served(tmp_path_factory.mktemp("schema") / "runs.db") as found:
        found.begin("trial")
        found.begin("ended", QUESTION | {"epsilon": 5.0})
        while tickets := found.client.post("/runs/ended/ask", json={"worker": "a"}).json()["tickets"]:
            answers = [{"ticket": one["ticket"], "mean": float(one["arm"])} for one in tickets]
            found.client.post("/runs/ended/tell", json={"worker": "a", "answers": answers})
        assert found.client.get("/runs/ended.json").json()["is_done"]
        yield found


@SCHEMA.exclude(path="/runs/{run}/events").parametrize()
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
def test_answers_are_as_the_document_says(case: schemathesis.Case[Any], server: Served) -> None:
    if "run" in case.path_parameters:
        for run in (case.path_parameters["run"], "trial", "ended"):
            case.path_parameters["run"] = run
            case.call_and_validate(base_url=server.url, checks=CHECKS)
    else:
        case.call_and_validate(base_url=server.url, checks=CHECKS)


def test_the_document_says_what_is_answered() -> None:
    """Every answer has a shape of its own; errors have one."""
    assert len(SHAPES) == 20
    assert all(issubclass(shape, responses.Reply) for shape in SHAPES.values())
    for (_, path), replies in OPERATIONS.items():
        for status, reply in replies.items():
            is_text = path in TEXTS and status.startswith("2")
            assert (set(reply["content"]) == {"application/json"}) is not is_text
            if not status.startswith("2"):
                assert reply["content"]["application/json"]["schema"]["$ref"].endswith("/Refusal")
    refusals = {status for replies in OPERATIONS.values() for status in replies}
    assert {"400", "401", "403", "404", "408", "409", "413", "415", "421", "422", "429", "503"} <= refusals
    assert "version" not in DOCUMENT["info"] or DOCUMENT["info"]["version"] == "1", "not the program's"


def test_the_shapes_fit_what_is_answered(server: Served) -> None:
    for run in ("trial", "ended"):
        for (method, path), shape in SHAPES.items():
            if method == "GET":
                reply = server.client.get(path.replace("{run}", run))
                assert reply.status_code == 200
                shape.model_validate(reply.json(), strict=True)
