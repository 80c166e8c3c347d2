"""Messages into facts: how processes ended, kernels' assertions, Xids, what torch.compile wraps."""

from __future__ import annotations

import pytest
from extracted import facts, values

from torchdoctor.extract import of_event, torch_compile
from torchdoctor.intake import read_text
from torchdoctor.model import Event, EventKind, Fact, FactValue, State, Transcript


def extract(text: str, kind: EventKind = EventKind.LOG) -> dict[str, Fact]:
    return facts("exit", Event(0, kind, text, "job.log", 7, 7))


@pytest.mark.parametrize(
    ("text", "code", "signal"),
    [
        ("failed (exitcode: -9) local_rank: 0 (pid: 1795) of binary: /env/bin/python3", -9, "SIGKILL"),
        ("failed (exitcode: 1) local_rank: 3 (pid: 12) of binary: C:\\Python\\python.exe", 1, None),
        ("failed (exitcode: 3221225477) local_rank: 0 (pid: 12) of binary: p.exe", 3221225477, "SIGSEGV"),
        ("failed (exitcode: -1073741819) local_rank: 0 (pid: 12) of binary: p.exe", -1073741819, "SIGSEGV"),
        ("  exitcode  : -11 (pid: 44)", -11, "SIGSEGV"),
        ("[launch.py:321:sigkill_handler] ['python', 'a.py'] exits with return code = -7", -7, "SIGBUS"),
        ("Command '['python', '-u', 'a.py']' died with <Signals.SIGSEGV: 11>.", None, "SIGSEGV"),
        ("Command '['python', '-u', 'a.py']' returned non-zero exit status 2.", 2, None),
        ("process 1 terminated with signal SIGABRT", None, "SIGABRT"),
        ("process 1 terminated with exit code 1", 1, None),
        ("DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that", None, "SIGBUS"),
        ("DataLoader worker (pid(s) 71) exited unexpectedly with exit code 1.", 1, None),
        ("process rank 1 with PID 0 on node a exited on signal 9 (Killed).", None, "SIGKILL"),
        ("srun: error: node12: tasks 0-3: Exited with exit code 137", 137, "SIGKILL"),
        ("srun: error: node12: task 3: Segmentation fault (core dumped)", None, "SIGSEGV"),
        ("      Exit Code:    139", 139, "SIGSEGV"),
        ("trainer-1 exited with code 143", 143, "SIGTERM"),
        ("##[error]Process completed with exit code 134.", 134, "SIGABRT"),
        ("Process 4021 got signal: 15", None, "SIGTERM"),
        ("Received 15 death signal, shutting down workers", None, "SIGTERM"),
        ("*** SIGSEGV received at time=1755 on cpu 3 ***", None, "SIGSEGV"),
        ("    Reason:       OOMKilled", None, "SIGKILL"),
        ("Command terminated by signal 9", None, "SIGKILL"),
        ("Killed", None, "SIGKILL"),
        ("./run.sh: line 12: 4711 Bus error               (core dumped) python train.py", None, "SIGBUS"),
        ("Segmentation fault: 11", None, "SIGSEGV"),
    ],
)
def test_forms(text: str, code: int | None, signal: str | None) -> None:
    found = extract(text)
    value: FactValue = found["code"].value if "code" in found else None
    assert value == code
    if signal is None:
        assert found["signal"].state is State.ABSENT
    else:
        assert found["signal"].value == signal


def test_box_names_the_root_cause_first() -> None:
    box = """
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-27_23:45:04
  host      : localhost
  rank      : 5 (local_rank: 1)
  exitcode  : -15 (pid: 684)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 684
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-27_23:45:03
  host      : localhost
  rank      : 4 (local_rank: 0)
  exitcode  : -6 (pid: 683)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 683
"""
    values = {name: fact.value for name, fact in extract(box, EventKind.EXCEPTION).items()}
    assert values == {"code": -6, "signal": "SIGABRT", "pid": 683, "local_rank": 0}


