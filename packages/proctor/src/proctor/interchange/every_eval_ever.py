"""Every Eval Ever 0.3: the results of each system with intervals, and a row for each scored answer.

The schemas are the project's own (MIT licence, in the same folder); every file is validated before it is written.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.core import (
    Answer,
    InputError,
    Item,
    Status,
    content_hash,
    count_of,
    json_line,
    need_extra,
    whole_folder,
    write_whole,
)
from proctor.interchange.export_source import (
    ExportSource,
    Written,
    check_origin,
    confidence_text,
    model_of,
    public_settings,
    references_of,
    shown_text,
)
from proctor.results import Result
from proctor.runs import CODE, Run

SCHEMA = "0.3.0"
_SCHEMAS = Path(__file__).parent / "schemas"
_UNSAFE = re.compile(r"[^\w.+-]+", re.ASCII)
_JUDGES = re.compile(r"(?P<kind>[^\[\]]+)\[(?P<models>.*)\]", re.DOTALL)
_LACKING = (Status.FAILED, Status.TIMED_OUT, Status.REFUSED, Status.ERROR)


def write_every_eval_ever(source: ExportSource, out: Path) -> Written:
    """Writes a folder `data/BENCHMARK/DEVELOPER/MODEL/` for each system, with a file of results and a file of answers.

    Raises `InputError` for a file that violates the schema, if there is no run, and where `out` can't be written or is
    not empty.
    """
    check_origin(source)
    by_system: dict[str, list[Run]] = {}
    for run in source.runs:
        by_system.setdefault(run.system, []).append(run)
    if not by_system:
        raise InputError(source.store.shown, f"benchmark {source.card.name}", found="no run", expected="one or more")
    notes: list[str] = []
    lacking = files = 0
    with whole_folder(out) as folder:
        for system, runs in by_system.items():
            record = _SystemRecord(source, runs)
            if record.model.startswith("unknown/"):
                notes.append(f"{system}: the model's owner is unknown: --origin model=OWNER/NAME")
            if not record.results:
                notes.append(f"{system}: no result, so no file")
                continue
            lacking += record.write(folder)
            files += 1
    return Written(files, "system", _dropped(source, lacking), tuple(notes))


def _dropped(source: ExportSource, lacking: int) -> tuple[str, ...]:
    found = ["media: the schema has no field; files, spans, and the hashes and times of frames are in `metadata`"]
    if lacking:
        found.append(
            f"{count_of(lacking, 'answer')} without a score (failed, timed out, refused, error): a row needs a score; "
            "they are counted in `score_details.details`"
        )
    if any(len(source.store.repetitions(run)) > 1 for run in source.runs):
        found.append("repetitions after the first: a row is an answer's; results are over all repetitions")
    if silent := sum(row.answered + row.failed > 0 and _point(row) is None for row in source.results):
        found.append(f"{count_of(silent, 'result')} without any answer that has a score")
    if any(row.scorer != CODE for row in source.results):
        found.append("the text of judges' prompts: `input_prompt` names the judge")
    if not source.references:
        found.append("reference answers: left out on request, `reference` is empty")
    return tuple(found)


class _SystemRecord:
    """The two files of one system."""

    def __init__(self, source: ExportSource, runs: Sequence[Run]) -> None:
        self.source, self.runs = source, runs
        self.model = model_of(runs[0], source.origin)
        names = {run.condition for run in runs}
        own = [row for row in source.results if row.system == runs[0].system and row.condition in names]
        self.results = [row for row in own if _point(row) is not None]
        began = max(source.begun[run.system, run.condition] for run in runs)
        self.at = str(int(datetime.fromisoformat(began).timestamp()))
        self.began = began
        self.id = f"{source.card.name}/{runs[0].system}/{self.at}"

    def write(self, folder: Path) -> int:
        """Writes both files, and returns the number of answers without a row."""
        rows = list(self._rows())
        developer, _, model = self.model.partition("/")
        location = "/".join(("data", *(_component(part) for part in (self.source.card.name, developer, model))))
        text = "".join(map(json_line, rows))
        checksum = sha256(text.encode()).hexdigest()
        record = self._record()
        name = _uuid4(content_hash(record) + checksum)
        if rows:
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{location}/{name}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": checksum,
                "total_rows": len(rows),
            }
        _check(record, "every_eval_ever-0.3.0.json", f"{location}/{name}.json")
        for number, row in enumerate(rows, start=1):
            _check(row, "every_eval_ever-samples-0.3.0.json", f"{location}/{name}_samples.jsonl: line {number}")
        write_whole(folder / location / f"{name}.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        if rows:
            write_whole(folder / location / f"{name}_samples.jsonl", text)
        statuses = [answer.status for run in self.runs for answer in self.source.store.answers(run).values()]
        return sum(status in _LACKING for status in statuses)

    def _record(self) -> dict[str, Any]:
        source, origin = self.source, self.source.origin
        details = {
            "deployment_type": "unknown",
            "model_availability": "unknown",
            "system": self.runs[0].system,
            "settings": json.dumps(
                {run.condition: public_settings(run.settings) for run in self.runs}, ensure_ascii=False
            ),
        }
        organisation = {"source_organization_name": origin.get("organisation", "unknown")}
        if origin.get("url"):
            organisation["source_organization_url"] = origin["url"]
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self.id,
            "evaluation_timestamp": self.began,
            "retrieved_timestamp": self.at,
            "source_metadata": {
                "source_name": source.card.title,
                "source_type": "evaluation_run",
                **organisation,
                "evaluator_relationship": origin.get("relationship", "other"),
            },
            "eval_library": {"name": "proctor", "version": __version__},
            "model_info": {
                "name": self.runs[0].system,
                "id": self.model,
                "developer": self.model.partition("/")[0],
                "additional_details": details,
            },
            "evaluation_results": [self._result(row) for row in self.results],
        }

    def _result(self, row: Result) -> dict[str, Any]:
        source, options = self.source, self.source.options
        details = {
            "groups": str(row.groups),
            "answered": str(row.answered),
            **{name: str(getattr(row, name)) for name in ("failed", "timed_out", "refused", "error", "missing")},
            **({"abstained": str(row.abstained)} if row.abstained else {}),
            "not_scored": str(row.unresolved + row.unscored),
            **({"repetitions": str(row.repetitions)} if row.repetitions > 1 else {}),
            "policy": row.policy or "nothing is lacking",
            **{name: repr(value) for name in ("if_wrong", "if_excluded") if (value := getattr(row, name)) is not None},
        }
        uncertainty: dict[str, Any] = {"num_samples": row.n, "num_bootstrap_samples": options.draws}
        if row.ci_low is not None and row.ci_high is not None:
            uncertainty["confidence_interval"] = {
                "lower": row.ci_low,
                "upper": row.ci_high,
                "confidence_level": options.level,
                "method": "by group (video): exact for shares, bootstrap for other scores",
            }
        return {
            "evaluation_result_id": _result_id(row.condition, row.metric, row.scorer),
            "evaluation_name": f"{source.card.name} / {row.condition}",
            "source_data": self._data(row.condition),
            "metric_config": self._metric(row),
            "score_details": {"score": _point(row), "details": details, "uncertainty": uncertainty},
        }

    def _data(self, condition: str) -> dict[str, Any]:
        source, origin = self.source, self.source.origin
        more = {"condition": condition, "fingerprint": source.store.fingerprint(source.card.name)}
        more |= {"seeds": json.dumps(source.card.seeds), "items": str(len(source.items))}
        more |= {
            name: text for name, text in (("licence", source.licence), ("citation", origin.get("citation"))) if text
        }
        plain: dict[str, Any] = {"dataset_name": source.card.title, "additional_details": more}
        if origin.get("dataset"):
            return plain | {"source_type": "hf_dataset", "hf_repo": origin["dataset"], "hf_split": "test"}
        if origin.get("url"):
            return plain | {"source_type": "url", "url": [origin["url"]]}
        return plain | {"source_type": "other"}

    def _metric(self, row: Result) -> dict[str, Any]:
        metric = self.source.card.metric(row.metric)
        found: dict[str, Any] = {
            "metric_id": metric.name,
            "metric_name": metric.label,
            "lower_is_better": not metric.higher_is_better,
            "score_type": "continuous",
            "min_score": metric.low,
            "max_score": metric.high,
            "additional_details": {"scorer": row.scorer},
        }
        if row.scorer != CODE:
            several = _JUDGES.fullmatch(row.scorer)
            models = several["models"].split(", ") if several else [row.scorer]
            unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
            judges = [{"model_info": {"name": model, "id": model, "additional_details": unknown}} for model in models]
            found["llm_scoring"] = {"judges": judges, "input_prompt": f"the prompt of Proctor's judge {row.scorer}"}
        return found

    def _rows(self) -> Iterator[dict[str, Any]]:
        items = {item.id: item for item in self.source.items}
        known = {(row.condition, row.metric, row.scorer) for row in self.results}
        for run in self.runs:
            answers = self.source.store.answers(run)
            for score in self.source.store.score_rows(run):
                answer = answers.get(score.item_id)
                if answer is None or answer.status is not Status.ANSWERED or score.item_id not in items:
                    continue
                if (run.condition, score.metric, score.scorer) in known:
                    yield self._row(run, items[score.item_id], answer, score)

    def _row(self, run: Run, item: Item, answer: Answer, score: Any) -> dict[str, Any]:
        metric = self.source.card.metric(score.metric)
        best = metric.high if metric.higher_is_better else metric.low
        right = references_of(item)
        read = "" if answer.parsed is None else item.answer.write(answer.parsed)
        found: dict[str, Any] = {
            "schema_version": SCHEMA,
            "evaluation_id": self.id,
            "model_id": self.model,
            "evaluation_name": f"{run.benchmark} / {run.condition}",
            "evaluation_result_id": _result_id(run.condition, score.metric, score.scorer),
            "sample_id": item.id,
            "sample_hash": sha256((item.question + "".join(right)).encode()).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": item.question, "reference": right, "choices": list(item.options) or None},
            "output": {"raw": [answer.text]},
            "messages": None,
            "answer_attribution": [_attribution(read)] if read else [],
            "evaluation": {"score": score.value, "is_correct": score.value == best},
            "metadata": _metadata(self.source, run, item, answer, score),
        }
        use = answer.usage
        if use.requests:
            total = use.input_tokens + use.output_tokens
            found["token_usage"] = {
                "input_tokens": use.input_tokens,
                "output_tokens": use.output_tokens,
                "total_tokens": total,
                "input_tokens_cache_read": use.cached_tokens,
            }
        if answer.timing is not None:
            found["performance"] = {"latency_ms": 1000 * answer.timing.model_s}
        return found


def _point(row: Result) -> float | None:
    """The score; without a policy for missing answers, they count as wrong. None where no answer has a score."""
    if row.value is None and row.if_excluded is None:
        return None
    return row.if_wrong if row.value is None else row.value


def _attribution(read: str) -> dict[str, Any]:
    return {
        "turn_idx": 0,
        "source": "output.raw",
        "extracted_value": read,
        "extraction_method": "Proctor's answer format",
        "is_terminal": True,
    }


def _metadata(source: ExportSource, run: Run, item: Item, answer: Answer, score: Any) -> dict[str, str]:
    media = [medium.model_dump(mode="json", exclude_none=True) for medium in item.media]
    found = {"condition": run.condition, "group": item.group, "metric": score.metric, "scorer": score.scorer}
    if score.label:
        found["label"] = score.label
    if media:
        found["media"] = json.dumps(media, ensure_ascii=False)
    if sure := confidence_text(answer):
        found["confidence"] = sure
    if shown := shown_text(answer):
        found["shown"] = shown
    seeds = source.card.seeds
    return found | {f"seed_{name}": str(seed) for name, seed in seeds.items()}


def _result_id(condition: str, metric: str, scorer: str) -> str:
    return f"{condition}/{metric}/{scorer}"


def _component(name: str) -> str:
    """The name as part of a path on any file system."""
    plain = _UNSAFE.sub("_", name).strip("._ ") or "unknown"
    return f"{plain}_" if plain.lower() == "data" else plain[:100]


def _uuid4(text: str) -> str:
    """A name that depends only on the content."""
    return str(uuid.UUID(bytes=sha256(text.encode()).digest()[:16], version=4))


@cache
def _validator(schema: str) -> Any:
    need_extra("every-eval-ever", "the format Every Eval Ever", "jsonschema")
    from jsonschema import Draft7Validator

    return Draft7Validator(json.loads((_SCHEMAS / schema).read_text(encoding="utf-8")))


def _check(value: object, schema: str, location: str) -> None:
    """Raises `InputError` with the first field that violates the schema."""
    error = next(iter(_validator(schema).iter_errors(value)), None)
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path)
        raise InputError(location, f"field {where!r}", found=error.message[:200], expected=f"Every Eval Ever {SCHEMA}")
