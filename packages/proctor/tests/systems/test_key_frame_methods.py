"""What methods that order key frames share: labels in replies, answers as stated, and demonstrations."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from proctor.core import Frame, InputError, Item, Usage
from proctor.core.formats import BinaryFormat, OrderingFormat
from proctor.core.validation import kept_json
from proctor.media import view
from proctor.systems import Demonstrations
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    MOST_RATIONALE,
    OrderReply,
    key_frames,
    order_answer,
    ordering_labels,
    read_labels,
)
from tests.support.faulty_server import FaultyServer
from tests.support.key_frame_model import AskedModel, Instances, keys, made_instances, only, run_method, solved
from tests.support.stills import Shown

LABELS = ("A", "B", "C", "D")


def item() -> Item:
    return Item(id="q1", group="v1", question="In which order?", answer=OrderingFormat(labels=LABELS))


@pytest.mark.parametrize(
    "said", ["b", " B ", "B.jpg", "b.JPEG", "frames/B.png", "Frame B", "picture_b.webp", "(B)", '"B",', "Image: b"]
)
def test_one_label_in_many_spellings(said: str) -> None:
    assert read_labels([said], LABELS).labels == ("B",)


@pytest.mark.parametrize("said", ["", "BA", "E", "B and C", "2", "Frame", "none"])
def test_what_is_no_label_stays_unknown(said: str) -> None:
    found = read_labels([said], LABELS)
    assert (found.known, found.unknown, found.complete) == ((), (said,), False)


def test_lower_case_labels_are_apart_from_upper_case_ones() -> None:
    assert read_labels(["a", "A"], ["A", "a"]).labels == ("a", "A")


@given(st.lists(st.text(max_size=8), max_size=8))
def test_nothing_is_added_or_moved(names: list[str]) -> None:
    found = read_labels(names, LABELS)
    assert len(found.labels) == len(names)
    assert list(found.known) == list(dict.fromkeys(one for one in found.labels if one in LABELS))
    assert set(found.known) | set(found.missing) == set(LABELS)
    answer = order_answer(item(), found.labels, rationale="", usage=Usage(), extra={})
    stated = len([one for one in found.labels if one in LABELS]) >= 2 or len(names) >= 2
    assert (answer.parsed == kept_json([*found.labels])) == (answer.parsed is not None)
    assert (answer.parsed is not None) <= stated
    assert bool(answer.problem) == (answer.parsed is None)


def test_an_order_is_stated_as_it_was_said() -> None:
    good = order_answer(item(), list("DBAC"), rationale=" why ", usage=Usage(requests=2), extra={"calls": 2})
    assert (good.text, good.parsed, good.problem) == ("Answer: D > B > A > C", list("DBAC"), "")
    assert good.extra == {"rationale": "why", "calls": 2}
    assert good.usage.requests == 2
    odd = order_answer(item(), ["D", "X1", "D", "A"], rationale="", usage=Usage(), extra={})
    assert (odd.text, odd.parsed) == ('["D", "X1", "D", "A"]', ["D", "X1", "D", "A"])
    assert item().answer.parse(odd.text) == odd.parsed
    assert odd.extra == {"rationale": "", "labels": {"missing": ["B", "C"], "repeated": ["D"], "unknown": ["X1"]}}


@pytest.mark.parametrize("order", [[], ["A"]])
def test_no_order_is_no_answer(order: list[str]) -> None:
    none = order_answer(item(), order, rationale="", usage=Usage(), extra={})
    assert none.parsed is None
    assert none.problem.startswith("expected the labels A, B, C, D in an order, found ")


def test_long_rationales_are_cut_where_it_shows() -> None:
    kept = order_answer(item(), LABELS, rationale="x" * 9000, usage=Usage(), extra={}).extra["rationale"]
    assert isinstance(kept, str)
    assert (len(kept), kept[-2:]) == (MOST_RATIONALE, "x…")


@pytest.mark.parametrize(
    "order", ['["D","B","A","C"]', '"D > B > A > C"', '"D, B, A, C"', '"D→B→A→C"', '["D > B > A > C"]', '"D B A C"']
)
def test_an_order_may_come_as_one_text(order: str) -> None:
    assert OrderReply.model_validate_json(f'{{"rationale": "", "order": {order}}}').order == list("DBAC")


def test_frames_are_found_by_label() -> None:
    some = [Frame(b"1", None, "C"), Frame(b"2", None, "A")]
    found = asyncio.run(key_frames(item(), Shown(some)))
    assert (found.shown, found.unseen) == (("C", "A"), ("B", "D"))
    assert [(frame.jpeg, frame.label) for frame in found.captioned(["A"])] == [(b"2", "Picture A")]
    assert [frame.label for frame in found.captioned()] == ["Picture C", "Picture A"]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ("AEB", "item 'q1': found a picture labelled 'E' that the answer does not know, expected A, B, C, D, each"),
        ("ABA", "item 'q1': found a picture labelled 'A' twice, expected A, B, C, D, each at most once"),
    ],
)
def test_frames_that_do_not_fit_the_item(labels: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        asyncio.run(key_frames(item(), Shown([Frame(b"", None, label) for label in labels])))
    assert str(caught.value).startswith(text)


def test_orderings_alone() -> None:
    other = Item(id="q1", group="v1", question="Is it?", answer=BinaryFormat())
    with pytest.raises(ValueError, match="an answer of the format binary has no order"):
        ordering_labels(other)


NAME = "prompted-order"


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Instances:
    return made_instances(tmp_path_factory.mktemp("instances"))


def test_demonstrations_stand_before_the_question(instances: Instances, tmp_path: Path) -> None:
    file = solved(tmp_path / "d", ["d1", "d2", "d3"])
    one = only(instances, 4)
    with FaultyServer(AskedModel(instances.positions)) as server:
        answer = run_method(NAME, one, server, demonstrations=str(file), rename="none")[0]
        named = run_method(NAME, one, server, demonstrations=str(file), shots=3)[0]
    with FaultyServer(json.dumps({"rationale": "", "order": list("ABCD")})) as blind:
        plain = run_method(NAME, one, blind, demonstrations=str(file), condition="text-only")[0]
    assert answer.parsed == named.parsed == keys(one)[0]
    assert (answer.extra["calls"], answer.extra["images"]) == (1, 4 + 2 * 3)
    assert answer.extra["demonstrations"] == ["d1", "d2"]
    assert named.extra["images"] == 4 + 3 * 3
    texts = server.requests[0].texts
    assert texts[1:5] == (
        "Example 1, picture A",
        "Example 1, picture B",
        "Example 1, picture C",
        "Example 1, solved: C > A > B. Frame A of d1 is second.",
    )
    assert "The examples above are solved. Now solve this one." in texts[-1]
    solved_under_names = next(text for text in server.requests[1].texts if "solved:" in text)
    assert "C > A > B" not in solved_under_names
    assert "Frame A" not in solved_under_names
    assert (plain.extra["images"], plain.extra["demonstrations"]) == (0, [])
    assert "examples" not in blind.requests[0].text


def test_the_item_that_is_asked_is_never_shown_solved(instances: Instances, tmp_path: Path) -> None:
    """Neither by its id, nor by a picture, whatever its name and encoding are."""
    one = only(instances, 4)
    item = one.items[0]
    file = solved(tmp_path / "d", ["d1", item.id, "d2"])
    frames = asyncio.run(view(item, "video", one.library).frames())
    with Image.open(io.BytesIO(frames[2].jpeg)) as opened:
        opened.convert("RGB").resize((200, 112)).save(tmp_path / "d" / "d1B.png")
    with FaultyServer(AskedModel(instances.positions)) as server:
        answer = run_method(NAME, one, server, demonstrations=str(file))[0]
    assert answer.extra["demonstrations"] == ["d2"]
    assert answer.extra["passed_over"] == {"d1": "its picture B is one of the item's", item.id: "it is the item"}
    assert answer.extra["images"] == 4 + 3
    assert "Example 2" not in server.requests[0].text


def test_the_tasks_own_folder_serves_as_demonstrations(instances: Instances) -> None:
    task = instances.benchmark.media_root
    assert task is not None
    demonstrations = Demonstrations(task)
    item = instances.items[0]
    frames = asyncio.run(view(item, "video", instances.library).frames())
    picked = demonstrations.pick(item.id, frames, 3)
    assert len(picked.shown) == 3
    assert item.id in picked.passed_over
    by_id = {one.id: one for one in instances.items}
    for one in picked.shown:
        reference = by_id[one.id].reference
        assert reference is not None
        assert list(one.order) == reference.answer
        assert sorted(one.frames) == sorted(one.order)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[]", "found no demonstration, expected a list of them"),
        ("{", "line 1, column 2: found the end of the file: it is cut off"),
        ('[{"id": "x"}]', "entry 1, field 'order': found nothing, expected a value"),
        ('[{"id": "x", "order": ["A", "A"]}]', "item 'x': found A > A, expected each label once"),
        ('[{"id": "x", "order": ["A", "B"]}, {"id": "x", "order": ["A", "B"]}]', "item 'x': found it twice"),
    ],
)
def test_files_of_demonstrations_with_a_fault(tmp_path: Path, content: str, text: str) -> None:
    file = tmp_path / "d.json"
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        Demonstrations(file)
    assert str(caught.value).startswith(f"{file}: {text}")


def test_demonstrations_without_their_pictures(tmp_path: Path) -> None:
    file = tmp_path / "d.json"
    file.write_text('[{"id": "x", "order": ["A", "B"], "frames": {"A": "a.png"}}]')
    with pytest.raises(InputError, match="item 'x': found A, expected pictures of A, B"):
        Demonstrations(file).pick("i", [], 1)
    file.write_text('[{"id": "x", "order": ["A", "B"], "frames": {"A": "a.png", "B": "../b.png"}}]')
    with pytest.raises(InputError, match=r"item 'x': found the picture 'b\.png' outside of the folder"):
        Demonstrations(file).pick("i", [], 1)
    with pytest.raises(InputError, match="found nothing there, expected a file or a folder of demonstrations"):
        Demonstrations(tmp_path / "none")
    with pytest.raises(InputError, match=r"found no references, expected references\.jsonl or references\.json"):
        Demonstrations(tmp_path)
    (tmp_path / "references.json").write_text('[{"id": "../x", "order": ["A", "B"]}]')
    with pytest.raises(InputError, match="found an id that is no name of a folder"):
        Demonstrations(tmp_path).pick("i", [], 1)
