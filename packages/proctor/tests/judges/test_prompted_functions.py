"""A judge's function with a prompt of its own: a file beside it, filled in before anything is asked."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import proctor
from proctor import Answer, ConfigurationError, Evaluation, InputError, Item
from proctor.judges import FENCE_NOTE, JUDGES, Ask, JudgeFunction, judge_in_file, judge_prompt
from proctor.testing import MemoryJudgements, ScriptedModel, example_items
from tests.support.faulty_server import FaultyServer
from tests.support.lamp_benchmark import lamps
from tests.support.program import proctor as run_proctor

TEMPLATE = """{% block system %}
You are a senior surgeon.
{% endblock %}
{% block user %}
{{ question }}
Right: {{ reference }}
{% for letter, text in options %}{{ letter }}: {{ text }}
{% endfor %}
{{ answer }}
{% endblock %}
"""
MODULE = """import proctor
from pydantic import BaseModel

class Same(BaseModel):
    same: bool

@proctor.judge(prompt="same.txt.j2", percent=True)
async def same(prompt: str, ask):
    return (await ask(prompt, Same)).same
"""


class Same(BaseModel):
    """Whether two texts say the same."""

    same: bool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "judges.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "same.txt.j2").write_text(TEMPLATE, encoding="utf-8")
    (tmp_path / "same.short.txt.j2").write_text("Same? {{ reference }} {{ answer }}", encoding="utf-8")
    return tmp_path


@pytest.fixture
def same(folder: Path) -> JudgeFunction:
    made = judge_in_file(f"{folder / 'judges.py'}:same")
    assert isinstance(made, JudgeFunction)
    return made


def score(judge: JudgeFunction, model: ScriptedModel, kept: MemoryJudgements | None = None, **more: Any) -> Any:
    """The scores of one answer in free text."""
    (item,) = example_items(["free_text"])
    made = judge(model, MemoryJudgements() if kept is None else kept, **more)
    answer = Answer(item_id=item.id, text="The probe.", parsed="The probe.")
    return asyncio.run(made.score(item, answer))


def test_the_model_reads_the_template_and_the_note_on_fences(same: JudgeFunction) -> None:
    model = ScriptedModel(Same(same=True))
    (found,) = score(same, model)
    (request,) = model.requests
    assert (found.value, found.scorer) == (1.0, "same[scripted:model]")
    assert request.system == f"You are a senior surgeon.\n\n{FENCE_NOTE}"
    assert request.text == (
        "What is seen? (example of free_text)\nRight: The probe slides caudally over the left kidney.\n"
        "<<<ANSWER\nThe probe.\nANSWER>>>"
    )


def test_options_come_with_their_letters(same: JudgeFunction) -> None:
    (item,) = example_items(["choice"])
    judge = proctor.judge(prompt=same.prompt, formats=["choice"])(same.function.function)
    model = ScriptedModel(Same(same=True))
    asyncio.run(judge(model, MemoryJudgements()).score(item, Answer(item_id=item.id, text="C", parsed="C")))
    assert "Right: C\nA: liver\nB: spleen\nC: left kidney\nD: aorta\n" in model.requests[0].text


def test_the_hash_of_the_prompt_is_in_the_settings_and_another_prompt_is_another_judge(
    same: JudgeFunction, folder: Path
) -> None:
    kept = MemoryJudgements()
    usual, short = same(ScriptedModel(), kept), same(ScriptedModel(), kept, prompt=folder / "same.short.txt.j2")
    settings: list[Any] = [getattr(one, "settings", None) for one in (usual, short)]
    assert [one["prompt"] for one in settings] == ["same.txt.j2", "same.short.txt.j2"]
    assert len({one["prompt_sha256"] for one in settings}) == 2
    assert (usual.name, short.name) == ("same[scripted:model]", "same:short[scripted:model]")
    models = [ScriptedModel(Same(same=True)) for _ in range(3)]
    score(same, models[0], kept)
    score(same, models[1], kept, prompt=folder / "same.short.txt.j2")
    score(same, models[2], kept)
    assert [len(model.requests) for model in models] == [1, 1, 0]
    assert len(kept.kept) == 2


def test_it_needs_a_reference_if_its_prompt_shows_one(same: JudgeFunction, folder: Path) -> None:
    (item,) = example_items(["free_text"], references=False)
    (folder / "alone.txt.j2").write_text("Good? {{ answer }}", encoding="utf-8")
    made = [same(ScriptedModel(), MemoryJudgements(), prompt=file) for file in (None, folder / "alone.txt.j2")]
    assert [one.applies(item) for one in made] == [False, True]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "{{ answer }} {{ phase }}",
            "found the variable 'phase', expected one of question, options, reference, answer",
        ),
        (
            "{{ anser }}",
            "found the variable 'anser', expected one of question, options, reference, answer; did you mean",
        ),
        ("{% if answer %}{{ tags.organ }}{% endif %}", "found the variable 'tags'"),
        ("{{ question }}", "found no {{ answer }}, expected the answer that is judged"),
        ("{{ question", "found unexpected end of template"),
        ("", "found nothing, expected a template"),
    ],
)
def test_a_wrong_template_is_refused_before_anything_is_asked(
    same: JudgeFunction, folder: Path, text: str, told: str
) -> None:
    (folder / "same.txt.j2").write_text(text, encoding="utf-8")
    model = ScriptedModel()
    with pytest.raises(InputError) as error:
        same(model, MemoryJudgements())
    assert str(error.value).startswith(f"{folder / 'same.txt.j2'}: ")
    assert told in str(error.value)
    assert model.requests == []


def test_loops_and_functions_of_a_template_are_no_unknown_variables(same: JudgeFunction, folder: Path) -> None:
    text = "{% set wanted = 3 %}{% for k in range(wanted) %}{{ loop.index }}{{ k }}{% endfor %} {{ answer }}"
    (folder / "same.txt.j2").write_text(text, encoding="utf-8")
    model = ScriptedModel(Same(same=False))
    score(same, model)
    assert model.requests[0].text.startswith("102132 <<<ANSWER")


def test_a_missing_file_is_refused_before_anything_is_asked(same: JudgeFunction, folder: Path) -> None:
    (folder / "same.txt.j2").unlink()
    with pytest.raises(
        InputError, match=r"same\.txt\.j2: prompt: found No such file or directory, expected a text file"
    ):
        same(ScriptedModel(), MemoryJudgements())


def test_declared_and_taken_go_together() -> None:
    async def takes(prompt: str, ask: Ask) -> float:
        return 0.0

    async def writes(answer: str, ask: Ask) -> float:
        return 0.0

    with pytest.raises(ConfigurationError) as error:
        proctor.judge(takes)
    told = "takes: found the parameter 'prompt', expected a template: @proctor.judge(prompt='FILE.txt.j2')"
    assert str(error.value) == told
    with pytest.raises(
        ConfigurationError, match=r"writes: found the prompt a\.txt\.j2, expected the parameter 'prompt'"
    ):
        proctor.judge(prompt="a.txt.j2")(writes)
    with pytest.raises(InputError, match=r"judge writes: found a prompt, expected none: it writes its own"):
        proctor.judge(writes)(ScriptedModel(), MemoryJudgements(), prompt=Path("a.txt.j2"))


def test_a_relative_path_begins_at_the_functions_file(folder: Path, same: JudgeFunction, monkeypatch: Any) -> None:
    assert same.prompt == folder / "same.txt.j2"
    monkeypatch.delattr(sys.modules[__name__], "__file__")  # as in a notebook
    made = proctor.judge(prompt="a.txt.j2")(_in_a_notebook)
    assert made.prompt == Path("a.txt.j2")


async def _in_a_notebook(prompt: str, ask: Ask) -> float:
    return 0.0


def test_variants_are_named_as_those_of_other_judges(same: JudgeFunction, folder: Path) -> None:
    assert judge_prompt(same, "short") == folder / "same.short.txt.j2"
    with pytest.raises(
        InputError, match=r"--prompt: found 'shrt', expected a template file, or one of: short \(same\)"
    ):
        judge_prompt(same, "shrt")
    assert judge_prompt("three-level", "paper").name == "three_level.paper.txt.j2"
    assert "three-level" in JUDGES.names()


@pytest.fixture
def made(folder: Path) -> Evaluation:
    def says(item: Item, question: str) -> str:
        return "yes" if "beside" not in question else "the machine"

    store = folder / "lamps.db"
    return proctor.run(lamps(free_text=True), says, conditions="text-only", store=store, baselines=False)


@pytest.mark.parametrize(("choice", "start"), [(None, "What stands"), ("short", "Same? the"), ("FILE", "Same? the")])
def test_score_takes_another_prompt(made: Evaluation, folder: Path, choice: str | None, start: str) -> None:
    more = [] if choice is None else ["--prompt", str(folder / "same.short.txt.j2") if choice == "FILE" else choice]
    with FaultyServer('{"same": true}') as server:
        done = run_proctor(
            "score", "lamps", "--judge", f"{folder / 'judges.py'}:same", "--model", "m", "--base-url", server.url,
            "--store", folder / "lamps.db", *more,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (request,) = server.requests  # the answers are alike
    user = request.body["messages"][-1]["content"]
    assert (user if isinstance(user, str) else user[0]["text"]).startswith(start)


def test_python_takes_another_prompt(made: Evaluation, same: JudgeFunction, folder: Path) -> None:
    (folder / "other.txt.j2").write_text("{{ phase }} {{ answer }}", encoding="utf-8")
    with FaultyServer('{"same": true}') as server:
        scored = made.score(judge=same, model="m", base_url=server.url, prompt="short")
        with pytest.raises(InputError, match="found the variable 'phase'"):
            made.score(judge=same, model="m", base_url=server.url, prompt=str(folder / "other.txt.j2"))
    assert scored.by == {"same:short[m]": 4}
    assert server.count == 1
