"""The factories of the judges of dimensions by name, with their options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, JsonValue, model_validator

from proctor.core import ConfigurationError, FrozenModel, InputError
from proctor.judges.cached_model import load_prompts
from proctor.judges.dimensions.calibration import read_calibration, read_choice
from proctor.judges.dimensions.contexts import Claims, ModelReranker, PairReranker, Passages, Retriever
from proctor.judges.dimensions.ensemble import RecordedJudge, median_ensemble
from proctor.judges.dimensions.ensemble import per_dimension as judge_per_dimension
from proctor.judges.dimensions.few_shot import (
    CoveringExamples,
    FewShotExamples,
    RatedPool,
    SearchedExamples,
    SimilarExamples,
    few_shot_judge,
    read_search,
)
from proctor.judges.dimensions.logprob import logprob_scale
from proctor.judges.dimensions.model_judge import RATING, RUBRIC, UNREFERENCED, ContextProvider, ModelJudge, ShownCase
from proctor.judges.dimensions.scorer import DimensionJudge, JudgesAll, JudgeSetup, RatesDimensions, read_options
from proctor.judges.documents import Chunking
from proctor.judges.passage_index import IndexSettings, load_pair_scorer, load_sentence_encoder, open_index
from proctor.metrics.text import EMBEDDED_ENCODER
from proctor.models import ModelClient, ModelSpec

TEMPERATURES = (0.0, 0.3, 0.7)
PERSONAS = ("diagnostic-consistency", "clinical-safety", "professional-communication")
"""The points of view of a `persona-ensemble`."""

_LIKES: dict[str, JsonValue] = {"temperature": 0.0, "openai_logprobs": True, "openai_top_logprobs": 20}
_LOCAL_LIKES: dict[str, JsonValue] = {"temperature": 0.0, "fill_form": True}


class NoOptions(FrozenModel):
    """The options of a judge without options, and the base of the others'."""


PAPER = "paper"
"""The prompt with the elements of a task's published one, where the task has it."""


class JudgePrompt(FrozenModel):
    """The prompt of a judge: `task` (the benchmark's own), `general` (for any task), the name of another one of the task
    (`paper`), or a folder with KIND.txt.j2 or a file for each language, such as rating_en.txt.j2."""

    prompt: str = "task"

    def prompts(self, setup: JudgeSetup, kind: str = "rating") -> Path | None:
        """The folder of the prompts. Raises `InputError` where there is none of this kind."""
        if self.prompt in {"task", "general"}:
            return setup.prompts if self.prompt == "task" else None
        own = {folder.name: folder for folder in _variants(setup.prompts)}
        folder = own.get(self.prompt, Path(self.prompt))
        if not any(folder.glob(f"{kind}*.txt.j2")):
            known = ", ".join(("task", "general", *sorted(own)))
            raise InputError(
                "prompt",
                found=repr(self.prompt),
                expected=f"{known}, or a folder with {kind}.txt.j2 or {kind}_en.txt.j2",
            )
        return folder

    @property
    def prompt_name(self) -> str:
        """The prompt in the judge's name; empty for the task's own."""
        return "" if self.prompt == "task" else f"prompt-{Path(self.prompt).name}"


def _variants(prompts: Path | None) -> list[Path]:
    """The folders of further prompts within a task's."""
    return [] if prompts is None or not prompts.is_dir() else [one for one in prompts.iterdir() if one.is_dir()]


class RatingOptions(JudgePrompt, ShownCase):
    """What the model is shown, and its prompt. The published prompt asks for no reason, so with prompt=paper there is
    none unless `reason` is set."""

    @model_validator(mode="before")
    @classmethod
    def _as_published(cls, given: object) -> object:
        published = isinstance(given, dict) and given.get("prompt") == PAPER
        return {"reason": False, **given} if published and isinstance(given, dict) else given


def _client(name: str, setup: JudgeSetup) -> ModelClient:
    """The one model, at temperature 0 unless its settings name another."""
    return setup.clients.client(setup.clients.only(name), {"temperature": 0.0})


def rating_judge(name: str, setup: JudgeSetup) -> DimensionJudge:
    """The rating judge under this name, at temperature 0 unless the model's settings name another. Raises
    `ConfigurationError` unless there is exactly one model."""
    options = read_options(name, RatingOptions, setup.options)
    prompts = options.prompts(setup)
    client = _client(name, setup)
    return ModelJudge(name, client, setup.judgements, variant=options.prompt_name, prompts=prompts, shown=options)


