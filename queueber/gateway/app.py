"""The gateway as an ASGI application: finds the route of a request, and sends its answer."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from queueber.errors import QueueberError
from queueber.gateway import (
    dashboard,
    health,
    histories,
    kalam,
    metrics,
    openapi,
    queues,
    server_routes,
    sql,
    streams,
    topics,
)
from queueber.gateway.bodies import (
    JSON_TYPE,
    RAW_TYPE,
    HungUp,
    decode_body,
    decode_headers,
    decode_query,
    media_type,
    read_body,
)
from queueber.gateway.bounds import Bounds
from queueber.gateway.calls import Call
from queueber.gateway.clients import ClientPool
from queueber.gateway.log import log
from queueber.gateway.origins import caller_of, check_origin, page_headers
from queueber.gateway.problems import PROBLEM_TYPE, Problem, invalid, of_http, problem_of
from queueber.gateway.routes import Answer, PlainAnswer, Route, RouteTable
from queueber.gateway.sending import Piece, Sending, check_present, encode_pieces
from queueber.gateway.settings import GatewaySettings
from queueber.gateway.streams import subscriptions

ROOMS = (
    health, metrics, server_routes, queues, topics, streams, subscriptions, kalam, sql, openapi,
    histories, dashboard,
)  # fmt: skip
"""Modules with `ROUTES`. A new room is registered here."""

_EVERY_ANSWER = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)

HUNG_UP = 499
"""The status of a request whose caller did not wait for the answer, in metrics."""
_OUR_FAULT = "the gateway failed; its log says why"

Observer = Callable[[Route | None, str, int, float], None]
"""Told of every answer: the route if there is one, the method, the status, the seconds."""


class Gateway:
    """One process of the gateway. `make_app` makes one."""

    def __init__(self, settings: GatewaySettings, table: RouteTable) -> None:
        self.settings = settings
        self.table = table
        self.pool = ClientPool(settings)
        self.bounds = Bounds(
            requests_max=settings.requests_max,
            waits_max=settings.waits_max,
            bodies_bytes_max=settings.bodies_bytes_max,
            answers_bytes_max=settings.answers_bytes_max,
        )
        self.measures = measures = metrics.GatewayMeasures(self.bounds, self.pool)
        self.observers: list[Observer] = [measures.observe]
        self.state: dict[str, object] = {
            "pool": self.pool,
            "table": table,
            metrics.STATE: measures,
        }
        self.subscriptions = subscriptions.join(self.state, settings, self.pool)
        self.holds_clients: asyncio.Future[None] | None = None
        """Done when another door does not need the clients any more."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._respond(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        sweeping = asyncio.ensure_future(self.pool.run())
        watching = asyncio.ensure_future(self.subscriptions.run())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        sweeping.cancel()
        watching.cancel()
        if self.holds_clients is not None:
            await self.holds_clients
        await self.pool.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    # --- a request --------------------------------------------------------------------------------

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        begun, route, sending = loop.time(), None, Sending(scope, send)
        try:
            headers = dict(scope["headers"])
            route, names = self.table.find(scope["method"], scope["raw_path"])
            self._check_page(route, headers, sending)
            check_present(scope)
            with sending.counted(self.bounds.requests):
                await self._handle(route, names, headers, scope, receive, sending)
        except HungUp:
            sending.status = HUNG_UP
        except Problem as problem:
            await _send_problem(sending, problem, route)
        except QueueberError as error:
            await _send_problem(sending, problem_of(error), route)
        except Exception as error:  # noqa: BLE001  one request fails, and the log says why
            log.error("request_failed", path=scope["path"], exc_info=error)
            await _send_problem(sending, Problem(500, "INTERNAL", _OUR_FAULT), route)
        for observe in self.observers:
            observe(route, scope["method"], sending.status, loop.time() - begun)

    def _check_page(self, route: Route, headers: Mapping[bytes, bytes], sending: Sending) -> None:
        allowed = self.settings.allowed_origins if route.is_for_pages else ()
        if route.is_for_pages:
            sending.added = page_headers(headers, allowed)
        if route.method != "OPTIONS":  # the question whether a page may ask does nothing itself
            check_origin(headers, allowed)

    async def _handle(
        self,
        route: Route,
        names: Mapping[str, str],
        headers: Mapping[bytes, bytes],
        scope: Scope,
        receive: Receive,
        send: Sending,
    ) -> None:
        if not route.is_plain:
            _check_accept(headers, route)
        body = await read_body(receive, headers, self.bounds, self.settings.body_bytes_max)
        kind, raw, query, decoded = media_type(headers), None, None, None
        if route.is_plain:
            if body and not route.takes_bytes:
                raise invalid("body: this request has none")
            raw = body
        elif route.raw_headers is not None and kind == RAW_TYPE:
            decoded, raw = decode_headers(route.raw_headers, headers), body
        else:
            decoded = decode_body(route, kind, body)
        size = len(body)
        del body  # spaces make a small request long, and a poll may wait for minutes
        if not route.is_plain:
            query = decode_query(route, scope["query_string"])
        call: Call[object, object] = Call(
            scope, receive, self.settings, self.bounds, headers, names, query, decoded, raw
        )
        call.state = self.state
        with call.counting(size):
            await self._answer(route, call, send)

    async def _answer(self, route: Route, call: Call[object, object], send: Sending) -> None:
        if not route.uses_client:
            await _send_answer(call, send, route, await route.handle(call))
            return
        credential = caller_of(call.headers, self.settings)
        async with self.pool.client_for(credential) as call.client_or_none:
            # Streams are sent while they use the client.
            await _send_answer(call, send, route, await route.handle(call))


