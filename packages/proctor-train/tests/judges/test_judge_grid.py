"""`proctor judge compare --model` and the options behind it: what is left out is not in the prompt, and each combination is a scorer
of its own."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import InputError, UsageError
from proctor.judges import passage_index
from proctor.judges.dimensions import (
    ClientPool,
    ReferenceAnswer,
    factories,  # noqa: F401 - now: imported under a replacement, it would keep it
)
from proctor.models import ModelSpec
from proctor.results import judges_of
from proctor.runs import Store
from tests.support.dimension_cases import ENGLISH, built_from, case, rating, setup
from tests.support.faulty_server import FaultyServer, Request
from tests.support.judgements import Judgements
from tests.support.program import within
from tests.support.rated_answers import hashed

OWN = ModelSpec(name="openai:j", base_url="http://127.0.0.1:9/v1")
REFERENCES = ("It is rosacea.", "It is eczema.")


def _reply(request: Request) -> str:
    """Scores that follow the candidate, and only where there are references; a reason only where one is asked for."""
    good = "right" in request.text.rsplit("<<<ANSWER", 1)[-1]
    told = any(one in request.text for one in REFERENCES)
    score = (0.9 if good else 0.2) if told else 0.1 * (request.text.count("a") % 10)
    scores: dict[str, Any] = dict.fromkeys(ENGLISH, score) | {
        "disagree_flag": int(not good) if told else request.text.count("a") % 2
    }
    cited: dict[str, Any] = {"cited": []} if '"cited"' in request.text else {}
    return rating(scores | cited, reason="because" if '"reason"' in request.text else None)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Twelve encounters with three answers each, of which one is right."""
    with (tmp_path / "ratings.csv").open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(
            ["dataset", "encounter_id", "lang", "candidate", "candidate_author_id", "metric", "rater_id", "value"]
        )
        for number in range(12):
            for position in range(3):
                right = (number + position) % 3 == 0
                text = f"{'This is right' if right else 'No idea'}, case {'a' * number}{'b' * position}."
                for name in ENGLISH:
                    value = float(right) if name != "disagree_flag" else float(not right)
                    writer.writerow(["iiyi", f"E{number}", "en", text, f"S{position}", name, "A", value])
    encounters = tmp_path / "encounters.jsonl"
    rows = [
        {
            "dataset": "iiyi",
            "encounter_id": f"E{n}",
            "lang": "en",
            "query": f"What is {n}?",
            "references": [*REFERENCES],
        }
        for n in range(12)
    ]
    encounters.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    code, said = within(
        "import", "mediqa-eval", tmp_path / "ratings.csv", "--data", encounters, "--store", tmp_path / "runs.db"
    )
    assert code == 0, said
    return tmp_path / "runs.db"


def _how(server: FaultyServer, **more: Any) -> dict[str, Any]:
    return {"model": "openai:judge", "base_url": server.url, "retries": 0, "draws": 200, **more}


def test_every_combination_is_a_scorer_and_what_a_factor_is_worth_is_told(store: Path) -> None:
    with FaultyServer(_reply) as server:
        found = proctor.judge_grid(store, "mediqa-eval", **_how(server, references="both", reason="both"))
        paid = server.count
        again = proctor.judge_grid(store, "mediqa-eval", **_how(server, references="both", reason="both"))
        assert server.count == paid
    assert [one.factors for one in found.cells] == [
        {"prompt": "task", "references": references, "reason": reason, "images": "on", "documents": "off"}
        for references in ("on", "off")
        for reason in ("on", "off")
    ]
    names = [one.scorer for one in found.cells]
    assert names == [
        f"mediqa-judge{variant}[openai:judge]"
        for variant in ("", "/no-reason", "/no-references", "/no-references+no-reason")
    ]
    assert set(names) <= set(judges_of(Store(store), "mediqa-eval"))
    assert again.rows == found.rows
    assert [one.judgements for one in again.cells] == [0, 0, 0, 0]
    effects = {row.metric: row for row in found.effects if (row.dimension, row.part) == ("", "all")}
    assert set(effects) == {"references=on", "references=off", "reason=on", "reason=off"}
    without = effects["references=off"].lead("references=on")
    assert (without.difference.value or 0) < -0.3
    assert without.p_holm is not None
    assert without.p_holm < 0.05
    assert effects["reason=off"].lead("reason=on").difference.value == pytest.approx(0, abs=0.2)
    assert [table.title for table in found.tables] == [
        "English: one judge under 4 combinations, leads over the first",
        "English: what each factor is worth, leads over its first level",
    ]


