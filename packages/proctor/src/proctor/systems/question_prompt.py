"""The prompt of a question: which template, what it is filled in with, and what is asked for beside the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from proctor.core import Briefing, Item, reader_or_default
from proctor.core.formats import (
    CONFIDENCE_FIELD,
    CONFIDENCE_LINE,
    OrderingFormat,
    abstention_instruction,
    option_letters,
)
from proctor.models import Prompt, chosen_prompt, prompt_file
from proctor.systems.replies import order_instruction

_PROMPTS = Path(__file__).parent
GENERAL = _PROMPTS / "model_answer.txt.j2"
"""The prompt of benchmarks without one of their own."""
_WITH_SOUND = _PROMPTS / "model_answer_with_sound.txt.j2"


def prompt_for_benchmark(name: str, choice: str = "", *, sounding: bool = False) -> Prompt:
    """The benchmark's prompt, if it has one, else the general one (with `sounding` the one for questions with sound); or the one of
    `choice`: a name (`paper` is BENCHMARK.paper.txt.j2) or a file. Raises `InputError` for a choice that is neither."""
    folder = reader_or_default(name).prompts
    general = _WITH_SOUND if sounding else GENERAL
    own = None if folder is None else folder / f"{name}.txt.j2"
    usual = own if own is not None and own.is_file() else general
    return chosen_prompt(usual, prompt_file(folder or _PROMPTS, name, choice) if choice else None)


@dataclass(frozen=True)
class ReplyRequest:
    """What a prompt asks for beside the answer. abstain: "allow" names the form in which to abstain, "forbid" says that
    abstaining is wrong, "" says nothing. confidence: "stated" asks for a number from 0 to 100; "tokens" asks for nothing,
    and takes the probabilities of the options' tokens where the server gives them."""

    abstain: Literal["", "allow", "forbid"] = ""
    confidence: Literal["", "stated", "tokens"] = ""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What is recorded of it: nothing that is left at its default."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ReplyRequest:
        """The request that a system's settings record."""
        return cls(abstain=settings.get("abstain", ""), confidence=settings.get("confidence", ""))


NOTHING_MORE = ReplyRequest()
"""The answer alone is asked for."""


@dataclass(frozen=True)
class Sent:
    """What is sent with a question, as its prompt describes it: the numbers of pictures and sounds, whether pictures have
    times or are video files, and whether the condition shows nothing."""

    pictures: int
    timed: bool
    video: bool = False
    blind: bool = False
    sounds: int = 0


def prompt_text(
    prompt: Prompt,
    item: Item,
    briefing: Briefing | None,
    sent: Sent,
    *,
    as_json: bool = False,
    request: ReplyRequest = NOTHING_MORE,
) -> tuple[str, str]:
    """The system message and the user message for an item. `as_json` is for orders that are requested by a schema; what
    the `request` asks for stands with the instruction."""
    return prompt.render(
        question=item.question,
        options=list(zip(option_letters(len(item.options)), item.options, strict=True)),
        instruction=_with_request(item, instruction_of(item, as_json), request, as_json=as_json),
        may_abstain=request.abstain == "allow",
        **vars(sent),
        definitions=[] if briefing is None else list(briefing.definitions.items()),
        as_json=as_json,
    )


def instruction_of(item: Item, as_json: bool) -> str:
    if as_json and isinstance(item.answer, OrderingFormat):
        return order_instruction(item.answer.labels)
    return item.answer.instruction(item.options)


def _with_request(item: Item, instruction: str, request: ReplyRequest, *, as_json: bool) -> str:
    """The instruction, with how to abstain and how to state a confidence."""
    asked = CONFIDENCE_FIELD if as_json else CONFIDENCE_LINE
    more = [abstention_instruction(item.answer, request.abstain), asked if request.confidence == "stated" else ""]
    return " ".join(filter(None, [instruction, *more]))
