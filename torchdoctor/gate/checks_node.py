"""Judging the machine around the GPUs: networks, disks, mounts, shared memory, limits, clocks, processes."""

from __future__ import annotations

from statistics import median

from torchdoctor.gate.finding import Action, Untold
from torchdoctor.gate.look import ENVIRONMENT, FABRIC, FAIL, INFO, NODE, WARN, Check, Look, Said
from torchdoctor.model import counted

_UNLIMITED = 2**63 - 1
_GIB = 1024**3
_OWN = ("/", "/tmp", "/var", "/var/tmp")  # without these a node does not work
_REMOTE = (
    "nfs", "nfs4", "lustre", "cifs", "smb3", "ceph", "beegfs", "gpfs", "glusterfs", "9p", "weka", "fuse",
)  # fmt: skip
# bits of /proc/sys/kernel/tainted that tell of trouble: machine check, bad page, died (oops), soft lockup
_TROUBLE = {4: "machine check", 5: "bad memory page", 7: "the kernel died (oops)", 14: "soft lockup"}


def _network(look: Look) -> Said:
    """InfiniBand and RoCE. Without a policy a port that is down is only told: spare ports are common."""
    yield from look.untold("network", "node.ib_ports")
    ports = look.facts.rows("node.ib_ports", 7)
    wanted = look.policy.expected("ib_ports")
    rate_wanted = look.policy.expected("ib_rate_gbps")
    active = [row for row in ports if row[2] == "ACTIVE"]
    down = [f"{row[0]} port {row[1]}: {row[2]}, {row[3]}" for row in ports if row[2] != "ACTIVE"]
    if wanted is not None and len(active) < wanted:
        yield look.found(
            "network", "InfiniBand or RoCE ports are down", FAIL, NODE, Action.CHECK_NETWORK, tag="ib-down",
            observed=f"{len(active)} active", expected=f"{wanted} active", evidence=tuple(down),
            source=f"{look.policy.path}: expect.ib_ports",
        )  # fmt: skip
    elif wanted is None and down and active:
        # a port with a signal but no route is trouble; one without a cable may be spare
        linked = [row for row in ports if row[2] != "ACTIVE" and row[3] == "LinkUp"]
        yield look.found(
            "network", "InfiniBand or RoCE ports are not active", WARN, NODE, Action.CHECK_NETWORK,
            tag="ib-down",
            observed=f"{len(active)} of {len(ports)} active",
            expected="all, or [expect] ib_ports in the policy",
            evidence=tuple(down), advice="no subnet manager answers" if linked else "",
        )  # fmt: skip
    rates = [float(row[4]) for row in active if isinstance(row[4], (int, float))]
    for row in active:
        rate = float(row[4]) if isinstance(row[4], (int, float)) else 0.0
        best = rate_wanted or median(rates)
        if rate < best:
            slow = FAIL if rate_wanted else WARN
            yield look.found(
                "network", "A port is slower than it should be", slow, NODE, Action.CHECK_NETWORK,
                tag="ib-rate",
                observed=f"{row[0]} port {row[1]}: {rate:g} Gb/s", expected=f"{best:g} Gb/s",
                source=f"{look.policy.path}: expect.ib_rate_gbps" if rate_wanted else "its siblings",
            )  # fmt: skip
        if isinstance(row[6], int) and row[6] > look.limit("ib_link_downs_warn"):
            yield look.found(
                "network", "A port's link went down often", WARN, NODE, Action.CHECK_NETWORK, tag="ib-flap",
                observed=f"{row[0]} port {row[1]}: {counted(row[6], 'time')}",
                source=look.limit_source("ib_link_downs_warn"),
                expected=f"at most {look.limit('ib_link_downs_warn'):g}",
            )  # fmt: skip


