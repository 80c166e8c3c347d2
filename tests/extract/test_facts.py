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
    modules = (import_module(f"torchdoctor.extract.{name}") for name in NAMESPACES.values())
    unread = {name for module in modules for name in module.FACTS if name not in rules}
    # `for` of a fix reads the facts of context.py
    assert {name for name in unread if not name.startswith("context.")} == OF_THE_SAMPLE
