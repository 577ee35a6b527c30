"""The judge that asks a model for ratings: a prompt template, a rating scale, and contexts that the prompt contains besides
the case."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, create_model

from proctor.core import Dimension, Frame, FrozenModel, InfrastructureError, InputError, JudgementCache, Scan
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
from proctor.judges.passage_index import CITES_UNSEEN, Match, passage_records
from proctor.judges.prompt_injection import FENCE_CLOSE, FENCE_OPEN, sanitize
from proctor.media import MediaSettings, encode, locate, read_image
from proctor.models import ModelClient, Part, Reply

Filled = Mapping[str, JsonValue]

_PICTURES = MediaSettings(max_side=1024, quality=90)
_LABELS = {"en": "Picture {position} of {count}", "zh": "照片 {position}/{count}"}


class Rated(FrozenModel):
    """Your rating of the candidate."""

    model_config = ConfigDict(strict=True, serialize_by_alias=True)

    @property
    def scores(self) -> dict[str, float]:
        """The scores by dimension."""
        fields = self.model_dump()
        return {name: float(value) for name, value in fields.items() if name not in {"reason", "cited"}}

    @property
    def reason(self) -> str:
        """The judge's reason; empty if the form has none."""
        return str(self.model_dump().get("reason", ""))

    @property
    def cited(self) -> tuple[int, ...]:
        """The numbers of the passages that the rating rests on, each once; empty if the form has none."""
        return tuple(dict.fromkeys(self.model_dump().get("cited", ())))


def _as_whole(value: object) -> object:
    """1.0 counts as an integer in JSON, and in the schema that the model was given."""
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
    """The form of a rating on these dimensions: any number on the scale, or with `only_levels` one of the levels.

    With `whole`, the reply gives the index of the level (0, 1, 2 …), which is one character. With `cites`, it lists the
    numbers of the passages that the rating rests on; the numbers are not checked.

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
    for position, one in enumerate(dimensions):
        kind, about = _number(one, only_levels=only_levels, whole=whole)
        fields[f"score_{position}"] = (kind, Field(alias=one.name, **about))
    form: type[Rated] = create_model("Rating", __base__=Rated, __doc__=Rated.__doc__, **fields)
    return form


def _number(dimension: Dimension, *, only_levels: bool, whole: bool) -> tuple[Any, Mapping[str, Any]]:
    if whole:
        return _WHOLE, {"ge": 0, "le": len(dimension.levels) - 1}
    if dimension.is_flag:
        return _WHOLE, {"ge": 0, "le": 1}
    if not only_levels:
        return float, {"ge": dimension.levels[0], "le": dimension.levels[-1]}

    def known(value: float) -> float:
        if value not in dimension.levels:
            raise ValueError(f"expected one of {', '.join(f'{level:g}' for level in dimension.levels)}")
        return value

    return Annotated[float, AfterValidator(known)], {"json_schema_extra": {"enum": list(dimension.levels)}}


@dataclass(frozen=True)
class RatingScale:
    """The scale on which a model rates, and how its reply is read.

    `template` is the kind of prompt and `fill` its values for every case. `asked` gives the dimensions of a case that the
    model rates, `stored` the form of its reply on these (with or without cited passages). `read` turns the reply into
    scores with evidence, `breaks` names the rules that the reply breaks as the model gave it. `settings` are other
    settings that change the scores. `built_in` is the folder of the prompt for any task (see `load_prompts`)."""

    template: str
    fill: Filled
    stored: Callable[[tuple[Dimension, ...], bool], StoredReply[Any]]
    read: Callable[[Case, Any], DimensionScores]
    asked: Callable[[Case], tuple[Dimension, ...]] = lambda case: case.dimensions
    breaks: Callable[[Case, Any], tuple[str, ...]] = lambda _case, _reply: ()
    settings: Filled = field(default_factory=dict)
    built_in: Path | None = None


def _rounded_scores(case: Case, rated: Rated) -> DimensionScores:
    values = {name: case.rounded(value) for name, value in rated.scores.items()}
    return DimensionScores(values=values, breaks=case.breaks(values), evidence=({"reason": rated.reason},))


def _levels_asked(case: Case) -> tuple[Dimension, ...]:
    derived = {dimension.dimension for dimension in case.scheme.derived} if case.scheme else set()
    return tuple(dimension for dimension in case.dimensions if dimension.name not in derived)


def _derived_scores(case: Case, rated: Rated) -> DimensionScores:
    levels = rated.scores
    levels |= case.scheme.derive(levels, case.language) if case.scheme else {}
    values = {dimension.name: levels[dimension.name] for dimension in case.dimensions}
    return DimensionScores(values=values, evidence=({"reason": rated.reason},))


RATING = RatingScale(
    "rating",
    {"persona": ""},
    lambda dimensions, cites: as_said(rating_form(dimensions, cites=cites)),
    _rounded_scores,
    breaks=lambda case, rated: case.breaks(rated.scores),
)
"""Any number on each dimension, rounded to the task's grid. Broken rules are counted, never corrected: in the scores
after rounding, in the judgement's flags before."""

