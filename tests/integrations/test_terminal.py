"""A run with tqdm under ``torchdoctor run``: an emulator's screen is that of the run without it."""

from __future__ import annotations

import sys

import pytest
from run_screen import HEIGHT, QUIET, WIDTH, Screen

pyte = pytest.importorskip("pyte")

PROGRAM = """
import time
from tqdm import tqdm, trange

for epoch in trange(3, bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt}", desc="epochs"):
    for step in tqdm(range(25), bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt}", leave=False):
        time.sleep(0.004)
    tqdm.write(f"epoch {epoch}: \\x1b[1mloss\\x1b[0m {1 / (epoch + 1):.3f}")
print("name", input("name? "))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pseudo-terminals and /proc")
def test_the_screen_is_that_without_us() -> None:
    screens = []
    for before in ([], QUIET):
        with Screen([*before, sys.executable, "-c", PROGRAM]) as screen:
            screen.until(b"name? ")
            screen.type(b"Bob\n")
            screen.until()
            emulator = pyte.Screen(WIDTH, HEIGHT)
            pyte.ByteStream(emulator).feed(screen.text)
            screens.append((emulator.display, dict(emulator.buffer[0]), emulator.cursor.y, screen.code))
    assert screens[0] == screens[1]
    shown = "\n".join(line.rstrip() for line in screens[1][0])
    assert "epoch 2: loss 0.333\nepochs: 100%|" in shown
    assert "name? Bob\nname Bob" in shown
