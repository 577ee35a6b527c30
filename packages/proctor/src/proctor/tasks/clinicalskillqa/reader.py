"""Reads ClinicalSkillQA as its organisers distribute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor import core
from proctor.core.formats import OrderingFormat
from proctor.metrics.ordering import NEIGHBOURS, PAIR, RUN_METRICS
from proctor.tasks.clinicalskillqa import READER_SUMMARY
from proctor.tasks.clinicalskillqa.native import (
    SCENARIOS,
    NativeInstance,
    NativePrediction,
    ReferenceOrder,
    find_instances,
    labels_of,
    only_one,
    read_predictions,
    read_references,
    spelled,
)
from proctor.tasks.clinicalskillqa.scoring import published, without_video


def _answer(item: core.Item, prediction: NativePrediction | None) -> core.Answer:
    if prediction is None:
        return core.Answer(item_id=item.id, reason=core.NO_ANSWER, problem=core.NO_ANSWER)
    text = " > ".join(prediction.order)
    extra = {"rationale": prediction.rationale} if "rationale" in prediction.model_fields_set else {}
    if not prediction.order:
        return core.Answer(item_id=item.id, problem="expected an order, found ''", extra={**extra})
    labels = item.answer.labels if item.answer.kind == "ordering" else ()
    parsed = list(spelled(prediction.order, labels))
    return core.Answer(item_id=item.id, text=text, parsed=[*parsed], extra={**extra})


_TITLE = "ClinicalSkillQA: key frames in order"
_BUILT = "Own videos: key frames in order"
_SIMULATED = " (of rendered videos, not real)"
_REFERENCES = ("references.json", "references.jsonl")


class ClinicalSkillQA(core.BenchmarkReader):
    """Reads a folder of instances with their references; see `BenchmarkReader`."""

    name = "clinicalskillqa"
    summary = READER_SUMMARY
    sources = Path(__file__).parents[1] / "sources.yaml"
    prompts = Path(__file__).parent / "prompts"

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> core.Benchmark:
        """Reads instances (see `find_instances`) and, where `data` has one, `references.json` or `references.jsonl`.
        Frames keep the labels of their files, so the seed has no effect."""
        del seed
        root = media or data
        if not data.is_dir():
            raise core.InputError(data, found="no such folder", expected="a folder of instances")
        instances = find_instances(data, root)
        file = only_one(data, _REFERENCES)
        references = read_references(file) if file is not None else {}
        about = core.read_about(data)
        simulated, drawn = (about.simulated, about.seed) if about is not None else (False, None)
        if file is not None:
            _check_pairs(file, instances, references)
        items = tuple(_item(instance, references.get(instance.id)) for instance in instances)
        by_scenario = all("scenario" in item.tags for item in items)
        title = _TITLE if about is None else f"{_BUILT}{_SIMULATED if simulated else ''}"
        benchmark = core.Benchmark(
            name=self.name,
            title=title,
            items=items,
            metrics=(core.ACCURACY, *RUN_METRICS),
            headline=core.ACCURACY.name,
            facets=("scenario", "frames") if by_scenario else ("frames",),
            buckets=("scenario",) if by_scenario else ("frames",),
            conditions=("video", "text-only", "black", "shuffled"),
            media_root=root,
            failed=core.FailedPolicy.WRONG,
            notes=_notes(items, references=file is not None),
            seeds={} if drawn is None else {"instances": drawn},
            simulated=simulated,
            published=_published(),
        )
        return core.own_benchmark(benchmark, about, data)

    def read_recorded(self, path: Path, benchmark: core.Benchmark) -> core.RecordedAnswers:
        """One answer to every item of the benchmark, in its order, with the rationale in `extra`.

        An item without a prediction gets an answer whose reason is `NO_ANSWER`; an empty order is unreadable. Raises
        `InputError` for a prediction for an unknown item.
        """
        predictions = read_predictions(path)
        unknown = sorted(predictions.keys() - {item.id for item in benchmark.items})
        if unknown:
            raise core.InputError(
                path, f"item {unknown[0]!r}", found="an unknown item", expected="the benchmark's items alone"
            )
        answers = tuple(_answer(item, predictions.get(item.id)) for item in benchmark.items)
        missing = sum(answer.reason == core.NO_ANSWER for answer in answers)
        notes = (f"{missing} of {len(answers)} items have no answer and are wrong",) if missing else ()
        return core.RecordedAnswers(answers=answers, settings={"recorded": "ClinicalSkillQA predictions"}, notes=notes)

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        return (
            f"Not below {data}: {core.count_of(len(missing), 'key frame')}. The organisers of the ClinicalSkillQA 2026 shared "
            "task hand pictures out, a folder per instance."
        )


READER = ClinicalSkillQA()


def _notes(items: Sequence[core.Item], *, references: bool) -> tuple[str, ...]:
    notes = [] if references else ["There are no references: answers can't be scored."]
    alone = sum("video" not in item.tags for item in items)
    if alone:
        notes.append(without_video(alone, len(items)))
    return tuple(notes)


def _published() -> core.PublishedTable:
    """The shared task's results, on its own test set."""
    known = published()
    f1 = core.Metric("rationale_f1", "Rationale (BERTScore F1)", percent=True)
    overall = core.Metric("overall", "Overall", high=100.0)
    rows = tuple(
        core.PublishedRow(
            row.team,
            {
                "overall": row.overall,
                core.ACCURACY.name: row.task_accuracy,
                PAIR.name: row.pairwise_accuracy,
                f1.name: row.bertscore_f1,
            },
        )
        for row in known.teams
    )
    note = f"On the task's own test set, not on these items. {known.note}"
    return core.PublishedTable(known.source, note, (overall, core.ACCURACY, PAIR, f1), rows)


def _check_pairs(file: Path, instances: Sequence[NativeInstance], references: Mapping[str, ReferenceOrder]) -> None:
    known = {instance.id: instance for instance in instances}
    for name in sorted(known.keys() - references.keys()):
        raise core.InputError(file, f"item {name!r}", found="no reference", expected="one per instance")
    for name, reference in references.items():
        if name not in known:
            raise core.InputError(file, f"item {name!r}", found="a reference without frames", expected="an instance")
        labels = tuple(known[name].frames)
        if sorted(reference.order) != sorted(labels):
            raise core.InputError(
                file,
                f"item {name!r}, field 'order'",
                found=" > ".join(reference.order),
                expected=f"the labels of its frames, {', '.join(labels)}",
            )


def _item(instance: NativeInstance, reference: ReferenceOrder | None) -> core.Item:
    scenario = instance.scenario or (reference.scenario if reference else None) or ""
    video = instance.video or (reference.video if reference else "")
    labels = labels_of(len(instance.frames))
    tags: dict[str, core.TagValue] = {"frames": len(labels), NEIGHBOURS: len(labels) - 1}
    if scenario:
        tags["scenario"] = scenario
    if video:
        tags["video"] = video
    return core.Item(
        id=instance.id,
        group=video or instance.id,
        question=_question(scenario, labels),
        media=tuple(core.Image(source=name, label=label) for label, name in instance.frames.items()),
        answer=OrderingFormat(labels=labels),
        reference=core.Reference(answer=list(reference.order), rationale=reference.rationale) if reference else None,
        tags=tags,
    )


def _question(scenario: str, labels: Sequence[str]) -> str:
    shown = next((text for name, text in SCENARIOS.items() if name == scenario), "a clinical procedure")
    return (
        f"The pictures {', '.join(labels[:-1])} and {labels[-1]} are key frames of one recording of {shown}, "
        "in mixed order. In which order were they taken?"
    )
