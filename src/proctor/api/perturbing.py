"""Judges and metrics on changed answers: what `proctor audit --perturb` does."""

# No `from __future__ import annotations`: the command line reads these annotations.

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack, cast

from proctor.api.option_texts import texts
from proctor.api.options import Concurrency, ModelOptions, OnChange, PromptChoice, ScoreOptions, Stop, filled, listed
from proctor.api.scores import PreparedScorer, prepare_alone
from proctor.api.sources import Evaluation, stored, sync_twin
from proctor.api.tables import FrameLike, Row
from proctor.core import InputError, Option, Scorer, UsageError

if TYPE_CHECKING:
    from proctor.audits import Sensitivity
    from proctor.core import Table
    from proctor.judges import JudgeFunction
    from proctor.models import ModelSpec
    from proctor.runs import JudgeTally, Probe, Store

    _Models = str | ModelSpec | Sequence[str | ModelSpec] | None
    _Scorers = str | Scorer | JudgeFunction | Sequence[str | Scorer | JudgeFunction]
else:
    _Models = _Scorers = Any

_GROUP = "Changed answers"


def perturbation_names() -> list[str]:
    """The ways of changing an answer."""
    from proctor.audits import PERTURBATIONS

    return list(PERTURBATIONS)


class ProbeOptions(ModelOptions, total=False):
    """Which answers are changed, how, and what the judges among the scorers are told (as by `ScoreOptions`)."""

    perturb: Annotated[
        bool, Option("Score changed answers by --scorer, and say how far it moves.", default=False, group=_GROUP)
    ]
    perturbations: Annotated[
        str | Sequence[str],
        Option(
            "Only this change; may be repeated. [default: all]",
            "--perturbation",
            (),
            shell=list[str],
            names=perturbation_names,
            group=_GROUP,
        ),
    ]
    answers: Annotated[
        int, Option("Answers that are changed, in each language; 0: all.", default=60, low=0, group=_GROUP)
    ]
    model: Annotated[
        _Models,
        Option(
            "The model that a judge asks, provider:name.", "", (), shell=list[str], metavar="NAME [KEY=VALUE …]",
            group=_GROUP,
        ),
    ]  # fmt: skip
    options: Annotated[
        Mapping[str, Any],
        Option("The judge's own.", "--option", {}, shell=list[str], read=texts, metavar="KEY=VALUE", group=_GROUP),
    ]
    prompt: PromptChoice
    concurrency: Concurrency
    on_change: OnChange
    stop: Stop


class PerturbOptions(ProbeOptions, total=False):
    """The same, with the `scorer` (a name, several, or scorers), the folder of `media` that it sees, and how intervals
    are drawn."""

    scorer: Annotated[_Scorers, Option(default=())]
    media: Annotated[str | Path | None, Option()]
    all_items: Annotated[bool, Option(default=False)]
    draws: Annotated[int, Option(default=2000)]
    level: Annotated[float, Option(default=0.95)]
    seed: Annotated[int, Option(default=0)]


@dataclass(frozen=True, repr=False)
class PerturbationTable(FrameLike):
    """A row for each scorer, language, perturbation and dimension ("": the mean over all): how far scores move, in
    standard deviations, better above 0. `data` are the scorers (see `proctor.audits.Sensitivity`)."""

    data: "tuple[Sensitivity, ...]"

    @cached_property
    def rows(self) -> list[Row]:
        """The fields of `proctor.audits.Shift`, figures with the ends of their intervals."""
        found = []
        for one in (shift for each in self.data for shift in each.shifts):
            row: Row = {
                name: getattr(one, name)
                for name in ("scorer", "language", "perturbation", "expected", "dimension", "answers", "groups")
            }
            for name in ("shift", "moved", "fell"):
                figure = getattr(one, name)
                row |= {name: figure.value, f"{name}_low": figure.ci_low, f"{name}_high": figure.ci_high}
            found.append({**row, "missing": one.missing, "finding": one.finding, "reason": one.reason})
        return found

    @property
    def title(self) -> str:
        """Whose answers were changed."""
        return f"{', '.join(one.scorer for one in self.data)}: changed answers"

    @property
    def tables(self) -> "Sequence[Table]":
        """Those of `proctor audit --perturb`."""
        from proctor.reports import perturbation_tables

        return [table for one in self.data for table in perturbation_tables(one)]

    @property
    def notes(self) -> tuple[str, ...]:
        """What each scorer fails at, and what is lacking."""
        from proctor.reports import perturbation_notes

        return tuple(line for one in self.data for line in perturbation_notes(one))


