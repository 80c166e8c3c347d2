"""The file of weights that a log names takes the place of FILE in a command."""

from __future__ import annotations

import pytest

from torchdoctor.engine.log_file import named
from torchdoctor.intake import read_text

EOF = "RuntimeError: unexpected EOF, expected 9 more bytes. The file might be corrupted.\n"
CALL = (
    'Traceback (most recent call last):\n  File "/home/me/fit.py", line 3, in <module>\n'
    "    sd = torch.load({})\n"
)


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (f"Loading weight from  ckpt/unet_31.pkl\n{EOF}", "ckpt/unet_31.pkl"),
        (CALL.format("'/data/my-run/last.pt'") + EOF, "/data/my-run/last.pt"),
        (CALL.format("f'{folder}/last.pt'") + EOF, "FILE"),
        (CALL.format("'step_%d.pt' % step") + EOF, "FILE"),
        (CALL.format("r'C:\\\\runs\\\\last.pt'") + EOF, "FILE"),
        (f"merging a.pt and b.pt\n{EOF}", "FILE"),
        (EOF, "FILE"),
    ],
)
def test_the_file_of_the_log_stands_in_the_command(text: str, file: str) -> None:
    events = read_text(text).events
    assert named("ls -l FILE; head -c 200 FILE", events[-1], events) == f"ls -l {file}; head -c 200 {file}"
