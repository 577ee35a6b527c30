"""Several servers with one model: which one is asked, what becomes of one that is gone, and how many calls each gets."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from proctor.core import ConfigurationError, InfrastructureError, Stopwatch
from proctor.models import ModelClient, ModelSpec, Reply, near
from proctor.models.connections import Connections, Posted
from proctor.models.servers import ModelServers
from tests.support.raw_server import completion
from tests.support.virtual_time import run_in_virtual_time

URLS = ("http://a/v1", "http://b/v1", "http://c/v1")


class Cluster:
    """Servers in the test's own time. Each takes `second(outstanding)` seconds for a reply, and refuses (429) what is
    more than `most` at once; those in `gone` are not there, those in `silent` never reply."""

    def __init__(self, second: Callable[[int], float] = lambda _: 1.0, most: int = 10**9) -> None:
        self.second, self.most = second, most
        self.gone: set[str] = set()
        self.silent: set[str] = set()
        self.asked = Counter[str]()
        self.at_once = Counter[str]()
        self.peak = Counter[str]()

    async def post(self, url: str) -> Posted:
        """One call."""
        host = url.split("/")[2]
        self.asked[host] += 1
        if host in self.gone:
            raise ConnectionRefusedError("nobody there")
        self.at_once[host] += 1
        self.peak[host] = max(self.peak[host], self.at_once[host])
        try:
            if self.at_once[host] > self.most:
                return Posted(429, {}, json.dumps({"error": {"message": "slow down"}}).encode())
            await asyncio.sleep(1e9 if host in self.silent else self.second(self.at_once[host]))
            return Posted(200, {"content-type": "application/json"}, completion(f"from {host}"))
        finally:
            self.at_once[host] -= 1


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    async def post(_: Connections, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Posted:
        assert headers["Authorization"]
        assert body
        return await made.post(url)

    monkeypatch.setattr(Connections, "post", post)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-a-test")
    return made


def a_client(count: int = 3, **more: object) -> ModelClient:
    first, *others = URLS[:count]
    fields = {"name": "m", "base_url": first, "replicas": tuple(others), "retries": 0, "backoff_s": 0.001} | more
    return ModelClient(ModelSpec.model_validate(fields))


async def ask(client: ModelClient, video: str = "") -> Reply[None]:
    with near(video):
        return await client.ask(["Which?"])


def test_calls_go_where_the_fewest_are_under_way(cluster: Cluster) -> None:
    async def run() -> None:
        client = a_client()
        await asyncio.gather(*(ask(client) for _ in range(12)))

    run_in_virtual_time(run())
    assert cluster.peak == {"a": 4, "b": 4, "c": 4}


def test_a_video_stays_with_its_server_until_that_one_has_too_much_to_do(cluster: Cluster) -> None:
    async def run() -> tuple[list[set[str]], set[str]]:
        client = a_client()
        kept = []
        for video in range(12):
            replies = [await ask(client, f"video {video}") for _ in range(5)]
            kept.append({reply.text for reply in replies})
        crowd = await asyncio.gather(*(ask(client, "video 0") for _ in range(12)))
        return kept, {reply.text for reply in crowd}

    kept, crowd = run_in_virtual_time(run())
    assert all(len(positions) == 1 for positions in kept)
    assert len(set.union(*kept)) == 3  # the videos are spread
    assert len(crowd) > 1  # and one that all ask about is not left to one server:
    assert max(cluster.peak.values()) <= 1.25 * 12 / 3 + 1


def test_a_server_that_goes_moves_no_other_servers_videos(cluster: Cluster) -> None:
    async def slots() -> list[str]:
        client = a_client()
        return [(await ask(client, f"video {number}")).text for number in range(20)]

    before = run_in_virtual_time(slots())
    cluster.gone.add("b")
    after = run_in_virtual_time(slots())
    assert "from b" in before
    assert "from b" not in after
    assert all(then == now for then, now in zip(before, after, strict=True) if then != "from b")


def test_a_dead_server_is_taken_out_costs_no_try_and_comes_back(cluster: Cluster) -> None:
    async def run() -> None:
        client = a_client()
        cluster.gone.add("a")
        replies = await asyncio.gather(*(ask(client) for _ in range(24)))  # none of which may be tried again
        assert {reply.text for reply in replies} == {"from b", "from c"}
        asked = cluster.asked["a"]
        await ask(client)
        assert cluster.asked["a"] == asked  # it is left alone for a while
        cluster.gone.clear()
        await asyncio.sleep(70)
        await ask(client)
        await asyncio.gather(*(ask(client) for _ in range(12)))
        assert cluster.asked["a"] > asked

    run_in_virtual_time(run())


def test_a_server_that_was_down_gets_one_call_to_show_that_it_is_back(cluster: Cluster) -> None:
    async def run() -> None:
        client = a_client(2)
        cluster.gone.add("a")
        await asyncio.gather(*(ask(client) for _ in range(4)))
        asked = cluster.asked["a"]
        for _ in range(5):  # 1, 2, 4, 8 and 16 seconds
            await asyncio.sleep(70)
            await asyncio.gather(*(ask(client) for _ in range(8)))
        assert cluster.asked["a"] == asked + 5

    run_in_virtual_time(run())


def test_all_dead_is_an_infrastructure_error_with_an_address(cluster: Cluster) -> None:
    cluster.gone.update("abc")
    with pytest.raises(InfrastructureError, match=r"^m: Connection error at http://./v1 \(after 3 tries\)$"):
        run_in_virtual_time(ask(a_client(retries=2)))
    assert sum(cluster.asked.values()) == 5  # each server once, then two tries more


def test_a_server_that_never_replies_is_taken_out(cluster: Cluster) -> None:
    async def run() -> None:
        client = a_client(2, timeout_s=30.0, retries=5)
        cluster.silent.add("a")
        await asyncio.gather(*(ask(client) for _ in range(8)))
        asked = cluster.asked["a"]
        await asyncio.gather(*(ask(client) for _ in range(8)))
        assert cluster.asked["a"] <= asked + 1

    run_in_virtual_time(run())


def test_waiting_for_a_free_server_is_not_the_models_time(cluster: Cluster) -> None:
    async def run() -> list[tuple[float, float]]:
        client = a_client(2)

        async def one() -> tuple[float, float]:
            watch = Stopwatch()
            with watch.running():
                await ask(client)
            timing = watch.timing()
            return timing.model_s, timing.queue_s or 0.0

        return await asyncio.gather(*(one() for _ in range(32)))  # 8 at once each, to begin with

    found = run_in_virtual_time(run())
    assert {round(model) for model, _ in found} == {1}
    assert sorted(round(queue) for _, queue in found) == [0] * 16 + [1] * 16


async def drive(servers: ModelServers, cluster: Cluster, calls: int, at_once: int) -> float:
    """Calls without a client around them; the seconds that they took."""
    loop, numbers = asyncio.get_running_loop(), iter(range(calls))

    async def work() -> None:
        for _ in numbers:
            done = False
            while not done:
                async with servers.slot_of() as server:
                    begun = loop.time()
                    done = (await cluster.post(server.url)).status == 200
                    server.replied(loop.time()) if done else server.refused(loop.time(), begun)

    began = loop.time()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(work())
    return loop.time() - began


def test_concurrency_grows_to_what_a_server_can_do_and_not_beyond() -> None:
    cluster = Cluster(lambda outstanding: max(1.0, outstanding / 40))  # 40 replies a second at most, each
    servers = ModelServers(URLS[:2])
    seconds = run_in_virtual_time(drive(servers, cluster, 6000, 400))
    assert all(25 <= one.limit <= 95 for one in servers.all), [one.limit for one in servers.all]
    assert 6000 / seconds > 0.8 * 80
    assert max(cluster.peak.values()) < 130  # and not the 200 that wait


def test_a_server_that_says_too_many_gets_fewer() -> None:
    cluster = Cluster(most=20)
    servers = ModelServers(URLS[:1])
    seconds = run_in_virtual_time(drive(servers, cluster, 2000, 60))
    assert 8 <= servers.all[0].limit <= 24
    assert 2000 / seconds > 0.6 * 20
    assert cluster.asked["a"] < 2000 * 1.25  # a few refusals, not one for each call


def test_who_gives_up_waiting_leaves_the_turn_to_another() -> None:
    async def run() -> int:
        servers, done = ModelServers(URLS[:1]), 0
        servers.all[0].limit = 1.0
        free = asyncio.Event()

        async def call() -> None:
            nonlocal done
            async with servers.slot_of():
                await free.wait()
                done += 1

        tasks = [asyncio.create_task(call()) for _ in range(4)]
        await asyncio.sleep(1)
        tasks[1].cancel()
        free.set()
        await asyncio.sleep(0)  # the first one is done, and wakes the second, which is gone
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return done

    assert run_in_virtual_time(run()) == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"replicas": ("http://b/v1",)}, "expected to be different ones, found http://b/v1"),
        ({"base_url": "http://b/v1", "replicas": ("http://b/v1/",)}, "different ones, found http://b/v1"),
        ({"base_url": "http://b/v1", "replicas": ("http://u:p@c/v1",)}, "holds no credentials"),
    ],
)
def test_servers_are_different_ones_without_credentials(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ModelSpec.model_validate({"name": "m"} | fields)


def test_other_protocols_are_not_spread() -> None:
    spec = ModelSpec(name="anthropic:m", base_url="http://a/v1", replicas=("http://b/v1",))
    with pytest.raises(ConfigurationError, match="found several servers, expected one"):
        ModelClient(spec)
