"""A rule's command as an instruction of a Dockerfile, for an image that is being built.

No shell of the reader's is there, no GPU, and nobody who answers; what a RUN line exports ends with it.
"""

from __future__ import annotations

from torchdoctor.patterns import pattern
from torchdoctor.typed import is_python

_APT = r"(?:apt-get update && )?apt-get install (?:-y )?"
_SETTINGS = r"(?:export )?((?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|[^\s;&|'\"]*) ?)+)"
_UNSET = r"unset ((?:[A-Za-z_]\w* ?)+)"
# ENV takes names of variables, but runs nothing; conda's is set by a shell that activates
_RUNS = r"\$\(|`|\$CONDA_PREFIX"
# of the machine that builds, which a step of the image neither sees nor may change
_OF_HOST = (
    r"\b(?:nvidia-smi|dmesg|modprobe|rmmod|systemctl|journalctl|sysctl|reboot|dkms|fuser|usermod|docker|lspci)"
    r"\b|\bfree -[gh]\b|^git submodule update --init --recursive$"
)
_EXPORTED_LAST = r" && export [^|;]+$"
_CARD = r"TORCH_CUDA_ARCH_LIST=\$\([^\n]*?get_device_capability\(\)[^\n]*?\)'?\"?\)"
_ASKS_GPU = r"\btorch\.cuda\.[a-z_]+\("
_ENVIRONMENT = r"uv venv --python (\d\.\d+)|conda create -n \w+ python=(\d\.\d+)"


def instruction(command: str) -> str | None:
    """The command as ENV, RUN or FROM; as it is, if the host has to run it; None if no step can do it."""
    parts = [part.strip() for part in command.split("; ")]
    inside = [part for part in parts if not pattern(_OF_HOST).search(part)]
    if is_python(command) or not inside:
        return command
    if inside[0] is not parts[0] and "nvidia-smi" not in parts[0]:  # the host's kernel is asked
        return parts[0]
    if (found := pattern(_ENVIRONMENT).search(command)) is not None:
        return f"FROM python:{found[1] or found[2]}"
    last = inside[-1]
    if (found := pattern(_UNSET).fullmatch(last)) is not None:
        return f"ENV {' '.join(f'{name}=' for name in found[1].split())}"
    if (found := pattern(_SETTINGS).fullmatch(last)) is not None:
        return None if pattern(_RUNS).search(last) else f"ENV {found[1].strip()}"
    step = pattern(_CARD).sub("TORCH_CUDA_ARCH_LIST=8.6", "; ".join(inside)).replace("sudo ", "")
    if pattern(_ASKS_GPU).search(step) or step.startswith("export "):
        return None
    step = pattern(_APT).sub("apt-get update && apt-get install -y ", step)
    return f"RUN {pattern(_EXPORTED_LAST).sub('', step)}"
