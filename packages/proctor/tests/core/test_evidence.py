"""Evidence of an item: what is refused, what stands in JSON, and that no system and no file without answers has it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from proctor.core import (
    AudioClip,
    Evidence,
    EvidenceBox,
    EvidenceWindow,
    Image,
    Item,
    Reference,
    VideoClip,
    content_hash,
    fingerprint,
)
from proctor.core.formats import BinaryFormat

MEDIA = (VideoClip(source="a.mp4", start=10, end=20), Image(source="b.png"), AudioClip(source="c.wav"))
BOX: dict[str, Any] = {"x": 0.1, "y": 0.2, "width": 0.3, "height": 0.4}


def item(**evidence: Any) -> Item:
    found = Evidence(**evidence) if evidence else None
    reference = Reference(answer=True)
    return Item(
        id="q", group="g", question="?", answer=BinaryFormat(), media=MEDIA, reference=reference, evidence=found
    )


def test_an_item_without_evidence_has_the_fingerprint_of_before() -> None:
    """As it was before items had evidence, of the same item."""
    plain = item().model_copy(update={"media": (VideoClip(source="a.mp4", start=10, end=20),)})
    assert "evidence" not in plain.model_dump(mode="json")
    assert fingerprint([plain]) == "db1cd2f34a4a469c1fee52e64f6877b4ae76d1e72a8b0420437b8c1d70e7fffd"


def test_evidence_is_part_of_the_fingerprint_and_comes_back_from_json() -> None:
    one = item(windows=[EvidenceWindow(start=11, end=12)], boxes=[EvidenceBox(**BOX, start=12, end=13)])
    other = item(windows=[EvidenceWindow(start=11, end=12.5)])
    assert len({content_hash(each) for each in (item(), one, other)}) == 3
    assert Item.model_validate_json(one.model_dump_json()) == one
    assert one.model_dump(mode="json")["evidence"] == {
        "windows": [{"start": 11.0, "end": 12.0}],
        "boxes": [{**BOX, "start": 12.0, "end": 13.0}],
    }


def test_no_system_gets_it() -> None:
    one = item(windows=[EvidenceWindow(start=11, end=12)])
    assert one.as_asked().evidence is None
    handed_out = one.without_answer()
    assert (handed_out.evidence, handed_out.reference, handed_out.media) == (None, None, MEDIA)


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        ({"windows": [{"medium": 3, "start": 1, "end": 2}]}, "a window of one of the item's media (0 to 2), not of 3"),
        ({"windows": [{"medium": 1, "start": 1, "end": 2}]}, "no times in the window of the still image 'b.png'"),
        ({"boxes": [{**BOX, "medium": 1, "start": 1, "end": 2}]}, "no times in the box of the still image 'b.png'"),
        ({"boxes": [{**BOX, "medium": 2, "start": 1, "end": 2}]}, "no box of the sound 'c.wav'"),
        ({"boxes": [BOX]}, "a start and an end of the box of the video 'a.mp4'"),
        (
            {"windows": [{"start": 20, "end": 22}]},
            "a window within what is shown of 'a.mp4' (from 10 s to 20 s), not 20 to 22 s",
        ),
        ({"boxes": [{**BOX, "start": 1, "end": 10}]}, "a box within what is shown of 'a.mp4'"),
    ],
)
def test_evidence_that_does_not_fit_the_media_is_refused(evidence: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        item(**evidence)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        ({}, "a window or a box"),
        ({"windows": [{"start": 3, "end": 3}]}, "a window that ends at 3 s, not after its start at 3 s"),
        ({"windows": [{"start": -1, "end": 3}]}, "greater than or equal to 0"),
        ({"windows": [{"start": 1, "end": float("inf")}]}, "finite"),
        ({"windows": [{"start": 1, "end": float("nan")}]}, "finite"),
        ({"boxes": [{**BOX, "x": 0.8}]}, "a region inside the frame (0 to 1)"),
        ({"boxes": [{**BOX, "width": 0}]}, "greater than 0"),
        ({"boxes": [{**BOX, "start": 1}]}, "a box with a start and an end, or with neither"),
        ({"boxes": [{**BOX, "start": 3, "end": 2}]}, "a box that ends at 2 s, not after its start at 3 s"),
        ({"boxes": [{**BOX, "start": 3, "end": 4, "label": "x"}]}, "Extra inputs are not permitted"),
    ],
)
def test_evidence_that_is_none_is_refused(evidence: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Evidence(**evidence)
    assert told in str(caught.value)


def test_evidence_may_go_beyond_what_is_shown() -> None:
    """A clip that begins within the evidence, or ends in it, shows a part of it."""
    kept = item(windows=[EvidenceWindow(start=5, end=12), EvidenceWindow(start=19, end=30)])
    assert kept.evidence is not None
    assert len(kept.evidence.windows) == 2
