"""Inspect's logs (`.eval`, `.json`), read and written only by Inspect's own functions: the file format changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from pydantic import JsonValue, ValidationError

from proctor import __version__
from proctor.core import (
    Answer,
    ConfigurationError,
    Finding,
    InputError,
    Item,
    Status,
    Usage,
    UsageError,
    count_of,
    number,
    one_of,
    whole_file,
)
from proctor.interchange.export_source import (
    ExportSource,
    Written,
    kept_fields,
    model_of,
    public_settings,
    references_of,
    shown_text,
)
from proctor.interchange.recorded import (
    RecordedAnswer,
    RecordedFile,
    kept_confidence,
    kept_status,
    kept_value,
    outcome_of,
    share,
    token_count,
)
from proctor.interchange.repetitions import numbered
from proctor.interchange.stated_settings import SAMPLING, stated_settings
from proctor.models import FINISH_REASON, End, Ending, read_ending
from proctor.runs import CODE

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

_MOST_BYTES = 4 * 2**30
_UNUSED = {"events", "store"}  # large, and not needed
_OUR = "proctor"


def _inspect() -> Any:
    """Inspect's module of logs. Raises `ConfigurationError` with what to install."""
    try:
        import inspect_ai.log
    except ImportError as error:
        raise ConfigurationError("Inspect's logs need its package: pip install 'proctor-eval[inspect]'") from error
    return inspect_ai.log


def read_inspect(file: Path, id_column: str = "", epoch: int = 0) -> RecordedFile:
    """Reads a log, each epoch as a repetition; with `epoch` that one alone. `id_column` names the key of a sample's metadata with the item's id; the default is the
    sample's id. The options are a sample's choices, which Inspect keeps in the order that was shown.

    A note has the number of samples and the scores of each epoch. The status of a sample is `failed` after an error, `timed_out` after a time
    limit, `error` after another limit or a context that was too long, and else what its `stop_reason` says by the table
    of our own runs (`proctor.models.read_ending`): `refused` after a content filter, `failed` for a reply that broke off
    ("unknown", or an `error` beside it), and cut off by the token limit. Raises `InputError` for an invalid log or one without the epoch, and `ConfigurationError` if Inspect is not installed.
    """
    logs = _inspect()
    _check_size(file)
    try:
        header: EvalLog = logs.read_eval_log(str(file), header_only=True)
        read = logs.read_eval_log_samples(
            str(file), all_samples_required=False, resolve_attachments="core", exclude_fields=_UNUSED
        )
        own = (header.eval.metadata or {}).get(_OUR) or {}
        answers, epochs = list[RecordedAnswer](), dict[int, _Epoch]()
        for sample in read:
            own_epoch = epochs.setdefault(sample.epoch, _Epoch())
            if epoch in {0, sample.epoch}:
                answer = _recorded(own_epoch.samples, sample, id_column)
                answers.append(replace(answer, repetition=sample.epoch))
            own_epoch.add(sample)
    except (OSError, ValueError, LookupError, TypeError, ValidationError, BadZipFile, RuntimeError) as error:
        raise InputError(file, found=" ".join(str(error).split())[:200], expected="a log of Inspect") from error
    if epoch and epoch not in epochs:
        raise UsageError(f"--epoch {epoch} is not there: choose {one_of([str(number) for number in sorted(epochs)])}")
    notes, faults = _epoch_notes(epochs, epoch), list[Finding]()
    if len(epochs) > 1 and not epoch:
        numbers, faults = numbered([(one.location, one.repetition) for one in answers], column="epoch", first=1)
        answers = [replace(one, repetition=number) for one, number in zip(answers, numbers, strict=False)]
    else:
        answers = [replace(answer, repetition=None) for answer in answers]
    if header.status != "success":
        notes.append(f"the log's status is {header.status}: answers may be missing")
    condition = own.get("condition", "") if isinstance(own, dict) else ""
    system = own.get("system", "") if isinstance(own, dict) else ""
    settings: dict[str, JsonValue] = {
        "task": header.eval.task,
        "model": header.eval.model,
        "created": str(header.eval.created),
    }
    settings |= {"epoch": epoch} if epoch and len(epochs) > 1 else {}
    settings |= _stated(header)
    name = system or header.eval.model
    return RecordedFile(answers, name, condition, tuple(notes), tuple(faults), settings=settings)