def _mounts(look: Look) -> Said:
    yield from look.untold("mounts", "mounts.answers")
    seconds = look.facts.number("mounts.limit_s") or 0
    for row in look.facts.rows("mounts.hung", 2):
        if not isinstance(row[0], str):
            continue
        # a server that is down would drain every node that mounts it
        remote = str(row[1]).split(".")[0] in _REMOTE
        yield look.found(
            "mounts", "A mounted file system does not answer", FAIL, FABRIC if remote else NODE,
            Action.CHECK_NETWORK if remote else Action.REBOOT, tag="mount-hung",
            observed=f"{row[0]} ({row[1]}): no answer within {seconds:g} s", expected="an answer",
            source="built in: deadline",
        )  # fmt: skip
    answers = {str(row[0]): row for row in look.facts.rows("mounts.answers", 4)}
    for place in look.policy.expected("mounts") or ():
        if place not in answers and not any(row[0] == place for row in look.facts.rows("mounts.hung", 1)):
            yield look.found(
                "mounts", "A file system is not mounted", FAIL, NODE, Action.CHANGE_SETTING,
                tag="mount-missing",
                observed=f"nothing mounted at {place}", expected=place,
                source=f"{look.policy.path}: expect.mounts",
            )  # fmt: skip
    for place, row in answers.items():
        if isinstance(row[3], str):
            yield look.found(
                "mounts", "A mounted file system gives an error", FAIL if "tale" in row[3] else WARN,
                FABRIC if str(row[1]).split(".")[0] in _REMOTE else NODE,
                Action.CHECK_NETWORK, tag="mount-error", observed=f"{place} ({row[1]}): {row[3]}",
                expected="an answer",
                source="statvfs",
            )  # fmt: skip


def _disks(look: Look) -> Said:
    for row in look.facts.rows("mounts.answers", 4):
        place, kind, options, space = row[0], str(row[1]), str(row[2]).split(","), row[3]
        if (
            not isinstance(space, list)
            or len(space) < 5
            or kind in ("tmpfs", "9p")
            or not _disk(str(place), options)
        ):
            continue
        total, free, files, files_free = (
            float(one) if isinstance(one, (int, float)) else 0.0 for one in space[:4]
        )
        remote = kind.split(".")[0] in _REMOTE
        # disks for data are filled on purpose, and a full file server is no node's fault
        own = place in _OWN or (place in (look.policy.expected("mounts") or ()) and not remote)
        if space[4] is True and place in _OWN:
            inside = bool(look.container) and place == "/"
            yield look.found(
                "disk", "A file system is read-only", INFO if inside else FAIL, NODE, Action.INSPECT,
                tag="disk-ro",
                observed=f"{place} ({kind}) is read-only", expected="writable", source="statvfs",
            )  # fmt: skip
            continue
        if (
            total
            and free < look.limit("disk_free_fail_bytes")
            and total > 4 * look.limit("disk_free_fail_bytes")
        ):
            yield look.found(
                "disk", "A file system is full", FAIL if own else WARN,
                FABRIC if remote else NODE, Action.CLEAN_UP, tag="disk-full",
                observed=f"{place}: {free / 1e6:.0f} MB free",
                source=look.limit_source("disk_free_fail_bytes"),
                expected=f"at least {look.limit('disk_free_fail_bytes') / 1e6:.0f} MB",
            )  # fmt: skip
        elif total and free / total < look.limit("disk_free_warn_share"):
            yield look.found(
                "disk", "A file system is nearly full", WARN, NODE, Action.CLEAN_UP, tag="disk-low",
                observed=f"{place}: {free / 1e9:.1f} GB of {total / 1e9:.0f} GB free",
                expected=f"at least {look.limit('disk_free_warn_share'):.0%}",
                source=look.limit_source("disk_free_warn_share"),
            )  # fmt: skip
        if files and files_free / files < look.limit("inodes_free_warn_share"):
            yield look.found(
                "disk", "A file system has almost no inodes left", WARN, NODE, Action.CLEAN_UP,
                tag="inodes-low",
                observed=f"{place}: {files_free:.0f} of {files:.0f} inodes free",
                expected=f"at least {look.limit('inodes_free_warn_share'):.0%}",
                source=look.limit_source("inodes_free_warn_share"),
            )  # fmt: skip


def _disk(place: str, options: list[str]) -> bool:
    """Images that are mounted read-only on purpose are full, and no disk of the node's own."""
    return "ro" not in options or place in _OWN


