"""Which word of an output belongs to which expression, and which lines answer which command."""

from __future__ import annotations

import pytest

from torchdoctor.extract.readings.card_lists import same
from torchdoctor.extract.readings.driver_shown import offered, without_driver
from torchdoctor.extract.readings.hidden_gpus import hidden, no_instance, not_requested
from torchdoctor.extract.readings.passage import Passage, Voice
from torchdoctor.extract.readings.values import commands, values
from torchdoctor.model import Event, EventKind, Speech, Transcript

ONE = 'python -c "import torch; print(torch.__version__, torch.cuda.is_available())"'


def passage(text: str) -> Passage:
    lines = enumerate(text.split("\n"), 1)
    events = tuple(Event(at, EventKind.LOG, line, "question.txt", at, at) for at, line in lines)
    return Passage(Transcript(("question.txt",), events, speech=Speech(person=True)))


def told(text: str) -> list[tuple[str, str]]:
    return [(one.expression.rpartition("torch.")[2], one.text) for one in values(passage(text))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"$ {ONE}\n2.1.2+cu121 False", [("__version__", "2.1.2+cu121"), ("cuda.is_available()", "False")]),
        # another program speaks first
        (
            f"{ONE}\nloading ~/.envrc\n2.1.2+cu121 False",
            [("__version__", "2.1.2+cu121"), ("cuda.is_available()", "False")],
        ),
        (
            ">>> torch.version.cuda, torch.cuda.device_count()\n('12.1', 2)",
            [("version.cuda", "12.1"), ("cuda.device_count()", "2")],
        ),
        ("[3]: torch.cuda.device_count()\n     4", [("cuda.device_count()", "4")]),
        (
            'python -c "print(torch.cuda.device_count(), torch.cuda.get_device_name(0))"\n1 Quadro RTX 4000',
            [("cuda.device_count()", "1"), ("cuda.get_device_name(0)", "Quadro RTX 4000")],
        ),
        (
            "p = torch.cuda.get_device_properties(0)\nprint(p.name)\nTesla T4",
            [("cuda.get_device_properties(0).name", "Tesla T4")],
        ),
        ('print("n:", torch.cuda.device_count())\nn: 8', [('"n:"', "n:"), ("cuda.device_count()", "8")]),
        (
            'print("n:", torch.cuda.device_count())\nIt prints `n: 8` here, why?',
            [('"n:"', "n:"), ("cuda.device_count()", "8")],
        ),
        # more words than expressions, and none that may be of several
        ("print(torch.cuda.device_count(), torch.cuda.is_available())\n2 False 3", []),
        ('print(f"{torch.cuda.device_count()}")\n8', []),
        (f"{ONE}\nTraceback (most recent call last):", []),
    ],
)
def test_values_by_their_order(text: str, found: list[tuple[str, str]]) -> None:
    assert told(text) == found


@pytest.mark.parametrize(
    "prompt",
    [
        "$ ",
        "me@box:~$ ",
        "[me@box dir]$ ",
        "box:~$ ",
        "host$ ",
        "root@f0:/app# ",
        "(ml) C:\\Users\\me>",
        "PS C:\\x> ",
    ],
)
def test_a_command_and_its_answers_at_any_prompt(prompt: str) -> None:
    found = commands(
        passage(f"{prompt}lsmod | grep nvidia\n{prompt}nvidia-smi -L\nGPU 0: NVIDIA A10 (UUID: GPU-1)")
    )
    assert [(one.text, [line.text for line in one.answers]) for one in found] == [
        ("lsmod | grep nvidia", []),
        ("nvidia-smi -L", ["GPU 0: NVIDIA A10 (UUID: GPU-1)"]),
    ]


