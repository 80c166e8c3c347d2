"""What an operator does next about a finding: one step after the other, with the command of each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from torchdoctor.gate.finding import Action, Finding
from torchdoctor.model import Blame, Record
from torchdoctor.records import record


@record(frozen=True, slots=True)
class Step(Record):
    """``run`` is a command, or ""; holes in it: ``{gpu}``, ``{node}``, ``{tag}``, ``{verdict}``."""

    do: str
    run: str = ""
    risk: str = ""


_ROOT = "needs root"
_LOSES = "needs root; ends what runs there"
_DRAIN = Step(
    "Let no new job start here.", "scontrol update NodeName={node} State=DRAIN Reason=torchdoctor:{tag}"
)
_USERS = Step(
    "See that nothing uses the GPU.",
    "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv --id={gpu}",
)
_PASSES = Step("See whether it passes now.", "torchdoctor gate verify {verdict}")
_BACK = Step("Give the node back when it does.", "scontrol update NodeName={node} State=RESUME")
_LOG = Step("Read what the driver wrote about it.", "dmesg --ctime | grep -E 'NVRM|Xid|SXid|AER'", _ROOT)
_STATE = Step("Read the GPU's own state.", "nvidia-smi -q --id={gpu}")
_REPORT = Step("Collect what the vendor asks for.", "nvidia-bug-report.sh", _ROOT)
_DISK = Step("See what is full.", "df --human-readable; df --inodes")

# by what was found: its tag, then its check
_OF_FINDING = {
    "clocks": (Step("Take the limit off.", "nvidia-smi --id={gpu} -rgc; nvidia-smi --id={gpu} -rac", _ROOT),),
    "ecc-off": (
        Step("Switch ECC on.", "nvidia-smi --id={gpu} -e 1", _ROOT),
        Step("Reset the GPU: it counts from then on.", "nvidia-smi --gpu-reset --id={gpu}", _LOSES),
    ),
    "mig": (Step("See how the GPU is divided, and change it.", "nvidia-smi mig -lgi --id={gpu}", _ROOT),),
    "persistence": (Step("Switch it on.", "nvidia-smi --id={gpu} -pm 1", _ROOT),),
    "power-limit": (
        Step("Read the default limit, and set it with -pl WATTS.", "nvidia-smi -q -d POWER --id={gpu}"),
    ),
    "fabric-manager": (
        Step("Restart it.", "systemctl restart nvidia-fabricmanager", _LOSES),
        Step("Read why it ended.", "journalctl -u nvidia-fabricmanager --since -1h", _ROOT),
    ),
    "fabric": (
        Step("Read how far it is.", "nvidia-smi -q --id={gpu} | grep -A4 Fabric"),
        Step("Restart the fabric manager.", "systemctl restart nvidia-fabricmanager", _LOSES),
    ),
    "clock-sync": (
        Step("Restart the clock's service.", "systemctl restart chronyd; chronyc tracking", _ROOT),
    ),
}
_OF_ACTION: dict[Action, tuple[Step, ...]] = {
    Action.NONE: (),
    Action.CHANGE_JOB: (Step("See what is wrong with the job's environment.", "torchdoctor check"),),
    Action.RESTART_JOB: (Step("Start the job again from its last checkpoint."),),
    Action.END_PROCESS: (
        Step("See whose processes hold the GPUs.", "torchdoctor gate cleanup"),
        Step(
            "End those whose job is over.", "torchdoctor gate cleanup --kill", "needs root; loses their work"
        ),
    ),
    Action.CHANGE_SETTING: (Step("Change the setting that the finding names, as root."),),
    Action.CLEAN_UP: (_DISK,),
    Action.RESTART_SERVICE: (Step("See which service ended.", "systemctl --failed"),),
    Action.RESET_GPU: (_USERS, Step("Reset the GPU.", "nvidia-smi --gpu-reset --id={gpu}", _LOSES)),
    Action.DRAIN_RESET: (_USERS, Step("Reset all GPUs.", "nvidia-smi --gpu-reset", _LOSES)),
    Action.REBOOT: (Step("Boot it when its jobs have ended.", "scontrol reboot ASAP {node}", _LOSES),),
    Action.CHECK_NETWORK: (
        Step("See which ports are up.", "ibstat; ip -brief link"),
        Step("See which mounts answer.", "findmnt --types nfs,nfs4,lustre,beegfs,ceph"),
    ),
    Action.INSPECT: (_STATE, _LOG),
    Action.RMA: (
        _STATE,
        _REPORT,
        Step("Have the card replaced, then judge the new one.", "torchdoctor gate --tier standard"),
    ),
}


def steps(one: Finding, node: str, verdict: str = "") -> Iterator[Step]:
    """The steps in order. What needs a GPU or a file of the verdict that is not known is left out."""
    of_node = one.blame is Blame.NODE and one.counts
    chosen = _OF_FINDING.get(one.tag) or _OF_FINDING.get(one.check) or _OF_ACTION[one.action]
    after = (_PASSES, _BACK) if one.action is not Action.RMA else (_BACK,)
    gpu = one.uuid or one.pci or ("" if one.gpu is None else str(one.gpu))
    known = {"gpu": gpu, "node": node, "tag": one.tag, "verdict": verdict}
    for step in (*((_DRAIN,) if of_node else ()), *chosen, *(after if of_node else ())):
        holes = re.findall(r"\{(\w+)\}", step.run)
        if all(known[hole] for hole in holes):
            yield Step(
                step.do, step.run.format(**{name: shlex.quote(known[name]) for name in holes}), step.risk
            )