def _shm(look: Look) -> Said:
    yield from look.untold("shm", "node.shm_bytes")
    size = look.facts.number("node.shm_bytes")
    if size is not None:
        for weight, name, title in (
            (FAIL, "shm_fail_bytes", "/dev/shm is too small for DataLoader workers"),
            (WARN, "shm_warn_bytes", "/dev/shm is small"),
        ):
            if size <= look.limit(name):
                yield look.found(
                    "shm", title, weight, ENVIRONMENT, Action.CHANGE_JOB,
                    observed=f"{size / 1024**2:.0f} MiB",
                    expected=f"more than {look.limit(name) / 1024**2:.0f} MiB",
                    source=look.limit_source(name),
                    advice="docker run --shm-size=16g, or an emptyDir of medium Memory",
                )  # fmt: skip
                break
        free = look.facts.number("node.shm_free_bytes")
        old = look.facts.number("node.shm_leftovers") or 0
        if free is not None and size and free / size < 0.1:
            yield look.found(
                "shm", "/dev/shm is nearly full", WARN, NODE, Action.CLEAN_UP, tag="shm-full",
                observed=f"{free / 1024**2:.0f} MiB free, {counted(int(old), 'file')} left by torch or NCCL",
                expected="10 % free",
                source="built in",
            )  # fmt: skip


def _ulimits(look: Look) -> Said:
    yield from look.untold("ulimits", "node.nofile", "node.memlock")
    files, locked = look.facts.items("node.nofile"), look.facts.items("node.memlock")
    if len(files) == 2 and isinstance(files[1], int) and files[1] < look.limit("nofile_hard_warn"):
        yield look.found(
            "ulimits", "Open-file limit is low", WARN, ENVIRONMENT, Action.CHANGE_SETTING, tag="nofile",
            observed=f"hard limit {files[1]}", expected=f"at least {look.limit('nofile_hard_warn'):g}",
            source=look.limit_source("nofile_hard_warn"),
            advice="ulimit -n, LimitNOFILE= of slurmd or the container",
        )  # fmt: skip
    has_ib = any(row[2] == "ACTIVE" for row in look.facts.rows("node.ib_ports", 3))
    if has_ib and len(locked) == 2 and isinstance(locked[1], int) and locked[1] != _UNLIMITED:
        yield look.found(
            "ulimits", "Memory for InfiniBand cannot be locked", FAIL, ENVIRONMENT, Action.CHANGE_SETTING,
            tag="memlock",
            observed=f"{locked[1] // 1024} KiB", expected="unlimited, because there is InfiniBand or RoCE",
            source="built in", advice="ulimit -l unlimited, LimitMEMLOCK=infinity of slurmd or the container",
        )  # fmt: skip


def _cgroup(look: Look) -> Said:
    memory = look.facts.number("node.cgroup_memory_bytes")
    if memory is not None and 0 <= memory < 2 * _GIB and look.count:
        yield look.found(
            "cgroup", "The job may use very little memory", WARN, ENVIRONMENT, Action.CHANGE_JOB,
            observed=f"{memory / _GIB:.1f} GiB",
            expected="at least 2 GiB: importing torch with CUDA takes that much",
            source="built in",
        )  # fmt: skip
    cpus = look.facts.number("node.cpus")
    if cpus is not None and look.count and cpus < (look.expected.gpus or 1):
        yield look.found(
            "cgroup", "The job has fewer CPUs than GPUs", WARN, ENVIRONMENT, Action.CHANGE_JOB,
            tag="cpus", observed=f"{cpus:g}", expected=f"at least {look.expected.gpus or 1}",
            source="built in",
        )  # fmt: skip
    online, present = look.facts.text("node.cpus_online"), look.facts.text("node.cpus_present")
    if online and present and online != present and not look.container:
        yield look.found(
            "cpus", "CPUs are offline", INFO, None, Action.NONE, observed=online, expected=present
        )


