"""What each setting of the embedded judge is worth, on encounters that it has not learned from.

PROCTOR_DATA=… python bench/embedded_settings.py --work FOLDER      (tables of docs/tasks/embedded-judge.md)

Every setting is learned in the same outer folds of whole encounters, everything is chosen inside the training folds,
and the outer folds are drawn several times, from seeds that were fixed before. Differences to the judge as it is are
paired.
Scores are kept in the folder, and not computed again.

No judge by a large model is at hand, so a simulated one stands for it: clinicians' ratings with noise twice as large as
their own spread. It says what `--stack` and `--weak` do with a judge whose errors are its own, and of no real judge.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

from bench.embedded_judge import LANGUAGES, SET_ASIDE, chance, figure, number, shown, stored
from proctor import api
from proctor.audits import CorrelationSettings, MetricScores, RatingCells
from proctor.core import generator, read_yaml
from proctor.judges.dimensions import Case, RatedCase
from proctor.results import people_ratings, rated_cases, similarity_scores
from proctor.stats import Floats, contrast, mean_interval
from proctor.tasks.mediqa_eval import READER, SCHEME
from proctor_train.mediqa_eval.embedded import (
    EmbeddedJudge,
    RatedAnswers,
    Recipe,
    out_of_fold,
    out_of_fold_from_part,
    read_rated,
    scores_of,
)
from proctor_train.mediqa_eval.embedded.answers import STACKED, Answers
from proctor_train.mediqa_eval.embedded.learning import folds, learn, relative
from tests.support.rated_answers import hashed

SHIPPED = "as it is"
POOLED = "each score and a quarter of the other language's"
HALF = "half of the encounters rated, the others left out"
NOISE = 2.0
ASSERTION = ("conflict", "conflicting-words", "denied", "contrary")


class Settings:
    """The rated answers, read once, and what was learned under each setting."""

    def __init__(self, data: Path, work: Path) -> None:
        self.data, self.work = data, work
        file = work / "runs.db"
        file.unlink(missing_ok=True)
        store = stored(data, file)
        self.table, self.rated = people_ratings(store, READER.name), rated_cases(store, READER.name, SCHEME)
        store.close()
        self.keys = list(self.rated)

    @cached_property
    def known(self) -> tuple[RatedAnswers, ...]:
        """As the embedded encoder reads them."""
        return read_rated(list(self.rated.values()))

    @cached_property
    def without_encoder(self) -> tuple[RatedAnswers, ...]:
        """Each word in a direction of its own."""
        return read_rated(list(self.rated.values()), hashed)

    def given(self, known: RatedAnswers, scores: Mapping[tuple[str, str, str], float | None]) -> Floats:
        """A scorer's scores of these answers, rows × dimensions, on the scale of `RatedAnswers.ratings`."""
        rows = [[scores[(*self.keys[index], name)] for name in known.dimensions] for index in known.positions]
        return (np.array(rows, dtype=np.float64) - known.lowest) / known.span

    @cached_property
    def overlap(self) -> dict[tuple[str, str, str], float | None]:
        """The submission that comes with the data: shared words."""
        with (self.data / "submission_overlap.csv").open(encoding="utf-8", newline="") as file:
            rows = {
                (f"{row['dataset']}/{row['encounter_id']}", row["candidate_author_id"], row["lang"], row["metric"]): row
                for row in csv.DictReader(file)
            }
        found: dict[tuple[str, str, str], float | None] = {}
        for (item, system), one in self.rated.items():
            for name in one.values:
                found[item, system, name] = float(rows[one.case.encounter, system, one.case.language, name]["value"])
        return found

    @cached_property
    def bertscore(self) -> Mapping[tuple[str, str, str], float | None]:
        """Of the answers and their references."""
        return similarity_scores(self.table, self.rated, SCHEME, ["bertscore-mean"])[0].scores

    def scores(
        self, name: str, make: Callable[[RatedAnswers], Floats], known: tuple[RatedAnswers, ...]
    ) -> MetricScores:
        """The task's scale, by a setting."""
        return scores_of(name, self.keys, [(one, make(one)) for one in known])

    def learned(self, setting: str, draw: int) -> MetricScores:
        """Every answer's score by what was learned from other folds of one draw."""
        recipe = Recipe()
        plain = partial(out_of_fold, recipe=recipe, folds_seed=draw)
        known = self.known if setting != "words hashed, no encoder" else self.without_encoder
        ways: dict[str, Callable[[RatedAnswers], Floats]] = {
            SHIPPED: plain,
            "words hashed, no encoder": plain,
            "ratings alone, no measures of assertion": lambda one: out_of_fold(
                without_assertion(one), replace(recipe, contrast=0), folds_seed=draw
            ),
            "ratings alone": partial(out_of_fold, recipe=replace(recipe, contrast=0), folds_seed=draw),
            "changed answers count as ten each": partial(
                out_of_fold, recipe=replace(recipe, contrast=10), folds_seed=draw
            ),
            "`--stack` shared words": lambda one: plain(stacked(one, self.given(one, self.overlap))),
            "`--stack` simulated judge": lambda one: plain(stacked(one, simulated(one))),
            HALF: partial(out_of_fold_from_part, recipe=recipe, share=0.5, folds_seed=draw),
            "the same, the others by `--weak` BERTScore": lambda one: half_weak(
                one, recipe, self.given(one, self.bertscore), draw
            ),
            "the same, the others by `--weak` simulated judge": lambda one: half_weak(
                one, recipe, simulated(one), draw
            ),
        }
        return self.scores(setting, ways[setting], known)

    def pooled(self, draw: int) -> MetricScores:
        """Standardised scores, each with a quarter of the mean over the other language's dimensions."""
        own = self.kept(SHIPPED, draw).scores
        found: dict[tuple[str, str, str], float | None] = {}
        alike: dict[str, dict[tuple[str, str], Floats]] = {}
        for known in self.known:
            rows = np.array(
                [[own[(*self.keys[index], name)] for name in known.dimensions] for index in known.positions],
                dtype=np.float64,
            )
            standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
            alike[known.answers.language] = {
                (self.rated[self.keys[index]].case.encounter, self.keys[index][1]): row
                for index, row in zip(known.positions, standard, strict=True)
            }
        for known, other in zip(self.known, reversed(self.known), strict=True):
            for index in known.positions:
                where = (self.rated[self.keys[index]].case.encounter, self.keys[index][1])
                beside = float((alike[other.answers.language][where] * other.better).mean())
                row = alike[known.answers.language][where] + 0.25 * beside * known.better
                found |= {(*self.keys[index], name): float(v) for name, v in zip(known.dimensions, row, strict=True)}
        return MetricScores(POOLED, found)

    def parted(self) -> tuple[list[str], list[RatedCase], list[RatedCase]]:
        """The encounters that were set aside, the rated answers to all others, and those to these."""
        groups = sorted({one.case.encounter for one in self.rated.values()})
        drawn = generator(0, "embedded-judge", "lockbox").permutation(len(groups))[:SET_ASIDE]
        aside = [groups[k] for k in sorted(drawn.tolist())]
        learning = [one for one in self.rated.values() if one.case.encounter not in aside]
        return aside, learning, [one for one in self.rated.values() if one.case.encounter in aside]

    def judge(self, name: str, recipe: Recipe, learning: list[RatedCase]) -> EmbeddedJudge:
        """The judge that learned from these, from the folder if it is there."""
        folder = self.work / f"judge-{name}"
        if not folder.exists():
            EmbeddedJudge.train(learning, read_rated(learning), recipe).save(folder)
        return EmbeddedJudge.load(folder)

    def kept(self, setting: str, draw: int) -> MetricScores:
        """From the folder, where it was computed before."""
        file = self.work / f"{''.join(one if one.isalnum() else '-' for one in setting)}.{draw}.json"
        if not file.exists():
            made = self.pooled(draw) if setting == POOLED else self.learned(setting, draw)
            file.write_text(json.dumps([[*key, value] for key, value in made.scores.items()]), encoding="utf-8")
        rows = json.loads(file.read_text(encoding="utf-8"))
        return MetricScores(setting, {(item, system, name): value for item, system, name, value in rows})


