"""What a program tried in vain to install for itself by pip, by the words of subprocess over the command."""

from __future__ import annotations

from torchdoctor.extract import torch_extensions
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

# subprocess.CalledProcessError, every Python: the command as a list, or as a line
_FAILED = r"Command [\['\"](?P<command>[^\n]{1,2000}?)['\"\]]{1,2} returned non-zero exit status"
_INSTALLS = r"\bpip3?(?:\.exe)?['\"]?,? ['\"]?install['\"]?,? (?P<what>.*)"
# a requirement begins with its project, an address ends with the file of a wheel or of the sources
_PROJECT = r"(?P<name>[A-Za-z][\w.]*?(?:-[A-Za-z][\w.]*?)*)(?=$|[\s'\",;\[(<>=!~@]|-\d)"


def failed_for(module: str, event: Event, transcript: Transcript) -> str | None:
    """The project of a failed installation above that brings the module; None where there was none.

    The project bears the module's name, or begins with it: ``llama-cpp-python`` brings ``llama_cpp``.
    """
    wanted = torch_extensions.normal(module.partition(".")[0])
    known = torch_extensions.normal(torch_extensions.pip_name(module))
    for other in reversed(transcript.events[: event.id]):
        text = other.text[:4_000]
        if "returned non-zero exit status" not in text or "pip" not in text:
            continue
        failed = pattern(_FAILED).search(text)
        what = pattern(_INSTALLS).search(failed["command"]) if failed is not None else None
        for word in what["what"].split() if what is not None else ():
            project = pattern(_PROJECT).match(word.strip("'\",").rpartition("/")[2])
            name = torch_extensions.normal(project["name"]) if project is not None else ""
            if name in (wanted, known) or name.startswith(f"{wanted}-"):
                return name
    return None
