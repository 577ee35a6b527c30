"""What an evaluation holds, in one hash that does not depend on who ran which part, where, when and at what cost."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, RowMapping, select

from proctor.core import Judgement, Status, content_hash
from proctor.runs import schema
from proctor.runs.store import Store
from proctor.runs.table import chosen_runs

_PART = 500  # keys a query: SQLite takes no longer lists everywhere
_ANSWER = ("status", "text", "parsed", "problem")
_SCORE = ("metric", "scorer", "value", "label", "vote_key")


@dataclass(frozen=True, slots=True)
class RunContent:
    """What one run holds. `sha256` is over its answers (failed ones by that they failed) and scores."""

    system: str
    condition: str
    answers: int
    failed: int
    scores: int
    sha256: str


@dataclass(frozen=True, slots=True)
class EvaluationContent:
    """What some runs of a benchmark hold, with the judgements behind their scores.

    `sha256` is over the items, the answers (what was said, how it was read, its status), the scores and the judgements,
    under the names of systems and conditions. Times, tokens, cost, servers, settings, machines, and the order in which
    anything came are not in it.
    """

    benchmark: str
    items: int
    judgements: int
    runs: tuple[RunContent, ...]
    sha256: str

    def to_json(self) -> dict[str, JsonValue]:
        """As programs read it."""
        runs: list[JsonValue] = [asdict(one) for one in self.runs]
        return {
            "sha256": self.sha256,
            "benchmark": self.benchmark,
            "items": self.items,
            "judgements": self.judgements,
            "runs": runs,
        }


def evaluation_content(
    store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> EvaluationContent:
    """The content of these runs of a benchmark (none named: of all). Raises `InputError` for unknown names, and for a
    store with a damaged row."""
    fingerprint = store.fingerprint(benchmark)
    found, behind = [], set[str]()
    with store.reading() as connection:
        names = item_names(connection, benchmark)
        for run in sorted(
            chosen_runs(store, benchmark, systems, conditions), key=lambda one: (one.system, one.condition)
        ):
            answers, failed, scores = [], 0, []
            for row in answer_rows(connection, run.id):
                answers.append(answer_digest(names[row["item"]], row))
                failed += row["status"] == Status.FAILED.value
            for row in score_rows(connection, run.id):
                scores.append(score_digest(names[row["item"]], row))
                behind |= {row["vote_key"]} - {""}
            sha256 = _of([*answers, *scores])
            found.append(RunContent(run.system, run.condition, len(answers), failed, len(scores), sha256))
        votes = [vote_digest(one) for one in kept_votes(connection, behind)]
    runs: list[JsonValue] = [[one.system, one.condition, one.sha256] for one in found]
    whole = content_hash({"items": fingerprint, "runs": runs, "judgements": _of(votes)})
    return EvaluationContent(benchmark, len(names), len(votes), tuple(found), whole)


def item_names(connection: Connection, benchmark: str) -> dict[int, str]:
    """A benchmark's items by their numbers in this store."""
    table, own = schema.items, schema.benchmarks
    query = select(table.c.id, table.c.item).join(own, own.c.id == table.c.benchmark).where(own.c.name == benchmark)
    return {row.id: row.item for row in connection.execute(query)}


def answer_rows(connection: Connection, run: int) -> Iterable[RowMapping]:
    """The answers of a run, one after the other."""
    query = select(schema.answers).where(schema.answers.c.run == run).execution_options(yield_per=1000)
    return connection.execute(query).mappings()


def score_rows(connection: Connection, run: int) -> Iterable[RowMapping]:
    """The scores of a run, one after the other."""
    query = select(schema.scores).where(schema.scores.c.run == run).execution_options(yield_per=1000)
    return connection.execute(query).mappings()


def kept_votes(connection: Connection, keys: Iterable[str]) -> list[Judgement]:
    """The judgements with these keys, as far as they are kept."""
    wanted, found = sorted(keys), []
    for start in range(0, len(wanted), _PART):
        query = select(schema.votes.c.body).where(schema.votes.c.key.in_(wanted[start : start + _PART]))
        found += [Judgement.model_validate_json(body) for body in connection.scalars(query)]
    return found


def answer_digest(item: str, row: RowMapping | Mapping[str, Any]) -> str:
    """What an answer says, by hash; of a failed one only that it failed, since why is the machine's affair."""
    said: list[JsonValue] = [row[name] for name in _ANSWER]
    return content_hash(["answer", item, *([Status.FAILED.value] if row["status"] == Status.FAILED.value else said)])


def score_digest(item: str, row: RowMapping | Mapping[str, Any]) -> str:
    """What a score says, by hash."""
    return content_hash(["score", item, *(row[name] for name in _SCORE)])


def vote_digest(vote: Judgement) -> str:
    """What a judgement says, by hash; not what it cost."""
    return content_hash(vote.model_dump(mode="json", exclude={"usage"}))


def _of(digests: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()
