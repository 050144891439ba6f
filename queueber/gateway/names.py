"""The names that stand in paths: what each is, for OpenAPI. The server checks them."""

from queueber.limits import (
    BATCH_NAME_BYTES_MAX,
    GROUP_NAME_BYTES_MAX,
    ID_BYTES,
    KEY_BYTES_MAX,
    QUEUE_NAME_CHARS_MAX,
    READER_NAME_BYTES_MAX,
    SCHEDULE_NAME_CHARS_MAX,
    TOPIC_NAME_BYTES_MAX,
)

Schema = dict[str, object]

NAMES: dict[str, Schema] = {
    "queue": {
        "type": "string",
        "pattern": f"^[A-Za-z0-9._-]{{1,{QUEUE_NAME_CHARS_MAX}}}$",
        "description": "The name of a queue.",
        "examples": ["orders"],
    },
    "batch": {
        "type": "string",
        "minLength": 1,
        "maxLength": BATCH_NAME_BYTES_MAX,
        "description": "The name of a batch, percent-encoded.",
        "examples": ["import-17"],
    },
    "id": {
        "type": "string",
        "pattern": f"^[0-9a-fA-F]{{{2 * ID_BYTES}}}$",
        "description": "The id of an item.",
        "examples": ["0192f0c1a2b37c4d8e5f60718293a4b5"],
    },
    "key": {
        "type": "string",
        "minLength": 1,
        "maxLength": KEY_BYTES_MAX,
        "description": "The key of an item, percent-encoded.",
        "examples": ["order-17"],
    },
    "reader": {
        "type": "string",
        "minLength": 1,
        "maxLength": READER_NAME_BYTES_MAX,
        "description": "The name of a reader, percent-encoded.",
        "examples": ["export"],
    },
    "schedule": {
        "type": "string",
        "pattern": f"^[A-Za-z0-9._-]{{1,{SCHEDULE_NAME_CHARS_MAX}}}$",
        "description": "The name of a schedule.",
        "examples": ["nightly"],
    },
    "subscription": {
        "type": "string",
        "pattern": "^[A-Za-z0-9._-]{1,200}$",
        "description": "The id of a subscription, which its creator chooses.",
        "examples": ["billing"],
    },
    "topic": {
        "type": "string",
        "pattern": f"^[A-Za-z0-9._/-]{{1,{TOPIC_NAME_BYTES_MAX}}}$",
        "description": "The name of a topic, percent-encoded: `a/b` is `a%2Fb`. The results of "
        "a queue are the topic `queue/NAME/results`.",
        "examples": ["orders"],
    },
    "path": {
        "type": "string",
        "pattern": f"^[A-Za-z0-9._/-]{{1,{TOPIC_NAME_BYTES_MAX}}}$",
        "description": "The path of a stream, which is the name of its topic. Slashes are not "
        "percent-encoded.",
        "examples": ["chats/17"],
    },
    "group": {
        "type": "string",
        "minLength": 1,
        "maxLength": GROUP_NAME_BYTES_MAX,
        "description": "The name of a group, percent-encoded.",
        "examples": ["billing"],
    },
}
