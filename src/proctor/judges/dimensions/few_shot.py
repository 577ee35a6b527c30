"""The judge `few-shot-judge`: sees how physicians rated other answers before it rates one.

After SUAT-BMI (Peng et al. 2026, in section 6.1 of the overview). The prompt is that of `rating-judge` with
rated answers before the case: those most like it, those that spread over the scale, or those that a search
on held-out encounters found to serve best. None is to a question of the encounter that is judged, in
either language.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import ConfigurationError, InputError, ProctorError, VoteBook
from proctor.judges.dimensions.asking import CaseAsker, load_prompts, rating_form
from proctor.judges.dimensions.case import Case, DimensionScores, RatedCase
from proctor.judges.dimensions.exemplars import (
    CoveringExemplars,
    Exemplars,
    RatedPool,
    SimilarExemplars,
    case_mark,
    shown,
)
from proctor.judges.dimensions.protocol import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.judges.dimensions.searching import SearchedExemplars, read_search
from proctor.models import ModelClient

NAME = "few-shot-judge"


class FewShotJudge:
    """Asks one model for a score on each dimension, after rated examples; scores are snapped to 0.05, and
    rule breaks are counted."""

    def __init__(self, client: ModelClient, votes: VoteBook, exemplars: Exemplars, folder: Path | None = None) -> None:
        self._client = client
        self._exemplars = exemplars
        self._asker = CaseAsker(NAME, self.name, client, votes, load_prompts("rating", folder), {"persona": ""})

    @property
    def name(self) -> str:
        """With the model."""
        return f"{NAME}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, the prompts, and how exemplars are chosen."""
        return {**self._client.settings, **self._asker.settings, **self._exemplars.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        chosen = without_own(self._exemplars.of(case), case, self.name)
        more: dict[str, JsonValue] = {"exemplars": [shown(one) for one in chosen]}
        heard = await self._asker.ask(
            case, rating_form(case.dimensions), more=more, flags=lambda said: case.breaks(said.scores)
        )
        if heard.value is None or heard.vote is None:
            return DimensionScores.none(case, heard.reason, flags=heard.flags)
        said: dict[str, JsonValue] = {"judge": self.name, "reason": heard.value.reason}
        values = {name: case.rounded(value) for name, value in heard.value.scores.items()}
        return DimensionScores(
            values=values,
            breaks=case.breaks(values),
            flags=heard.flags,
            evidence=({**said, **told_of(chosen), **heard.pictures.evidence},),
            votes=(heard.vote.key,),
        )


def without_own(chosen: tuple[RatedCase, ...], case: Case, judge: str) -> tuple[RatedCase, ...]:
    """The exemplars as they are. Raises `ProctorError` for one of the encounter that is judged, no matter who chose
    it: its ratings would give the answer away."""
    own = next((one for one in chosen if one.case.encounter == case.encounter), None)
    if own is not None:
        raise ProctorError(f"{judge}: {case.id}: an exemplar of its own encounter ({own.case.id})")
    return chosen


def told_of(chosen: tuple[RatedCase, ...]) -> dict[str, JsonValue]:
    """Exemplars for the record: question and hash of the answer."""
    return {"exemplars": [{"item": one.case.id, "mark": case_mark(one.case)} for one in chosen]}


class ExemplarOptions(BaseModel):
    """How exemplars are chosen: `select` among the rated answers, or as `exemplars` says, a file that
    `proctor judge examples` wrote. `encoder` (a name as in `load_sentence_encoder`) compares meanings
    instead of words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    select: Literal["similar", "coverage"] = "similar"
    shots: int = Field(default=4, ge=1, le=24)
    exemplars: Path | None = None
    encoder: str = ""
    seed: int = 0


def exemplars_from(judge: str, setup: JudgeSetup, options: ExemplarOptions) -> Exemplars:
    """The chooser. Raises `ConfigurationError` without rated answers, `InputError` for options that contradict
    each other and for a file that is not of these rated answers."""
    if not setup.rated:
        raise ConfigurationError(f"{judge}: expected rated answers to learn from, found none (--rated FILE)")
    pool = RatedPool(setup.rated)
    if options.exemplars is not None:
        set_too = sorted({"select", "shots", "encoder", "seed"} & options.model_fields_set)
        if set_too:
            raise InputError(judge, f"option {set_too[0]!r}", expected="none beside exemplars, which says it")
        return SearchedExemplars(pool, read_search(options.exemplars), options.exemplars)
    if options.select == "coverage":
        if options.encoder:
            raise InputError(judge, "option 'encoder'", expected="none with select=coverage")
        return CoveringExemplars(pool, options.shots, options.seed)
    if not options.encoder:
        return SimilarExemplars(pool, options.shots)
    from proctor.judges.retrieval.index import load_sentence_encoder

    return SimilarExemplars(pool, options.shots, load_sentence_encoder(options.encoder))


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension in one reply, after rated examples of other encounters (needs --rated).

    Options: select=similar or coverage, shots=4, encoder, seed, or exemplars=FILE (a search's result).
    Temperature 0 where the model's settings name no other. Raises `ConfigurationError` unless there is
    exactly one model and there are rated answers.
    """
    options = read_options(NAME, ExemplarOptions, setup.options)
    client = setup.clients.client(setup.clients.only(NAME), {"temperature": 0.0})
    return FewShotJudge(client, setup.votes, exemplars_from(NAME, setup, options), setup.prompts)
