"""How queries are laid out: a branch of a CASE per line, sums and lists in lines that can be read."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar

# Longest line of a CASE or a sum, and of a list.
_WIDTH = 100
_WIDE = 280


class _Lines:
    """What differs from sqlglot's layout, for any of its generators."""

    def case_sql(self: Any, expression: exp.Case) -> str:
        """Write each branch on a line of its own, if they do not fit one."""
        this, default = self.sql(expression, "this"), self.sql(expression, "default")
        head = f"CASE {this}" if this else "CASE"
        branches = [f"WHEN {self.sql(e, 'this')} THEN {self.sql(e, 'true')}" for e in expression.args["ifs"]]
        branches += [f"ELSE {default}"] if default else []
        if sum(map(len, branches)) > _WIDTH:
            return self.indent("\n".join([head, *branches, "END"]), skip_first=True, skip_last=True)  # type: ignore[no-any-return]
        return " ".join([head, *branches, "END"])

    def paren_sql(self: Any, expression: exp.Paren) -> str:
        """Write short contents beside their parentheses."""
        inside = self.sql(expression, "this")
        if "\n" in inside:
            return f"(\n{self.indent(inside)}\n)"
        return f"({inside})"

    def add_sql(self: Any, expression: exp.Add) -> str:
        """Write a long sum in lines of as many terms as they hold."""
        terms: list[str] = []
        tree: Any = expression
        while isinstance(tree, exp.Add):
            terms.append(self.sql(tree, "expression"))
            tree = tree.this
        lines = [self.sql(tree)]
        for term in reversed(terms):
            if "\n" not in lines[-1] and len(lines[-1]) + len(term) <= _WIDTH:
                lines[-1] += f" + {term}"
            else:
                lines.append(f"+ {term}")
        return "\n".join(lines)

    def cast_sql(self: Any, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        """Write a number that PostgreSQL reads from a text as such, and anything else as sqlglot does."""
        this, to = expression.this, expression.args["to"]
        if self.dialect.__class__.__name__ == "Postgres" and this.is_string and to.is_type("double"):
            return f"FLOAT8 {self.sql(this)}"
        return super().cast_sql(expression, safe_prefix)  # type: ignore[misc,no-any-return]


@cache
def _generator_class(base: type) -> Any:
    return type(f"Lines{base.__name__}", (_Lines, base), {})


def generator_of(grammar: Grammar) -> Any:
    """Return the generator of a dialect, with this layout."""
    return _generator_class(grammar.generator_class)(
        dialect=grammar, pretty=True, max_text_width=_WIDE, identify=True, comments=False
    )
