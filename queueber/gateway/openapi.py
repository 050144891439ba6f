"""OpenAPI 3.1, made from the route table and its structs."""

import ast
import inspect
import textwrap
from functools import cache
from http import HTTPStatus
from typing import Any, cast

import msgspec
from starlette.responses import Response

from queueber.gateway import docs_page
from queueber.gateway.bodies import JSON_TYPE, RAW_TYPE
from queueber.gateway.calls import Call
from queueber.gateway.names import NAMES, Schema
from queueber.gateway.problems import PROBLEM_TYPE, STATUSES, problem_of
from queueber.gateway.routes import NoQuery, Route, RouteTable
from queueber.version import VERSION

_REF = "#/components/schemas/{name}"

_OF_HTTP = (400, 405, 406, 413, 414, 415, 431, 500, 503)
"""What any route may answer."""
_OF_SERVER = (401, 403, 429, 504)
"""What a route that asks the server may answer, too."""

_PROBLEM: Schema = {
    "type": "object",
    "description": "What went wrong (RFC 9457). Some have further numbers, by name.",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "enum": sorted(STATUSES)},
        "detail": {"type": "string"},
    },
    "additionalProperties": {"type": "integer"},
}

_PLAIN_ERROR: Schema = {
    "type": "object",
    "description": "What went wrong, as clients of KalamDB read it.",
    "required": ["error", "code"],
    "properties": {"error": {"type": "string"}, "code": {"type": "string"}},
    "additionalProperties": {"type": "integer"},
}

_BYTES: Schema = {"type": "string", "format": "binary"}

_INTRODUCTION = """\
Bytes are base64 in JSON; ids and leases are 32 hexadecimal digits; durations and times are
milliseconds. Names in paths are percent-encoded. Where a server is protected, requests carry
`Authorization: Bearer TOKEN` or `Basic`."""


@cache
def document(table: RouteTable) -> Schema:
    """The whole description."""
    shown = [route for route in table.routes if route.is_shown]
    named = [each for route in shown for each in (route.body, route.answer, route.error_answer)]
    structs = {each for each in named if each is not None}
    _, schemas = msgspec.json.schema_components(
        sorted(structs, key=lambda each: each.__qualname__), ref_template=_REF
    )
    _describe_fields(schemas, structs)
    paths: dict[str, dict[str, Schema]] = {}
    for route in shown:
        # OpenAPI has no names that take the rest of a path; theirs may have slashes.
        path = route.path.replace("*}", "}")
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Queueber",
            "version": VERSION,
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Problem": _PROBLEM, "PlainError": _PLAIN_ERROR},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _operation(route: Route) -> Schema:
    words = [each.strip("{*}") for each in route.path.split("/") if each]
    operation: Schema = {
        "operationId": "_".join([route.method.lower(), *words]).replace(".", "_"),
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _responses(route),
    }
    if text := _description(route):
        operation["description"] = text
    if route.body is not None:
        operation["requestBody"] = _request_body(route)
    elif route.takes_bytes:
        operation["requestBody"] = {"content": {"*/*": {"schema": _BYTES}}}
    # An unprotected server needs none.
    operation["security"] = [{}, {"token": []}, {"password": []}] if route.uses_client else []
    return operation


def _description(route: Route) -> str:
    lines = [route.description] if route.description else []
    if route.raw_headers is not None:
        named = [each.replace("_", "-").title() for each in route.raw_headers.__struct_fields__]
        lines.append(f"Headers of raw bytes: {', '.join(f'`Queueber-{each}`' for each in named)}.")
    return " ".join(lines)


def _path_parameters(route: Route) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": NAMES[name]}
        for name in route.names
    ]


def _query_parameters(route: Route) -> list[Schema]:
    schema = _schema_of(route.query)
    required = cast(list[str], schema.get("required", []))
    texts = field_texts(route.query)
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": found,
            **({"description": texts[name]} if name in texts else {}),
        }
        for name, found in cast(dict[str, Schema], schema.get("properties", {})).items()
    ]


