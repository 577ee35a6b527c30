"""What identifies a function beside its source: the values that it was made with."""

from __future__ import annotations

import hashlib
import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from proctor.core import PlainFunction

OFFERED = ("question", "options")


def identity(function: Callable[..., Any]) -> dict[str, Any]:
    return PlainFunction(function, offered=OFFERED, what="a system").settings


def plain(question: str, options: Any = None, *, steps: int = 3, words: tuple[str, ...] = ("a", "b")) -> str:
    return "yes"


class Kept:
    def __init__(self, word: Any) -> None:
        self.word = word

    def __call__(self, question: str) -> Any:
        return self.word

    def ask(self, question: str) -> Any:
        return self.word


class Slotted:
    __slots__ = ("word",)

    def __init__(self, word: Any) -> None:
        self.word = word

    def __call__(self, question: str) -> Any:
        return self.word


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Config:
    weights: Any
    steps: int = 2


class Form(BaseModel):
    weights: str


def closure(word: Any) -> Callable[..., Any]:
    def answer(question: str) -> Any:
        return word

    return answer


def default(word: Any) -> Callable[..., Any]:
    def answer(question: str, word: Any = word) -> Any:
        return word

    return answer


def keyword_default(word: Any) -> Callable[..., Any]:
    def answer(question: str, *, word: Any = word) -> Any:
        return word

    return answer


def given(word: Any, question: str) -> Any:
    return word


def nested(word: Any) -> Callable[..., Any]:
    inner = closure(word)

    def answer(question: str) -> Any:
        return inner(question)

    return answer


MAKERS: list[Callable[[Any], Callable[..., Any]]] = [
    closure, default, keyword_default, nested, Kept, Slotted,
    lambda word: Kept(word).ask, lambda word: partial(given, word), lambda word: partial(given, word=word),
    lambda word: closure(partial(given, word)), lambda word: closure({"deep": [{"er": (word,)}]}),
    lambda word: Kept(Config(word)), lambda word: partial(Kept(word).ask),
]  # fmt: skip
PAIRS: list[tuple[Any, Any]] = [
    ("yes", "no"), (1, 2), (1, 1.0), (1, True), (0.1, 0.2), (b"a", b"b"), (None, 0), (Path("a.pt"), Path("b.pt")),
    (["a", "b"], ["b", "a"]), (("a",), ["a"]), ({"a": 1}, {"a": 2}), ({"a"}, {"b"}), (Colour.RED, Colour.BLUE),
    (Config("a"), Config("b")), (Form(weights="a"), Form(weights="b")), (float("nan"), 0.0), (len("ab"), len("abc")),
    (closure("x"), closure("y")), (plain, given),
]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=range(len(PAIRS)))
def test_another_value_is_another_system(make: Any, first: Any, second: Any) -> None:
    assert identity(make(first)) == identity(make(first))
    assert identity(make(first)) != identity(make(second))


def test_two_lambdas_on_one_line() -> None:
    both = (lambda question: "yes", lambda question: "no")
    again = identity(both[0])
    assert identity(both[0]) == again != identity(both[1])


def test_a_plain_function_has_the_identity_that_stores_know() -> None:
    """Also where its defaults stand in its source."""
    source = hashlib.sha256(inspect.getsource(plain).encode()).hexdigest()
    assert source == "c175a3d00aafae4026d7b85a1ad7722d68199d369bd940dddd8e3964c7222899"
    assert identity(plain) == {"function": "plain", "source_sha256": source}
    alone = lambda question, word="yes": word  # noqa: E731
    assert set(identity(alone)) == {"function", "source_sha256"}
    scope: dict[str, Any] = {}
    exec("def typed(question):\n    return 'yes'", scope)
    assert set(identity(scope["typed"])) == {"function", "source_sha256"}


def test_the_state_is_told_by_name_and_tells_no_value() -> None:
    made = Kept("a password of mine")
    made.threshold = 0.5  # type: ignore[attr-defined]
    made.api_key = "sk-1234567890"  # type: ignore[attr-defined]
    state = identity(made)["state"]
    assert set(state) == {"word", "threshold"}
    assert all(len(told) == 16 and int(told, 16) >= 0 for told in state.values())
    made.api_key = "sk-another"  # type: ignore[attr-defined]
    assert identity(made)["state"] == state
    hidden = Kept({"url": "x", "api_key": "sk-1"})
    other = Kept({"url": "x", "api_key": "sk-2"})
    assert identity(hidden) == identity(other)


def test_what_can_not_be_told_is_left_out() -> None:
    counts = Counter[str]()
    for value in (object(), open, print, Kept("x"), counts, range(3), list(range(20_000)), "x".upper):
        assert "state" not in identity(closure(value))
    first, second = closure([object(), "x"]), closure([object(), "y"])
    assert identity(first) != identity(second)
    assert identity(first) == identity(closure([object(), "x"]))


def test_what_holds_itself_comes_to_an_end() -> None:
    loop: list[Any] = ["x"]
    loop.append(loop)

    def answer(question: str) -> Any:
        return answer, loop

    assert identity(answer) == identity(answer)
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    assert identity(closure(deep)) == identity(closure(deep))
