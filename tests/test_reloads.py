"""What a server reads again on SIGHUP."""

from structlog.testing import capture_logs

from queueber.errors import InvalidArgument
from queueber.reloads import Reloads


def test_everything_is_reloaded_and_what_is_wrong_is_told() -> None:
    reloads, done = Reloads(), list[str]()

    def fail() -> None:
        raise InvalidArgument("tokens-file: line 3 is no token")

    reloads.add("certificates", lambda: done.append("certificates"))
    reloads.add("tokens", fail)
    reloads.add("keys", lambda: done.append("keys"))

    with capture_logs() as logs:
        reloads.run()

    assert done == ["certificates", "keys"]
    assert logs == [
        {
            "event": "reload_failed",
            "what": "tokens",
            "reason": "tokens-file: line 3 is no token",
            "log_level": "error",
        },
        {"event": "reloaded", "what": ["certificates", "keys"], "log_level": "info"},
    ]
