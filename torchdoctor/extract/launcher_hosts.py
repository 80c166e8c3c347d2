"""On how many machines the ranks run, and the one that alone lacks a file."""

from __future__ import annotations

from torchdoctor.extract import once_a_text, slurm
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

# what launchers are told, and print, of several machines
_SEVERAL = (
    r"(?:--n?nodes|--num[_-](?:machines|nodes)|SLURM_(?:JOB_NUM_NODES|NNODES)|\bn(?:um_)?nodes|\bnum_machines)"
    r"[ =:]{1,3}(?:[2-9]\b|[1-9]\d{1,4}\b)"
    r"|(?:--(?:node|machine)[_-]rank|\bNODE_RANK|SLURM_NODEID)[ =]{1,2}[1-9]"
    r"|(?:\bsrun|#SBATCH|\bsbatch) (?:-\S+ ){0,6}-N ?(?:[2-9]\b|[1-9]\d{1,4}\b)"
    r"|\bcmd = pdsh "
)
_SEVERAL_MARKS = ("node", "NODE", "machine", " -N", "pdsh")
_ADDRESS = r"\d{1,3}(?:\.\d{1,3}){3}"
_BOTH_RANKS = r"\brank ?[=:] ?(\d{1,6}),? ?\(?local_rank ?[=:] ?(\d{1,4})\b"
_RANK_AND_CARD = r"\brank (\d{1,6}) nranks \d{1,6} cudaDev ([1-9]\d?)\b"  # 0: it may see one card alone
_MOST_GPUS = 16  # that one machine has
_FROM_ROOT = r"No such file or directory: '/"
_OF_RANKS = (EventKind.NCCL, EventKind.WATCHDOG, EventKind.LAUNCHER, EventKind.SCHEDULER)


@once_a_text
def several_nodes(transcript: Transcript) -> bool:
    hosts = set()
    for event in transcript.events:
        text = event.text  # a job script's options are comments
        if any(mark in text for mark in _SEVERAL_MARKS) and pattern(_SEVERAL).search(text):
            return True
        if event.quoted:
            continue
        if event.host and (event.rank is not None or event.kind in _OF_RANKS):
            hosts.add(event.host)
            if pattern(_ADDRESS).fullmatch(event.host):  # Ray and pdsh: another machine
                return True
        elif event.kind is EventKind.SCHEDULER and (left := pattern(slurm.ENDED).search(text)) is not None:
            hosts.add(left["host"])
        if len(hosts) > 1 or (event.rank is not None and event.rank >= _MOST_GPUS):
            return True
        both = pattern(_BOTH_RANKS).search(text) if "local_rank" in text else None
        if "cudaDev" in text:
            both = pattern(_RANK_AND_CARD).search(text)
        if both is not None and int(both[1]) > int(both[2]):
            return True
    return False


def only_host(event: Event, transcript: Transcript) -> str | None:
    """Of several machines the only one whose ranks did not find a file; None where others did not either."""
    if event.host is None or not (event.type or "").endswith("FileNotFoundError"):
        return None
    if pattern(_FROM_ROOT).search(event.text[:400]) is None or not several_nodes(transcript):
        return None
    same = (one for one in transcript.events if one.type == event.type and one.text == event.text)
    return event.host if all(one.host == event.host for one in same) else None
