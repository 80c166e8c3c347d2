"""Hostile and very long texts cost little."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.extract import environment, of_event, state_dict
from torchdoctor.intake import read_text
from torchdoctor.model import Event, EventKind, FactValue, Transcript


def facts(namespace: str, transcript: Transcript, event: int = 0) -> dict[str, FactValue]:
    if namespace == "text":
        found = environment.extract_text(transcript)
    else:
        found = of_event(namespace, transcript.events[event], transcript)
    return {fact.name: fact.value for fact in found}


def one_event(text: str) -> Transcript:
    return Transcript(("a.log",), (Event(0, EventKind.EXCEPTION, text, "a.log", 1, 1),))


@pytest.mark.parametrize(
    ("namespace", "text"),
    [
        ("dlopen", "x" * 5000 + ".so: " + "y" * 5000),
        ("dlopen", "x.so" * 5000),
        ("dlopen", "lib" + "a" * 20000 + ".so: b: c"),
        ("dlopen", "GLIBC_1." * 3000 + "("),
        ("dlopen", "/" * 20000 + ".so: undefined symbol: x"),
        ("dlopen", "a" * 20000 + ": cannot open shared object file"),
        ("dlopen", "dlopen(" * 4000 + "incompatible architecture"),
        ("dlopen", "undefined symbol: " * 3000),
        ("text", "numpy=-1.1" * 3000),
        ("text", "torch" + " " * 20000),
        ("text", "MiB" + "1" * 20000),
        ("text", "1MiB/ " * 4000),
        ("text", "Found GPU0 " * 3000),
        ("text", "| 0 " * 5000),
        ("text", "supports CUDA capabilities " + "sm_80 " * 4000),
        ("text", "/dev/shm" + " a" * 10000),
    ],
)
def test_hostile_texts(namespace: str, text: str) -> None:
    bounded(0.5, lambda: facts(namespace, one_event(text)))


@pytest.mark.parametrize("word", ["a" * 3_900, "a.b-" * 970, "a\\bb" * 970, "x\\" + "aa." * 1_290])
def test_words_that_look_like_paths_of_windows(word: str) -> None:
    raised = "RuntimeError: CUDA error: unknown error\n"
    bounded(1.0, lambda: facts("context", read_text(f"RuntimeError: {word}\n" * 40 + raised), -1))


def test_a_long_log_of_errors() -> None:
    transcript = read_text("".join(f"worker {n}: error rate {n / 7:.3f}\n" for n in range(5_000)))
    assert bounded(0.5, lambda: facts("build", transcript)) == {}


def test_thousands_of_names() -> None:
    names = [f"layers.{number}.attn.weight" for number in range(4000)]
    found = facts("state_dict", one_event(report(names, ["module." + name for name in names])))
    assert found["state_dict.prefix_only"] is True
    missing = found["state_dict.missing"]
    assert isinstance(missing, tuple)
    assert len(missing) == state_dict.KEEP


def test_many_possible_prefixes() -> None:
    missing = ["weight", "bias", *(f"layers.{number}.weight" for number in range(3000))]
    text = report(missing, [f"other.{number}.weight" for number in range(3000)])
    assert facts("state_dict", one_event(text))["state_dict.prefix_only"] is False


def report(missing: list[str], unexpected: list[str]) -> str:
    lines = (
        f"{kind} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in names) + ". "
        for kind, names in (("Missing", missing), ("Unexpected", unexpected))
    )
    return "Error(s) in loading state_dict for Net:\n\t" + "\n\t".join(lines)
