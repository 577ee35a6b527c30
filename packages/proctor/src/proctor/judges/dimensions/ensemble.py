"""Ensembles of judges: the median of scores and majority of flags, or for each dimension the judge that was best on rated
answers.

`temperature-ensemble` and `persona-ensemble` are the organisers' (Ben Abacha and Yim 2026, section 4.3);
`model-ensemble` asks several models. Each member has judgements of its own. `per-dimension` follows SUAT-BMI's final
system (Peng et al. 2026, in section 6.1 of the overview), which took one dimension's scores from a trained classifier,
another's from retrieval, and the others' from few-shot examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from pydantic import JsonValue

from proctor.core import ConfigurationError, Dimension, InputError
from proctor.judges.cached_model import several
from proctor.judges.dimensions.calibration import DimensionChoice
from proctor.judges.dimensions.case import Case, DimensionScores, injection_flags
from proctor.judges.dimensions.scorer import DimensionJudge

MemberScores = Mapping[str, DimensionScores]


class Ensemble:
    """Asks its members about a case (or those that `asked` names for it) and combines their scores by `reduce`."""

    def __init__(
        self,
        name: str,
        members: Mapping[str, DimensionJudge],
        reduce: Callable[[Case, MemberScores], DimensionScores],
        settings: Mapping[str, JsonValue],
        *,
        asked: Callable[[Case], Sequence[str]] | None = None,
    ) -> None:
        self.name = name
        self.settings = dict(settings)
        self._members = dict(members)
        self._reduce = reduce
        self._asked = asked or (lambda _: list(self._members))

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`), with each member's scores as evidence."""
        names = self._asked(case)
        said = await several(lambda name: self._members[name].judge(case), names)
        return self._reduce(case, dict(zip(names, said, strict=True)))


def median_ensemble(name: str, members: Sequence[DimensionJudge], *, quorum: int | None = None) -> Ensemble:
    """The members' median (see `pooled`). A score is missing if fewer than `quorum` members gave one (default: more than
    half).

    Raises `ConfigurationError` for an even number of members, which can tie on a flag, and for a quorum of half of them
    or less, or of more than there are.
    """
    count = len(members)
    if count % 2 == 0:
        raise ConfigurationError(f"{name}: expected an odd number of members, found {count}")
    least = count // 2 + 1
    needed = least if quorum is None else quorum
    if not least <= needed <= count:
        raise ConfigurationError(f"{name}: expected a quorum of {least} to {count}, found {needed}")
    by_name = {member.name: member for member in members}
    settings: dict[str, JsonValue] = {
        "quorum": needed,
        "members": {name: one.settings for name, one in by_name.items()},
    }
    return Ensemble(name, by_name, lambda case, said: pooled(case, said, needed), settings)


def pooled(case: Case, said: MemberScores, quorum: int) -> DimensionScores:
    """The members' scores combined: the median of each dimension, or the majority of a flag. The disagreement is the range
    of the scores, or the share of the minority.

    A score is missing if fewer than `quorum` members gave one, and if a flag is tied (which takes a missing judgement).
    Members without a score are `awaiting`, even if the others are enough. Rules are checked on the result.
    """
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    apart: dict[str, float] = {}
    for dimension in case.dimensions:
        judgements = [scores.values[dimension.name] for scores in said.values() if dimension.name in scores.values]
        if len(judgements) < quorum:
            why = next(scores.missing[dimension.name] for scores in said.values() if dimension.name in scores.missing)
            missing[dimension.name] = (
                f"{len(judgements)} of {len(said)} members gave a score, {quorum} are needed: {why}"
            )
            continue
        apart[dimension.name] = _apart(dimension, judgements)
        if dimension.is_flag and apart[dimension.name] == 0.5:
            missing[dimension.name] = f"the {len(judgements)} members that gave a score are split evenly"
        else:
            values[dimension.name] = float(median(judgements))  # of 0 and 1 without a tie: the majority
    short = tuple(name for name, scores in said.items() if scores.missing or scores.awaiting)
    joined = _joined(case, said, values, missing, apart, [_record(name, scores) for name, scores in said.items()])
    return replace(joined, awaiting=short)


