"""Knowledge of procedures as data: steps, what shows them, their precedence and its variants; one file each."""

from proctor.systems.workflow.faults import Flaw, flaws
from proctor.systems.workflow.model import Fact, Lasting, Step, Variant, Workflow
from proctor.systems.workflow.offering import SCENARIOS, Offer, built_in
from proctor.systems.workflow.reading import check_workflow, load_workflow

__all__ = [
    "SCENARIOS",
    "Fact",
    "Flaw",
    "Lasting",
    "Offer",
    "Step",
    "Variant",
    "Workflow",
    "built_in",
    "check_workflow",
    "flaws",
    "load_workflow",
]
