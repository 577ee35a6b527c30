"""Rationales and physicians' tables, without models and videos: guards, faults with their rows, agreement by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from proctor.construction.pipeline import ProjectSettings, SourceVideo
from proctor.core import Frame, InputError
from proctor.stats import Resampling, cohen_kappa
from proctor.tasks.clinicalskillqa.keypoints import Pose
from proctor.tasks.clinicalskillqa.pose import PREDICATES
from proctor.tasks.clinicalskillqa.project.consensus import consensus_table, open_questions, read_consensus
from proctor.tasks.clinicalskillqa.project.frames import LabelledFrame, OrderedFrames
from proctor.tasks.clinicalskillqa.project.physicians import (
    OrderVerdict,
    Review,
    Reviewed,
    ReviewedSentence,
    SentenceVerdict,
    agreement,
    read_review,
    review_table,
)
from proctor.tasks.clinicalskillqa.project.rationales import (
    CLAIMS,
    CheckedSentence,
    CitedSentence,
    added,
    denied_by_poses,
    mentioned,
    rationale_fault,
    told_order,
)
from tests.support.figures import Joints, kneeler, manikin, pose, standing
from tests.support.reviewers import fill_in

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
GOOD = {
    "v-k001": {"order": "b c a", "by": "Dr Ada"},
    "v-k001-s01": {"verdict": "Keep", "by": "Dr Ada"},
    "v-k001-s02": {"verdict": "correct", "correction": "Pads lie in C.", "comment": "so it is", "by": "Dr Ada"},
}


def table(folder: Path, changes: dict[str, dict[str, str]] | None = None, text: str = "") -> Path:
    file = folder / "physician.csv"
    file.write_text(text or review_table([FRAMES], SENTENCES), encoding="utf-8")
    if text:
        return file
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    filled = [{**row, **GOOD[row["id"]], **(changes or {}).get(row["id"], {})} for row in rows]
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(filled)
    return file


def test_a_models_sentence_is_no_formula_in_a_physicians_spreadsheet() -> None:
    said = '=HYPERLINK("http://a.test", "B")'
    sentences = [SENTENCES[0].model_copy(update={"text": said}), SENTENCES[1]]
    texts = [row["text"] for row in csv.DictReader(review_table([FRAMES], sentences).splitlines())]
    assert texts == ["In which order were these frames taken?", f"'{said}", SENTENCES[1].text]


def test_a_table_is_read_as_it_was_filled_in(tmp_path: Path) -> None:
    empty = read_review(table(tmp_path, text=review_table([FRAMES], SENTENCES)), [FRAMES], SENTENCES)
    assert empty == Review({}, {}, frozenset())
    assert read_review(table(tmp_path), [FRAMES], SENTENCES) == Review(
        {"v-k001": OrderVerdict(order=("B", "C", "A"))},
        {
            "v-k001-s01": SentenceVerdict(verdict="keep"),
            "v-k001-s02": SentenceVerdict(verdict="correct", correction="Pads lie in C.", comment="so it is"),
        },
        frozenset({"Dr Ada"}),
    )
    now = [SENTENCES[0].model_copy(update={"text": "In B, both hands are free."}), SENTENCES[1]]
    since = read_review(table(tmp_path), [FRAMES], now)
    assert (set(since.sentences), since.changed) == ({"v-k001-s02"}, 1)  # said of another sentence
    shuffled = FRAMES.model_copy(update={"order": ("A", "B", "C")})
    assert read_review(table(tmp_path), [shuffled], SENTENCES).changed == 3
    unclear = table(tmp_path, {"v-k001": {"order": "Unclear"}})
    assert read_review(unclear, [FRAMES], SENTENCES).orders["v-k001"].order == ()


@pytest.mark.parametrize(
    ("row", "change", "message"),
    [
        ("v-k001", {"order": "A B"}, "row 2, column 'order': found 'A B', expected A, B, C in their order, or unclear"),
        ("v-k001", {"order": "A B C D"}, "row 2, column 'order'"),
        ("v-k001", {"order": "A A B"}, "row 2, column 'order'"),
        ("v-k001", {"by": ""}, "row 2, column 'by': found nothing, expected who reviewed it"),
        ("v-k001", {"verdict": "keep"}, "row 2, column 'verdict': found something in the row of v-k001"),
        ("v-k001-s01", {"order": "A B C"}, "row 3, column 'order': found something in the row of v-k001-s01"),
        ("v-k001-s01", {"verdict": "yes"}, "row 3, column 'verdict': found 'yes', expected one of keep, correct, remove"),
        ("v-k001-s01", {"verdict": "correct"}, "row 3, column 'correction': found nothing, expected the sentence"),
        ("v-k001-s01", {"correction": "So."}, "row 3, column 'correction': found a correction, expected verdict correct"),
        ("v-k001-s02", {"correction": "See B."}, "column 'correction': found frame B, expected frames that the sentence"),
        ("v-k001-s02", {"correction": "A comes before C."}, "found A before C, expected the order B > C > A"),
        ("v-k001-s02", {"correction": "x" * 801}, "row 4, column 'correction'"),
        ("v-k001-s02", {"id": "v-k001-s01"}, "row 4, column 'id': found 'v-k001-s01' again, expected each id once; row 3"),
        ("v-k001-s02", {"id": "w"}, "row 4, column 'id': found 'w', expected one of v-k001, v-k001-s01, v-k001-s02"),
        ("v-k001-s02", {"id": ""}, "row 4, column 'id': found nothing, expected the id of an instance or a sentence"),
        ("v-k001-s02", {"comment": "c" * 801}, "row 4, column 'comment'"),
        ("v-k001-s01", {"version": ""}, "row 3, column 'version': found nothing, expected the version that stood in the"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_row(tmp_path: Path, row: str, change: dict[str, str], message: str) -> None:
    file = table(tmp_path, {row: change})
    with pytest.raises(InputError) as error:
        read_review(file, [FRAMES], SENTENCES)
    assert str(error.value).startswith(f"{file}: row ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,version,order\nv-k001,1,A\n", "no column 'verdict'"),
        ("", "an empty file"),
        ("id,version,order,verdict,correction,by\nv-k001,\x00,,,,\n", "a zero byte"),
    ],
)
def test_a_table_that_is_none_is_told(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "physician.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_review(file, [FRAMES], SENTENCES)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    file = table(tmp_path, {"v-k001": {"order": "A"}, "v-k001-s01": {"verdict": "yes"}})
    with pytest.raises(InputError, match="2 faults") as error:
        read_review(file, [FRAMES], SENTENCES)
    assert len(error.value.__notes__) == 2


def review(a: OrderVerdict, b: OrderVerdict, verdicts: str = "keep keep") -> Reviewed:
    said = [SentenceVerdict.model_validate({"verdict": one}) for one in verdicts.split()]
    sentence = ReviewedSentence(
        id="v-k001-s02", version="1", text=SENTENCES[1].text, frames=("C", "A"), flags=(), a=said[0], b=said[1]
    )
    return Reviewed(
        id="r", source="v", instance="v-k001", version="1", order=FRAMES.order, a=a, b=b, sentences=(sentence,), by=("Ada", "Bo")
    )  # fmt: skip


RIGHT, OTHER = OrderVerdict(order=("B", "C", "A")), OrderVerdict(order=("C", "B", "A"))


@pytest.mark.parametrize(
    ("one", "open_"),
    [
        (review(RIGHT, RIGHT), []),
        (review(RIGHT, OTHER), ["v-k001"]),
        (review(OTHER, OTHER, "keep remove"), []),  # leaves for its order
        (review(RIGHT, RIGHT, "keep remove"), ["v-k001-s02"]),
        (review(OTHER, RIGHT, "remove keep"), ["v-k001", "v-k001-s02"]),
    ],
)
def test_what_is_open(one: Reviewed, open_: list[str]) -> None:
    assert list(open_questions([one])) == open_
    assert [row["id"] for row in csv.DictReader(consensus_table([one]).splitlines())] == open_


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
    ("row", "change", "message"),
    [
        (0, {"verdict": "keep"}, "row 2, column 'verdict': found 'keep', expected one of accept, reject"),
        (0, {"verdict": "accept", "correction": "So."}, "row 2, column 'correction': found something, expected nothing"),
        (1, {"verdict": "accept"}, "row 3, column 'verdict': found 'accept', expected one of keep, correct, remove"),
        (1, {"verdict": "keep", "by": ""}, "row 3, column 'by': found nothing, expected who decided"),
        (1, {"id": "v-k001-s01"}, "row 3, column 'id': found 'v-k001-s01'"),
        (1, {"verdict": "correct", "correction": "See B."}, "row 3, column 'correction': found frame B"),
    ],
)  # fmt: skip
def test_faults_of_what_was_decided_together(tmp_path: Path, row: int, change: dict[str, str], message: str) -> None:
    reviews, file = [review(OTHER, RIGHT, "remove keep")], tmp_path / "consensus.csv"
    file.write_text(consensus_table(reviews))
    wanted = iter([{"verdict": "accept"}, {"verdict": "keep"}])
    rows = fill_in(file, lambda one: {**one, **next(wanted), "by": "both"})
    assert [one.verdict for one in read_consensus(file, reviews).values()] == ["keep", "keep"]
    since = [review(OTHER, RIGHT, "keep remove")]  # they say something else of the sentence now
    assert set(read_consensus(file, since)) == {"v-k001"}
    left = iter([one | (change if place == row else {}) for place, one in enumerate(rows)])
    fill_in(file, lambda _: next(left))
    with pytest.raises(InputError) as error:
        read_consensus(file, reviews)
    assert message in str(error.value)


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
