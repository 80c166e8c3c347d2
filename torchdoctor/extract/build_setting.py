"""In which build an error stands: of which extension, with which toolkit, and whether it ended anything."""

from __future__ import annotations

from torchdoctor.extract import once_a_text, torch_extensions
from torchdoctor.model import EventKind, Transcript
from torchdoctor.patterns import pattern, search

# a command that failed is said to have failed; of a question (setuptools' has_function) nothing more is said
_FAILED = (
    "failed with exit", "build stopped", "Unable to pre-compile", "Error building extension", "FAILED:",
    "CompileError", "CalledProcessError", "CompilationError", "LinkError", "make: ***", "make[",
    "Failed building",
)  # fmt: skip
_TOOLKIT = r"(?:[\\/]CUDA[\\/]{1,2}v|/cuda-)(\d{1,2}\.\d)(?=[\\/'\";:\s]|$)"


def is_question(error: int, transcript: Transcript) -> bool:
    """Did the program go on after the error, up to an exception of another kind?"""
    if fails_behind(error, transcript):
        return False
    later = transcript.events[error + 1 :]
    return any(event.kind is EventKind.EXCEPTION and event.type for event in later)


def fails_behind(error: int, transcript: Transcript) -> bool:
    """Is a command of the build said to have failed, from the error on?"""
    return error <= _last_failed(transcript)


@once_a_text
def _last_failed(transcript: Transcript) -> int:
    """The last event that says so; -1 for none."""
    said = (
        event.id
        for event in reversed(transcript.events)
        if any(mark in f"{event.type or ''} {event.text}" for mark in _FAILED)
    )
    return next(said, -1)


_NINJA = r"(?:^|[\s#$>%`])(?:ninja --version|(?:which|command -v)(?: -a)? ninja)`*\s*\n+\s*(?:1\.\d|/\S)"


@once_a_text
def ninja_answers(transcript: Transcript) -> bool:
    """Does a shell in the text find ninja?"""
    texts = [event.text[-200:] for event in transcript.events if event.kind is EventKind.LOG]
    return any("ninja" in text for text in texts) and search(_NINJA, "\n".join(texts), "ninja") is not None


def toolkit(transcript: Transcript) -> str:
    """The toolkit whose folder the lines of the build name; "" for none, or several."""
    found = {
        one[1]
        for event in transcript.events
        if "cuda-" in event.text or "CUDA" in event.text
        for one in pattern(_TOOLKIT).finditer(event.text[:20_000])
    }
    return found.pop() if len(found) == 1 else ""


_CONDA_NVCC = (
    r"[\\/](?:envs[\\/][^\\/\s]{1,80}|\w{0,8}(?:conda|forge)\d?)[\\/](?:Library[\\/])?bin[\\/]nvcc\b"
)


def conda_nvcc(transcript: Transcript) -> bool:
    """Does the text show the nvcc of a conda environment?"""
    return any(
        pattern(_CONDA_NVCC).search(event.text[:2_000]) is not None
        for event in transcript.events
        if "nvcc" in event.text and not event.quoted
    )


_HPC_SDK = r"(/[\w./+-]{0,200}/Linux_\w{1,20}/\d\d\.\d{1,2})/cuda/(\d{1,2}\.\d)(?=[\s/:'\"]|$)"


def math_libs(transcript: Transcript) -> str:
    """Where NVIDIA's HPC SDK keeps cuBLAS, cuFFT and so on, apart from its CUDA toolkit; "" for none."""
    found = {
        f"{one[1]}/math_libs/{one[2]}"
        for event in transcript.events
        if "/Linux_" in event.text
        for one in pattern(_HPC_SDK).finditer(event.text[:20_000])
    }
    return found.pop() if len(found) == 1 else ""


