"""What methods that order key frames with a model share: the frames by label, replies, and the answer."""

from proctor.systems.keyframes.answering import MOST_RATIONALE, clipped, in_turn, order_answer
from proctor.systems.keyframes.asking import Asking
from proctor.systems.keyframes.labels import LabelReading, read_labels, spelled
from proctor.systems.keyframes.replies import LabelList, OrderReply, Reply
from proctor.systems.keyframes.shown import KeyFrames, key_frames, ordering_labels, orders_frames

__all__ = [
    "MOST_RATIONALE",
    "Asking",
    "KeyFrames",
    "LabelList",
    "LabelReading",
    "OrderReply",
    "Reply",
    "clipped",
    "in_turn",
    "key_frames",
    "order_answer",
    "ordering_labels",
    "orders_frames",
    "read_labels",
    "spelled",
]
