"""A demonstration: a whole challenge with simulated teams, in minutes, by the code that runs real challenges: a folder,
submissions, the worker, boards and a receipt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from proctor.core import SUBMISSION_WRITERS, Answer, InputError, Item, Timing, count_of, generator, write_whole
from proctor.systems import RandomGuess
from proctor_challenge.challenge import Challenge
from proctor_challenge.folder import PRE_EVALUATION, NewChallenge, new_challenge
from proctor_challenge.opening import open_phase
from proctor_challenge.receipts import public_key, receipt_of
from proctor_challenge.settings import CHALLENGE_FILE, read_challenge
from proctor_challenge.teams import TeamEntry, register_team
from proctor_challenge.uploads import submit_file
from proctor_challenge.worker import WorkPlan, work_on

TEAMS: Mapping[str, tuple[float, ...]] = {
    "Auriga": (0.6, 0.85),
    "Boreas": (0.7,),
    "Corvus": (0.55,),
    "Delphinus": (0.3,),
}
"""The teams of the demonstration, each with the share of right answers of its submissions; the rest is guessed."""

_BASELINE, _BASELINE_KNOWS = "guessing", 0.35
_SETTINGS = """
baselines:
- name: {baseline}
  answers: {{{phase}: sealed/{baseline}.json}}
ranking: {{draws: 1000, stability: 200}}
"""


@dataclass(frozen=True)
class DemoChallenge:
    """The folder of the challenge, the phase with boards, the file with a receipt, and the store."""

    folder: Path
    phase: str
    receipt: Path
    store: str


def demonstrate(
    folder: Path, plan: NewChallenge, log: Callable[[str], None], *, teams: Mapping[str, tuple[float, ...]] = TEAMS
) -> DemoChallenge:
    """Makes a challenge, opens its pre-evaluation, submits for each team, runs a worker until the queue is empty, and
    writes a receipt beside the folder. Submissions are answer files with invented latencies; no container runs. `log`
    receives a line for each step. Raises `InputError` for a folder that is not empty."""
    counts = new_challenge(folder, plan)
    made = ", ".join(f"{count_of(count, 'question')} for {name}" for name, count in counts.items())
    log(f"made {folder}: {made}")
    _add_baseline(folder)
    store = str(folder / read_challenge(folder).store)  # its own, whatever the environment says
    challenge = Challenge.open(folder, "organiser", store=store)
    try:
        baseline_file = challenge.sealed.sealed_folder / f"{_BASELINE}.json"
        _write_answers(challenge, plan, _BASELINE, _BASELINE_KNOWS, baseline_file)
        open_phase(challenge, PRE_EVALUATION, None)
        log(f"opened {PRE_EVALUATION}")
        for name, shares in teams.items():
            _register(challenge, name)
            for turn, knows in enumerate(shares):
                _submit(challenge, plan, name, turn, knows)
        _submit_broken_file(challenge, next(iter(teams)), log)
        asyncio.run(work_on(WorkPlan(folder, store, executor="process", once=True), asyncio.Event(), log))
        return DemoChallenge(folder, PRE_EVALUATION, _receipt(challenge), store)
    finally:
        challenge.close()


def _add_baseline(folder: Path) -> None:
    settings = folder / CHALLENGE_FILE
    text = settings.read_text(encoding="utf-8").replace("baselines: []\n", "")
    write_whole(settings, text + _SETTINGS.format(baseline=_BASELINE, phase=PRE_EVALUATION))
    write_whole(folder / "sealed" / f"{_BASELINE}.json", "[]\n")


def _register(challenge: Challenge, name: str) -> None:
    entry = TeamEntry(name, f"{name} Hospital", "AT", challenge.terms)
    with challenge.writing() as connection:
        register_team(connection, challenge, None, entry)


def _submit(challenge: Challenge, plan: NewChallenge, team: str, turn: int, knows: float) -> None:
    file = challenge.folder.parent / f"{team}-{turn + 1}.json"
    _write_answers(challenge, plan, f"{team} {turn}", knows, file)
    _, problems = submit_file(challenge, PRE_EVALUATION, team, file)
    if problems:
        raise InputError(file, found=problems[0], expected="answers that fit")


def _submit_broken_file(challenge: Challenge, team: str, log: Callable[[str], None]) -> None:
    file = challenge.folder.parent / "broken.json"
    write_whole(file, "{")
    _, problems = submit_file(challenge, PRE_EVALUATION, team, file)
    log(f"refused a file of {team}: {problems[0]}")


def _write_answers(challenge: Challenge, plan: NewChallenge, who: str, knows: float, file: Path) -> None:
    """Writes answers to the hidden questions in the benchmark's format: a share of them right, the rest guessed."""
    writer = SUBMISSION_WRITERS.of(plan.benchmark)
    if writer is None:
        raise InputError(f"benchmark {plan.benchmark}", found="no format of submissions", expected="one")
    rng = generator(plan.seed, "demonstration", who)
    guess = RandomGuess(int(rng.integers(2**31)))
    items = challenge.sealed.benchmark(PRE_EVALUATION).items
    seconds = rng.uniform(0.5, 3.0, len(items))
    known = rng.random(len(items)) < knows
    answers = [
        Answer(
            item_id=item.id, text=_text(item, guess, knows=bool(right)), timing=Timing(model_s=round(float(took), 2))
        )
        for item, right, took in zip(items, known, seconds, strict=True)
    ]
    writer.write_submission(writer.formats[-1], answers, file)


def _text(item: Item, guess: RandomGuess, *, knows: bool) -> str:
    """The right answer (also to questions that can't be guessed), or a guess in the question's format."""
    if item.reference is not None and (knows or not guess.supports(item)):
        return item.answer.write(item.reference.answer)
    return item.answer.write(guess.draw(item))


def _receipt(challenge: Challenge) -> Path:
    location = challenge.folder.parent / "receipt.json"
    with challenge.reading() as connection:
        found = receipt_of(connection, 1, public_key(challenge.folder))
    if found is None:
        raise InputError(location, found="no receipt", expected="one of the first submission")
    write_whole(location, found.text())
    return location
