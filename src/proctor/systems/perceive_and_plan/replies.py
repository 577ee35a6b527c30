"""The forms of the three kinds of calls, and what is kept of a description."""

from __future__ import annotations

from pydantic import BaseModel, Field, JsonValue

from proctor.systems.keyframes import LabelList, OrderReply, Reply, clipped

__all__ = ["CheckReply", "Description", "PlanReply", "Problem", "Step"]

_MOST = 240
_PARTS = {
    "action": "doing",
    "people": "people",
    "head_airway": "head and airway",
    "chest_hands": "chest and hands",
    "devices": "devices",
    "anchor": "places it in time",
    "unclear": "unclear",
}


class Description(Reply):
    """What one picture shows, each part in at most 25 words; empty where nothing of it can be seen."""

    people: str = Field(default="", description="Who is where, standing or kneeling, facing what.")
    head_airway: str = Field(default="", description="At the patient's head: hands, mask, tilt of the head.")
    chest_hands: str = Field(default="", description="On the patient's chest: hands, clothes, pads.")
    devices: str = Field(
        default="", description="Devices and where they are: defibrillator, pads, bag, mask."
    )
    action: str = Field(description="What is being done at this moment.")
    anchor: str = Field(default="", description="What in the picture tells how far the procedure has come.")
    unclear: str = Field(default="", description="What can't be made out.")

    def parts(self) -> dict[str, str]:
        """What was said, part by part, each cut to 240 characters; empty parts are left out."""
        said = {told: clipped(str(getattr(self, name)), _MOST) for name, told in _PARTS.items()}
        return {told: text for told, text in said.items() if text}


class Step(BaseModel):
    """One picture of the plan."""

    picture: str = Field(default="", description="The label.")
    step: str = Field(default="", description="The step of the procedure.")
    anchor: str = Field(default="", description="What was seen that puts it there.")

    def told(self) -> dict[str, JsonValue]:
        """For the record."""
        return {
            "picture": clipped(self.picture, 40),
            "step": clipped(self.step),
            "anchor": clipped(self.anchor),
        }


class PlanReply(OrderReply):
    """The plan: which step each picture shows, why the order is this one, and the order."""

    steps: list[Step] = Field(
        default_factory=list, description="The pictures in their order, with step and anchor."
    )


class Problem(BaseModel):
    """One place where the plan breaks a rule or contradicts a description."""

    rule: str = Field(default="", description="The rule that is broken.")
    pictures: LabelList = Field(default_factory=list, description="The labels of the pictures.")
    evidence: str = Field(default="", description="What was seen that shows it.")

    def told(self) -> dict[str, JsonValue]:
        """For the record."""
        pictures: list[JsonValue] = [clipped(one, 40) for one in self.pictures[:12]]
        return {"rule": clipped(self.rule), "pictures": pictures, "evidence": clipped(self.evidence)}


class CheckReply(Reply):
    """Whether the plan holds; where it does not, the order that does."""

    problems: list[Problem] = Field(
        default_factory=list, description="What is wrong with the plan; empty if nothing."
    )
    revise: bool = Field(description="Whether the order must change.")
    rationale: str = Field(
        default="", description="Why the changed order is right, picture by picture; else empty."
    )
    order: LabelList = Field(default_factory=list, description="The changed order, all labels; else empty.")