def _stated(header: EvalLog) -> dict[str, JsonValue]:
    """What the log states of how the model was asked: its `sampling`, and the task's arguments on what was `shown`."""
    sampling: dict[str, JsonValue] = {}
    for config in (header.eval.model_generate_config, header.plan.config):
        sampling |= config.model_dump(mode="json", include=set(SAMPLING), exclude_none=True)
    return stated_settings(sampling, {**header.eval.model_args, **header.eval.task_args})


@dataclass
class _Epoch:
    """The number of samples of an epoch, and their scores by metric."""

    samples: int = 0
    scores: dict[str, list[float]] = field(default_factory=dict)

    def add(self, sample: EvalSample) -> None:
        self.samples += 1
        for name, value in _scores(sample).items():
            self.scores.setdefault(name, []).append(value)

    def __str__(self) -> str:
        means = [f"{name} {number(sum(values) / len(values))}" for name, values in self.scores.items()]
        return ", ".join([count_of(self.samples, "sample"), *means])


def _epoch_notes(epochs: Mapping[int, _Epoch], read: int) -> list[str]:
    """How many epochs there are, what each has, and whether only one is read."""
    if len(epochs) < 2:
        return []
    each = "; ".join(f"epoch {number}: {epochs[number]}" for number in sorted(epochs))
    if read:
        return [f"{len(epochs)} epochs: epoch {read} alone is read (--epoch). {each}"]
    return [f"{len(epochs)} epochs, read as {len(epochs)} repetitions of each item. {each}"]


def _check_size(file: Path) -> None:
    """Raises `InputError` for a missing file, and for one that unpacks to more than 4 GB."""
    if not file.is_file():
        raise InputError(file, found="no such file", expected="a log of Inspect")
    if file.stat().st_size > _MOST_BYTES:
        raise InputError(file, found=f"{file.stat().st_size:,} bytes", expected=f"at most {_MOST_BYTES:,}")
    if file.suffix == ".eval":
        try:
            with ZipFile(file) as archive:
                size = sum(one.file_size for one in archive.infolist())
        except (BadZipFile, OSError) as error:
            raise InputError(file, found="no readable archive", expected="a log of Inspect") from error
        if size > _MOST_BYTES:
            raise InputError(file, found=f"{size:,} bytes unpacked", expected=f"at most {_MOST_BYTES:,}")


def _recorded(number: int, sample: EvalSample, id_column: str) -> RecordedAnswer:
    key = sample.metadata.get(id_column, "") if id_column not in {"", "position"} else sample.id
    if id_column == "position":
        key = number
    status, reason, extra = _outcome(sample)
    text = "" if status is Status.FAILED else sample.output.completion
    used = list(sample.model_usage.values())
    usage = Usage(
        requests=len(used),
        input_tokens=sum(token_count(one.input_tokens) for one in used),
        output_tokens=sum(token_count(one.output_tokens) for one in used),
        cached_tokens=sum(token_count(one.input_tokens_cache_read) for one in used),
    )
    return RecordedAnswer(
        f"sample {sample.id}" if sample.epoch == 1 else f"sample {sample.id}, epoch {sample.epoch}",
        str(key),
        text,
        status,
        reason,
        prompt=_prompt(sample),
        asked=_asked(sample),
        options=tuple(sample.choices or ()),
        usage=usage,
        model_s=sample.output.time,
        scores={} if status is Status.FAILED else _scores(sample),
        targets=(sample.target,) if isinstance(sample.target, str) else (", ".join(sample.target),),
        parsed=kept_value(sample.metadata.get("proctor_parsed")),
        extra=extra | kept_confidence(sample.metadata),
    )


def _prompt(sample: EvalSample) -> str:
    """The sample's input, and after it the first message to the model, which lists the options."""
    given = _asked(sample)
    sent = [message.text for message in sample.messages if message.role == "user"]
    return given if not sent or sent[0] in given else f"{given}\n{sent[0]}"


def _asked(sample: EvalSample) -> str:
    return sample.input if isinstance(sample.input, str) else " ".join(one.text for one in sample.input)


