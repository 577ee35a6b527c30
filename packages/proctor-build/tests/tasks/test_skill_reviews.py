"""Rationales and what physicians settled, without models and videos: guards, and faults with their lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from proctor.core import Frame, InputError
from proctor.stats import Resampling, cohen_kappa
from proctor.tasks.clinicalskillqa.keypoints import Pose
from proctor.tasks.clinicalskillqa.pose import PREDICATES
from proctor_build.clinicalskillqa.project.consensus import ConsensusStage, version_of
from proctor_build.clinicalskillqa.project.frames import LabelledFrame, OrderedFrames
from proctor_build.clinicalskillqa.project.rationales import (
    CLAIMS,
    CheckedSentence,
    CitedSentence,
    added,
    denied_by_poses,
    rationale_fault,
)
from proctor_build.pipeline import Project, Record, WaitingError, Work, mentioned, stated_order
from tests.support.figures import Joints, kneeler, manikin, pose, standing

FRAMES = OrderedFrames(
    id="v-k001",
    source="v",
    start=0,
    end=4,
    frames=tuple(
        LabelledFrame(label=label, time=time, sha256="") for label, time in zip("ABC", (3, 1, 2), strict=True)
    ),
    order=("B", "C", "A"),
)
SENTENCES = [
    CheckedSentence(id="v-k001-s01", source="v", instance="v-k001", text="In B, a hand is free.", frames=("B",)),
    CheckedSentence(id="v-k001-s02", source="v", instance="v-k001", text="Pads lie in C, then A.", frames=("C", "A"), flags=("not visible",)),
]  # fmt: skip
ORIGIN = version_of(FRAMES, *SENTENCES)
CORRECTED = {"verdict": "correct", "text": "Pads lie in C.", "frames": ["C"]}


def reading(reader: str = "R-1", *order: str) -> dict[str, Any]:
    """A physician's reading, in a line of the consensus."""
    return {"reader": reader, "payload": {"order": [*(order or FRAMES.order)], "ordered": True}, "comment": ""}


def settled(**changes: Any) -> dict[str, Any]:
    """A line of `--what consensus`."""
    sentences = [{"id": one.id, "text": one.text, "frames": [*one.frames]} for one in SENTENCES]
    body = {"recorded": [*FRAMES.order], "sentences": sentences, "origin": ORIGIN} | changes.pop("body", {})
    verdicts = {"v-k001-s01": {"verdict": "keep"}, "v-k001-s02": CORRECTED}
    payload = {"accepted": True, "sentences": verdicts} | changes.pop("payload", {})
    line = {"form": "rationale", "item": "v-k001", "version": 1, "current": True, "by": "agreed", "reason": ""}
    return line | {"payload": payload, "body": body, "readings": [reading("R-1"), reading("R-2")]} | changes


def work(folder: Path, lines: list[dict[str, Any]] | str) -> Work:
    """The stage of a project with the file that it reads."""
    (folder / "sources").mkdir(parents=True, exist_ok=True)
    (folder / "project.yaml").write_text("kind: clinicalskillqa\nsources: [{id: v, video: v.mp4, group: g}]\n")
    text = lines if isinstance(lines, str) else "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "sources" / "consensus.jsonl").write_text(text)
    project = Project(folder)
    before: dict[str, Sequence[Record]] = {"frames": [FRAMES], "evidence": SENTENCES}
    return Work(project, "consensus", "all", project.settings.sources, before)


def test_the_command_that_is_named_can_be_copied(tmp_path: Path) -> None:
    folder = tmp_path / "my skills"
    with pytest.raises(WaitingError) as error:
        asyncio.run(ConsensusStage().make(work(folder, [])))
    assert f"--out '{folder}/sources/consensus.jsonl' writes what is settled)" in str(error.value)


