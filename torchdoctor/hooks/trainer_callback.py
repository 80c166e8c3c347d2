"""The callback for transformers: ``Trainer(…, callbacks=[TorchdoctorCallback()])``."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from torchdoctor.hooks.install import install


class TorchdoctorCallback(TrainerCallback):  # type: ignore[misc]
    """Installs the hook when the training begins: its trainer calls nobody when it meets an exception."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Called by the trainer."""
        install()