def _scores(sample: EvalSample) -> dict[str, float]:
    """The sample's scores between 0 and 1."""
    found = {name: share(score.value) for name, score in (sample.scores or {}).items()}
    return {name: value for name, value in found.items() if value is not None}


def _outcome(sample: EvalSample) -> tuple[Status, str, dict[str, JsonValue]]:
    if (kept := kept_status(sample.metadata)) is not None:
        return *kept, {}
    if sample.error is not None:
        return Status.FAILED, sample.error.message.strip()[:500] or "an error in Inspect", {}
    if sample.limit is not None:
        late = sample.limit.type in {"time", "working"}
        reason = f"limit of {sample.limit.type}: {sample.limit.limit:g}"
        return (Status.TIMED_OUT if late else Status.ERROR), reason, {}
    output = sample.output
    if output.empty:
        return Status.FAILED, output.error or "no output", {}
    word, told = output.stop_reason, output.error or ""
    if word == "model_length" and not (output.usage and output.usage.output_tokens):
        return Status.ERROR, "the context is too long", {}  # the text is what the provider said of it
    ending = Ending.BROKEN if told and word not in _REFUSALS else read_ending(word)
    return outcome_of(End(ending, word, told), output.completion)


_REFUSALS = {"content_filter"}
"""Reasons beside which an `error` only says what the filter found."""


def write_inspect(source: ExportSource, out: Path) -> Written:
    """Writes one run as a log, `.eval` or `.json` by the ending of `out`, with judges' scores under METRIC[SCORER]. Each
    repetition is an epoch.

    A failed answer is a sample with an error; a refusal, a context that was too long and a cut reply have their stop
    reason, a late answer its limit. Such samples have no score, so that Inspect counts them as unscored: its metrics are
    over the others. A run in which items were not asked is a cancelled one. Raises `UsageError` unless one run is chosen, and
    `InputError` for another ending and where `out` can't be written."""
    logs = _inspect()
    run = source.one_run()
    if out.suffix not in {".eval", ".json"}:
        raise InputError(out, found=f"the ending {out.suffix!r}", expected=".eval or .json")
    model = model_of(run, source.origin)
    samples, repetitions = list(_samples(source, model)), len(source.store.repetitions(run)) or 1
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, EvalStats

    begun = source.begun[run.system, run.condition]
    own = {"system": run.system, "condition": run.condition, "fingerprint": source.store.fingerprint(run.benchmark)}
    own |= {"licence": source.licence, "citation": source.origin.get("citation", "")}
    own |= {"settings": public_settings(run.settings)}
    used = sum((sample.model_usage[model] for sample in samples if sample.model_usage), start=_usage(Usage()))
    log = EvalLog(
        status="success" if len(samples) == repetitions * len(source.items) else "cancelled",
        eval=EvalSpec(
            created=begun,
            task=f"{run.benchmark}_{run.condition}",
            task_id=f"{run.benchmark}/{run.condition}",
            run_id=f"{run.system}/{begun}",
            dataset=EvalDataset(
                name=source.card.title, samples=len(source.items), sample_ids=[item.id for item in source.items]
            ),
            model=model,
            config=EvalConfig(epochs=repetitions, fail_on_error=False),
            packages={"proctor-eval": __version__},
            metadata={_OUR: own},
        ),
        results=_results(source, samples),
        stats=EvalStats(started_at=begun, model_usage={model: used} if used.total_tokens else {}),
        samples=samples,
    )
    with whole_file(out) as draft:
        named = draft.with_suffix(out.suffix)
        try:
            logs.write_eval_log(log, str(named))
            named.replace(draft)
        finally:
            named.unlink(missing_ok=True)
    dropped = (
        "pictures and videos: only their names and the hashes of the shown frames, in the samples' metadata",
        "intervals: in the `metadata` of each metric, with the score that counts failed answers as wrong",
    )
    return Written(len(samples), "sample", dropped)


def _score_name(metric: str, scorer: str) -> str:
    return metric if scorer == CODE else f"{metric}[{scorer}]"


