"""The judge `mediqa-judge`: every dimension of the task in one reply, by the task's own rules.

The organisers' judge (Ben Abacha and Yim 2026, section 4.2) in this project's words: pictures first,
references by how reliable they are, anchors on the scale, scores snapped to 0.05.
"""

from __future__ import annotations

from pydantic import JsonValue

from proctor.core import VoteBook
from proctor.judges.dimensions.asking import CaseAsker, load_prompts
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.forms import Rated, rating_form
from proctor.judges.dimensions.protocol import DimensionJudge, Materials, NoOptions, read_options
from proctor.judges.dimensions.rules import rule_breaks, snapped
from proctor.judges.dimensions.scores import DimensionScores
from proctor.models import ModelClient

__all__ = ["PERSONAS", "MediqaJudge", "build"]

PERSONAS = ("diagnostic-consistency", "clinical-safety", "professional-communication")
"""With what eye a judge of a panel looks at every dimension."""

NAME = "mediqa-judge"


class MediqaJudge:
    """Asks one model for a score on each dimension, and keeps the reply as a vote.

    The scores are snapped to 0.05; rules are checked on the scores that are handed in (the vote's flags on what the
    model said), and a break is counted and corrects nothing. `variant` tells the members of an ensemble apart.
    """

    def __init__(self, client: ModelClient, votes: VoteBook, *, persona: str = "", variant: str = "") -> None:
        self._client = client
        self._variant = variant or persona
        prompts = load_prompts("mediqa")
        self._asker = CaseAsker(NAME, self.name, client, votes, prompts, {"persona": persona})

    @property
    def name(self) -> str:
        """With the model, and the variant where there is one."""
        return f"{NAME}{f'/{self._variant}' if self._variant else ''}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, and the prompts."""
        return {**self._client.settings, **self._asker.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        form = rating_form(case.dimensions)
        heard = await self._asker.ask(case, form, flags=_breaks)
        if heard.value is None or heard.vote is None:
            return DimensionScores.none(case, heard.reason, flags=heard.flags)
        values = {name: snapped(value) for name, value in heard.value.scores.items()}
        return DimensionScores(
            values=values,
            breaks=rule_breaks(values),
            flags=heard.flags,
            evidence=({"judge": self.name, "reason": heard.value.reason, **heard.pictures.evidence},),
            votes=(heard.vote.key,),
        )


def _breaks(said: Rated) -> tuple[str, ...]:
    return rule_breaks(said.scores)


def build(materials: Materials) -> DimensionJudge:
    """Every dimension in one reply, pictures first, by the task's rules (the organisers' judge).

    Temperature 0 where the model's settings name no other. Raises `ConfigurationError` unless there is
    exactly one model.
    """
    read_options(NAME, NoOptions, materials.options)
    client = materials.clients.client(materials.clients.only(NAME), {"temperature": 0.0})
    return MediqaJudge(client, materials.votes)
