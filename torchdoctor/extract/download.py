"""What was being downloaded, and to where, as the line above the failure names it.

Sources: torch.hub and torch.utils.model_zoo (every torch), torchvision's and torchaudio's download_url.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchdoctor.extract import Found, parsed, source
from torchdoctor.model import Event, Frame, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "download.url": "text: the address that the last line above says is being fetched, or the message names",
    "download.target": "text: the file that it is written to; absent where the line names a folder, or none",
    "download.loads": "text: the function that fetches a file of weights and loads it, by its frame",
    "download.listed": "text: where pip finds no VERSION+TAG, as 1.12.1+cu113: what it lists of that version",
    "download.own_index": "text: the index that uv or pip was told to ask, none of PyPI's and torch's own",
    "download.refused": "text: why Hugging Face's Hub refused: missing (it shows no such repository), gated, "
    "token (the one that was sent is not valid), disabled, revision or entry (the repository has none such)",
    "download.revision": "text: the branch, tag or commit that was asked of the Hub",
    "download.file": "text: the file that was asked of the Hub",
    "download.repo": "text: the repository that was asked of Hugging Face's Hub, as owner/name",
    "download.folder": "text: where the library that downloads keeps its files, as ~/.cache/clip",
    "download.call": "text: the call in the user's own code that led to the download",
    "download.of_hub": "bool: Hugging Face's Hub, or a library that asks it, is in the message or the frames",
    "download.index": "text: the build whose index of torch's is the only one that pip looked in: cu121",
}
_INDEXES = r"Looking in indexes: (?P<index>[^\n]{1,300}?)\s*$"  # several: between commas
_OF_TORCH = r"https://download\.pytorch\.org/whl/(\w[\w.]*)/?"
# as uv tells with -vv, or as it stands in the command; no password is repeated
_OWN_INDEX = (
    r"Fetching metadata for [\w.-]{1,80} from (?P<told>https?://(?!\S*@)[\w.:/+-]{4,200}?)/[\w.-]+/?(?:\s|$)"
    r"|\b(?:uv|pip)\b[^\n]{0,300}? --(?:default-|extra-)?index(?:-url)?[ =][\"']?(?:[\w-]+=)?"
    r"(?P<asked>https?://(?!\S*@)[\w.:/+-]{4,200})"
    r"|Looking in indexes: (?P<only>https?://(?!\S*@)[\w.:/+-]{4,200})\s*$"
)
_PUBLIC = ("https://pypi.org/", "https://files.pythonhosted.org/", "https://download.pytorch.org/")
_LINE = r"Downloading:? [\"']?(?P<url>https?://[^\s\"'<>]{4,300})[\"']?(?: to (?P<target>[^\s\"'<>]{2,300}))?"
_ASKED = (
    r"HTTPS?ConnectionPool\(host='(?P<host>[\w.-]{1,200})'[^\n]{0,100}?with url: (?P<path>/[^\s'\"()]{0,300})"
)
_NAMED = r"(?P<url>https?://(?!docs\.|pytorch\.org/docs)[^\s\"'<>()]{4,300})"
_TAGGED = (
    r"requirement [\w.-]{1,80}==(?P<version>[\d.]{1,20})\+\w{1,40}[^\n]{0,80}?"
    r"\(from versions: (?P<list>[^()]{1,9000})"
)
# of the exception itself, or of the one that huggingface_hub raises from it; the first of these counts
_REFUSED = (
    ("token", r"Invalid credentials in Authorization header"),
    (
        "gated",
        r"GatedRepoError|(?:Cannot access|trying to access a) gated repo|Access to \w+ \S+ is restricted",
    ),
    ("missing", r"RepositoryNotFoundError|Repository [Nn]ot [Ff]ound for url|not a valid model identifier"),
    ("disabled", r"DisabledRepoError|Access to this resource is disabled"),
    ("revision", r"RevisionNotFoundError|Revision Not Found for url|is not a valid git identifier"),
    (
        "entry",
        r"(?<!Local)EntryNotFoundError|Entry Not Found for url"
        r"|does not appear to have a file named [^\n]{1,400}?"
        r"//huggingface\.co/[\w.-]+(?:/[\w.-]+)?/tree/(?!None)",
    ),
)
_REVISION = r"(?:^|[\s:'\"])(?P<name>[\w.][\w./-]{0,100}) is not a valid git identifier"
_NAMED_FILE = r"does not appear to have a file named (?P<file>[^\s,]{1,120}?)(?:\.? Checkout\b|, |\.?$)"
_FILE = r"https://huggingface\.co/[\w./-]{3,200}?/resolve/(?P<revision>[^\s/]{1,100})/(?P<file>[^\s'\"),?]{1,200})"
_REPO = (
    r"https://huggingface\.co/(?:api/(?:models|datasets|spaces)/|(?:datasets|spaces)/)?"
    r"(?P<repo>(?!(?:api|docs|models|datasets|settings|None)\b)[\w.-]{1,96}(?:/[\w.-]{1,96})?)"
    r"(?:/(?:resolve|revision|tree|raw)/|(?=[\s'\"),]|\.?$))"
)
_NEAR = 12  # events between the answer of the server and what is raised from it
# by the file that downloads, where no line of the frames says it
_KEEPS = {"whisper/__init__.py": "~/.cache/whisper", "torch/hub.py": "~/.cache/torch (TORCH_HOME)",
          "torch/utils/model_zoo.py": "~/.cache/torch (TORCH_HOME)"}  # fmt: skip
_IN_HOME = r"[\"'](?P<folder>~/[\w.-][\w./-]{1,100})[\"']"
_ASK_HUB = frozenset({
    "huggingface_hub", "transformers", "datasets", "diffusers", "sentence_transformers", "tokenizers", "timm",
    "vllm", "sglang", "evaluate", "peft",
})  # fmt: skip
_MOST_OF_LINE = 100  # characters that a call may take in a sentence
_LOADS = ("load_state_dict_from_url", "load_url")


def _of_message(text: str) -> str | None:
    """The address that requests or a hub's client was refused; that of a page of advice is none."""
    asked = pattern(_ASKED).search(text) if "ConnectionPool(" in text else None
    if asked is not None:
        return f"https://{asked['host']}{asked['path']}"
    named = pattern(_NAMED).search(text) if " url: " in text or "URL: " in text else None
    return named["url"].rstrip(".,;:") if named is not None else None


