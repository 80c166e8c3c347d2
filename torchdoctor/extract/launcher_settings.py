"""What the text sets for the ranks to meet: one machine, the master's address and port, Gloo's interface.

And the script that was to set it up, where the shell did not find it.
"""

from __future__ import annotations

from torchdoctor.extract import once_a_text
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

_GLOO = r"\bGLOO_SOCKET_IFNAME=[\"']?([A-Za-z][\w.-]{0,14})"
# as a shell sets it, and as NCCL repeats it: "NCCL_SOCKET_IFNAME set by environment to eth0"
_NCCL = r"\bNCCL_SOCKET_IFNAME(?:=| set (?:by environment )?to )[\"']?([\^=]{0,2}[A-Za-z][\w.,-]{0,60})"
# as an option, a variable of the shell or of os.environ, or the address of init_method
_PORT = (
    r"(?:master[_-]port|main_process_port|MASTER_PORT)[\"'\]]{0,3} ?[= :]{1,3} ?(?:str\()?[\"']?"
    r"([1-9]\d{1,4})\b"
    r"|tcp://[\w.\[\]-]{1,100}:([1-9]\d{1,4})\b"
)
_PORT_MARKS = ("master_port", "master-port", "main_process_port", "MASTER_PORT", "tcp://")
_HOST = (
    r"(?:(?:--master[_-]addr|MASTER_ADDR)[= :]{1,3}[\"']?|tcp://)"
    r"(?!127\.|localhost|0\.0\.0\.0)([A-Za-z\d][\w.-]{0,100})(?=[\s\"',;:)]|$)"
)
_HOST_MARKS = ("master_addr", "master-addr", "MASTER_ADDR", "tcp://")
# one node, as launchers are told and NCCL counts; or a meeting place that no other machine reaches
_ONE = (
    r"(?:--n?nodes|--num[_-](?:machines|nodes)|SLURM_(?:JOB_NUM_NODES|NNODES)|\bn(?:um_)?nodes|\bnum_machines"
    r"|\bnNodes)[ =:]{1,3}1\b(?![:.])"
    r"|\btorch(?:run|\.distributed\.run)\b[^#\n]{1,300}?--standalone\b"
    r"|(?:[-_]addr|MASTER_ADDR)[\"'\]]{0,3} ?[= :]{1,3} ?[\"']?(?:127\.|localhost\b|::1)"
    r"|tcp://(?:127\.|localhost\b|\[::1\])"
)
_ONE_MARKS = ("nodes", "NNODES", "NUM_NODES", "nNodes", "machines", "--standalone", "_addr", "-addr",
              "MASTER_ADDR", "tcp://")  # fmt: skip


@once_a_text
def one_machine(transcript: Transcript) -> bool:
    """Do all ranks run on one machine, as the command or a line of the text says?"""
    for event in transcript.events:
        for shown in (event.text, *(frame.code or "" for frame in event.frames)):
            if any(mark in shown for mark in _ONE_MARKS) and pattern(_ONE).search(shown):
                return True
    return False


@once_a_text
def port(transcript: Transcript) -> int | None:
    for event in transcript.events:
        for shown in (event.text, *(frame.code or "" for frame in event.frames)):
            found = pattern(_PORT).search(shown) if any(mark in shown for mark in _PORT_MARKS) else None
            if found is not None:
                return int(found[1] or found[2])
    return None


@once_a_text
def host(transcript: Transcript) -> str:
    """Where the ranks are told to meet, unless that is each machine's own address."""
    for event in transcript.events:
        if any(mark in event.text for mark in _HOST_MARKS):
            found = pattern(_HOST).search(event.text)
            if found is not None:
                return found[1]
    return ""


@once_a_text
def gloo_interface(transcript: Transcript) -> str:
    return _interface(transcript, "GLOO_SOCKET_IFNAME", _GLOO)


@once_a_text
def nccl_interface(transcript: Transcript) -> str:
    return _interface(transcript, "NCCL_SOCKET_IFNAME", _NCCL)


def _interface(transcript: Transcript, variable: str, form: str) -> str:
    """What the variable is set to, as the text says first; "" where it does not."""
    texts = (event.text for event in transcript.events if variable in event.text)
    return next((found[1] for found in map(pattern(form).search, texts) if found is not None), "")


_LOST = (
    r"^\s*(?P<by>\S{1,300}): line (?P<line>\d{1,5}): "
    r"(?P<path>\S{0,300}/(?!torchrun:)\S{1,100}): No such file or directory\s*$"
)


def lost_script(event: Event, transcript: Transcript) -> tuple[str, str] | None:
    """(path, line of the script that asks for it) of what bash was to read above, and did not find."""
    for one in transcript.events[: event.id]:
        if not one.quoted and (lost := pattern(_LOST).match(one.text[:800])) is not None:
            return lost["path"], lost["line"]
    return None
