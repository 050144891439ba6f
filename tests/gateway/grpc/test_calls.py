"""What a call ends with that failed, and what the log says of it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from queueber import errors
from queueber.gateway.grpc.calls import failed_with
from queueber.gateway.grpc.statuses import OUR_FAULT, Status

PATH = "/sluice.v1.Sluice/Publish"


@pytest.mark.parametrize(
    "ended", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1), GeneratorExit()]
)
def test_a_call_that_ends_with_its_process_or_its_caller_is_no_failed_request(
    ended: BaseException,
) -> None:
    with capture_logs() as logged:
        assert failed_with(ended, PATH) == (Status.CANCELLED, "")

    assert logged == []


def test_a_fault_of_ours_is_logged_and_an_error_of_the_server_is_told() -> None:
    fault = ValueError("a bug")
    with capture_logs() as logged:
        assert failed_with(fault, PATH) == (Status.INTERNAL, OUR_FAULT)
        status, text = failed_with(errors.NotFound("no such topic"), PATH)

    assert (status, text) == (Status.NOT_FOUND, "no such topic")
    [line] = logged
    assert (line["event"], line["path"], line["exc_info"]) == ("request_failed", PATH, fault)