SETTINGS = (
    SHIPPED,
    "ratings alone, no measures of assertion",
    "ratings alone",
    "changed answers count as ten each",
    "words hashed, no encoder",
    POOLED,
    "`--stack` shared words",
    "`--stack` simulated judge",
    HALF,
    "the same, the others by `--weak` BERTScore",
    "the same, the others by `--weak` simulated judge",
)


def without_assertion(known: RatedAnswers) -> RatedAnswers:
    """As before it read what an answer denies."""

    def left(answers: Answers) -> Answers:
        columns = [k for k, name in enumerate(answers.names) if name not in ASSERTION]
        return replace(answers, names=tuple(answers.names[k] for k in columns), measured=answers.measured[:, columns])

    return replace(known, answers=left(known.answers), contrasts=None)


def simulated(known: RatedAnswers) -> Floats:
    """A judge's scores: ratings, and noise, half of which all dimensions of an answer share."""
    rng = generator(0, "simulated judge", known.answers.language)
    shape = known.ratings.shape
    noise = np.sqrt(0.5) * (rng.normal(size=(shape[0], 1)) + rng.normal(size=shape))
    return np.asarray(known.ratings + NOISE * known.ratings.std(axis=0) * noise, dtype=np.float64)


def stacked(known: RatedAnswers, values: Floats) -> RatedAnswers:
    """The same answers with another judge's scores beside them."""
    columns = [f"{STACKED}other:{name}" for name in known.dimensions]
    answers, contrasts = known.answers.stacked(columns, values), known.contrasts
    if contrasts is None:
        return replace(known, answers=answers)
    beside = np.full((len(contrasts.answers), len(columns)), np.nan)
    beside[contrasts.changed] = values[contrasts.origin]
    return replace(
        known, answers=answers, contrasts=replace(contrasts, answers=contrasts.answers.stacked(columns, beside))
    )