def consensus(folder: Path, *lines: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    made = asyncio.run(ConsensusStage().make(work(folder, [*lines])))
    return list(made.records), list(made.refused)


@pytest.mark.parametrize(
    ("corrected", "message"),
    [
        ({"text": "See B.", "frames": ["C"]}, "v-k001-s02: found frame B, expected a correction that cites each frame"),
        ({"text": "See it.", "frames": ["D"]}, "found frame D"),
        ({"text": "A comes before C.", "frames": ["A", "C"]}, "found A before C, expected the order B > C > A"),
    ],
)
def test_a_correction_cites_what_it_names_in_the_recorded_order(
    tmp_path: Path, corrected: dict[str, Any], message: str
) -> None:
    verdicts = {"v-k001-s01": {"verdict": "keep"}, "v-k001-s02": {"verdict": "correct"} | corrected}
    with pytest.raises(InputError, match=message):
        consensus(tmp_path, settled(payload={"sentences": verdicts}))


def test_what_two_physicians_did_not_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"v-k001: found 1 reading, expected at least 2 \(plan: readings: 2\)"):
        consensus(tmp_path, settled(readings=[reading()]))
    with pytest.raises(InputError, match="line 1"):
        asyncio.run(ConsensusStage().make(work(tmp_path, "id,version\n")))


def test_an_order_that_neither_sees_leaves_with_both_orders(tmp_path: Path) -> None:
    unclear = reading("R-1") | {"payload": {"order": [], "unclear": True, "ordered": True}}
    other = reading("R-2", "A", "B", "C")
    line = settled(payload={"accepted": False, "sentences": {}}, readings=[unclear, other])
    (made, (left,)) = consensus(tmp_path, line)
    assert (made, left.kind, left.reason) == ([], "order", "neither physician sees the recorded order")
    assert left.found == "unclear; A > B > C"


def test_notes_say_who_settled_and_how_many_orders_are_as_recorded(tmp_path: Path) -> None:
    line = settled(by="R-3", readings=[reading("R-1"), reading("R-2", "A", "B", "C")])
    made = asyncio.run(ConsensusStage().make(work(tmp_path, [line])))
    assert made.notes == [
        "1 instance settled by an adjudicator",
        "1 of 2 orders by physicians as recorded",
        "1 sentence kept by physicians against a flag",
    ]


def test_the_settled_sentences_are_the_rationale(tmp_path: Path) -> None:
    ((one,), refused) = consensus(tmp_path, settled())
    assert [(each.text, each.frames) for each in one.sentences] == [
        ("In B, a hand is free.", ("B",)), ("Pads lie in C.", ("C",))
    ]  # fmt: skip
    assert one.flags == ("a frame that no sentence cites",)
    assert refused == []
    nothing = {"sentences": {name: {"verdict": "remove"} for name in ("v-k001-s01", "v-k001-s02")}}
    (made, (left,)) = consensus(tmp_path, settled(payload=nothing))
    assert (made, left.reason) == ([], "no sentence is left of it")
    (made, (left,)) = consensus(tmp_path, settled(payload={"accepted": False}, by="R-3", reason="two moments  alike"))
    assert (made, left.reason) == ([], "rejected in the review; two moments alike")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"payload": {"sentences": {}}}, "v-k001: found no verdict on v-k001-s01, expected one on each sentence"),
        ({"body": {"recorded": ["A", "B", "C"]}}, "found an item that was changed in the review"),
        ({"payload": {"accepted": None}}, "line 1, field 'payload.accepted'"),
        ({"form": "question"}, "line 1, field 'form'"),
        ({"payload": {"sentences": {"x": {"verdict": "yes"}}}}, "line 1, field 'payload.sentences.x.verdict'"),
        (
            {"payload": {"sentences": {"x": {"verdict": "correct"}}}},
            "a corrected sentence with its text and the frames",
        ),
        ({"version": "1"}, "line 1, field 'version'"),
    ],
)
def test_a_fault_of_the_consensus_is_told(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        consensus(tmp_path, settled(**change))
    assert message in str(error.value)


@pytest.mark.parametrize("change", [{"current": False}, {"item": "w"}, {"body": {"origin": "old"}}, {"by": ""}])
def test_the_stage_waits_for_what_is_settled_now(tmp_path: Path, change: dict[str, Any]) -> None:
    line = settled(**change)
    line |= {} if line["by"] else {"payload": None}
    with pytest.raises(WaitingError, match="1 of 1 instance to settle"):
        consensus(tmp_path, line)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("In B, a hand; then frames C, D and E.", ("B", "C", "D", "E")),
        ("A rescuer kneels; I see A.", ("A",)),
        ("A shows the pads.", ("A",)),
        ("The C-spine is held with an E-C grip, X-ray at hand.", ()),
        ("The operator's T-shirt is blue.", ()),
    ],
)
def test_labels_in_a_text(text: str, labels: tuple[str, ...]) -> None:
    assert mentioned(text) == labels


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("From C to B a hand moves.", [("C", "B")]),
        ("B > C -> A", [("B", "C"), ("C", "A")]),
        ("C follows B.", [("B", "C")]),
        ("Frame C was taken after frame B.", [("B", "C")]),
        ("B must come before C.", [("B", "C")]),
        ("B is followed by C, then A.", [("B", "C"), ("C", "A")]),
        ("B does not come before C.", []),
        ("In B the pads are placed, and in C a shock is given.", []),
    ],
)
def test_an_order_that_a_text_tells(text: str, pairs: list[tuple[str, str]]) -> None:
    assert sorted(stated_order(text)) == sorted(pairs)


