"""Every pattern that reads replies, what servers say, and recorded prompts takes linear time, in steps that are counted."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from proctor.core import formats
from proctor.core.formats import thoughts
from proctor.core.formats.orders import OrderReader
from proctor.models import rejections
from proctor_train.mediqa_eval.embedded import assertions, measures
from tests.support.pattern_steps import Matcher, has_unbounded_repeat, pumped

_MODULES = [
    *sorted(
        f"proctor.core.formats.{file.stem}"
        for file in Path(formats.__file__).parent.glob("*.py")
        if file.stem[0] != "_"
    ),
    "proctor.core.secrets",
    "proctor.core.text",
    "proctor.interchange.shown_options",
    "proctor_train.mediqa_eval.embedded.assertions",
    "proctor_train.mediqa_eval.embedded.measures",
    "proctor_train.mediqa_eval.embedded.sentences",
    "proctor.models.endings",
    "proctor.models.faults",
    "proctor.models.rejection_watch",
    "proctor.models.rejections",
    "proctor.systems.replies",
    "proctor.tasks.questions.answers",
    "proctor.tasks.questions.cells",
]
"""Modules that read texts of other people, their models and their programs."""
_WHOLE, _AT_START, _ANYWHERE = "fullmatch", "match", "search"
_SIZE = 48
_MOST = 5
"""Repeats of at most 20 or 300 are cut to this, so that the time in which they are linear begins below `_SIZE`."""
_TWICE = 2.8
"""How many more steps a text of twice the size may need: two times for linear patterns, four times for quadratic ones."""


_SHORT = {
    "proctor.core.formats.cut_json._HALF_WORD": "searched for in the last 40 characters",
    "proctor.core.formats.pattern._LITERAL_BRACE": "reads a benchmark's own pattern, of at most 1,000 characters",
    "proctor.core.formats.pattern._TOKEN": "reads a benchmark's own pattern, of at most 1,000 characters",
}
"""Patterns that need more, and why they may."""


class Named(NamedTuple):
    """A pattern, where it is, and how it is used: the most expensive of the ways."""

    position: str
    pattern: re.Pattern[str]
    used: str


def _patterns() -> Iterator[Named]:
    read = {module: _in_source(module) for module in _MODULES}
    everywhere: dict[str, set[str]] = defaultdict(set)
    for uses, _ in read.values():
        for name, methods in uses.items():
            everywhere[name] |= methods
    for module, (uses, inline) in read.items():
        for name, value in vars(import_module(module)).items():
            used = _widest((uses if name.startswith("_") else everywhere).get(name, set()))
            yield from (Named(f"{module}.{name}{number}", one, used) for number, one in _held(value))
        yield from inline
    for name, value in vars(OrderReader(("A", "B", "C", "D"))).items():
        yield from (
            Named(f"OrderReader.{name}{number}", one, _widest(everywhere[name])) for number, one in _held(value)
        )
    yield Named("thoughts._marks()", thoughts._marks(), _ANYWHERE)
    for language in ("en", "zh"):
        for table in ("clause", "negator"):
            yield Named(f"assertions.{language}.{table}", assertions._pattern(table, language), _ANYWHERE)
        for cue, pattern in measures._patterns(language).items():
            yield Named(f"measures.{language}.{cue}", pattern, _ANYWHERE)
    for number, rule in enumerate(rejections._rules()):
        yield Named(f"rejections.{number}", rule.says, _ANYWHERE)


def _held(value: object) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The patterns in a value: itself, in a tuple, or each beside what replaces it."""
    for number, one in enumerate(value if isinstance(value, tuple) else [value]):
        held = one[0] if isinstance(one, tuple) and one else one
        if hasattr(held, "finditer") and hasattr(held, "groupindex"):
            yield f"[{number}]" if isinstance(value, tuple) else "", re.compile(held.pattern, held.flags)


def _in_source(module: str) -> tuple[dict[str, set[str]], list[Named]]:
    """The methods that are called of each name ("" for a name that is passed on), and the patterns that are written where
    they are used."""
    tree = ast.parse(Path(str(import_module(module).__file__)).read_text(encoding="utf-8"))
    uses: dict[str, set[str]] = defaultdict(set)
    inline: list[Named] = []
    called = set[int]()
    for node in ast.walk(tree):  # what holds comes before what is held
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        if isinstance(node, ast.Attribute) and (name := _name(node.value)):
            uses[name].add(node.attr)
            called.add(id(node.value))
        if id(node) not in called and isinstance(node.ctx, ast.Load):
            uses[_name(node)].add("")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _name(node.func.value) == "re":
            source, used = node.args[0], node.func.attr
            if used not in {"compile", "escape"} and isinstance(source, ast.Constant):
                inline.append(Named(f"{module}:{node.lineno}", re.compile(str(source.value)), _widest({used})))
    return uses, inline


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _widest(methods: set[str]) -> str:
    if methods == {_WHOLE}:
        return _WHOLE
    return _AT_START if methods and methods <= {_WHOLE, _AT_START} else _ANYWHERE


