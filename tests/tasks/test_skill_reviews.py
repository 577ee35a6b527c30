"""Rationales and physicians' readings, without models and videos: guards, faults with their lines, agreement by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from proctor.construction.pipeline import (
    Project,
    ProjectSettings,
    Record,
    SourceVideo,
    WaitingError,
    Work,
    mentioned,
    told_order,
)
from proctor.core import Frame, InputError
from proctor.stats import Resampling, cohen_kappa
from proctor.tasks.clinicalskillqa.keypoints import Pose
from proctor.tasks.clinicalskillqa.pose import PREDICATES
from proctor.tasks.clinicalskillqa.project.consensus import ConsensusStage
from proctor.tasks.clinicalskillqa.project.frames import LabelledFrame, OrderedFrames
from proctor.tasks.clinicalskillqa.project.physicians import (
    OrderVerdict,
    PhysiciansStage,
    Reviewed,
    ReviewedSentence,
    SentenceVerdict,
    agreement,
    version_of,
)
from proctor.tasks.clinicalskillqa.project.rationales import (
    CLAIMS,
    CheckedSentence,
    CitedSentence,
    added,
    denied_by_poses,
    rationale_fault,
)
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


def reading(reader: str = "R-1", **changes: Any) -> dict[str, Any]:
    """A line of `proctor review export --what readings`."""
    verdicts = {"v-k001-s01": {"verdict": "keep"}, "v-k001-s02": CORRECTED}
    payload = {"order": ["B", "C", "A"], "ordered": True, "sentences": verdicts} | changes.pop("payload", {})
    line = {"form": "rationale", "item": "v-k001", "version": 1, "gold": False, "reader": reader, "origin": ORIGIN}
    return line | {"payload": payload, "comment": "", "study": "orders"} | changes


def settled(**changes: Any) -> dict[str, Any]:
    """A line of `--what consensus`."""
    sentences = [{"id": one.id, "text": one.text, "frames": [*one.frames]} for one in SENTENCES]
    body = {"recorded": [*FRAMES.order], "sentences": sentences, "origin": ORIGIN} | changes.pop("body", {})
    verdicts = {"v-k001-s01": {"verdict": "keep"}, "v-k001-s02": CORRECTED}
    payload = {"accepted": True, "sentences": verdicts} | changes.pop("payload", {})
    line = {"form": "rationale", "item": "v-k001", "version": 1, "current": True, "by": "agreed", "reason": ""}
    return line | {"payload": payload, "body": body} | changes


def work(folder: Path, stage: str, lines: list[dict[str, Any]] | str, reviews: list[Reviewed] | None = None) -> Work:
    """A stage of a project with the file that it reads."""
    (folder / "sources").mkdir(exist_ok=True)
    (folder / "project.yaml").write_text("kind: clinicalskillqa\nsources: [{id: v, video: v.mp4, group: g}]\n")
    name = "readings" if stage == "physicians" else "consensus"
    text = lines if isinstance(lines, str) else "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "sources" / f"{name}.jsonl").write_text(text)
    project = Project(folder)
    before: dict[str, Sequence[Record]] = {"frames": [FRAMES], "evidence": SENTENCES, "physicians": reviews or []}
    return Work(project, stage, "all", project.settings.sources, before)


def test_the_command_that_is_named_can_be_copied(tmp_path: Path) -> None:
    folder = tmp_path / "my skills"
    folder.mkdir()
    for stage, kind in (("physicians", PhysiciansStage()), ("consensus", ConsensusStage())):
        waiting = work(folder, stage, [], physicians(tmp_path, [reading("R-1"), reading("R-2")]))
        with pytest.raises(WaitingError) as error:
            asyncio.run(kind.make(waiting))
        name = "readings" if stage == "physicians" else "consensus"
        assert f"--out '{folder}/sources/{name}.jsonl' writes what is " in str(error.value)


def physicians(folder: Path, lines: list[dict[str, Any]] | str) -> list[Reviewed]:
    return list(asyncio.run(PhysiciansStage().make(work(folder, "physicians", lines))).records)


def test_two_readings_are_taken_as_they_were_submitted(tmp_path: Path) -> None:
    unclear = {"order": [], "unclear": True}
    (one,) = physicians(tmp_path, [reading("R-2", payload=unclear, comment="nothing\n moves"), reading("R-1")])
    assert one.by == ("R-1", "R-2")
    assert (one.a, one.b) == (OrderVerdict(order=("B", "C", "A")), OrderVerdict(order=(), comment="nothing moves"))
    correction = SentenceVerdict(verdict="correct", correction="Pads lie in C.", frames=("C",))
    assert [each.a for each in one.sentences] == [SentenceVerdict(verdict="keep"), correction]
    assert one.flags == ("order",)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "1 of 1 instance to be read by two physicians (proctor review export"),
        ([reading()], "1 of 1 instance to be read"),
        ([reading(), reading("R-2", origin="old")], "1 of them changed since"),
        ([reading(), reading("R-2", gold=True)], "1 of 1 instance to be read"),
        ([reading(version=1), reading("R-2", version=2)], "1 of 1 instance to be read"),
    ],
)
def test_the_stage_waits_for_two_readings_of_what_is_there_now(
    tmp_path: Path, lines: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(WaitingError) as error:
        physicians(tmp_path, lines)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"payload": {"order": ["A", "B"]}}, "v-k001 by R-2: found the order A > B, expected A, B, C in their order, or"),
        ({"payload": {"order": ["A", "A", "B"]}}, "found the order A > A > B"),
        ({"payload": {"unclear": True}}, "found the order B > C > A"),
        ({"payload": {"unclear": True, "order": ["Z", "B"]}}, "v-k001 by R-2: found the order Z > B, expected A, B, C"),
        ({"payload": {"ordered": False}}, "expected A, B, C in their order"),
        ({"payload": {"sentences": {"v-k001-s01": {"verdict": "keep"}}}}, "found verdicts on v-k001-s01, expected one on"),
        ({"payload": {"sentences": {"x": {"verdict": "yes"}}}}, "line 2, field 'payload.sentences.x.verdict'"),
        ({"payload": {"sentences": {"x": {"verdict": "correct"}}}}, "a corrected sentence with its text and the frames"),
        ({"form": "order"}, "line 2, field 'form'"),
        ({"reader": "R-1"}, "line 2: found a reading of 'v-k001' by R-1 again, expected each reading once"),
        ({"version": "1"}, "line 2, field 'version'"),
    ],
)  # fmt: skip
def test_a_fault_of_a_reading_is_told_with_its_place(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    lines = [reading(), reading(**({"reader": "R-2"} | change))]
    with pytest.raises(InputError) as error:
        physicians(tmp_path, lines)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


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
        physicians(tmp_path, [reading(), reading("R-2", payload={"sentences": verdicts})])


def test_a_third_reading_and_a_file_that_is_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found readings by 3 people, expected two \(plan: readings: 2\)"):
        physicians(tmp_path, [reading(f"R-{number}") for number in (1, 2, 3)])
    with pytest.raises(InputError, match="line 1"):
        physicians(tmp_path, "id,version\n")


def consensus(folder: Path, line: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    reviews = physicians(folder, [reading("R-1"), reading("R-2")])
    made = asyncio.run(ConsensusStage().make(work(folder, "consensus", [line], reviews)))
    return list(made.records), list(made.refused)


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
    ],
)
def test_a_fault_of_the_consensus_is_told(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        consensus(tmp_path, settled(**change))
    assert message in str(error.value)


@pytest.mark.parametrize("change", [{"current": False}, {"item": "w"}, {"body": {"origin": "old"}}])
def test_the_stage_waits_for_what_is_settled_now(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(WaitingError, match="1 of 1 instance to settle"):
        consensus(tmp_path, settled(**change))


def review(a: OrderVerdict, b: OrderVerdict, verdicts: str = "keep keep") -> Reviewed:
    said = [SentenceVerdict.model_validate({"verdict": one}) for one in verdicts.split()]
    sentence = ReviewedSentence(
        id="v-k001-s02", text=SENTENCES[1].text, frames=("C", "A"), flags=(), a=said[0], b=said[1]
    )
    return Reviewed(
        id="r", source="v", instance="v-k001", version="1", order=FRAMES.order, a=a, b=b, sentences=(sentence,), by=("Ada", "Bo")
    )  # fmt: skip


RIGHT, OTHER = OrderVerdict(order=("B", "C", "A")), OrderVerdict(order=("C", "B", "A"))


def test_agreement_by_hand() -> None:
    unclear = OrderVerdict(order=())
    each = [review(RIGHT, RIGHT), review(RIGHT, OTHER, "keep remove"), review(unclear, unclear, "remove remove")]
    reviews = [one.model_copy(update={"source": name}) for one, name in zip(each, "abc", strict=True)]
    sources = tuple(SourceVideo(id=name, video="v.mp4") for name in "abc")
    said = agreement(reviews, ProjectSettings(kind="clinicalskillqa", sources=sources))
    assert [line.split(" [")[0] for line in said] == [
        "the same of the order by both: 0.67",  # 2 of 3
        "Kendall's τ of both orders: 0.67",  # (1 + 1/3) / 2: one of three pairs the other way round
        "orders as recorded: 0.50",  # 3 of 6
        "Cohen's κ of keep, correct, remove: 0.40",  # (2/3 - 4/9) / (1 - 4/9)
    ]
    assert all(line.endswith("in 3 groups)") or "2 instances in 2 groups" in line for line in said)


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
    assert sorted(told_order(text)) == sorted(pairs)


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
