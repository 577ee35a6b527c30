"""The network: one that the test builds with YOLOv8-pose's layout, and the ways in which a file can be another one."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageDraw

from proctor.core import ConfigurationError, InputError
from proctor.models import Letterbox, network_process
from proctor.tasks.clinicalskillqa.keypoints import KEYPOINTS, PersonBox, PoseNetwork, open_pose, people_of
from tests.support.killed_child import in_a_fork

SIDE = 128
ROWS = 56

Floats = NDArray[np.float32]


def column(
    box: tuple[float, float, float, float], score: float, joints: dict[str, tuple[float, float, float]] | None = None
) -> Floats:
    """One candidate: centre and size of its box, its score, its joints (the others nowhere, not sure)."""
    numbers = [*box, score]
    for name in KEYPOINTS:
        numbers += (joints or {}).get(name, (0.0, 0.0, 0.0))
    return np.array(numbers, dtype=np.float32)


def written(file: Path, nodes: list[Any], constants: dict[str, Floats], **shapes: Any) -> Path:
    kind = shapes.get("kind", TensorProto.FLOAT)
    graph = helper.make_graph(
        nodes,
        "pose",
        [helper.make_tensor_value_info("images", kind, shapes.get("taken", [1, 3, SIDE, SIDE]))],
        [helper.make_tensor_value_info("output0", kind, shapes.get("given", [1, ROWS, None]))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    file.write_bytes(model.SerializeToString())
    return file


def constant(file: Path, columns: list[Floats], **shapes: Any) -> Path:
    """A network that always finds the same people (whatever it sees is taken times 0)."""
    people = np.stack(columns, axis=1)[None]
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
        helper.make_node("Add", ["people", "nothing"], ["output0"]),
    ]
    return written(file, nodes, {"people": people, "zero": np.array(0, np.float32)}, **shapes)


def seeker(file: Path) -> Path:
    """A network that finds the centre of what is red: nose and box stand there, and the score is how red it is.

    From pixels alone, so that what it says tells how the picture was put into the input."""
    across, down = np.meshgrid(np.arange(SIDE) + 0.5, np.arange(SIDE) + 0.5)
    into = np.zeros((3, ROWS, 1), np.float32)  # how much of x, y and 1 is in each row
    into[0, 0], into[1, 1] = 1, 1
    into[0, 5], into[1, 6] = 1, 1
    offset = column((0, 0, 20, 10), 0.8, {"nose": (0, 0, 0.9)})[:, None]
    nodes = [
        helper.make_node("Conv", ["images", "red_less_green"], ["difference"], kernel_shape=[1, 1]),
        helper.make_node("Sub", ["difference", "half"], ["above"]),
        helper.make_node("Relu", ["above"], ["redness"]),
        helper.make_node("ReduceSum", ["redness"], ["total"], keepdims=0),
        helper.make_node("Mul", ["redness", "grid"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "last"], ["sums"], keepdims=0),
        helper.make_node("Div", ["sums", "total"], ["centre"]),
        helper.make_node("MatMul", ["centre", "into"], ["placed"]),
        helper.make_node("Add", ["placed", "offset"], ["people"]),
        helper.make_node("Unsqueeze", ["people", "first"], ["output0"]),
    ]
    constants: dict[str, Any] = {
        "red_less_green": np.array([1, -1, 0], np.float32).reshape(1, 3, 1, 1),
        "half": np.array(0.3, np.float32),
        "grid": np.stack([across, down, np.ones_like(down)])[None].astype(np.float32),
        "last": np.array([0, 2, 3], np.int64),
        "into": into[:, :, 0],
        "offset": offset[:, 0],
        "first": np.array([0, 2], np.int64),
    }
    return written(file, nodes, constants)


def jpeg(width: int, height: int, dot: tuple[float, float] | None = None, radius: float = 12) -> bytes:
    picture = Image.new("RGB", (width, height), (60, 70, 90))
    if dot is not None:
        x, y = dot
        ImageDraw.Draw(picture).ellipse((x - radius, y - radius, x + radius, y + radius), fill=(250, 20, 20))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=95)
    return out.getvalue()


@pytest.mark.parametrize(
    ("size", "dot"),
    [
        ((128, 128), (40, 90)),
        ((640, 360), (500, 60)),
        ((360, 640), (60, 600)),
        ((301, 199), (33, 150)),
        ((64, 20), (50, 9)),
    ],
)
def test_what_the_network_sees_is_told_in_the_pictures_own_pixels(
    tmp_path: Path, size: tuple[int, int], dot: tuple[float, float]
) -> None:
    """The network reads the dot's position from its input, so both ways through the letterbox must agree."""
    radius = max(size) / 40
    pose = PoseNetwork(seeker(tmp_path / "seeker.onnx")).look(jpeg(*size, dot, radius))
    assert (pose.width, pose.height) == size
    (person,) = pose.people
    nose = person.point("nose")
    assert nose is not None
    pixel = max(size) / SIDE
    assert abs(nose.x - dot[0]) < pixel
    assert abs(nose.y - dot[1]) < pixel
    assert person.box.right - person.box.left == pytest.approx(20 * pixel, rel=1e-4)
    assert person.box.bottom - person.box.top == pytest.approx(10 * pixel, rel=1e-4)
    assert person.point("left_hip") is None


