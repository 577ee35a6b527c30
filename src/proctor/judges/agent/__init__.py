"""`agent-judge`: a model that looks up, measures and looks closer before it rates."""

from proctor.judges.agent.judge import AgentJudge, build

__all__ = ["AgentJudge", "build"]