@dataclass(frozen=True)
class PreparedProbes:
    """Scorers, and the answers that they are to be asked about: as they stand and changed. `asked` is how many."""

    scorers: tuple[tuple[PreparedScorer, PreparedScorer], ...]
    probes: "tuple[Probe, ...]"
    options: PerturbOptions
    names: tuple[str, ...]

    @property
    def asked(self) -> int:
        """Texts that each scorer scores, counting those that it scored before."""
        return len(self.probes)

    async def ask(self, stop: asyncio.Event | None, on_change: "Callable[[JudgeTally], None]") -> PerturbationTable:
        """Scores them, and closes the connections to models."""
        from proctor.audits import Sensitivity
        from proctor.runs import JudgeLimits, probe
        from proctor.stats import Resampling

        given, found = self.options, []
        plan = Resampling(draws=given["draws"], level=given["level"], seed=given["seed"])
        limits = JudgeLimits(given["concurrency"])
        try:
            for first, second in self.scorers:
                both = first.asked, second.asked
                probed = await probe(*both, self.probes, limits, stop=stop, on_change=on_change)
                if not any(one.original for one in probed):
                    why = next((reason for one in probed for reason in one.missing.values()), "it applies to none")
                    raise InputError(f"scorer {first.scorer.name}", found="no score", expected=f"some ({why})")
                found.append(Sensitivity(first.scorer.name, tuple(probed), self.names, plan))
        finally:
            for one in {id(each): each for pair in self.scorers for each in pair}.values():
                for model in one.models:
                    await model.aclose()
        return PerturbationTable(tuple(found))


def filled_probes(given: Mapping[str, Any]) -> PerturbOptions:
    """The options with their defaults."""
    return filled("perturb", PerturbOptions, cast("PerturbOptions", given))


async def prepare_probes(
    source: "Evaluation | Store | str | Path | None", benchmark: str, given: PerturbOptions
) -> PreparedProbes:
    """The first half of `perturb_async`, which checks all that can be checked before a call is paid."""
    from proctor.audits import PERTURBATIONS
    from proctor.core import one_of
    from proctor.runs import BASELINES, AnswersOf, SecondVotes, chosen_runs

    scorers, names = listed(given["scorer"]), listed(given["perturbations"]) or list(PERTURBATIONS)
    if not scorers:
        raise UsageError("--scorer", "a judge or metric that scores changed answers, such as rouge-1-mean")
    for name in names:
        if name not in PERTURBATIONS:
            raise UsageError("--perturbation", one_of(list(PERTURBATIONS), name), found=repr(name))
    where = stored(source, benchmark)
    runs = [run for run in chosen_runs(where.store, where.benchmark) if run.system not in BASELINES]
    answers = AnswersOf(where.store, runs, all_items=given["all_items"])
    drawn = answers.draw(given["answers"], given["seed"])
    if not drawn:
        raise InputError(where.store.shown, where.benchmark, found="no answers in free text", expected="some")
    both: list[tuple[PreparedScorer, PreparedScorer]] = []
    for scorer in scorers:
        how = _as_scored(given, scorer)
        first = second = await prepare_alone(where, scorer, how, where.store)
        if given["model"]:
            second = await prepare_alone(where, scorer, how, SecondVotes(where.store))
        both += zip(first, second, strict=True)
    return PreparedProbes(tuple(both), tuple(answers.probes(drawn, names, given["seed"])), given, tuple(names))


def _as_scored(given: PerturbOptions, scorer: "str | Scorer | JudgeFunction") -> ScoreOptions:
    """The options of a judge as `proctor score` takes them."""
    names = (*ModelOptions.__annotations__, "model", "options", "prompt", "media", "all_items", "concurrency")
    known: dict[str, Any] = {name: one for name, one in given.items() if name in names}
    judge = scorer if isinstance(scorer, str) else ""
    return filled("score", ScoreOptions, cast("ScoreOptions", {**known, "judge": judge}))


async def perturb_async(
    source: "Evaluation | Store | str | Path | None" = None, benchmark: str = "", **options: Unpack[PerturbOptions]
) -> PerturbationTable:
    """How far scorers move when answers are changed: negated, with a wrong diagnosis or dose, padded, doubled, in
    another language, exchanged for another case's or a reference, with an order to the judge, with the references in
    another order or number, and asked once more.

    `scorer` names judges and metrics that can score new text, or holds scorers. At most `answers` answers of a store in
    each language are changed, spread over the groups. Shifts are in standard deviations of the scorer's own scores,
    intervals resample groups. Only what judges' models reply is kept, so a second call asks none. Raises `InputError`
    where nothing can be scored. The command is `proctor audit --perturb`.
    """
    given = filled_probes(options)
    prepared = await prepare_probes(source, benchmark, given)
    return await prepared.ask(given["stop"], given["on_change"])


perturb = sync_twin(perturb_async)
