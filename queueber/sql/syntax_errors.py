"""Errors of the parser in words: where it is, what stands there, what could."""

from collections.abc import Iterable

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from queueber.sql.errors import InvalidSql, at

_WORDS = {
    "NAME": "a name",
    "QUOTED": "a name",
    "BACKTICKED": "a name",
    "WORD": "a name",
    "STRING": "a text",
    "ESCAPED": "a text",
    "DOLLARS": "a text",
    "NUMBER": "a number",
    "PARAM": "a parameter",
    "RAW": "a condition",
    "LPAR": "(",
    "RPAR": ")",
    "_SEMICOLON": ";",
    "_COMMA": ",",
    "_EQUALS": "=",
    "_DOT": ".",
    "$END": "the end",
}
_SHOWN_MAX = 40


def explained(text: str, error: UnexpectedInput) -> InvalidSql:
    """What the parser raised, as a sentence for whoever wrote the text."""
    match error:
        case UnexpectedToken(token=Token(type="$END")):
            # The parser tells where the last token begins.
            line = text.count("\n") + 1
            column = len(text) - (text.rfind("\n") + 1) + 1
            return at(line, column, f"the text ends here; {_expected(error.expected)}")
        case UnexpectedToken(token=token):
            expected = _expected(error.expected)
            return at(error.line, error.column, f"{_shown(token)} does not go here; {expected}")
        case UnexpectedCharacters():
            rest = text[error.pos_in_stream :]
            if rest[:1] in ("'", '"', "`") or rest.startswith("/*"):
                mark = "/*" if rest.startswith("/*") else rest[0]
                return at(error.line, error.column, f"what begins with {mark} has no end")
            word = rest.split(maxsplit=1)[0] if rest.split() else rest
            expected = _expected(error.allowed or ())
            return at(error.line, error.column, f"{_shown(word)} does not go here; {expected}")
    return at(1, 1, "this cannot be read")


def _expected(terminals: Iterable[str]) -> str:
    listed = sorted(
        {_WORDS.get(each, each.lstrip("_")) for each in terminals} - {"COMMENT", "SPACE"}
    )
    words = [each for each in listed if each.isupper()]
    others = [each for each in listed if not each.isupper()]
    return f"expected {' or '.join([*words, *others])}" if listed else "nothing can follow"


def _shown(text: str) -> str:
    shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
    return repr(str(shown))
