"""Commands of the prompt that are no statements: `\\q`, `\\d`, `help`."""

from dataclasses import dataclass

from queueber.sql.printer import name

STATEMENTS = {
    "CREATE TOPIC": "CREATE TOPIC [IF NOT EXISTS] name [PARTITIONS n] "
    "[WITH (setting = value, ...)]",
    "DROP TOPIC": "DROP TOPIC [IF EXISTS] name",
    "CLEAR TOPIC": "CLEAR TOPIC name",
    "ALTER TOPIC": "ALTER TOPIC name SET (setting = value, ...)\n"
    "ALTER TOPIC name SET RETENTION WITH (retention_seconds = n, retention_max_bytes = n)\n"
    "ALTER TOPIC name CLEAR RETENTION\n"
    "ALTER TOPIC name ADD SOURCE queue ON INSERT|UPDATE|DELETE [WHERE condition]\n"
    "    [PARTITION BY (field, ...)] [WITH (payload = 'key'|'full'|'diff')]\n"
    "ALTER TOPIC name DROP SOURCE queue [ON INSERT|UPDATE|DELETE]",
    "CONSUME": "CONSUME FROM name [GROUP 'group'] [PARTITION n] [FROM LATEST|EARLIEST|OFFSET n] "
    "[LIMIT n]",
    "ACK": "ACK name GROUP 'group' [PARTITION n] UPTO OFFSET n",
    "RESET CONSUMER GROUP": "RESET CONSUMER GROUP 'group' ON name [PARTITION n] "
    "TO LATEST|EARLIEST|OFFSET n",
    "DROP CONSUMER GROUP": "DROP CONSUMER GROUP [IF EXISTS] 'group' ON name",
    "SHOW": "SHOW TOPICS|QUEUES|TABLES [LIKE 'pattern']\nSHOW SOURCES [ON name]\n"
    "SHOW GROUPS ON name",
    "DESCRIBE": "DESCRIBE [TOPIC|QUEUE|TABLE] name",
    "SELECT": "SELECT ... FROM system.topics, topic('name'), ...: what DuckDB reads",
}
"""Statements, and how each is written."""

_COMMANDS = (
    ("\\d", "list topics and queues"),
    ("\\d NAME", "describe a topic, a queue or a system table"),
    ("\\dt", "list system tables"),
    ("help, help STATEMENT", "this, or how a statement is written"),
    ("\\q, exit, Ctrl-D", "end"),
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What to do: show a text, run statements, or end."""

    shown: str = ""
    sql: str = ""
    ends: bool = False


def is_meta(text: str) -> bool:
    word = text.split(maxsplit=1)[0].rstrip(";").lower()
    return text.startswith("\\") or word in ("help", "quit", "exit")


def meaning_of(text: str) -> Meaning:
    word, _, rest = text.rstrip("; \n").partition(" ")
    rest = rest.strip()
    match word.lower():
        case "\\q" | "quit" | "exit":
            return Meaning(ends=True)
        case "\\d" if rest:
            return Meaning(sql=f"DESCRIBE {name(rest)}")
        case "\\d":
            return Meaning(sql="SHOW TOPICS; SHOW QUEUES")
        case "\\dt":
            return Meaning(sql="SHOW TABLES")
        case "help" | "\\?" | "\\h":
            return Meaning(shown=_help(rest))
        case _:
            return Meaning(shown=f"there is no command {word}; help lists them")


def _help(of: str) -> str:
    wanted = " ".join(of.upper().split())
    found = [text for each, text in STATEMENTS.items() if wanted and each.startswith(wanted)]
    if found:
        return "\n".join(found)
    lines = ["Statements end with a semicolon, and may have several lines:", ""]
    lines += [f"  {line}" for text in STATEMENTS.values() for line in text.splitlines()]
    width = max(len(command) for command, _ in _COMMANDS)
    lines += ["", *(f"  {command:{width}}  {what}" for command, what in _COMMANDS)]
    return "\n".join(lines)
