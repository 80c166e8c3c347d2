"""A Slurm cluster on this machine's loopback: one controller and several nodes, all of Debian's packages."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

TOOLS = ("slurmctld", "slurmd", "scontrol", "sinfo", "srun", "munged", "munge")

_CONF = """\
ClusterName=try
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={root}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/ctld.pid
SlurmdPidFile={root}/%n.pid
SlurmctldLogFile={root}/ctld.log
SlurmdLogFile={root}/%n.log
SlurmctldPort={port}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SchedulerType=sched/builtin
MpiDefault=none
SwitchType=switch/none
SlurmdTimeout=60
PrologFlags=Alloc
{prolog}
{nodes}
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """Programs of Slurm and munge that are not installed."""
    return [name for name in TOOLS if shutil.which(name, path=_path()) is None]


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _free_ports(number: int) -> int:
    """The first of so many ports in a row that nobody holds, below those that the kernel hands out."""
    for _ in range(100):
        first = random.randrange(20_000, 32_000)
        with ExitStack() as held:
            try:
                for port in range(first, first + number):
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first
    raise OSError(f"no {number} free ports in a row")


class Cluster:
    """``with Cluster(folder, nodes=2, prolog=…) as cluster``: started at entry, ended with all it started."""

    def __init__(
        self,
        root: Path,
        nodes: int = 2,
        prolog: Path | None = None,
        task_prolog: Path | None = None,
        cpus: int = 1,
    ) -> None:
        self.root = root
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.environ = {**os.environ, "PATH": _path(), "SLURM_CONF": str(root / "slurm.conf")}
        self._running: list[subprocess.Popen[bytes]] = []
        for name in ("state", "spool"):
            (root / name).mkdir(parents=True, exist_ok=True)
        lines = [f"Prolog={prolog}" if prolog else "", f"TaskProlog={task_prolog}" if task_prolog else ""]
        host = socket.gethostname()
        first = _free_ports(1 + nodes)
        nodes_text = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={first + number} CPUs={cpus}"
            for number, name in enumerate(self.nodes, start=1)
        )
        (root / "slurm.conf").write_text(
            _CONF.format(host=host, root=root, port=first, prolog="\n".join(lines), nodes=nodes_text)
        )

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        self.root.chmod(0o755)
        key = self.root / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        munge = [
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.root}/munge.socket",
            f"--pid-file={self.root}/munge.pid", f"--log-file={self.root}/munge.log",
            f"--seed-file={self.root}/munge.seed",
        ]  # fmt: skip
        self._spawn("munged", munge)
        self._wait(lambda: (self.root / "munge.socket").exists(), "munged")
        self._spawn("slurmctld", ["slurmctld", "-D", "-c", "-f", str(self.root / "slurm.conf")])
        for name in self.nodes:
            (self.root / "spool" / name).mkdir(exist_ok=True)
            self._spawn(name, ["slurmd", "-D", "-N", name, "-f", str(self.root / "slurm.conf")])
        self._wait(lambda: set(self.states().values()) == {"idle"}, "idle nodes")

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._running):
            child.terminate()
        for child in reversed(self._running):
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _spawn(self, name: str, argv: list[str]) -> None:
        with (self.root / f"{name}.out").open("wb") as out:
            self._running.append(
                subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environ)
            )

    def _wait(self, ready: object, what: str, limit_s: float = 40) -> None:
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if callable(ready) and ready():
                return
            time.sleep(0.2)
        logs = "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-1500:]}"
            for path in self.root.glob("*.[lo][ou][gt]")
        )
        raise TimeoutError(f"no {what} within {limit_s} s\n{logs}")

    def run(self, *argv: str, limit_s: float = 60) -> subprocess.CompletedProcess[str]:
        """One of Slurm's commands, with what it printed."""
        return subprocess.run(
            argv, capture_output=True, text=True, env=self.environ, timeout=limit_s, stdin=subprocess.DEVNULL
        )

    def states(self) -> dict[str, str]:
        """The state of each node, in sinfo's short words; empty while the controller does not answer."""
        found = self.run("sinfo", "-h", "-N", "-o", "%N %t")
        return dict(line.split() for line in found.stdout.splitlines()) if found.returncode == 0 else {}

    def reason(self, node: str) -> str:
        """Why a node is drained; "" when it is not."""
        found = self.run("sinfo", "-h", "-n", node, "-o", "%E").stdout.strip()
        return "" if found == "none" else found

    def until(self, node: str, states: tuple[str, ...], limit_s: float = 30) -> str:
        """Wait until the node is in one of the states; returns it."""
        self._wait(lambda: self.states().get(node) in states, f"{node} in {states}", limit_s)
        return self.states()[node]

    def all_idle(self, limit_s: float = 20) -> bool:
        """Does every node come to rest without being drained? A job that ended leaves it after a moment."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end and set(self.states().values()) != {"idle"}:
            time.sleep(0.2)
        return set(self.states().values()) == {"idle"}

    def resume(self, node: str) -> None:
        self.run("scontrol", "update", f"nodename={node}", "state=resume")
        self.until(node, ("idle",))
