"""Items, answer formats, records and the small protocols that everything else speaks in."""

from proctor.core.clock import Stopwatch, aside, rebook
from proctor.core.errors import (
    ConfigurationError,
    InputError,
    MachineryError,
    NoVerdictError,
    ParseError,
    ProctorError,
    RefusalError,
    SystemFaultError,
)
from proctor.core.fingerprint import content_hash, fingerprint
from proctor.core.item import Excerpt, Image, Item, Media, Reference, Region, TagValue, VideoClip
from proctor.core.metric import ACCURACY, Metric
from proctor.core.protocols import (
    Benchmark,
    BenchmarkReader,
    Briefing,
    Frame,
    HasBriefing,
    HasOfficialFigures,
    HasTracks,
    NeedsReferences,
    OfficialFigure,
    RecordedAnswers,
    Scorer,
    System,
    View,
    VoteBook,
)
from proctor.core.published import PublishedRow, PublishedTable
from proctor.core.records import NO_ANSWER, Answer, FailedPolicy, Score, Status, Timing, Usage, Vote
from proctor.core.registry import Registry, UnknownNameError
from proctor.core.seeds import generator

__all__ = [
    "ACCURACY",
    "NO_ANSWER",
    "Answer",
    "Benchmark",
    "BenchmarkReader",
    "Briefing",
    "ConfigurationError",
    "Excerpt",
    "FailedPolicy",
    "Frame",
    "HasBriefing",
    "HasOfficialFigures",
    "HasTracks",
    "Image",
    "InputError",
    "Item",
    "MachineryError",
    "Media",
    "Metric",
    "NeedsReferences",
    "NoVerdictError",
    "OfficialFigure",
    "ParseError",
    "ProctorError",
    "PublishedRow",
    "PublishedTable",
    "RecordedAnswers",
    "Reference",
    "RefusalError",
    "Region",
    "Registry",
    "Score",
    "Scorer",
    "Status",
    "Stopwatch",
    "System",
    "SystemFaultError",
    "TagValue",
    "Timing",
    "UnknownNameError",
    "Usage",
    "VideoClip",
    "View",
    "Vote",
    "VoteBook",
    "aside",
    "content_hash",
    "fingerprint",
    "generator",
    "rebook",
]
