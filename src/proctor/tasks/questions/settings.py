"""`benchmark.yaml` beside the questions: all that no single question says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from proctor.core import Excerpt, FailedPolicy, InputError, TableFault, input_text
from proctor.core.formats import AnswerFormat

NAME = "benchmark.yaml"
_MOST_CHARS = 1_000_000


class Settings(BaseModel):
    """What `benchmark.yaml` may say; every field has a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(default="", pattern=r"^[\w.-]{0,80}$", description="its name in stores and commands")
    title: str = Field(default="", max_length=200, description="its name for people")
    licence: str = Field(default="", description="under which the questions may be used")
    questions: str = Field(default="", description="the file with the questions, where there are several")
    sheet: str = Field(default="", description="the sheet of a workbook")
    split: str = Field(default="", description="the split of a Hugging Face dataset")
    columns: dict[str, str | list[str]] = Field(default={}, description="field: the column that holds it")
    format: str = Field(default="", description="the answer format of all questions; else it is guessed for each")
    formats: dict[str, AnswerFormat] = Field(
        default={}, description="formats with options, by a name for the column format"
    )
    tolerances: dict[str, float] = Field(
        default={}, description="by format how far off an answer may be: timestamps: 2"
    )
    shuffle_options: bool = Field(
        default=False, description="whether the options of choices are shuffled, once for all systems, by the seed"
    )
    prompt: str = Field(default="", description="the prompt for models, a template (.j2) in this folder")
    judge: str = Field(
        default="", description="the judge that scores free text where none is named (criteria, where there are some)"
    )
    headline: str = Field(default="accuracy", description="the metric that ranks")
    facets: list[str] | None = Field(default=None, description="the columns that results are split by")
    buckets: list[str] = Field(default=[], description="the facets whose values make the buckets of a ranking")
    only: dict[str, JsonValue] = Field(default={}, description="facets whose value a question must have to count")
    relevance: str = Field(default="", description="the facet of the questions that a second ranking is made of")
    failed: FailedPolicy | None = Field(
        default=None, description="what counts where a run has no score: wrong, or exclude; else results show both ends"
    )
    conditions: list[str] = Field(default=["video", "text-only"], min_length=1, description="what systems may see")
    window: tuple[float, Annotated[float, Field(gt=0)]] | None = Field(
        default=None, description="centre and width of the window of DICOM and NIfTI files that name none: [40, 400]"
    )
    audio: bool = Field(default=False, description="whether the sound of videos belongs to the questions")
    budget_s: float | None = Field(default=None, gt=0, description="seconds of model time for a question")
    excerpts: dict[str, Excerpt] = Field(
        default={}, description="of which part of a longer video (start, end, url) a video was made"
    )
    seeds: dict[str, int] = Field(default={}, description="the seeds of draws that were made for these questions")
    simulated: bool = Field(default=False, description="whether the questions are made up; shown beside the name")
    exact: bool = Field(
        default=False, description="every cell stands as a program wrote it (`proctor export`): nothing is guessed"
    )
    notes: list[str] = Field(default=[], description="what readers of the numbers should know")


def read_settings(file: Path) -> tuple[Settings, list[TableFault]]:
    """The settings in a file, and all that is wrong with it; the defaults where there is no such file."""
    if not file.exists():
        return Settings(), []
    try:
        content = _parsed(input_text(file, "a YAML file", encoding="utf-8-sig"))
    except InputError as error:
        return Settings(), [
            TableFault(0, "", str(error).removeprefix(f"{file}: ").removeprefix("found "), "YAML in UTF-8")
        ]
    if isinstance(content, TableFault):
        return Settings(), [content]
    try:
        return Settings.model_validate(content), []
    except ValidationError as error:
        return Settings(), [_fault(one) for one in error.errors(include_url=False)]


def _parsed(text: str) -> dict[str, Any] | TableFault:
    """The file's one object. References from one place to another are refused: they can make a small file large."""
    if len(text) > _MOST_CHARS:
        return TableFault(0, "", f"{len(text):,} characters", f"at most {_MOST_CHARS:,}")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            return TableFault(0, "", "an alias (*name)", "each value where it belongs")
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        return TableFault(
            0 if mark is None else mark.line + 1, "", str(getattr(error, "problem", "")) or "broken YAML", "YAML"
        )
    if content is None:
        return {}
    return (
        content if isinstance(content, dict) else TableFault(0, "", f"a {type(content).__name__}", "fields with values")
    )


def _fault(problem: Any) -> TableFault:
    place = ".".join(str(part) for part in problem["loc"] if isinstance(part, int) or "[" not in part)
    if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
        return TableFault(0, place, "a field that is not known", f"one of {', '.join(Settings.model_fields)}")
    found = (
        problem["input"] if isinstance(problem["input"], str | int | float | bool) else type(problem["input"]).__name__
    )
    return TableFault(0, place, repr(found)[:60], problem["msg"].removeprefix("Value error, "))
