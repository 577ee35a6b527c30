"""A case shown to a model: pictures first, then the texts, and a reply of a form that is kept as a vote."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, create_model

from proctor.core import Dimension, Frame, InfrastructureError, InputError, Vote, VoteBook
from proctor.judges.asked_once import AskedOnce, Asks
from proctor.judges.dimensions.case import IMAGES_ABSENT, IMAGES_BROKEN, Case, injection_flags
from proctor.judges.prompt_injection import FENCE_CLOSE, FENCE_OPEN, sanitize
from proctor.media import MediaSettings, encode, locate, read_image
from proctor.models import Prompt, load_prompt


class Rated(BaseModel):
    """Your rating of the candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, serialize_by_alias=True)

    @property
    def scores(self) -> dict[str, float]:
        """The scores by dimension."""
        said = self.model_dump()
        return {name: float(value) for name, value in said.items() if name not in {"reason", "cited"}}

    @property
    def reason(self) -> str:
        """Why, in the judge's words; empty where the form does not ask."""
        return str(self.model_dump().get("reason", ""))

    @property
    def cited(self) -> tuple[int, ...]:
        """The passages that the rating rests on, by number, each once; none where the form does not ask."""
        return tuple(dict.fromkeys(self.model_dump().get("cited", ())))


def _as_whole(value: object) -> object:
    """1.0 is a whole number in JSON, and in the schema that the model was given."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = Annotated[int, BeforeValidator(_as_whole)]


@lru_cache(maxsize=64)
def rating_form(
    dimensions: tuple[Dimension, ...],
    *,
    only_levels: bool = False,
    whole: bool = False,
    reason: bool = True,
    cites: bool = False,
) -> type[Rated]:
    """The form of a rating on these dimensions: any number on the scale, or one of the levels alone.

    `whole`: levels are counted (0, 1, 2 …) instead of named, so that each is one character.
    `cites`: passages that the rating rests on are named by their numbers, whichever these are.

    >>> form = rating_form((Dimension("overall", (0.0, 0.5, 1.0)),), only_levels=True, reason=False)
    >>> form.model_validate_json('{"overall": 0.5}').scores
    {'overall': 0.5}
    """
    fields: dict[str, Any] = {}
    if reason:
        why = Field(alias="reason", description="One or two sentences that give the reason.")
        fields["why"] = (str, why)
    if cites:
        about_cited = "The numbers of the passages that the rating rests on."
        fields["by"] = (list[int], Field(alias="cited", max_length=20, description=about_cited))
    for place, one in enumerate(dimensions):
        kind, about = _number(one, only_levels=only_levels, whole=whole)
        fields[f"score_{place}"] = (kind, Field(alias=one.name, **about))
    form: type[Rated] = create_model("Rating", __base__=Rated, __doc__=Rated.__doc__, **fields)
    return form


def _number(one: Dimension, *, only_levels: bool, whole: bool) -> tuple[Any, Mapping[str, Any]]:
    if whole:
        return _WHOLE, {"ge": 0, "le": len(one.levels) - 1}
    if one.is_flag:
        return _WHOLE, {"ge": 0, "le": 1}
    if not only_levels:
        return float, {"ge": one.levels[0], "le": one.levels[-1]}

    def known(value: float) -> float:
        if value not in one.levels:
            raise ValueError(f"expected one of {', '.join(f'{level:g}' for level in one.levels)}")
        return value

    return Annotated[float, AfterValidator(known)], {"json_schema_extra": {"enum": list(one.levels)}}


_SETTINGS = MediaSettings(max_side=1024, quality=90)
_LABELS = {"en": "Picture {place} of {count}", "zh": "照片 {place}/{count}"}


@dataclass(frozen=True)
class Pictures:
    """Those that could be loaded, in the order of the case; of how many; and what was wrong with the others."""

    frames: tuple[Frame, ...]
    named: int
    flags: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def hashes(self) -> list[JsonValue]:
        """What a vote is found by: other pictures are another vote."""
        return [hashlib.sha256(one.jpeg).hexdigest() for one in self.frames]

    @property
    def evidence(self) -> dict[str, JsonValue]:
        """For the record."""
        shown: dict[str, JsonValue] = {"named": self.named, "shown": len(self.frames)}
        return {"images": shown | ({"problems": list(self.problems)} if self.problems else {})}


async def look(case: Case) -> Pictures:
    """Loads a case's pictures. One that can't be loaded is left out, and said; no error is raised."""
    if not case.images:
        return Pictures((), 0)
    if case.image_root is None:
        return Pictures((), len(case.images), (IMAGES_ABSENT,))
    return await asyncio.to_thread(_load, case.image_root, case.images, _LABELS.get(case.language, _LABELS["en"]))


def _load(root: Path, names: tuple[str, ...], label: str) -> Pictures:
    frames, problems = [], []
    for place, name in enumerate(names, start=1):
        try:
            file = locate(root, name)
            stamp = file.stat()
            jpeg = _jpeg(file, stamp.st_mtime_ns, stamp.st_size)
        except InputError as error:
            problems.append(str(error))
        else:
            frames.append(Frame(jpeg, None, label.format(place=place, count=len(names))))
    return Pictures(tuple(frames), len(names), (IMAGES_BROKEN,) if problems else (), tuple(problems))


@lru_cache(maxsize=128)
def _jpeg(file: Path, changed_ns: int, size: int) -> bytes:  # noqa: ARG001 - a file that changed is read again
    """A picture as it is sent; several systems answer to the same one, and several members look at it."""
    return encode(read_image(file), None, _SETTINGS)


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


_BUILT_IN = Path(__file__).parent / "prompts"
_SUFFIX = ".txt.j2"


def load_prompts(kind: str, folder: Path | None = None) -> Prompts:
    """The prompts of a kind (`rating`, `rubric` …) by language: KIND_LANGUAGE.txt.j2 in the folder of a task's own
    prompts, KIND.txt.j2 for all other languages (""). Where the folder has none of the kind, the built-in one for
    every task and language."""
    for place in (folder, _BUILT_IN):
        files = sorted(place.glob(f"{kind}*{_SUFFIX}")) if place is not None else ()
        named = {one.name.removesuffix(_SUFFIX).removeprefix(kind): one for one in files}
        if named:
            return {name.removeprefix("_"): load_prompt(one) for name, one in named.items()}
    raise InputError(folder, "prompts", found=f"none of the kind {kind!r}", expected=f"{kind}{_SUFFIX}")


def prompt_for(prompts: Prompts, item_id: str, language: str) -> Prompt:
    """The prompt for a language. Raises `InputError`, naming the item, where there is none."""
    found = prompts.get(language) or prompts.get("")
    if found is None:
        known = ", ".join(prompts)
        raise InputError(item_id, "language", found=repr(language), expected=f"one of {known}")
    return found


class CaseAsker:
    """Shows cases to one model. `kind` and `extra` (what the prompt is filled with beside the case) tell its
    votes from those of other judges."""

    def __init__(
        self, kind: str, name: str, asks: Asks, votes: VoteBook, prompts: Prompts, extra: Mapping[str, JsonValue]
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
        """The reply to a case; none where the infrastructure fails or the model declines. `more` is what the
        prompt is filled with for this case alone (already made harmless), `flags` says what of the reply a
        person should look at. Raises `InputError` for a language or a dimension that the
        prompt does not speak of; of `names` only, where not all dimensions are asked for."""
        prompt = prompt_for(self._prompts, case.id, case.language)
        asked = [one for one in case.dimensions if names is None or one.name in names]
        wording = _worded(case, asked)
        pictures = await look(case)
        system, user = prompt.render(**self._filled(case, pictures), **wording, **(more or {}))
        for one in asked:
            if one.name not in system:
                raise InputError(prompt.name, found=f"nothing about {one.name!r}", expected="every dimension")
        own = injection_flags(case)
        shown = (*own, *pictures.flags)
        try:
            value, vote = await self._asked.ask(
                form,
                [*pictures.frames, user],
                system=system,
                item_id=case.id,
                content=self._content(case, prompt, pictures) | _own_words(case, wording) | dict(more or {}),
                flags=lambda said: (*flags(said), *shown),
            )
        except InfrastructureError as error:
            return Heard(None, None, str(error), shown, pictures)
        return Heard(value, vote, "", shown, pictures)

    def _filled(self, case: Case, pictures: Pictures) -> dict[str, object]:
        return {
            **self._extra,
            "query": sanitize(case.query),
            "references": [sanitize(one.text) for one in case.sorted_references],
            "candidate": sanitize(case.candidate),
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


def _worded(case: Case, asked: Sequence[Dimension]) -> dict[str, JsonValue]:
    """The task's own words for a prompt that is not made for one task."""
    rules: list[JsonValue] = [*_rules(case)]
    return {
        "role": case.scheme.role if case.scheme else "",
        "dimensions": [
            {
                "name": one.name,
                "description": one.description,
                "low": f"{one.levels[0]:g}",
                "high": f"{one.levels[-1]:g}",
                "flag": one.is_flag,
                "levels": [f"{level:g}" for level in one.levels],
            }
            for one in asked
        ],
        "rules": rules,
    }


def _rules(case: Case) -> list[str]:
    found = []
    for rule in case.scheme.rules if case.scheme else ():
        others = ", ".join(rule.others)
        most = f"the highest of {others}" if rule.limit is None else f"{rule.limit:g}"
        where = "" if rule.where is None else f" where any of {others} is {rule.where:g} or less"
        found.append(f"{rule.dimension} is at most {most}{where}.")
    return found


def _own_words(case: Case, wording: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """What a judgement is found by beside the prompt's hash, where the task words its dimensions itself."""
    worded = case.scheme is not None and (case.scheme.role or any(one.description for one in case.dimensions))
    return wording if worded else {}