def _schema_of(struct: type[msgspec.Struct]) -> Schema:
    _, found = msgspec.json.schema_components([struct], ref_template=_REF)
    return cast(Schema, found[struct.__name__])


def _request_body(route: Route) -> Schema:
    assert route.body is not None
    content: dict[str, Schema] = {JSON_TYPE: {"schema": _ref(route.body)}}
    if route.body_example is not None:
        content[JSON_TYPE]["example"] = route.body_example
    if route.raw_headers is not None:
        content[RAW_TYPE] = {"schema": _BYTES}
    needs_fields = any(field.required for field in msgspec.structs.fields(route.body))
    return {"required": needs_fields, "content": content}


def _ref(struct: type[msgspec.Struct]) -> Schema:
    return {"$ref": _REF.format(name=struct.__name__)}


def _responses(route: Route) -> Schema:
    found: dict[str, Schema] = {}
    for status, text in ({route.status: route.summary} | dict(route.other_statuses)).items():
        found[str(status)] = {"description": text, **_answer_content(route)}
    if route.is_raw_answer_possible:
        found["204"] = {"description": "There is none, and raw bytes were asked for."}
    statuses = {*_OF_HTTP, *(_OF_SERVER if route.uses_client else ())}
    statuses |= {problem_of(error("")).status for error in route.errors}
    if route.names:
        statuses.add(404)
    for status in sorted(statuses):
        codes = sorted(code for code, of_code in STATUSES.items() if of_code == status)
        phrase = HTTPStatus(status).phrase
        found[str(status)] = {
            "description": f"{phrase}: {', '.join(codes)}" if codes else phrase,
            "content": _error_content(route),
        }
    return cast(Schema, found)


def _error_content(route: Route) -> Schema:
    if route.error_answer is not None:
        return {JSON_TYPE: {"schema": _ref(route.error_answer)}}
    if route.error_body is not None:
        return {JSON_TYPE: {"schema": {"$ref": _REF.format(name="PlainError")}}}
    return {PROBLEM_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}}


def _answer_content(route: Route) -> Schema:
    if route.answer is None:
        return {} if route.answer_type == JSON_TYPE else {"content": {route.answer_type: {}}}
    content: dict[str, Schema] = {route.answer_type: {"schema": _ref(route.answer)}}
    if route.answer_example is not None:
        content[route.answer_type]["example"] = route.answer_example
    if route.is_raw_answer_possible:
        content[RAW_TYPE] = {"schema": _BYTES}
    return {"content": content}


# --- texts of fields ------------------------------------------------------------------------------


def field_texts(struct: type[msgspec.Struct]) -> dict[str, str]:
    """What stands below each field of a struct in its source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    found, name = {}, ""
    for node in cast(ast.ClassDef, body).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=str(name))):
                pass
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                found[name] = " ".join(text.split())
    return found


def _describe_fields(schemas: dict[str, Any], structs: set[type[msgspec.Struct]]) -> None:
    for struct in structs:
        for name, text in field_texts(struct).items():
            schema = schemas[struct.__name__]["properties"][name]
            schema.setdefault("description", text)


# --- routes ---------------------------------------------------------------------------------------


def _table(call: Call[NoQuery, None]) -> RouteTable:
    return cast(RouteTable, call.state["table"])


async def show_document(call: Call[NoQuery, None]) -> Response:
    return Response(_document_bytes(_table(call)), media_type=JSON_TYPE)


@cache
def _document_bytes(table: RouteTable) -> bytes:
    return msgspec.json.encode(document(table))


async def show_docs(call: Call[NoQuery, None]) -> Response:
    page, headers = docs_page.render(document(_table(call)))
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)


ROUTES = (
    Route(
        "GET", "/openapi.json", show_document, "This description", "description",
        uses_client=False, is_shown=False,
    ),
    Route(
        "GET", "/docs", show_docs, "This description, to be read", "description",
        answer_type="text/html", uses_client=False, is_shown=False,
    ),
)  # fmt: skip
