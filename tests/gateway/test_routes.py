"""Routes: names are single segments of the path, and what is not there is told as a problem."""

import pytest

from queueber.errors import WIRE_ERRORS, OutcomeUnknown, ResourceExhausted
from queueber.gateway.problems import STATUSES, Problem, problem_of
from queueber.gateway.routes import Route, RouteTable
from tests.support.http import GatewayProcess


async def nothing(_: object) -> None:
    return None


TABLE = RouteTable(
    [
        Route("GET", "/v1/things", nothing, "", ""),
        Route("GET", "/v1/things/{name}", nothing, "", ""),
        Route("PUT", "/v1/things/{name}", nothing, "", ""),
        Route("GET", "/v1/things/{name}/parts/{part}", nothing, "", ""),
        Route("GET", "/v1/things/special/parts", nothing, "", ""),
        Route("GET", "/v1/rest/{path*}", nothing, "", ""),
        Route("HEAD", "/v1/rest/{path*}", nothing, "its own", ""),
        Route("GET", "/v1/rest/word/{name}", nothing, "", ""),
    ]
)


@pytest.mark.parametrize(
    ("path", "found", "names"),
    [
        (b"/v1/things", "/v1/things", {}),
        (b"/v1/things/a", "/v1/things/{name}", {"name": "a"}),
        (b"/v1/things/a%2Fb", "/v1/things/{name}", {"name": "a/b"}),
        (b"/v1/things/%C3%A4+%20", "/v1/things/{name}", {"name": "ä+ "}),
        (b"/v1/things/special", "/v1/things/{name}", {"name": "special"}),
        (b"/v1/rest/a", "/v1/rest/{path*}", {"path": "a"}),
        (b"/v1/rest/a/b%2Fc/", "/v1/rest/{path*}", {"path": "a/b/c/"}),
        (b"/v1/rest/", "/v1/rest/{path*}", {"path": ""}),
        (b"/v1/rest/word/a", "/v1/rest/word/{name}", {"name": "a"}),
        (b"/v1/rest/word/a/b", "/v1/rest/{path*}", {"path": "word/a/b"}),
        (b"/v1/rest/word/", "/v1/rest/{path*}", {"path": "word/"}),
        (b"/v1/things/special/parts", "/v1/things/special/parts", {}),
        (
            b"/v1/things/special/parts/x",
            "/v1/things/{name}/parts/{part}",
            {"name": "special", "part": "x"},
        ),
    ],
)
def test_a_path_is_split_before_it_is_decoded(
    path: bytes, found: str, names: dict[str, str]
) -> None:
    route, decoded = TABLE.find("GET", path)

    assert (route.path, decoded) == (found, names)


def test_head_is_get_unless_it_has_a_route_of_its_own() -> None:
    assert TABLE.find("HEAD", b"/v1/things")[0].method == "GET"
    assert TABLE.find("HEAD", b"/v1/rest/a")[0].summary == "its own"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", b"/v1/rest", 404),
        ("GET", b"/", 404),
        ("GET", b"/v1/things/", 404),
        ("GET", b"/v1/things//parts/x", 404),
        ("GET", b"/v1/things/a/b", 404),
        ("POST", b"/v1/things/a", 405),
        ("GET", b"/v1/things/%ff", 400),
    ],
)
def test_what_is_not_there_is_refused(method: str, path: bytes, status: int) -> None:
    with pytest.raises(Problem) as refused:
        TABLE.find(method, path)

    assert refused.value.status == status
    if status == 405:
        assert refused.value.headers == {"allow": "GET, PUT"}


def test_every_code_has_a_status() -> None:
    assert set(STATUSES) == {*WIRE_ERRORS, OutcomeUnknown.code}


def test_numbers_of_an_error_stand_beside_its_sentence() -> None:
    problem = problem_of(WIRE_ERRORS["OUT_OF_RANGE"]("it begins later", first=7, next=9))

    assert problem.status == 416
    assert problem.numbers == {"first": 7, "next": 9}
    assert problem.detail == "it begins later"


@pytest.mark.parametrize(
    ("text", "status"),
    [("contents: an item has 9 bytes; the limit is 8", 413), ("queue 'a' holds 3 items", 429)],
)
def test_a_request_that_is_too_large_is_told_from_a_queue_that_is_full(
    text: str, status: int
) -> None:
    assert problem_of(ResourceExhausted(text)).status == status


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nothing", {}, 404),
        ("TRACE", "/v1/queues", {}, 405),
        ("OPTIONS", "/v1/queues", {}, 405),
        ("GET", "/v1/queues?limit=0", {}, 400),
        ("GET", "/v1/queues?limt=1", {}, 400),
        ("GET", "/v1/queues?limit=1&limit=2", {}, 400),
        ("GET", "/v1/queues", {"Accept": "text/html"}, 406),
        ("GET", "/v1/queues", {"Origin": "http://elsewhere.example"}, 403),
        ("POST", "/v1/queues/q/pause", {"Content-Length": "x"}, 400),
    ],
)
def test_what_http_refuses_is_a_problem(
    gateway: GatewayProcess, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    refused = gateway.ask(method, path, headers=headers)

    assert refused.status == status
    assert set(refused.json) == {"type", "title", "status", "code", "detail"}
    assert refused.json["status"] == status
    assert refused.headers["content-type"] == "application/problem+json"


def test_forms_are_refused_with_what_is_taken(gateway: GatewayProcess) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    refused = gateway.ask("POST", "/v1/queues/q/items", raw=b"a=b", headers=form)

    assert refused.status == 415
    assert "send application/json or application/octet-stream" in refused.json["detail"]


def test_head_is_get_without_the_body(gateway: GatewayProcess) -> None:
    answered = gateway.ask("HEAD", "/healthz")

    assert (answered.status, answered.body) == (200, b"")
    assert answered.headers["content-length"] == "15"


def test_a_page_of_the_gateway_itself_may_use_it(gateway: GatewayProcess) -> None:
    answered = gateway.ask("GET", "/healthz", headers={"Origin": f"http://{gateway.address}"})

    assert answered.status == 200
