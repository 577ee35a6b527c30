"""The judge `retrieval-judge`: reads passages of documents beside the references, and says which it went by.

After the retrieval of SUAT-BMI (passages that go with each reference answer) and SloCal-Net (Peng et al.,
Kocbek et al. 2026; sections 6.1 and 6.2 of the overview). What is looked up follows from the question and the
references alone: all answers to a question are rated beside the same passages, and none can choose its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, JsonValue

from proctor.core import ConfigurationError, InfrastructureError, InputError, VoteBook
from proctor.judges.dimensions.asking import CaseAsker, Rated, load_prompts, rating_form
from proctor.judges.dimensions.case import Case, DimensionScores, injection_flags
from proctor.judges.dimensions.exemplars import Exemplars, shown
from proctor.judges.dimensions.few_shot import ExemplarOptions, exemplars_from, told_of, without_own
from proctor.judges.dimensions.looking_up import (
    AsksForCited,
    Cited,
    RetrievalOptions,
    Retriever,
    cited_form,
    passage_flags,
    passages_told,
    retriever_from,
    shown_in_prompt,
)
from proctor.judges.dimensions.protocol import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.judges.retrieval.reranking import Ranked, Sought
from proctor.models import ModelClient

NAME = "retrieval-judge"

_REFERENCES = 5  # the most reliable ones: each of them is looked up


class RetrievalJudge:
    """Asks one model for a score on each dimension, beside passages; with exemplars also after rated examples.
    The vote keeps the passages, and which of them the reply cites."""

    def __init__(
        self,
        client: ModelClient,
        votes: VoteBook,
        retriever: Retriever,
        exemplars: Exemplars | None = None,
        folder: Path | None = None,
    ) -> None:
        self._client = client
        self._retriever = retriever
        self._exemplars = exemplars
        prompts = load_prompts("rating", folder)
        self._asker = CaseAsker(NAME, self.name, AsksForCited(client), votes, prompts, {"persona": "", "cites": True})

    @property
    def name(self) -> str:
        """With the model."""
        return f"{NAME}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, the prompts, what is looked up where, and how exemplars are chosen."""
        exemplars = self._exemplars.settings if self._exemplars else {}
        return {**self._client.settings, **self._asker.settings, **self._retriever.settings, **exemplars}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        chosen = without_own(self._exemplars.of(case), case, self.name) if self._exemplars else ()
        try:
            queries, sought = sought_for(case)
            found = await self._retriever.find(queries, sought)
        except InfrastructureError as error:
            return DimensionScores.none(case, str(error), flags=injection_flags(case))
        more: dict[str, JsonValue] = {"passages": shown_in_prompt(found.matches)}
        if self._exemplars:
            more["exemplars"] = [shown(one) for one in chosen]
        form = rating_form(case.dimensions, cites=True)

        def flags(said: Cited) -> tuple[str, ...]:
            rated = form.model_validate(said.reply)
            return (*case.breaks(rated.scores), *passage_flags(case, found.matches, rated.cited))

        heard = await self._asker.ask(case, cited_form(form, found.matches), more=more, flags=flags)
        if heard.value is None or heard.vote is None:
            shown_flags = passage_flags(case, found.matches, ())
            return DimensionScores.none(case, heard.reason, flags=(*heard.flags, *shown_flags))
        rated = form.model_validate(heard.value.reply)
        told = {**self._told(rated, found), **(told_of(chosen) if chosen else {}), **heard.pictures.evidence}
        values = {name: case.rounded(value) for name, value in rated.scores.items()}
        return DimensionScores(
            values=values,
            breaks=case.breaks(values),
            flags=(*heard.flags, *passage_flags(case, found.matches, rated.cited)),
            evidence=(told,),
            votes=(*found.votes, heard.vote.key),
        )

    def _told(self, rated: Rated, found: Ranked) -> Mapping[str, JsonValue]:
        passages: list[JsonValue] = [*passages_told(found.matches, rated.cited)]
        cited: list[JsonValue] = [*rated.cited]
        return {"judge": self.name, "reason": rated.reason, "cited": cited, "passages": passages}


def sought_for(case: Case) -> tuple[list[str], Sought]:
    """What is looked up for a case: its question, and each of its most reliable references."""
    references = [one.text for one in case.sorted_references[:_REFERENCES]]
    text = "\n".join([case.query, *(f"- {one}" for one in references)])
    return [case.query, *references], Sought(text, case.language, case.id)


class _Options(RetrievalOptions, ExemplarOptions):
    shots: int = Field(default=4, ge=0, le=24)


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension in one reply, beside passages of documents; with --rated after rated examples too.

    Options: documents=FOLDER, index, passages=4, rerank=model (or none, or a cross-encoder's folder), encoder,
    size=160, overlap=32 (words), and those of few-shot-judge. One more call for each question where the model puts
    passages in order. Raises `ConfigurationError` unless there is exactly one model, and without the extra
    `retrieval`; `InputError` for documents or an index that can't be read.
    """
    options = read_options(NAME, _Options, setup.options)
    client = setup.clients.client(setup.clients.only(NAME), {"temperature": 0.0})
    asked = sorted({"shots", "select", "exemplars", "seed"} & options.model_fields_set)
    exemplars: Exemplars | None = None
    if setup.rated and options.shots:
        exemplars = exemplars_from(NAME, setup, options)
    elif asked and not setup.rated:
        raise ConfigurationError(f"{NAME}: option {asked[0]!r} needs rated answers (--rated FILE)")
    elif options.exemplars is not None:
        raise InputError(NAME, "option 'exemplars'", expected="none with shots=0")
    retriever = retriever_from(NAME, setup, client, options)
    return RetrievalJudge(client, setup.votes, retriever, exemplars, setup.prompts)
