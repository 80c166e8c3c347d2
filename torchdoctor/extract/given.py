"""What the reader told the program, in the options and settings that the text repeats."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "given.device": "text: the device in options and settings, as mps or cpu; absent among several",
    "given.device_option": "text: the option of a command that names a GPU, with its value: --device cuda",
    "given.refused": "text: the GPU that this line says is not there, so that the CPU is taken; absent where "
    "no option and no word asks for it, and no card is shown",
    "given.logged": "text: the logged metric whose name is nearest to that of the message, or the only one "
    "of its loop; absent for none",
    "given.standalone": "bool: torchrun was told --standalone, by which it takes a free port itself",
    "given.port": "str: torchrun's option for the master port, which comes before its variable",
    "given.rank": "str: an argument of the script that gives all ranks the same rank, as --local_rank 0",
    "given.half": "bool: half precision, or a scale for its losses, shows somewhere in the text",
    "given.value": "text: what the variable was set to before, of which this line says that it is not set",
    "given.output_dir": "str: the folder for checkpoints, by the option output_dir; absent among several",
}

_DEVICE = r"\bdevice(?:[-_]type)?['\"]?(?: ?[=:] ?| )['\"]?(mps|cpu|cuda|xpu)\b"
_DEVICE_OPTION = r"(?<!\S)(--device[ =](?:cuda(?::\d{1,2})?|xpu|mps|gpu))(?!\S)"
# Lightning: what a callback watches, and what is there
_WATCHED = (
    r"(?:monitor='|metric `?)(?P<name>[\w./-]{1,100})[^\[\n]{1,200}(?:\[|following: `)"
    r"(?P<logged>[^\]\n]{1,2000})"
)
_CHARS = 2_000  # of an event
_GPU = r"(?:cuda|gpu|rocm|hip|mps|xpu)(?::\d)?(?!/tpu)\b['\"`]?"
_NOT = r"(?:not (?:be )?(?:available|found|detected|usable|supported)|unavailable)"
_FOUND = r"(?:found|detected|available)"
_NONE = rf"\b(?:no|neither) (?:\w{{2,20}} ){{0,2}}?(?:{_GPU}|accelerat\w{{2,6}}\b)[^\n]{{0,40}}?{_FOUND}"
_INSTEAD = r"\b(?:us(?:e|ing)|switch\w*|fall(?:s|ing)?[ -]?back|default\w*|run(?:s|ning)?|continu\w+)\b"
# "Device 'cuda' is not available. Switching to 'cpu'.", "No cuda device detected, fallback to CPU!"
_REFUSED = rf"(?i)(?:\b{_GPU}[^\n]{{0,60}}?\b{_NOT}|{_NONE})\b[^\n]{{0,40}}?{_INSTEAD}[^\n]{{0,30}}?\bcpu\b"
_ASKED = r"(?i)\brequest\w*|\basked\b|\bspecif\w+|\bdevice ['\"`](?:cuda|gpu|mps|xpu)"
_OPTION = (
    r"(?i)\bdevice(?:[-_]type)?['\"]?(?: ?[=:] ?| )['\"]?(?:mps|cuda|gpu|xpu)\b|--(?:use[-_])?(?:cuda|gpu)\b"
)
_CARD = r"\bNVIDIA-SMI \d|\d-tegra\b|\b(?:GeForce|Quadro|RTX|Tesla) [A-Z]?\d"

# a rank behind the script, of a launcher that gives each process its own in the environment
_LAUNCHED = (
    r"(?:^|[ /])(?:torchrun|accelerate launch|deepspeed|torch\.distributed\.(?:run|launch)) [^\n]{0,300}?"
    r"[\w.-]+\.py [^\n]{0,300}?(?P<rank>--local[_-]rank[ =]\d{1,4})(?=\s|$)"
)
_MACHINE = r"[\w.-]+\.py [^\n]{0,600}?--(?:node[-_]?|machine[-_]?)?rank[ =](?P<rank>\d{1,4})(?=\s|$)"
_PORT = r"(?:\btorchrun|\btorch\.distributed\.run) (?:\S+ ){0,12}?(?P<port>--master[-_]port)[ =]\d"
_OUTPUT_DIR = r"\boutput[-_]dir(?:'?, '|\"?, \"|[\"']?: ?[\"']?|=[\"']?| )(?P<dir>\.{0,2}/[\w./@+-]{1,300})"
_HALF = (
    r"(?i)(?<![a-z])(?:b?f(?:loat)?[_-]?16|16-(?:true|mixed)|c10::half|halftensor|\.half\(|amp(?![a-z])|autocast"
    r"|grad_?scaler|mixed[ _-]precision|loss[ _-]scale|half[ _-]precision)"
)
# "CUDA_HOME environment variable is not set", "environment variable HF_HOME is not defined"
_UNSET = (
    r"\b(?P<name>[A-Z][A-Z0-9_]{2,60})\b[`'\"]?(?: (?:environment )?variable)?(?: is| was| has)? "
    r"not (?:been )?(?:set|defined)\b"
    r"|\bvariable [`'\"]?(?P<other>[A-Z][A-Z0-9_]{2,60})\b[^.\n]{0,30} not (?:set|defined)\b"
)
_STANDALONE = r"(?:\btorchrun|\btorch\.distributed\.run) (?:-\S+ ){0,12}--standalone\b"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of the whole text, and what this event says of a device."""
    yield "device", _device(transcript)
    yield "device_option", _device_option(transcript)
    yield "refused", _refused(event, transcript)
    yield "logged", _logged(event.text[:_CHARS]) if "metric" in event.text else None
    yield "output_dir", _output_dir(transcript)
    yield "half", _half(transcript)
    yield from _launch(transcript).items()
    yield from _set_before(event, transcript)


