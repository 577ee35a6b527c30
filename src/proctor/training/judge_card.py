"""The card of a trained judge: what it is, what it learned from, how it agrees with people, and under which licence."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.core import DASH, count_of, number, number_interval
from proctor.judges.dimensions import GenerativeManifest


def judge_card(manifest: GenerativeManifest) -> str:
    """The card as Markdown, with the fields that model pages read at its head."""
    whole = not manifest.adapter_sha256
    head = [
        "---",
        *([f"license: {manifest.licence}"] if manifest.licence else []),
        *([] if whole else [f"base_model: {_name(manifest.base)}", "library_name: peft"]),
        "tags:",
        "- judge",
        "- medical",
        "---",
    ]
    agreement = [
        f"| {one['language']} | {one['dimension'] or 'all, mean'} | {_figure(one, 'value')} "
        f"| {number_interval(_number(one, 'ci_low'), _number(one, 'ci_high'))} "
        f"| {one['answers']} of {one['encounters']} encounters |"
        for one in manifest.held_out
    ]
    dimensions = [
        f"- {language}: " + ", ".join(f"{name} ({', '.join(map(_short, levels))})" for name, levels in own.items())
        for language, own in manifest.dimensions.items()
    ]
    settings = [f"- {name}: {value}" for name, value in sorted(manifest.settings.items())]
    pictures = "It was trained with pictures." if manifest.pictures else "It is a model of texts and sees no picture."
    return "\n".join(
        [
            *head,
            "",
            "# A judge trained on people's ratings",
            "",
            (
                f"It fills in a level for each dimension of an answer, all in one reply. {pictures} Use it with "
                "`proctor score BENCHMARK --judge generative-judge:DIR`. It rates answers of automatic "
                "systems for research; it is no medical device, and no person's care may depend on it."
            ),
            "",
            "## Agreement with people",
            "",
            (
                "Mean of Kendall's τ-b, Pearson's and Spearman's correlation on encounters that had no part in training, "
                "with 95 % intervals over samples of encounters."
            ),
            "",
            "| language | dimension | agreement | interval | answers |",
            "|---|---|---|---|---|",
            *agreement,
            "",
            "## What it learned from",
            "",
            (
                f"{count_of(manifest.answers, 'rated answer')} of {count_of(manifest.encounters, 'encounter')}, those "
                "included by which the checkpoint was chosen. SHA-256 of the data: `{manifest.data_sha256}`."
            ),
            "",
            *dimensions,
            "",
            "## How",
            "",
            *settings,
            f"- base: {_name(manifest.base)}, SHA-256 `{manifest.base_sha256}`",
            f"- chat template: SHA-256 `{manifest.template_sha256}`",
            f"- trained weights: SHA-256 `{manifest.adapter_sha256 or manifest.merged_sha256}`",
            "",
            f"Licence: {manifest.licence or 'not stated; that of the base and of the ratings hold.'}",
            "",
        ]
    )


def _name(base: str) -> str:
    """The base's folder, without the path on somebody's machine."""
    return base.rstrip("/").rpartition("/")[2]


def _number(row: Mapping[str, object], name: str) -> float | None:
    value = row[name]
    return float(value) if isinstance(value, int | float) else None


def _figure(row: Mapping[str, object], name: str) -> str:
    value = _number(row, name)
    return DASH if value is None else number(value)


def _short(level: float) -> str:
    return f"{level:g}"
