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
        Case,
        DimensionScores,
        RatedCase,
        ReferenceAnswer,
        all_scores,
        case_of,
        encounter_scores,
        read_scheme,
    )
    from proctor.judges.dimensions.factories import rating_judge
    from proctor.judges.dimensions.few_shot import (
        ExampleSearch,
        FewShotExamples,
        RatedPool,
        SearchPlan,
        SearchProgress,
        draw_examples,
        few_shot_judge,
        search_examples,
    )
    from proctor.judges.dimensions.logprob import (
        GenerativeManifest,
        generative_client,
        generative_query,
        mean_level,
        read_generative,
        rubric_prompts,
    )
    from proctor.judges.dimensions.model_judge import look
    from proctor.judges.dimensions.scorer import (
        ClientPool,
        DimensionJudge,
        DimensionScorer,
        JudgeSetup,
        RatesDimensions,
        candidate_of,
        read_options,
    )
else:
    export_lazily(__name__)

__all__ = [
    "Case", "ClientPool", "Dimension", "DimensionJudge", "DimensionScorer", "DimensionScores", "ExampleSearch",
    "FewShotExamples", "JudgeSetup", "RatedCase", "RatedPool", "RatesDimensions", "ReferenceAnswer", "SearchPlan",
    "SearchProgress", "all_scores", "candidate_of", "case_of", "choose_judges", "draw_examples", "encounter_scores",
]  # fmt: skip
__all__ += ["few_shot_judge", "look"]
__all__ += ["BlendMember", "PerFold", "best_alone", "blended", "equal_weights", "stacked_weights"]
__all__ += ["fit_calibration", "rated_scores", "rating_judge", "read_options", "read_scheme", "search_examples"]
__all__ += [
    "GenerativeManifest",
    "generative_client",
    "generative_query",
    "mean_level",
    "read_generative",
    "rubric_prompts",
]
