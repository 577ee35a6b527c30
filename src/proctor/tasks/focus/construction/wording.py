"""How FOCUS asks, and what each rule of questions tests: texts, capabilities, clinical relevance."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pydantic import JsonValue

from proctor.construction.tracks.rules import CandidateQuestion, QuestionTemplates, orders
from proctor.construction.tracks.vocabulary import with_article
from proctor.core.formats import PatternFormat, option_letters
from proctor.tasks.focus.native import time_tolerance

_MOST = 20  # a larger number of events is a matter of patience


@dataclass(frozen=True)
class QuestionWording:
    """What a rule asks and tests: its text, the primary capability and others of FOCUS's taxonomy, whether the
    answer matters at the operating table, whether it is about insertions (so not about what arises in the body),
    and whether it is about retrieval (so that a specimen in a bag counts as taken out)."""

    text: str
    primary: str
    secondaries: tuple[str, ...] = ()
    clinical: bool = False
    inserted: bool = True
    retrieval: bool = False


_BAGGED = " (What lies in a specimen bag counts as taken out.)"
_MAY_STAY = "(Clips, meshes, drains and absorbable hemostatic agents may stay.)"
_THE_ONE = "the {a} that was brought into the patient at {time}"
_NUMBERED = "Number the {many} in the order in which they were brought into the patient. "

ASKED = MappingProxyType(
    {
        "seen": QuestionWording(
            "Has {an_a} been brought into the patient so far?", "object_identification", ("fo_interaction_recognition",)
        ),
        "seen-at": QuestionWording(
            "Is {an_a} in view at {time}?", "object_identification", ("temporal_localization",), inserted=False
        ),
        "kinds-seen": QuestionWording(
            "Which kinds of foreign object have been brought into the patient so far?",
            "object_aggregation",
            ("object_identification",),
            clinical=True,
        ),
        "kinds-seen-at": QuestionWording(
            "Which kinds of foreign object are in view at {time}?",
            "object_identification",
            ("object_aggregation",),
            inserted=False,
        ),
        "never": QuestionWording(
            "Which of these has not been brought into the patient so far?",
            "object_identification",
            ("object_aggregation",),
        ),
        "how-many": QuestionWording(
            "How many times has {an_a} been brought into the patient so far?",
            "event_aggregation",
            ("object_identification",),
            clinical=True,
        ),
        "how-many-at": QuestionWording(
            "How many foreign objects are in view at {time}?", "object_aggregation", inserted=False
        ),
        "plural": QuestionWording(
            "Which of these has been brought into the patient more than once so far?",
            "event_aggregation",
            ("object_identification",),
        ),
        "how-many-out": QuestionWording(
            "How many foreign objects have been taken out of the patient so far?",
            "event_aggregation",
            ("fo_interaction_recognition",),
            clinical=True,
            inserted=False,
        ),
        "when-seen": QuestionWording(
            "When was {an_a} first brought into the patient?", "temporal_localization", ("fo_interaction_recognition",)
        ),
        "when-each": QuestionWording(
            "At which times was {an_a} brought into the patient?", "temporal_localization", ("event_aggregation",)
        ),
        "when-out": QuestionWording(
            "When was {an_a} taken out of the patient?",
            "temporal_localization",
            ("fo_interaction_recognition",),
            clinical=True,
            inserted=False,
            retrieval=True,
        ),
        "before": QuestionWording(
            "Was {an_a} brought into the patient before the first {b} was?",
            "temporal_ordering",
            ("object_identification",),
        ),
        "first-seen": QuestionWording(
            "Which of these was brought into the patient first?", "temporal_ordering", ("object_identification",)
        ),
        "order-seen": QuestionWording(
            "In which order were these first brought into the patient?",
            "temporal_ordering",
            ("fo_interaction_recognition",),
        ),
        "order-out": QuestionWording(
            "In which order were these first taken out of the patient?",
            "temporal_ordering",
            ("fo_interaction_recognition",),
            inserted=False,
        ),
        "out": QuestionWording(
            "Has {an_a} been taken out of the patient so far?",
            "fo_interaction_recognition",
            ("object_identification",),
            clinical=True,
            inserted=False,
            retrieval=True,
        ),
        "kinds-out": QuestionWording(
            "Which kinds of foreign object have been taken out of the patient so far?",
            "object_aggregation",
            ("fo_interaction_recognition",),
            clinical=True,
            inserted=False,
        ),
        "first-out": QuestionWording(
            "Which of these was taken out of the patient first?",
            "temporal_ordering",
            ("object_identification",),
            inserted=False,
        ),
        "where": QuestionWording(
            "In which part of the picture is the {a} at {time}?",
            "spatial_localization_camera",
            ("object_identification",),
            inserted=False,
        ),
        "cell": QuestionWording(
            "Divide the picture into three rows and three columns, counted from the top and from the left. In "
            "which row and which column (row/column) is the middle of the {a} at {time}?",
            "spatial_localization_camera",
            ("object_identification",),
            inserted=False,
        ),
        "last-seen": QuestionWording(
            "When was {an_a} last in view?",
            "temporal_localization",
            ("object_identification",),
            clinical=True,
            inserted=False,
        ),
        "when-nth": QuestionWording(
            "When was {an_a} brought into the patient for the {nth} time?",
            "temporal_localization",
            ("event_aggregation",),
        ),
        "stay": QuestionWording(
            "How long did the {a} stay in the patient, as hh:mm:ss?", "duration_estimation", ("temporal_localization",)
        ),
        "view-share": QuestionWording(
            "In what percentage of the video so far is at least one {a} in view?",
            "duration_estimation",
            ("object_aggregation",),
            inserted=False,
        ),
        "remain": QuestionWording(
            "How many {many} are still inside the patient?",
            "object_aggregation",
            ("event_aggregation", "multi_step_reasoning"),
            clinical=True,
            inserted=False,
            retrieval=True,
        ),
        "remain-all": QuestionWording(
            "How many foreign objects are still inside the patient?",
            "object_aggregation",
            ("event_aggregation", "multi_step_reasoning"),
            clinical=True,
            inserted=False,
        ),
        "kinds-left": QuestionWording(
            "Of which kinds of foreign object is at least one still inside the patient?",
            "object_aggregation",
            ("multi_step_reasoning",),
            clinical=True,
            inserted=False,
        ),
        "out-share": QuestionWording(
            "What percentage of the foreign objects that must not stay in the patient has been taken out so far? "
            + _MAY_STAY,
            "event_aggregation",
            ("multi_step_reasoning",),
            clinical=True,
            inserted=False,
        ),
        "all-out": QuestionWording(
            "Have all {many} that were in the patient been taken out?",
            "multi_step_reasoning",
            ("object_aggregation", "event_aggregation"),
            clinical=True,
            inserted=False,
            retrieval=True,
        ),
        "nothing-left": QuestionWording(
            "Has everything that must not stay in the patient been taken out? " + _MAY_STAY,
            "multi_step_reasoning",
            ("functional_reasoning", "object_aggregation"),
            clinical=True,
            inserted=False,
        ),
        "which-first-out": QuestionWording(
            _NUMBERED + "Which number was taken out first?", "instance_matching", ("temporal_ordering",)
        ),
        "which-at": QuestionWording(
            _NUMBERED + "Which number is in view at {time}?", "instance_matching", ("temporal_ordering",)
        ),
        "same": QuestionWording(
            "Is the {a} in view at {time} the same one as the {a} in view at {later}?",
            "instance_matching",
            ("temporal_localization",),
        ),
        "one-out": QuestionWording(
            f"Has {_THE_ONE} been taken out so far?",
            "fo_interaction_recognition",
            ("instance_matching",),
            clinical=True,
        ),
        "one-when-out": QuestionWording(
            f"When was {_THE_ONE} taken out?",
            "temporal_localization",
            ("instance_matching", "fo_interaction_recognition"),
            clinical=True,
        ),
        "one-stay": QuestionWording(
            f"How long did {_THE_ONE} stay inside, as hh:mm:ss?",
            "duration_estimation",
            ("instance_matching", "temporal_localization"),
        ),
        "one-where": QuestionWording(
            f"In which part of the picture, at {{later}}, is {_THE_ONE}?",
            "instance_matching",
            ("spatial_localization_camera",),
            clinical=True,
        ),
        "last-place": QuestionWording(
            "{one} is still inside the patient and out of view. In which part of the picture was it last seen?",
            "spatial_localization_camera",
            ("temporal_localization", "multi_step_reasoning"),
            clinical=True,
            inserted=False,
        ),
        "happens": QuestionWording(
            "What happens to {many} at {time}?", "fo_interaction_recognition", ("temporal_localization",)
        ),
        "which-in": QuestionWording(
            "Which of these is brought into the patient at {time}?",
            "fo_interaction_recognition",
            ("object_identification",),
        ),
        "which-away": QuestionWording(
            "Which of these is taken out of the patient at {time}?",
            "fo_interaction_recognition",
            ("object_identification",),
            inserted=False,
        ),
        "must-leave": QuestionWording(
            "Which kinds of foreign object that are inside the patient must be taken out before the operation ends?",
            "functional_reasoning",
            ("object_aggregation", "multi_step_reasoning"),
            clinical=True,
            inserted=False,
        ),
        "left-behind": QuestionWording(
            "If the operation ended now, how many foreign objects would be left behind that must not stay? "
            + _MAY_STAY,
            "causal_consequence_reasoning",
            ("object_aggregation", "multi_step_reasoning"),
            clinical=True,
            inserted=False,
        ),
        "property": QuestionWording(
            "What is the {attribute} of the {a} at {time}?", "object_attributes", inserted=False
        ),
        "is-property": QuestionWording("Is the {a} {attribute} at {time}?", "object_attributes", inserted=False),
        "site": QuestionWording(
            "Where in the body is the {a} at {time}?", "spatial_localization_situs", clinical=True, inserted=False
        ),
        "one-site": QuestionWording(
            f"Where in the body was {_THE_ONE} last seen?",
            "spatial_localization_situs",
            ("instance_matching", "temporal_localization"),
            clinical=True,
        ),
        "last-site": QuestionWording(
            "{one} is still inside the patient and out of view. Where in the body was it last seen?",
            "spatial_localization_situs",
            ("temporal_localization", "multi_step_reasoning"),
            clinical=True,
            inserted=False,
        ),
        "use": QuestionWording("What is the {a} used for at {time}?", "fo_usage_purpose", inserted=False),
        "action": QuestionWording("What is done with the {a} at {time}?", "fo_interaction_recognition", inserted=False),
        "holder": QuestionWording("What holds the {a} at {time}?", "fo_interaction_recognition", inserted=False),
    }
)
"""Every rule by its name: those that any annotated video is asked by, and those of FOCUS alone."""


@dataclass(frozen=True)
class FocusDialect(QuestionTemplates):
    """FOCUS has no format for an order, so it is asked for as a pattern of letters; times are whole seconds.
    `arising` are the classes that nobody inserts, since they come loose in the body; `shown_s` is how long what is
    shown is, where that is not all up to the time of asking."""

    arising: frozenset[str] = frozenset()
    shown_s: float | None = None

    def text(self, rule: str, a: str = "", b: str = "", **more: str) -> str:
        """The question of a rule (`{one}` begins it with its article); of what arises in the body it says what counts as taken out."""
        bagged = _BAGGED if a in self.arising and ASKED[rule].retrieval else ""
        if a:
            more["one"] = with_article(self.phrase(a)).capitalize()
        return super().text(rule, a, b, **more) + bagged

    def tolerance(self, end: float) -> float:
        """As the toolkit writes it."""
        return time_tolerance(end if self.shown_s is None else self.shown_s)

    def moments(self, times: list[float]) -> list[JsonValue]:
        """Times as hh:mm:ss can say them."""
        return [float(int(time + 0.5)) for time in times]

    def order(self, question: str, times: dict[str, float]) -> Iterator[CandidateQuestion]:
        """Three or four classes with letters in alphabetical order; the answer is their letters in order of time."""
        for some in orders(times):
            listed = sorted(some)
            letters = dict(zip(listed, option_letters(len(listed)), strict=True))
            named = ", ".join(f"{letter}: {self.phrase(name)}" for name, letter in letters.items())
            answer = "-".join(letters[name] for name in sorted(some, key=lambda name: times[name]))
            last = letters[listed[-1]]
            form = PatternFormat(pattern=rf"[A-{last}](-[A-{last}]){{{len(some) - 1}}}")
            text = f"{question} {named}. Join the letters with hyphens."
            yield CandidateQuestion(text, form, answer, answer, "+".join(listed), choices=tuple(listed))


def focus_words(
    names: Sequence[str],
    arising: Collection[str] = (),
    attributes: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType({}),
) -> FocusDialect:
    """FOCUS's way of asking about these classes, some of which come loose in the body, and their attributes."""
    phrases = {name: name.casefold() for name in names}
    texts = {rule: asked.text for rule, asked in ASKED.items()}
    return FocusDialect(
        names=tuple(sorted(names)),
        phrases=phrases,
        texts=texts,
        most=_MOST,
        attributes=attributes,
        arising=frozenset(arising),
    )