def _kernel(look: Look) -> Said:
    taint = int(look.facts.number("node.taint") or 0)
    bad = [words for bit, words in _TROUBLE.items() if taint & (1 << bit)]
    if bad:
        yield look.found(
            "taint", "The kernel had problems since boot", WARN, NODE, Action.REBOOT, observed=", ".join(bad),
            expected="none of these", source="/proc/sys/kernel/tainted",
        )  # fmt: skip
    modules = [str(one) for one in look.facts.items("node.modules")]
    if "nouveau" in modules:
        yield look.found(
            "modules", "The nouveau driver is loaded beside NVIDIA's", WARN, NODE, Action.CHANGE_SETTING,
            observed="nouveau", expected="not loaded", source="/sys/module",
        )  # fmt: skip
    if look.count and "nvidia" in modules and "nvidia_uvm" not in modules and not look.container:
        yield look.found(
            "modules", "nvidia_uvm is not loaded: CUDA programs load it, or fail", WARN, NODE,
            Action.CHANGE_SETTING,
            tag="uvm", observed="no nvidia_uvm", expected="loaded", source="/sys/module",
            advice="modprobe nvidia_uvm",
        )  # fmt: skip


def _clock(look: Look) -> Said:
    yield from look.untold("clock-sync", "node.clock_synchronised")
    offset = look.facts.number("node.clock_offset_s")
    source = look.facts.text("node.clock_source")
    if offset is not None and abs(offset) > look.limit("clock_offset_warn_s"):
        much = abs(offset) > look.limit("clock_offset_fail_s")
        name = "clock_offset_fail_s" if much else "clock_offset_warn_s"
        yield look.found(
            "clock-sync", "The clock is off", FAIL if much else WARN, NODE, Action.RESTART_SERVICE,
            observed=f"{offset:+.3f} s ({source})", expected=f"within {look.limit(name):g} s",
            source=look.limit_source(name), advice="chronyc makestep, or restart the time service",
        )  # fmt: skip
    elif look.facts.value("node.clock_synchronised") is False:
        weight = INFO if look.container else WARN
        yield look.found(
            "clock-sync", "The clock is not synchronised", weight, NODE, Action.RESTART_SERVICE,
            tag="clock-unsynced",
            observed="not synchronised", expected="synchronised", source="adjtimex",
        )  # fmt: skip


def _processes(look: Look) -> Said:
    yield from look.untold("processes", "node.zombies")
    zombies = look.facts.number("node.zombies") or 0
    if zombies > look.limit("zombies_warn"):
        yield look.found(
            "processes", "Many dead processes remain", WARN, NODE, Action.INSPECT, tag="zombies",
            observed=f"{zombies:g}", expected=f"at most {look.limit('zombies_warn'):g}",
            source=look.limit_source("zombies_warn"),
        )  # fmt: skip
    for row in look.facts.rows("node.stuck", 3):
        age = row[2] if isinstance(row[2], (int, float)) else 0
        if age > look.limit("stuck_fail_s"):
            # the age is the process's, not its sleep's: one look cannot tell a busy disk from a dead one
            yield look.found(
                "processes", "A process is in uninterruptible sleep", WARN, NODE, Action.INSPECT, tag="stuck",
                observed=f"process {row[0]} ({row[1]}), begun {age:.0f} s ago", expected="none",
                source=look.limit_source("stuck_fail_s"),
            )  # fmt: skip
            break
    uptime = look.facts.number("node.uptime_s")
    if uptime is not None and uptime < look.limit("uptime_warn_s"):
        yield look.found(
            "uptime", "The node has just been booted", WARN, NODE, Action.NONE, observed=f"{uptime:.0f} s",
            expected=f"at least {look.limit('uptime_warn_s'):g} s", source=look.limit_source("uptime_warn_s"),
        )  # fmt: skip


def _identity(look: Look) -> Said:
    for one in look.untold("node", "node.uid"):
        yield Untold(one.check, one.reason, True)


CHECKS = (
    Check("node", "The machine itself can be examined", _identity),
    Check("network", "InfiniBand and RoCE ports are up and fast", _network),
    Check("mounts", "Mounted file systems answer", _mounts),
    Check("disk", "Disks have space and are writable", _disks, ("mounts.answers",)),
    Check("shm", "Shared memory is large enough", _shm),
    Check("ulimits", "Limits of the process are high enough", _ulimits),
    Check("cgroup", "The control group has headroom", _cgroup, ("node.cgroup_memory_bytes", "node.cpus")),
    Check("modules", "Kernel and its modules are healthy", _kernel, ("node.modules", "node.taint")),
    Check("clock-sync", "The clock is correct", _clock),
    Check("processes", "No dead or stuck processes", _processes),
)
