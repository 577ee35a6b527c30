"""Judges of dimensions: a score for each of a benchmark's dimensions, one module per way of finding it."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.core import Dimension
    from proctor.judges.dimensions.calibration import (
        BlendMember,
        PerFold,
        best_alone,
        blended,
        choose_judges,
        equal_weights,
        fit_calibration,
        rated_scores,
        stacked_weights,
    )
    from proctor.judges.dimensions.case import (
        IMAGES_UNSEEN,
        TRAINED_ON,
        Case,
        DimensionScores,
        RatedCase,
        ReferenceAnswer,
        all_scores,
        case_of,
        encounter_scores,
        injection_flags,
        read_scheme,
        refuse_unlearned,
    )
    from proctor.judges.dimensions.factories import JudgePrompt, NoOptions, rating_judge
    from proctor.judges.dimensions.few_shot import (
        ExampleSearch,
        FewShotExamples,
        RatedPool,
        SearchPlan,
        SearchProgress,
        SimilarExamples,
        draw_examples,
        few_shot_judge,
        refuse_own,
        search_examples,
        shown,
    )
    from proctor.judges.dimensions.logprob import (
        GenerativeManifest,
        generative_client,
        generative_query,
        mean_level,
        read_generative,
        rubric_prompts,
    )
    from proctor.judges.dimensions.model_judge import (
        RATING,
        Context,
        ModelJudge,
        Pictures,
        Rated,
        look,
        rating_form,
        wording_of,
    )
    from proctor.judges.dimensions.scorer import (
        ClientPool,
        DimensionJudge,
        DimensionScorer,
        JudgeSetup,
        RatesDimensions,
        RecordedBy,
        candidate_of,
        read_options,
    )
else:
    export_lazily(__name__)

__all__ = [
    "IMAGES_UNSEEN", "RATING", "TRAINED_ON", "BlendMember", "Case", "ClientPool", "Context", "Dimension",
    "DimensionJudge", "DimensionScorer", "DimensionScores", "ExampleSearch", "FewShotExamples",
    "GenerativeManifest", "JudgePrompt", "JudgeSetup", "ModelJudge", "NoOptions", "PerFold", "Pictures", "Rated",
    "RatedCase", "RatedPool", "RatesDimensions", "RecordedBy", "ReferenceAnswer", "SearchPlan", "SearchProgress",
    "SimilarExamples", "all_scores", "best_alone", "blended", "candidate_of", "case_of", "choose_judges",
    "draw_examples", "encounter_scores", "equal_weights", "few_shot_judge", "fit_calibration", "generative_client",
    "generative_query", "injection_flags", "look", "mean_level", "rated_scores", "rating_form", "rating_judge",
    "read_generative", "read_options", "read_scheme", "refuse_own", "refuse_unlearned", "rubric_prompts",
    "search_examples", "shown", "stacked_weights", "wording_of",
]  # fmt: skip
