"""Servers that lose nothing, behind models of all manners: no fault is named, and what can't be checked is said to be so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import sighted_server as served
from tests.support.faulty_server import AT_ONCE, Calls, Cut, Fault, Rejects, Request
from tests.support.sight_trial import tried
from tests.support.sighted_server import Sighted

Said = str | Calls | Rejects | Cut


def words(form: str) -> Callable[[str, Request], Said]:
    """The answer in other words; `{}` is what follows "Answer: "."""
    return lambda said, _: form.format(said.removeprefix("Answer: ")) if said.startswith("Answer: ") else said


def refuses_colours(said: str, request: Request) -> Said:
    return "I'm sorry, but I can't help with that." if "Which colour" in request.text else said


def rejects_colours(said: str, request: Request) -> Said:
    policy = {"error": {"message": "rejected by our policy", "code": "content_policy_violation"}}
    return Rejects(400, policy) if "Which colour" in request.text else said


def rejects(what: str) -> Callable[[str, Request], Said]:
    """A server that takes no such field or part, and says so."""
    error = {"error": {"message": f"{what} is not supported", "code": "unsupported_parameter"}}
    return lambda said, request: (
        Rejects(400, error) if what in str(request.body.keys()) or f"'{what}'" in str(_types(request)) else said
    )


def _types(request: Request) -> list[str]:
    content = [message["content"] for message in request.body["messages"]]
    return [part["type"] for one in content if isinstance(one, list) for part in one]


def rejects_many(said: str, request: Request) -> Said:
    error = {"error": {"message": "at most 16 image(s) may be provided in one prompt", "code": "invalid_value"}}
    return Rejects(400, error) if len(request.image_bytes) > 16 else said


def in_words_only(said: str, _: Request) -> Said:
    """It knows neither tools nor schemas, and answers as ever."""
    return Calls([], said)


def sometimes_cut(said: str, request: Request) -> Said:
    return Cut("The picture shows") if sum(request.image_bytes) % 7 == 0 else said


class ReadsNoNumbers(Sighted):
    """It sees colours and positions, and takes every number for another."""

    def _value(self, one: served.Seen) -> int | None:
        found = super()._value(one)
        return None if found is None else (found * 11 + 29) % 900 + 100


SOUND: dict[str, tuple[Sighted, dict[str, Any]]] = {
    "plain": (Sighted(), {}),
    "slow": (Sighted(), {"latency_s": 0.05}),
    "too many requests": (Sighted(), {"faults": 0.4, "kinds": (Fault.RATE_LIMIT,), "seed": 1}),
    "infrastructure errors of all kinds": (Sighted(), {"faults": 0.3, "kinds": AT_ONCE, "seed": 2}),
    "verbose": (
        Sighted(manner=words("Let me look closely at it. What I can make out is this.\n\nAnswer: {}\n\nI am sure.")),
        {},
    ),
    "german": (Sighted(manner=words("Antwort: {}"), says_nothing="Ich sehe kein Bild."), {}),
    "french": (Sighted(manner=words("Réponse : {}"), says_nothing="Je ne vois aucune image."), {}),
    "chinese": (Sighted(manner=words("答案:{}"), says_nothing="我看不到图片。"), {}),
    "markdown": (Sighted(manner=words("**Answer: {}**")), {}),
    "JSON": (Sighted(manner=words('{{"answer": "{}"}}')), {}),
    "thinks aloud": (Sighted(manner=words("<think>Is it 111? Or 222?</think>\nAnswer: {}")), {}),
    "refuses colours": (Sighted(manner=refuses_colours), {}),
    "a filter rejects colours": (Sighted(manner=rejects_colours), {}),
    "misses one in ten": (Sighted(misses=0.1, seed=1), {}),
    "misses three in ten": (Sighted(misses=0.3, seed=2), {}),
    "misses half": (Sighted(misses=0.5, seed=3), {}),
    "misses three in ten, verbose, too many requests": (
        Sighted(misses=0.3, seed=4, manner=words("I see it now. Answer: {}")),
        {"faults": 0.3, "kinds": (Fault.RATE_LIMIT,), "seed": 3},
    ),
    "reads no small digits": (Sighted(acuity=18), {}),
    "reads large digits alone": (Sighted(acuity=30), {}),
    "takes no tools": (Sighted(manner=rejects("tools")), {}),
    "takes no schema": (Sighted(manner=rejects("response_format")), {}),
    "takes no video": (Sighted(manner=rejects("video_url")), {}),
    "ignores tools and schemas": (Sighted(manner=in_words_only), {}),
    "takes eight pictures of a video": (Sighted(samples=8), {}),
    "is cut off at times": (Sighted(manner=sometimes_cut), {}),
}


@pytest.mark.parametrize("manner", SOUND)
def test_a_sound_server_is_not_accused(manner: str) -> None:
    model, server = SOUND[manner]
    result, calls = tried(model, **server)
    assert result.findings == ()
    assert result.exit_code in ({0, 2} if "misses" in manner else {0})  # weak eyes may be too weak to be sure
    assert result.routes["frames"].right > 0
    assert max(result.calls, calls) <= 64


@pytest.mark.parametrize(
    ("route", "manner"), [("tools", "takes no tools"), ("schema", "takes no schema"), ("video", "takes no video")]
)
def test_what_a_server_rejects_is_not_offered(route: str, manner: str) -> None:
    result, _ = tried(SOUND[manner][0])
    assert result.routes[route].state == "not offered"


def test_many_pictures_that_are_rejected_are_no_fault() -> None:
    result, _ = tried(Sighted(manner=rejects_many))
    assert result.findings == ()
    assert result.exit_code == 2
    assert "16 image(s)" in result.routes["frames"].note


def test_colours_without_numbers_are_weak_eyes() -> None:
    result, _ = tried(ReadsNoNumbers())
    assert result.findings == ()
    assert result.exit_code == 2
    assert any("reads no number" in note for note in result.notes)


def test_a_server_that_is_down_can_not_be_checked() -> None:
    result, _ = tried(Sighted(), faults=1.0, kinds=(Fault.SERVER_ERROR,), retries=0)
    assert (result.state, result.exit_code) == ("could not check", 2)
    assert "failed" in result.routes["frames"].note


def test_gibberish_can_not_be_checked() -> None:
    result, _ = tried(Sighted(manner=lambda said, request: "".join(chr(97 + one % 26) for one in request.image_bytes)))
    assert (result.state, result.exit_code) == ("could not check", 2)
