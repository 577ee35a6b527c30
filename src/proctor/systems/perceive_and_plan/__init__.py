"""`perceive-and-plan`: what is seen and what follows from it are asked apart."""

from proctor.systems.perceive_and_plan.looking import Look, looks_at
from proctor.systems.perceive_and_plan.replies import CheckReply, Description, PlanReply
from proctor.systems.perceive_and_plan.system import Options, PerceiveAndPlan, build

__all__ = [
    "CheckReply",
    "Description",
    "Look",
    "Options",
    "PerceiveAndPlan",
    "PlanReply",
    "build",
    "looks_at",
]
