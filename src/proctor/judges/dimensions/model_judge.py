"""One judge of dimensions for every way to ask a model: a prompt template, a scale, and what the prompt carries besides
the case."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, create_model

from proctor.core import Dimension, Frame, InfrastructureError, InputError, JudgementCache, Scan
from proctor.judges.cached_model import (
    CachedModel,
    Prompts,
    StoredReply,
    as_said,
    load_prompts,
    prompt_for,
    prompt_hashes,
)
from proctor.judges.dimensions.case import (
    IMAGES_ABSENT,
    IMAGES_BROKEN,
    IMAGES_UNSEEN,
    Case,
    DimensionScores,
    injection_flags,
)
from proctor.judges.passage_index import CITES_UNSEEN, Match, passages_told
from proctor.judges.prompt_injection import FENCE_CLOSE, FENCE_OPEN, sanitize
from proctor.media import MediaSettings, encode, locate, read_image
from proctor.models import ModelClient, Part, Reply

Filled = Mapping[str, JsonValue]

_PICTURES = MediaSettings(max_side=1024, quality=90)
_LABELS = {"en": "Picture {place} of {count}", "zh": "照片 {place}/{count}"}


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


@dataclass(frozen=True)
class RatingScale:
    """On what scale a model rates, and what becomes of its reply: `template` is the kind of prompt, `fill` what it is
    filled with for every case, `asked` the dimensions of a case that the model is asked for, `stored` the form of its
    reply on these (whether it names passages, too), `read` makes scores of the reply, with what it says in `evidence`,
    `breaks` names the rules that the reply breaks as the model gave it, `settings` is what else changes the scores."""

    template: str
    fill: Filled
    stored: Callable[[tuple[Dimension, ...], bool], StoredReply[Any]]
    read: Callable[[Case, Any], DimensionScores]
    asked: Callable[[Case], tuple[Dimension, ...]] = lambda case: case.dimensions
    breaks: Callable[[Case, Any], tuple[str, ...]] = lambda _case, _said: ()
    settings: Filled = field(default_factory=dict)


def _snapped(case: Case, said: Rated) -> DimensionScores:
    values = {name: case.rounded(value) for name, value in said.scores.items()}
    return DimensionScores(values=values, breaks=case.breaks(values), evidence=({"reason": said.reason},))


def _levels_asked(case: Case) -> tuple[Dimension, ...]:
    derived = {one.dimension for one in case.scheme.derived} if case.scheme else set()
    return tuple(one for one in case.dimensions if one.name not in derived)


def _derived(case: Case, said: Rated) -> DimensionScores:
    levels = said.scores
    levels |= case.scheme.derive(levels, case.language) if case.scheme else {}
    return DimensionScores(
        values={one.name: levels[one.name] for one in case.dimensions}, evidence=({"reason": said.reason},)
    )


RATING = RatingScale(
    "rating",
    {"persona": ""},
    lambda dimensions, cites: as_said(rating_form(dimensions, cites=cites)),
    _snapped,
    breaks=lambda case, said: case.breaks(said.scores),
)
"""Any number on each dimension, rounded to the task's grid; rules are checked on the scores that are handed in (the
judgement's flags on what the model said), and a break is counted and corrects nothing."""

RUBRIC = RatingScale(
    "rubric",
    {"low": "0", "middle": "0.5", "high": "1", "whole": False, "with_reason": True},
    lambda dimensions, _: as_said(rating_form(dimensions, only_levels=True)),
    _derived,
    asked=_levels_asked,
)
"""One of the described levels on each dimension that is not derived from others."""


@dataclass(frozen=True)
class Context:
    """What a prompt carries besides the case: `fill` (already made harmless), what is `told` of it in the evidence,
    `flags` for people, the judgements behind it (`votes`), and passages that the reply is asked to cite, where there
    are some."""

    fill: Filled = field(default_factory=dict)
    told: Filled = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    votes: tuple[str, ...] = ()
    passages: tuple[Match, ...] | None = None

    def __add__(self, other: Context) -> Context:
        return Context(
            {**self.fill, **other.fill},
            {**self.told, **other.told},
            (*self.flags, *other.flags),
            (*self.votes, *other.votes),
            self.passages if other.passages is None else other.passages,
        )

    def stored(self, said: StoredReply[Any]) -> StoredReply[Any]:
        """A reply, kept with the passages that it was given and what it cites of them."""
        passages = self.passages
        return said if passages is None else with_passages(said.form, passages)

    def cited(self, said: Any) -> Context:
        """The same once a reply has cited passages."""
        if self.passages is None:
            return self
        unseen = any(not 1 <= number <= len(self.passages) for number in said.cited)
        told: dict[str, JsonValue] = {"cited": [*said.cited], "passages": passages_told(self.passages, said.cited)}
        return replace(self, told=told | dict(self.told), flags=(*self.flags, *((CITES_UNSEEN,) if unseen else ())))


