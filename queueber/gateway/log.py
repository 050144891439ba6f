"""The log of the gateway: its lines say which process wrote them, as the server's stand beside."""

import structlog

log = structlog.get_logger("queueber.gateway", process="gateway")
