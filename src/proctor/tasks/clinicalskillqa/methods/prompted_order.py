"""`prompted-order`: all frames in one question, worded in one of several ways."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, JsonValue

from proctor.core import ConfigurationError, Frame, Item, generator
from proctor.models import Part
from proctor.systems import Demonstration, Demonstrations, Picked
from proctor.tasks.clinicalskillqa.keypoints import open_pose
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    FoundOrder,
    KeyFrameMethod,
    KeyFrames,
    MethodOptions,
    OrderingTask,
    OrderReply,
    clipped,
    read_labels,
)
from proctor.tasks.clinicalskillqa.pose import PREDICATES, PictureFacts, facts_of, marked_regions, sentences

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_DIGITS = "23456789"
_WORDS = {"A", "I"}  # labels that are also words: renamed only where they clearly are labels
_BEFORE = r"(?:[Pp]ictures?|[Ff]rames?|[Ii]mages?)"


@dataclass(frozen=True)
class Names:
    """The name under which each label is shown, in the labels' order."""

    by_label: Mapping[str, str]

    @property
    def changed(self) -> bool:
        """Whether any label has another name."""
        return any(label != name for label, name in self.by_label.items())

    def of(self, labels: Sequence[str]) -> list[str]:
        """The names of labels."""
        return [self.by_label[label] for label in labels]

    def asked(self, question: str) -> str:
        """A text with the names for the labels. A label that is also a word (A, I) is renamed only after "picture",
        "frame" or "image", and in a list with other labels.

        >>> Names({"A": "K7Q", "B": "B4X"}).asked("A rescuer is seen in A and B. Does B come first?")
        'A rescuer is seen in K7Q and B4X. Does B4X come first?'
        """
        if not self.changed:
            return question
        one = "|".join(sorted(map(re.escape, self.by_label), key=len, reverse=True))
        joint = r"(?:\s*(?:,|;|>|→|->|&|and|or)\s*)+"
        listed = re.compile(rf"(?<!\w)(?:{one})(?:{joint}(?:{one})(?!\w))+")
        single = re.compile(rf"(?<!\w)(?:{one})(?!\w)")
        named = re.compile(rf"(?<=\s)(?<!\w)(?:{one})(?!\w)")
        question = listed.sub(lambda run: single.sub(self._named, run[0]), question)
        question = re.sub(rf"(?<!\w){_BEFORE}\s(?:{one})(?!\w)", lambda run: named.sub(self._named, run[0]), question)
        return single.sub(lambda hit: hit[0] if hit[0] in _WORDS else self._named(hit), question)

    def order(self, said: Sequence[str]) -> tuple[str, ...]:
        """What the model said, name by name, as labels. What is none of the names stays what it is, marked as such
        where it is spelled like a label, which the model was never shown."""
        labels = {name: label for label, name in self.by_label.items()}
        read = read_labels(said, list(labels)).said
        known = {label.casefold() for label in self.by_label}
        return tuple(
            labels[one] if one in labels else f"{one} (not shown)" if one.casefold() in known else one for one in read
        )

    def told(self, text: str) -> str:
        """A text by the model with the labels for the names, whatever their case."""
        if not self.changed:
            return text
        labels = {name.casefold(): label for label, name in self.by_label.items()}
        any_name = "|".join(map(re.escape, labels))
        return re.sub(rf"(?<!\w)(?:{any_name})(?!\w)", lambda hit: labels[hit[0].casefold()], text, flags=re.IGNORECASE)

    def _named(self, hit: re.Match[str]) -> str:
        return self.by_label[hit[0]]


def kept_names(labels: Sequence[str]) -> Names:
    """The labels as they are."""
    return Names({label: label for label in labels})


def drawn_names(labels: Sequence[str], rng: np.random.Generator) -> Names:
    """A letter, a digit and a letter for each, no two alike: neither their order nor their look says anything."""
    taken = {label.casefold() for label in labels}
    names: list[str] = []
    while len(names) < len(labels):
        name = "".join(str(rng.choice(list(kind))) for kind in (_LETTERS, _DIGITS, _LETTERS))
        if name.casefold() not in taken:
            taken.add(name.casefold())
            names.append(name)
    return Names(dict(zip(labels, names, strict=True)))