def with_passages(form: type[Any], passages: Sequence[Match]) -> StoredReply[Any]:
    """A reply that names passages in `cited`, kept with these."""

    def dump(reply: Reply[Any]) -> dict[str, JsonValue]:
        return {"reply": reply.value.model_dump(mode="json"), "passages": passages_told(passages, reply.value.cited)}

    return StoredReply(form, dump, lambda kept: form.model_validate(kept.get("reply")))


class ContextProvider(Protocol):
    """Finds a context for each case; the reply `cites` its passages, or does not."""

    cites: bool

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What decides the context."""

    async def context(self, case: Case, judge: str) -> Context:
        """The context of a case. Raises `InfrastructureError` where a model that is needed for it does not reply, and
        `InputError` for a case that it can't serve."""


@dataclass(frozen=True)
class ShownCase:
    """What a judge is shown of a case, and whether it gives a reason: all, or what an experiment leaves."""

    references: bool = True
    images: bool = True
    reason: bool = True

    @property
    def variant(self) -> str:
        """What is left out, such as "no-references+no-reason"."""
        return "+".join(f"no-{name}" for name, kept in vars(self).items() if not kept)

    def of(self, case: Case) -> Case:
        """The case with what is left of it."""
        references = case.references if self.references else ()
        images, scans = (case.images, case.scans) if self.images else ((), ())
        return replace(case, references=references, images=images, scans=scans)

    def scale(self, scale: RatingScale) -> RatingScale:
        """The scale without a reason, where none is asked for."""
        if self.reason:
            return scale
        return replace(
            scale,
            fill={**scale.fill, "with_reason": False},
            stored=lambda dimensions, cites: as_said(rating_form(dimensions, cites=cites, reason=False)),
        )


@dataclass(frozen=True)
class RatingRequest:
    """One request for ratings: the system's message, pictures and text, and the dimensions that are asked for; by which
    prompt, with which of the task's own words."""

    system: str
    parts: tuple[Part, ...]
    asked: tuple[Dimension, ...]
    prompt_sha256: str
    wording: Filled


def rating_request(
    scale: RatingScale, prompts: Prompts, case: Case, pictures: Pictures, fill: Filled | None = None
) -> RatingRequest:
    """What a model is asked about a case, with nothing asked yet. Raises `InputError` for a language or a dimension that
    the prompt does not speak of."""
    prompt = prompt_for(prompts, case.id, case.language)
    asked = scale.asked(case)
    wording = wording_of(case, asked)
    filled = {
        **(scale.fill if fill is None else fill),
        "query": sanitize(case.query),
        "references": [sanitize(one.text) for one in case.sorted_references],
        "candidate": sanitize(case.candidate),
        "images_named": pictures.named,
        "images_shown": len(pictures.frames),
        "fence_open": FENCE_OPEN,
        "fence_close": FENCE_CLOSE,
    }
    system, user = prompt.render(**filled | wording)
    for one in asked:
        if one.name not in system:
            raise InputError(prompt.name, found=f"nothing about {one.name!r}", expected="every dimension")
    return RatingRequest(system, (*pictures.frames, user), asked, prompt.sha256, wording)


