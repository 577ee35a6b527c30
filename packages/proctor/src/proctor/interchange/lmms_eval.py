"""lmms-eval: samples (`*_samples_*.jsonl`) are read and written, with the log that its model `from_log` reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from proctor import __version__
from proctor.core import (
    Finding,
    InputError,
    Item,
    Status,
    Usage,
    UsageError,
    count_of,
    json_line,
    read_json,
    read_jsonl,
    whole_folder,
    write_whole,
)
from proctor.core.formats import option_letters
from proctor.interchange.export_source import ExportSource, Written, kept_fields, references_of
from proctor.interchange.recorded import (
    RecordedAnswer,
    RecordedFile,
    as_list,
    as_object,
    fault,
    kept_confidence,
    kept_status,
    kept_value,
    share,
    token_count,
)
from proctor.interchange.shown_options import options_in_fields
from proctor.interchange.stated_settings import stated_settings
from proctor.runs import CODE

_OWN = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "token_counts", "doc_hash", "input"}
_OWN |= {"input_media", "proctor_item", "proctor_status", "proctor_reason", "proctor_parsed"}
_NESTED = 3
_REPETITIONS = "proctor_repetitions"
"""The field with what Proctor keeps of each of several replies."""
_EMPTY = "an empty reply, which lmms-eval also writes for a failed call"


def read_lmms_eval(file: Path, id_column: str = "", epoch: int = 0) -> RecordedFile:
    """Reads one file of samples. `id_column` names the field with the item's id; the default in files that Proctor did
    not write is `doc_id`, the number of the task's question. The options are those in `input`, else in `doc`. Several
    replies to a question are its repetitions; with `epoch` only the one with that number is read.

    lmms-eval writes an empty reply for a failed call, so it is `failed`; it records no reason why a reply ended. Raises `InputError` for invalid JSON Lines, and `UsageError` if no question has
    that many replies.
    """
    given: list[_Line] = []
    faults: list[Finding] = []
    condition, counts = "", Counter[int]()
    for location, line in read_jsonl(file):
        if not isinstance(line, dict) or "doc_id" not in line:
            faults.append(fault(location, "no doc_id", "a sample of lmms-eval"))
            continue
        name = id_column if id_column not in {"", "position"} else "doc_id"
        key = line.get("proctor_item", line["doc_id"]) if not id_column else line.get(name)
        replies = _replies(line)
        if key is None or replies is None:
            found = f"no field {name!r}" if key is None else "log-likelihoods, no text"
            faults.append(fault(location, found, "the item's id and a reply in words"))
            continue
        counts[len(replies)] += 1
        condition = str(line.get("proctor_condition", condition))
        given.append((location, str(key), replies, line))
    most = max(counts, default=0)
    if epoch > max(most, 1):
        raise UsageError(f"--epoch {epoch} is not there: give 1 to {most}.")
    several, notes = sum(count for replies_of, count in counts.items() if replies_of > 1), []
    if several:
        read = f"reply {epoch} alone is read (--epoch)" if epoch else "each is a repetition"
        notes = [f"{count_of(several, 'sample')} with several replies (up to {most}): {read}"]
    single = max(epoch, 1) if epoch or most < 2 else 0
    answers = [answer for one in given for answer in ([_one_of(one, single)] if single else _all_of(one))]
    results = _results(file)
    system = results.get("model_name")
    name, settings = system if isinstance(system, str) else "", _stated(file, results)
    return RecordedFile(answers, name, condition, tuple(notes), tuple(faults), settings=settings)


_Line = tuple[str, str, list[str], dict[str, Any]]
"""The location of a line, the id in it, the replies, and the line itself."""


def _one_of(given: _Line, number: int) -> RecordedAnswer:
    """The reply with this number, from 1."""
    location, key, replies, line = given
    return _recorded(location, key, replies[number - 1] if len(replies) >= number else "", line)


def _all_of(given: _Line) -> list[RecordedAnswer]:
    """Each reply as a repetition."""
    location, key, replies, line = given
    kept, found = as_list(line.get(_REPETITIONS)), []
    for number, reply in enumerate(replies or [""]):
        own = as_object(kept[number]) if number < len(kept) else {}
        found.append(replace(_recorded(location, key, reply, line | own, of=len(replies)), repetition=number))
    return found


def _recorded(location: str, key: str, text: str, line: dict[str, Any], *, of: int = 1) -> RecordedAnswer:
    """One of several (`of`) replies in a line. The line's scores are of all of them together."""
    empty = (Status.FAILED, _EMPTY) if not text.strip() else (Status.ANSWERED, "")
    status, reason = kept_status(line) or empty
    prompt = _first_text(line.get("input")) or _first_text(line.get("arguments"))
    target = line.get("target")
    given_targets = target if isinstance(target, list) else [target]
    scores = {name: share(value) for name, value in line.items() if name not in _OWN and not isinstance(value, str)}
    return RecordedAnswer(
        location,
        key,
        text,
        status,
        reason,
        prompt=prompt,
        options=options_in_fields(as_object(line.get("doc"))),
        usage=_usage(line.get("token_counts")),
        scores={
            name: one for name, one in scores.items() if one is not None and status is not Status.FAILED and of == 1
        },
        targets=tuple(str(one) for one in given_targets if isinstance(one, str | int | float)),
        parsed=kept_value(line.get("proctor_parsed")),
        extra=kept_confidence(line),
    )


def _first_text(value: Any) -> str:
    """The first text in lists and objects: the prompt, in `input` or, from older versions, in `arguments`."""
    for _ in range(_NESTED):
        if isinstance(value, dict | list):
            value = next(iter(value.values() if isinstance(value, dict) else value), "")
    return value if isinstance(value, str) else ""