def test_a_price_is_no_prompt() -> None:
    lines = passage("The card is 900$ or less, I paid it.\nBuy it for\n300$ today").lines
    assert Voice.SHELL not in {line.voice for line in lines}


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("bash: nvidia-smi: command not found", False),
        ("-bash: nvidia-smi: Kommando nicht gefunden.", False),
        ("$ lsmod | grep nvidia\n$ uname -r\n6.8.0", False),
        ("$ which nvidia-smi\n$ exit", False),
        ("$ dpkg -l | grep -c nvidia\n0", False),
        ("$ lsmod | grep nvidia\nnvidia 56713216 0", True),
        ("$ which nvidia-smi\n/usr/bin/nvidia-smi", True),
        ("$ ls /dev/nvidia0\n/dev/nvidia0", True),
    ],
)
def test_a_driver_that_is_not_there(text: str, driver: bool) -> None:
    found = passage(text)
    assert (without_driver(found, commands(found)) is None) is driver


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("| NVIDIA-SMI 440.33.01    Driver Version: 440.33.01    CUDA Version: 10.2     |", "10.2"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.223.02  Sat Oct  7", "11.4"),
        (
            "$ nvidia-smi --query-gpu=name,driver_version --format=csv\nname, x\nNVIDIA A30, 535.183.01",
            "12.0",
        ),
        ("The nodes have driver 460.32.03 and V100s.", "11.2"),
        ("driver         : 450.80.02", "11.0"),
        ("Treiber 580.95.05 ist drauf", "13.0"),
        ("loss 450.80 after 535.10 steps", None),
    ],
)
def test_what_a_driver_offers(text: str, cuda: str | None) -> None:
    found = offered(passage(text), commands(passage(text)))
    assert (found[1] if found else None) == cuda


LIST = "GPU 0: NVIDIA A10 (UUID: GPU-77f0a5c2-1)\n"


@pytest.mark.parametrize(
    ("text", "is_hidden"),
    [
        ("export CUDA_VISIBLE_DEVICES=", True),
        ('setenv CUDA_VISIBLE_DEVICES ""', True),
        (LIST + "export CUDA_VISIBLE_DEVICES=1", True),
        (LIST + "Environment=CUDA_VISIBLE_DEVICES=GPU-0be41d9e-2", True),
        ('export CUDA_VISIBLE_DEVICES=$GPU\n$ echo "[$GPU]"\n[]', True),
        ('export CUDA_VISIBLE_DEVICES=$GPU\n$ echo "[$GPU]"\n[0]', False),
        (LIST + "export CUDA_VISIBLE_DEVICES=0", False),
        (LIST + "export CUDA_VISIBLE_DEVICES=GPU-77f0a5c2", False),
        ("$ echo $CUDA_VISIBLE_DEVICES\n$ exit", False),
    ],
)
def test_gpus_that_a_variable_hides(text: str, is_hidden: bool) -> None:
    found = passage(text)
    assert (hidden(found, commands(found)) is not None) is is_hidden


@pytest.mark.parametrize(
    ("options", "asks"),
    [("--partition=gpu", False), ("--partition=gpu --gres=gpu:1", True), ("-p a100 -G 1", True)],
)
def test_a_job_that_asks_for_no_gpu(options: str, asks: bool) -> None:
    found = passage(f"#SBATCH {options}\nNo devices were found")
    assert (not_requested(found, values(found)) is None) is asks


def test_mig_without_an_instance() -> None:
    on = "MIG Mode\n Current : Enabled\n"
    assert no_instance(passage(on + " MIG Devices : None")) is not None
    assert no_instance(passage(on + "  MIG 3g.20gb  Device 0: (UUID: MIG-2a3b4c5d)")) is None


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        ("GeForce GTX 108...", "NVIDIA GeForce GTX 1080 Ti", True),
        ("3090", "NVIDIA GeForce RTX 3090", True),
        ("RTX 3080", "NVIDIA GeForce RTX 3080 Ti", False),
        ("Tesla T4", "NVIDIA T400", False),
    ],
)
def test_names_of_one_model(one: str, two: str, alike: bool) -> None:
    assert same(one, two) is alike
