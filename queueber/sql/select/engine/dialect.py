"""DuckDB's SQL as sqlglot reads and writes it, where it would otherwise change what is meant."""

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as its docs say

_CHANGED = {"JAROWINKLER_SIMILARITY", "JARO_WINKLER_SIMILARITY"}
"""Functions that are written with other arguments than they were read with."""


class DuckDBAsWritten(DuckDB):
    """What is read is written again as it was."""

    class Parser(DuckDBParser):
        FUNCTIONS = {  # noqa: RUF012  as in the class above
            name: made for name, made in DuckDBParser.FUNCTIONS.items() if name not in _CHANGED
        }

        def _parse_type(
            self, parse_interval: bool = True, fallback_to_identifier: bool = False
        ) -> exp.Expr | None:
            """`TIMESTAMP '2026-11-19 08:30'::DATE` is a date: the first type is the text's."""
            at, first = self._index, self._curr
            if first and first.token_type in self.TYPE_TOKENS - {TokenType.INTERVAL}:
                kind = self._parse_types(check_func=True, allow_identifiers=False)
                text = self._parse_primary() if isinstance(kind, exp.DataType) else None
                if isinstance(text, exp.Literal):
                    return self._parse_column_ops(self.expression(exp.Cast(this=text, to=kind)))
                self._retreat(at)
            return super()._parse_type(parse_interval, fallback_to_identifier)

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """`json->>'a.b'` is the field `a.b`, not `b` in `a`; and DuckDB knows more paths."""
        return path