def half_weak(known: RatedAnswers, recipe: Recipe, weak: Floats, draw: int) -> Floats:
    """As `out_of_fold`, where a judge's scores stand for the ratings of half of the training encounters; the rated half
    is that of `out_of_fold_from_part`."""
    groups, scores = np.array(known.split.groups), np.full(known.ratings.shape, np.nan)
    for fold, (inside, outside) in enumerate(folds(known.split, recipe.folds, draw, "outer")):
        names = np.unique(groups[inside])
        order = generator(draw, "embedded-judge", "part", str(fold)).permutation(len(names))
        told = np.isin(groups[inside], names[order[: round(0.5 * len(names))]])
        part = known.part(inside)
        split = replace(part.split, weak=tuple((~told).tolist()))
        training = replace(part, ratings=np.where(told[:, None], part.ratings, weak[inside]), split=split)
        taught = np.ptp(part.ratings[told], axis=0) > 0
        learned = learn(training.on(taught), recipe)
        scores[outside] = 0.5
        scores[np.ix_(outside, np.flatnonzero(taught))] = relative(learned.rate(known.answers.part(outside)))
    return np.asarray(known.lowest + known.span * scores, dtype=np.float64)


def signed(value: float | None, low: float | None, high: float | None) -> str:
    """A difference with its interval."""
    return f"{number(value, sign=True)} ({number(low, sign=True)} to {number(high, sign=True)})"