def _apart(dimension: Dimension, judgements: Sequence[float]) -> float:
    if not dimension.is_flag:
        return max(judgements) - min(judgements)
    yes = sum(judgement > 0.5 for judgement in judgements) / len(judgements)
    return min(yes, 1 - yes)


def _record(name: str, scores: DimensionScores) -> dict[str, JsonValue]:
    return {
        "member": name,
        "values": dict(scores.values),
        "missing": dict(scores.missing),
        "breaks": [*scores.breaks],
        "evidence": [dict(one) for one in scores.evidence],
    }


def _joined(
    case: Case,
    said: MemberScores,
    values: Mapping[str, float],
    missing: Mapping[str, str],
    apart: Mapping[str, float],
    evidence: Sequence[Mapping[str, JsonValue]],
) -> DimensionScores:
    return DimensionScores(
        values=values,
        missing=missing,
        breaks=case.breaks(values),
        flags=tuple(dict.fromkeys(flag for scores in said.values() for flag in scores.flags)),
        disagreement=apart,
        evidence=tuple(evidence),
        judgements=tuple(key for scores in said.values() for key in scores.judgements),
        awaiting=tuple(name for scores in said.values() for name in scores.awaiting),
    )


class RecordedJudge:
    """A judge that repeats scores that it gave before."""

    def __init__(self, name: str, given: Mapping[Case, Mapping[str, float]]) -> None:
        self.name = name
        self._given = given
        self.settings: dict[str, JsonValue] = {"judge": name}

    async def judge(self, case: Case) -> DimensionScores:
        """The recorded scores (see `DimensionJudge`)."""
        given = self._given.get(case, {})
        return DimensionScores(
            values={dimension.name: given[dimension.name] for dimension in case.dimensions if dimension.name in given},
            missing={
                dimension.name: f"{self.name} has no score"
                for dimension in case.dimensions
                if dimension.name not in given
            },
            flags=injection_flags(case),
        )


def per_dimension(choice: DimensionChoice, judges: Mapping[str, DimensionJudge]) -> Ensemble:
    """Takes each dimension's score from the judge that was chosen for it; only those judges are asked, and the evidence
    names them. `judges` are by their names in the choice. Raises `InputError` if a chosen judge is not among them."""
    lacking = [name for name in choice.needed if name not in judges]
    if lacking:
        given = ", ".join(judges) or "none"
        raise InputError("per-dimension", found=f"the judges {given}", expected=f"{', '.join(lacking)} too, as chosen")

    def by(case: Case) -> dict[str, str]:
        return {
            dimension.name: choice.judge_for(case.encounter, case.language, dimension.name)
            for dimension in case.dimensions
        }

    def taken(case: Case, said: MemberScores) -> DimensionScores:
        chosen = by(case)
        values = {one: said[name].values[one] for one, name in chosen.items() if one in said[name].values}
        missing = {one: said[name].missing[one] for one, name in chosen.items() if one not in values}
        apart = {one: said[name].disagreement[one] for one, name in chosen.items() if one in said[name].disagreement}
        evidence: list[Mapping[str, JsonValue]] = [{"given by": dict(chosen)}]
        for name, scores in said.items():
            own: list[JsonValue] = [dict(one) for one in scores.evidence]
            evidence += [{"judge": name, "evidence": own}] if own else []
        return _joined(case, said, values, missing, apart, evidence)

    settings: dict[str, JsonValue] = {
        "choice_sha256": choice.sha256,
        "judges": {name: judges[name].settings for name in choice.needed},
    }
    name = f"per-dimension[{choice.sha256[:8]}]"
    return Ensemble(name, judges, taken, settings, asked=lambda case: list(dict.fromkeys(by(case).values())))