ALL = [*{(one.pattern, one.used): one for one in _patterns()}.values()]
UNBOUNDED = [one for one in ALL if one.position not in _SHORT and has_unbounded_repeat(Matcher(one.pattern).tree)]


@pytest.fixture(autouse=True)
def deep() -> Iterator[None]:
    """The matcher calls itself for each character."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


def _slow_on(named: Named) -> list[tuple[str, int, int]]:
    """The texts on which a pattern needs more than `_TWICE` as many steps for twice the size, with these steps."""
    matcher = Matcher(named.pattern, _MOST)

    def steps(text: str) -> int:
        matcher.steps = 0
        if named.used == _ANYWHERE:
            matcher.spans(text)
        else:
            matcher.match(text, whole=named.used == _WHOLE)
        return matcher.steps

    sizes = zip(pumped(named.pattern, _SIZE), pumped(named.pattern, _SIZE, 2), strict=True)
    counted = [(once, steps(once), steps(twice)) for once, twice in sizes]
    return [(text, few, many) for text, few, many in counted if many > _TWICE * few]


@pytest.mark.parametrize("named", UNBOUNDED, ids=lambda named: named.position)
def test_a_pattern_takes_linear_time(named: Named) -> None:
    assert not _slow_on(named)


def test_patterns_are_found() -> None:
    """In the modules, in tuples, beside replacements, where they are used, and with the labels of a question."""
    positions = {named.position for named in ALL}
    assert {
        "proctor.core.formats.reply._ANY",
        "proctor.core.formats.markup._MARKUP[3]",
        "OrderReader._token",
        "OrderReader._nth[1]",
    } <= positions
    assert any(position.startswith("proctor.core.formats.choice:") for position in positions)
    assert _SHORT.keys() <= positions
    assert {named.used for named in ALL} == {_WHOLE, _AT_START, _ANYWHERE}


@pytest.mark.parametrize(
    ("source", "used"),
    [
        (r"\s*>", _ANYWHERE),  # each blank of a long run begins anew
        (r"yes\W*\n\W*no", _WHOLE),  # each of the line breaks may be the one
        (r"<a[^>]*>", _ANYWHERE),
        (r"(?:x|y)+z", _ANYWHERE),
        (r"(\w+) \1", _ANYWHERE),
        (r"a.*b.*c", _AT_START),
        (r"(?=\s*>)", _ANYWHERE),
    ],
)
def test_a_pattern_that_takes_quadratic_time_is_noticed(source: str, used: str) -> None:
    assert _slow_on(Named("", re.compile(source), used))


@pytest.mark.parametrize("source", [r"(?:a|a)*b", r"(?:\w+\s?)+!", r"(a*)*b"])
def test_a_pattern_that_takes_exponential_time_is_noticed(source: str) -> None:
    with pytest.raises(OverflowError, match="more than 300000 steps"):
        _slow_on(Named("", re.compile(source), _AT_START))


@pytest.mark.parametrize("source", [r"(?<!\s)\s*>", r"yes[^\w\n]*\n\W*no", r"<a[^>]{0,40}>", r"\b\w+ x", r"^ *a"])
def test_a_pattern_that_takes_linear_time_is_not(source: str) -> None:
    assert not _slow_on(Named("", re.compile(source, re.MULTILINE), _ANYWHERE))


REPLIES = (
    "**Answer: (C)** because of the cortex.\n\nWait, no: B or D?",
    'Final order: ["B", "A"] > C -> D; step 2) A, 3: B\n| 1 | Picture D |',
    "At 00:01:05.5 to 1:20, 3 clips (35 %) - about 2.5 cm, not 1,000 or 百分之三十。",
    "<think>Hm?</think><answer>yes</answer> \\boxed{no} it's A is better than B ~ x1=1, [1, 2]",
)


@pytest.mark.parametrize("named", ALL, ids=lambda named: named.position)
def test_the_matcher_finds_what_re_finds(named: Named) -> None:
    matcher = Matcher(named.pattern)
    for text in REPLIES:
        assert matcher.spans(text) == [hit.span() for hit in named.pattern.finditer(text)]
