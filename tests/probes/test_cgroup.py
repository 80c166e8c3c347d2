"""Limits of control groups: both versions, containers, and groups within groups."""

from __future__ import annotations

from probe_machines import replay

from torchdoctor.model import Reason, State
from torchdoctor.probes.machine import Json, Missing, NotRecorded, Unreadable
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.recording import ReplayMachine
from torchdoctor.probes.source import ProbeSource

GIB = 1 << 30
CGROUP = "/sys/fs/cgroup"


def machine(own: str, mounts: list[list[str]], files: dict[str, str]) -> ProbeSource:
    """A machine with these files under the mounts; all other files of control groups are not there."""

    answers: dict[tuple[str, str], Json | Unreadable] = {("file", path): text for path, text in files.items()}
    answers["file", "/proc/self/cgroup"] = own
    answers["mounts", "/proc/self/mountinfo"] = [[*mount] for mount in mounts]
    return ProbeSource(OtherFilesMissing(answers))


class OtherFilesMissing(ReplayMachine):
    def answer(self, operation: str, subject: str) -> Json:
        try:
            return super().answer(operation, subject)
        except NotRecorded:
            raise Missing(subject) from None


def told(source: ProbeSource) -> dict[str, object]:
    found = {}
    for name in CATALOGUE["cgroup"]:
        fact = source.fetch(name)
        found[name.partition(".")[2]] = fact.value if fact.state is State.KNOWN else fact.state
    assert source.faults == []
    return found


def v2(root: str = "/") -> list[list[str]]:
    return [["/", "/", "ext4", "rw", ""], [CGROUP, root, "cgroup2", "rw", ""]]


def test_v2_in_a_container() -> None:
    files = {
        f"{CGROUP}/memory.max": f"{4 * GIB}\n",
        f"{CGROUP}/memory.current": f"{GIB}\n",
        f"{CGROUP}/memory.peak": f"{2 * GIB}\n",
        f"{CGROUP}/memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\n",
        f"{CGROUP}/cpu.max": "250000 100000\n",
        f"{CGROUP}/pids.max": "100\n",
        f"{CGROUP}/pids.current": "7\n",
    }
    assert told(machine("0::/\n", v2(), files)) == {
        "version": "v2",
        "memory_limit_bytes": 4 * GIB,
        "memory_used_bytes": GIB,
        "memory_peak_bytes": 2 * GIB,
        "oom_kills": 3,
        "cpu_quota": 2.5,
        "pids_limit": 100,
        "pids_used": 7,
    }


def test_v2_the_tightest_limit_is_above_us() -> None:
    job, step = f"{CGROUP}/slurm/job_7", f"{CGROUP}/slurm/job_7/step_0"
    files = {
        f"{step}/memory.max": "max\n",
        f"{step}/memory.current": "5\n",
        f"{step}/memory.events": "oom_kill 0\n",
        f"{step}/cpu.max": "max 100000\n",
        f"{job}/memory.max": f"{8 * GIB}\n",
        f"{job}/memory.current": f"{3 * GIB}\n",
        f"{job}/cpu.max": "400000 100000\n",
        f"{CGROUP}/slurm/memory.max": f"{64 * GIB}\n",
    }
    found = told(machine("0::/slurm/job_7/step_0\n", v2(), files))
    assert found["memory_limit_bytes"] == 8 * GIB
    assert found["memory_used_bytes"] == 3 * GIB  # of the group that has the limit
    assert found["cpu_quota"] == 4.0
    assert found["oom_kills"] == 0


def test_v2_without_limits() -> None:
    files = {f"{CGROUP}/user.slice/memory.max": "max\n", f"{CGROUP}/user.slice/memory.current": "9\n"}
    found = told(machine("0::/user.slice\n", v2(), files))
    assert found["memory_limit_bytes"] is State.ABSENT
    assert found["memory_used_bytes"] == 9
    assert found["cpu_quota"] is State.ABSENT
    assert found["pids_limit"] is State.UNKNOWN  # no file of that controller is to be seen


