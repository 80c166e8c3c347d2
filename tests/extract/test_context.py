"""The reader's surroundings, each from a form that only they print, with its line."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.extract.context import extract
from torchdoctor.intake import read_text
from torchdoctor.model import Fact, Transcript

RAISED = "RuntimeError: CUDA error: unknown error\n"


def facts(text: str) -> dict[str, Fact]:
    transcript: Transcript = read_text(text)
    event = transcript.events[-1]
    return {fact.name.partition(".")[2]: fact for fact in extract(event, transcript)}


def frames(*paths: str) -> str:
    lines = "".join(f'  File "{path}", line 3, in <module>\n    run()\n' for path in paths)
    return f"Traceback (most recent call last):\n{lines}RuntimeError: it broke\n"


@pytest.mark.parametrize(
    ("text", "dimension", "tags"),
    [
        (frames(r"C:\Users\me\train.py"), "system", ("windows",)),
        (frames("/Users/me/train.py"), "system", ("macos",)),
        (frames("/home/me/train.py"), "system", ("linux",)),
        (frames("/mnt/c/me/train.py"), "system", ("wsl", "linux")),
        (frames("/Users/me/train.py"), "device", ("apple",)),
        ("AMD Radeon RX 7600 XT gfx1102\nRuntimeError: HIP error: invalid device function\n", "device", ("amd",)),
        ("GPU 0: NVIDIA GeForce RTX 3090\n" + RAISED, "device", ("nvidia",)),
        ("torch 2.9.0+xpu\nRuntimeError: XPU out of memory\n", "device", ("intel",)),
        ("Linux-5.15.148-tegra-aarch64\n" + RAISED, "board", ("jetson", "aarch64")),
        ("Memory access fault by GPU node-1 (Agent handle: 0x5618e0c9b740) on address 0x7fd21a400000.\n", "device", ("amd",)),
        ("CUDA used to build PyTorch: 12.1\nGPU 0: Tesla T4\nHIP runtime version: N/A\nMIOpen runtime version: N/A\n" + RAISED, "device", ("nvidia",)),
        ("root@node-a:/data# python a.py\n" + frames("/opt/vllm/lib/python3.12/site-packages/torch/x.py"), "system", ("linux",)),
        ("x.replace('\\r\\n', '\\n')\n" + frames("/usr/local/lib/python3.6/dist-packages/torch/x.py"), "system", ("linux",)),
        ("g++ -I:/usr/local/cuda/include -c -c /home/me/a.cpp\n" + RAISED, "system", ("linux",)),
        ("Use WSL2 on Windows.\n" + frames(r"C:\Users\me\train.py"), "system", ("windows",)),
        (r"File models\common\layers.py: it broke" + "\n" + RAISED, "system", ("windows",)),
        ("root@c295e3b7cf53:/work# python a.py\n" + RAISED, "runtime", ("docker",)),
        ("KUBERNETES_SERVICE_HOST=10.0.0.1\n" + RAISED, "runtime", ("kubernetes",)),
        ("srun: error: node1: task 1: Exited with exit code 1\n" + RAISED, "runtime", ("slurm",)),
        (frames("/content/train.py"), "runtime", ("colab", "jupyter")),
        (frames("/kaggle/working/a.py"), "runtime", ("kaggle", "jupyter")),
        (frames("/home/runner/work/a.py"), "runtime", ("ci",)),
        (frames(r"D:\ComfyUI_windows_portable\python_embeded\Lib\site-packages\torch\x.py"), "python", ("embedded",)),
        (frames("/opt/conda/envs/a/lib/python3.10/site-packages/torch/x.py"), "python", ("conda",)),
        (frames("/work/.venv/lib/python3.10/site-packages/torch/x.py"), "python", ("venv",)),
        (frames("/x/lib/python3.10/site-packages/vllm/v1/a.py"), "program", ("vllm",)),
        (frames("/x/lib/python3.10/site-packages/transformers/trainer.py"), "program", ("trainer",)),
        ("RuntimeError: Gloo connectFullMesh failed\n", "backend", ("gloo",)),
    ],
)  # fmt: skip
def test_each_dimension_from_its_forms(text: str, dimension: str, tags: tuple[str, ...]) -> None:
    assert facts(text)[dimension].value == tags


def test_unknown_stays_unknown_and_a_hint_is_no_place() -> None:
    assert not {"system", "device", "board", "runtime"} & facts("ValueError: no such thing\n").keys()
    hint = "RuntimeError: within a container from https://hub.docker.com/r/pytorch/pytorch use docker run\n"
    assert "runtime" not in facts(hint)


def test_a_fact_names_its_line() -> None:
    assert facts("epoch 1\nsrun: error: n1: task 1: Killed\n" + RAISED)["runtime"].source.endswith(":2")


@pytest.mark.parametrize(
    ("path", "interpreter"),
    [
        ("/home/me/venv/lib/python3.10/site-packages/torch/x.py", "/home/me/venv/bin/python"),
        (r"C:\app\python_embeded\Lib\site-packages\torch\x.py", r"C:\app\python_embeded\python.exe"),
        (r"C:\app\.venv\Lib\site-packages\torch\x.py", r"C:\app\.venv\Scripts\python.exe"),
        ("/home/me/.local/lib/python3.10/site-packages/torch/x.py", None),
        ("/usr/lib/python3/dist-packages/torch/x.py", None),
    ],
)
def test_the_interpreter_that_ran(path: str, interpreter: str | None) -> None:
    fact = facts(frames("/home/me/a.py", path)).get("interpreter")
    assert (fact.value if fact is not None else None) == interpreter


def test_the_script_that_was_started() -> None:
    assert facts(frames("/home/me/run_clm.py", "/x/site-packages/torch/x.py"))["script"].value == "run_clm.py"


@pytest.mark.parametrize("word", ["a" * 3_900, "a.b-" * 970, "a\\bb" * 970, "x\\" + "aa." * 1_290])
def test_words_that_look_like_paths_of_windows_cost_no_time(word: str) -> None:
    bounded(1.0, lambda: facts(f"RuntimeError: {word}\n" * 40 + RAISED))


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("slurmstepd: error: *** STEP 6053.0 ON gpu020 CANCELLED ***\n" + RAISED, "job", "6053"),
        ("Submitted batch job 71234\n" + RAISED + "srun: error: node1: task 1: Killed\n", "job", "71234"),
        ("srun: job 71 queued\nsrun: job 72 queued\n" + RAISED, "job", None),
        ("Submitted batch job 71234\n" + RAISED, "job", None),  # nothing shows that it is Slurm's
        ("$ kubectl logs -n ml llm-server-0 -c main\n" + RAISED, "pod", "llm-server-0"),
        ('KUBERNETES_SERVICE_HOST=10.0.0.1\npod "fit-worker-1" deleted\n' + RAISED, "pod", "fit-worker-1"),
        ("srun --gpus-per-task=1 python fit.py\n" + RAISED, "gpus_per_task", 1),
        ("#SBATCH --gpus-per-task=a100:2\n" + RAISED, "gpus_per_task", 2),
        ("#SBATCH --ntasks-per-node=4\n" + RAISED, "tasks_per_node", 4),
        ("#SBATCH --nodes=2\n#SBATCH --ntasks=8\n" + RAISED, "tasks_per_node", 4),
        ("#SBATCH --ntasks=8\n" + RAISED, "tasks_per_node", None),
    ],
)
def test_what_a_scheduler_gave_the_job(text: str, name: str, value: object) -> None:
    found = facts(text).get(name)
    assert (found.value if found is not None else None) == value


def test_launchers_are_counted_by_node() -> None:
    warnings = "".join(
        f"W0711 10:02:11.{number}13000 {4100 + number} torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment "
        "variable for each process to be 1 in default\n"
        for number in range(8)
    )
    text = f"srun --nodes=2 torchrun --nnodes=2 fit.py\n{warnings}{RAISED}"
    assert facts(text)["launchers_per_node"].value == 4
    assert "launchers_per_node" not in facts(warnings + RAISED)
