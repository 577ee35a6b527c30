"""The form on a recorded order and its rationale: the reader orders the frames, and judges the sentences afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from proctor.core import content_hash
from proctor_build.pipeline import mentioned, stated_order
from proctor_web.forms.base import Form, FormModel, Label, Line, Passage, ReadingValues, check_known, yes
from proctor_web.forms.marks import ORDER, OrderFrame

SENTENCES = "sentences"
"""The dimension of verdicts on sentences."""

WHOLE_ORDER, AS_RECORDED = "the whole order", "the recorded order"
"""The dimensions of whole orders: the same of both readers, and whether each is as recorded."""

_SENTENCE = "sentence "  # begins the label of a sentence, beside those of pairs of frames


class RecordedSentence(FormModel):
    """A sentence of the recorded rationale, the frames that it cites, and what a check found (`flags` and `why`)."""

    id: Label
    text: Passage
    frames: tuple[Label, ...] = Field(default=(), max_length=40)
    flags: tuple[Line, ...] = Field(default=(), max_length=20)
    why: Passage = ""


class RationaleBody(FormModel):
    """Frames as they are shown at first, their `recorded` order, and the sentences that give reasons for it. `origin` is
    the version of the construction project's record."""

    question: Passage = ""
    frames: tuple[OrderFrame, ...] = Field(min_length=2, max_length=40)
    recorded: tuple[Label, ...] = Field(min_length=2, max_length=40)
    sentences: tuple[RecordedSentence, ...] = Field(min_length=1, max_length=40)
    origin: Line = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len({*self.ids}) < len(self.ids) or len({sentence.id for sentence in self.sentences}) < len(self.sentences):
            raise ValueError("each id once is expected")
        if sorted(self.recorded) != sorted(self.ids):
            raise ValueError("a recorded order that has each frame once is expected")
        if any(label not in self.ids for sentence in self.sentences for label in sentence.frames):
            raise ValueError("sentences that cite frames of the item are expected")
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """The frames' ids, as they are shown."""
        return tuple(frame.id for frame in self.frames)


class SentenceDecision(FormModel):
    """The verdict on a sentence; with `correct`, the new text and the frames that it cites, which are not inherited."""

    verdict: Literal["keep", "correct", "remove"] | None = None
    text: Passage = ""
    frames: tuple[Label, ...] = Field(default=(), max_length=40)


class RationalePayload(FormModel):
    """The order by a reader (or that it is `unclear`), whether the reader has submitted it (`ordered`), and a decision on
    each sentence by id. `accepted` is an adjudicator's: whether the recorded order stands."""

    order: tuple[Label, ...] = Field(default=(), max_length=40)
    unclear: bool = False
    ordered: bool = False
    sentences: dict[Label, SentenceDecision] = Field(default={}, max_length=40)
    accepted: bool | None = None