class ModelJudge:
    """Asks one model for every dimension of a case in one reply, pictures first.

    `kind` is the judge's name, `variant` tells the members of an ensemble apart, `prompts` holds the task's own
    prompts, `shown` is what an experiment leaves of a case.
    """

    def __init__(
        self,
        kind: str,
        client: ModelClient,
        votes: JudgementCache,
        *,
        scale: RatingScale = RATING,
        contexts: Sequence[ContextProvider] = (),
        variant: str = "",
        prompts: Path | None = None,
        shown: ShownCase = ShownCase(),
    ) -> None:
        scale, named = shown.scale(scale), "+".join(one for one in (variant, shown.variant) if one)
        self.name = f"{kind}{f'/{named}' if named else ''}[{client.name}]"
        self._shown = shown
        self._kind, self._client, self._scale, self._contexts = kind, client, scale, tuple(contexts)
        self._model = CachedModel(self.name, client, votes)
        self._prompts = load_prompts(scale.template, prompts)
        self._fill = {**scale.fill, **({"cites": True} if any(one.cites for one in contexts) else {})}

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, the prompts, and what decides each context."""
        found = {
            **self._client.settings,
            "prompt_sha256": prompt_hashes(self._prompts),
            **self._fill,
            **self._scale.settings,
        }
        for one in self._contexts:
            found |= one.settings
        return found

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`). Raises `InputError` for a language or a dimension that the
        prompt does not speak of."""
        case, context = self._shown.of(case), Context()
        try:
            for one in self._contexts:
                context += await one.context(case, self.name)
        except InfrastructureError as error:
            return DimensionScores.none(case, str(error), flags=injection_flags(case))
        pictures = await self._look(case)
        shown = (*injection_flags(case), *pictures.flags)
        try:
            said, key = await self._ask(case, context, pictures, shown)
        except InfrastructureError as error:
            missing = DimensionScores.none(case, str(error), flags=(*shown, *context.flags))
            told = ({"judge": self.name, **context.told},) if context.told else ()
            return replace(missing, evidence=told, votes=context.votes)
        context, scores = context.cited(said), self._scale.read(case, said)
        return replace(
            scores,
            flags=(*shown, *context.flags),
            evidence=({"judge": self.name, **scores.evidence[0], **context.told, **pictures.evidence},),
            votes=(*context.votes, key),
        )

    async def _look(self, case: Case) -> Pictures:
        return await look(case)

    async def _ask(self, case: Case, context: Context, pictures: Pictures, shown: tuple[str, ...]) -> tuple[Any, str]:
        """The reply, and the key of its judgement."""
        request = rating_request(self._scale, self._prompts, case, pictures, {**self._fill, **context.fill})
        references: list[JsonValue] = [one.text for one in case.sorted_references]
        said, vote = await self._model.ask(
            context.stored(self._scale.stored(request.asked, context.passages is not None)),
            request.parts,
            system=request.system,
            item_id=case.id,
            content={
                "judge": self._kind,
                "prompt_sha256": request.prompt_sha256,
                **self._fill,
                "language": case.language,
                "query": case.query,
                "references": references,
                "candidate": case.candidate,
                "images_named": pictures.named,
                "images": pictures.hashes,
                **(request.wording if words_itself(case) else {}),
                **context.fill,
            },
            flags=lambda said: (*self._scale.breaks(case, said), *context.cited(said).flags, *shown),
        )
        return said, vote.key


def wording_of(case: Case, asked: Sequence[Dimension]) -> dict[str, JsonValue]:
    """The task's own words for a prompt that is not made for one task."""
    rules: list[JsonValue] = []
    for rule in case.scheme.rules if case.scheme else ():
        others = ", ".join(rule.others)
        most = f"the highest of {others}" if rule.limit is None else f"{rule.limit:g}"
        where = "" if rule.where is None else f" where any of {others} is {rule.where:g} or less"
        rules.append(f"{rule.dimension} is at most {most}{where}.")
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


def words_itself(case: Case) -> bool:
    """Whether a judgement is found by the task's own words, too, beside the prompt's hash."""
    return case.scheme is not None and bool(case.scheme.role or any(one.description for one in case.dimensions))


@dataclass(frozen=True)
class Pictures:
    """Those that could be loaded, in the order of the case; of how many; what was wrong with the others; and which of
    the case's images the loaded ones are."""

    frames: tuple[Frame, ...]
    named: int
    flags: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def hashes(self) -> list[JsonValue]:
        """What a judgement is found by: other pictures are another one."""
        return [hashlib.sha256(one.jpeg).hexdigest() for one in self.frames]

    @property
    def evidence(self) -> dict[str, JsonValue]:
        """For the record."""
        shown: dict[str, JsonValue] = {"named": self.named, "shown": len(self.frames)}
        return {"images": shown | ({"problems": list(self.problems)} if self.problems else {})}


async def look(case: Case, shows: bool = True) -> Pictures:
    """Loads a case's pictures, unless none is to be shown. One that can't be loaded is left out, and said; no error is
    raised."""
    if not case.images:
        return Pictures((), 0)
    if not shows:
        return Pictures((), len(case.images), (IMAGES_UNSEEN,))
    if case.image_root is None:
        return Pictures((), len(case.images), (IMAGES_ABSENT,))
    return await asyncio.to_thread(
        _load, case.image_root, case.images, case.scans, _LABELS.get(case.language, _LABELS["en"])
    )


def _load(root: Path, names: tuple[str, ...], scans: tuple[Scan | None, ...], label: str) -> Pictures:
    frames, problems, places = [], [], []
    shown = zip(names, scans or [None] * len(names), strict=True)
    for place, (name, scan) in enumerate(shown, start=1):
        try:
            file = locate(root, name)
            stamp = file.stat()
            jpeg = _jpeg(file, scan, stamp.st_mtime_ns, stamp.st_size)
        except InputError as error:
            problems.append(str(error))
        else:
            frames.append(Frame(jpeg, None, label.format(place=place, count=len(names))))
            places.append(place - 1)
    return Pictures(tuple(frames), len(names), (IMAGES_BROKEN,) if problems else (), tuple(problems), tuple(places))


@lru_cache(maxsize=128)
def _jpeg(file: Path, scan: Scan | None, changed_ns: int, size: int) -> bytes:  # noqa: ARG001 - a file that changed is read again
    """A picture as it is sent; several systems answer to the same one, and several members look at it."""
    return encode(read_image(file, scan), None, _PICTURES)
