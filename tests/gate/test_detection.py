"""Every fault that the gate must find, planted into healthy recordings: with its blame and what to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from gate_machines import Altered, Change, result, xid
from gate_noise import look, originals

from torchdoctor.gate.finding import Action, Verdict
from torchdoctor.gate.policy import Policy, Suppression
from torchdoctor.probes.machine import Outcome

UNFIT, ENV, OPEN, FIT = Verdict.UNFIT, Verdict.ENVIRONMENT, Verdict.INCONCLUSIVE, Verdict.FIT


@dataclass(frozen=True)
class Seed:
    """A fault: how it is planted, the verdict, the tag (or untold check) that must say it, and the action."""

    name: str
    change: Change
    verdict: Verdict
    tag: str
    action: Action | None = None
    machine: str = "hgx-h100x8"
    gpu: int | None = None


def nvlink5(
    reason: int, word: str = "Fatal", unit: str = "NETIR_LINK_EVT", code: int = 149, status: int = 0
) -> str:
    first = (reason << 20) | 0x1C6
    return xid(code, f"{unit} {word} XC0 i0 Link 08 ({first:#010x} {status:#010x} 0x00000000 0x00000000)")


def seeds() -> list[Seed]:

    def log(*lines: str, at_s: float = 5000.0) -> Change:
        return lambda it: it.log(*lines, at_s=at_s)

    def gpu(name: str, value: object, number: int = 1) -> Change:
        return lambda it: it.gpu(name, number, value)

    def put(**values: object) -> Change:
        return lambda it: [it.put(name.replace("__", "."), value) for name, value in values.items()] and None

    def env(**values: object) -> Change:
        return lambda it: it.environment(**values)

    def active(*lines: dict[str, object], **how: object) -> Change:
        return lambda it: it.active(*lines, **how)

    def expect(**values: object) -> Change:
        def change(it: Altered) -> None:
            it.policy = Policy("site.toml", dict(values))

        return change

    def both(*changes: Change) -> Change:
        return lambda it: [change(it) for change in changes] and None

    def missing(it: Altered) -> None:
        it.policy = Policy("site.toml", {"gpus": 9})

    def no_gpu(it: Altered) -> None:
        it.drop("gate-nvml", "gpu.", Outcome(exit_code=0))
        it.put("driver.nvml_error", "NVML Shared Library Not Found")
        it.put("node.pci_gpus", [])
        it.put("node.driver_version", "")

    def cpu_only(it: Altered) -> None:
        it.environment(torch="2.11.0+cpu", cuda_available=False)
        it.known.pop("env.torch_cuda")

    slow = {"observed": "410 GB/s, 80% of the median of its siblings", "expected": "at least 85% of it"}
    wrong = {"observed": "1 of 16777216 elements differ"}
    flags = both(gpu("gpu.nvlinks_active", 17), gpu("gpu.nvlinks_inactive", 1), gpu("gpu.nvlinks_down", [5]))
    return [
        Seed("GPU missing", missing, UNFIT, "gpu-count", Action.REBOOT),
        Seed(
            "GPU lost mid-check",
            put(gpu__errors=["GPU 1: GPU is lost"]),
            UNFIT,
            "gpu-lost",
            Action.REBOOT,
            gpu=1,
        ),
        Seed(
            "GPU on the bus, not in NVML",
            put(node__pci_gpus=[["0000:e1:00.0", "0x10de", "nvidia", 16, 16, 0]]),
            UNFIT,
            "gpu-lost",
            Action.REBOOT,
        ),
        Seed(
            "NVML hang",
            lambda it: it.drop("gate-nvml", "gpu.", Outcome(timed_out=True, seconds=6.0, note="timed out")),
            OPEN,
            "nvml",
        ),
        Seed(
            "NVML hang in the kernel",
            lambda it: it.drop(
                "gate-nvml",
                "gpu.",
                Outcome(
                    timed_out=True, seconds=6.0, note="timed out; it does not die (uninterruptible sleep)"
                ),
            ),
            UNFIT,
            "nvml",
            Action.REBOOT,
        ),
        Seed("NVML crash", lambda it: it.drop("gate-nvml", "gpu.", Outcome(signal=11)), OPEN, "nvml"),
        Seed(
            "driver and library mismatch",
            put(driver__nvml_error="Driver/library version mismatch"),
            UNFIT,
            "nvml",
        ),
        Seed(
            "79 with code",
            log(xid(79, "pid=1, GPU has fallen off the bus.")),
            UNFIT,
            "xid79",
            Action.REBOOT,
            gpu=1,
        ),
        Seed(
            "79 without code",
            log("NVRM: GPU 0000:43:00.0: GPU has fallen off the bus."),
            UNFIT,
            "xid79",
            Action.REBOOT,
            gpu=1,
        ),
        Seed(
            "48 and 63",
            log(xid(48, "pid='<unknown>', name=<unknown>, DBE (double bit error)"), xid(63, "row remap")),
            UNFIT,
            "xid48",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed("64", log(xid(64)), UNFIT, "xid64", Action.RESET_GPU, gpu=1),
        Seed("94 once", log(xid(94)), FIT, "xid94", Action.RESTART_JOB, gpu=1),
        Seed("94 three times", log(xid(94), xid(94), xid(94)), UNFIT, "xid94", Action.RESET_GPU, gpu=1),
        Seed("95", log(xid(95)), UNFIT, "xid95", Action.RESET_GPU, gpu=1),
        Seed("119", log(xid(119)), UNFIT, "xid119", Action.RESET_GPU, gpu=1),
        Seed("74 with the links up", log(xid(74)), FIT, "xid74", Action.INSPECT, gpu=1),
        Seed("74 with a link down", both(flags, log(xid(74))), UNFIT, "xid74", Action.RESET_GPU, gpu=1),
        Seed("149 reason 2", log(nvlink5(2)), UNFIT, "xid149", Action.RESET_GPU, gpu=1),
        Seed("149 reason 21", log(nvlink5(21)), OPEN, "xid149", Action.INSPECT, gpu=1),
        Seed("149 reason 38", log(nvlink5(38)), FIT, "xid149", Action.INSPECT, gpu=1),
        Seed(
            "145 Nonfatal",
            log(nvlink5(0, "Nonfatal", "RLW_REMAP", 145, 0x40)),
            FIT,
            "xid145",
            Action.INSPECT,
            gpu=1,
        ),
        Seed(
            "145 Fatal",
            log(nvlink5(0, "Fatal", "RLW_REMAP", 145, 0x40)),
            UNFIT,
            "xid145",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed("13 once", log(xid(13)), FIT, "xid13", Action.NONE, gpu=1),
        Seed(
            "13 in three jobs on one GPU",
            log(*(xid(13, f"pid={pid}, name=python3, Graphics Exception") for pid in (11, 22, 33))),
            FIT,
            "xid-repeated",
            Action.INSPECT,
            gpu=1,
        ),
        Seed(
            "43 of four processes of the self-check itself",
            log(*(xid(43, f"pid={pid}, name=torchdoctor, Ch 00000008") for pid in (11, 22, 33, 44))),
            FIT,
            "xid43",
            Action.NONE,
            gpu=1,
        ),
        Seed(
            "154 set",
            log(xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")),
            UNFIT,
            "xid154",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed(
            "154 set to reboot",
            log(xid(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")),
            UNFIT,
            "xid154",
            Action.REBOOT,
            gpu=1,
        ),
        Seed(
            "154 set and cleared",
            log(
                xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
                xid(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"),
            ),
            FIT,
            "xid154",
        ),
        Seed(
            "old 48 before a reset",
            log(xid(48), "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04"),
            FIT,
            "xid48",
            Action.NONE,
            gpu=1,
        ),
        Seed(
            "recovery action",
            gpu("gpu.recovery_actions", "reset"),
            UNFIT,
            "recovery-reset",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed(
            "recovery action reboot",
            gpu("gpu.recovery_actions", "reboot"),
            UNFIT,
            "recovery-reboot",
            Action.REBOOT,
            gpu=1,
        ),
        Seed("unreadable kernel log", lambda it: it.forget("kernel.lines"), OPEN, "kernel-log"),
        Seed(
            "GB200-style PCI domain",
            both(lambda it: it.gpu("gpu.pci", 1, "00000018:01:00.0"), log(xid(95, pci="0018:01:00"))),
            UNFIT,
            "xid95",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed(
            "SXid fatal",
            log("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12020, Fatal, Link 32 egress"),
            UNFIT,
            "sxid12020",
            Action.REBOOT,
        ),
        Seed(
            "SXid potentially fatal",
            log("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 14017, Fatal, Link 32 x"),
            UNFIT,
            "sxid14017",
            Action.DRAIN_RESET,
        ),
        Seed(
            "a storm of corrected SRAM errors",
            put(gpu__sram_corrected=[0, 10_000, *[0] * 6]),
            FIT,
            "sram-corrected",
            Action.INSPECT,
            gpu=1,
        ),
        Seed(
            "many retired pages",
            put(gpu__retired_pages=[0, 63, *[10] * 6]),
            FIT,
            "retired-pages",
            Action.RMA,
            gpu=1,
        ),
        Seed(
            "many retired pages and more pending",
            put(gpu__retired_pages=[0, 62, *[10] * 6], gpu__retired_pending=[False, True, *[False] * 6]),
            UNFIT,
            "retired-pages",
            Action.RMA,
            gpu=1,
        ),
        Seed("remap pending", gpu("gpu.remap_pending", True), FIT, "remap-pending", Action.RESET_GPU, gpu=1),
        Seed("remap failed", gpu("gpu.remap_failed", True), UNFIT, "remap-failed", Action.RMA, gpu=1),
        Seed("SRAM threshold", gpu("gpu.sram_threshold", True), UNFIT, "sram", Action.RMA, gpu=1),
        Seed(
            "ECC switched off",
            both(gpu("gpu.ecc_enabled", False), gpu("gpu.ecc_uncorrected", None)),
            FIT,
            "ecc-off",
            Action.CHANGE_SETTING,
            gpu=1,
        ),
        Seed("a GPU that does not report its errors", gpu("gpu.ecc_uncorrected", None), OPEN, "ecc"),
        Seed("uncorrectable ECC", gpu("gpu.ecc_uncorrected", 2), UNFIT, "ecc", Action.RESET_GPU, gpu=1),
        Seed(
            "corrected storm",
            gpu("gpu.ecc_corrected", 60_000_000),
            FIT,
            "ecc-corrected",
            Action.INSPECT,
            gpu=1,
        ),
        Seed("1 of 18 links down", flags, UNFIT, "nvlink", Action.RESET_GPU, gpu=1),
        Seed("PCIe x8", gpu("gpu.pcie_width", 8), UNFIT, "pcie-width", Action.INSPECT, gpu=1),
        Seed("PCIe generation 1, idle", gpu("gpu.pcie_generation", 1), FIT, ""),
        Seed(
            "PCIe generation 1, busy",
            both(gpu("gpu.pcie_generation", 1), gpu("gpu.utilization", 97)),
            FIT,
            "pcie-generation",
            Action.INSPECT,
            gpu=1,
        ),
        Seed(
            "power brake",
            gpu("gpu.throttle_reasons", ["hw-slowdown", "hw-power-brake"]),
            UNFIT,
            "hw-power-brake",
            Action.INSPECT,
            gpu=1,
        ),
        Seed(
            "thermal",
            gpu("gpu.throttle_reasons", ["hw-thermal-slowdown"]),
            UNFIT,
            "hw-thermal-slowdown",
            Action.INSPECT,
            gpu=1,
        ),
        Seed("hot", gpu("gpu.temperature_c", 86), UNFIT, "temperature", Action.INSPECT, gpu=1),
        Seed(
            "clock locked low",
            gpu("gpu.application_clock_mhz", 900),
            UNFIT,
            "clocks",
            Action.CHANGE_SETTING,
            gpu=1,
        ),
        Seed(
            "clock locked low, under load",
            both(gpu("gpu.clock_held", True), gpu("gpu.sm_clock_mhz", 900), gpu("gpu.utilization", 90)),
            UNFIT,
            "clocks",
            Action.CHANGE_SETTING,
            gpu=1,
        ),
        Seed(
            "power limit lowered",
            gpu("gpu.power_limit_w", 400.0),
            UNFIT,
            "power-limit",
            Action.CHANGE_SETTING,
            gpu=1,
        ),
        Seed(
            "foreign process holding memory",
            both(
                gpu("gpu.memory_used_bytes", 40_000_000_000),
                put(gpu__processes=[[1, 4242, 40_000_000_000, "compute"]]),
            ),
            UNFIT,
            "leftovers",
            Action.END_PROCESS,
            gpu=1,
        ),
        Seed(
            "wrong element in a GEMM",
            active(result("gemm-exact@cuda:1", "fail", "node", **wrong)),
            UNFIT,
            "gemm-exact",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed(
            "wrong element in a GEMM that comes and goes",
            active(
                result(
                    "gemm-exact@cuda:1", "fail", "node", **wrong, again=result("gemm-exact@cuda:1", "pass")
                )
            ),
            UNFIT,
            "gemm-exact",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed(
            "NCCL without peer access",
            both(
                expect(transport="P2P"),
                active(
                    {"check": "", "verdict": "pass", "notes": ["nccl@cuda: ways: SHM/direct (16 channels)"]}
                ),
            ),
            UNFIT,
            "transport-other",
            Action.INSPECT,
        ),
        Seed(
            "NCCL without peer access, by the job's own wish",
            both(
                expect(transport="P2P"),
                env(leaked={"NCCL_P2P_DISABLE": "1"}),
                active(
                    {"check": "", "verdict": "pass", "notes": ["nccl@cuda: ways: SHM/direct (16 channels)"]}
                ),
            ),
            ENV,
            "transport-other",
            Action.CHANGE_JOB,
        ),
        Seed(
            "other bits than the siblings",
            active(result("bit-equal@cuda:1", "fail", "node", **wrong)),
            UNFIT,
            "bit-equal",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed(
            "slow GPU, twice",
            active(
                result(
                    "gemm-rate@cuda:1",
                    "fail",
                    "node",
                    **slow,
                    again=result("gemm-rate@cuda:1", "fail", "node", **slow),
                )
            ),
            UNFIT,
            "gemm-rate",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed(
            "slow GPU, once",
            active(
                result("gemm-rate@cuda:1", "fail", "node", **slow, again=result("gemm-rate@cuda:1", "pass"))
            ),
            FIT,
            "gemm-rate",
            Action.NONE,
            gpu=1,
        ),
        Seed(
            "NaN",
            active(result("nan@cuda:1", "fail", "node", observed="loss is nan")),
            UNFIT,
            "nan",
            Action.RESET_GPU,
            gpu=1,
        ),
        Seed(
            "active set hangs",
            active(done=False, exit_code=None, timed_out=True, seconds=27.0, note="timed out"),
            OPEN,
            "active",
        ),
        Seed(
            "wheel without the architecture",
            env(arch_list=["sm_50", "sm_60", "sm_70"]),
            ENV,
            "kernel-image",
            Action.CHANGE_JOB,
        ),
        Seed(
            "driver too old",
            both(env(cuda_available=False, torch_cuda="13.0"), put(driver__nvml_cuda="12.2")),
            ENV,
            "driver-too-old",
            Action.CHANGE_JOB,
        ),
        Seed(
            "two libnccl",
            env(loaded=[["libnccl", "/usr/lib/libnccl.so.2"], ["libnccl", "/opt/venv/libnccl.so.2"]]),
            ENV,
            "libnccl",
            Action.CHANGE_JOB,
        ),
        Seed(
            "shm 64 MiB",
            put(node__shm_bytes=64 << 20, node__shm_free_bytes=64 << 20),
            ENV,
            "shm",
            Action.CHANGE_JOB,
        ),
        Seed("nofile 1024", put(node__nofile=[1024, 1024]), FIT, "nofile", Action.CHANGE_SETTING),
        Seed("memlock 64 KiB", put(node__memlock=[65536, 65536]), ENV, "memlock", Action.CHANGE_SETTING),
        Seed(
            "stale lock",
            env(locks=[["/home/u/.cache/torch_extensions/x/lock", 86400.0, 1000]]),
            ENV,
            "extension-locks",
            Action.CLEAN_UP,
        ),
        Seed(
            "locks that hold nobody off",
            env(locking=["/home/u/.cache", "two processes can hold the same lock (flock)", "nfs4"]),
            FIT,
            "locking",
            Action.CHANGE_JOB,
        ),
        Seed(
            "read-only cache folder",
            env(caches=[["/home/u/.triton", "Read-only file system", True]]),
            ENV,
            "cache-closed",
            Action.CHANGE_JOB,
        ),
        Seed(
            "full cache folder",
            env(caches=[["/home/u/.triton", "No space left on device", True]]),
            ENV,
            "cache-full",
            Action.CLEAN_UP,
        ),
        Seed(
            "hung NFS",
            put(mounts__hung=[["/home", "nfs4", "rw,hard"]]),
            OPEN,
            "mount-hung",
            Action.CHECK_NETWORK,
        ),
        Seed(
            "a disk of its own that does not answer",
            put(mounts__hung=[["/local", "xfs", "rw"]]),
            UNFIT,
            "mount-hung",
            Action.REBOOT,
        ),
        Seed(
            "full disk",
            put(mounts__answers=[["/", "ext4", "rw", [10**12, 10**8, 10**7, 10**6, False]]]),
            UNFIT,
            "disk-full",
            Action.CLEAN_UP,
        ),
        Seed(
            "IB port down",
            both(expect(ib_ports=8), lambda it: port(it, 3, 2, "DOWN")),
            UNFIT,
            "ib-down",
            Action.CHECK_NETWORK,
        ),
        Seed(
            "IB port at half rate",
            both(expect(ib_rate_gbps=400), lambda it: port(it, 3, 4, 200.0)),
            UNFIT,
            "ib-rate",
            Action.CHECK_NETWORK,
        ),
        Seed("IB port flapping", lambda it: port(it, 3, 6, 40), FIT, "ib-flap", Action.CHECK_NETWORK),
        Seed(
            "fabric manager stopped",
            both(put(node__fabric_manager=False), put(gpu__fabric_states=["in-progress"] * 8)),
            UNFIT,
            "fabric-manager",
            Action.RESTART_SERVICE,
        ),
        Seed(
            "fabric manager of another version",
            put(node__fabric_version="570.10.01"),
            UNFIT,
            "fabric-manager",
            Action.CHANGE_SETTING,
        ),
        Seed(
            "fabric lacks resources",
            gpu("gpu.fabric_status", 35),
            UNFIT,
            "fabric",
            Action.RESTART_SERVICE,
            gpu=1,
        ),
        Seed(
            "MIG on",
            both(
                gpu("gpu.mig_modes", True), lambda it: it.variables(SLURM_GPUS_ON_NODE="8", SLURM_PROCID="0")
            ),
            ENV,
            "mig",
            Action.CHANGE_JOB,
            gpu=1,
        ),
        Seed(
            "MIG on against the policy",
            both(expect(mig=False), gpu("gpu.mig_modes", True)),
            UNFIT,
            "mig",
            Action.CHANGE_SETTING,
            gpu=1,
        ),
        Seed(
            "clock off by 10 s", put(node__clock_offset_s=-10.0), UNFIT, "clock-sync", Action.RESTART_SERVICE
        ),
        Seed(
            "MASTER_ADDR is the node itself",
            both(
                lambda it: it.variables(SLURM_NNODES="4"),
                env(job={"MASTER_ADDR": "node1"}, master_addresses=["127.0.1.1"]),
            ),
            ENV,
            "master-loopback",
            Action.CHANGE_JOB,
        ),
        Seed(
            "NCCL_P2P_DISABLE=1",
            env(leaked={"NCCL_P2P_DISABLE": "1"}),
            FIT,
            "nccl_p2p_disable",
            Action.CHANGE_JOB,
        ),
        Seed("torch for the CPU alone", cpu_only, ENV, "torch-cpu-only", Action.CHANGE_JOB),
        Seed(
            "no GPU at all, eight expected", both(no_gpu, expect(gpus=8)), UNFIT, "gpu-count", Action.REBOOT
        ),
        Seed("no GPU at all, nothing expected", no_gpu, OPEN, "gpu-count"),
        Seed(
            "a GPU that is not there is asked for",
            lambda it: it.variables(CUDA_VISIBLE_DEVICES="0,9"),
            ENV,
            "gpu-request",
            Action.CHANGE_JOB,
        ),
        Seed("another model", expect(model="B200"), UNFIT, "gpu-model", Action.INSPECT),
    ]


def port(it: Altered, number: int, field: int, value: object) -> None:
    ports = [list(row) for row in it.known["node.ib_ports"].value]
    ports[number][field] = value
    it.put("node.ib_ports", ports)


SEEDS = seeds()


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_a_planted_fault_is_found(seed: Seed) -> None:
    it = Altered(seed.machine)
    seed.change(it)
    outcome = it.judge()
    assert outcome.verdict is seed.verdict, outcome
    if not seed.tag:
        assert outcome.findings == ()
        return
    found = [one for one in outcome.findings if one.tag == seed.tag]
    if not found:
        assert seed.action is None
        assert seed.tag in [one.check for one in outcome.untold if one.required], outcome
        return
    if seed.action is not None:
        assert seed.action in [one.action for one in found]
    if seed.gpu is not None:
        assert {one.gpu for one in found} == {seed.gpu}
    counting = [one for one in found if one.counts]
    assert bool(counting) == (seed.verdict is not FIT), found
    for one in found:
        assert one.observed
        assert one.title
        assert not one.counts or (one.blame is not None and one.expected and one.source and one.evidence)


def test_seeds_have_names_of_their_own() -> None:
    assert len({seed.name for seed in SEEDS}) == len(SEEDS)


def test_a_suppressed_fault_is_told_and_does_not_count() -> None:
    it = Altered()
    it.gpu("gpu.power_limit_w", 1, 400.0)
    it.policy = Policy(
        "site.toml", suppressions=(Suppression("power-limit", "ops", "2999-01-01", "cooling"),)
    )
    outcome = it.judge()
    assert outcome.verdict is FIT
    assert outcome.findings[0].suppressed == "ops until 2999-01-01"
    assert "by ops until 2999-01-01 (1 finding now): cooling" in outcome.suppressions[0]
    it.policy = Policy("site.toml", suppressions=(Suppression("power-limit", "ops", "2020-01-01"),))
    outcome = it.judge()
    assert outcome.verdict is UNFIT
    assert "expired" in outcome.suppressions[0]


# Healthy machines with noise are never unfit; benchmarks/gate_replays.py looks at 30,000 of them
def test_no_healthy_look_is_unfit() -> None:
    base = originals()
    seen: Counter[tuple[str, bool]] = Counter()
    for number in range(400):
        drawn, outcome = look(number, base)
        seen[drawn.machine, drawn.busy] += 1
        assert outcome.verdict is Verdict.FIT, (number, drawn, outcome.findings, outcome.untold)
    assert len(seen) == 2 * len(base)