RUBRIC = RatingScale(
    "rubric",
    {"low": "0", "middle": "0.5", "high": "1", "whole": False, "with_reason": True},
    lambda dimensions, _: as_said(rating_form(dimensions, only_levels=True)),
    _derived_scores,
    asked=_levels_asked,
)
"""One of the described levels on each dimension that is not derived from other dimensions."""

UNREFERENCED = replace(RUBRIC, template="unreferenced", fill={"low": "0", "middle": "0.5", "high": "1"})
"""The same without reference answers, by a rubric that rests on the question, the pictures and the model's knowledge."""


@dataclass(frozen=True)
class Context:
    """What a prompt contains besides the case: its values (`fill`, already sanitized), the `evidence` of them, `flags`
    for people, the keys of judgements behind it (`judgements`), and `passages` for the reply to cite, if any."""

    fill: Filled = field(default_factory=dict)
    evidence: Filled = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    judgements: tuple[str, ...] = ()
    passages: tuple[Match, ...] | None = None

    def __add__(self, other: Context) -> Context:
        return Context(
            {**self.fill, **other.fill},
            {**self.evidence, **other.evidence},
            (*self.flags, *other.flags),
            (*self.judgements, *other.judgements),
            self.passages if other.passages is None else other.passages,
        )

    def stored(self, reply: StoredReply[Any]) -> StoredReply[Any]:
        """A reply that is stored with the context's passages, if it has any."""
        form = reply.form
        return reply if self.passages is None or form is None else with_passages(form, self.passages)

    def cited(self, rated: Any) -> Context:
        """The context with what a reply cites of its passages."""
        if self.passages is None:
            return self
        unseen = any(not 1 <= number <= len(self.passages) for number in rated.cited)
        cited: dict[str, JsonValue] = {"cited": [*rated.cited], "passages": passage_records(self.passages, rated.cited)}
        flags = (*self.flags, *((CITES_UNSEEN,) if unseen else ()))
        return replace(self, evidence=cited | dict(self.evidence), flags=flags)


def with_passages(form: type[Any], passages: Sequence[Match]) -> StoredReply[Any]:
    """A reply that names passages in `cited`, stored with these."""

    def dump(reply: Reply[Any]) -> dict[str, JsonValue]:
        return {"reply": reply.value.model_dump(mode="json"), "passages": passage_records(passages, reply.value.cited)}

    return StoredReply(form, dump, lambda kept: form.model_validate(kept.get("reply")))


class ContextProvider(Protocol):
    """Finds a context for each case; `cites` says whether the reply lists passages of it."""

    cites: bool

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes the contexts."""

    async def context(self, case: Case) -> Context:
        """The context of a case. Raises `InfrastructureError` where a model that it needs does not reply, and
        `InputError` for a case that it can't serve."""