def test_known_people_come_back_the_surest_first_without_doubles(tmp_path: Path) -> None:
    wrist = {"left_wrist": (64.0, 96.0, 0.7), "left_elbow": (60.0, 90.0, 0.2)}
    file = constant(
        tmp_path / "w.onnx",
        [
            column((40, 64, 20, 40), 0.6),
            column((41, 64, 20, 40), 0.55),  # the same person again
            column((90, 64, 20, 40), 0.9, wrist),
            column((64, 64, 50, 50), 0.2),  # below the least score
        ],
    )
    pose = PoseNetwork(file).look(jpeg(256, 128))  # scaled by a half, 32 rows of grey above
    assert [round(person.score, 3) for person in pose.people] == [0.9, 0.6]
    first, second = pose.people
    assert first.box == PersonBox(160, 24, 200, 104)
    assert second.box == PersonBox(60, 24, 100, 104)
    found = first.point("left_wrist")
    assert found is not None
    assert (found.x, found.y) == (128, 128)
    assert first.point("left_elbow") is None  # there, and not sure
    assert first.keypoints["left_elbow"].confidence == pytest.approx(0.2)
    nobody = constant(tmp_path / "none.onnx", [column((40, 64, 20, 40), 0.1)])
    assert PoseNetwork(nobody).look(jpeg(64, 64)).people == ()


def overlap(a: PersonBox, b: PersonBox) -> float:
    wide = min(a.right, b.right) - max(a.left, b.left)
    high = min(a.bottom, b.bottom) - max(a.top, b.top)
    both = max(0.0, wide) * max(0.0, high)
    return both / (_area(a) + _area(b) - both)


def _area(box: PersonBox) -> float:
    return (box.right - box.left) * (box.bottom - box.top)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_of_overlapping_boxes_the_surest_is_kept(seed: int, count: int) -> None:
    """Against the greedy rule written down again: by falling score, each that overlaps no kept one too much."""
    draw = np.random.default_rng(seed)
    columns = [
        column((*draw.integers(40, 60, 2), *draw.integers(10, 60, 2)), float(score))
        for score in draw.permutation(np.linspace(0.3, 0.9, count))
    ]
    box = Letterbox.of((100, 100), (100, 100))
    alone = [people_of(one[:, None], box)[0] for one in columns]
    kept: list[Any] = []
    for person in sorted(alone, key=lambda one: -one.score):
        if all(overlap(person.box, other.box) <= 0.7 for other in kept):
            kept.append(person)
    assert [one.score for one in people_of(np.stack(columns, axis=1), box)] == [one.score for one in kept]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(32, 1280), st.integers(32, 1280))
def test_the_letterbox_holds_the_picture_and_is_undone(w: int, h: int, wide: int, high: int) -> None:
    box = Letterbox.of((w, h), (wide, high))
    assert box.left >= 0
    assert box.top >= 0
    assert round(w * box.scale) <= wide
    assert round(h * box.scale) <= high
    for x, y in ((0.0, 0.0), (w / 3, h / 2), (float(w), float(h))):
        assert box.undone(x * box.scale + box.left, y * box.scale + box.top) == pytest.approx((x, y), abs=1e-6)


def test_sides_that_the_file_leaves_open_are_the_usual_ones(tmp_path: Path) -> None:
    nose = {"nose": (320.0, 320.0, 0.9)}
    file = constant(
        tmp_path / "w.onnx",
        [column((320, 320, 64, 64), 0.9, nose)],
        taken=["batch", 3, "height", "width"],
        given=["batch", ROWS, "anchors"],
    )
    found = PoseNetwork(file).look(jpeg(1280, 720)).people[0].point("nose")
    assert found is not None
    assert (found.x, found.y) == (640, 360)


