"""A challenge's folder checked before a phase opens: what is handed out is what is marked, and nothing of it tells."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from proctor.api import validate
from proctor.challenges.sealed import SealedPart
from proctor.challenges.settings import SEALED, ChallengeSettings, Phase, read_challenge
from proctor.core import Benchmark, Item, ProctorError, count_of, reader_or_default
from proctor.interchange import file_hash
from proctor.media import CONDITIONS, MediaLibrary

_MOST = 3  # problems of a kind that are named one by one


@dataclass(frozen=True)
class FolderCheck:
    """What was looked at, a line a phase, and all that is wrong."""

    facts: tuple[str, ...]
    problems: tuple[str, ...]

    def record(self) -> dict[str, JsonValue]:
        """As programs read it."""
        return {"facts": [*self.facts], "problems": [*self.problems]}


def check_challenge(folder: Path, phase: str = "") -> FolderCheck:
    """Checks all phases, or one. Raises `ProblemsError` where the settings do not fit; needs the sealed part."""
    settings = read_challenge(folder, sealed=True)
    sealed = SealedPart(folder, settings)
    facts, problems = [], [*_rights(sealed)]
    for one in settings.phases:
        if phase in {"", one.name}:
            try:
                facts.append(_described(sealed, one))
                problems += [f"{one.name}: {line}" for line in _phase_problems(sealed, one)]
            except ProctorError as error:
                problems.append(f"{one.name}: {error}")
    return FolderCheck(tuple(facts), tuple(problems))


def _rights(sealed: SealedPart) -> Iterator[str]:
    if sealed.place.exists() and stat.S_IMODE(sealed.place.stat().st_mode) & 0o077:
        mode = stat.S_IMODE(sealed.place.stat().st_mode)
        yield f"{SEALED}/: found mode {mode:04o}, expected 0700: the scorer's user alone may open it"
    for link in sorted((sealed.folder / "public").rglob("*")):
        if link.is_symlink():
            yield f"{link.relative_to(sealed.folder)}: found a symbolic link, expected a file of its own"


def _described(sealed: SealedPart, phase: Phase) -> str:
    found = sealed.benchmark(phase.name)
    groups = len({item.group for item in found.items})
    kind = "hidden" if phase.hidden else "public"
    out = ", handed out without references" if phase.hidden and phase.questions else ""
    return f"{phase.name}: {count_of(len(found.items), 'question')} in {count_of(groups, 'group')}, {kind}{out}"


def _phase_problems(sealed: SealedPart, phase: Phase) -> Iterator[str]:
    marked = sealed.benchmark(phase.name)
    yield from _named([item.id for item in marked.items if item.reference is None], "no reference", "one to mark by")
    if CONDITIONS.get(phase.condition).sees:
        yield from _named(MediaLibrary(marked.media_root).missing(marked.items), "no file of this name", "its media")
    free = sum(item.answer.kind == "free_text" for item in marked.items)
    if free and sealed.settings.judge is None and reader_or_default(sealed.settings.benchmark).rubric_judge:
        yield f"found {count_of(free, 'question')} in free text and no judge, expected one with its models (judge: …)"
    if phase.hidden:
        given = sealed.handed_out(phase.name)
        yield from _not_exposed(sealed.folder, phase, marked) if given is None else handed_out_problems(marked, given)
    yield from _baselines(sealed, phase)


def handed_out_problems(marked: Benchmark, given: Benchmark) -> Iterator[str]:
    """Where participants have other questions than those that are marked, or more than questions."""
    there, here = {one.id: one for one in marked.items}, {one.id: one for one in given.items}
    yield from _named(sorted(there.keys() - here.keys()), "it not handed out", "each question that is marked")
    yield from _named(sorted(here.keys() - there.keys()), "it handed out alone", "each question that is marked")
    both = sorted(there.keys() & here.keys())
    yield from _named([name for name in both if here[name].reference is not None], "its reference handed out", "none")
    apart = [name for name in both if _as_seen(there[name]) != _as_seen(here[name])]
    yield from _named(apart, "other words, options, format or media handed out", "the same as are marked")


def _as_seen(item: Item) -> tuple[object, ...]:
    """What a participant sees of a question."""
    return item.question, item.options, item.answer.kind, item.media, item.group


def _not_exposed(folder: Path, phase: Phase, marked: Benchmark) -> Iterator[str]:
    """Media of a phase that hands out nothing, and files about its questions, which lie in the public part."""
    public: dict[int, list[Path]] = {}
    for file in (folder / "public").rglob("*"):
        if file.is_file() and file.stat().st_size:
            public.setdefault(file.stat().st_size, []).append(file)
    media, ids = folder / phase.media if phase.media else None, [item.id.encode() for item in marked.items]
    for hidden in sorted(one for one in (folder / phase.sealed).rglob("*") if one.is_file()):
        for file in public.get(hidden.stat().st_size, []):
            if file_hash(file) == file_hash(hidden) and _tells(hidden, media, ids):
                names = file.relative_to(folder), hidden.relative_to(folder)
                yield f"found {names[0]}, which is {names[1]}, expected nothing of this phase in public"


def _tells(file: Path, media: Path | None, ids: Sequence[bytes]) -> bool:
    """Whether a file is one of the media, or names a question; settings that all phases share do neither."""
    if media is not None and file.is_relative_to(media):
        return True
    content = file.read_bytes()
    return any(one in content for one in ids)


def _baselines(sealed: SealedPart, phase: Phase) -> Iterator[str]:
    settings: ChallengeSettings = sealed.settings
    for one in settings.baselines:
        file = sealed.answer_file(one.name, phase.name)
        if file is not None:
            data = sealed.folder / (phase.sealed or phase.questions)
            try:
                validate(settings.benchmark, file, data=data, track=settings.track)
            except ProctorError as error:
                yield f"baseline {one.name}: {error}"


def _named(ids: list[str], found: str, expected: str) -> Iterator[str]:
    for name in ids[:_MOST]:
        yield f"{name}: found {found}, expected {expected}"
    if len(ids) > _MOST:
        yield f"and {len(ids) - _MOST} more of the same"
