"""A case shown to a model: pictures first, then the texts, and a reply of a form that is kept as a vote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, JsonValue

from proctor.core import InputError, MachineryError, Vote, VoteBook
from proctor.judges.asked_once import AskedOnce, Asks
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.pictures import Pictures, look
from proctor.judges.dimensions.steering import steering_flags
from proctor.judges.hostile import FENCE_CLOSE, FENCE_OPEN, neutral
from proctor.models import Prompt, load_prompt

__all__ = ["CaseAsker", "Heard", "Prompts", "load_prompts"]

T = TypeVar("T", bound=BaseModel)

Prompts = Mapping[str, Prompt]
"""The prompts of a judge, by language."""


@dataclass(frozen=True)
class Heard(Generic[T]):
    """A reply to a case with its vote; or neither, and the reason. `flags` are those of the case."""

    value: T | None
    vote: Vote | None
    reason: str
    flags: tuple[str, ...]
    pictures: Pictures


def load_prompts(name: str, folder: Path = Path(__file__).parent) -> Prompts:
    """The prompts of a judge by language: `NAME_en.txt.j2` and `NAME_zh.txt.j2`."""
    return {language: load_prompt(folder / f"{name}_{language}.txt.j2") for language in ("en", "zh")}


class CaseAsker:
    """Shows cases to one model. `kind` and `extra` (what the prompt is filled with beside the case) tell its
    votes from those of other judges."""

    def __init__(
        self,
        kind: str,
        name: str,
        asks: Asks,
        votes: VoteBook,
        prompts: Prompts,
        extra: Mapping[str, JsonValue],
    ) -> None:
        self._kind = kind
        self._asked = AskedOnce(name, asks, votes)
        self._prompts = prompts
        self._extra = dict(extra)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The prompts, for the record."""
        hashes: dict[str, JsonValue] = {name: one.sha256 for name, one in self._prompts.items()}
        return {"prompt_sha256": hashes, **self._extra}

    async def ask(
        self,
        case: Case,
        form: type[T],
        *,
        names: Sequence[str] | None = None,
        more: Mapping[str, JsonValue] | None = None,
        flags: Callable[[T], tuple[str, ...]] = lambda _: (),
    ) -> Heard[T]:
        """The reply to a case; none where the machinery fails or the model declines. `more` is what the
        prompt is filled with for this case alone (already made harmless), `flags` says what of the reply a
        person should look at. Raises `InputError` for a language or a dimension that the
        prompt does not speak of; of `names` only, where not all dimensions are asked for."""
        prompt = self._prompts.get(case.language)
        if prompt is None:
            known = ", ".join(self._prompts)
            raise InputError(case.id, "language", found=repr(case.language), expected=f"one of {known}")
        pictures = await look(case)
        system, user = prompt.render(**self._filled(case, pictures), **(more or {}))
        for one in [dimension.name for dimension in case.dimensions] if names is None else names:
            if one not in system:
                raise InputError(prompt.name, found=f"nothing about {one!r}", expected="every dimension")
        own = steering_flags(case)
        shown = (*own, *pictures.flags)
        try:
            value, vote = await self._asked.ask(
                form,
                [*pictures.frames, user],
                system=system,
                item_id=case.id,
                content=self._content(case, prompt, pictures) | dict(more or {}),
                flags=lambda said: (*flags(said), *shown),
            )
        except MachineryError as error:
            return Heard(None, None, str(error), shown, pictures)
        return Heard(value, vote, "", shown, pictures)

    def _filled(self, case: Case, pictures: Pictures) -> dict[str, object]:
        return {
            **self._extra,
            "query": neutral(case.query),
            "references": [neutral(one.text) for one in case.sorted_references],
            "candidate": neutral(case.candidate),
            "images_named": pictures.named,
            "images_shown": len(pictures.frames),
            "fence_open": FENCE_OPEN,
            "fence_close": FENCE_CLOSE,
        }

    def _content(self, case: Case, prompt: Prompt, pictures: Pictures) -> dict[str, JsonValue]:
        references: list[JsonValue] = [one.text for one in case.sorted_references]
        return {
            "judge": self._kind,
            "prompt_sha256": prompt.sha256,
            **self._extra,
            "language": case.language,
            "query": case.query,
            "references": references,
            "candidate": case.candidate,
            "images_named": pictures.named,
            "images": pictures.hashes,
        }