FORMULATIONS = {"direct": "direct", "stepwise": "stepwise", "clinical-rules": "clinical_rules"}
"""Ways to word the question, and the file of each: asked at once, worked out in steps, by the procedure's rules."""

NEAREST = "nearest"
"""Beside the predicates of one person: who is nearest to the manikin."""

_MOST_POSE = 700  # characters of the sentences on one picture


class PromptedOrderOptions(MethodOptions):
    """`formulation` is the wording; `rename` whether frames get random names; `demonstrations` a file or folder of
    solved instances, of which `shots` are shown; `pose` a network or a file of keypoints, `head`, `chest` and `device`
    marked places (x,y,width,height in fractions); `predicates` which of the joints' findings are told: `full`, or some
    by name, joined by commas; `pictures` whether they are shown in the labels' order or in a drawn one."""

    formulation: Literal["direct", "stepwise", "clinical-rules"] = "direct"
    rename: Literal["none", "random"] = "random"
    demonstrations: str | None = None
    shots: int = Field(default=2, ge=1, le=8)
    pose: str | None = None
    head: str | None = None
    chest: str | None = None
    device: str | None = None
    predicates: str = "full"
    pictures: Literal["as-given", "random"] = "as-given"


class PromptedOrder(KeyFrameMethod):
    """One question with all frames: a choice of wordings, random names, demonstrations, pose (FBK).

    For n frames and demonstrations of d₁ … dₖ frames it makes 1 call with n + d₁ + … + dₖ images; k is `shots`, 0
    without demonstrations, and fewer where not enough are left once the item itself is passed over. Without frames it
    makes 1 call with no image, and shows no demonstration.

    With `rename="random"` each frame gets a drawn name for the length of the call (the draw belongs to seed and item);
    question, reply and rationale are told with the labels again. With `pictures="random"` the pictures stand in a drawn
    order, too. With `pose` each picture's sentences stand in the
    prompt; keypoints of a file are those of the image `ITEM/LABEL`, and only under the condition `video`.

    `Answer.extra`: `rationale`, `calls`, `images`, `names` (label to name, where renamed), `pose` (label to
    sentences), `demonstrations` (ids shown) and `passed_over`; `labels` where the order misses, repeats or invents.
    """

    method, version, folder, files = "prompted-order", "1", "prompted_order", tuple(FORMULATIONS.values())
    form = PromptedOrderOptions
    options: PromptedOrderOptions

    def prepare(self) -> None:
        super().prepare()
        chosen = self.options
        self._prompt = self.prompts[FORMULATIONS[chosen.formulation]]
        self._pose = None if chosen.pose is None else open_pose(Path(chosen.pose))
        self._marked = marked_regions({"head": chosen.head, "chest": chosen.chest, "device": chosen.device})
        self._predicates = _chosen(chosen.predicates)
        given = chosen.demonstrations
        self._demonstrations = None if given is None else Demonstrations(Path(given))

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model, the wording by name and hash, the renaming with its seed, and by hash what is shown beside."""
        options, shown, pose = self.options, self._demonstrations, self._pose
        return {
            **self.client.settings,
            "version": self.version,
            "formulation": options.formulation,
            "prompt_sha256": self._prompt.sha256,
            "rename": options.rename,
            "seed": self.seed,
            "pictures": options.pictures,
            **({} if shown is None else {"demonstrations": shown.sha256, "shots": options.shots}),
            **({} if pose is None else {**pose.settings, "predicates": ", ".join(sorted(self._predicates))}),
            **{name: region.model_dump(mode="json") for name, region in self._marked.items()},
            **(self.workflows.settings if options.formulation == "clinical-rules" else {}),
        }

    async def find(self, task: OrderingTask) -> FoundOrder:
        """One question with all frames, under other names where that is asked for."""
        item, frames = task.item, self._turned(task.item, task.frames)
        names = self._names(frames.labels, item.id)
        poses = await asyncio.to_thread(self._told, item, frames, task.view.condition)
        picked = await asyncio.to_thread(self._picked, item, frames)
        said = await task.asking.ask(
            self._prompt,
            OrderReply,
            [*self._examples(picked), *_renamed(frames, names)],
            question=names.asked(item.question),
            names=sorted(names.of(frames.labels)),
            shown=names.of(frames.shown),
            unseen=names.of(frames.unseen),
            examples=len(picked.shown),
            poses={names.by_label[label]: text for label, text in poses.items()},
            workflows=task.workflows,
        )
        extra: dict[str, JsonValue] = {}
        if names.changed:
            extra["names"] = {**names.by_label}
        if poses:
            extra["pose"] = {**poses}
        if self._demonstrations is not None:
            extra["demonstrations"] = [one.id for one in picked.shown]
            extra["passed_over"] = {**picked.passed_over}
        return FoundOrder(names.order(said.order), names.told(said.rationale), extra)

    def _turned(self, item: Item, frames: KeyFrames) -> KeyFrames:
        """The frames in the order in which they are shown."""
        if self.options.pictures == "as-given":
            return frames
        drawn = generator(self.seed, self.method, "pictures", item.id).permutation(len(frames.frames))
        return replace(frames, frames=tuple(frames.frames[int(place)] for place in drawn))

    def _names(self, labels: Sequence[str], *where: str) -> Names:
        if self.options.rename == "none":
            return kept_names(labels)
        return drawn_names(labels, generator(self.seed, self.method, "names", *where))

    def _told(self, item: Item, frames: KeyFrames, condition: str) -> dict[str, str]:
        """What the joints in each picture say; what they don't decide is left out. A file of keypoints is silent
        under any condition but video: it would tell a blind run what it may not see."""
        if self._pose is None or not (self._pose.sees or condition == "video"):
            return {}
        told = {}
        for frame in frames.frames:
            pose = self._pose.look(frame.jpeg, f"{item.id}/{frame.label}")
            said = sentences(_only(facts_of(pose, self._marked), self._predicates), unknown=False)
            told[frame.label] = clipped(" ".join(said), _MOST_POSE)
        return told

    def _picked(self, item: Item, frames: KeyFrames) -> Picked:
        if self._demonstrations is None or not frames.frames:
            return Picked((), {})
        return self._demonstrations.pick(item.id, frames.frames, self.options.shots)

    def _examples(self, picked: Picked) -> list[Part]:
        parts: list[Part] = []
        for number, one in enumerate(picked.shown, start=1):
            names = self._names(list(one.frames), "demonstration", one.id)
            parts += [
                replace(frame, label=f"Example {number}, picture {names.by_label[label]}")
                for label, frame in one.frames.items()
            ]
            parts.append(_solved(number, one, names))
        return parts


def _chosen(predicates: str) -> frozenset[str]:
    """The names of predicates that are told. Raises `ConfigurationError` for one that is none."""
    known = (*PREDICATES, NEAREST)
    names = known if predicates == "full" else [name.strip() for name in predicates.split(",")]
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"prompted-order: option 'predicates': found {name!r}, expected full, or some of {', '.join(known)}"
            )
    return frozenset(names)


def _only(facts: PictureFacts, chosen: frozenset[str]) -> PictureFacts:
    people = tuple(
        replace(person, holds={key: holds for key, holds in person.holds.items() if key in chosen})
        for person in facts.rescuers
    )
    return replace(facts, rescuers=people, nearest=facts.nearest if NEAREST in chosen else None)


def _solved(number: int, one: Demonstration, names: Names) -> str:
    because = f" {names.asked(one.rationale.strip())}" if one.rationale.strip() else ""
    return f"Example {number}, solved: {' > '.join(names.of(one.order))}.{because}"


def _renamed(frames: KeyFrames, names: Names) -> list[Frame]:
    return [
        replace(frame, label=f"Picture {names.by_label[label]}")
        for label, frame in zip(frames.shown, frames.frames, strict=True)
    ]
