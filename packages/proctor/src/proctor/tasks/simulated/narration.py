"""Subtitles for simulated procedures, with fillers, errors of a speech recogniser and a drifting clock, from the script."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from proctor.core import InputError, clock_text, generator, read_model, write_whole
from proctor.tasks.simulated.pictures import CLASSES
from proctor.tasks.simulated.script import Event, Script

_PHRASES = {kind.name: kind.phrase for kind in CLASSES}
_ACTIONS = {
    "inserted": "we bring in {thing} with the {hand} grasper",
    "moved": "we move {thing} with the {hand} grasper",
    "hidden": "we slide the {cover} over {thing}",
    "retrieved": "we take out {thing} with the {hand} grasper",
}
_INTENTS = {
    "inserted": "to have it at hand",
    "moved": "to clear the field",
    "hidden": "to see what lies behind",
    "retrieved": "to leave nothing behind",
}
_FILLERS = ("uh", "um", "so", "okay", "and now", "well")
_SLIPS = {
    "sponge": "spunge",
    "grasper": "grasp her",
    "needle": "needel",
    "specimen": "specimin",
    "gallstone": "gall stone",
}
"""A speech recogniser's errors."""

_FASTEST_S = 0.9  # the shortest sentence


@dataclass(frozen=True)
class SpokenWord:
    """A word as a speech recogniser hears it, from `start` to `end` in seconds."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Narrated:
    """The narration of one event, which happens from `start` to `end`; `words` have a recogniser's times."""

    start: float
    end: float
    action: str
    intent: str
    words: tuple[SpokenWord, ...]


def narrate(
    events: Sequence[Event], seed: int, video: str, *, fillers: float = 0.4, slips: float = 0.1, drift: float = 0.004
) -> list[Narrated]:
    """The narration of a video's events in order, each before the next one begins. `fillers` and `slips` are the shares
    of sentences with a filler and of words with an error; `drift` is the largest relative error of the recogniser's
    clock, to which random errors of some hundredths of a second are added."""
    rng = generator(seed, "narration", video)
    rate = 1.0 + float(rng.uniform(-drift, drift))
    narration = []
    for number, event in enumerate(events):
        thing = _PHRASES[event.class_name]
        action = _ACTIONS[event.kind].format(thing=thing, hand=event.hand, cover=event.cover)
        intent = _INTENTS[event.kind]
        later = [one.start for one in events[number + 1 : number + 2]]
        last = max(event.start + _FASTEST_S, min([event.end, *later]))
        spoken = _spoken(f"{action} {intent}", rng, fillers, slips)
        edges = np.linspace(event.start, last - 0.05, len(spoken) + 1)
        noise = np.sort(rng.normal(0.0, 0.08, len(edges)))  # words stay in order
        times = np.maximum.accumulate(np.maximum(edges * rate + noise, 0.0))
        words = tuple(
            SpokenWord(text=word, start=round(float(a), 3), end=round(max(float(a), float(b)), 3))
            for word, a, b in zip(spoken, times[:-1], times[1:], strict=True)
        )
        narration.append(Narrated(event.start, event.end, action, intent, words))
    return narration


def _spoken(text: str, rng: np.random.Generator, fillers: float, slips: float) -> list[str]:
    words = [_SLIPS[word] if word in _SLIPS and rng.random() < slips else word for word in text.split()]
    if rng.random() < fillers:
        position = int(rng.integers(0, len(words)))
        words.insert(position, _FILLERS[int(rng.integers(len(_FILLERS)))])
    words[0], words[-1] = words[0].capitalize(), f"{words[-1]}."
    return [one for word in words for one in word.split()]


def as_vtt(narration: Sequence[Narrated]) -> str:
    """WebVTT with a time before every word, as in automatic captions."""
    cues = ["WEBVTT"]
    begun = 0.0
    for narrated in narration:
        start = max(begun, narrated.words[0].start)  # a file's cues never go back
        end = max(start + 0.1, narrated.words[-1].end)
        words = " ".join(
            word.text if number == 0 else f"<{clock_text(min(end, max(start, word.start)), millis=True)}>{word.text}"
            for number, word in enumerate(narrated.words)
        )
        cues.append(f"{clock_text(start, millis=True)} --> {clock_text(end, millis=True)}\n{words}")
        begun = start
    return "\n\n".join(cues) + "\n"


def as_events(narration: Sequence[Narrated]) -> str:
    """The true events as a CSV file (start, end, action, intent)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("start", "end", "action", "intent"))
    writer.writerows(
        (f"{narrated.start:.3f}", f"{narrated.end:.3f}", narrated.action, narrated.intent) for narrated in narration
    )
    return out.getvalue()


def narrate_folder(folder: Path, seed: int = 0) -> None:
    """Adds the narration to a folder of simulated procedures: `narration/VIDEO.vtt`, and the true events in
    `narration/VIDEO.csv`. Raises `InputError` for another folder."""
    logs = sorted((folder / "events").glob("*.json"))
    if not logs:
        raise InputError(folder, found="no events/*.json", expected="a folder of simulated procedures")
    for file in logs:
        log = read_model(file, Script, "an event log")
        narration = narrate(log.events, seed, log.video)
        write_whole(folder / "narration" / f"{file.stem}.vtt", as_vtt(narration))
        write_whole(folder / "narration" / f"{file.stem}.csv", as_events(narration))