def test_v2_path_of_the_host_seen_from_a_container() -> None:
    files = {f"{CGROUP}/memory.max": f"{GIB}\n"}
    for own in ("0::/../../kubepods/pod1\n", "0::/docker/abc\n"):
        root = "/docker/abc" if "docker" in own else "/"
        assert told(machine(own, v2(root), files))["memory_limit_bytes"] == GIB


def test_v1() -> None:
    own = "11:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:pids:/docker/abc\n1:name=systemd:/docker/abc\n"
    mounts = [
        [f"{CGROUP}/memory", "/docker/abc", "cgroup", "ro", "rw,memory"],
        [f"{CGROUP}/cpu,cpuacct", "/docker/abc", "cgroup", "ro", "rw,cpu,cpuacct"],
        [f"{CGROUP}/pids", "/docker/abc", "cgroup", "ro", "rw,pids"],
    ]
    files = {
        f"{CGROUP}/memory/memory.limit_in_bytes": f"{2 * GIB}\n",
        f"{CGROUP}/memory/memory.usage_in_bytes": f"{GIB}\n",
        f"{CGROUP}/memory/memory.max_usage_in_bytes": f"{2 * GIB}\n",
        f"{CGROUP}/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        f"{CGROUP}/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
        f"{CGROUP}/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        f"{CGROUP}/pids/pids.max": "max\n",
        f"{CGROUP}/pids/pids.current": "4\n",
    }
    assert told(machine(own, mounts, files)) == {
        "version": "v1",
        "memory_limit_bytes": 2 * GIB,
        "memory_used_bytes": GIB,
        "memory_peak_bytes": 2 * GIB,
        "oom_kills": 2,
        "cpu_quota": 1.5,
        "pids_limit": State.ABSENT,
        "pids_used": 4,
    }


def test_v1_without_limits() -> None:
    own = "4:memory:/\n1:cpu:/\n0::/\n"
    mounts = [
        [f"{CGROUP}/memory", "/", "cgroup", "rw", "rw,memory"],
        [f"{CGROUP}/cpu", "/", "cgroup", "rw", "rw,cpu"],
        [f"{CGROUP}/unified", "/", "cgroup2", "rw", ""],
    ]
    files = {
        f"{CGROUP}/memory/memory.limit_in_bytes": "9223372036854771712\n",
        f"{CGROUP}/cpu/cpu.cfs_quota_us": "-1\n",
        f"{CGROUP}/cpu/cpu.cfs_period_us": "100000\n",
    }
    found = told(machine(own, mounts, files))
    assert found["version"] == "hybrid"
    assert found["memory_limit_bytes"] is State.ABSENT
    assert found["cpu_quota"] is State.ABSENT


def test_no_control_groups() -> None:
    found = told(machine("", [["/", "/", "ext4", "rw", ""]], {}))
    assert set(found.values()) == {State.ABSENT}


def test_limits_that_may_not_be_read() -> None:
    closed = Unreadable("/proc/self/cgroup", Reason.NOT_PERMITTED)
    source = replay({("file", "/proc/self/cgroup"): closed})
    fact = source.fetch("cgroup.memory_limit_bytes")
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.NOT_PERMITTED)


def test_a_limit_file_that_is_nowhere_is_no_absent_limit() -> None:
    """A mount of control groups that shows no files must not read as "no limit"."""
    fact = machine("0::/a/b\n", v2(), {}).fetch("cgroup.memory_limit_bytes")
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.NOT_PERMITTED)


def test_garbage_in_a_limit() -> None:
    files = {f"{CGROUP}/memory.max": "lots\n", f"{CGROUP}/cpu.max": "??\n"}
    source = machine("0::/\n", v2(), files)
    assert source.fetch("cgroup.memory_limit_bytes").reason is Reason.UNPARSABLE
    assert source.faults == []
