"""The judge `per-dimension`: for each dimension the judge that did best on rated answers.

After SUAT-BMI's final system (Peng et al. 2026, in section 6.1 of the overview), which took one dimension's
scores from a trained classifier, another's from retrieval, the others' from examples. Who judges what is a
file that `proctor judge choose` wrote. Scores come from submissions, or from judges that are run now.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import ConfigurationError, InputError, ProctorError
from proctor.core.files import read_bytes
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.choosing import DimensionChoice, read_choice
from proctor.judges.dimensions.protocol import (
    DIMENSION_JUDGES,
    DimensionJudge,
    JudgesAll,
    Materials,
    read_options,
)
from proctor.judges.dimensions.rules import rule_breaks
from proctor.judges.dimensions.scores import DimensionScores
from proctor.judges.dimensions.steering import steering_flags

__all__ = ["PerDimensionJudge", "RecordedJudge", "build"]

NAME = "per-dimension"


class RecordedJudge:
    """A judge that says again what a file says it gave."""

    def __init__(self, file: Path, given: Mapping[Case, Mapping[str, float]]) -> None:
        self.name = file.stem
        self._given = given
        self._sha256 = hashlib.sha256(read_bytes(file)).hexdigest()

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The hash of the file."""
        return {"file_sha256": self._sha256}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores that were given (see `DimensionJudge`); missing is what the file opted out of."""
        given = self._given.get(case, {})
        return DimensionScores(
            values={one.name: given[one.name] for one in case.dimensions if one.name in given},
            missing={
                one.name: f"{self.name} has no score" for one in case.dimensions if one.name not in given
            },
            flags=steering_flags(case),
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
            raise InputError(
                NAME, found=f"the judges {given}", expected=f"{', '.join(lacking)} too, as chosen"
            )

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
        by = {
            one.name: self._choice.judge_for(case.encounter, case.language, one.name)
            for one in case.dimensions
        }
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
            breaks=rule_breaks(values),
            flags=tuple(dict.fromkeys(flag for one in said.values() for flag in one.flags)),
            disagreement={
                one: said[name].disagreement[one]
                for one, name in by.items()
                if one in said[name].disagreement
            },
            evidence=tuple(evidence),
            votes=tuple(key for one in said.values() for key in one.votes),
        )


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    choice: Path
    submissions: str = ""
    judges: str = ""


def build(materials: Materials) -> DimensionJudge:
    """Each dimension by the judge that did best on rated answers (`proctor judge choose`).

    Options: choice=FILE; submissions=a.csv,b.csv, each called after its file; judges=few-shot-judge,rubric-judge,
    run now, with JUDGE.OPTION=VALUE for theirs. Raises `InputError` where a judge that was chosen is in
    neither, and for files that can't be read; `ConfigurationError` for a judge that takes all answers at once.
    """
    own = {name: value for name, value in materials.options.items() if "." not in name}
    options = read_options(NAME, _Options, own)
    choice = read_choice(options.choice)
    found: dict[str, DimensionJudge] = {}
    for one in _listed(options.submissions):
        if materials.recorded is None:
            raise ConfigurationError(f"{NAME}: submissions can't be read here")
        file = Path(one)
        _add(found, file.stem, RecordedJudge(file, materials.recorded(file)))
    live = _listed(options.judges)
    for key in materials.options:
        if "." in key and key.partition(".")[0] not in live:
            raise InputError(NAME, f"option {key!r}", expected="options of the judges that are run now")
    for name in live:
        start = f"{name}."
        theirs = {
            key.removeprefix(start): value
            for key, value in materials.options.items()
            if key.startswith(start)
        }
        if name not in choice.needed:
            continue  # nothing would be taken from it
        judge = DIMENSION_JUDGES.get(name)(replace(materials, options=theirs))
        if isinstance(judge, JudgesAll):
            raise ConfigurationError(
                f"{NAME}: {name} takes all answers at once: run it first, name its submission"
            )
        _add(found, name, judge)
    return PerDimensionJudge(choice, found)


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _add(found: dict[str, DimensionJudge], name: str, judge: DimensionJudge) -> None:
    if name in found:
        raise InputError(NAME, found=f"{name!r} twice", expected="each judge once, by the name of its file")
    found[name] = judge
