"""What a log shows of an error."""

import io

import pytest
import structlog

from queueber.logs import configure_logs

PLANTED = "planted-in-a-local-variable"


def fail() -> None:
    token = PLANTED
    raise ValueError(f"told of {len(token)} letters")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_an_error_is_logged_without_the_variables_of_its_functions(log_format: str) -> None:
    """With the package rich, which others bring along, structlog would show them."""
    stream, before = io.StringIO(), structlog.get_config()
    try:
        configure_logs("info", log_format, stream)
        try:
            fail()
        except ValueError as error:
            structlog.get_logger().error("request_failed", exc_info=error)
    finally:
        structlog.configure(**before)

    assert "ValueError: told of 27 letters" in stream.getvalue()
    assert PLANTED not in stream.getvalue()