def _set_before(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The variable that a message misses, with the value that a command above gave it."""
    text = event.text[:_CHARS]
    said = pattern(_UNSET).search(text) if " not " in text else None
    if said is None:
        return
    name = said["name"] or said["other"]
    form = rf"(?:\bexport |\bENV |\$env:|^\s*set ){name} ?[= ] ?[\"']?(?P<value>[^\s\"';&]{{1,200}})"
    for one in reversed(transcript.events[: event.id]):
        typed = list(re.finditer(form, one.text[:_CHARS], re.MULTILINE)) if name in one.text else []
        if typed:
            yield "value", typed[-1]["value"]
            return
    yield "value", None


def _logged(text: str) -> str | None:
    """The same name without its group, or with another one, before one that is only spelt alike."""
    found = pattern(_WATCHED).search(text)
    if found is None:
        return None
    names = pattern(r"[\w./-]+").findall(found["logged"])
    short = found["name"].rpartition("/")[2]
    same = [name for name in names if name.rpartition("/")[2] == short]
    if not same:
        from difflib import get_close_matches

        same = get_close_matches(found["name"], names, n=1, cutoff=0.8)
    if not same:  # another metric of the same loop: val_wer, where val_loss is watched
        loop = pattern(r"[^\W_]+[_/]").match(found["name"])
        same = [name for name in names if loop is not None and name.startswith(loop[0])]
    return same[0] if len(same) == 1 else None


@once_a_text
def _device(transcript: Transcript) -> str | None:
    named = {
        found[1]
        for event in transcript.events
        if "device" in event.text
        for found in pattern(_DEVICE).finditer(event.text[:_CHARS])
    }
    return named.pop() if len(named) == 1 else None


@once_a_text
def _device_option(transcript: Transcript) -> str | None:
    texts = (event.text[:_CHARS] for event in transcript.events if "device" in event.text)
    named = {found[1] for text in texts for found in pattern(_DEVICE_OPTION).finditer(text)}
    return named.pop() if len(named) == 1 else None


@once_a_text
def _launch(transcript: Transcript) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for event in transcript.events:
        text = event.text[:_CHARS]
        if "--standalone" in text and pattern(_STANDALONE).search(text):
            found["standalone"] = True
        if "port" in text and (line := pattern(_PORT).search(text)) is not None:
            found["port"] = line["port"]
        if "rank" in text and (line := pattern(_LAUNCHED).search(text)) is not None:
            found["rank"] = line["rank"]
    return found


@once_a_text
def machine(transcript: Transcript) -> int | None:
    """The number that a command gives to a program which spawns its ranks itself: it is the machine's."""
    texts = (event.text[:_CHARS] for event in transcript.events)
    found = (pattern(_MACHINE).search(text) for text in texts if "rank" in text and ".py" in text)
    return next((int(one["rank"]) for one in found if one is not None), None)


@once_a_text
def _output_dir(transcript: Transcript) -> str | None:
    named = {
        found["dir"].rstrip("/")
        for event in transcript.events
        if "output" in event.text
        for found in pattern(_OUTPUT_DIR).finditer(event.text[:_CHARS])
    }
    return named.pop() if len(named) == 1 else None


@once_a_text
def _half(transcript: Transcript) -> bool:
    """Does a message, a setting or a source line speak of half precision?"""
    form = pattern(_HALF)
    return any(
        form.search(part[:_CHARS]) is not None
        for event in transcript.events
        for part in (event.text, *(frame.code for frame in event.frames))
    )


def _refused(event: Event, transcript: Transcript) -> str | None:
    text = event.text[:_CHARS]
    found = pattern(_REFUSED).search(text) if "cpu" in text.lower() else None
    if found is None or not (pattern(_ASKED).search(text) or _wanted(transcript)):
        return None
    named = pattern(_GPU).search(found[0].lower())
    return named[0].strip("'\"`") if named is not None else "a GPU"


@once_a_text
def _wanted(transcript: Transcript) -> bool:
    """Does an option ask for a GPU, or does the text show one of NVIDIA's?"""
    texts = (event.text[:_CHARS] for event in transcript.events)
    return any(pattern(_OPTION).search(text) or pattern(_CARD).search(text) for text in texts)