def test_only_what_varies_is_a_column(store: Path) -> None:
    with FaultyServer(_reply) as server:
        found = proctor.judge_grid(store, "mediqa-eval", **_how(server, reason="both"))
    assert [one.label for one in found.tables[0].columns][:2] == ["reason", "Mean"]
    assert "prompt=task, references=on, images=on, documents=off" in found.tables[0].caption


def test_documents_are_a_factor_too(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_index, "load_sentence_encoder", lambda _: hashed.texts)
    folder = tmp_path / "guidelines"
    folder.mkdir()
    (folder / "skin.md").write_text(
        "Rosacea is treated with metronidazole. Eczema is treated with steroids.", encoding="utf-8"
    )
    with FaultyServer(_reply) as server:
        found = proctor.judge_grid(store, "mediqa-eval", **_how(server, documents=folder, reason="off"))
        seen = [request.text for request in server.requests]
    assert [one.factors["documents"] for one in found.cells] == ["off", "on"]
    assert [one.scorer for one in found.cells] == [
        f"{name}/no-reason[openai:judge]" for name in ("mediqa-judge", "retrieval-judge")
    ]
    assert sum("metronidazole" in text for text in seen) == len(seen) / 2


def test_a_combination_with_gaps_is_told_with_the_last_reason_and_asked_again(store: Path) -> None:
    def replies(request: Request) -> str:
        return _reply(request) if '"reason"' in request.text else "Fine."

    said = r"/no-reason.*: found 36 answers without scores \(.*no readable reply"
    with FaultyServer(replies) as server, pytest.raises(InputError, match=said):
        proctor.judge_grid(store, "mediqa-eval", **_how(server, reason="both"))
    with FaultyServer(_reply) as server:
        found = proctor.judge_grid(store, "mediqa-eval", **_how(server, reason="both"))
    assert [one.judgements for one in found.cells] == [0, 36]


def test_the_command_shows_the_same(store: Path) -> None:
    with FaultyServer(_reply) as server:
        given = ("--model", "openai:judge", "--base-url", server.url, "--retries", "0", "--draws", "100")
        code, said = within(
            "judge", "compare", "mediqa-eval", *given, "--prompt", "task", "--prompt", "general", "--store", store
        )
    assert code == 0, said
    assert "prompt=general" in said
    assert "72 new judgements" in said


def test_what_is_left_out_is_not_in_the_request() -> None:
    asyncio.run(_left_out())


async def _left_out() -> None:
    one = case(images=("rash.png",), references=tuple(ReferenceAnswer(text=text) for text in REFERENCES))
    with FaultyServer(_reply) as server:
        seen = {}
        for option in ("", "references", "reason", "images"):
            pool = ClientPool([ModelSpec(name="openai:judge", base_url=server.url)])
            judge = built_from("mediqa-judge", setup(pool, Judgements(), {option: "off"} if option else {}))
            before = len(server.requests)
            await judge.judge(one)
            await pool.aclose()
            seen[option] = server.requests[before]
            assert judge.name == f"mediqa-judge{f'/no-{option}' if option else ''}[openai:judge]"
    reference = one.sorted_references[0].text
    assert reference in seen[""].text
    assert reference not in seen["references"].text
    assert "none are shown" in seen["references"].text
    assert '"reason"' in seen[""].text
    assert '"reason"' not in seen["reason"].text
    assert "pictures, which" in seen[""].text
    assert "pictures, which" not in seen["images"].text


def test_a_folder_is_a_prompt_and_names_the_judge(tmp_path: Path) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    with pytest.raises(InputError, match=r"expected task, general, paper, or a folder with rating\.txt\.j2"):
        built_from("mediqa-judge", setup(ClientPool([OWN]), Judgements(), {"prompt": str(folder)}))
    (folder / "rating.txt.j2").write_text("Rate {{ candidate }}.", encoding="utf-8")
    judge = built_from("mediqa-judge", setup(ClientPool([OWN]), Judgements(), {"prompt": str(folder)}))
    assert judge.name == "mediqa-judge/prompt-published[openai:j]"


def test_a_grid_needs_something_that_varies_and_images_to_show(store: Path) -> None:
    with pytest.raises(InputError, match="grid: found 1 combination, expected 2 to 64, each prompt once"):
        proctor.judge_grid(store, "mediqa-eval", model="openai:judge")
    with pytest.raises(UsageError, match="--images both"):
        proctor.judge_grid(store, "mediqa-eval", model="openai:judge", images="both")