def _samples(source: ExportSource, model: str) -> Iterator[EvalSample]:
    run = source.one_run()
    for repetition in source.store.repetitions(run):
        answers = source.store.answers(run, repetition)
        scores: dict[str, dict[str, float]] = {}
        for row in source.store.score_rows(run, repetition=repetition):
            scores.setdefault(row.item_id, {})[_score_name(row.metric, row.scorer)] = row.value
        for item in source.items:
            if item.id in answers:
                yield _sample(item, answers[item.id], scores.get(item.id, {}), model)


def _usage(use: Usage) -> Any:
    from inspect_ai.model import ModelUsage

    return ModelUsage(
        input_tokens=use.input_tokens,
        output_tokens=use.output_tokens,
        total_tokens=use.input_tokens + use.output_tokens,
        input_tokens_cache_read=use.cached_tokens,
    )


def _output(answer: Answer, model: str) -> Any:
    """An answer as the output of a model, with the reason why it ended in Inspect's words."""
    from inspect_ai.model import ModelOutput

    if answer.status is Status.FAILED or not (answer.status is Status.ANSWERED or answer.text or answer.reason):
        return ModelOutput(model=model, error=answer.reason or None)
    word = str(answer.extra.get(FINISH_REASON) or "")
    stop = "max_tokens" if answer.extra.get("cut_off") or (word and read_ending(word) is Ending.CUT_OFF) else "stop"
    if answer.status is Status.REFUSED:
        stop = "content_filter"
    elif answer.status is Status.ERROR:
        stop = "model_length" if _TOO_LONG.search(answer.reason) else "unknown"
    told = None if answer.status is Status.ANSWERED else answer.reason or None
    made = ModelOutput.from_content(model, answer.text, stop_reason=stop, error=told)
    made.time = answer.timing.model_s if answer.timing is not None else None
    return made


_TOO_LONG = re.compile(r"context|too long|maximum.{0,20}(?:length|tokens)", re.IGNORECASE)
"""What a reason says of a request that did not fit the model's context."""


def _sample(item: Item, answer: Answer, values: dict[str, float], model: str) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample, EvalSampleLimit
    from inspect_ai.scorer import Score

    metadata: dict[str, Any] = {"group": item.group, "format": item.answer.kind, **item.tags}
    metadata["media"] = [medium.model_dump(mode="json", exclude_none=True) for medium in item.media]
    if shown := shown_text(answer):
        metadata["shown"] = shown
    metadata |= kept_fields(item, answer)
    usage, why = _usage(answer.usage), answer.reason or answer.status.value
    failed = answer.status is Status.FAILED
    seconds = answer.timing.model_s if answer.timing is not None else 0.0
    scores = {name: Score(value=value, answer=answer.text[:200]) for name, value in values.items()}
    return EvalSample(
        id=item.id,
        epoch=answer.repetition + 1,
        input=item.question,
        choices=list(item.options) or None,
        target=references_of(item) or "",
        output=_output(answer, model),
        metadata=metadata,
        model_usage={model: usage} if answer.usage.requests else {},
        scores=scores or None,
        error=EvalError(message=why, traceback="", traceback_ansi="") if failed else None,
        limit=EvalSampleLimit(type="time", limit=seconds) if answer.status is Status.TIMED_OUT else None,
    )


def _results(source: ExportSource, samples: Sequence[EvalSample]) -> Any:
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    found = []
    for row in source.results:
        span = {
            "ci_low": row.ci_low,
            "ci_high": row.ci_high,
            "n": row.n,
            "groups": row.groups,
            "if_wrong": row.if_wrong,
        }
        value = row.if_excluded  # Inspect's means are over the samples that have a score
        metric = EvalMetric(name="mean", value=0.0 if value is None else value, metadata=span)
        scored = row.answered - row.unresolved - row.unscored
        found.append(
            EvalScore(
                name=_score_name(row.metric, row.scorer),
                scorer=_score_name(row.metric, row.scorer),
                scored_samples=scored,
                unscored_samples=len(samples) - scored,
                metrics={} if value is None else {"mean": metric},
            )
        )
    completed = sum(sample.error is None for sample in samples)
    return EvalResults(total_samples=max(len(source.items), len(samples)), completed_samples=completed, scores=found)
