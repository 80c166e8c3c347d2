"""The local folder that a model was to be loaded from, and the file that was not found there.

Sources: transformers' cached_file (4.20 to 5) and from_pretrained (4.0 to 5), diffusers' and PEFT's own, and
huggingface_hub's check of a repository's name, which gets what is no folder.
A message on files without a name (a tokenizer has several), or on a key, names no file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "folder.path": "text: the local folder that a model was to be loaded from",
    "folder.lacks": "text: the file that it lacks; absent where the folder itself is not there",
    "folder.part": "text: of that file: config, weights, adapter, or processor (the tokenizer's, too)",
    "folder.given": "text: the option by which the folder was given, as --model",
}
_FORMS = (
    r"(?P<path>\S{1,300}) does not appear to have a file named "
    r"(?P<file>[^\s,]{1,120}?)(?:\.? Checkout\b|, |\.?$)",
    r"Error no file named (?P<file>[^\s,]{1,120}?),? (?:[^\n]{1,300} )?"
    r"found in directory (?P<path>\S{1,300})",
    r"Can't find '(?P<file>adapter_config\.json)' at '(?P<path>[^'\n]{1,300})'",
    r"Incorrect path_or_model_id: '(?P<path>[^'\n]{1,300})'",
    r"Repo id must be in the form 'repo_name' or 'namespace/repo_name': '(?P<path>[^'\n]{1,300})'",
    r"Can't load (?:the )?(?P<what>[a-z ]{5,20}) (?:for|of) '(?P<path>[^'\n]{1,300})'\. If you were trying"
    r"(?:[^\n]{1,900} directory containing an? (?:file named )?(?P<file>[\w.-]{1,120}\.[a-z]{1,12})\b)?",
    r"Unrecognized model in (?P<path>\S{1,300}?)\. Should have a `model_type` key",
)
# nothing else names a folder so: a repository of the Hub has one slash at most
_LOCAL = r"[/~]|\.{1,2}/|[A-Za-z]:[\\/]|[^/]*/[^/]*/|[^\\]*\\"
_PARTS = {"tokenizer": "processor", "configuration": "config", "model": "weights"}
_OF_PROCESSOR = r"processor_config|tokenizer|vocab|merges|special_tokens|chat_template"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of a message that names a folder; nothing for another one."""
    text = event.text[:2_000]
    found = next((told for form in _FORMS if (told := pattern(form).search(text)) is not None), None)
    if found is None or not _is_folder(found["path"], text):
        return
    path = found["path"].rstrip(".") if "found in directory" in found[0] else found["path"]
    parts = found.groupdict()
    file = parts.get("file")
    yield "path", path
    yield "lacks", file
    yield "part", _part(file) if file is not None else _PARTS.get(parts.get("what") or "")
    yield "given", _given(path, transcript)


def _is_folder(path: str, text: str) -> bool:
    """A folder, and no repository: by its form, or because no revision was asked of the Hub."""
    return pattern(_LOCAL).match(path) is not None or "/tree/None" in text or "in directory " in text


def _part(file: str) -> str | None:
    if file.startswith("adapter_"):
        return "adapter"
    if pattern(_OF_PROCESSOR).search(file) is not None:
        return "processor"
    if file.endswith((".bin", ".safetensors", ".index.json")):
        return "weights"
    return "config" if file in ("config.json", "model_index.json") else None


def _given(path: str, transcript: Transcript) -> str | None:
    form = re.compile(rf"(?<![\w-])(--[a-z][\w-]{{1,60}})[= ]['\"]?{re.escape(path)}/?(?=['\"\s]|$)")
    told = (form.search(event.text[:4_000]) for event in transcript.events if path in event.text)
    options = {found[1] for found in told if found is not None}
    return options.pop() if len(options) == 1 else None
