"""Forms: what must be there, what is the same, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.core import InputError
from proctor_web.forms import FORMS, BoxAt, boxes_matched
from tests.support.web_study import ACCEPT, ALL_CHECKS, BODIES, QUESTION, READINGS


def read(form: str, payload: dict[str, Any], body: dict[str, Any] | None = None) -> tuple[Any, Any]:
    chosen = FORMS[form]
    checked = chosen.read_body(body or BODIES[form])
    return checked, chosen.read(checked, payload)


def missing(form: str, payload: dict[str, Any], body: dict[str, Any] | None = None) -> list[str]:
    return FORMS[form].missing(*read(form, payload, body))


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_draft_may_be_kept_and_not_sealed(form: str) -> None:
    assert missing(form, {})


@pytest.mark.parametrize("form", FORMS)
def test_complete_readings_are_complete_and_differ(form: str) -> None:
    body, one = read(form, READINGS[form][0])
    _, other = read(form, READINGS[form][1])
    assert FORMS[form].missing(body, one) == FORMS[form].missing(body, other) == []
    assert FORMS[form].same(body, one, one)
    assert not FORMS[form].same(body, one, other)
    assert not FORMS[form].same(body, other, one)


@pytest.mark.parametrize("form", FORMS)
def test_unknown_fields_are_refused(form: str) -> None:
    with pytest.raises(InputError, match="no field of this name"):
        read(form, {"verdict": "x"})


@pytest.mark.parametrize(
    ("form", "payload", "said"),
    [
        ("order", {"order": ["a", "d"]}, r"order: found 'd', expected one of a, b, c"),
        ("order", {"rationale": [{"text": "x", "frames": ["z"]}]}, "rationale: found 'z'"),
        ("presence", {"present": ["clamp"]}, "class: found 'clamp', expected one of clip, stapler"),
        ("boxes", {"boxes": [{"time": 1, "label": "x", "x": 0, "y": 0, "width": 1, "height": 1}]}, "class: found 'x'"),
        ("boxes", {"boxes": [{"time": 1, "label": "clip", "x": 0.5, "y": 0, "width": 0.6, "height": 1}]}, "inside"),
        ("boxes", {"boxes": [{"time": 1, "label": "clip", "x": float("nan"), "y": 0, "width": 1, "height": 1}]}, "x"),
        ("moments", {"moments": [{"time": 1, "kind": "pause"}]}, "kind: found 'pause'"),
        ("moments", {"moments": [{"time": -1, "kind": "insertion"}]}, "at least 0"),
        ("rating", {"scores": {"correct": 1.5}}, "dimension 'correct': found 1.5, expected one of 0, 1, 2"),
        ("rating", {"scores": {"style": 1}}, "dimension: found 'style'"),
        ("choice", {"choice": "maybe"}, "choice: found 'maybe', expected one of accept, reject"),
        ("pairwise", {"choice": "both"}, "'first', 'second' or 'tie'"),
        ("question", {"checks": {"spelling": True}}, "checks"),
        ("question", {"reason": "x" * 10_001}, "at most 10000"),
    ],
)
def test_what_does_not_fit_is_refused(form: str, payload: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(form, payload)


def test_a_question_is_not_accepted_with_a_fault() -> None:
    faulty = ALL_CHECKS | {"distractors": False}
    assert missing("question", {"decision": "accept", "checks": faulty}) == ["question.accepted_with_fault"]
    assert missing("question", {"decision": "reject", "checks": faulty}) == ["question.reason"]
    assert missing("question", {"decision": "reject", "checks": faulty, "reason": "too easy"}) == []


def test_an_edit_must_change_something_and_leave_a_whole_question() -> None:
    edit = {"decision": "edit", "checks": ALL_CHECKS, "reason": "clearer"}
    assert missing("question", edit) == ["question.edited"]
    assert missing("question", edit | {"edited": QUESTION}) == ["question.edited"]
    changed = QUESTION | {"stem": "What happens next?"}
    assert missing("question", edit | {"edited": changed}) == []
    assert missing("question", edit | {"edited": changed | {"key": 7}}) == ["question.key"]
    assert missing("question", edit | {"edited": changed | {"options": ["a", "a", "b"]}}) == ["question.options"]


def test_two_edits_agree_only_in_every_word() -> None:
    def edit(stem: str) -> Any:
        payload = {"decision": "edit", "checks": ALL_CHECKS, "reason": "r", "edited": QUESTION | {"stem": stem}}
        return read("question", payload)[1]

    body = read("question", ACCEPT)[0]
    assert FORMS["question"].same(body, edit("What now?"), edit(" What now? "))
    assert not FORMS["question"].same(body, edit("What now?"), edit("What then?"))


def test_a_settled_edit_becomes_the_item_and_keeps_the_former_text() -> None:
    edited = QUESTION | {"stem": "What now?"}
    body, payload = read("question", {"decision": "edit", "checks": ALL_CHECKS, "reason": "r", "edited": edited})
    new = FORMS["question"].new_body(body, payload)
    assert new is not None
    assert new["stem"] == "What now?"
    assert FORMS["question"].read_body(new).former == (body.text,)
    assert FORMS["question"].new_body(*read("question", ACCEPT)) is None


def test_an_edit_keeps_what_it_does_not_speak_of() -> None:
    besides = {"format": "choice", "tolerance": 2.0, "labels": ["anticipation"], "relevance": "safety", "moment": 1.5}
    edit = {"decision": "edit", "checks": ALL_CHECKS, "reason": "r", "edited": QUESTION}
    assert missing("question", edit, QUESTION | besides) == ["question.edited"]  # nothing was changed
    edited = edit | {"edited": QUESTION | {"stem": "What now?", "explanation": ""}}
    new = FORMS["question"].new_body(*read("question", edited, QUESTION | besides))
    assert new is not None
    assert {name: new[name] for name in besides} == besides
    assert (new["stem"], new["explanation"]) == ("What now?", "")
    other = FORMS["question"].new_body(
        *read("question", edit | {"edited": QUESTION | {"labels": ["safety"]}}, QUESTION | besides)
    )
    assert other is not None
    assert other["labels"] == ["safety"]


def test_a_free_question_has_no_checks_of_options() -> None:
    body = {"stem": "What is it?", "answer": "The liver."}
    assert missing("question", {"decision": "accept", "checks": {"pictures": True, "clinical": True}}, body) == []


def test_a_rationale_cites_a_frame() -> None:
    whole = READINGS["order"][0]
    assert missing("order", whole | {"rationale": []}) == ["order.rationale"]
    assert missing("order", whole | {"rationale": [{"text": "b is first."}]}) == ["order.citation"]
    assert missing("order", {"order": ["a", "b"]} | {"rationale": whole["rationale"]}) == ["order.order"]
    without = BODIES["order"] | {"rationale": False}
    assert missing("order", {"order": ["a", "b", "c"]}, without) == []


def test_an_order_is_compared_by_its_pairs() -> None:
    body, payload = read("order", READINGS["order"][0])
    assert FORMS["order"].values(body, payload).labels == {"a before b": "no", "a before c": "yes", "b before c": "yes"}


def test_nothing_must_be_said() -> None:
    assert missing("presence", {"nothing": True}) == []
    assert missing("presence", {"nothing": True, "present": ["clip"]}) == ["nothing_and_some"]
    assert missing("boxes", {}) == missing("moments", {}) == ["nothing"]


def test_times_within_the_tolerance_agree_and_their_mean_is_the_consensus() -> None:
    form = FORMS["moments"]
    body, one = read("moments", {"moments": [{"time": 3.0, "kind": "insertion"}, {"time": 9.0, "kind": "retrieval"}]})
    _, two = read("moments", {"moments": [{"time": 9.4, "kind": "retrieval"}, {"time": 4.0, "kind": "insertion"}]})
    assert form.same(body, one, two)
    assert [(m.kind, m.time) for m in form.settled([one, two]).moments] == [("insertion", 3.5), ("retrieval", 9.2)]
    _, far = read("moments", {"moments": [{"time": 4.01, "kind": "insertion"}, {"time": 9.0, "kind": "retrieval"}]})
    assert not form.same(body, one, far)


def test_boxes_agree_from_half_overlap_on_at_the_same_time_and_class() -> None:
    half = BoxAt(1.0, "clip", (0.0, 0.0, 0.2, 0.1))
    whole = BoxAt(1.0, "clip", (0.0, 0.0, 0.2, 0.2))
    assert boxes_matched([whole], [half]) == 1
    assert boxes_matched([whole], [BoxAt(1.0, "clip", (0.0, 0.0, 0.2, 0.099))]) == 0
    assert boxes_matched([whole], [BoxAt(2.0, "clip", whole.extent)]) == 0
    assert boxes_matched([whole], [BoxAt(1.0, "stapler", whole.extent)]) == 0


def test_texts_are_fit_to_be_kept() -> None:
    _, payload = read("question", {"reason": "a\x00b \ud800"})
    assert payload.reason == "a\ufffdb \ufffd"