def table(settings: Settings, repeats: int, draws: int) -> str:
    """A row for each setting: the figure, and what it differs by from the judge as it is (of those that learn from half
    of the encounters: from learning from these alone)."""
    for draw in range(repeats):
        for name in SETTINGS:
            settings.kept(name, draw)
    frame = RatingCells(settings.table, CorrelationSettings(draws=draws))
    lines = ["| | English | difference, p | Chinese | difference, p |", "|---|---|---|---|---|"]
    found = {
        name: {one: figure(frame, [settings.kept(name, k) for k in range(repeats)], one) for one in LANGUAGES}
        for name in SETTINGS
    }
    name = "(the simulated judge itself)"
    alone = settings.scores(name, simulated, settings.known)
    found[name] = {one: figure(frame, [alone], one) for one in LANGUAGES}
    for name, own in found.items():
        cells = [name]
        base = found[HALF if name.startswith("the same") else SHIPPED]
        for language in LANGUAGES:
            apart = contrast(own[language], base[language])
            ends = signed(apart.value, apart.ci_low, apart.ci_high)
            plain = name == SHIPPED or name.startswith("(")
            cells += [shown(own[language].estimate()), "" if plain else f"{ends}, {chance(apart)}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def noticed(settings: Settings) -> str:
    """What changed answers score, as it is and with ratings alone: learned from all encounters but those that were set
    aside, asked about an answer to each of these."""
    groups, learning, _ = settings.parted()
    aside = set(groups)
    store = api.open_store(settings.work / "aside.db")
    part = settings.work / "aside.csv"
    with (settings.data / "ratings.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row for row in rows if f"{row['dataset']}/{row['encounter_id']}" in aside)
    api.import_answers(READER.name, part, data=settings.data, store=store)
    shifts: dict[tuple[str, str], list[str]] = {}
    for name, recipe in (("as-it-is", Recipe()), ("ratings-alone", replace(Recipe(), contrast=0))):
        folder, kept = settings.work / f"judge-{name}", settings.work / f"noticed-{name}.json"
        if not kept.exists():
            settings.judge(name, recipe, learning)
            found = api.perturb(store, READER.name, scorer=f"embedded:{folder}", answers=SET_ASIDE)
            kept.write_text(json.dumps([row for row in found.rows if not row["dimension"]]), encoding="utf-8")
        for row in json.loads(kept.read_text(encoding="utf-8")):
            text = signed(row["shift"], row["shift_low"], row["shift_high"])
            shifts.setdefault((row["perturbation"], row["language"]), []).append(text)
    lines = [
        "| change | English, ratings alone | English | Chinese, ratings alone | Chinese |",
        "|---|---|---|---|---|",
    ]
    for change in dict.fromkeys(change for change, _ in shifts):
        cells = [text for one in LANGUAGES for text in reversed(shifts.get((change, one), ["–", "–"]))]
        lines.append(f"| {' | '.join((f'`{change}`', *cells))} |")
    return "\n".join(lines)


def unseen(settings: Settings, part: str, each: int = 10) -> str:
    """How far boilerplate and denials in unseen wordings move the scores of answers to the encounters that were set aside,
    in standard deviations of the scores (up is better): each wording is put around `each` answers."""
    groups, learning, aside = settings.parted()
    judge = settings.judge("as-it-is", Recipe(), learning)
    wordings = read_yaml(Path(__file__).parents[1] / "tests" / "support" / "unseen_wordings.yaml")[part]
    lines = ["| language | dimension | boilerplate | denial |", "|---|---|---|---|"]
    for language in LANGUAGES:
        cases = [one.case for one in aside if one.case.language == language]
        cells: dict[str, list[str]] = {}
        for given in (wordings[language]["padded"], wordings[language]["denied"]):
            changed = [
                (case, wording.replace("{text}", case.candidate.strip()))
                for index, wording in enumerate(given)
                for case in answers_for(cases, groups, index, each)
            ]
            encounters = [case.encounter for case, _ in changed]
            for name, moved in shifts(judge, cases, changed).items():
                found = mean_interval(moved, encounters)
                cells.setdefault(name, []).append(signed(found.value, found.ci_low, found.ci_high))
        lines += [f"| {language} | {name} | {' | '.join(row)} |" for name, row in cells.items()]
    return "\n".join(lines)


def shifts(judge: EmbeddedJudge, cases: Sequence[Case], changed: Sequence[tuple[Case, str]]) -> dict[str, list[float]]:
    """By dimension how far each changed answer is from the answer, in standard deviations of the scores of all cases; first
    the mean over the dimensions."""
    own = dict(zip(cases, judge.score(cases), strict=True))
    asked: list[Case] = []
    rows = []
    for index, (case, text) in enumerate(changed):
        score = f"{case.id}#{index}"
        rows.append(len(asked))
        asked.append(replace(case, id=score, candidate=text))
        asked += [replace(other, id=score) for other in cases if other.id == case.id and other is not case]
    scored = judge.score(asked)
    found = {}
    for dimension in cases[0].dimensions:
        name = dimension.name
        spread = float(np.std([one.values[name] for one in own.values()])) * (-1 if dimension.lower_is_better else 1)
        found[name] = [
            (scored[row].values[name] - own[case].values[name]) / spread
            for row, (case, _) in zip(rows, changed, strict=True)
        ]
    return {"**mean of all**": np.mean(list(found.values()), axis=0).tolist(), **found}


def answers_for(cases: Sequence[Case], groups: Sequence[str], row: int, each: int) -> list[Case]:
    """Answers to put a wording around: `each` encounters, one answer each, others for the next wording."""
    found = []
    for k in range(each):
        own = [case for case in cases if case.encounter == groups[(7 * row + 4 * k) % len(groups)]]
        found.append(own[(row + k) % len(own)])
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder where scores are kept")
    parser.add_argument("--repeats", type=int, default=3, help="draws of the outer folds")
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws behind each interval")
    parser.add_argument("--unseen", choices=("first", "last"), help="shifts by unseen wordings, instead of agreement")
    parser.add_argument("--noticed", action="store_true", help="what changed answers score, instead of agreement")
    options = parser.parse_args()
    folder = os.environ.get("PROCTOR_DATA")
    if not folder:
        parser.error("PROCTOR_DATA must name the folder of real data")
    options.work.mkdir(parents=True, exist_ok=True)
    settings = Settings(Path(folder) / "mediqa-eval", options.work)
    if options.unseen:
        print(unseen(settings, options.unseen))
    else:
        print(noticed(settings) if options.noticed else table(settings, options.repeats, options.draws))


if __name__ == "__main__":
    main()
