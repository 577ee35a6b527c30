"""The judge `rubric-judge`: three described levels per dimension; overall and disagreement follow from them.

After hgkai26 (Gangavarapu 2026, in section 6.5 of the overview): a discrete scale of 0, 0.5 and 1 with a
rubric, and an overall score and an indicator of disagreement that are derived. The overview does not say
how. Here overall is the lower of completeness and factual accuracy, which keeps both of the task's rules
(and is what clinicians gave in 330 of 363 ratings of the validation data), and a candidate disagrees with
the references where its factual accuracy is 0 (327 of 363). Unlike that system it is shown the references.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from proctor.core import VoteBook
from proctor.judges.dimensions.asking import CaseAsker, load_prompts, rating_form
from proctor.judges.dimensions.case import Case, DimensionScores
from proctor.judges.dimensions.protocol import DimensionJudge, JudgeSetup, NoOptions, RatesDimensions, read_options
from proctor.models import ModelClient

NAME = "rubric-judge"

_SCALE: dict[str, JsonValue] = {"low": "0", "middle": "0.5", "high": "1", "whole": False, "with_reason": True}


class RubricJudge:
    """Asks one model for a level on each dimension that is not derived."""

    def __init__(self, client: ModelClient, votes: VoteBook, folder: Path | None = None) -> None:
        self._client = client
        self._asker = CaseAsker(NAME, self.name, client, votes, load_prompts("rubric", folder), _SCALE)

    @property
    def name(self) -> str:
        """With the model."""
        return f"{NAME}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, and the prompts."""
        return {**self._client.settings, **self._asker.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        derives = {one.dimension for one in case.scheme.derived} if case.scheme else set()
        asked = tuple(one for one in case.dimensions if one.name not in derives)
        names = [one.name for one in asked]
        heard = await self._asker.ask(case, rating_form(asked, only_levels=True), names=names)
        if heard.value is None or heard.vote is None:
            return DimensionScores.none(case, heard.reason, flags=heard.flags)
        levels = heard.value.scores
        derived = case.scheme.derive(levels, case.language) if case.scheme else {}
        return DimensionScores(
            values={one.name: (levels | derived)[one.name] for one in case.dimensions},
            flags=heard.flags,
            evidence=({"judge": self.name, "reason": heard.value.reason, **heard.pictures.evidence},),
            votes=(heard.vote.key,),
        )


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Three described levels (0, 0.5, 1) per dimension; overall and disagreement are derived.

    Temperature 0 where the model's settings name no other. Raises `ConfigurationError` unless there is
    exactly one model.
    """
    read_options(NAME, NoOptions, setup.options)
    client = setup.clients.client(setup.clients.only(NAME), {"temperature": 0.0})
    return RubricJudge(client, setup.votes, setup.prompts)