def _of_hub(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Why the hub refused, and what was asked of it: by the exception, or those that were raised from it.

    An empty line stands in the message of huggingface_hub, and what is behind it may be lines of its own.
    """
    named = f"{event.type} {event.text}"
    if not event.frames and not any(word in named for word in ("lient Error", "huggingface", "gated repo")):
        return
    chain = [event]
    for later in transcript.events[event.id + 1 : event.id + _NEAR]:
        if {one.id for one in chain} & {relation.event for relation in later.relations}:
            chain.append(later)
    behind = transcript.events[event.id + 1 : event.id + 4] if "(Request ID" in event.text else []
    texts = [f"{one.type}: {one.text[:2_000]}" for one in (*chain, *behind)]
    repos = (pattern(_REPO).search(text) for text in texts if "huggingface.co/" in text)
    repo = next((found["repo"].rstrip(".") for found in repos if found is not None), None)
    why = next((why for why, form in _REFUSED for text in texts if pattern(form).search(text)), None)
    yield "refused", None if why == "missing" and repo is None else why
    yield "repo", repo
    asked = next((found for text in texts if (found := pattern(_FILE).search(text)) is not None), None)
    said = next((found for text in texts if (found := pattern(_REVISION).search(text)) is not None), None)
    revision = said["name"] if said is not None else asked["revision"] if asked is not None else None
    yield "revision", revision
    file = next((found for text in texts if (found := pattern(_NAMED_FILE).search(text)) is not None), asked)
    yield "file", file["file"].rstrip(".") if file is not None else None


def _own_index(event: Event, transcript: Transcript) -> str | None:
    """The address of the index, as the last line above the failure tells it."""
    for one in reversed(transcript.events):
        if one.id > event.id or "http" not in one.text:
            continue
        found = pattern(_OWN_INDEX).search(one.text[:2_000])
        address = next(filter(None, found.groups())).rstrip("/") if found is not None else ""
        if found is not None and found["only"] and address.endswith("/simple"):
            continue  # a mirror of PyPI
        if address and not f"{address}/".startswith(_PUBLIC):
            return address
    return None


def indexes(event: Event, transcript: Transcript) -> str:
    """The indexes that pip says last above a failure that it looks in; "" where it does not say."""
    above = (one.text for one in reversed(transcript.events) if one.id <= event.id)
    said = (pattern(_INDEXES).search(text) for text in above if "in indexes" in text)
    found = next(filter(None, said), None)
    return found["index"] if found is not None else ""


def _folder(frames: Sequence[Frame]) -> str | None:
    """The folder below the home that a line on the way names, else that of a known file."""
    for frame in reversed(frames):
        named = pattern(_IN_HOME).search(frame.code) if "~/" in frame.code else None
        if named is not None:
            return named["folder"].rstrip("/")
    files = [frame.file.replace("\\", "/") for frame in frames]
    return next((folder for end, folder in _KEEPS.items() if any(f.endswith(f"/{end}") for f in files)), None)


def _call(frames: Sequence[Frame]) -> str | None:
    """``clip.load(name)`` of the user's innermost line outside the file that downloads."""
    loader = next((frame for frame in reversed(frames) if frame.package != "python"), None)
    own = [one for one in frames if not one.package and loader is not None and one.file != loader.file]
    code = own[-1].code.strip() if own else ""
    if not code or len(code) > _MOST_OF_LINE:
        return None
    import ast

    tree = parsed(code)
    line = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    value = line.value if isinstance(line, (ast.Assign, ast.Expr)) else None
    return source(value) or None if isinstance(value, ast.Call) else None


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of the failure's own download: the last that begins above it."""
    above = [one for one in transcript.events if one.id <= event.id and "Downloading" in one.text]
    found = pattern(_LINE).search(above[-1].text) if above else None
    yield "url", found["url"] if found is not None else _of_message(event.text)
    target = found["target"] if found is not None else None
    name = found["url"].rpartition("/")[2] if found is not None else ""
    yield "target", target if target and name and target.endswith(name) else None
    yield from _of_hub(event, transcript)
    loads = (
        frame.function for frame in event.frames if frame.package == "torch" and frame.function in _LOADS
    )
    yield "loads", next(loads, None)
    if event.frames:
        yield "folder", _folder(event.frames)
        yield "call", _call(event.frames)
    hub = "huggingface" in event.text or any(frame.package in _ASK_HUB for frame in event.frames)
    yield "of_hub", hub
    asked = pattern(_TAGGED).search(event.text) if "from versions: " in event.text else None
    listed = asked["list"].replace("\n", " ").split(", ") if asked is not None else []
    fit = [one for one in listed if asked is not None and one.partition("+")[0] == asked["version"]]
    yield "listed", ", ".join(fit) or None
    yield "own_index", _own_index(event, transcript)
    of_torch = pattern(_OF_TORCH).fullmatch(indexes(event, transcript))
    yield "index", of_torch[1] if of_torch is not None else None
