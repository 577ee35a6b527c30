"""`prompted-order`: all frames in one question, worded in one of several ways."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pydantic import Field, JsonValue

from proctor.core import ConfigurationError, Frame, Item, generator
from proctor.models import Part
from proctor.systems import Demonstration, Picked
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    Aids,
    FoundOrder,
    KeyFrameMethod,
    KeyFrames,
    MethodOptions,
    OrderingTask,
    OrderReply,
    clipped,
    read_labels,
)
from proctor.tasks.clinicalskillqa.pose import PREDICATES, PictureFacts, facts_of, sentences

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_DIGITS = "23456789"
_WORDS = {"A", "I"}  # labels that are also words: renamed only where they clearly stand for pictures
_BEFORE = r"(?:[Pp]ictures?|[Ff]rames?|[Ii]mages?)"


@dataclass(frozen=True)
class Names:
    """The name that the prompt shows for each label, in the labels' order."""

    by_label: Mapping[str, str]

    @property
    def changed(self) -> bool:
        return any(label != name for label, name in self.by_label.items())

    def of(self, labels: Sequence[str]) -> list[str]:
        return [self.by_label[label] for label in labels]

    def rename(self, question: str) -> str:
        """A text with names instead of labels. A label that is also a word (A, I) is renamed only after "picture",
        "frame" or "image", and in a list with other labels.

        >>> Names({"A": "K7Q", "B": "B4X"}).rename("A rescuer is seen in A and B. Does B come first?")
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

    def order(self, reply: Sequence[str]) -> tuple[str, ...]:
        """The model's order of names as an order of labels. An unknown name stays as it is; where it is spelled like a
        label, which the model never saw, it is marked as not shown."""
        labels = {name: label for label, name in self.by_label.items()}
        read = read_labels(reply, list(labels)).labels
        known = {label.casefold() for label in self.by_label}
        return tuple(
            labels[one] if one in labels else f"{one} (not shown)" if one.casefold() in known else one for one in read
        )

    def restore(self, text: str) -> str:
        """The model's text with labels instead of names, in any case."""
        if not self.changed:
            return text
        labels = {name.casefold(): label for label, name in self.by_label.items()}
        any_name = "|".join(map(re.escape, labels))
        return re.sub(rf"(?<!\w)(?:{any_name})(?!\w)", lambda hit: labels[hit[0].casefold()], text, flags=re.IGNORECASE)

    def _named(self, hit: re.Match[str]) -> str:
        return self.by_label[hit[0]]


def kept_names(labels: Sequence[str]) -> Names:
    """Every label under its own name."""
    return Names({label: label for label in labels})


def drawn_names(labels: Sequence[str], rng: np.random.Generator) -> Names:
    """Random names for labels: a letter, a digit and a letter each, all different."""
    taken = {label.casefold() for label in labels}
    names: list[str] = []
    while len(names) < len(labels):
        name = "".join(str(rng.choice(list(kind))) for kind in (_LETTERS, _DIGITS, _LETTERS))
        if name.casefold() not in taken:
            taken.add(name.casefold())
            names.append(name)
    return Names(dict(zip(labels, names, strict=True)))


FORMULATIONS = {"direct": "direct", "stepwise": "stepwise", "clinical-rules": "clinical_rules"}
"""The wordings of the question with the file of each: asked directly, worked out in steps, by the procedure's rules."""

NEAREST = "nearest"
"""A further predicate, of all people together: who is nearest to the manikin."""

_MAX_POSE = 700  # characters of the sentences on one picture


class PromptedOrderOptions(MethodOptions):
    """`formulation`: the wording. `rename`: whether frames get random names. `demonstrations`: a file or folder of
    solved instances, of which `shots` are shown. `pose`: a network or a file of keypoints; `head`, `chest`, `device`:
    marked regions (x,y,width,height in fractions). `predicates`: which findings on poses the prompt states, `full` or
    some by name, joined by commas. `pictures`: whether they are shown in the labels' order or in a random one."""

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

    With `rename="random"` each frame has a random name during the call, drawn by seed and item; the answer states
    labels again. With `pictures="random"` the pictures are shown in a random order, too. With `pose` the prompt has
    sentences on each picture; a file's keypoints are those of the image `ITEM/LABEL`, under the condition `video` only.

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
        marks = {"head": chosen.head, "chest": chosen.chest, "device": chosen.device}
        self._aids = Aids(chosen.pose, marks, chosen.demonstrations, chosen.shots)
        self._predicates = _chosen(chosen.predicates)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model, the wording by name and hash, the renaming with its seed, and hashes of what else is shown."""
        options = self.options
        return {
            **self.client.settings,
            "version": self.version,
            "formulation": options.formulation,
            "prompt_sha256": self._prompt.sha256,
            "rename": options.rename,
            "seed": self.seed,
            "pictures": options.pictures,
            **self._aids.settings,
            **({} if self._aids.pose is None else {"predicates": ", ".join(sorted(self._predicates))}),
            **(self.workflows.settings if options.formulation == "clinical-rules" else {}),
        }

    async def find(self, task: OrderingTask) -> FoundOrder:
        """One question with all frames."""
        item, frames = task.item, self._in_shown_order(task.item, task.frames)
        names = self._names(frames.labels, item.id)
        poses = await asyncio.to_thread(self._pose_sentences, item, frames, task.view.condition)
        picked = await asyncio.to_thread(self._aids.picked, item, frames.frames)
        reply = await task.model.ask(
            self._prompt,
            OrderReply,
            [*self._examples(picked), *_renamed(frames, names)],
            question=names.rename(item.question),
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
        if self._aids.demonstrations is not None:
            extra["demonstrations"] = [demonstration.id for demonstration in picked.shown]
            extra["passed_over"] = {**picked.passed_over}
        return FoundOrder(names.order(reply.order), names.restore(reply.rationale), extra)

    def _in_shown_order(self, item: Item, frames: KeyFrames) -> KeyFrames:
        if self.options.pictures == "as-given":
            return frames
        drawn = generator(self.seed, self.method, "pictures", item.id).permutation(len(frames.frames))
        return replace(frames, frames=tuple(frames.frames[int(position)] for position in drawn))

    def _names(self, labels: Sequence[str], *where: str) -> Names:
        if self.options.rename == "none":
            return kept_names(labels)
        return drawn_names(labels, generator(self.seed, self.method, "names", *where))

    def _pose_sentences(self, item: Item, frames: KeyFrames, condition: str) -> dict[str, str]:
        """Sentences on the poses in each picture, by label; undecided predicates are left out."""
        found = {}
        for label, pose in self._aids.poses(item, frames.frames, condition).items():
            facts = _only(facts_of(pose, self._aids.marked), self._predicates)
            found[label] = clipped(" ".join(sentences(facts, unknown=False)), _MAX_POSE)
        return found

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
    """The chosen names of predicates. Raises `ConfigurationError` for an unknown one."""
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


def _solved(number: int, demonstration: Demonstration, names: Names) -> str:
    because = f" {names.rename(demonstration.rationale.strip())}" if demonstration.rationale.strip() else ""
    return f"Example {number}, solved: {' > '.join(names.of(demonstration.order))}.{because}"


def _renamed(frames: KeyFrames, names: Names) -> list[Frame]:
    return [
        replace(frame, label=f"Picture {names.by_label[label]}")
        for label, frame in zip(frames.shown, frames.frames, strict=True)
    ]