class ShownCase(FrozenModel):
    """The parts of a case that a judge is shown, and whether it gives a reason; experiments leave some out."""

    references: bool = True
    images: bool = True
    reason: bool = True

    @property
    def variant(self) -> str:
        """The parts that are left out, such as "no-references+no-reason"."""
        return "+".join(f"no-{name}" for name in ShownCase.model_fields if not getattr(self, name))

    def of(self, case: Case) -> Case:
        """The case without the parts that are left out."""
        references = case.references if self.references else ()
        images, scans = (case.images, case.scans) if self.images else ((), ())
        return replace(case, references=references, images=images, scans=scans)

    def scale(self, scale: RatingScale) -> RatingScale:
        """The scale, without a reason if that is left out."""
        if self.reason:
            return scale
        return replace(
            scale,
            fill={**scale.fill, "with_reason": False},
            stored=lambda dimensions, cites: as_said(rating_form(dimensions, cites=cites, reason=False)),
        )


EVERYTHING = ShownCase()


@dataclass(frozen=True)
class RatingRequest:
    """One request for ratings: the system message, pictures and text, the dimensions that are asked for, the hash of the
    prompt, and the task's own wording in it."""

    system: str
    parts: tuple[Part, ...]
    asked: tuple[Dimension, ...]
    prompt_sha256: str
    wording: Filled


def rating_request(
    scale: RatingScale, prompts: Prompts, case: Case, pictures: Pictures, fill: Filled | None = None
) -> RatingRequest:
    """The request about a case, not yet sent. Raises `InputError` for a language without a prompt, and for a dimension
    that the prompt does not mention."""
    prompt = prompt_for(prompts, case.id, case.language)
    asked = scale.asked(case)
    wording = wording_of(case, asked)
    filled = {
        **(scale.fill if fill is None else fill),
        "query": sanitize(case.query),
        "references": [sanitize(reference.text) for reference in case.sorted_references],
        "candidate": sanitize(case.candidate),
        "images_named": pictures.named,
        "images_shown": len(pictures.frames),
        "fence_open": FENCE_OPEN,
        "fence_close": FENCE_CLOSE,
    }
    system, user = prompt.render(**filled | wording)
    for dimension in asked:
        if dimension.name not in system:
            raise InputError(prompt.name, found=f"nothing about {dimension.name!r}", expected="every dimension")
    return RatingRequest(system, (*pictures.frames, user), asked, prompt.sha256, wording)


class ModelJudge:
    """Asks one model for every dimension of a case in one reply, pictures first.

    `kind` is the judge's name, `variant` distinguishes the members of an ensemble, `prompts` is the folder of the task's
    own prompts, `shown` says which parts of a case the model is shown.
    """

    def __init__(
        self,
        kind: str,
        client: ModelClient,
        judgements: JudgementCache,
        *,
        scale: RatingScale = RATING,
        contexts: Sequence[ContextProvider] = (),
        variant: str = "",
        prompts: Path | None = None,
        shown: ShownCase = EVERYTHING,
    ) -> None:
        scale, named = shown.scale(scale), "+".join(filter(None, (variant, shown.variant)))
        self.name = f"{kind}{f'/{named}' if named else ''}[{client.name}]"
        self._shown = shown
        self._kind, self._client, self._scale, self._contexts = kind, client, scale, tuple(contexts)
        self._model = CachedModel(self.name, client, judgements)
        self._prompts = load_prompts(scale.template, prompts, scale.built_in)
        self._fill = {**scale.fill, **({"cites": True} if any(context.cites for context in contexts) else {})}

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The settings of the model and of each context, and the hashes of the prompts."""
        found = {
            **self._client.settings,
            "prompt_sha256": prompt_hashes(self._prompts),
            **self._fill,
            **self._scale.settings,
        }
        for context in self._contexts:
            found |= context.settings
        return found

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`). Raises as `rating_request`."""
        case, context = self._shown.of(case), Context()
        try:
            for provider in self._contexts:
                context += await provider.context(case)
        except InfrastructureError as error:
            return DimensionScores.none(case, str(error), flags=injection_flags(case))
        pictures = await self._look(case)
        flags = (*injection_flags(case), *pictures.flags)
        try:
            rated, key = await self._ask(case, context, pictures, flags)
        except InfrastructureError as error:
            missing = DimensionScores.none(case, str(error), flags=(*flags, *context.flags))
            evidence = ({"judge": self.name, **context.evidence},) if context.evidence else ()
            return replace(missing, evidence=evidence, judgements=context.judgements)
        context, scores = context.cited(rated), self._scale.read(case, rated)
        return replace(
            scores,
            flags=(*flags, *context.flags),
            evidence=({"judge": self.name, **scores.evidence[0], **context.evidence, **pictures.evidence},),
            judgements=(*context.judgements, key),
        )

    async def _look(self, case: Case) -> Pictures:
        return await look(case)

    async def _ask(self, case: Case, context: Context, pictures: Pictures, flags: tuple[str, ...]) -> tuple[Any, str]:
        """The reply, and the key of its judgement."""
        request = rating_request(self._scale, self._prompts, case, pictures, {**self._fill, **context.fill})
        references: list[JsonValue] = [reference.text for reference in case.sorted_references]
        rated, judgement = await self._model.ask(
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
            flags=lambda rated: (*self._scale.breaks(case, rated), *context.cited(rated).flags, *flags),
        )
        return rated, judgement.key


