"""A challenge on small FOCUS data whose submissions are files, scored here as a worker would."""

from __future__ import annotations

import hashlib
import shutil
from itertools import count
from pathlib import Path

from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Challenge, SealedPart
from proctor_challenge.folder import NewChallenge, new_challenge
from proctor_challenge.queue import Leased, advance, claim
from proctor_challenge.scoring import keep_figures, score_submission, scorer_fingerprint, scorer_version
from proctor_challenge.states import SubmissionState
from proctor_challenge.submissions import HandIn, hand_in, settle
from tests.support.challenge_data import focus_answers, focus_data
from tests.support.hosted import opened

PHASE = "pre-evaluation"
RANKING = "ranking: {draws: 200, stability: 20}\n"
BASELINES = f"baselines:\n- name: plain\n  answers: {{{PHASE}: sealed/plain.json}}\n"


def scored_folder(folder: Path, *, baseline: float | None = 0.5, more: str = "", videos: int = 8) -> Path:
    """The folder with one hidden phase of which participants have the questions; `more` are further settings of the
    phase, a line each with four spaces."""
    data = focus_data(folder.parent / f"{folder.name}-data", videos=videos)
    new_challenge(folder, NewChallenge("focus", data, pre_evaluation=videos))
    settings = folder / "challenge.yaml"
    text = settings.read_text().replace("baselines: []\n", BASELINES if baseline is not None else "")
    text = text.replace("  condition: text-only\n", f"  condition: text-only\n{more}")
    settings.write_text(text + RANKING)
    if baseline is not None:
        answers(folder, folder / "sealed/plain.json", baseline, seed=99)
    return folder


def answers(folder: Path, file: Path, skill: float, *, seed: int = 0) -> Path:
    """A file of answers to the phase's questions, of this skill."""
    return focus_answers(folder / "public" / PHASE, folder / "sealed" / PHASE, file, skill, seed=seed)


def leased_file(challenge: Challenge, team: int, file: Path) -> Leased:
    """A file handed in by a team and leased by a worker who is about to score it."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    shutil.copyfile(file, challenge.uploads / digest)
    with challenge.writing() as connection:
        entry = HandIn(team, 1, PHASE, "file", digest, file.stat().st_size, file.name, file.suffix)
        made = hand_in(connection, challenge, entry)
        assert settle(connection, challenge, made) == ""
    with challenge.writing() as connection:
        leased = claim(connection, "w", challenge.now(), 60.0)
        assert leased is not None
        assert leased.submission == made
        advance(connection, leased, SubmissionState.SCORING, challenge.now())
    return leased


def scored(challenge: Challenge, leased: Leased, *, why: str = "") -> Figures:
    """Scored, kept and moved on."""
    figures = score_submission(challenge, leased)
    fingerprint = scorer_fingerprint(SealedPart(challenge.folder, challenge.settings)) + why
    with challenge.writing() as connection:
        version = scorer_version(connection, fingerprint[-64:], challenge.now(), why)
        keep_figures(connection, leased, version, figures, challenge.now())
        advance(connection, leased, SubmissionState.SCORED, challenge.now())
    return figures


def copied(challenge: Challenge, folder: Path) -> Challenge:
    """A copy of a challenge in a folder of its own, for a test that changes what others look at."""
    shutil.copytree(challenge.folder, folder)
    return opened(folder)


class Hosted:
    """A challenge, and teams whose files of a given skill are scored at once."""

    def __init__(self, folder: Path, **how: object) -> None:
        self.challenge = opened(scored_folder(folder, **how))  # type: ignore[arg-type]
        self._seeds = count(1)

    def submit(self, team: int, skill: float) -> Figures:
        """One more file of a team."""
        seed = next(self._seeds)
        file = answers(self.challenge.folder, self.challenge.folder.parent / f"{seed}.json", skill, seed=seed)
        return scored(self.challenge, leased_file(self.challenge, team, file))