def test_settings_name_the_weights_by_hash(tmp_path: Path) -> None:
    one = PoseNetwork(constant(tmp_path / "a.onnx", [column((1, 1, 1, 1), 0.5)])).settings
    other = PoseNetwork(constant(tmp_path / "b.onnx", [column((2, 1, 1, 1), 0.5)])).settings
    assert one["pose"] == "network"
    assert one["pose_sha256"] != other["pose_sha256"]
    assert one["least_score"] == 0.25


# ── faults ──


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that runs the network, with a second of the processor instead of a minute."""
    source = Path(network_process.__file__).read_text()
    assert "\nMOST_SECONDS = 60\n" in source
    program = tmp_path / "program.py"
    program.write_text(source.replace("\nMOST_SECONDS = 60\n", "\nMOST_SECONDS = 1\n"))
    monkeypatch.setattr(network_process, "__file__", str(program))
    monkeypatch.setattr(network_process, "MOST_SECONDS", 1)


def said(file: Path, **more: Any) -> str:
    with pytest.raises((InputError, ConfigurationError)) as caught:
        open_pose(file)
    return str(caught.value).removeprefix(f"{file}: ")


def test_files_that_are_no_pose_network(tmp_path: Path) -> None:
    file = tmp_path / "w.onnx"
    assert said(file) == "found No such file or directory, expected the weights of a network"
    for content in (b"", b"not a network at all", b"\x00" * 64):
        file.write_bytes(content)
        assert said(file).startswith("found no network that can be run (")
        assert said(file).endswith("expected an exported ONNX network")
    other = tmp_path / "w.pt"
    assert said(other) == "found the extension '.pt', expected .onnx (a network) or .json (keypoints)"


def test_other_layouts_are_named(tmp_path: Path) -> None:
    file = tmp_path / "w.onnx"
    expected = "expected [1, 56, candidates]: box, score of one class, 17 joints (YOLOv8-pose)"
    detector = np.zeros(84, np.float32)
    constant(file, [detector], given=[1, 84, 1])
    assert said(file) == f"output: found [1, 84, 1], {expected}"
    nodes = [helper.make_node("Identity", ["images"], ["output0"])]
    written(file, nodes, {}, given=[1, 3, SIDE, SIDE])
    assert said(file) == f"output: found [1, 3, {SIDE}, {SIDE}], {expected}"
    constant(file, [column((1, 1, 1, 1), 0.5)], taken=[1, 1, SIDE, SIDE])
    assert said(file) == (
        f"input: found tensor(float) [1, 1, {SIDE}, {SIDE}], expected one tensor(float) [1, 3, height, width] (export "
        "without half)"
    )
    constant(file, [column((1, 1, 1, 1), 0.5)], taken=[4, 3, SIDE, SIDE])
    assert said(file).startswith(f"input: found tensor(float) [4, 3, {SIDE}, {SIDE}], expected one")
    written(file, nodes, {}, kind=TensorProto.FLOAT16, given=[1, 3, SIDE, SIDE])
    assert said(file).startswith(f"input: found tensor(float16) [1, 3, {SIDE}, {SIDE}], expected one")


def test_an_output_that_is_only_found_out_when_it_comes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Add", ["people", "mean"], ["moved"]),
        helper.make_node("Greater", ["ones", "mean"], ["chosen"]),  # how many depends on the picture
        helper.make_node("Compress", ["moved", "chosen"], ["output0"], axis=1),
    ]
    constants = {"people": np.zeros((1, 84, 1), np.float32), "ones": np.full(84, 2, np.float32)}
    file = written(tmp_path / "w.onnx", nodes, constants, given=[1, "rows", "anchors"])
    with pytest.raises(InputError) as caught:
        PoseNetwork(file).look(jpeg(64, 64))
    assert str(caught.value) == f"{file}: output: found [1, 84, 1], expected [1, 56, candidates]"


def test_a_picture_that_can_not_be_read(tmp_path: Path) -> None:
    network = PoseNetwork(constant(tmp_path / "w.onnx", [column((1, 1, 1, 1), 0.5)]))
    with pytest.raises(InputError) as caught:
        network.look(b"no picture", "i001/A")
    assert str(caught.value) == "i001/A: found an unreadable image (UnidentifiedImageError), expected an image"


def endless(file: Path) -> Path:
    """A network whose answer is the last of as many rounds as a number can count."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["still"]), helper.make_node("Add", ["sofar", "one"], ["more"])],
        "body",
        [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sofar", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("more", TensorProto.FLOAT, []),
        ],
        [numpy_helper.from_array(np.array(1, np.float32), "one")],
    )
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Loop", ["rounds", "true", "mean"], ["last"], body=body),
        helper.make_node("Add", ["people", "last"], ["output0"]),
    ]
    constants: dict[str, Any] = {
        "rounds": np.array(2**62, np.int64),
        "true": np.array(True),
        "people": np.zeros((1, ROWS, 1), np.float32),
    }
    return written(file, nodes, constants)


