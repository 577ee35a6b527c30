"""`proctor build new --kind rexsonovqa`: from narrated videos to questions about clips of them."""

from __future__ import annotations

from pathlib import Path

from proctor.construction.pipeline import (
    EventsStage,
    NormaliseStage,
    ProjectKind,
    QuestionsStage,
    QuestionType,
    RepairStage,
    ScreenStage,
    TranscriptStage,
)

TYPES = (
    QuestionType(
        "Type1_ActionGoalReasoning",
        "which movement is made, and which view or region it is to reach (action and goal).",
    ),
    QuestionType(
        "Type2_ArtifactResolutionOptimization",
        "what is changed (by the probe, the patient's position or a setting of the device), and which problem of the "
        "picture that resolves. Do not name the problem.",
    ),
    QuestionType(
        "Type3_ProcedureContextPlanning",
        "at which step of the procedure the operator is, and what that step is for or what comes next. Do not describe "
        "the sequence of the clip.",
        events=2,
    ),
)
"""The three types of the paper (section 3.1), under the names of its files."""

_PROMPT = Path(__file__).with_name("project_question.txt.j2")

KIND = ProjectKind(
    "rexsonovqa",
    "Questions about clips of narrated videos",
    (
        TranscriptStage(),
        NormaliseStage(),
        EventsStage(),
        QuestionsStage(TYPES, _PROMPT),
        ScreenStage(),
        RepairStage(TYPES, _PROMPT),
    ),
    Path(__file__).with_name("project.yaml"),
)
