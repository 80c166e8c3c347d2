"""What an error of torch.compile wraps, from torch 2.0 to 2.13."""

from __future__ import annotations

import pytest

from torchdoctor.extract import torch_compile
from torchdoctor.model import Event, EventKind, FactValue, State, Transcript


def facts(name: str | None, text: str) -> dict[str, FactValue]:
    event = Event(0, EventKind.EXCEPTION, text, "job.log", 1, 1, type=name)
    found = list(torch_compile.extract(event, Transcript(("job.log",), (event,))))
    assert {fact.name for fact in found} <= set(torch_compile.FACTS)
    return {fact.name: fact.value for fact in found if fact.state is State.KNOWN}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "torch._dynamo.exc.BackendCompilerFailed",
            "debug_wrapper raised RuntimeError: Found GTX 1080 which is too old",
            {
                "stage": "backend",
                "inner_type": "RuntimeError",
                "inner_message": "Found GTX 1080 which is too old",
            },
        ),
        (
            "torch._dynamo.exc.BackendCompilerFailed",
            "backend='inductor' raised:\nAssertionError: \n\nSet TORCH_LOGS",
            {
                "stage": "backend",
                "backend": "inductor",
                "inner_type": "AssertionError",
                "inner_internal": True,
            },
        ),
        (
            "torch._inductor.exc.InductorError",
            "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx",
            {"backend": "inductor", "inner_type": "InvalidCxxCompiler", "inner_internal": True},
        ),
        (
            "torch._dynamo.exc.TorchRuntimeError",
            "Dynamo failed to run FX node with fake tensors: call_function add(*(FakeTensor(..., "
            "size=(4, 4)), "
            "FakeTensor(..., size=(10, 7))), **{}): got RuntimeError('The size of tensor a (4) must match')",
            {"stage": "fake-tensor", "inner_type": "RuntimeError"},
        ),
        (
            "torch._dynamo.exc.TorchRuntimeError",
            "Failed running call_module self_fc(*(FakeTensor(..., size=(1, 10)),), **{}):\n"
            "Please convert all Tensors to FakeTensors first",
            {
                "stage": "fake-tensor",
                "inner_message": "Please convert all Tensors to FakeTensors first",
                "inner_internal": True,
            },
        ),
        (
            "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode",
            "Could not guard on data-dependent expression Eq(u0, 0)",
            {"stage": "fake-tensor", "inner_internal": True},
        ),
        (
            "torch._dynamo.exc.InternalTorchDynamoError",
            "RuntimeError: Compiler: cl is not found.",
            {"stage": "dynamo", "inner_type": "RuntimeError", "inner_message": "Compiler: cl is not found."},
        ),
    ],
)
def test_wrapped_error(name: str, text: str, expected: dict[str, FactValue]) -> None:
    found = facts(name, text)
    assert {key: found.get(f"compile.{key}") for key in expected} == expected


@pytest.mark.parametrize(
    "text",
    [
        "Dynamo failed to run FX node with fake tensors: call_function mm(*(FakeTensor(...),), **{}): "
        "got RuntimeError('mat1 and mat2 shapes cannot be multiplied (3x64 and 128x10)')",
        "Failed running call_function linear(*(FakeTensor(...),), **{}):\nexpected mat1 and mat2 to have the "
        "same dtype, but got: float != c10::BFloat16",
    ],
)
def test_error_that_user_code_raises_is_not_called_the_compilers(text: str) -> None:
    assert "compile.inner_internal" not in facts("torch._dynamo.exc.TorchRuntimeError", text)


def test_cut_off_message() -> None:
    text = (
        "Dynamo failed to run FX node with fake tensors: call_function mul(*(FakeTensor(...),), **{}): "
        "got RuntimeError('Attempting to broadcast a dimension of length 20280 at -4! Mism"
    )
    found = facts("torch._dynamo.exc.TorchRuntimeError", text)
    assert str(found["compile.inner_message"]).startswith("Attempting to broadcast")


@pytest.mark.parametrize(
    ("name", "text"), [("ValueError", "bad value"), (None, "epoch 1"), ("KeyError", "'backend'")]
)
def test_other_events_have_no_facts(name: str | None, text: str) -> None:
    assert facts(name, text) == {}


def test_function_and_reason_of_too_many_recompilations_stand_in_the_lines_below() -> None:
    lines = (
        "torch._dynamo hit config.recompile_limit (8)",
        "   function: 'forward' (/home/user/decoder.py:41)",
        "   last reason: 0/7: L['pos'] == 7",
    )
    events = tuple(
        Event(number, EventKind.LOG, text, "run.log", number + 1, number + 1)
        for number, text in enumerate(lines)
    )
    found = {
        fact.name: fact.value for fact in torch_compile.extract(events[0], Transcript(("run.log",), events))
    }
    assert found == {
        "compile.recompiled": "forward",
        "compile.recompiled_at": "/home/user/decoder.py:41",
        "compile.last_reason": "L['pos'] == 7",
    }
