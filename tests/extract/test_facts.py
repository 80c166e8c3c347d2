"""A fact that nothing reads is not read out of a text either."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from torchdoctor.extract import NAMESPACES

RULES = Path(__file__).parents[2] / "rules"
# what the sample of a rule in the documentation asks for
OF_THE_SAMPLE = {"assert.kernel"}


def test_every_fact_of_a_message_is_read() -> None:
    rules = "\n".join(path.read_text(encoding="utf-8") for path in RULES.rglob("*.toml"))
    # the engine asks for the surroundings itself
    named = (name for space, name in NAMESPACES.items() if space != "context")
    modules = (import_module(f"torchdoctor.extract.{name}") for name in named)
    assert {name for module in modules for name in module.FACTS if name not in rules} == OF_THE_SAMPLE
