"""Cases for judges of dimensions, a book of judgements in memory, and a judge run against a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.judgements import Judgements

from proctor.core import JudgementCache
from proctor.judges import JUDGES
from proctor.judges.dimensions import (
    Case,
    ClientPool,
    DimensionJudge,
    DimensionScores,
    JudgeSetup,
    RatesDimensions,
    ReferenceAnswer,
)
from proctor.models import ModelSpec
from proctor.tasks.mediqa_eval import READER, SCHEME, dimensions
from tests.support.faulty_server import FaultyServer

ENGLISH = {
    "disagree_flag": 0,
    "completeness": 0.62,
    "factual-accuracy": 0.88,
    "relevance": 0.9,
    "writing-style": 0.97,
    "overall": 0.7,
}
"""A rating as asked, in English."""

LEVELS = {"completeness": 0.5, "factual-accuracy": 1, "relevance": 1, "writing-style": 0.5}
"""The same in levels."""


def case(candidate: str = "Eczema. Use a steroid cream.", language: str = "en", **changes: Any) -> Case:
    """An answer to a question with four references, of which two are known to be reliable."""
    english = language == "en"
    fields: dict[str, Any] = {
        "id": f"iiyi/E1/{language}",
        "encounter": "iiyi/E1",
        "dataset": "iiyi",
        "language": language,
        "query": "What is this rash?" if english else "这是什么皮疹？",
        "references": (
            ReferenceAnswer(text="Psoriasis." if english else "银屑病。"),
            ReferenceAnswer(text="Eczema." if english else "湿疹。", frequency=1, completeness=0.5),
            ReferenceAnswer(
                text="Eczema, use a steroid." if english else "湿疹，外用激素。", frequency=1, completeness=1
            ),
            ReferenceAnswer(text="Rosacea." if english else "玫瑰痤疮。", frequency=0, completeness=1),
        ),
        "candidate": candidate,
        "dimensions": dimensions(language),
        "scheme": SCHEME,
    }
    return Case(**(fields | changes))


def rating(scores: Mapping[str, Any] = ENGLISH, /, reason: str | None = "because", **changes: Any) -> str:
    """A reply: a reason, and scores with these changes (None leaves one out)."""
    said = {**scores, **{name.replace("_", "-"): value for name, value in changes.items()}}
    if "disagree-flag" in said:
        said["disagree_flag"] = said.pop("disagree-flag")
    start = {} if reason is None else {"reason": reason}
    return json.dumps(start | {name: value for name, value in said.items() if value is not None})


def setup(
    pool: ClientPool, judgements: JudgementCache, options: Mapping[str, str] | None = None, **more: Any
) -> JudgeSetup:
    """What a judge of MEDIQA-EVAL's dimensions is made from, with the task's own prompts."""
    return JudgeSetup(pool, judgements, options or {}, prompts=READER.judge_prompts, own="mediqa-judge", **more)


def built_from(name: str, given: JudgeSetup) -> DimensionJudge:
    """The judge of dimensions of this name."""
    factory = JUDGES.get(name)
    assert isinstance(factory, RatesDimensions)
    return factory(given)


def judged(
    name: str,
    server: FaultyServer,
    cases: Sequence[Case],
    judgements: Judgements | None = None,
    *,
    models: Sequence[str] = ("openai:judge",),
    options: Mapping[str, str] | None = None,
    **spec: Any,
) -> list[DimensionScores]:
    """What a judge of this name says of the cases."""
    patience = {"backoff_s": 0.001, "retries": 1, "timeout_s": 600.0}
    specs = [ModelSpec.model_validate({"name": one, "base_url": server.url} | patience | spec) for one in models]

    async def run() -> list[DimensionScores]:
        pool = ClientPool(specs)
        try:
            judge = built_from(name, setup(pool, Judgements() if judgements is None else judgements, options or {}))
            return await asyncio.gather(*(judge.judge(one) for one in cases))
        finally:
            await pool.aclose()

    return asyncio.run(run())


def picture(folder: Path, name: str = "rash.png") -> Path:
    """A small picture on disk."""
    from PIL import Image

    file = folder / name
    Image.new("RGB", (32, 24), (180, 90, 80)).save(file)
    return file