def test_box_without_its_root_part() -> None:
    found = extract("  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 9)\n  error_file: <N/A>")
    assert found["local_rank"].value == 3


@pytest.mark.parametrize(
    "text",
    [
        "Epoch 3 loss 0.2",
        "Killed Kenny is the name of this run",
        "The signal-to-noise ratio is 12",
        "SIGIR 2024 papers",
        "task 3 finished",
    ],
)
def test_other_lines_say_nothing(text: str) -> None:
    found = extract(text, EventKind.EXCEPTION)
    assert not found


def test_source_names_the_line() -> None:
    assert extract("Killed")["signal"].source == "text:job.log:7"


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ("./run.sh: Zeile 3: 4711 Speicherzugriffsfehler  (Speicherabzug geschrieben) python", "SIGSEGV"),
        ("总线错误 (核心已转储)", "SIGBUS"),
        ("Segmentation fault (コアダンプ)", "SIGSEGV"),
        ("Erreur du bus", "SIGBUS"),
        ("Getötet", "SIGKILL"),
        ("Terminado (killed)", "SIGKILL"),
        ("強制終了", "SIGKILL"),
        ("./run.sh : ligne 3 :  4711 Processus arrêté        python train.py", "SIGKILL"),
        ("[1]+  Unicestwiony            python train.py", "SIGKILL"),
    ],
)
def test_a_shell_that_speaks_another_language(line: str, signal: str) -> None:
    (event,) = read_text(f"{line}\n").events
    assert event.kind is EventKind.CRASH
    assert extract(event.text, event.kind)["signal"].value == signal


# Assertion lines of kernels, as the compilers and libraries of different years print them
WHERE = "block: [0,0,0], thread: [3,0,0]"


def device_assert_extract(text: str) -> dict[str, Fact]:
    return facts("assert", Event(0, EventKind.DEVICE_ASSERT, text, "run.log", 4, 4))