def extension(transcript: Transcript) -> str:
    """Name of the extension module that was built; "" where nothing names it."""
    patterns = (
        r"Error building extension '([^']+)'",
        r"building '([^']+)' extension",
        r"-DTORCH_EXTENSION_NAME=(\w+)",
        r"Building extension module (\w+)",
    )
    for event in transcript.events:
        if "xtension" not in event.text and "EXTENSION" not in event.text:
            continue
        for source in patterns:
            found = pattern(source).search(event.text)
            if found is not None:
                return found.group(1)
    return ""


_GIT = r"(?:Collecting|Cloning) (?:\S{1,80} @ )?(?:git\+)?(https://[\w./@-]{5,200})"
_REVISION = r" \(to revision ([\w./+-]{1,100})\)"  # behind what pip clones
# pip up to 20.0 puts no number behind the name
_UNPACKED = r"[\\/]pip-install-\w{1,20}[\\/]([A-Za-z][\w.-]*?)(?:_[0-9a-f]{16,40}\b|[\\/])"
_CHECKOUT = (
    r"Processing \S*[\\/.]|Obtaining file:|setup\.py (?:install|develop|build|bdist|egg)|pip-req-build-"
)
_NOT_BUILT = r"Failed building wheel for ([A-Za-z][\w.-]*)"


def unpacked(transcript: Transcript) -> str:
    """What pip was asked for, where it fetched the sources itself: a name, or the address of a repository.

    "" for a build out of the reader's own folder, and where nothing tells.
    """
    named = ""
    for event in transcript.events:
        files = "\n".join(frame.file for frame in event.frames if "pip-install-" in frame.file)
        if (found := search(_UNPACKED, files, "pip-install-")) is not None:
            return found[1]
        text = event.text[:20_000]
        if event.quoted or not any(
            word in text for word in ("pip-", "uild", "loning", "ollecting", "rocess")
        ):
            continue
        if (found := pattern(_GIT).search(text)) is not None and "git" in found[0]:
            revision = pattern(_REVISION).match(text, found.end())
            return f"git+{found[1]}" + (f"@{revision[1]}" if revision is not None else "")
        if (found := search(_UNPACKED, text, "pip-install-")) is not None:
            return found[1]
        if pattern(_CHECKOUT).search(text) is not None:
            return ""
        if (found := pattern(_NOT_BUILT).search(text)) is not None:
            named = named or torch_extensions.on_index(found[1]) or ""
    return named


_ISOLATED = r"[\\/](?:pip-build-env-|builds-v0[\\/])[\w.\\/-]{1,200}[\\/]torch[\\/]"


def isolated(transcript: Transcript) -> str:
    """Where the text shows a torch that was fetched for one build, beside the reader's own; "" if nowhere."""
    for event in transcript.events:
        shown = "\n".join((event.text[:20_000], *(frame.file for frame in event.frames)))
        if search(_ISOLATED, shown, "pip-build-env-", "builds-v0") is not None:
            return event.place()
    return ""


def is_installed(file: str) -> bool:
    """Is a source file a header that came with an installed package, which is not the reader's to edit?"""
    path = file.replace("\\", "/")
    return any(part in path for part in ("/site-packages/", "/dist-packages/", "/torch/include/"))


_INCLUDED = r"^\s*In file included from ([^:\n]{1,300}):\d"
_FROM = r"^\s*from ([^:\n]{1,300}):\d"


def own_includer(error: int, transcript: Transcript) -> str:
    """The nearest of the project's own files through which the compiler came to the first error."""
    lines = [
        line for event in transcript.events[max(0, error - 12) : error + 1] for line in event.text.split("\n")
    ]
    chain: list[str] = []  # the outermost first
    for line in lines:
        if (found := pattern(_INCLUDED).search(line)) is not None:
            chain.append(found[1])
        elif (found := pattern(_FROM).search(line)) is not None and chain:
            chain.insert(0, found[1])  # gcc names the nearest first
    return next((file for file in reversed(chain) if not is_installed(file)), "")


def words_lost(transcript: Transcript) -> bool:
    """Did a build of torch's fail, although no compiler speaks in the text?"""
    marks = ("'ninja', ", "Error building extension '")
    return any(mark in event.text for event in transcript.events for mark in marks)
