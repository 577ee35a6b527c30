"""What a page's address asks for, and the addresses of other pages: a link is the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote, urlencode

from proctor.core import InputError, one_of
from proctor.results import SORTS, AnswerFilter, AnswerIndex, RunColumn

RESERVED = ("system", "condition", "result", "q", "sort", "after", "at", "format", "part", "beside", "item", "a", "b", "cell", "tab", "fresh", "differ")  # fmt: skip
_FACET = "facet."
_MOST_CHARACTERS = 500
FORMATS = ("json", "csv")

ITEM_SORTS: Mapping[str, str] = {"hardest": "fewest right", "easiest": "most right", "split": "systems differ most"}
"""The orders of items."""


@dataclass(frozen=True)
class Query:
    """What an address asks for: which answers, in which order, after which row, beside which run; `a` and `b` are the runs
    to compare and `cell` what of them."""

    wanted: AnswerFilter = field(default_factory=AnswerFilter)
    sort: str = "item"
    after: str = ""
    beside: str = ""
    a: str = ""
    b: str = ""
    cell: str = ""

    def pairs(self) -> list[tuple[str, str]]:
        """As names and values of an address; what is default is left out."""
        found = [("system", one) for one in self.wanted.systems]
        found += [("condition", one) for one in self.wanted.conditions]
        found += [("result", one) for one in self.wanted.results]
        found += [(facet_name(name), value) for name, value in self.wanted.facets]
        single = (
            ("q", self.wanted.text),
            ("item", self.wanted.item),
            ("differ", self.wanted.differ),
            ("beside", self.beside),
            ("a", self.a),
            ("b", self.b),
        )
        found += [(name, value) for name, value in (*single, ("cell", self.cell), ("after", self.after)) if value]
        return [*found, *([("sort", self.sort)] if self.sort != "item" else [])]

    def text(self, *more: tuple[str, str]) -> str:
        """As the end of an address, with its question mark; empty without anything."""
        pairs = [*self.pairs(), *more]
        return f"?{urlencode(pairs)}" if pairs else ""

    def but(self, **changes: object) -> Query:
        """With other values; `after` starts from the first row unless it is given."""
        return replace(self, **{"after": "", **changes})  # type: ignore[arg-type]

    def narrowed(self, **changes: object) -> Query:
        """With other values of the filter."""
        return self.but(wanted=replace(self.wanted, **changes))  # type: ignore[arg-type]


def facet_name(name: str) -> str:
    """The name of a facet in an address: its own, unless pages use that for something else.

    >>> facet_name("category"), facet_name("system")
    ('category', 'facet.system')
    """
    return f"{_FACET}{name}" if name in RESERVED or name.startswith(_FACET) else name


def read_query(pairs: Sequence[tuple[str, str]], index: AnswerIndex) -> Query:
    """An address's names and values. Empty values restrict nothing. Raises `InputError` for a name that is neither one of
    a page nor a facet, for an unknown system, condition or order, and for a text of more than 500 characters."""
    known = {facet_name(name): name for name in index.facets}
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if len(value) > _MOST_CHARACTERS:
            raise InputError(name[:40], found=f"{len(value)} characters", expected=f"at most {_MOST_CHARACTERS}")
        if name not in RESERVED and name not in known:
            expected = one_of(["system", "condition", "result", "q", *known], name)
            raise InputError("filter", found=repr(name[:80]), expected=expected)
        if value:
            given.setdefault(name, []).append(value)
    for what, there in (("system", index.systems), ("condition", index.conditions)):
        for name in given.get(what, ()):
            if name not in there:
                raise InputError(what, found=repr(name), expected=one_of(there, name) if there else "a run")
    single = {name: values[-1] for name, values in given.items()}
    sort = single.get("sort", "item")
    if sort not in SORTS and sort not in ITEM_SORTS:
        raise InputError("sort", found=repr(sort), expected=one_of([*SORTS, *ITEM_SORTS], sort))
    wanted = AnswerFilter(
        tuple(given.get("system", ())),
        tuple(given.get("condition", ())),
        tuple(given.get("result", ())),
        tuple((known[name], value) for name, values in given.items() if name in known for value in values),
        single.get("q", "").strip(),
        single.get("item", ""),
        single.get("differ", ""),
    )
    return Query(wanted, sort, **{name: single.get(name, "") for name in ("after", "beside", "a", "b", "cell")})


def column_name(column: RunColumn) -> str:
    """A run's repetition in an address: SYSTEM/CONDITION, or SYSTEM/CONDITION/K."""
    name = f"{column.run.system}/{column.run.condition}"
    return f"{name}/{column.repetition}" if column.repetition else name


def column_of(index: AnswerIndex, name: str) -> int:
    """The column of such a name. Raises `InputError` for an unknown one."""
    names = [column_name(column) for column in index.columns]
    if name not in names:
        raise InputError("run", found=repr(name), expected=one_of(names, name) if names else "a run")
    return names.index(name)


def path_of(*segments: object) -> str:
    """An address of these segments, each escaped.

    >>> path_of("b", "my bench", "answers", "a/b")
    '/b/my%20bench/answers/a%2Fb'
    """
    return "/" + "/".join(quote(str(one), safe="") for one in segments)


def segments_of(raw: bytes) -> list[str]:
    """The segments of an address as it was sent, each unescaped: an item's id may contain a slash.

    >>> segments_of(b"/b/my%20bench/answers/a%2Fb")
    ['b', 'my bench', 'answers', 'a/b']
    """
    path = raw.partition(b"?")[0].decode("ascii", "replace")
    return [unquote(one, errors="replace") for one in path.strip("/").split("/")]


def answer_path(item: str, column: RunColumn) -> str:
    """The address of one answer."""
    run = column.run
    return path_of("b", run.benchmark, "answers", item, run.system, run.condition, column.repetition)
