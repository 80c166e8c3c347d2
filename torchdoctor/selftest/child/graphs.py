"""A training step recorded once as a CUDA graph and replayed with new numbers: the same bits as without.

On a device without graphs the recorded part is called again instead, over the same fixed tensors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, run, unequal

ROUNDS = 6
SOURCE = "the same step without a graph"


def network(bench: Bench) -> Any:
    torch.manual_seed(bench.seed)
    made = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 16))
    return made.to(bench.device)


def step(net: Any, inputs: Any, targets: Any) -> Any:
    """A step of plain gradient descent; nothing in it depends on the host."""
    loss: Any = ((net(inputs) - targets) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for weight in net.parameters():
            weight -= 0.1 * weight.grad
            weight.grad.zero_()
    return loss.detach()


def recorded(bench: Bench, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
    """How to replay the work, and the tensor that then holds its result."""
    if bench.device.type != "cuda":
        held = work()

        def again() -> None:
            held.copy_(work())

        return again, held
    if not hasattr(torch.cuda, "CUDAGraph"):
        raise Lacking("this torch has no CUDA graphs")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    return graph.replay, result


def prepare(bench: Bench, work: Callable[[], Any]) -> None:
    """What libraries do at their first call must not be recorded."""
    if bench.device.type != "cuda":
        work()
        return
    side = cast("Any", torch.cuda.Stream)(bench.device)
    side.wait_stream(torch.cuda.current_stream(bench.device))
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream(bench.device).wait_stream(side)


def inference(bench: Bench) -> None:
    net = network(bench)
    given = bench.put(torch.randn(32, 64, generator=bench.numbers()))
    with torch.no_grad():
        prepare(bench, lambda: net(given))
        replay, result = recorded(bench, lambda: net(given))
        wrong, where = 0, ""
        for number in range(ROUNDS):
            given.copy_(torch.randn(32, 64, generator=bench.numbers(10 + number)))
            replay()
            bench.wait()
            got = bench.spoil(result) if number == 3 else result
            count, places = unequal(got, net(given))
            wrong += count
            where = where or (f"replay {number + 1}, {places}" if count else "")
    bench.exact("replayed inference", wrong, SOURCE, where)


def training(bench: Bench) -> None:
    net = network(bench)
    given = bench.put(torch.randn(32, 64, generator=bench.numbers(1)))
    wanted = bench.put(torch.randn(32, 16, generator=bench.numbers(2)))
    start = copy.deepcopy(net.state_dict())
    prepare(bench, lambda: step(net, given, wanted))
    replay, _ = recorded(bench, lambda: step(net, given, wanted))
    plain = network(bench)
    for one in (net, plain):  # both from the beginning, in place, as the graph knows the places
        one.load_state_dict(start)
        for weight in one.parameters():
            if weight.grad is not None:
                weight.grad.zero_()
    for number in range(ROUNDS):
        inputs = bench.put(torch.randn(32, 64, generator=bench.numbers(20 + number)))
        given.copy_(inputs)
        replay()
        step(plain, inputs, wanted)
    bench.wait()
    found = [
        unequal(bench.spoil(one.detach()), other.detach())
        for one, other in zip(net.parameters(), plain.parameters())  # noqa: B905 (strict is of Python 3.10)
    ]
    where = next((places for count, places in found if count), "")
    bench.exact(f"weights after {ROUNDS} replayed steps", sum(count for count, _ in found), SOURCE, where)


def check(bench: Bench) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    if bench.device.type == "cuda":
        torch.cuda.set_device(bench.device)
    bench.attempt("replayed inference", inference, bench)
    bench.attempt(f"weights after {ROUNDS} replayed steps", training, bench)


if __name__ == "__main__":
    run(check)
