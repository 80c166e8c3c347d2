"""Judging what the job's own interpreter, torch and environment told. The blame is never the node's."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.gate import checks_caches, checks_death
from torchdoctor.gate.checks_caches import covers
from torchdoctor.gate.finding import Action, Untold
from torchdoctor.gate.look import ENVIRONMENT, FAIL, INFO, NODE, WARN, Check, Look, Said
from torchdoctor.number import count

PROGRAM = "gate-environment"
# variables that slow every job down; the others are only told
_SLOW = {
    "CUDA_LAUNCH_BLOCKING": ("1",),
    "NCCL_P2P_DISABLE": ("1", "true"),
    "NCCL_IB_DISABLE": ("1", "true"),
    "NCCL_SHM_DISABLE": ("1", "true"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("1",),
    "TORCH_DISTRIBUTED_DEBUG": ("DETAIL",),
    "TORCH_NCCL_BLOCKING_WAIT": ("1",),
    "NCCL_DEBUG": ("TRACE",),
}


def _interpreter(look: Look) -> Said:
    facts = look.facts
    error = facts.text("env.import_error")
    if error:
        evidence, advice = checks_death.named(facts, error)
        yield look.found(
            "interpreter", "The job's Python cannot import torch", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
            tag="torch",
            observed=error, expected="import torch works", source=facts.text("env.python"),
            evidence=evidence, advice=advice,
        )  # fmt: skip
        return
    if not facts.text("env.torch"):
        outcome = facts.ended.get(PROGRAM)
        if outcome is not None and outcome.start_error:
            yield look.found(
                "interpreter", "The job's Python cannot be started", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
                observed=outcome.start_error, expected="a Python interpreter", source="--python",
            )  # fmt: skip
        elif checks_death.died_at(facts):
            yield from checks_death.judge(look, "interpreter")
        else:
            stages = [str(line["stage"]) for line in outcome.lines if "stage" in line] if outcome else []
            at = f"; it was at: {stages[-1]}" if stages else ""
            yield Untold("interpreter", f"{look.facts.get('env.torch').why}{at}", True)
        return
    gpus = look.count
    if gpus and not facts.text("env.torch_cuda") and not facts.text("env.torch_hip"):
        yield look.found(
            "interpreter", "The job's torch is built for CPU only", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
            tag="torch-cpu-only", observed=f"torch {facts.text('env.torch')}", expected="a torch for CUDA",
            source="the node has GPUs", advice="install a CUDA build of torch in this environment",
        )  # fmt: skip
    elif gpus and facts.value("env.cuda_available") is False:
        old = facts.text("driver.nvml_cuda")
        newer = _newer(facts.text("env.torch_cuda"), old)
        yield look.found(
            "interpreter",
            "The driver is too old for the job's torch" if newer else "The job's torch can use no GPU",
            FAIL, ENVIRONMENT, Action.CHANGE_JOB, tag="driver-too-old" if newer else "torch-no-gpu",
            observed=f"torch for CUDA {facts.text('env.torch_cuda')}, driver for CUDA {old or '?'}",
            expected="torch.cuda.is_available()", source=facts.text("env.python"),
            advice="torchdoctor check says why",
        )  # fmt: skip
    elif facts.text("env.cuda_error"):
        evidence, advice = checks_death.named(facts, facts.text("env.cuda_error"))
        yield look.found(
            "interpreter", "CUDA cannot be used by the job's torch", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
            tag="cuda-error", observed=facts.text("env.cuda_error"), expected="CUDA starts",
            source="torch.cuda", evidence=evidence, advice=advice,
        )  # fmt: skip


def _newer(wanted: str, has: str) -> bool:
    try:
        return int(wanted.split(".")[0]) > int(has.split(".")[0])
    except ValueError:
        return False


def _kernel_image(look: Look) -> Said:
    facts = look.facts
    arches = [str(one) for one in facts.items("env.arch_list")]
    rows = facts.rows("env.devices", 3)
    bad = []
    for row in rows:
        said = facts.text(f"env.kernel.{row[0]}")
        covered = not arches or covers(arches, str(row[2]))
        if (said and said != "ok") or not covered:
            bad.append((row, said, covered))
    for row, said, covered in bad:
        gpu = torch_gpu(look, row)
        if not covered or "no kernel image" in said:
            yield look.found(
                "kernel-image", "The job's torch has no code for this GPU", FAIL, ENVIRONMENT,
                Action.CHANGE_JOB, gpu,
                observed=f"{row[1]} is sm_{str(row[2]).replace('.', '')}; torch has {', '.join(arches)}",
                expected="an architecture that fits", source="torch.cuda.get_arch_list()",
                evidence=tuple(one for one in (said,) if one and one != "ok"),
            )  # fmt: skip
        elif len(bad) < len(rows):
            # the same software works on its siblings
            yield look.found(
                "kernel-image", "A first kernel fails on this GPU and not on the others", FAIL, NODE,
                Action.RESET_GPU,
                gpu, observed=said, expected="523776, as on its siblings", source="one sum of 1024 numbers",
            )  # fmt: skip
        elif said.startswith("wrong result"):
            yield look.found(
                "kernel-image", "A first kernel computes a wrong result", FAIL, NODE, Action.RESET_GPU, gpu,
                observed=said,
                expected="523776", source="one sum of 1024 numbers",
            )  # fmt: skip
        else:
            yield look.found(
                "kernel-image", "A first kernel fails", FAIL, ENVIRONMENT, Action.CHANGE_JOB, gpu,
                observed=said,
                expected="it runs", source="one sum of 1024 numbers",
            )  # fmt: skip
    if facts.text("env.torch") and checks_death.died_at(facts):
        yield from checks_death.judge(look, "kernel-image")
        return
    outcome = facts.ended.get(PROGRAM)
    stages = [str(line.get("stage")) for line in outcome.lines if "stage" in line] if outcome else []
    if outcome is not None and not outcome.ok and stages and stages[-1].startswith(("kernel", "cuda")):
        how = "timed out" if outcome.timed_out else outcome.note or "was ended"
        yield Untold("kernel-image", f"the job's Python {how} in: {stages[-1]}", True)


def torch_gpu(look: Look, row: Sequence[object]) -> int | None:
    """NVML's number of a GPU that torch numbers by the job's list: by its UUID, else its address."""
    uuid, pci = (str(row[3]), str(row[4])) if len(row) > 4 else ("", "")
    for gpu, known in look.facts.each("gpu.uuids"):
        if uuid and str(known).lower() == uuid.lower():
            return gpu
    return look.gpu_at(pci) if pci else None


def _libraries(look: Look) -> Said:
    by_name: dict[str, list[str]] = {}
    for row in look.facts.rows("env.loaded", 2):
        by_name.setdefault(str(row[0]), []).append(str(row[1]))
    for name, paths in by_name.items():
        if len(paths) > 1:
            yield look.found(
                "libraries", f"Two copies of {name} are loaded", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
                tag=name,
                observed=", ".join(paths), expected="one copy", source="/proc/self/maps",
                advice="take the other copy out of LD_LIBRARY_PATH and LD_PRELOAD, or uninstall it",
            )  # fmt: skip


def _shadowed(look: Look) -> Said:
    for row in look.facts.rows("env.shadowed", 3):
        yield look.found(
            "libraries", f"{row[0]} is not the one that torch came with", WARN, ENVIRONMENT,
            Action.CHANGE_JOB, tag="library-shadowed", observed=f"loaded from {row[1]}", expected=str(row[2]),
            source="/proc/self/maps and the folders of the wheel",
            advice="take that folder out of LD_LIBRARY_PATH or LD_PRELOAD",
        )  # fmt: skip


def _rendezvous(look: Look) -> Said:
    facts = look.facts
    job = facts.value("env.job")
    told = {name: str(value) for name, value in job.items()} if isinstance(job, dict) else {}
    world, local = told.get("WORLD_SIZE", "1"), facts.variables().get("LOCAL_WORLD_SIZE", "")
    nodes = facts.variables().get("SLURM_NNODES", "")
    several = ((count(world) or 0) > 1 and world != local) if local else (count(nodes) or 0) > 1
    error = facts.text("env.master_error")
    if error:
        yield look.found(
            "rendezvous", "MASTER_ADDR does not resolve", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
            observed=f"{told.get('MASTER_ADDR')}: {error}", expected="an address", source="MASTER_ADDR",
        )  # fmt: skip
    addresses = [str(one) for one in facts.items("env.master_addresses")]
    if addresses and all(one.startswith("127.") or one == "::1" for one in addresses) and several:
        yield look.found(
            "rendezvous", "MASTER_ADDR points to the node itself on every node", FAIL, ENVIRONMENT,
            Action.CHANGE_JOB,
            tag="master-loopback", observed=f"{told.get('MASTER_ADDR')} is {', '.join(addresses)}",
            expected="an address that other nodes can reach", source="several nodes take part",
        )  # fmt: skip
    reached = facts.text("env.master_reached")
    if reached not in ("", "yes"):
        yield look.found(
            "rendezvous", "Rank 0 cannot be reached from this node", WARN if "answer" in reached else FAIL,
            ENVIRONMENT, Action.CHECK_NETWORK, tag="master-unreachable",
            observed=f"{told.get('MASTER_ADDR')} port {told.get('MASTER_PORT')}: {reached}",
            expected="a connection, or a refusal while nothing listens there yet", source="tried from here",
        )  # fmt: skip
    own = [str(one) for one in facts.items("env.host_addresses")]
    if several and own and all(one.startswith("127.") or one == "::1" for one in own):
        yield look.found(
            "rendezvous", "This node's own name resolves only to itself", WARN, ENVIRONMENT,
            Action.CHANGE_SETTING, tag="host-loopback", observed=", ".join(own),
            expected="an address that other nodes can reach",
            source="several nodes take part",
            advice="gloo announces it to others; set GLOO_SOCKET_IFNAME, or remove the name from /etc/hosts",
        )  # fmt: skip
    if facts.value("env.master_port_free") is False:
        yield look.found(
            "rendezvous", "MASTER_PORT is already in use", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
            tag="master-port",
            observed=f"port {told.get('MASTER_PORT')}", expected="free on rank 0", source="MASTER_PORT",
        )  # fmt: skip
    interfaces = {str(row[0]): str(row[1]) for row in facts.rows("env.interfaces", 2)}
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = told.get(name, "")
        if not value or not interfaces or value.startswith("^"):
            continue
        exact = value.startswith("=") or name.startswith("GLOO")
        wanted = [one.split(":")[0] for one in value.removeprefix("=").split(",")]
        fitting = [
            one for one in interfaces for want in wanted if (one == want if exact else one.startswith(want))
        ]
        if not any(interfaces[one] in ("up", "unknown") for one in fitting):
            yield look.found(
                "rendezvous", f"{name} names no interface that is up", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
                tag="ifname",
                observed=f"{value}; there are {', '.join(sorted(interfaces))}",
                expected="an interface that is up",
                source=name,
            )  # fmt: skip


def _allocation(look: Look) -> Said:
    """Does torch see the GPUs that the job was given?"""
    seen = look.facts.number("env.device_count")
    wanted = look.expected.gpus
    if (
        seen is None
        or wanted is None
        or look.expected.by_policy
        or look.facts.value("env.cuda_available") is not True
    ):
        return
    if seen < wanted:
        yield look.found(
            "allocation", "The job sees fewer GPUs than it was given", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
            observed=f"torch sees {seen:g}", expected=f"{wanted}", source=look.expected.source,
            advice="CUDA_VISIBLE_DEVICES, devices of the control group or MIG hide them",
        )  # fmt: skip


def _leaked(look: Look) -> Said:
    leaked = look.facts.value("env.leaked")
    if not isinstance(leaked, dict):
        return
    for name, value in leaked.items():
        text = str(value)
        slow = text.lower() in tuple(one.lower() for one in _SLOW.get(name, ()))
        yield look.found(
            "debug-environment", f"{name} slows the job down" if slow else f"{name} is set",
            WARN if slow else INFO,
            ENVIRONMENT if slow else None, Action.CHANGE_JOB if slow else Action.NONE, tag=name.lower(),
            observed=f"{name}={text[:200]}", expected="not set" if slow else "",
            source="environment of the job",
        )  # fmt: skip


CHECKS = (
    Check("interpreter", "The job's Python, torch and CUDA work", _interpreter),
    Check("kernel-image", "The job's torch has code for the GPUs", _kernel_image),
    Check("libraries", "Every library is loaded once", _libraries),
    Check("libraries", "Libraries are those of the wheel", _shadowed),
    *checks_caches.CHECKS,
    Check("rendezvous", "Ranks can find each other", _rendezvous),
    Check("allocation", "The job sees the GPUs it was given", _allocation),
    Check("debug-environment", "No debugging variables are left", _leaked),
)