@RatesDimensions
def rating(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension in one reply, pictures first, by the task's rules.

    Options for experiments: references=off, images=off, reason=off; prompt=paper (the elements of the task's published
    prompt), general, or a folder with rating.txt.j2.
    """
    return rating_judge("rating-judge", setup)


class _RubricOptions(NoOptions):
    references: bool = True
    images: bool = True


@RatesDimensions
def rubric(setup: JudgeSetup) -> DimensionJudge:
    """Three described levels (0, 0.5, 1) per dimension; overall and disagreement are derived.

    Options: references=off (graded by question and pictures alone, with a rubric of its own), images=off. Temperature 0
    where the model's settings name no other. Raises `ConfigurationError` unless there is exactly one model.
    """
    # After hgkai26 (Gangavarapu 2026, in section 6.5 of the overview): a discrete scale of 0, 0.5 and 1 with a rubric, and an
    # overall score and an indicator of disagreement that are derived. The overview does not say how. In the scheme of
    # MEDIQA-EVAL overall is the lower of completeness and factual accuracy, which keeps both of the task's rules (and is what
    # clinicians gave in 330 of 363 ratings of the validation data), and a candidate disagrees with the references where its
    # factual accuracy is 0 (327 of 363). That system saw no references, as this one with references=off.
    name = "rubric-judge"
    options = read_options(name, _RubricOptions, setup.options)
    shown = ShownCase(references=options.references, images=options.images)
    scale = RUBRIC if shown.references else UNREFERENCED
    return ModelJudge(name, _client(name, setup), setup.judgements, scale=scale, prompts=setup.prompts, shown=shown)


class _LogprobOptions(NoOptions):
    calibration: Path | None = None


@RatesDimensions
def logprob(setup: JudgeSetup) -> DimensionJudge:
    """The score that the model expects, from the probabilities of its tokens; calibrated where a file says how.

    The option `calibration` is a file made by `proctor judge fit --method calibration`. Raises `ConfigurationError`
    unless there is exactly one model, and it is asked by OpenAI's protocol.
    """
    name = "logprob-judge"
    options = read_options(name, _LogprobOptions, setup.options)
    spec = setup.clients.only(name)
    calibration = read_calibration(options.calibration) if options.calibration else None
    try:
        client = setup.clients.client(spec, _LOCAL_LIKES if spec.is_local else _LIKES)
    except ConfigurationError as error:
        if "unknown model setting 'openai_" not in str(error):
            raise
        expected = "expected a model asked by OpenAI's protocol"
        raise ConfigurationError(f"{name}: {spec.name} gives no token probabilities: {expected}") from error
    scale = logprob_scale(client.name, calibration)
    variant = "calibrated" if calibration else ""
    return ModelJudge(name, client, setup.judgements, scale=scale, variant=variant, prompts=setup.prompts)


class ExampleOptions(NoOptions):
    """The choice of few-shot examples: `select` among the rated answers, or the search in the file `examples` (`proctor
    judge fit --method examples`). `encoder` (see `load_sentence_encoder`) compares meanings instead of words."""

    select: Literal["similar", "coverage"] = "similar"
    shots: int = Field(default=4, ge=1, le=24)
    examples: Path | None = None
    encoder: str = ""
    seed: int = 0


def _examples(judge: str, setup: JudgeSetup, options: ExampleOptions) -> FewShotExamples:
    """The few-shot examples. Raises `ConfigurationError` without rated answers, and `InputError` for contradictory options
    and for a search on other rated answers."""
    if not setup.rated:
        raise ConfigurationError(f"{judge}: expected rated answers to learn from, found none (--rated FILE)")
    pool = RatedPool(setup.rated)
    if options.examples is not None:
        set_too = sorted({"select", "shots", "encoder", "seed"} & options.model_fields_set)
        if set_too:
            raise InputError(judge, f"option {set_too[0]!r}", expected="none beside examples, which says it")
        return SearchedExamples(pool, read_search(options.examples), options.examples)
    if options.select == "coverage":
        if options.encoder:
            raise InputError(judge, "option 'encoder'", expected="none with select=coverage")
        return CoveringExamples(pool, options.shots, options.seed)
    return SimilarExamples(pool, options.shots, load_sentence_encoder(options.encoder) if options.encoder else None)


@RatesDimensions
def few_shot(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension in one reply, after rated examples of other encounters (needs --rated).

    Options: select=similar or coverage, shots=4, encoder, seed, or examples=FILE (a search's result).
    Temperature 0 where the model's settings name no other. Raises `ConfigurationError` unless there is
    exactly one model and there are rated answers.
    """
    name = "few-shot-judge"
    options = read_options(name, ExampleOptions, setup.options)
    client = _client(name, setup)
    return few_shot_judge(client, setup.judgements, _examples(name, setup, options), setup.prompts)


class RetrievalOptions(NoOptions):
    """The source of passages: `documents` is a folder, `index` the folder of its index (default: beside it), `passages` how
    many are shown. `rerank` is "model", "none", or a folder with a cross-encoder. `ranked` limits the search to the first
    documents that belong to the item (see `ranked_documents`)."""

    documents: Path
    index: Path | None = None
    passages: int = Field(default=4, ge=1, le=12)
    rerank: str = "model"
    encoder: str = ""
    size: int = Field(default=160, ge=8, le=2000)
    overlap: int | None = Field(default=None, ge=0)
    ranked: int = Field(default=0, ge=0, le=1000)


def _retriever(judge: str, setup: JudgeSetup, client: ModelClient, options: RetrievalOptions) -> Retriever:
    """Opens the index, or builds it for new documents. Raises as `open_index`."""
    if options.overlap is not None and options.overlap > options.size // 2:
        raise InputError(judge, "option 'overlap'", found=str(options.overlap), expected="at most half of size")
    chunking = Chunking.of(options.size, options.overlap)
    reranker: ModelReranker | PairReranker | None = None
    if options.rerank == "model":
        reranker = ModelReranker(judge, client, setup.judgements, load_prompts("rerank", setup.prompts))
    elif options.rerank != "none":
        reranker = PairReranker(load_pair_scorer(options.rerank), options.rerank)
    settings = IndexSettings(chunking=chunking, encoder=options.encoder or EMBEDDED_ENCODER)
    return Retriever(open_index(options.documents, options.index, settings), options.passages, reranker, options.ranked)


class _PassageOptions(RetrievalOptions, ExampleOptions, RatingOptions):
    shots: int = Field(default=4, ge=0, le=24)


@RatesDimensions
def retrieval(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension in one reply, beside passages of documents; with --rated after rated examples too.

    Options: documents=FOLDER, index, passages=4, rerank=model (or none, or a cross-encoder's folder), encoder,
    size=160, overlap=32 (words), those of few-shot-judge, and those of rating-judge. One more call for each question
    where the model puts passages in order. Raises `ConfigurationError` unless there is exactly one model, and without
    the extra `retrieval`; `InputError` for documents or an index that can't be read.
    """
    name = "retrieval-judge"
    options = read_options(name, _PassageOptions, setup.options)
    client = _client(name, setup)
    asked = sorted({"shots", "select", "examples", "seed"} & options.model_fields_set)
    contexts: list[ContextProvider] = []
    if setup.rated and options.shots:
        contexts.append(_examples(name, setup, options))
    elif asked and not setup.rated:
        raise ConfigurationError(f"{name}: option {asked[0]!r} needs rated answers (--rated FILE)")
    elif options.examples is not None:
        raise InputError(name, "option 'examples'", expected="none with shots=0")
    contexts.append(Passages(_retriever(name, setup, client, options)))
    prompts = options.prompts(setup)
    return ModelJudge(
        name, client, setup.judgements, contexts=contexts, variant=options.prompt_name, prompts=prompts, shown=options
    )


class _ClaimOptions(RetrievalOptions):
    claims: int = Field(default=8, ge=1, le=24)
    passages: int = Field(default=3, ge=1, le=12)
    rerank: str = "none"


@RatesDimensions
def evidence(setup: JudgeSetup) -> DimensionJudge:
    """Splits the candidate into claims, holds each against references and passages, then scores.

    Options: documents=FOLDER, claims=8, passages=3 (for each claim), rerank=none (or model, or a cross-encoder's
    folder), index, encoder, size, overlap, ranked=25 (only the first documents in each encounter's folder). 2 + claims
    calls for an answer. Raises as `retrieval-judge`.
    """
    name = "evidence-judge"
    options = read_options(name, _ClaimOptions, setup.options)
    client = _client(name, setup)
    retriever = _retriever(name, setup, client, options)
    claims = Claims(name, client, setup.judgements, retriever, most=options.claims, prompts=setup.prompts)
    return ModelJudge(name, client, setup.judgements, contexts=[claims], prompts=setup.prompts)


class _EnsembleOptions(RatingOptions):
    quorum: int | None = Field(default=None, ge=1)


@RatesDimensions
def temperature_ensemble(setup: JudgeSetup) -> DimensionJudge:
    """Three temperatures (0.0, 0.3, 0.7) of each model: the median of the scores, the majority of the flag.

    Raises `ConfigurationError` where the settings name a temperature, and for a model that takes none.
    """
    name = "temperature-ensemble"
    specs = setup.clients.some(name)
    if any("temperature" in spec.settings for spec in specs):
        raise ConfigurationError(f"{name}: the temperatures are its own: leave temperature out of the settings")
    hot = [  # a setting, which a model has to take: without it the three would be one
        (temperature, spec.model_copy(update={"settings": {**spec.settings, "temperature": temperature}}))
        for spec in specs
        for temperature in TEMPERATURES
    ]
    return _ensemble(name, setup, [_Member(spec, one, f"temperature-{one:g}") for one, spec in hot])


@RatesDimensions
def persona_ensemble(setup: JudgeSetup) -> DimensionJudge:
    """Three readers of each model (diagnostic consistency, clinical safety, professional communication)."""
    name = "persona-ensemble"
    specs = setup.clients.some(name)
    return _ensemble(name, setup, [_Member(spec, 0.0, persona, persona) for spec in specs for persona in PERSONAS])


@RatesDimensions
def model_ensemble(setup: JudgeSetup) -> DimensionJudge:
    """Several models, an odd number of them, each as in rating-judge."""
    name = "model-ensemble"
    return _ensemble(name, setup, [_Member(spec) for spec in setup.clients.some(name)])


class _Member(NamedTuple):
    """A member of an ensemble: the benchmark's own judge with one model."""

    spec: ModelSpec
    temperature: float = 0.0
    variant: str = ""
    persona: str = ""


def _ensemble(name: str, setup: JudgeSetup, members: Sequence[_Member]) -> DimensionJudge:
    """The ensemble; the options of `rating-judge` apply to each member, and are part of the names."""
    options = read_options(name, _EnsembleOptions, setup.options)
    prompts, judges = options.prompts(setup), list[DimensionJudge]()
    for member in members:
        client = setup.clients.client(member.spec, {"temperature": member.temperature})
        variant = "+".join(filter(None, (member.variant, options.prompt_name)))
        scale = replace(RATING, fill={"persona": member.persona})
        judges.append(
            ModelJudge(
                setup.own, client, setup.judgements, scale=scale, variant=variant, prompts=prompts, shown=options
            )
        )
    models = "+".join(spec.name for spec in setup.clients.specs)
    named = "+".join(filter(None, (options.prompt_name, options.variant)))
    return median_ensemble(f"{name}{f'/{named}' if named else ''}[{models}]", judges, quorum=options.quorum)


class _ChoiceOptions(NoOptions):
    choice: Path
    judges: str = ""


@RatesDimensions
def per_dimension(setup: JudgeSetup) -> DimensionJudge:
    """Each dimension by the judge that did best on rated answers (`proctor judge fit --method choice`).

    Options: choice=FILE; judges=few-shot-judge,rubric-judge, run now, with JUDGE.OPTION=VALUE for theirs. All others
    that were chosen have scored the answers before. Raises `InputError` where a judge that was chosen is in neither,
    and for a file that can't be read; `ConfigurationError` for a judge that takes all answers at once.
    """
    judge = "per-dimension"
    own = {name: value for name, value in setup.options.items() if "." not in name}
    options = read_options(judge, _ChoiceOptions, own)
    choice = read_choice(options.choice)
    live = [one.strip() for one in options.judges.split(",") if one.strip()]
    for key in setup.options:
        if "." in key and key.partition(".")[0] not in live:
            raise InputError(judge, f"option {key!r}", expected="options of the judges that are run now")
    if len(set(live)) < len(live):
        raise InputError(judge, "option 'judges'", found=options.judges, expected="each judge once")
    found: dict[str, DimensionJudge] = {}
    for name in live:
        one = _run_now(judge, name, setup)
        chosen = one.name if one.name in choice.needed else name
        if chosen in choice.needed:  # of others nothing would be taken
            found[chosen] = one
    for name in choice.needed:
        if name not in found and setup.recorded is not None and (given := setup.recorded(name)):
            found[name] = RecordedJudge(name, given)
    return judge_per_dimension(choice, found)


def _run_now(judge: str, name: str, setup: JudgeSetup) -> DimensionJudge:
    """A judge that is run now. Raises `InputError` for a judge that does not rate dimensions, and `ConfigurationError` for
    one that takes all answers at once."""
    from proctor.judges.registry import JUDGES

    start = f"{name}."
    theirs = {key.removeprefix(start): value for key, value in setup.options.items() if key.startswith(start)}
    factory = JUDGES.get(name)
    if not isinstance(factory, RatesDimensions):
        raise InputError(judge, "option 'judges'", found=repr(name), expected="judges of dimensions")
    made = factory(replace(setup, options=theirs))
    if isinstance(made, JudgesAll):
        raise ConfigurationError(
            f"{judge}: {name} takes all answers at once: score with it first, and leave it out of judges"
        )
    return made
