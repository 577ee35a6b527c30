"""A program of its own: runs a network in ONNX within bounds of time and memory, one picture after another.

It imports little, so that it starts at once; a network that never ends, or fills the memory, ends this process and no
other. Standard input: the length of the network (8 bytes) and the network, then pictures as the network
takes them. Standard output: one line of JSON for the network and one for each picture, followed by the numbers of it.
"""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

from proctor.core import limit_resources

MOST_SECONDS = 60
"""Of the processor, for one picture, or to load the network."""

MOST_BYTES = 8 * 2**30


def load(content: bytes) -> Any:
    """The session, or what was found instead as a text."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised, and said once
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except faults() as error:
        return str(error)


def faults() -> tuple[type[Exception], ...]:
    """What the runtime raises: classes of its own, without a common one, and Python's."""
    import onnxruntime

    kinds = vars(onnxruntime.capi.onnxruntime_pybind11_state).values()
    own = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
    return (*own, RuntimeError, ValueError, TypeError, MemoryError)


def told(out: BinaryIO, value: dict[str, object]) -> None:
    out.write(json.dumps(value).encode() + b"\n")


def main() -> None:
    """Loads the network and answers to each picture, until there is none."""
    source, out = sys.stdin.buffer, sys.stdout.buffer
    limit_resources(seconds=MOST_SECONDS, memory=MOST_BYTES)
    session = load(source.read(int.from_bytes(source.read(8))))
    if isinstance(session, str):
        told(out, {"found": session})
        return
    import numpy as np

    inputs, outputs = session.get_inputs(), session.get_outputs()
    told(
        out,
        {
            "inputs": [[one.name, one.type, list(one.shape)] for one in inputs],
            "outputs": [list(output.shape) for output in outputs],
        },
    )
    out.flush()
    while len(head := source.read(8)) == 8:
        high, wide = int.from_bytes(head[:4]), int.from_bytes(head[4:])
        limit_resources(seconds=MOST_SECONDS, memory=MOST_BYTES)
        pixels = np.frombuffer(source.read(3 * 4 * high * wide), dtype="<f4").reshape(1, 3, high, wide)
        try:
            found = [np.asarray(one, dtype="<f4") for one in session.run(None, {inputs[0].name: pixels})]
        except faults() as error:
            told(out, {"found": str(error)})
        else:
            told(out, {"shapes": [list(one.shape) for one in found]})
            for one in found:
                out.write(np.ascontiguousarray(one).tobytes())
        out.flush()


if __name__ == "__main__":
    main()
