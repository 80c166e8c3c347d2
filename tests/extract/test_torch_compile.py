"""What an error of torch.compile wraps, from torch 2.0 to 2.13."""

from __future__ import annotations

import pytest
from extracted import values

from torchdoctor.extract import torch_compile
from torchdoctor.model import Event, EventKind, FactValue


def compiled(name: str | None, text: str) -> dict[str, FactValue]:
    return values("compile", Event(0, EventKind.EXCEPTION, text, "job.log", 1, 1, type=name))


BACKEND = "torch._dynamo.exc.BackendCompilerFailed"
FAKE = "torch._dynamo.exc.TorchRuntimeError"


@pytest.mark.parametrize(
    ("name", "text", "wrapped", "internal"),
    [
        (
            BACKEND,
            "debug_wrapper raised RuntimeError: Found GTX 1080 which is too old",
            ("RuntimeError", "Found GTX 1080 which is too old"),
            False,
        ),
        (
            BACKEND,
            "backend='inductor' raised:\nAssertionError: \n\nSet TORCH_LOGS",
            ("AssertionError", "Set TORCH_LOGS"),
            True,
        ),
        (
            "torch._inductor.exc.InductorError",
            "InvalidCxxCompiler: No working C++ compiler found",
            ("InvalidCxxCompiler", "No working C++ compiler found"),
            True,
        ),
        (
            FAKE,
            "Dynamo failed to run FX node with fake tensors: call_function add(*(FakeTensor(..., "
            "size=(4, 4)), FakeTensor(...)), **{}): got RuntimeError('The size of tensor a (4) must match')",
            ("RuntimeError", "The size of tensor a (4) must match')"),
            False,
        ),
        (  # cut off
            FAKE,
            "Dynamo failed to run FX node with fake tensors: call_function mul(*(FakeTensor(...),), **{}): "
            "got RuntimeError('Attempting to broadcast a dimension of length 20280 at -4! Mism",
            ("RuntimeError", "Attempting to broadcast a dimension of length 20280 at -4! Mism"),
            False,
        ),
        (
            FAKE,
            "Dynamo failed to run FX node with fake tensors: call_function mm(*(FakeTensor(...),), **{}): "
            "got RuntimeError('mat1 and mat2 shapes cannot be multiplied (3x64 and 128x10)')",
            ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (3x64 and 128x10)')"),
            False,
        ),
        (
            FAKE,
            "Failed running call_function linear(*(FakeTensor(...),), **{}):\nexpected mat1 and mat2 to have "
            "the same dtype, but got: float != c10::BFloat16",
            ("", "expected mat1 and mat2 to have the same dtype, but got: float != c10::BFloat16"),
            False,
        ),
        (
            FAKE,
            "Failed running call_module self_fc(*(FakeTensor(..., size=(1, 10)),), **{}):\n"
            "Please convert all Tensors to FakeTensors first",
            ("", "Please convert all Tensors to FakeTensors first"),
            True,
        ),
        (
            "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode",
            "Could not guard on data-dependent expression Eq(u0, 0)",
            ("", ""),
            True,
        ),
        (
            "torch._dynamo.exc.InternalTorchDynamoError",
            "RuntimeError: Compiler: cl is not found.",
            ("RuntimeError", "Compiler: cl is not found."),
            False,
        ),
    ],
)
def test_wrapped_error(name: str, text: str, wrapped: tuple[str, str], internal: bool) -> None:
    assert torch_compile.wrapped(text) == wrapped
    assert compiled(name, text) == ({"inner_internal": True} if internal else {})


@pytest.mark.parametrize(
    ("name", "text"), [("ValueError", "bad value"), (None, "epoch 1"), ("KeyError", "'backend'")]
)
def test_other_events_have_no_facts(name: str | None, text: str) -> None:
    assert compiled(name, text) == {}


def test_function_and_reason_of_too_many_recompilations_stand_in_the_lines_below() -> None:
    lines = (
        "torch._dynamo hit config.recompile_limit (8)",
        "   function: 'forward' (/home/user/decoder.py:41)",
        "   last reason: 0/7: L['pos'] == 7",
    )
    assert values("compile", *lines) == {
        "recompiled": "forward",
        "recompiled_at": "/home/user/decoder.py:41",
        "last_reason": "L['pos'] == 7",
    }
