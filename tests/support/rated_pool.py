"""Rated answers of made-up encounters, and a scripted model that plays every part of the judges that look up."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.judgements import Judgements

from proctor.core import generator
from proctor.judges.dimensions import Case, ClientPool, DimensionJudge, DimensionScores, RatedCase, ReferenceAnswer
from proctor.judges.dimensions.few_shot import (
    ExampleSearch,
    FewShotExamples,
    RatedPool,
    SearchPlan,
    case_score,
    search_examples,
)
from proctor.models import ModelSpec
from tests.support.dimension_cases import built_from, case, rating, setup
from tests.support.faulty_server import FaultyServer, Request

CHINESE = {"factual-consistency-wgold": 0.4, "writing-style": 0.85}

_TOPICS = ("eczema", "psoriasis", "scabies", "burn", "ulcer", "wart", "acne", "rosacea", "tinea", "lichen")


@cache
def one_port() -> int:
    """A free port, the same for all servers of this process: each is the one before, come back."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def rated_answers(encounters: int = 12, systems: int = 3, seed: int = 0) -> list[RatedCase]:
    """Answers of several systems to each encounter in both languages, rated at random: E1, E2 …"""
    draw = generator(seed, "rated")
    found = []
    for number in range(1, encounters + 1):
        topic = _TOPICS[number % len(_TOPICS)]
        for language in ("en", "zh"):
            for system in range(systems):
                text = (
                    f"Answer {system} on {topic} {number}."
                    if language == "en"
                    else f"{topic}的第{number}个回答{system}。"
                )
                one = case(
                    text,
                    language,
                    id=f"iiyi/E{number}/{language}",
                    encounter=f"iiyi/E{number}",
                    query=f"Is this {topic}?" if language == "en" else f"这是{topic}吗？",
                )
                # Others ask the same: what is answered tells the encounters apart.
                one = replace(one, references=(*one.references, ReferenceAnswer(text=f"Seen as number {number}.")))
                values = {of.name: float(draw.choice(of.levels)) for of in one.dimensions}
                found.append(RatedCase(one, values))
    return found


def document_folder(folder: Path, **texts: str) -> Path:
    """A folder of Markdown documents, by name."""
    documents = folder / "documents"
    documents.mkdir(exist_ok=True)
    given = texts or {
        "eczema": "Eczema is treated with a steroid cream. Moisturise twice a day.",
        "burns": "Cool a burn with running water for twenty minutes. Ice is harmful.",
        "zh": "湿疹应外用激素软膏，避免搔抓。",
    }
    for name, text in given.items():
        (documents / f"{name}.md").write_text(text, encoding="utf-8")
    return documents


class Model:
    """Replies to each kind of question by what was given for it; `asked` counts the kinds in their order."""

    def __init__(self, **replies: Any) -> None:
        self.replies: dict[str, Any] = {
            "rerank": {"best": [1]},
            "claims": {"claims": ["It is eczema.", "A steroid cream helps."]},
            "grounding": {"reason": "r", "verdict": "supported", "references": [1], "passages": [1]},
            "score": None,
        } | replies
        self.asked: list[str] = []

    def __call__(self, request: Request) -> str:
        kind = kind_of(request)
        self.asked.append(kind)
        reply = self.replies[kind]
        if callable(reply):
            reply = reply(request)
        if reply is None:
            reply = scores(request)
        return reply if isinstance(reply, str) else json.dumps(reply)


def kind_of(request: Request) -> str:
    """Which of the questions it is, by the form of its reply."""
    fields = set(request.body["response_format"]["json_schema"]["schema"]["properties"])
    known = {"best": "rerank", "claims": "claims", "verdict": "grounding"}
    return next((kind for name, kind in known.items() if name in fields), "score")


def scores(request: Request, **changes: Any) -> dict[str, Any]:
    """A rating as asked, in the language of the question; a passage is cited where that is asked for."""
    fields = request.body["response_format"]["json_schema"]["schema"]["properties"]
    start: dict[str, Any] = json.loads(rating(CHINESE) if "overall" not in fields else rating())
    return start | ({"cited": [1]} if "cited" in fields else {}) | changes


def built(
    name: str,
    pool: ClientPool,
    judgements: Judgements,
    options: Mapping[str, str] | None = None,
    rated: Sequence[RatedCase] = (),
) -> DimensionJudge:
    """A judge of this name."""
    return built_from(name, setup(pool, judgements, options, rated=rated))


def one_judged(
    name: str,
    reply: Callable[[Request], str] | str,
    what: Case | None = None,
    *,
    judgements: Judgements | None = None,
    options: Mapping[str, str] | None = None,
    rated: Sequence[RatedCase] = (),
    **server_options: Any,
) -> tuple[DimensionScores, FaultyServer]:
    """What a judge says of a case, and the server that was asked."""
    import asyncio

    with FaultyServer(reply, port=one_port(), **server_options) as server:
        spec = ModelSpec.model_validate(
            {"name": "openai:judge", "base_url": server.url, "backoff_s": 0.001, "retries": 1, "timeout_s": 600.0}
        )

        async def run() -> DimensionScores:
            pool = ClientPool([spec])
            try:
                judge = built(name, pool, Judgements() if judgements is None else judgements, options, rated)
                return await judge.judge(what or case())
            finally:
                await pool.aclose()

        return asyncio.run(run()), server


RATED = rated_answers()


def few(what: Case | None = None, reply: Any = None, **more: Any) -> DimensionScores:
    more = {"rated": RATED} | more
    return one_judged("few-shot-judge", Model() if reply is None else reply, what, **more)[0]


def encounters_of(chosen: tuple[RatedCase, ...]) -> list[str]:
    return [one.case.encounter for one in chosen]


class ByLength:
    """A judge without a model: what it says depends on its exemplars and on the length of the answer."""

    def __init__(self, exemplars: FewShotExamples, missing: frozenset[str] = frozenset()) -> None:
        self.name = "by-length"
        self.settings: dict[str, Any] = {}
        self._exemplars = exemplars
        self._missing = missing

    async def judge(self, what: Case) -> DimensionScores:
        if what.id in self._missing:
            return DimensionScores.none(what, "no reply")
        scores = [case_score(one.case) for one in self._exemplars.of(what)]
        values = {
            one.name: int(case_score(what)[:4] + scores[0][:2], 16) % 100 / 100 if not one.is_flag else 1.0
            for one in what.dimensions
        }
        return DimensionScores(values=values)


def searched(pool: RatedPool, plan: SearchPlan, **more: Any) -> ExampleSearch:
    missing = more.pop("missing", frozenset())
    return asyncio.run(search_examples(pool, plan, lambda chosen: ByLength(chosen, missing), **more))
