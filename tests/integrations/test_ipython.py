"""``%load_ext torchdoctor`` and ``%explain``, in IPython and in a notebook that nbclient runs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import failing_programs as failing
import pytest

from torchdoctor import catalog
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain

pytest.importorskip("IPython")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")


@pytest.fixture(scope="module")
def shell() -> Any:
    from IPython.core.interactiveshell import InteractiveShell

    made = InteractiveShell.instance(colors="nocolor")
    made.run_line_magic("load_ext", "torchdoctor")
    made.run_cell("import failing_programs as failing")
    yield made
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("name", failing.PROGRAMS)
def test_ipython_shows_what_explain_says(shell: Any, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    import traceback

    error = shell.run_cell(f"failing.{name}()").error_in_exec
    note = capsys.readouterr().out.partition("✗ torchdoctor: ")[2]
    assert f"[{failing.PROGRAMS[name]}," in " ".join(note.split())
    printed = "".join(traceback.format_exception(error)).encode()
    first = explain(["-"], FactBook(), catalog.load(), io.BytesIO(printed)).report.diagnoses[0]
    assert first.rule == failing.PROGRAMS[name]
    assert f"--> {first.frame.file}:{first.frame.line}, in {first.frame.function}" in note


def test_explain_and_its_absence(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("failing.label_range()")
    capsys.readouterr()
    shell.run_line_magic("explain", "")
    assert capsys.readouterr().out.startswith("✗ A class label lies outside [0, num_classes)\n")
    shell.run_line_magic("unload_ext", "torchdoctor")
    try:
        shell.run_cell("failing.label_range()")
        assert "torchdoctor: " not in capsys.readouterr().out
        assert shell.find_line_magic("explain") is None
    finally:
        shell.run_line_magic("load_ext", "torchdoctor")


def test_a_fault_of_ours_leaves_the_traceback(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torchdoctor.hooks.explain.of_error", None)
    shell.run_cell("{}['b']")
    text = capsys.readouterr()
    assert "KeyError: 'b'" in text.out
    assert "torchdoctor" not in text.out + text.err


def test_a_notebook(tmp_path: Path) -> None:
    cells = [
        "%load_ext torchdoctor",
        "%explain",
        "import torch\nprices = torch.zeros(4, 3)\nprices @ torch.zeros(4, 3)",
        "%explain",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert outputs[1][0].text == "There is no error yet.\n"
    error, note = outputs[2]
    assert error.output_type == "error"
    assert "matmul-shape" in note.data["text/plain"]
    assert "--> Cell In[3]:3, in <module>  prices @ torch.zeros(4, 3)" in note.data["text/plain"]
    assert "prices is float32 [4, 3] on cpu" in note.data["text/html"]
    assert "<details>" in note.data["text/html"]
    (full,) = outputs[3]
    assert full.data["text/plain"].startswith("✗ Matrix sizes do not fit\n")
    assert "<h1>" in full.data["text/html"]