def _replies(line: dict[str, Any]) -> list[str] | None:
    """The model's replies, before filters if the file has these; None for anything but text."""
    replies = line.get("resps", line.get("filtered_resps"))
    while isinstance(replies, list) and replies and isinstance(replies[0], list):
        replies = replies[0]
    if replies is None:
        return []
    found = replies if isinstance(replies, list) else [replies]
    return found if all(isinstance(one, str) for one in found) else None


def _usage(counts: Any) -> Usage:
    first = next((one for one in as_list(counts) if isinstance(one, dict)), None)
    if first is None:
        return Usage()
    return Usage(
        requests=1,
        input_tokens=token_count(first.get("input_tokens")),
        output_tokens=token_count(first.get("output_tokens")),
        cached_tokens=token_count(first.get("cached_tokens")),
    )


def _results(file: Path) -> dict[str, Any]:
    """The file of results in the same folder; empty if there is none."""
    beside = file.with_name(f"{file.name.partition('_samples_')[0]}_results.json")
    if "_samples_" not in file.name or not beside.is_file():
        return {}
    try:
        return as_object(read_json(beside))
    except InputError:
        return {}


def _stated(file: Path, results: dict[str, Any]) -> dict[str, JsonValue]:
    """What the results state of how the model was asked."""
    task = file.stem.partition("_samples_")[2]
    config = as_object(as_object(results.get("configs")).get(task))
    sampling = as_object(config.get("generation_kwargs")) | as_object(
        as_object(results.get("config")).get("gen_kwargs")
    )
    given = as_object(results.get("config")).get("model_args")
    arguments = as_object(given) or dict(one.split("=", 1) for one in str(given or "").split(",") if "=" in one)
    name = results.get("model_name")
    model: dict[str, JsonValue] = {"model": name} if isinstance(name, str) and name else {}
    return model | stated_settings(sampling, arguments)


def write_lmms_eval(source: ExportSource, out: Path) -> Written:
    """Writes a folder with one run: samples (with all repetitions as replies, and the scores of the first), results, and the older log that lmms-eval's model `from_log` reads. Raises
    `UsageError` unless one run is chosen, and `InputError` where `out` can't be written."""
    run = source.one_run()
    repetitions = [source.store.answers(run, number) for number in source.store.repetitions(run)] or [{}]
    task = task_name(run.benchmark, run.condition)
    scores = source.code_scores(run)
    lines, logs, failed, other = [], [], 0, 0
    for index, item in enumerate(source.items):
        given = [answers[item.id] for answers in repetitions if item.id in answers]
        if not given:
            continue
        failed += sum(answer.status is Status.FAILED for answer in given)
        each = [kept_fields(item, answer) for answer in given]
        other += sum("proctor_parsed" in one for one in each)
        kept = each[0] if len(repetitions) == 1 else {_REPETITIONS: each}
        texts = [answer.text for answer in given]
        sample = _sample(index, item, texts) | scores.get(item.id, {}) | kept
        lines.append(json_line(sample | {"proctor_condition": run.condition}))
        logs.append({"doc_id": index, "resps": [texts]})
    rows = [row for row in source.results if row.scorer == CODE]
    figures = {f"{row.metric},none": row.if_wrong if row.value is None else row.value for row in rows}
    results = {
        "results": {task: {"alias": task, **figures}},
        "configs": {task: {"task": task, "metadata": {"proctor": __version__, "licence": source.licence}}},
        "n-samples": {task: {"original": len(source.items), "effective": len(lines)}},
        "model_source": "proctor",
        "model_name": run.system,
    }
    log = {
        "args": {"model": run.system, "model_args": "", "limit": None},
        "model_configs": {"task": task},
        "logs": logs,
    }
    stamp = source.begun[run.system, run.condition][:19].replace("-", "").replace(":", "").replace("T", "_")
    with whole_folder(out) as folder:
        write_whole(folder / f"{stamp}_samples_{task}.jsonl", "".join(lines))
        write_whole(folder / f"{stamp}_results.json", json.dumps(results, indent=2, ensure_ascii=False))
        write_whole(folder / "from_log" / f"{task}.json", json.dumps(log, indent=2, ensure_ascii=False))
    dropped = [
        "intervals, groups and facets: samples have only scores",
        "scores by judges: only scores without a judge are written",
    ]
    if failed:
        status = f"the status of {count_of(failed, 'failed answer')}"
        dropped.append(f"{status}: lmms-eval scores an empty reply as wrong (kept in `proctor_status`)")
    if other:
        dropped.append(
            f"the value of {count_of(other, 'answer')} that differs from the text (kept in `proctor_parsed`)"
        )
    return Written(len(lines), "sample", tuple(dropped))


def _sample(row: int, item: Item, texts: Sequence[str]) -> dict[str, Any]:
    letters = option_letters(len(item.options))
    options = [f"{letter}. {option}" for letter, option in zip(letters, item.options, strict=True)]
    return {
        "doc_id": row,
        "target": next(iter(references_of(item)), ""),
        "filtered_resps": [*texts],
        "doc_hash": sha256(item.model_dump_json().encode()).hexdigest(),
        "input": "\n".join((item.question, *options)),
        "proctor_item": item.id,
    }


def task_name(benchmark: str, condition: str) -> str:
    """The name of a task in lmms-eval: letters, digits and "_".

    >>> task_name("mediqa-eval", "text-only")
    'mediqa_eval_text_only'
    """
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in f"{benchmark}_{condition}")
