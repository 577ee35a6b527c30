"""Tables as LaTeX, with booktabs."""

from __future__ import annotations

from proctor.core import Table, clean

_SIGNS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
    "\u202f": r"\,",
    "\u00a0": "~",
    "\n": " ",
}


def latex(table: Table) -> str:
    """A table for a paper: the same texts as in the terminal, numbers aligned to the right. Texts are escaped, since
    names of systems may come from outside; one that begins with a bracket or an asterisk is no argument of the line
    break before it.

    >>> from proctor.core import columns
    >>> print(latex(Table("Scores.", columns("System", ">Score"), (("a_b", "50.0 %"),), title="Scores")), end="")
    \\begin{table}
    \\caption{Scores}
    \\begin{tabular}{lr}
    \\toprule
    System & Score \\\\
    \\midrule
    a\\_b & 50.0 \\% \\\\
    \\bottomrule
    \\end{tabular}
    \\end{table}
    """
    kept = [index for index, column in enumerate(table.columns) if not column.drawn]
    lines = [
        r"\begin{table}",
        rf"\caption{{{_escaped(table.title or table.caption)}}}",
        rf"\begin{{tabular}}{{{''.join('r' if table.columns[column].numeric else 'l' for column in kept)}}}",
        r"\toprule",
        _line([table.columns[index].label for index in kept]),
        r"\midrule",
        *(_line([row[index] for index in kept]) for row in table.texts),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return " & ".join(map(_escaped, cells)) + r" \\"


def _escaped(text: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in clean(text))
