"""Any statement, over HTTP: the gateway answers with one of its codes, and goes on."""

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.sql.test_statements import ask
from tests.sql.strategies import PARAMS, almost_statements
from tests.support.http import GatewayProcess

_EXAMPLES = int(os.environ.get("QUEUEBER_TEST_EXAMPLES", "80"))
_CODES = {
    "INVALID_SQL",
    "SQL_EXECUTION_ERROR",
    "TABLE_NOT_FOUND",
    "EMPTY_SQL",
    "INVALID_PARAMETER",
    "PARAMS_WITH_BATCH",
}


@given(text=almost_statements() | st.text(), params=st.just([]) | PARAMS)
@settings(
    deadline=None,
    max_examples=_EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_text_is_answered(gateway: GatewayProcess, text: str, params: list[object]) -> None:
    answer = ask(gateway, text.encode(errors="replace").decode(), *params)

    assert answer.status < 500, answer.body
    told = answer.json
    assert told["status"] == ("success" if answer.status == 200 else "error")
    if answer.status != 200:
        assert told["error"]["code"] in _CODES
        assert len(told["error"]["message"]) < 2000
        assert "Traceback" not in told["error"]["message"]


def test_nothing_was_logged_as_a_failure(gateway: GatewayProcess) -> None:
    """The gateway of the test before: what fails in it is logged with a trace."""
    assert ask(gateway, "SHOW TABLES").status == 200
    assert "request_failed" not in gateway.log_file.read_text()