def wording_of(case: Case, asked: Sequence[Dimension]) -> dict[str, JsonValue]:
    """The task's own wording for a prompt that serves any task: role, dimensions and rules."""
    rules: list[JsonValue] = []
    for rule in case.scheme.rules if case.scheme else ():
        others = ", ".join(rule.others)
        limit = f"the highest of {others}" if rule.limit is None else f"{rule.limit:g}"
        where = "" if rule.where is None else f" where any of {others} is {rule.where:g} or less"
        rules.append(f"{rule.dimension} is at most {limit}{where}.")
    return {
        "role": case.scheme.role if case.scheme else "",
        "dimensions": [
            {
                "name": dimension.name,
                "description": dimension.description,
                "low": f"{dimension.levels[0]:g}",
                "high": f"{dimension.levels[-1]:g}",
                "flag": dimension.is_flag,
                "levels": [f"{level:g}" for level in dimension.levels],
            }
            for dimension in asked
        ],
        "rules": rules,
    }


def words_itself(case: Case) -> bool:
    """Whether the task's own wording is part of a judgement's key, besides the prompt's hash."""
    return case.scheme is not None and bool(
        case.scheme.role or any(dimension.description for dimension in case.dimensions)
    )


@dataclass(frozen=True)
class Pictures:
    """The pictures of a case that could be loaded (`frames`), how many it names, problems with the others, and the
    indices of the loaded ones among the case's images (`positions`)."""

    frames: tuple[Frame, ...]
    named: int
    flags: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()

    @property
    def hashes(self) -> list[JsonValue]:
        """The hashes of the pictures, part of a judgement's key."""
        return [hashlib.sha256(frame.jpeg).hexdigest() for frame in self.frames]

    @property
    def evidence(self) -> dict[str, JsonValue]:
        """The counts and problems as evidence."""
        shown: dict[str, JsonValue] = {"named": self.named, "shown": len(self.frames)}
        return {"images": shown | ({"problems": list(self.problems)} if self.problems else {})}


async def look(case: Case, shows: bool = True) -> Pictures:
    """Loads a case's pictures, or none if not `shows`. A picture that can't be loaded is left out and named in the
    problems; no error is raised."""
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
    frames, problems, positions = [], [], []
    shown = zip(names, scans or [None] * len(names), strict=True)
    for position, (name, scan) in enumerate(shown, start=1):
        try:
            file = locate(root, name)
            stamp = file.stat()
            jpeg = _jpeg(file, scan, stamp.st_mtime_ns, stamp.st_size)
        except InputError as error:
            problems.append(str(error))
        else:
            frames.append(Frame(jpeg, None, label.format(position=position, count=len(names))))
            positions.append(position - 1)
    return Pictures(tuple(frames), len(names), (IMAGES_BROKEN,) if problems else (), tuple(problems), tuple(positions))


@lru_cache(maxsize=128)
def _jpeg(file: Path, scan: Scan | None, changed_ns: int, size: int) -> bytes:  # noqa: ARG001 - a file that changed is read again
    """A picture as it is sent to the model. It is cached because several answers and judges share it."""
    return encode(read_image(file, scan), None, _PICTURES)