@pytest.mark.parametrize(
    ("text", "kernel", "file"),
    [
        (
            f"/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: "
            f"{WHERE} Assertion `t >= 0 && t < n_classes` failed.",
            "nll_loss_forward_reduce_cuda_kernel_2d", "/pytorch/aten/src/ATen/native/cuda/Loss.cu",
        ),
        (  # whole signatures up to about torch 1.7
            f"/pytorch/aten/src/THC/THCTensorRandom.cuh:193: void sampleMultinomialOnce(long *, long, int, "
            f"T *, T *, int, int) [with T = float, AccT = float]: {WHERE} Assertion "
            f"`THCNumerics<T>::ge(val, zero)` failed.",
            "sampleMultinomialOnce", "/pytorch/aten/src/THC/THCTensorRandom.cuh",
        ),
        (  # a functor is known by its class
            f"/w/THCUNN/BCECriterion.cu:42: Acctype bce_functor<Dtype, Acctype>::operator()(Tuple) [with "
            f"Tuple = thrust::tuple<thrust::null_type>, Dtype = float]: {WHERE} Assertion `input >= 0. && "
            f"input <= 1.` failed.",
            "bce_functor", "/w/THCUNN/BCECriterion.cu",
        ),
        (  # Windows leaves the kernel out and has backslashes
            rf"C:\cb\work\aten\src\ATen\native\cuda\Indexing.cu:1239: {WHERE} Assertion "
            "`srcIndex < srcSelectDimSize` failed.",
            None, "C:/cb/work/aten/src/ATen/native/cuda/Indexing.cu",
        ),
        (  # glued to a progress bar
            f" 3%|#3 | 13/412 [00:04<01:58, 3.36it/s]/w/ClassNLLCriterion.cu:101: void f(int): {WHERE} "
            f"Assertion `t >= 0 && t < n_classes` failed.",
            "f", "/w/ClassNLLCriterion.cu",
        ),
        (  # the head of the line was lost
            f"void indexSelectLargeIndex(TensorInfo<T, IndexType>, int) [with T = float]: {WHERE} Assertion "
            "`srcIndex < srcSelectDimSize` failed.",
            "indexSelectLargeIndex", None,
        ),
        (  # back quotes inside the condition
            f"/p/TensorCompare.cu:112: _assert_async_cuda_kernel: {WHERE} Assertion `probability tensor "
            f"contains either `inf`, `nan` or element < 0` failed.",
            "_assert_async_cuda_kernel", "/p/TensorCompare.cu",
        ),
        (
            f"/tmp/torchinductor_u/on/conx.py:29: unknown: {WHERE} Assertion `index out of bounds: 0 <= "
            f"tmp4 < 10` failed.",
            None, "/tmp/torchinductor_u/on/conx.py",
        ),
        (
            "/root/pytorch/aten/src/ATen/native/hip/Loss.hip:250: void at::native::nll_loss_forward(float "
            "*, int) [scalar_t = float]: Device-side assertion `t >= 0 && t < n_classes' failed.",
            "nll_loss_forward", "/root/pytorch/aten/src/ATen/native/hip/Loss.hip",
        ),
        (
            "Assertion `cur_target >= 0 && cur_target < n_classes' failed.  at "
            "/p/THNN/generic/ClassNLLCriterion.c:97",
            None, "/p/THNN/generic/ClassNLLCriterion.c",
        ),
        (
            "1 CUDA device-side assertion failures were found on GPU #0!\nAssertion failure 0\n"
            "  GPU assertion failure message = index >= 0\n  File containing assertion = a/b.cu:33\n"
            "  Device function containing assertion = go\n  Thread ID that failed assertion = [1,2,3]\n"
            "  Block ID that failed assertion = [0,0,0]",
            "go", "a/b.cu",
        ),
    ],
)  # fmt: skip
def test_device_assert_forms(text: str, kernel: str | None, file: str | None) -> None:
    found = {name: fact.value for name, fact in device_assert_extract(text).items()}
    assert (found.get("kernel"), found.get("file")) == (kernel, file)


def test_a_kernel_that_is_not_named_is_absent() -> None:
    assert (
        device_assert_extract(rf"C:\x\Indexing.cu:5: {WHERE} Assertion `x` failed.")["kernel"].state
        is State.ABSENT
    )


@pytest.mark.parametrize(
    "text",
    [
        'ringtest: ring.cpp:4: int Ring::at(size_t): Assertion `i < b.size() && "ring index"\' failed.',
        "AssertionError: expected 3 classes",
        "CUDA error: device-side assert triggered",
        "",
    ],
)
def test_other_assertions_give_nothing(text: str) -> None:
    assert device_assert_extract(text) == {}


# Xid and SXid lines, in the forms the driver has printed them
def xid_extract(text: str) -> dict[str, Fact]:
    return facts("xid", Event(0, EventKind.KERNEL_LOG, text, "dmesg.txt", 3, 3))


def known(text: str) -> dict[str, FactValue]:
    return {name: fact.value for name, fact in xid_extract(text).items() if fact.state is State.KNOWN}


@pytest.mark.parametrize(
    ("text", "code", "pci", "pid"),
    [
        (
            "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            79,
            "0000:41:00",
            None,
        ),
        (
            "[1.5] NVRM: Xid (PCI:0000:9b:00): 94, pid=1234567, name=python3, Contained ECC error",
            94,
            "0000:9b:00",
            1234567,
        ),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", None),
        (
            "NVRM: Xid (PCI:0019:01:00.0): 31, pid=960, name=python3, channel 0x0000000a, intr 00000000.",
            31,
            "0019:01:00.0",
            960,
        ),
        (
            "kernel: NVRM: Xid (PCI:0000:05:00): 48, An uncorrectable double bit error (DBE)",
            48,
            "0000:05:00",
            None,
        ),
        ("NVRM: Xid (PCI:0000:07:00): 43, pid=426, name=python3, channel 0x0000000a", 43, "0000:07:00", 426),
        ("NVRM: Xid (PCI:0000:07:00): 109", 109, "0000:07:00", None),
    ],
)
def test_xid_forms(text: str, code: int, pci: str, pid: int | None) -> None:
    found = xid_extract(text)
    assert (found["code"].value, found["pci"].value) == (code, pci)
    assert found["pid"].value == pid
    assert found["pid"].state is (State.KNOWN if pid is not None else State.ABSENT)