def cited(*told: tuple[str, str]) -> list[CitedSentence]:
    return [CitedSentence(text=text, frames=tuple(frames)) for text, frames in told]


def test_what_a_refined_text_may_say() -> None:
    draft = cited(("A gloved hand lies on the chest.", "B"), ("Two pads lie on the left side.", "C"))
    assert (
        added(cited(("The gloved hand rests on the chest.", "B"), ("Two pads are on the left.", "C")), draft, 1) == ""
    )
    assert added(cited(("Two pads lie on the chest.", "B")), draft, 9) == "not in the draft: two"  # of another frame
    assert added(cited(("A pale, gloved hand lies on the chest.", "B")), draft, 0) == "not in the draft: pal"
    assert added(cited(("No hand lies on the chest.", "B")), draft, 9) == "a negation added: no"
    negated = cited(("No hand lies on the chest.", "B"))
    assert added(cited(("A hand lies on the chest.", "B")), negated, 9) == "a negation lost: no"


def test_a_rationale_takes_frames_up_in_their_order() -> None:
    assert rationale_fault(cited(("One.", "B"), ("Two.", "BC"), ("All three.", "BCA")), "BCA") == ""
    assert rationale_fault(cited(("One.", "B"), ("Two.", "A"), ("Three.", "C")), "BCA") == (
        "another order: A is taken up before C"
    )


def test_kappa_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    for size in (6, 40, 300):
        a = rng.integers(3, size=size)
        b = np.where(rng.random(size) < 0.6, a, rng.integers(3, size=size))
        groups = [str(one) for one in rng.integers(10, size=size)]
        found = cohen_kappa(a.tolist(), b.tolist(), [0, 1, 2], groups, Resampling(draws=200))
        assert found.value == pytest.approx(cohen_kappa_score(a, b))
        assert None not in (found.value, found.ci_low, found.ci_high)
        ends = [one or 0.0 for one in (-1.0, found.ci_low, found.value, found.ci_high, 1.0)]
        assert ends == sorted(ends)
    assert cohen_kappa("yy", "yy", "yn", ["a", "b"]).value is None  # nothing could have differed
    assert cohen_kappa([], [], "yn", []).n == 0


def test_words_claim_what_poses_decide() -> None:
    assert CLAIMS.keys() <= PREDICATES.keys()


@pytest.mark.parametrize(
    ("text", "people", "denied"),
    [
        ("In B, a rescuer kneels.", [standing(), manikin()], "Nobody in these frames, by their poses: kneeling."),
        ("In B, a rescuer kneels.", [kneeler(), manikin()], ""),
        ("In B, a rescuer kneels.", [standing(), kneeler(), manikin()], ""),
        ("In B, a rescuer kneels.", [manikin()], ""),  # nobody is seen
        ("In B, nobody is not kneeling.", [standing(), manikin()], ""),
        ("In B, both hands rest on the chest.", [standing(), manikin()], "Nobody in these frames, by their poses: hands on chest."),
        ("In B, a hand lies on the bag.", [standing(), manikin()], ""),
    ],
)  # fmt: skip
def test_poses_deny_what_nobody_does(text: str, people: list[Joints], denied: str) -> None:
    def look(jpeg: bytes, name: str) -> Pose:
        assert (jpeg, name) == (b"x", "v-k001/B")
        return pose(*people)

    assert denied_by_poses(text, look, FRAMES, [Frame(jpeg=b"x", time=None, label="Frame B")]) == denied
