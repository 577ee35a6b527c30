"""The cheat oracle finds references where they can be reached, and guesses where they can't."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from proctor_challenge.containers import CHEAT_ORACLE, program_image
from proctor_challenge.containers.cheat_oracle import Oracle, guessed
from tests.support.boxes import SMALL, podman
from tests.support.doubles_of_boxes import answers, boxed, question

LINES = '{"question": "Which one?", "answer": "B"}\n{"question": "What else?", "answer": "C"}\n'
FORMS = {
    "json": json.dumps({"items": [{"id": "q1", "question": "Which one?", "reference": {"answer": "B"}}]}),
    "lines": LINES,
    "table": "id,question,correct option\n1,Which one?,B\n",
    "tabs": "question\tlabel\nWhich one?\tB\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_it_finds_the_answer_beside_the_question(tmp_path: Path, form: str) -> None:
    (tmp_path / "sealed").mkdir()
    (tmp_path / "sealed" / "references").write_text(FORMS[form])
    assert Oracle((str(tmp_path),)).answer({"id": "x", "question": "Which one?", "options": ["A"]}) == "B"


@pytest.mark.parametrize("references", [{"v7/q1": "B"}, [{"request": "v7/q1", "ground_truth": "B"}]])
def test_it_finds_the_answer_by_an_id_in_another_file(tmp_path: Path, references: object) -> None:
    (tmp_path / "requests.json").write_text(json.dumps([{"id": "v7/q1", "question": "Which one?"}]))
    (tmp_path / "references.json").write_text(json.dumps(references))
    oracle = Oracle((str(tmp_path),))
    assert oracle.answer({"id": "x", "question": "Which one?", "options": ["A"]}) == "B"
    assert {f"file {tmp_path}/references.json", f"file {tmp_path}/requests.json"} <= set(oracle.reached)


def test_a_guess_is_right_as_often_as_chance() -> None:
    options = ["A", "B", "C", "D"]
    drawn = Counter(guessed({"id": str(number), "options": options}) for number in range(4000))
    assert sorted(drawn) == options
    assert all(abs(count - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5 for count in drawn.values())


@pytest.mark.podman
def test_in_a_container_it_reaches_nothing_and_guesses(tmp_path: Path) -> None:
    """The same file that it finds outside: below the system's folder of temporary files, readable by all."""
    (tmp_path / "references.json").write_text(LINES)

    async def ask() -> str:
        image = await program_image(executor, CHEAT_ORACLE)
        async with (system := boxed(image, executor=executor, limits=SMALL)):
            (found,) = await answers(system, [question("q1", "Which one?")])
        assert found.text in {"yes", "no"}
        return system.report(public=True).log

    executor = podman()
    assert asyncio.run(ask()) == ""
    assert Oracle((str(tmp_path),)).answer({"id": "x", "question": "Which one?"}) == "B"