def make_app(settings: GatewaySettings) -> Gateway:
    """The application with the routes of all rooms."""
    return Gateway(settings, RouteTable([route for room in ROOMS for route in room.ROUTES]))


def _check_accept(headers: Mapping[bytes, bytes], route: Route) -> None:
    given = headers.get(b"accept", b"")
    if not given or b"*/*" in given or route.answer is None:
        return
    main = route.answer_type.partition("/")[0]
    wanted = {
        each.partition(b";")[0].strip().lower().decode("latin-1") for each in given.split(b",")
    }
    possible = {route.answer_type, f"{main}/*", PROBLEM_TYPE}
    if not wanted & possible and not (route.is_raw_answer_possible and RAW_TYPE in wanted):
        raise of_http(406, f"accept: the answer is {route.answer_type}, which is not accepted")


async def _send_answer(
    call: Call[object, object],
    send: Sending,
    route: Route,
    answer: msgspec.Struct | Answer | PlainAnswer | Response | None,
) -> None:
    status, headers = route.status, dict[str, str]()
    match answer:
        case Response():
            for name, text in _EVERY_ANSWER:
                answer.headers.setdefault(name.decode(), text.decode())
            await answer(call.scope, call.receive, send)
            return
        case PlainAnswer():
            await send(
                {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
            )
            await send({"type": "http.response.body", "body": answer.body})
            return
        case Answer():
            status, headers, answer = answer.status, dict(answer.headers), answer.value
    if answer is None:
        await _send(send, status, None, [], headers)
        return
    pieces = await encode_pieces(answer)
    del answer
    call.end_turn()
    await _send(send, status, JSON_TYPE, pieces, headers)


async def _send_problem(send: Sending, problem: Problem, route: Route | None) -> None:
    if send.status:
        # The caller sees that the answer was cut short: uvicorn closes the connection.
        raise ConnectionAbortedError(problem.detail)
    if route is not None and route.error_body is not None:
        status, body = route.error_body(problem)
        await _send(send, status, JSON_TYPE, [body], problem.headers)
        return
    await _send(send, problem.status, PROBLEM_TYPE, [problem.body()], problem.headers)


async def _send(
    send: Sending,
    status: int,
    kind: str | None,
    pieces: list[Piece],
    headers: Mapping[str, str],
) -> None:
    listed = [each for each in _EVERY_ANSWER if each[0].decode() not in headers]
    listed += [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    if kind is not None:
        listed.append((b"content-type", kind.encode()))
        listed.append((b"content-length", str(sum(map(len, pieces))).encode()))
    await send({"type": "http.response.start", "status": status, "headers": listed})
    if len(pieces) > 1:
        await send.send_pieces(pieces)
    else:
        await send({"type": "http.response.body", "body": pieces[0] if pieces else b""})
