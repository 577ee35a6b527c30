"""A challenge's folder made from a benchmark's data: its groups dealt to phases, hidden questions handed out blind."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.api import load
from proctor.challenges.settings import CHALLENGE_FILE, SEALED
from proctor.core import Benchmark, InputError, count_of, generator, reader_of, whole_folder, write_whole
from proctor.media import MediaLibrary

TRAINING, PRE_EVALUATION, TEST = "training", "pre-evaluation", "test"
_TERMS = "public/terms.md"
_TERMS_TEXT = """\
# Terms

- A person has one account, and an institution one team.
- Nobody tries to reach the references, to identify patients, or to influence a judge. Who does is disqualified.
- Systems answer each question from what they are given with it, without a network.
- Results are published under the team's name unless it asks to be left out before the phase ends.
"""
_HEAD = """\
# A challenge (proctor challenge check tells what is wrong with it). Times need a zone: 2026-09-01T00:00:00Z
"""


@dataclass(frozen=True)
class NewChallenge:
    """What a folder is made from: a benchmark's own files with references and media (None: nobody looks at any), and
    how many groups go to each phase; all 0: a quarter each to training and pre-evaluation, the rest to the test. `seed`
    deals them."""

    benchmark: str
    data: Path
    media: Path | None = None
    track: str = ""
    title: str = ""
    training: int = 0
    pre_evaluation: int = 0
    test: int = 0
    seed: int = 0

    def dealt(self, groups: Collection[str]) -> dict[str, set[str]]:
        """The groups of each phase that has some. Raises `InputError` where there are too few."""
        wanted = {TRAINING: self.training, PRE_EVALUATION: self.pre_evaluation, TEST: self.test}
        if not any(wanted.values()):
            quarter = len(groups) // 4
            wanted = {TRAINING: quarter, PRE_EVALUATION: quarter, TEST: len(groups) - 2 * quarter}
        if sum(wanted.values()) > len(groups):
            expected = f"groups for {sum(wanted.values())} in {count_of(len(wanted), 'phase')}"
            raise InputError(self.data, found=count_of(len(groups), "group"), expected=expected)
        order = [sorted(groups)[one] for one in generator(self.seed, "phases of a challenge").permutation(len(groups))]
        parts = {}
        for name, count in wanted.items():
            parts[name], order = set(order[:count]), order[count:]
        return {name: part for name, part in parts.items() if part}


def new_challenge(folder: Path, plan: NewChallenge) -> dict[str, int]:
    """Makes the folder, whole or not at all; returns how many questions each phase has.

    Training is public with its references. Of the pre-evaluation participants get the questions without, of the test
    nothing: it takes images alone. `challenge.yaml` is meant to be edited: dates, quotas, baselines, who sees what.
    Raises `InputError` where the benchmark can't write its questions, where media are missing, and where the folder
    holds something.
    """
    benchmark = load(plan.benchmark, plan.data, plan.media, track=plan.track)
    blank = next((item.id for item in benchmark.items if item.reference is None), None)
    if blank is not None:
        raise InputError(plan.data, f"question {blank}", found="no reference", expected="one: a challenge marks")
    dealt = plan.dealt({item.group for item in benchmark.items})
    counts, phases = {}, []
    with whole_folder(folder) as half:
        for name in ("public", "uploads"):
            (half / name).mkdir()
        (half / SEALED).mkdir(mode=0o700)
        write_whole(half / _TERMS, _TERMS_TEXT)
        for name, groups in dealt.items():
            phases.append(_phase(half, plan, benchmark, name, groups))
            counts[name] = sum(item.group in groups for item in benchmark.items)
        write_whole(half / CHALLENGE_FILE, _HEAD + _yaml(_settings(plan, benchmark, phases)))
    (folder / SEALED).chmod(0o700)
    return counts


def _phase(half: Path, plan: NewChallenge, benchmark: Benchmark, name: str, groups: set[str]) -> dict[str, Any]:
    """Writes the parts of a phase; what its settings say."""
    items = [item for item in benchmark.items if item.group in groups]
    ids, reader = {item.id for item in items}, reader_of(plan.benchmark, plan.track)
    public, sealed = f"public/{name}", f"{SEALED}/{name}"
    said: dict[str, Any] = {"name": name, "title": name.capitalize()}
    for path, kept, references in ((public, name != TEST, name == TRAINING), (sealed, name != TRAINING, True)):
        if kept:
            (half / path).mkdir()
            reader.write_questions(plan.data, half / path, ids, references=references)
            said |= {"questions" if path == public else "sealed": path}
    if plan.media is None:
        said["condition"] = "text-only"
    else:
        said["media"] = f"{sealed if name == TEST else public}/media"
        _copy_media(
            MediaLibrary(plan.media), {one.source for item in items for one in item.media}, half / said["media"]
        )
    if name == TEST:
        said |= {"accepts": ["image"], "quota": {"scored": 1, "attempted": 3}, "counts": "last"}
        said |= {"results": {"boards": "organisers"}}
    if benchmark.budget_s is not None:
        said["budget"] = {"question_s": benchmark.budget_s}
    return said


def _copy_media(library: MediaLibrary, sources: Collection[str], out: Path) -> None:
    out.mkdir()
    for source in sorted(sources):
        file = library.locate(source).resolve()
        place = out / file.relative_to(Path(library.root or "").resolve())
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)


def _settings(plan: NewChallenge, benchmark: Benchmark, phases: list[dict[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {"title": plan.title or benchmark.title, "benchmark": plan.benchmark}
    said |= {"track": plan.track} if plan.track else {}
    names = {one["name"] for one in phases}
    for one in phases:
        if one["name"] == TEST and PRE_EVALUATION in names:
            one["gate"] = {"phase": PRE_EVALUATION}
    return said | {"terms": _TERMS, "phases": phases, "baselines": []}


def _yaml(fields: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
