"""`agent-judge` from the command line: its transcripts are in the store, and are paid once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.results import judges_of
from proctor.runs import Store
from tests.support.faulty_server import Calls, FaultyServer, Request
from tests.support.mediqa_folder import write_task
from tests.support.program import within
from tests.support.rated_answers import made_up

_SCORES = {"factual-consistency-wgold": 0.5, "writing-style": 1}


def _agent(request: Request) -> Calls:
    """Looks for similar answers, and rates as high as the first of them was rated."""
    told = [message["content"] for message in request.body["messages"] if message["role"] == "tool"]
    if not told:
        return Calls([("similar_cases", {"count": 1})])
    fields = next(one for one in request.body["tools"] if one["function"]["name"] == "rate")["function"]["parameters"]
    wanted = [name for name in fields["properties"] if name != "reason"]
    high = '\\"overall\\": 1' in told[0] or '\\"writing-style\\": 1' in told[0]
    return Calls([("rate", {"reason": "as similar ones", **dict.fromkeys(wanted, int(high))})])


def test_a_second_run_asks_nothing_and_the_transcript_stands_behind_each_score(tmp_path: Path) -> None:
    rated = made_up(8)
    write_task(tmp_path, rated)
    store, ratings = tmp_path / "runs.db", tmp_path / "ratings.csv"
    assert within("import", "mediqa-eval", ratings, "--data", tmp_path, "--store", store)[0] == 0
    with FaultyServer(_agent) as server:
        asked = ("--judge", "agent-judge", "--model", "openai:judge", "--base-url", server.url, "--price", "1/2")
        command = ("score", "mediqa-eval", *asked, "--rated", store, "--store", store)
        code, said = within(*command)
        assert code == 0, said
        different = {(one.case.id, one.case.candidate) for one in rated}
        assert server.count == 2 * len(different)  # the same answer of two systems is judged once
        assert "$" in said  # what it cost
        code, said = within(*command)
        assert code == 0, said
        assert server.count == 2 * len(different)
    opened = Store(store)
    (scorer,) = (one for one in judges_of(opened, "mediqa-eval") if one.startswith("agent-judge["))
    (run, *_) = opened.runs("mediqa-eval")
    score = opened.score_rows(run, scorer=scorer)[0]
    judgement = opened.get(score.judgement_key)
    assert judgement is not None
    (key,) = (str(one) for one in judgement.reply["judgements"])  # type: ignore[union-attr]
    transcript = opened.get(key)
    assert transcript is not None
    steps: Any = transcript.reply["transcript"]
    assert [call["tool"] for step in steps for call in step["calls"]] == ["similar_cases", "rate"]