class RationaleForm(Form[RationaleBody, RationalePayload]):
    """Order the frames, then keep, correct or remove each recorded sentence. Nothing of the recorded order or of a
    sentence is shown, or accepted, before the reader's order is submitted; then the order can't be changed."""

    name = "rationale"
    body = RationaleBody
    payload = RationalePayload
    frames_only = True

    def check(self, body: RationaleBody, payload: RationalePayload) -> None:
        check_known(payload.order, body.ids, "order")
        check_known(list(payload.sentences), [sentence.id for sentence in body.sentences], "sentence")
        check_known([label for one in payload.sentences.values() for label in one.frames], body.ids, "citation")

    def unready(self, body: RationaleBody, before: RationalePayload | None, now: RationalePayload) -> list[str]:
        if before is not None and before.ordered:
            kept = (before.order, before.unclear, True) == (now.order, now.unclear, now.ordered)
            return [] if kept else ["rationale.fixed"]
        if now.ordered:
            return self._unordered(body, now)
        return ["rationale.first"] if now.sentences else []

    def submits_order(self, before: RationalePayload | None, now: RationalePayload) -> bool:
        return now.ordered and (before is None or not before.ordered)

    def _unordered(self, body: RationaleBody, payload: RationalePayload) -> list[str]:
        whole = sorted(payload.order) == sorted(body.ids)
        return [] if whole != payload.unclear and (whole or not payload.order) else ["rationale.order"]

    def missing(self, body: RationaleBody, payload: RationalePayload) -> list[str]:
        lacking = self._unordered(body, payload)
        lacking += [] if payload.ordered or lacking else ["rationale.first"]
        return [*lacking, *self._undecided(body, payload)] if payload.ordered else lacking

    def unsettled(self, body: RationaleBody, payload: RationalePayload) -> list[str]:
        if payload.accepted is None:
            return ["rationale.accepted"]
        return self._undecided(body, payload) if payload.accepted else []

    def _undecided(self, body: RationaleBody, payload: RationalePayload) -> list[str]:
        lacking = []
        for sentence in body.sentences:
            decision = payload.sentences.get(sentence.id, SentenceDecision())
            if decision.verdict is None:
                lacking.append("rationale.sentences")
            if decision.verdict == "correct":
                lacking += self._faults(body, decision)
        return list(dict.fromkeys(lacking))

    @staticmethod
    def _faults(body: RationaleBody, decision: SentenceDecision) -> list[str]:
        """What a corrected sentence lacks."""
        if not decision.text or not decision.frames:
            return ["rationale.text"] if not decision.text else ["rationale.citation"]
        row = {name: number for number, name in enumerate(body.recorded)}
        lettered = all(len(name) == 1 and name.isupper() for name in body.ids)
        named = mentioned(decision.text) if lettered else ()
        stated = [pair for pair in stated_order(decision.text) if {*pair} <= row.keys()]
        faults = ["rationale.named"] if any(label not in decision.frames for label in named) else []
        return faults + (["rationale.contradicts"] if any(row[one] >= row[other] for one, other in stated) else [])

    def media_needed(self, body: RationaleBody) -> int:
        return 1 + max(frame.media for frame in body.frames)

    def dimension(self, label: str) -> str:
        if label in (WHOLE_ORDER, AS_RECORDED):
            return label
        return SENTENCES if label.startswith(_SENTENCE) else ORDER

    def levels(self, dimension: str) -> tuple[str, ...]:
        if dimension == WHOLE_ORDER:
            return ()
        return ("keep", "correct", "remove") if dimension == SENTENCES else super().levels(dimension)

    def values(self, body: RationaleBody, payload: RationalePayload) -> ReadingValues:
        row = {name: number for number, name in enumerate(payload.order)}
        labels = {
            f"{one} before {other}": yes(row[one] < row[other])
            for one, other in combinations(sorted(body.ids), 2)
            if one in row and other in row
        }
        labels |= {WHOLE_ORDER: " > ".join(payload.order), AS_RECORDED: yes(payload.order == body.recorded)}
        decided = self._decided(body, payload)
        labels |= {f"{_SENTENCE}{name}": str(one.verdict) for name, one in decided.items() if one.verdict}
        said: list[JsonValue] = [_as_said(decision) for decision in decided.values()]
        return ReadingValues(labels, text=content_hash([[*payload.order], payload.unclear, said]))

    @staticmethod
    def _decided(body: RationaleBody, payload: RationalePayload) -> Mapping[str, SentenceDecision]:
        return {
            sentence.id: payload.sentences[sentence.id]
            for sentence in body.sentences
            if sentence.id in payload.sentences
        }

    def settle(self, body: RationaleBody, payloads: Sequence[RationalePayload]) -> RationalePayload | None:
        """An order that no reader sees as recorded is settled: frames that nobody can order are no test. One that all see
        as recorded is settled with the sentences on which all agree."""
        as_recorded = [payload.order == body.recorded for payload in payloads]
        if not any(as_recorded):
            return RationalePayload(accepted=False)
        agreed = all(self.same(body, payloads[0], other) for other in payloads[1:])
        return RationalePayload(accepted=True, sentences=payloads[0].sentences) if agreed else None

    def begun(self, body: RationaleBody, payloads: Sequence[RationalePayload]) -> dict[str, JsonValue]:
        """What an adjudicator starts from: the order, if all see it as recorded, and the sentences on which all agree."""
        every = [self._decided(body, payload) for payload in payloads]
        same = {
            name: decision
            for name, decision in (every[0] if every else {}).items()
            if all(name in other and _as_said(other[name]) == _as_said(decision) for other in every[1:])
        }
        accepted = True if payloads and all(payload.order == body.recorded for payload in payloads) else None
        payload = RationalePayload(accepted=accepted, sentences=same)
        return payload.model_dump(mode="json", exclude_defaults=True)

    def taken(self, body: RationaleBody, payload: dict[str, JsonValue]) -> dict[str, JsonValue]:
        accepted = payload.get("order") == [*body.recorded]
        return {"accepted": accepted, "sentences": payload.get("sentences", {})}


def _as_said(decision: SentenceDecision) -> list[JsonValue]:
    """A decision for comparison: words and citations count only in a correction."""
    if decision.verdict != "correct":
        return [decision.verdict]
    return [decision.verdict, decision.text, [*sorted(decision.frames)]]