def filling(file: Path) -> Path:
    """A network that makes 40 GB of zeros of a picture."""
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Cast", ["mean"], ["none"], to=TensorProto.INT64),
        helper.make_node("Add", ["none", "many"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("ReduceMax", ["zeros"], ["largest"], keepdims=0),
        helper.make_node("Add", ["people", "largest"], ["output0"]),
    ]
    constants: dict[str, Any] = {
        "many": np.array([10_000, 1_000_000], np.int64),
        "people": np.zeros((1, ROWS, 1), np.float32),
    }
    return written(file, nodes, constants)


LIMITS = "a network that takes more than 1 s of the processor or 8 GB, or ends its process"


def test_a_network_without_end_is_stopped(tmp_path: Path, limited: None) -> None:
    file = endless(tmp_path / "w.onnx")
    network = PoseNetwork(file)
    for _ in range(2):  # it stays stopped
        with pytest.raises(InputError) as caught:
            network.look(jpeg(64, 64))
        assert str(caught.value) == f"{file}: found {LIMITS}, expected an exported ONNX network"


def test_a_network_that_waits_and_takes_no_time_of_the_processor_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, looks = Path(network_process.__file__).read_text(), "            found = ["
    assert looks in source
    program = tmp_path / "program.py"
    program.write_text(source.replace(looks, f"            __import__('time').sleep(3600)\n{looks}"))
    monkeypatch.setattr(network_process, "__file__", str(program))
    network = PoseNetwork(seeker(tmp_path / "w.onnx"))
    monkeypatch.setattr("proctor.models.vision._PATIENCE_S", 0.05)
    with pytest.raises(InputError, match="found a network that takes more than 60 s of the processor"):
        network.look(jpeg(64, 64))


def test_a_fork_that_lets_go_of_a_network_leaves_it_to_its_parent(tmp_path: Path) -> None:
    held = [PoseNetwork(seeker(tmp_path / "w.onnx"))]
    assert in_a_fork(held.clear) == 0
    assert held[0].look(jpeg(64, 64)).width == 64


def test_a_network_that_fills_the_memory_is_stopped(tmp_path: Path) -> None:
    network = PoseNetwork(filling(tmp_path / "w.onnx"))
    with pytest.raises(InputError, match=r"found a network that (?:fails on a picture|takes more than)") as caught:
        network.look(jpeg(64, 64))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sides", [(100_000, 100_000), (SIDE, 2**40), (4097, SIDE)])
def test_an_input_of_more_pixels_than_any_network_has(tmp_path: Path, sides: tuple[int, int]) -> None:
    file = constant(tmp_path / "w.onnx", [column((1, 1, 1, 1), 0.5)], taken=[1, 3, *sides])
    assert said(file) == (f"input: found pictures of {sides[1]:,} × {sides[0]:,}, expected at most 4,096 pixels a side")


def test_pictures_are_looked_at_one_after_another_whoever_asks(tmp_path: Path) -> None:
    network = PoseNetwork(seeker(tmp_path / "seeker.onnx"))
    dots = [(float(20 + 5 * k), float(100 - 5 * k)) for k in range(12)]
    with ThreadPoolExecutor(4) as pool:
        poses = list(pool.map(lambda dot: network.look(jpeg(128, 128, dot)), dots))
    for dot, pose in zip(dots, poses, strict=True):
        nose = pose.people[0].point("nose")
        assert nose is not None
        assert (abs(nose.x - dot[0]) < 1, abs(nose.y - dot[1]) < 1) == (True, True)


def test_without_onnxruntime_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = constant(tmp_path / "w.onnx", [column((1, 1, 1, 1), 0.5)])
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert said(file) == (
        "pose: onnxruntime is not installed: pip install 'proctor-eval[pose]', or give a file of keypoints"
    )
