"""The judge `rating-judge`: every dimension in one reply, by the task's own rules.

After the organisers' judge of MEDIQA-EVAL (Ben Abacha and Yim 2026, section 4.2): pictures first, references by how
reliable they are, scores rounded to the task's grid.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from proctor.core import VoteBook
from proctor.judges.dimensions.asking import CaseAsker, load_prompts, rating_form
from proctor.judges.dimensions.case import Case, DimensionScores
from proctor.judges.dimensions.protocol import DimensionJudge, JudgeSetup, NoOptions, RatesDimensions, read_options
from proctor.models import ModelClient

PERSONAS = ("diagnostic-consistency", "clinical-safety", "professional-communication")
"""With what eye a judge of a panel looks at every dimension."""

NAME = "rating-judge"


class RatingJudge:
    """Asks one model for a score on each dimension, and keeps the reply as a vote.

    The scores are rounded to the task's grid; rules are checked on the scores that are handed in (the vote's flags on what the
    model said), and a break is counted and corrects nothing. `kind` is the name of a task's
    own judge of this form, `variant` tells the members of an ensemble apart, `folder` holds the task's own prompts.
    """

    def __init__(
        self,
        client: ModelClient,
        votes: VoteBook,
        *,
        kind: str = NAME,
        persona: str = "",
        variant: str = "",
        folder: Path | None = None,
    ) -> None:
        self._client = client
        self._variant = variant or persona
        self._kind = kind
        prompts = load_prompts("rating", folder)
        self._asker = CaseAsker(kind, self.name, client, votes, prompts, {"persona": persona})

    @property
    def name(self) -> str:
        """With the model, and the variant where there is one."""
        return f"{self._kind}{f'/{self._variant}' if self._variant else ''}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, and the prompts."""
        return {**self._client.settings, **self._asker.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        form = rating_form(case.dimensions)
        heard = await self._asker.ask(case, form, flags=lambda said: case.breaks(said.scores))
        if heard.value is None or heard.vote is None:
            return DimensionScores.none(case, heard.reason, flags=heard.flags)
        values = {name: case.rounded(value) for name, value in heard.value.scores.items()}
        return DimensionScores(
            values=values,
            breaks=case.breaks(values),
            flags=heard.flags,
            evidence=({"judge": self.name, "reason": heard.value.reason, **heard.pictures.evidence},),
            votes=(heard.vote.key,),
        )


def rating_judge(name: str, setup: JudgeSetup) -> DimensionJudge:
    """The judge under this name, at temperature 0 where the model's settings name no other. Raises
    `ConfigurationError` unless there is exactly one model."""
    read_options(name, NoOptions, setup.options)
    client = setup.clients.client(setup.clients.only(name), {"temperature": 0.0})
    return RatingJudge(client, setup.votes, kind=name, folder=setup.prompts)


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension in one reply, pictures first, by the task's rules."""
    return rating_judge(NAME, setup)
