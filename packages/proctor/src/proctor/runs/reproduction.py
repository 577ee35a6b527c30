"""Reproducing the pictures that systems were shown, from the media alone, and comparing them with the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from proctor.core import Answer, InputError, Item, View
from proctor.media import MediaLibrary, MediaSettings, ShownRecord, shown_again, view
from proctor.runs.plan import in_media_order
from proctor.runs.run_identity import known_items
from proctor.runs.schema import SHOWN
from proctor.runs.store import Run, Store

_ENCODED = "a video file that had to be encoded: the encoder's bytes vary, and its pictures are not recorded"


class Reproduction(StrEnum):
    """The result for an answer's pictures: `same` (also if none were shown), `different`, `unrecorded` (an imported answer,
    one older than the record, or an encoded video file, whose bytes vary), `unreadable` (a media file is missing or can't
    be read).

    >>> [one.value for one in Reproduction]
    ['same', 'different', 'unrecorded', 'unreadable']
    """

    SAME = "same"
    DIFFERENT = "different"
    UNRECORDED = "unrecorded"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class ReproducedAnswer:
    """One answer: the number of pictures (and sounds) shown, whether they were reproduced, and why not. `media` names media
    files that have changed, also if the pictures are the same (for instance in another container). `repetition` counts
    from 0."""

    system: str
    condition: str
    item: str
    state: Reproduction
    pictures: int
    reason: str = ""
    media: tuple[str, ...] = ()
    repetition: int = 0

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self) | {"media": list(self.media)}


@dataclass(frozen=True)
class Remake:
    """The pictures of one request, made again: each name with its bytes, and the records then and now."""

    pictures: list[tuple[str, bytes]]
    then: ShownRecord
    now: ShownRecord


class Reproducer:
    """Reproduces the views of stored runs. `library` opens the media with the settings of a run."""

    def __init__(self, store: Store, benchmark: str, library: Callable[[MediaSettings], MediaLibrary]) -> None:
        card = store.card(benchmark)
        self._store, self._benchmark = store, benchmark
        self._library = library
        self._items = known_items(store, benchmark)
        self._others = in_media_order(item for item in self._items.values() if card.counts(item))

    async def answers(
        self,
        runs: Sequence[Run],
        items: Sequence[str] = (),
        *,
        limit: int | None = None,
        progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> list[ReproducedAnswer]:
        """Reproduces each answer of these runs (to these items; none named: all; the first `limit` of each run), in the
        benchmark's order, the repetitions of an item one after the other. What was shown in one and the next is made
        again once. `progress` gets the numbers done and in all. Raises `InputError` for an unknown item."""
        known_items(self._store, self._benchmark, items)
        wanted = [name for name in self._items if name in set(items or self._items)]
        chosen = [(run, one) for run in runs for one in self._given(run, wanted)[:limit]]
        found: list[ReproducedAnswer] = []
        before: tuple[tuple[object, ...], ReproducedAnswer] | None = None
        for run, answer in chosen:
            what = (run.id, answer.item_id, recorded(answer), answer.extra.get(SHOWN))
            if before is not None and before[0] == what:
                one = replace(before[1], repetition=answer.repetition)
            else:
                one = await self._reproduced(run, self._items[answer.item_id], answer)
            before = what, one
            found.append(one)
            progress(len(found), len(chosen))
        return found

    def _given(self, run: Run, items: Sequence[str]) -> list[Answer]:
        """The answers of a run to these items, the repetitions of each in order."""
        each = [self._store.answers(run, number) for number in self._store.repetitions(run)]
        return [answers[name] for name in items for answers in each if name in answers]

    async def remade(self, run: Run, item: Item, answer: Answer) -> list[Remake]:
        """What the answer was shown, made again, by request. Raises `InputError` if a media file is missing or can't be
        read."""
        settings: Any = run.settings.get("media") or {}
        library = self._library(MediaSettings.model_validate(settings))
        seed: Any = run.settings.get("seed", 0)
        found = []
        for then in recorded(answer):
            fresh: View = view(item, run.condition, library, seed=seed, others=self._others)
            pictures, now = await shown_again(fresh, then)
            found.append(Remake(pictures, then, now))
        return found

    async def _reproduced(self, run: Run, item: Item, answer: Answer) -> ReproducedAnswer:
        then = recorded(answer)
        blind = run.settings.get("media") == {} or answer.extra.get(SHOWN) == []
        of: Mapping[str, Any] = {
            "system": run.system,
            "condition": run.condition,
            "item": item.id,
            "repetition": answer.repetition,
        }
        count = sum(len(shown_record.prefixes) for shown_record in then)
        if not then:
            state = Reproduction.SAME if blind else Reproduction.UNRECORDED
            return ReproducedAnswer(**of, state=state, pictures=0)
        try:
            made = await self.remade(run, item, answer)
        except InputError as error:
            return ReproducedAnswer(**of, state=Reproduction.UNREADABLE, pictures=count, reason=str(error))
        reason = next((found for remake in made if (found := remake.then.difference(remake.now))), "")
        media = tuple(dict.fromkeys(name for remake in made for name in remake.then.changed_media(remake.now)))
        differing = [remake for remake in made if remake.then.difference(remake.now)]
        state = Reproduction.DIFFERENT if reason else Reproduction.SAME
        if reason and not media and all(remake.then.asked_as == "files" for remake in differing):
            state, reason = Reproduction.UNRECORDED, _ENCODED
        return ReproducedAnswer(**of, state=state, pictures=count, reason=reason, media=media)


def recorded(answer: Answer) -> tuple[ShownRecord, ...]:
    """The record of what was shown for an answer; empty if there is none, or custom code stored something else there."""
    kept = answer.extra.get(SHOWN)
    try:
        return tuple(ShownRecord.model_validate(one) for one in kept) if isinstance(kept, list) else ()
    except ValidationError:
        return ()
