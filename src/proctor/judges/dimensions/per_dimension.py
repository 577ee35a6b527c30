"""The judge `per-dimension`: for each dimension the judge that did best on rated answers.

After SUAT-BMI's final system (Peng et al. 2026, in section 6.1 of the overview), which took one dimension's
scores from a trained classifier, another's from retrieval, the others' from examples. Who judges what is a
file that `proctor judge choose` wrote. Scores are those that the chosen judges gave before, or come from judges that are
run now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import ConfigurationError, InputError, ProctorError, content_hash
from proctor.judges.dimensions.case import Case, DimensionScores, injection_flags
from proctor.judges.dimensions.choosing import DimensionChoice, read_choice
from proctor.judges.dimensions.protocol import DimensionJudge, JudgesAll, JudgeSetup, RatesDimensions, read_options

NAME = "per-dimension"


class RecordedJudge:
    """A judge that says again what it gave before."""

    def __init__(self, name: str, given: Mapping[Case, Mapping[str, float]]) -> None:
        self.name = name
        self._given = given

    @property
    def settings(self) -> dict[str, JsonValue]:
        """How many answers it scored, and a hash of the scores."""
        told: list[JsonValue] = [[case.id, case.candidate, dict(one)] for case, one in self._given.items()]
        return {"recorded": len(told), "scores_sha256": content_hash(told)}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores that were given (see `DimensionJudge`); missing is what it gave no score for."""
        given = self._given.get(case, {})
        return DimensionScores(
            values={one.name: given[one.name] for one in case.dimensions if one.name in given},
            missing={one.name: f"{self.name} has no score" for one in case.dimensions if one.name not in given},
            flags=injection_flags(case),
        )


class PerDimensionJudge:
    """Takes each dimension's score from the judge that was chosen for it. A judge that was chosen for none of a
    case's dimensions is not asked about it. Raises `InputError` where one that was chosen is not there."""

    def __init__(self, choice: DimensionChoice, judges: Mapping[str, DimensionJudge]) -> None:
        self._choice = choice
        self._judges = dict(judges)
        lacking = [name for name in choice.needed if name not in self._judges]
        if lacking:
            given = ", ".join(self._judges) or "none"
            raise InputError(NAME, found=f"the judges {given}", expected=f"{', '.join(lacking)} too, as chosen")

    @property
    def name(self) -> str:
        """With the choice, since another choice is another judge."""
        return f"{NAME}[{self._choice.sha256[:8]}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The choice, and the settings of the judges that it needs."""
        judges: dict[str, JsonValue] = {name: self._judges[name].settings for name in self._choice.needed}
        return {"choice_sha256": self._choice.sha256, "judges": judges}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`); the evidence says who gave which."""
        by = {one.name: self._choice.judge_for(case.encounter, case.language, one.name) for one in case.dimensions}
        names = list(dict.fromkeys(by.values()))
        try:
            async with asyncio.TaskGroup() as tasks:
                asked = [tasks.create_task(self._judges[name].judge(case)) for name in names]
        except* ProctorError as errors:
            raise errors.exceptions[0] from None
        said = {name: task.result() for name, task in zip(names, asked, strict=True)}
        values = {one: said[name].values[one] for one, name in by.items() if one in said[name].values}
        missing = {one: said[name].missing[one] for one, name in by.items() if one not in values}
        evidence: list[Mapping[str, JsonValue]] = [{"given by": dict(by)}]
        for name, scores in said.items():
            own: list[JsonValue] = [dict(one) for one in scores.evidence]
            evidence += [{"judge": name, "evidence": own}] if own else []
        return DimensionScores(
            values=values,
            missing=missing,
            breaks=case.breaks(values),
            flags=tuple(dict.fromkeys(flag for one in said.values() for flag in one.flags)),
            disagreement={
                one: said[name].disagreement[one] for one, name in by.items() if one in said[name].disagreement
            },
            evidence=tuple(evidence),
            votes=tuple(key for one in said.values() for key in one.votes),
        )


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    choice: Path
    judges: str = ""


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Each dimension by the judge that did best on rated answers (`proctor judge choose`).

    Options: choice=FILE; judges=few-shot-judge,rubric-judge, run now, with JUDGE.OPTION=VALUE for theirs. All others
    that were chosen have scored the answers before. Raises `InputError` where a judge that was chosen is in neither,
    and for a file that can't be read; `ConfigurationError` for a judge that takes all answers at once.
    """
    own = {name: value for name, value in setup.options.items() if "." not in name}
    options = read_options(NAME, _Options, own)
    choice = read_choice(options.choice)
    found: dict[str, DimensionJudge] = {}
    live = [one.strip() for one in options.judges.split(",") if one.strip()]
    for key in setup.options:
        if "." in key and key.partition(".")[0] not in live:
            raise InputError(NAME, f"option {key!r}", expected="options of the judges that are run now")
    if len(set(live)) < len(live):
        raise InputError(NAME, "option 'judges'", found=options.judges, expected="each judge once")
    for name in live:
        judge = _live(name, setup)
        chosen = judge.name if judge.name in choice.needed else name
        if chosen in choice.needed:  # of others nothing would be taken
            found[chosen] = judge
    for name in choice.needed:
        if name not in found and setup.recorded is not None:
            given = setup.recorded(name)
            if given:
                found[name] = RecordedJudge(name, given)
    return PerDimensionJudge(choice, found)


def _live(name: str, setup: JudgeSetup) -> DimensionJudge:
    """A judge that is run now. Raises `InputError` for one that does not rate dimensions."""
    from proctor.judges.registry import JUDGES

    start = f"{name}."
    theirs = {key.removeprefix(start): value for key, value in setup.options.items() if key.startswith(start)}
    factory = JUDGES.get(name)
    if not isinstance(factory, RatesDimensions):
        raise InputError(NAME, "option 'judges'", found=repr(name), expected="judges of dimensions")
    judge = factory(replace(setup, options=theirs))
    if isinstance(judge, JudgesAll):
        raise ConfigurationError(
            f"{NAME}: {name} takes all answers at once: score with it first, and leave it out of judges"
        )
    return judge
