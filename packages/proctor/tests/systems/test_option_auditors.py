"""Models that see options without the question, and models that rule options out: what they are asked, how their replies are
read, and their rows in the audit."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from proctor.audits.items import FormatAudit, ModelReplies, audit_items
from proctor.core import Item, Reference, generator
from proctor.core.formats import BinaryFormat, ChoiceFormat
from proctor.models import ModelClient, ModelSpec
from proctor.reports import audit_section
from proctor.runs import PaidJudgements, Store
from proctor.systems import ask_option_auditors
from tests.support.faulty_server import FaultyServer, Request
from tests.support.program import within

QUESTION = "Why is the probe tilted in clip"


def items(count: int = 24, options: int = 4) -> list[Item]:
    """The right option alone is a sentence with "because"."""
    found = []
    for number in range(count):
        texts = [f"because of shadow {number}", *(f"for view {number} of {other}" for other in range(options - 1))]
        order = [int(position) for position in generator(0, "auditors", str(number)).permutation(options)]
        found.append(
            Item(
                id=f"q{number}",
                group=f"v{number // 2}",
                question=f"{QUESTION} {number}?",
                answer=ChoiceFormat(),
                options=tuple(texts[position] for position in order),
                reference=Reference(answer="ABCD"[order.index(0)]),
            )
        )
    return found


def shown(request: Request) -> dict[str, str]:
    return {hit[1]: hit[2] for hit in re.finditer(r"^([A-Z])\. (.*)$", request.text, re.MULTILINE)}


def said(request: Request, letters: list[str]) -> str:
    if "ruled_out" in request.text:
        return json.dumps({"ruled_out": [letter for letter in shown(request) if letter not in letters]})
    return json.dumps({"answer": letters[0]})


def finder(request: Request) -> str:
    return said(request, [letter for letter, text in shown(request).items() if text.startswith("because")])


def asked(server: FaultyServer, some: list[Item], store: Store) -> list[ModelReplies]:
    async def ask() -> list[ModelReplies]:
        client = ModelClient(ModelSpec(name="openai:blind", base_url=server.url, retries=0))
        try:
            return await ask_option_auditors(some, client, store)
        finally:
            await client.aclose()

    return asyncio.run(ask())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.db")


def test_one_sees_no_question_and_both_are_asked_once(store: Store) -> None:
    some = items()
    with FaultyServer(finder) as server:
        alone, out = asked(server, some, store)
        texts = [request.text for request in server.requests]
        assert asked(server, some, store) == [alone, out]
        assert server.count == 48  # the second time nothing is paid
    assert sum(QUESTION in text for text in texts) == 24  # the one that rules options out
    assert all("because" in text for text in texts)
    right = {item.id: (str(item.reference.answer),) for item in some if item.reference}
    assert (alone.name, out.name) == ("options-only openai:blind", "elimination openai:blind")
    assert alone.left == out.left == right  # whatever the order in which options are shown
    published = {item.options for item in some}
    assert sum(tuple(shown(request).values()) in published for request in server.requests) < 12


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("Option {}", 1),
        ("Answer: {}", 1),
        ("({}) is the most plausible.", 1),
        ("I do not know.", None),
        ("Cannot be determined.", None),
        ("A or B", None),
    ],
)
def test_a_choice_is_read_by_its_format(store: Store, reply: str, left: int | None) -> None:
    def worded(request: Request) -> str:
        found = json.loads(finder(request))
        return json.dumps({"answer": reply.format(found["answer"])} if "answer" in found else found)

    with FaultyServer(worded) as server:
        alone, _ = asked(server, items(6), store)
    assert {None if one is None else len(one) for one in alone.left.values()} == {left}


def test_the_text_of_an_option_is_its_name(store: Store) -> None:
    def quotes(request: Request) -> str:
        wrong = [text for text in shown(request).values() if not text.startswith("because")]
        if "ruled_out" in request.text:
            return json.dumps({"ruled_out": wrong[:2]})
        return json.dumps({"answer": next(text for text in shown(request).values() if text not in wrong)})

    some = items(6)
    with FaultyServer(quotes) as server:
        alone, out = asked(server, some, store)
    for item in some:
        key = str(item.reference.answer) if item.reference else ""
        assert alone.left[item.id] == (key,)
        kept = out.left[item.id]
        assert kept is not None
        assert (len(kept), key in kept) == (2, True)


@pytest.mark.parametrize("ruled", [[], ["A", "B", "C", "D"]])
def test_who_rules_out_none_or_all_knows_nothing(store: Store, ruled: list[str]) -> None:
    def reply(request: Request) -> str:
        return json.dumps({"ruled_out": ruled} if "ruled_out" in request.text else {"answer": "A"})

    with FaultyServer(reply) as server:
        _, out = asked(server, items(4), store)
    assert set(out.left.values()) == {("A", "B", "C", "D")}


def test_only_choices_are_shown(store: Store) -> None:
    yes = Item(id="b", group="v", question="Is it?", answer=BinaryFormat(), reference=Reference(answer=True))
    with FaultyServer(finder) as server:
        alone, out = asked(server, [yes, *items(2)], store)
    assert alone.left.keys() == out.left.keys() == {"q0", "q1"}


def rows(some: list[Item], *replies: ModelReplies) -> FormatAudit:
    found = audit_items(some, draws=200, facets=(), models=replies).format("choice")
    assert found is not None
    return found


def test_a_model_has_its_own_row_over_what_it_said() -> None:
    some = items()
    right = {item.id: str(item.reference.answer) for item in some if item.reference}
    half: dict[str, tuple[str, ...] | None] = {name: (key,) for name, key in list(right.items())[:12]}
    half |= dict.fromkeys(list(right)[12:18])  # six say nothing, six were not asked
    without = rows(some)
    found = rows(some, ModelReplies("options-only m", "a model", half))
    row = next(one for one in found.baselines if one.kind == "model")
    assert (row.accuracy.value, row.accuracy.n, row.accuracy.groups, row.missing) == (1.0, 12, 6, 12)
    assert row.chance == 0.25
    assert row.p is not None
    assert row.p < 0.001
    assert found.selected == without.selected  # models are never selected
    section = audit_section(
        audit_items(some, draws=200, facets=(), models=[ModelReplies("m", "a model", half)]), most=99
    )
    assert "it said nothing of 12 items" in str(section)


def test_what_is_left_is_drawn_from() -> None:
    """Two of four are left, the right one among them: half of the items are answered."""
    some = items(200)
    left: dict[str, tuple[str, ...] | None] = {}
    for item in some:
        key = str(item.reference.answer) if item.reference else ""
        left[item.id] = tuple(sorted((key, "B" if key == "A" else "A")))
    row = next(
        one for one in rows(some, ModelReplies("elimination m", "a model", left)).baselines if one.kind == "model"
    )
    assert row.accuracy.value == pytest.approx(0.5, abs=0.1)


def test_a_model_without_a_word_has_no_accuracy() -> None:
    some = items()
    row = next(
        one
        for one in rows(some, ModelReplies("m", "a model", dict.fromkeys(item.id for item in some))).baselines
        if one.kind == "model"
    )
    assert (row.accuracy.value, row.p, row.missing) == (None, None, 24)


def test_a_model_in_the_shell(tmp_path: Path) -> None:
    lines = [
        json.dumps(
            {
                "id": item.id,
                "group": item.group,
                "question": item.question,
                "options": list(item.options),
                "answer": item.reference.answer if item.reference else "",
            }
        )
        for item in items()
    ]
    folder = tmp_path / "clips"
    folder.mkdir()
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")
    common = ("audit", "items", folder, "--draws", "100", "--model", "openai:blind")
    code, text = within(*common)
    assert code == 2
    assert "--store" in text
    store = tmp_path / "runs.db"
    with FaultyServer(finder) as server:
        imported = within("run", folder, "--system", "random", "--condition", "text-only", "--store", store)
        assert imported[0] == 0, imported[1]
        for calls in (48, 48):
            code, text = within(*common, "--store", store, "--base-url", server.url)
            assert code == 0, text
            assert "options-only openai:blind" in text
            assert "elimination openai:blind" in text
            assert server.count == calls


def test_replies_that_are_paid_are_counted(store: Store) -> None:
    paid = PaidJudgements(store)
    with FaultyServer(finder) as server:

        async def ask() -> None:
            client = ModelClient(ModelSpec(name="openai:blind", base_url=server.url, retries=0))
            await ask_option_auditors(items(3), client, paid)
            await client.aclose()

        asyncio.run(ask())
    assert paid.count == 6