def test_the_process_name_is_not_searched_for_numbers() -> None:
    found = known("NVRM: Xid (PCI:0000:41:00): 43, pid=7, name=Xid (PCI:0000:41:00): 79, Ch 00000008")
    assert found["code"] == 43
    assert found["process"] == "Xid (PCI:0000:41:00): 79"


def test_nvlink5_subcode() -> None:
    found = known(
        "NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 "
        "0x00000002 0x0 0x0)"
    )
    assert (found["severity"], found["link"]) == ("fatal", 8)


def test_nvlink5_nonfatal() -> None:
    found = known(
        "NVRM: Xid (PCI:0000:ba:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)"
    )
    assert (found["severity"], found["link"]) == ("nonfatal", 13)


def test_nvlink5_without_its_words_has_no_severity() -> None:
    assert xid_extract("NVRM: Xid (PCI:0000:ba:00): 145, something else")["severity"].state is State.ABSENT


def test_consequence_names_its_reason() -> None:
    found = known(
        "NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149"
    )
    assert found["caused_by"] == 149


@pytest.mark.parametrize(
    ("state", "action"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "reset"),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "reboot"),
        ("GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", "drain-p2p"),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "drain-and-reset"),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "none"),
    ],
)
def test_recovery_action_is_the_new_state(state: str, action: str) -> None:
    found = known(f"NVRM: Xid (PCI:0000:4f:00): 154, pid='<unknown>', name=<unknown>, {state}")
    assert found["recovery"] == action


def test_sxid() -> None:
    found = known(
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
    )
    assert (found["sxid"], found["severity"], found["link"]) == (12028, "nonfatal", 32)
    assert "code" not in found


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: GPU at 0000:03:00.0 has fallen off the bus.",
        "NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.",
        "NVRM: The NVIDIA GPU 0000:c1:00.0\nNVRM: (PCI ID: 10de:20b5) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
    ],
)
def test_off_the_bus_without_a_number(text: str) -> None:
    assert known(text)["code"] == 79


@pytest.mark.parametrize(
    "text",
    [
        "dhclient[811]: XMT: Solicit on eth0, xid 79",
        "dhclient[811]: DHCPREQUEST of 10.0.0.4 on eth0 to 255.255.255.255 port 67 (xid=0x4f)",
        "postgres: LOG: transaction ID wrap limit is 2147484379, xid 79",
        "the picture has fallen off the bus",
    ],
)
def test_other_lines_give_nothing(text: str) -> None:
    assert xid_extract(text) == {}


@pytest.mark.parametrize(
    "told", ["No devices were found", "Unable to determine the device handle for GPU0: Unknown Error"]
)
def test_the_first_xid_beside_a_card_that_nvidia_smi_cannot_reach(told: str) -> None:
    kernel = "NVRM: Xid (PCI:0000:41:00): {code}, pid=1, name=python, Timeout after 6s"
    lines = (told, kernel.format(code=119), kernel.format(code=45))
    events = tuple(Event(n, EventKind.LOG, line, "a.log", n + 1, n + 1) for n, line in enumerate(lines))
    (fact,) = of_event("xid", events[0], Transcript(("a.log",), events))
    assert (fact.name, fact.value) == ("xid.first", 119)
    assert xid_extract(told)["first"].state is State.ABSENT


# What an error of torch.compile wraps, from torch 2.0 to 2.13
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
