"""What is advised to whom: gating by surroundings, commands in the reader's shell, torch from the right place."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.rule import ConditionalFix
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.commands import adapted, fits, of_host, shell_of, speaks
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.engine.install import FACTS, command
from torchdoctor.engine.surroundings import of_event, place
from torchdoctor.intake import read_text
from torchdoctor.model import Diagnosis, Fact, FactValue, Fix
from torchdoctor.probes.recorded import RecordedFacts
from torchdoctor.render.unknown import next_step
from torchdoctor.render.words import proofs

MACHINES: dict[str, dict[str, FactValue]] = json.loads(
    (Path(__file__).parent / "machines.json").read_text("utf-8")
)
# what is another platform's on a machine, seen without the engine's own table
LINUX = r"\bapt-get\b|\bldconfig\b|LD_LIBRARY_PATH|\bdmesg\b|/dev/shm|\bsudo (?!\$)|/proc/"
NVIDIA = r"nvidia-smi|whl/cu\d|\bnvcc\b|compute-sanitizer|CUDA_LAUNCH_BLOCKING"
MAC = r"\bbrew\b|xcode-select|PYTORCH_MPS"
WINDOWS = r"\bwinget\b|\$env:|findstr|\bpy -m\b"
POSIX = r"\bexport \w|\$\(|\| grep|2>/dev/null|^\w+=\S+ python"
FOREIGN = {
    "windows-rtx": f"{LINUX}|{MAC}|{POSIX}|rocm",
    "windows-radeon": f"{LINUX}|{MAC}|{POSIX}|{NVIDIA}",
    "macbook": f"{LINUX}|{NVIDIA}|{WINDOWS}|whl/|HSA_OVERRIDE|CUDA_VISIBLE_DEVICES",
    "wsl": f"{MAC}|{WINDOWS}|rocm",
    "jetson": rf"{MAC}|{WINDOWS}|nvidia-smi|download\.pytorch\.org|rocm",
    "rocm-workstation": f"{MAC}|{WINDOWS}|{NVIDIA}",
    "arc": f"{MAC}|{WINDOWS}|{NVIDIA}|rocm",
    "pod": f"{MAC}|{WINDOWS}|docker run|rocm",
    "docker": f"{MAC}|{WINDOWS}|kubectl|rocm",
    "grace-hopper": f"{MAC}|{WINDOWS}|whl/cu118|rocm",
}


def known(facts: dict[str, FactValue]) -> RecordedFacts:
    return RecordedFacts(
        {
            name: Fact.known(name, tuple(value) if isinstance(value, list) else value)
            for name, value in facts.items()
        }
    )


def first(text: str, rules: RuleSet) -> Diagnosis:
    return diagnose(read_text(text), FactBook(None), rules).diagnoses[0]


@pytest.mark.parametrize("machine", MACHINES)
def test_no_rule_shows_a_command_of_another_platform(machine: str, rules: RuleSet) -> None:
    transcript = read_text("ValueError: no such thing\n")
    event = transcript.events[0]
    facts = TextFacts(transcript, FactBook(known(MACHINES[machine])))
    seen = of_event(event, transcript, lambda name: facts.fact(name, event))
    shown = {name: command(name, seen, lambda name: facts.fact(name, event)).value for name in FACTS}
    wrong = []
    for rule in rules.ids():
        words = rules.text(rule)
        runs = [item.fix.run for item in words.fixes if place(item, seen) is not None]
        for run in (words.decide_with, *runs):
            wanted = re.findall(r"\{(install\.\w+)\}", run or "")
            if not run or not fits(run, seen) or not all(shown[name] for name in wanted):
                continue  # as the engine does with a command that cannot be written out
            for name in wanted:
                run = run.replace(f"{{{name}}}", str(shown[name]))
            text = adapted(run, seen, None) or ""
            wrong += [f"{rule}: {text}"] * bool(re.search(FOREIGN[machine], text, re.MULTILINE))
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize(
    ("wanted", "not_for", "rank"),
    [
        ((), (), 1),
        (("windows",), (), 0),
        (("macos",), (), None),
        (("nvidia",), (), 1),  # what most have is no reason to stand first
        (("slurm",), (), 2),  # nothing shows it
        (("windows", "slurm"), (), 2),
        ((), ("windows",), None),
        ((), ("serve",), 1),
    ],
)
def test_a_fix_stands_where_its_tags_put_it(
    wanted: tuple[str, ...], not_for: tuple[str, ...], rank: int | None
) -> None:
    seen = {"system": frozenset({"windows"}), "device": frozenset({"nvidia"})}
    assert place(ConditionalFix(Fix("Do it."), (), wanted, not_for), seen) == rank


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("A=1 B='x y' python train.py", "$env:A = '1'; $env:B = 'x y'; python fit.py"),
        ("export A=1 && python train.py", "$env:A = '1'; python fit.py"),
        ("unset A B", "Remove-Item Env:A; Remove-Item Env:B"),
        ("pip list | grep torch", None),
        ("python -c 'import train'", 'python -c "import fit"'),
        ("python -c 'print(\"a\")'", "python -c \"print('a')\""),
        ("pip uninstall -y a && pip install b", "pip uninstall -y a\npip install b"),
        ("PYTHONFAULTHANDLER=1 python train.py", "python -X faulthandler fit.py"),
        ("pip install 'numpy<2'", 'pip install "numpy<2"'),
        ("python test.py --env A", "python test.py --env A"),
        ("C:\\ui\\env\\python.exe -m pip list", "C:\\ui\\env\\python.exe -m pip list"),
        # to cmd single quotes are none, and this would start a program
        ("python train.py 'a$b&calc'", None),
    ],
)
def test_a_command_is_written_for_the_shell_and_the_script(run: str, told: str | None) -> None:
    assert adapted(run, {"system": frozenset({"windows"})}, "fit.py") == told


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("(env) C:\\work>python fit.py", "cmd"),
        ("PS D:\\work> python fit.py", "powershell"),
        ("a > b at C:\\work", ""),
    ],
)
def test_the_prompt_tells_the_shell_of_windows(prompt: str, told: str) -> None:
    assert shell_of(prompt) == told
    run = adapted("A=1 python train.py", {"system": frozenset({"windows"})}, "fit.py", shell=told)
    assert run == ('set "A=1" && python fit.py' if told == "cmd" else "$env:A = '1'; python fit.py")


def test_bash_on_windows_gets_no_backslashes() -> None:
    told = shell_of("user1@BOX MINGW64 ~/own\n$ python fit.py train\ndevice= cuda:0")
    assert told == "bash"
    windows, python = {"system": frozenset({"windows"})}, "C:\\py\\python.exe"
    assert adapted("A=1 python train.py | grep x", windows, "own\\fit.py", python, told) == (
        "A=1 python own/fit.py | grep x"
    )
    assert adapted("python -c 'print(1)'", windows, None, python, told) == "C:/py/python.exe -c 'print(1)'"
    assert adapted(f"{python} -m pip list", windows, None, python, told) == "C:/py/python.exe -m pip list"
    assert shell_of("costs $ 20 = a lot\n$ x = 1") == ""


@pytest.mark.parametrize(
    ("run", "script", "told"),
    [
        ("A=1 B='x y' python train.py", None, "%env A=1\n%env B=x y"),
        ("A=1 python train.py", "fit.py", "!A=1 python fit.py"),
        ("export A=1", None, "%env A=1"),
        ("export A=${TMPDIR:-/tmp}/a", None, "%env A=/tmp/a"),
        ("export A=/x:$A", None, "import os; os.environ['A'] = os.path.expandvars('/x:$A')"),
        ("export A=$(nproc)", None, None),
        # the shell of a bang has a variable of its own
        ("unset A B", None, "import os; os.environ.pop('A', None); os.environ.pop('B', None)"),
        ("unset LD_LIBRARY_PATH", None, "unset LD_LIBRARY_PATH && jupyter lab"),
        ("mkdir -p /tmp/a && export A=/tmp/a", None, "!mkdir -p /tmp/a\n%env A=/tmp/a"),
        ("env | grep A; unset A", None, "!env | grep A\nimport os; os.environ.pop('A', None)"),
        ("pip install 'numpy<2'", None, "%pip install 'numpy<2'"),
        ("python -m pip install -U certifi && ls", None, "!python -m pip install -U certifi && ls"),
        ("nvidia-smi", None, "!nvidia-smi"),
        ("ulimit -n", None, "!ulimit -n"),
        ("ulimit -n 65536", None, None),
        # the loader reads its variables before the kernel can set them
        ("export LD_PRELOAD=/x.so", None, "export LD_PRELOAD=/x.so && jupyter lab"),
        ("GLIBC_TUNABLES=a.b=1 python train.py", None, "GLIBC_TUNABLES=a.b=1 jupyter lab"),
        ("GLIBC_TUNABLES=a.b=1 python train.py", "fit.py", "!GLIBC_TUNABLES=a.b=1 python fit.py"),
        ("print(torch.__version__)", None, "print(torch.__version__)"),
    ],
)
def test_a_command_is_written_for_a_cell_of_a_notebook(
    run: str, script: str | None, told: str | None
) -> None:
    assert adapted(run, {"runtime": frozenset({"jupyter"})}, script) == told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("export TCNN_CUDA_ARCHITECTURES=86", "ENV TCNN_CUDA_ARCHITECTURES=86"),
        ("pip install ninja", "RUN pip install ninja"),
        ("sudo apt-get install python3-dev", "RUN apt-get update && apt-get install -y python3-dev"),
        ("nvcc --list-gpu-arch", "RUN nvcc --list-gpu-arch"),
        ("nvidia-smi -L; nvcc --version", "RUN nvcc --version"),
        ("sudo dmesg -T | tail", "sudo dmesg -T | tail"),  # of the host
        ("git submodule update --init --recursive", "git submodule update --init --recursive"),
        ("unset LD_LIBRARY_PATH", "ENV LD_LIBRARY_PATH="),
        ("ls -d /usr/local/cuda*; export CUDA_HOME=/usr/local/cuda", "ENV CUDA_HOME=/usr/local/cuda"),
        ("export LD_LIBRARY_PATH=$(python -c 'print(1)')", None),  # ENV runs nothing
        ("python -c 'import torch; print(torch.cuda.get_device_name())'", None),  # no GPU is there
        ("uv venv --python 3.8 && uv pip install torch==1.7.0", "FROM python:3.8"),
        (
            "TORCH_CUDA_ARCH_LIST=$(python -c 'import torch; print(\"%d.%d\" % torch.cuda.get_device_capability())') pip install .",
            "RUN TORCH_CUDA_ARCH_LIST=8.6 pip install .",
        ),
    ],
)
def test_a_command_is_written_for_a_dockerfile(command: str, told: str | None) -> None:
    assert adapted(command, {"runtime": frozenset({"dockerfile"})}, None) == told


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("| NVIDIA-SMI 470.199 Driver Version: 470.199 |\n", "driver.cuda", "11.4"),
        ("GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-1)\n", "gpu.lowest_capability", 12.0),
        (
            "GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-1)\nGPU 1: Tesla V100-SXM2 (UUID: GPU-2)\n",
            "gpu.lowest_capability",
            7.0,
        ),
        (
            "GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-1)\nGPU 1: Something (UUID: GPU-2)\n",
            "gpu.lowest_capability",
            None,
        ),
    ],
)
def test_a_named_card_and_driver_tell_what_they_can(text: str, name: str, value: FactValue) -> None:
    assert TextFacts(read_text(text), FactBook(None)).fact(name).value == value


@pytest.mark.parametrize("notebook", ["colab", "kaggle"])
def test_a_hosted_notebook_s_server_is_not_the_reader_s_to_start(notebook: str) -> None:
    assert adapted("export LD_PRELOAD=/x.so", {"runtime": frozenset({notebook, "jupyter"})}, None) is None


@pytest.mark.parametrize("ptxas", ["ptxas", "ptxas-blackwell"])
def test_triton_s_variable_is_that_of_the_assembler_that_it_ran(ptxas: str, rules: RuleSet) -> None:
    variable = {"ptxas": "TRITON_PTXAS_PATH", "ptxas-blackwell": "TRITON_PTXAS_BLACKWELL_PATH"}[ptxas]
    run = first(PTXAS.format("sm_110a", ptxas), rules).fixes[0].run
    assert run == f"export {variable}=/usr/local/cuda/bin/ptxas"


def test_an_operator_of_the_reader_s_own_gets_a_kernel(rules: RuleSet) -> None:
    assert any("your own operator" in fix.do for fix in first(MPS.format("packing::pack4"), rules).fixes)


@pytest.mark.parametrize(
    ("do", "tag", "told"),
    [
        ("Take the CUDA that nvidia-smi shows.", ("system", "macos"), False),
        ("Take the CUDA that nvidia-smi shows.", ("board", "jetson"), False),
        ("Reinstall torch with the nvidia-* packages that it asks for.", ("board", "jetson"), False),
        ("Reinstall torch with the nvidia-* packages that it asks for.", ("board", "aarch64"), True),
        ("Install it with apt-get, or build it.", ("distribution", "arch"), False),
        ("Install it with apt-get, or build it.", ("distribution", "debian"), True),
        ("Put its folder first in LD_LIBRARY_PATH.", ("system", "windows"), False),
        ("Install the driver and reboot.", ("system", "windows"), True),  # a word of English
    ],
)
def test_a_sentence_names_tools_of_the_reader_s_platform(do: str, tag: tuple[str, str], told: bool) -> None:
    devices = {"macos": "apple"}.get(tag[1], "nvidia")
    assert speaks(do, {tag[0]: frozenset({tag[1]}), "device": frozenset({devices})}) is told


@pytest.mark.parametrize("notebook", ["colab", "kaggle"])
def test_a_hosted_notebook_is_not_sent_to_the_host(notebook: str) -> None:
    seen = {"runtime": frozenset({notebook})}
    assert not fits("sudo dmesg -T | tail", seen)
    assert not fits("sudo nvidia-smi --gpu-reset -i 0", seen)
    assert fits("nvidia-smi", seen)


# how the words of another process are got, by what the text shows of launcher, scheduler and container
@pytest.mark.parametrize(
    ("head", "run"),
    [
        ("", "torchrun --log_dir logs --redirects 3 --tee 3 --nproc_per_node=gpu train.py"),
        ("torchrun --nproc_per_node=8 fit.py\n", "torchrun --log_dir logs --redirects 3 --tee 3 --nproc_per_node=8 fit.py"),
        ("accelerate launch fit.py\n", "accelerate launch --log_dir logs --tee 3 fit.py"),
        ("deepspeed --num_gpus 8 fit.py\n", "deepspeed --enable_each_rank_log logs --num_gpus 8 fit.py"),
        ("mpirun -np 4 python fit.py\n", "mpirun --output-filename logs -np 4 python fit.py"),
        ("Submitted batch job 4711\nsrun: job 4711 has been allocated resources\n",
         "sacct -j 4711 --format=JobID,State%30,ExitCode,Elapsed,Timelimit,MaxRSS,ReqMem,NodeList"),
        ("$ kubectl logs fit-worker-0\n", "kubectl describe pod fit-worker-0 | grep -A6 -E '^Name:|Last State'"),
        ("root@c295e3b7cf53:/w# python a.py\n", "docker inspect --format '{{.State.ExitCode}} {{.State.OOMKilled}}' $(docker ps -lq)"),
    ],
)  # fmt: skip
def test_the_first_action_gets_the_words_of_the_lost_process(head: str, run: str, rules: RuleSet) -> None:
    text = head + "[rank1]: torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n"
    found = first(text, rules)
    assert (found.rule, found.fixes[0].run) == ("dist-store-lost", run)


@pytest.mark.parametrize(
    ("head", "start"),
    [
        ("", None),
        ("torchrun --nproc-per-node 4 fit.py\n", "torchrun --nproc-per-node 4 fit.py"),
        ("torchrun --nproc-per-node 4 fit.py $ARGS\n", None),
        ("accelerate launch fit.py --lr 1\n", "accelerate launch fit.py --lr 1"),
        ("srun: job 8 queued\n", None),
    ],
)
def test_a_command_starts_the_ranks_as_the_reader_does(head: str, start: str | None, rules: RuleSet) -> None:
    runs = [fix.run or "" for fix in first(head + TIMEOUT.format(469), rules).fixes]
    ends = f"TORCH_NCCL_DUMP_ON_TIMEOUT=1 {start}" if start else "TORCH_NCCL_DUMP_ON_TIMEOUT=1"
    assert [run for run in runs if run.endswith(ends) and run.startswith("export ") == (start is None)], runs


def test_a_value_that_cannot_be_told_is_not_known(rules: RuleSet) -> None:
    fixes = first("RuntimeError: No CUDA GPUs are available\n", rules).fixes
    assert fixes
    assert not [fix.do for fix in fixes if "MIG" in fix.do]


def test_what_needs_root_stands_last_on_a_machine_of_others(rules: RuleSet) -> None:
    text = "{}subprocess.CalledProcessError: x\nRuntimeError: Error building extension 'ops': c++ -c main.cpp\n/bin/sh: 1: c++: not found\n"
    alone, shared = (first(text.format(head), rules).fixes for head in ("", "srun: job 4711 queued\n"))
    assert alone[0].risk == "needs-root"
    assert shared[0].risk != "needs-root"
    assert shared[-1].risk == "needs-root"


@pytest.mark.parametrize(
    ("name", "machine", "told"),
    [
        ("torch", {}, "python -m pip install --force-reinstall torch torchvision torchaudio --index-url {}cu126"),
        ("torch", {"gpu.lowest_capability": 12.0}, "{}cu128"),
        ("torch", {"gpu.lowest_capability": 12.0, "driver.cuda": "13.0"}, "{}cu130"),
        ("torch", {"gpu.lowest_capability": 6.1, "driver.cuda": "13.0"}, "{}cu126"),
        ("torch", {"driver.cuda": "11.4"}, "torch==2.7.1 torchvision==0.22.1 torchaudio==2.7.1 --index-url {}cu118"),
        ("torch", {"gpu.vendors": ("amd",)}, "{}rocm7.2"),
        ("torch", {"gpu.vendors": ("amd",), "torch.version": "2.5.1+cu124"}, "torch==2.5.1 torchvision torchaudio --index-url {}rocm6.2"),
        ("rocm", {"gpu.vendors": ("amd",), "torch.version": "2.6.0+rocm6.1"}, "torch==2.6.0 torchvision torchaudio --index-url {}rocm6.1"),
        ("torch", {"gpu.vendors": ("amd",), "os.name": "windows"}, "https://stable.repo.amd.com/rocm/whl-next/"),
        ("torch", {"gpu.vendors": ("intel",)}, "{}xpu"),
        ("torch", {"os.name": "macos"}, "-U torch torchvision torchaudio"),
        ("torch", {"os.kernel": "5.15.148-tegra"}, "https://pypi.jetson-ai-lab.io/jp6/cu126"),
        ("torch", {"os.kernel": "5.10.120-tegra"}, "-cp38-cp38-linux_aarch64.whl"),
        ("torch", {"os.kernel": "6.8.12-tegra"}, "https://pypi.jetson-ai-lab.io/sbsa/cu130"),
        ("torch", {"os.kernel": "4.9.253-tegra"}, None),
        ("torch", {"os.kernel": "5.15.148-tegra", "python.version": "3.10.12", "python.executable": "/v/bin/python"}, "/v/bin/python -m pip install"),
        ("torch", {"os.kernel": "5.15.148-tegra", "python.version": "3.11.2", "python.executable": "/v/bin/python"}, "python3.10 -m pip install"),
        ("torch", {"python.executable": "/v/bin/python"}, "/v/bin/python -m pip install"),
        ("cu118", {"gpu.vendors": ("amd",)}, None),
        ("same", {"torch.version": "2.3.1+cu121"}, "torch==2.3.1 --index-url {}cu121"),
        ("same", {"torch.version": "2.3.1"}, "--force-reinstall torch==2.3.1"),
        ("same", {}, None),
        ("torch", {"python.version": "3.8.10"}, "torch==2.4.1 torchvision==0.19.1 torchaudio==2.4.1 --index-url {}cu121"),
        ("torch", {"python.version": "3.7.16"}, "torch==1.13.1+cu117 torchvision==0.14.1+cu117 torchaudio==0.13.1 --extra-index-url {}cu117"),
        ("torch", {"python.version": "3.9.1", "driver.cuda": "13.0"}, "{}cu128"),
        ("torch", {"python.version": "3.8.10", "gpu.lowest_capability": 12.0}, None),
        ("cu126", {"python.version": "3.8.10"}, None),
        ("cpu", {}, "{}cpu"),
        ("torchaudio", {"torch.version": "2.1.1+cu118"}, '--no-deps "torchaudio==2.1.1" --index-url {}cu118'),
        ("torchaudio", {"torch.version": "2.1.1", "os.name": "macos"}, '--no-deps "torchaudio==2.1.1"'),
        ("torchvision", {"torch.version": "1.13.1"}, '--no-deps "torchvision==0.14.*"'),
        ("torchvision", {"torch.version": "2.6.0+cpu"}, '--no-deps "torchvision==0.21.0" --index-url {}cpu'),
        ("torchvision", {}, None),
        ("build", {"torch.version": "2.5.1+cpu"}, "torch==2.5.1 torchvision torchaudio --index-url {}cu124"),
        ("build", {"torch.version": "2.0.1", "driver.cuda": "11.4"}, "torch==2.0.1 torchvision torchaudio \"numpy<2\" --index-url {}cu118"),
        ("build", {"torch.version": "2.0.1", "driver.cuda": "11.4", "python.version": "3.8.1"}, "2.0.1 torchvision torchaudio --index-url {}cu118"),
        ("build", {"torch.version": "2.5.1+cpu", "gpu.lowest_capability": 12.0}, "--force-reinstall torch torchvision torchaudio --index-url {}cu128"),
        ("build", {"torch.version": "2.9.1", "driver.cuda": "11.4"}, "torch==2.7.1 torchvision==0.22.1 torchaudio==2.7.1 --index-url {}cu118"),
        ("build", {}, "--force-reinstall torch torchvision torchaudio --index-url {}cu126"),
        ("torchaudio", {"torch.version": "2.1.0", "os.kernel": "5.10.120-tegra"}, None),
        ("cu126", {"driver.cuda": "11.4"}, None),
        ("triton", {"torch.version": "2.8.0+cu128"}, '"triton-windows<3.5"'),
        ("triton", {"torch.version": "2.5.1"}, None),
        ("cu128", {"driver.cuda": "12.2"}, "{}cu128"),
        ("cu130", {"driver.cuda": "12.8"}, None),
        ("torch", {"gpu.lowest_capability": 12.1}, "{}cu130"),
    ],
)  # fmt: skip
def test_torch_is_installed_for_this_machine(
    name: str, machine: dict[str, FactValue], told: str | None
) -> None:
    transcript = read_text("ValueError: no such thing\n")
    event = transcript.events[0]
    facts = TextFacts(transcript, FactBook(known(machine)))
    seen = of_event(event, transcript, lambda name: facts.fact(name, event))
    fact = command(f"install.{name}", seen, lambda name: facts.fact(name, event))
    if told is None:
        assert fact.value is None
    else:
        wanted = told.replace("{}", "https://download.pytorch.org/whl/")
        assert wanted in str(fact.value)
        assert str(fact.value).endswith(wanted.rpartition(" ")[2]) or wanted.endswith("install")


OOM = (
    "Traceback (most recent call last):\n"
    '  File "{path}", line 88, in {function}\n    out = model(x)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.56 GiB "
    "of which 1.00 GiB is free. Of the allocated memory 21.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved "
    "by PyTorch but unallocated.\n"
)
LABEL = "RuntimeError: CUDA error: device-side assert triggered\nIndexError: Target {} is out of bounds.\n"
SHM = "{}RuntimeError: DataLoader worker (pid 37) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n"
GFX = "AMD Radeon RX {} gfx{}\nRuntimeError: HIP error: invalid device function\n"
TIMEOUT = (
    "[rank1]:[E1119 13:21:12.512786305 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds "
    "before timing out.\n"
)
PORT = (
    "{}RuntimeError: The server socket has failed to bind to [::]:{} (errno: 98 - Address already in use).\n"
)
STORE = (
    'Traceback (most recent call last):\n  File "/x/lib/python3.8/site-packages/torch/distributed/rendezvous.py", '
    "line 95, in f\nRuntimeError: Address already in use\n"
)
NAME = (
    "{}[W socket.cpp:436] [c10d] The IPv4 network addresses of (m-0, 23456) cannot be retrieved (gai error: -3 - x).\n"
    "torch.distributed.DistNetworkError: The client socket has timed out after 600s while trying to connect to (m-0, 23456).\n"
)
MET = (
    "{}RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for key: "
    "store_based_barrier_key:1 (world_size=8, worker_count={}, timeout=0:30:00)\n"
)
ORDINAL = "{}RuntimeError: CUDA error: invalid device ordinal\n"
HUB = "huggingface_hub.errors.HfHubHTTPError: {} for url: https://huggingface.co/api/models/a/b\n"


# of each rule with such a value: which value puts which fix first
@pytest.mark.parametrize(
    ("text", "start"),
    [
        (OOM.format(path="/home/me/train.py", function="train"), "Halve the batch size"),
        (OOM.format(path="/x/lib/python3.10/site-packages/vllm/v1/worker.py", function="execute_model"), "Lower --gpu"),
        (OOM.format(path="/home/me/ComfyUI/execution.py", function="process"), "Start ComfyUI with --lowvram"),
        (OOM.format(path="/x/lib/python3.10/site-packages/sglang/srt/model.py", function="forward"), "Lower --mem-frac"),
        (SHM.format("docker run --rm -it image python train.py\n"), "Start the container again with a larger /dev/shm"),
        (SHM.format("KUBERNETES_SERVICE_HOST=10.0.0.1\n"), "Mount an emptyDir"),
        (GFX.format("7600 XT", "1102"), "Let the card pose as gfx1100"),
        (GFX.format("6600", "1032"), "Let the card pose as gfx1030"),
        (TIMEOUT.format(1), "See where each rank stands"),  # the others may not have come yet
        (TIMEOUT.format(469), "Read the other ranks' logs of this run"),
        (PORT.format("SLURM_JOB_ID=3\n", 12211), "Choose a port of its own for each job, since 12211"),
        (NAME.format("srun: job 8 queued\n"), "Set MASTER_ADDR to the name of the job's first node"),
        (NAME.format("KUBERNETES_SERVICE_HOST=10.0.0.1\n"), "Set MASTER_ADDR to POD.SERVICE of a headless Service"),
        (NAME.format(""), "Set MASTER_ADDR to an address or name that every node knows (127.0.0.1 on one machine), or add m-0 to"),
        (MET.format("srun: job 8 queued\n", 21), "Start one launcher on each node: 21 processes came"),
        (MET.format("srun: job 8 queued\n", 5), "Find the processes that are missing: 5 of 8"),
        (MET.format('srun: job 8 queued\n  File "/x/lib/python3.10/site-packages/lightning/pytorch/a.py", line 3\n', 5),
         "Ask Slurm for as many tasks a node"),
        (ORDINAL.format("srun --gpus-per-task=1 python fit.py\n"), "Use cuda:0 in every task, since Slurm binds 1 GPU"),
        (ORDINAL.format("srun: job 8 queued\n"), "Choose the device by what the task sees"),
        (ORDINAL.format("CUDA_VISIBLE_DEVICES=3\n"), "Use cuda:0: CUDA_VISIBLE_DEVICES=3 shows"),
        (ORDINAL.format("CUDA_VISIBLE_DEVICES=3,5\n"), "Count from 0 inside the program"),
        (ORDINAL.format("$ torchrun --nproc_per_node=4 fit.py\n"), "Start no more processes on a node than it has visible"),
        ("srun --gpus-per-task=1 python fit.py\nn3:2:3 [0] transport/shm.cc:590 NCCL WARN Cuda failure 101 'invalid device ordinal'\n",
         "Let each task see all GPUs of its node"),
        (PORT.format("", 29500), "Choose another port for this job, since 29500"),
        (PORT.format("$ srun torchrun --nproc_per_node=4 fit.py\nsrun: job 8 queued\n", 29500), "Choose a port of its own for each job, as --master-port"),
        ("$ mpirun -np 4 python fit.py\n" + STORE * 2, "Take the rank from mpirun, in each process"),
        ("[rank0] RCCL\nMemory access fault by GPU node-1 (Agent handle: 0x1) on address 0x7f58f8001000. Reason: Page not present\n",
         "Change the host's linux-firmware"),
        ("$ docker run --gpus all img\nRuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW\n",
         "Update the host's NVIDIA driver"),
        ("IndexError: Target 10 is out of bounds.\n", "Give the last layer one output for each class: label 10"),
        ("IndexError: Target -1 is out of bounds.\n", "Pass ignore_index=-1"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x768 and 512x10)\n", "Set in_features to what"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x10)\n", "Set in_features to what"),
    ],
)  # fmt: skip
def test_a_value_puts_its_fix_first(text: str, start: str, rules: RuleSet) -> None:
    fixes = first(text, rules).fixes
    assert fixes[0].do.startswith(start), [fix.do for fix in fixes]


SLURM, POD, COLAB = (
    "srun: job 8 queued\n",
    "KUBERNETES_SERVICE_HOST=10.0.0.1\n",
    'File "/content/fit.py", line 2\n',
)
LOST = "{}[ 12.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=2012, GPU has fallen off the bus.\nCUDA error: unknown error\n"
KILLED = "{}RuntimeError: DataLoader worker (pid 37) is killed by signal: Killed.\n"
MIXED = "{}Failed to initialize NVML: Driver/library version mismatch\n"
NVCC = "{}OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.\n"
BIND = "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n"
CUDART = (
    'Traceback (most recent call last):\n  File "/x/lib/python3.10/site-packages/{}", line 1, in <module>\n'
    "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n"
)
MPS = (
    "NotImplementedError: The operator '{}' is not currently implemented for the MPS device. If you want this op to be added "
    "in priority, please comment on https://github.com/pytorch/pytorch/issues/77764.\n"
)
GLOBAL_DEPS = (
    'Traceback (most recent call last):\n  File "{0}/torch/__init__.py", line 191, in <module>\n    _load_global_deps()\n'
    '  File "{0}/torch/__init__.py", line 153, in _load_global_deps\n    ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)\n'
    "OSError: {1}: cannot open shared object file: No such file or directory\n"
)
DIST, ENV = (
    "/usr/local/lib/python3.8/dist-packages",
    "/home/me/miniconda3/envs/old/lib/python3.8/site-packages",
)
L4T = "# R{} (release), REVISION: {}, GCID: 18284527, BOARD: t186ref, EABI: aarch64\n"
TENSILE = "rocBLAS error: Cannot read {}/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : {}\nAborted (core dumped)\n"
NO_DRIVER = (
    '{}  File "{}", line 2, in <module>\nRuntimeError: Found no NVIDIA driver on your system. Please check that you have an '
    "NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx\n"
)
PTXAS = (
    "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n"
    "ptxas fatal   : Value '{0}' is not defined for option 'gpu-name'\n\n"
    "Repro command: /v/triton/backends/nvidia/bin/{1} -lineinfo --gpu-name={0} /tmp/t.ptx -o /tmp/t.ptx.o\n"
)
DLL = (
    'Traceback (most recent call last):\n  File "E:\\\\comfy\\\\{0}\\\\Lib\\\\site-packages\\\\torch\\\\__init__.py", line 148, in <module>\n'
    '    raise err\nOSError: [WinError {1}] %1. Error loading "E:\\\\comfy\\\\{0}\\\\Lib\\\\site-packages\\\\torch\\\\lib\\\\cufft.dll" or one of its dependencies.\n'
).replace("\\\\", "\\")
MSVC_HEADER = (
    "cuda_utils.c\nC:\\Temp\\tmp1\\cuda_utils.c(12): fatal error C1083: Cannot open include file: 'Python.h': No such file or directory\n"
    'Traceback (most recent call last):\n  File "E:\\work\\{}\\Lib\\site-packages\\triton\\runtime\\jit.py", line 607, in run\n'
    "    device = driver.active.get_current_device()\n"
)
MPS_MIXED = (
    '% {}\nloc("mps_add"("(mpsFileLoc): /AppleInternal/MPSGraphUtilities.mm":219:0)): error: input types \'tensor<2x64xf32>\' and '
    "'tensor<*xf16>' are not broadcast compatible\nLLVM ERROR: Failed to infer result type(s).\n"
)
GPU_FAULT = "{}\nMemory access fault by GPU node-1 (Agent handle: 0x55e9) on address (nil). Reason: Page not present.\nAborted (core dumped)\n"
HUB_WEIGHTS = (
    'Traceback (most recent call last):\n  File "/v/lib/python3.10/site-packages/transformers/modeling_utils.py", line 392, in load_state_dict\n'
    '    return torch.load(checkpoint_file, map_location="cpu")\n  File "/v/lib/python3.10/site-packages/torch/serialization.py", line 242, in __init__\n'
    "    super().__init__(torch._C.PyTorchFileReader(name_or_buffer))\n"
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n"
)
SIGILL_ARM = (
    '(gdb) run\nUsing host libthread_db library "/lib/aarch64-linux-gnu/libthread_db.so.1".\n>>> import torch\n\n'
    "Program received signal SIGILL, Illegal instruction.\n0x0000007fec0 in std::string::_Rep::_M_dispose ()\n"
    "   from /v/lib/python3.9/site-packages/torch/lib/../../torch.libs/libarm_compute-0000.so\n"
)
OPENMP = (
    "OMP: Error #15: Initializing libomp.dylib, but found libiomp5.dylib already initialized.\nzsh: abort      python fit.py\n"
    "me@mac lab % {}\nme@mac lab % python fit.py\nzsh: segmentation fault  python fit.py\n"
)
TLS = "{}ImportError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block\n"
CELL = "<ipython-input-3-5d0c1f2b7a11> in <module>\n      1 import cv2\n----> 2 import torch\n\n"
CONDITION = "{}nvidia-container-cli: requirement error: unsatisfied condition: cuda>={}, please update your driver to a newer version\n"
P100 = (
    "{}Tesla P100-PCIE-16GB with CUDA capability sm_60 is not compatible with the current PyTorch installation.\n"
    "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
)
NO_FILE = "{}OSError: /d/m does not appear to have a file named {}. Checkout 'https://huggingface.co//d/m/tree/None' for available files.\n"
PYTHON_H = (
    "building 'ops._C' extension\n/opt/venv/lib/python{0}/site-packages/torch/include/torch/csrc/python_headers.h:12:10: "
    "fatal error: Python.h: No such file or directory\n"
)
TOOLCHAIN = (
    "RuntimeError: CUDA runtime error: the provided PTX was compiled with an unsupported toolchain. "
    "./engine/src/utils/copy.cu:32\n"
)
MAC = (
    'python fit.py {}\n  File "/Users/me/studio/fit.py", line 20, in build\n    d = torch.zeros(3).cuda()\n'
    "AssertionError: Torch not compiled with CUDA enabled\n"
)
IMAGE = (
    ' => ERROR [ 7/11] RUN pip install ./raster\n#12 9.871     File "/opt/conda/lib/python3.10/site-packages/torch/utils/cpp_extension.py", '
    "line 1985, in _get_cuda_arch_flags\n#12 9.871       arch_list[-1] += '+PTX'\n#12 9.871   IndexError: list index out of range\n"
)
BCE = (
    "{}\n/x/aten/src/ATen/native/cuda/Loss.cu:94: operator(): block: [9,0,0], thread: [6,0,0] "
    "Assertion `input_val >= zero && input_val <= one` failed.\n"
)
PEER = (
    "!NCCL_DEBUG=INFO accelerate launch --num_processes 2 fit.py\n"
    "e3a1:14:14 [0] NCCL INFO Channel 00 : 0[40] -> 1[50] via P2P/IPC\n"
    "e3a1:14:14 [0] transport/p2p.cc:238 NCCL WARN failed to open CUDA IPC handle : 217 "
    "peer access is not supported between these two devices\n"
)
CRASH = "{}Fatal Python error: Segmentation fault\n\nCurrent thread 0x00001a2c (most recent call first):\n"


# the same failure, and who has it
@pytest.mark.parametrize(
    ("text", "start"),
    [
        (LOST.format(""), "Power the machine off"),
        (LOST.format(SLURM), "Start the job again without this node"),
        (LOST.format(POD), "Let the pod start on another node"),
        (KILLED.format(""), "Lower num_workers"),
        (KILLED.format(SLURM), "Ask for more memory (--mem)"),
        (KILLED.format(POD), "Raise resources.limits.memory"),
        (MIXED.format(""), "Reboot the machine"),
        (MIXED.format(SLURM), "Start the job again without this node"),
        (MIXED.format(COLAB), "Start a new session"),
        (NVCC.format(""), "Install the CUDA toolkit of the version that torch names"),
        (NVCC.format(SLURM), "Load the cluster's module"),
        (MPS.format("aten::equal"), "Let 'aten::equal' run on the CPU"),
        (GLOBAL_DEPS.format(DIST, "libcufft.so.10"), "Put the folder of libcufft.so.10 on the loader's path"),
        (GLOBAL_DEPS.format(ENV, "libcufft.so.10"), "Install torch again with its CUDA libraries"),
        (GLOBAL_DEPS.format(DIST, "libcufft.so.10") + L4T.format(32, "3.1"), "Start the container with --runtime nvidia, from an image for L4T 32.3.1"),
        (GLOBAL_DEPS.format(DIST, "libcudnn.so.8") + L4T.format(32, "7.1"), "Start the container with --runtime nvidia, from an image for L4T 32.7.1"),
        (GLOBAL_DEPS.format(DIST, "libcufft.so.10") + L4T.format(35, "4.1"), "Install the library with JetPack's own packages"),
        (TENSILE.format("/opt/rocm/lib", "gfx900"), "Install the build for ROCm 6.3, the last whose rocBLAS has kernels for gfx900"),
        (TENSILE.format("C:\\Program Files\\AMD\\ROCm\\6.2\\bin", "gfx1031"), "Put rocBLAS kernels built for gfx1031"),
        (TENSILE.format("/opt/rocm/lib", "gfx1036"), "Hide the processor's own GPU, gfx1036"),
        (TENSILE.format("/opt/rocm/lib", "gfx1031"), "Let the card pose as gfx1030"),
        (TENSILE.format("/opt/rocm/lib", "gfx1103"), "Install AMD's own build of torch, which has code for gfx1103"),
        (TENSILE.format("/opt/rocm/lib", "gfx1010"), "Run on the CPU, or build torch and rocBLAS"),
        (TENSILE.format("/opt/rocm/lib", "gfx1100"), "Install torch's current build for ROCm"),
        (NO_DRIVER.format("", "/home/me/a.py"), "Look for the card first"),
        (NO_DRIVER.format("GeForce RTX 3070\n", "/home/me/a.py"), "Install NVIDIA's driver for this card"),
        (PTXAS.format("sm_121a", "ptxas"), "Let Triton use the ptxas of a toolkit of CUDA 12.9 or later"),
        (PTXAS.format("sm_120", "ptxas"), "Let Triton use the ptxas of a toolkit of CUDA 12.8 or later"),
        (TLS.format('  File "/v/lib/python3.8/site-packages/torch/__init__.py", line 9, in <module>\n'), "Load this library before everything else"),
        (TLS.format(CELL + "/usr/local/lib/python3.10/dist-packages/torch/__init__.py in <module>\n").replace("aarch64", "x86_64"),
         "Import torch, or the package that fails, before the other packages: in a notebook"),
        (CONDITION.format("", "12.8"), "Install driver 570.26 (570.65 on Windows) or later on the host"),
        (CONDITION.format("PS C:\\\\work> docker run x\n", "12.8"), "Install driver 570.65 or later in Windows"),
        (CONDITION.format(POD, "12.8"), "Take an image of a CUDA version that the host's driver offers"),
        (P100.format('File "/kaggle/working/fit.py", line 2\n'), "Choose the accelerator GPU T4 x2"),
        (P100.format(""), "Install a build for CUDA 12.6"),
        (CRASH.format("") + '  File "/x/lib/python3.10/site-packages/torch/nn/conv.py", line 4 in forward\n',
         "Install torch with what it pins in a fresh environment"),
        (CRASH.format("import torch\n") + '  File "/x/lib/python3.10/site-packages/mmcv/ops.py", line 4 in forward\n',
         "Install mmcv again in its build for this torch"),
        ("DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n", "Find the processes that are missing"),
        ("$ vllm serve a/b\n" + BIND, "Start the server on another port, since 8000"),
        (CUDART.format("mmcv/ops/__init__.py"), "Install mmcv in its build for torch's CUDA"),
        (PYTHON_H.format("3.9"), "Install the headers of Python 3.9, which builds here"),
        (TOOLCHAIN + L4T.format(35, "4.1"), "Build engine again from a clean folder with JetPack's own nvcc"),
        (TOOLCHAIN, "Build engine for this GPU's own architecture"),
        ("| NVIDIA-SMI 470.199  Driver Version: 470.199 |\n" + TOOLCHAIN, "Build with, or take a package or image for, CUDA 11.4 at most"),
        (MAC.format("--device=mps "), "Run it on a machine with an NVIDIA GPU"),
        (MAC.format(""), "Change .cuda() to .to('mps')"),
        (' => ERROR [ 4/9] RUN python warm.py\n#9 3.1 RuntimeError: No CUDA GPUs are available\n', "Move the step that asks for the GPU"),
        (IMAGE, "Name your card's architecture in the Dockerfile"),
        (NO_FILE.format("$ python a.py --base /d/m\n", "config.json"), "Point --base at the folder that holds the whole model: /d/m"),
        (NO_FILE.format("", "config.json"), "Give the path of the folder that holds the whole model: /d/m"),
        (NO_FILE.format("", "preprocessor_config.json"), "Copy preprocessor_config.json from the base model into /d/m"),
        (CUDART.format("torch/__init__.py"), "Reinstall torch with the nvidia-* packages"),
        (BCE.format("it 9  D nan  G 0.2"), "Find what made the loss NaN"),
        (BCE.format("it 9  D 0.4  G 0.2"), "Use binary_cross_entropy_with_logits"),
        (BCE.format("UserWarning: torch.nan_to_num('nan')"), "Use binary_cross_entropy_with_logits"),
        (DLL.format("python_embeded", 182), "Install torch once more with the portable Python itself"),
        (DLL.format("python_embeded", 126), "Install the current Visual C++ runtime"),
        (DLL.format("venv", 193), "Install torch once more, all of its files"),
        (MSVC_HEADER.format("python_embeded"), "Put the folders include and libs"),
        (MSVC_HEADER.format("py312"), "Repair this Python with its installer"),
        (MPS_MIXED.format("python webui.py"), "Start the web UI with --no-half"),
        (MPS_MIXED.format("python ComfyUI/main.py"), "Start ComfyUI with --force-fp32"),
        (MPS_MIXED.format("python fit.py"), "Run in float32, without mixed precision (no .half(), no autocast)"),
        (GPU_FAULT.format("AdamW (\nParameter Group 0\n    eps: 1e-08\n    fused: True\n    lr: 0.001\n)\nstep 0: loss 4.1"), "Switch the fused optimizer off"),
        (GPU_FAULT.format("torch 2.3.1+rocm6.0\ntorch.optim.AdamW(model.parameters(), fused=True)\nstep 0: loss 4.1"), "Make every launch wait"),
        (GPU_FAULT.format("loss 4.1"), "Make every launch wait"),
        (GPU_FAULT.format("loading"), "Change the host's linux-firmware"),
        (HUB_WEIGHTS, "Delete the model from the Hugging Face cache"),
        (SIGILL_ARM, "Take torch 2.3.1"),
    ],
)  # fmt: skip
def test_the_surroundings_put_their_fix_first(text: str, start: str, rules: RuleSet) -> None:
    fixes = first(text, rules).fixes
    assert fixes[0].do.startswith(start), [fix.do for fix in fixes]


@pytest.mark.parametrize(
    ("text", "never"),
    [
        # training advice where a server ran
        (OOM.format(path="/x/lib/python3.10/site-packages/vllm/v1/worker.py", function="execute_model"),
         "accumulation|gradient_checkpointing|Train in"),
        # an IndexError on the CPU leaves CUDA as it was
        ("IndexError: index 7 is out of bounds for dimension 0 with size 5\n", "CUDA is unusable|estart the process"),
        ("IndexError: Target 10 is out of bounds.\n", "CUDA is unusable|estart the process"),
        # autocast does not touch float64
        ("RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float\n", "under torch.autocast"),
        # a Mac has no CUDA, and no libraries of Linux
        ('Traceback (most recent call last):\n  File "/Users/me/a.py", line 3, in <module>\n    x.cuda()\n'
         "AssertionError: Torch not compiled with CUDA enabled\n", "CUDA build|nvidia|LD_LIBRARY_PATH"),
        # a package's operator is not the reader's to register
        (MPS.format("torchvision::nms"), "your own operator"),
        # a Jetson's libraries are JetPack's, and so are those of a build that takes CUDA from the system
        (GLOBAL_DEPS.format(DIST, "libcufft.so.10") + L4T.format(32, "3.1"), "pip install|pytorch.org"),
        (GLOBAL_DEPS.format(DIST, "libcudnn.so.8"), "pip install|pytorch.org"),
        (GLOBAL_DEPS.format(DIST, "libcusparseLt.so.0") + L4T.format(36, "4"), "pip install nvidia|pytorch.org"),
        # ptxas of CUDA 12.8 does not know the card
        (PTXAS.format("sm_121a", "ptxas"), "cu128|12\\.8"),
        # no card of one family runs another's code
        (TENSILE.format("/opt/rocm/lib", "gfx900"), "HSA_OVERRIDE|/dev/kfd|usermod"),
        (TENSILE.format("/opt/rocm/lib", "gfx1010"), "HSA_OVERRIDE"),
        # what is set in a running kernel comes too late for the loader
        (TLS.format(CELL), "%env"),
        # nothing can be installed in a container that does not start
        (CONDITION.format("", "12.8"), "pip install|cuda-compat"),
        # torch from PyPI is the CPU build on Windows
        ("(py310) D:\\unet>python train.py\nPyTorch version: 2.0.1\n"
         "Could not load library cudnn_cnn_infer64_8.dll. Error code 126\n", "force-reinstall"),
        # torch's own bridge to NumPy is no module to install again
        ('  File "/home/me/data.py", line 40, in load\nRuntimeError: Numpy is not available\n', "PACKAGE"),
        # the kernel of an extension fails, and torch's own run
        ("GPU 0: NVIDIA H20 (arch=9.0)\n"
         "error in ms_deformable_im2col_cuda: no kernel image is available for execution on the device\n", "pytorch.org|PACKAGE"),
        # what peer access lacks is no setting of the machine, nor an earlier fault of the program
        (PEER, "BIOS|CUDA_LAUNCH_BLOCKING|driver|NCCL_DEBUG=INFO NCCL_DEBUG"),
        ("DataLoader\nOSError: [Errno 12] Cannot allocate memory\n"
         '  File "/x/lib/python3.12/multiprocessing/popen_fork.py", line 66, in _launch\n    self.pid = os.fork()\n'
         "OSError: [Errno 12] Cannot allocate memory\n", "ulimit|pids-limit|OMP_NUM_THREADS"),
        # a portable program starts no environment, and what has compiled is a compiler
        (DLL.format("python_embeded", 182), "venv"),
        (MSVC_HEADER.format("python_embeded"), "Visual Studio|TORCHDYNAMO_DISABLE"),
        # what a model is made of is not optional, and the notebook has a GPU to choose
        (CELL.replace("import torch", "AutoModel.from_pretrained(path, trust_remote_code=True)")
         + "RuntimeError: 0 active drivers ([]). There should only be one.\n/content/\n", "eave out"),
        # the options of one program are not another's
        (MPS_MIXED.format("python webui.py"), "mixed_precision|force-fp32"),
        # what was typed has been tried
        (OPENMP.format("export KMP_DUPLICATE_LIB_OK=TRUE"), "KMP_DUPLICATE_LIB_OK"),
        (OPENMP.format("os.environ['KMP_DUPLICATE_LIB_OK'] = 'TRUE'"), "KMP_DUPLICATE_LIB_OK"),
        # the library that faulted is torch's own
        (SIGILL_ARM, "OPENBLAS|PACKAGE"),
        # NCCL has told what it does
        ("node1:31:84 [2] NCCL INFO Channel 00/0 : 2[2] -> 10[2] [send] via NET/Libfabric/2\nnode1:31:84 [2] NCCL WARN NET/OFI Request "
         "0x7f completed with error. RC: 103. Error: 4126 (Unresponsive receiver). Completed length: 0\n", "NCCL_DEBUG"),
        # DeepSpeed, and no DataLoader, pins
        ('  File "/v/lib/python3.12/site-packages/deepspeed/accelerator/cuda_accelerator.py", line 296, in pin_memory\n'
         "    return tensor.cpu().pin_memory()\nRuntimeError: CUDA error: invalid argument\n", "DataLoader"),
        # the card's own number is what this nvcc refused
        ("RuntimeError: Error building extension 'splat'\nnvcc fatal   : Unsupported gpu architecture 'compute_120'\n",
         "get_device_capability|/usr/bin/nvcc"),
        # Windows shares no CUDA memory, whatever is set
        ("RuntimeError: cuda runtime error (801) : operation not supported at ..\\torch/csrc/generic/StorageSharing.cpp:249\n",
         "NCCL|LAUNCH_BLOCKING|virtual GPU"),
        # the minimum of a driver never contradicts the reader's own
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"
         "| NVIDIA-SMI 470.10  Driver Version: 470.10  CUDA Version: 11.4 |\n", "CUDA 12 build"),
    ],
)  # fmt: skip
def test_advice_that_is_wrong_for_this_reader_is_never_shown(text: str, never: str, rules: RuleSet) -> None:
    shown = [f"{fix.do} {fix.run or ''}" for fix in first(text, rules).fixes]
    assert shown
    assert not [text for text in shown if re.search(never, text)]


@pytest.mark.parametrize(
    ("rule", "needed", "never"),
    [
        ("gloo-peer-lost", "30 minutes", "NCCL_|10 minutes"),
        ("gloo-connect", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
        ("meta-tensor-no-data", "to_empty", r"\.to\(device\)"),
        ("extension-stale-lock", "lock", "wheel"),
        ("cudnn-execution-failed", "contiguous", "^Free memory"),
        ("scheduler-oom-kill", "--mem", "256G"),
        ("libtorch-mixed", "server", ""),
    ],
)
def test_advice_of_a_rule_keeps_what_was_found_wrong(
    rule: str, needed: str, never: str, rules: RuleSet
) -> None:
    fixes = rules.text(rule).fixes
    text = " ".join(f"{item.fix.do} {item.fix.run or ''}" for item in fixes)
    assert needed in text
    assert not (never and re.search(never, fixes[0].fix.do if never.startswith("^") else text))


# DeepSpeed's probe for libaio fails on every Windows, and the build goes on
AIO_PROBE = """\
PS C:\\src\\DeepSpeed-0.15.1> .\\build_win.bat
LINK : fatal error LNK1181: cannot open input file 'aio.lib'
 [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.
Traceback (most recent call last):
  File "C:\\src\\DeepSpeed-0.15.1\\op_builder\\builder.py", line 103, in assert_no_cuda_mismatch
    raise CUDAMismatchException(
op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.4 does not match the version torch was compiled with 11.8, unable to compile cuda/cpp extensions without a matching cuda version.
"""


def test_a_probe_of_a_build_is_not_its_failure(rules: RuleSet) -> None:
    found = first(AIO_PROBE, rules)
    assert found.rule == "extension-cuda-mismatch"
    assert not [fix.do for fix in found.fixes if "libaio" in fix.do or "apt-get" in (fix.run or "")]


def test_a_check_asks_the_interpreter_that_ran() -> None:
    told = adapted("python -m knobs; python3 -c 'import knobs'", {}, None, "/opt/env/bin/python")
    assert told == "/opt/env/bin/python -m knobs; /opt/env/bin/python -c 'import knobs'"
    assert adapted("python train.py", {}, "fit.py", "/opt/env/bin/python") == "python fit.py"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("nvidia-smi | head -4; python -c 'import torch; print(torch.version.cuda)'", "nvidia-smi | head -4"),
        ("docker info", "docker info"),
        ("python -c 'import torch'", None),
        ("print(torch.version.cuda)", None),
    ],
)
def test_where_no_container_started_only_its_host_is_asked(command: str, told: str | None) -> None:
    assert of_host(command) == told


@pytest.mark.parametrize(
    ("srun", "rank", "told"),
    [
        (
            "task 2: Exited with exit code 1\nsrun: error: node-b: task 3: Aborted (core dumped)",
            2,
            "Read the output of task 2",
        ),
        (
            "task 2: Exited with exit code 1\nsrun: error: node-b: task 3: Exited with exit code 134",
            2,
            "Read the output of task 2",
        ),
        ("tasks 2-3: Exited with exit code 1", 3, "Ask how the processes"),  # launchers of ranks leave alike
    ],
)
def test_a_rank_that_lost_its_peer_is_not_first_where_another_task_left(
    srun: str, rank: int, told: str, rules: RuleSet
) -> None:
    text = f"""srun: error: node-a: {srun}
[rank3]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 3] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.20.5
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
Last error:
socketProgress: Connection closed by remote peer node-a<45074>
"""
    report = diagnose(read_text(text), FactBook(None), rules)
    assert report.first_failure is not None
    assert report.first_failure.rank == rank
    assert report.diagnoses[0].rule == "nccl-remote-error"
    assert report.diagnoses[0].fixes[0].do.startswith(told)


@pytest.mark.parametrize(
    ("folder", "own"), [("/workspace/server", False), ("/handler", False), ("/home/me/server", True)]
)
def test_a_program_of_an_image_is_not_told_to_load_modules(folder: str, own: bool, rules: RuleSet) -> None:
    text = f"""Traceback (most recent call last):
  File "{folder}/main.py", line 12, in <module>
    device = torch.device("cuda", torch.cuda.current_device())
  File "/usr/local/lib/python3.11/dist-packages/torch/cuda/__init__.py", line 293, in _lazy_init
    torch._C._cuda_init()
RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.
"""
    found = first(text, rules)
    assert found.rule == "cuda-unknown-error"
    assert found.fixes[0].do.startswith("Load the module") is own
    assert any("sudo " in (fix.run or "") for fix in found.fixes) is own


@pytest.mark.parametrize(
    ("compiler", "told"),
    [("x86_64-conda-linux-gnu-c++", "Install conda's cuDNN"), ("/usr/bin/g++", "Name the folder of cuDNN")],
)
def test_a_header_of_conda_is_for_compilers_of_conda(compiler: str, told: str, rules: RuleSet) -> None:
    text = f"""  {compiler} -MMD -MF common.o.d -c csrc/common.cpp
  In file included from /home/me/conda/envs/lm/lib/python3.10/site-packages/torch/include/ATen/cudnn/Handle.h:4,
                   from /tmp/pip-req-build-x1/csrc/common.h:14:
  /home/me/conda/envs/lm/lib/python3.10/site-packages/torch/include/ATen/cudnn/cudnn-wrapper.h:3:10: fatal error: cudnn.h: No such file or directory
      3 | #include <cudnn.h>
        |          ^~~~~~~~~
  compilation terminated.
"""
    found = first(text, rules)
    assert found.rule == "extension-cudnn-missing"
    assert found.fixes[0].do.startswith(told)


@pytest.mark.parametrize(
    "line",
    [
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4, reducing to 2",
    ],
)
def test_a_loss_scale_of_deepspeed_is_told_in_the_words_of_its_config(line: str, rules: RuleSet) -> None:
    found = first(line, rules)
    assert found.rule == "loss-nan"
    assert found.fixes[0].do.startswith("Train in bfloat16")
    assert not [fix.do for fix in found.fixes if "clip_grad_norm_" in fix.do]


@pytest.mark.parametrize(
    ("numpy", "told"), [("2.0.1", "Install NumPy below 2"), ("1.26.4", "Set num_workers=0")]
)
def test_a_division_by_zero_in_native_code_is_numpy_2_where_the_text_shows_it(
    numpy: str, told: str, rules: RuleSet
) -> None:
    text = f"""numpy    {numpy}
ERROR: Unexpected floating-point exception encountered in worker.
RuntimeError: DataLoader worker (pid 4711) is killed by signal: Floating point exception.
"""
    found = first(text, rules)
    assert found.rule == "dataloader-worker-segfault"
    assert found.fixes[0].do.startswith(told)


@pytest.mark.parametrize(
    ("above", "named"),
    [
        ("Closing dataloader mosaic\n", "or workers=0 as a test"),
        ("[1,0]<stdout>: iteration 5/ 9 | consumed samples: 64 |\n", "or --num-workers=0 as a test"),
        ("Epoch 1/10\n", "or num_workers=0 as a test"),
    ],
)
def test_the_number_of_workers_has_the_name_of_the_program(above: str, named: str, rules: RuleSet) -> None:
    bus = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
    assert [fix for fix in first(above + bus, rules).fixes if named in fix.do]


# (text, how its first fix starts, what no fix says): shapes that differ from a fixture's by a value alone
_CELLS = "-" * 75 + "\nRuntimeError                              Traceback (most recent call last)\n"

BY_VALUE = [
    (  # the environment's nvcc and another CUDA's headers; no conda beside micromamba, and no pip in a JIT build
        "Using /home/u/user1/.cache/torch_extensions/py310_cu124 as PyTorch extensions root...\n"
        "[1/2] /srv/micromamba/envs/robot/bin/nvcc -isystem "
        "/srv/micromamba/envs/robot/lib/python3.10/site-packages/torch/include -c /srv/own/adam.cu -o adam.o\n"
        "FAILED: adam.o\n"
        "In file included from /usr/include/cuda_runtime.h:83,\n                 from <command-line>:\n"
        "/usr/include/crt/host_config.h:139:2: error: #error -- unsupported GNU version! gcc versions later than "
        "11 are not supported!\n"
        "ninja: build stopped: subcommand failed.\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 3, in <module>\n    fit()\n'
        '  File "/srv/micromamba/envs/robot/lib/python3.10/site-packages/torch/utils/cpp_extension.py", line 2112, '
        "in _run_ninja_build\n    raise RuntimeError(message) from e\n"
        "RuntimeError: Error building extension 'fused_adam'\n",
        "Install the whole toolkit of nvcc's release into the environment",
        "pip install",
    ),
    (  # CANN's own compiler, and root at the prompt, who has no sudo
        '(npu) root@board:~/probe# python3 -c "import torch, torch_npu; a = torch.ones(3).npu(); a * a"\n'
        "In file included from <built-in>:1:\n"
        "/usr/local/Ascend/ascend-toolkit/8.0.0/aarch64-linux/ccec_compiler/lib/clang/15.0.5/include/"
        "__clang_cce_vector_intrinsics.h:20:10: fatal error: 'type_traits' file not found\n"
        "RuntimeError: The Inner error is reported as above. The current working operator name is Mul.\n",
        "Install the C++ half of the compiler",
        "CXX=g++",
    ),
    (  # groups are not for root
        "Traceback (most recent call last):\n"
        '  File "/root/heat/step.py", line 10, in <module>\n    grid = torch.zeros(100, device="cuda")\n'
        "RuntimeError: No HIP GPUs are available\n",
        "Run rocminfo in this shell: if it says NOT loaded",
        "usermod",
    ),
    (  # MMEngine's own checkpoint: one class after the other would be refused
        'Traceback (most recent call last):\n  File "/srv/own/xt/utils.py", line 314, in guess\n'
        '    state = torch.load(path, map_location="cpu")\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/serialization.py", line 1524, in load\n'
        "    raise pickle.UnpicklingError(_get_wo_message(str(e))) from None\n"
        "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded\n"
        "        WeightsUnpickler error: Unsupported global: GLOBAL mmengine.logging.history_buffer.HistoryBuffer was not an "
        "allowed global by default.",
        "Write weights_only=False into the torch.load at utils.py:314",
        "Allow just",
    ),
    (
        'Traceback (most recent call last):\n  File "/srv/own/aot.py", line 15, in make\n    so = aot_compile(\n'
        '  File "/srv/env/lib/python3.9/site-packages/torch/export/_trace.py", line 576, in _export_to_torch_ir\n'
        "    raise UserError(UserErrorType.CONSTRAINT_VIOLATION, str(e))  # noqa: B904\n"
        "torch._dynamo.exc.UserError: L['ids'].size()[1] = 64 is not equal to L['mask'].size()[1] = 32",
        "Give the two inputs of the message a Dim each in dynamic_shapes",
        "Suggested fixes",
    ),
    (  # the workers of a training are forked when its model is on the GPU
        "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.8/site-packages/torch/utils/data/_utils/worker.py", line 302, in _worker_loop\n'
        "    data = fetcher.fetch(index)\n"
        '  File "/srv/own/fit.py", line 81, in __getitem__\n    z = self.coder(x.to(self.device))\n'
        '  File "/srv/env/lib/python3.8/site-packages/torch/cuda/__init__.py", line 207, in _lazy_init\n'
        "    raise RuntimeError(\n"
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use "
        "the 'spawn' start method",
        "Return CPU tensors from the dataset, and do in the training loop, on the whole batch, what fit.py:81 does",
        "after the fork",
    ),
    (
        'Traceback (most recent call last):\n  File "/srv/own/train.py", line 70, in <module>\n    trainer.train()\n'
        '  File "/srv/env/lib/python3.10/site-packages/transformers/trainer.py", line 3633, in compute_loss\n'
        "    outputs = model(**inputs)\n"
        '  File "/srv/env/lib/python3.10/site-packages/torch/nn/parallel/data_parallel.py", line 207, in scatter\n'
        "    return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)\n"
        '  File "/srv/env/lib/python3.10/site-packages/torch/nn/parallel/comm.py", line 205, in scatter\n'
        "    return tuple(torch._C._scatter(tensor, devices, chunk_sizes, dim, streams))\n"
        "RuntimeError: chunk expects at least a 1-dimensional tensor",
        "Show this process one GPU",
        "cut with the batch",
    ),
    (  # the value is known: no step is run again to print it
        "step 60/900 loss 0.412\nstep 61/900 loss 0.409\n"
        "[rank3]: Traceback (most recent call last):\n"
        '[rank3]:   File "/srv/own/fit.py", line 88, in step\n[rank3]:     assert not cfg.frozen\n'
        "[rank3]: AssertionError",
        "Print, on rank 3, what the branch above this assert decides by",
        "Print the values",
    ),
    (
        'Traceback (most recent call last):\n  File "/srv/own/fit.py", line 8, in load\n    assert self.parts\n'
        "AssertionError",
        "Find out what led here, the branch above this assert or the code that sets self.parts",
        "Print the values",
    ),
    (  # under Slurm more GPUs are asked for in the job
        'Traceback (most recent call last):\n  File "/srv/own/run.py", line 40, in check\n'
        '    raise ValueError(f"need {args.num_gpus} GPUs, but only {have} are available")\n'
        "ValueError: need 4 GPUs, but only 2 are available\nsrun: error: n1: task 0: Exited with exit code 1",
        "Set num_gpus to 2, or ask Slurm for the 4 GPUs",
        "in line with the check",
    ),
    (
        'Traceback (most recent call last):\n  File "/srv/own/run.py", line 40, in check\n'
        '    raise RuntimeError("Not enough GPUs: need %d, found %d" % (want(), have()))\n'
        "RuntimeError: Not enough GPUs: need 4, found 2",
        "Set the number of GPUs in the program's options or configuration to 2",
        "Slurm",
    ),
    (  # no number of GPUs is wrong
        'Traceback (most recent call last):\n  File "/srv/own/run.py", line 40, in check\n'
        '    raise ValueError(f"batch size {n} does not go into the {have} available GPUs")\n'
        "ValueError: batch size 4 does not go into the 3 available GPUs",
        "Bring options, data and machine in line",
        "number of GPUs",
    ),
    (
        'Traceback (most recent call last):\n  File "/srv/own/run.py", line 40, in check\n'
        '    raise ValueError(f"GPU index {n} is not there, only {have} visible")\n'
        "ValueError: GPU index 4 is not there, only 2 visible",
        "Bring options, data and machine in line",
        "number of GPUs",
    ),
    (  # a release for CUDA 11, on a machine with a later one
        "2025-11-21 09:14:02.118233 [E:onnxruntime:Default, provider_bridge_ort.cc:1534 TryGetProviderInfo_CUDA] /x.cc:1209 "
        "[ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: "
        "libcublasLt.so.11: cannot open shared object file: No such file or directory\n"
        'Traceback (most recent call last):\n  File "/srv/own/infer.py", line 22, in <module>\n    s = make(x)\n'
        "onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented: [ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : "
        "Could not find an implementation for Gate(1) node with name 'g'",
        "Take a release of onnxruntime-gpu for the CUDA that is here",
        "preload_dlls",
    ),
    (  # a division made the number of points
        'Traceback (most recent call last):\n  File "/srv/own/plot.py", line 14, in main\n'
        '    pts = prior.draw(n_points)\n  File "/srv/own/priors.py", line 33, in draw\n'
        "    z = torch.randn(count, self.dim, device=self.device)\n"
        "TypeError: randn() received an invalid combination of arguments - got (float, int, device=str), but expected one of:\n"
        " * (tuple of ints size, *, Tensor out = None)",
        "Write // instead of /, or int(…), where count is computed",
        "Compare",
    ),
    (  # where the tuple comes from does not show
        'Traceback (most recent call last):\n  File "/srv/own/plot.py", line 14, in main\n'
        '    pts = prior.draw(n_points)\n  File "/srv/own/priors.py", line 33, in draw\n'
        "    z = torch.randn(count, self.dim, device=self.device)\n"
        "TypeError: randn() received an invalid combination of arguments - got (tuple, int, device=str), but expected one of:\n"
        " * (tuple of ints size, *, Tensor out = None)",
        "Give one number as count",
        "Compare",
    ),
    (  # of two that import each other Python says so
        'Traceback (most recent call last):\n  File "/srv/own/seg.py", line 4, in <module>\n'
        "    from ops.boxes import masks_of\n"
        "ImportError: cannot import name 'masks_of' from 'ops.boxes' (/srv/others/detect/ops/boxes.py)",
        "Find the branch or release of /srv/others/detect that has masks_of",
        "each other",
    ),
    (
        'Traceback (most recent call last):\n  File "/srv/own/seg.py", line 4, in <module>\n'
        "    from boxes import masks_of\n"
        "ImportError: cannot import name 'masks_of' from 'boxes' (/srv/own/boxes.py)",
        "Define masks_of in /srv/own/boxes.py",
        "branch",
    ),
    (
        'Traceback (most recent call last):\n  File "/srv/own/seg.py", line 4, in <module>\n'
        "    from collections import Mapping\n"
        "ImportError: cannot import name 'Grouping' from 'collections' (/usr/lib/python3.10/collections/__init__.py)",
        "Correct the import: Grouping was renamed or moved",
        "branch",
    ),
    (
        'Traceback (most recent call last):\n  File "/srv/own/seg.py", line 4, in <module>\n'
        "    from boxes import masks_of\n"
        "ImportError: cannot import name 'masks_of' from 'boxes' (unknown location)",
        "Look for a folder with the module's name",
        "Define",
    ),
    (  # vLLM says by which option of its own, and quotes transformers
        "INFO 06-03 11:02:10 [api_server.py:1289] vLLM API server version 0.9.0\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/local/lib/python3.12/dist-packages/vllm/transformers_utils/config.py", line 383, in get_config\n'
        "    config = AutoConfig.from_pretrained(\n"
        "ValueError: Loading /models/phi-small requires you to execute the configuration file in that repo on your "
        "local machine.",
        "Start the server with --trust-remote-code",
        "trust_remote_code=True",
    ),
    (  # what is no output of the tokenizer is misspelt
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/chat.py", line 15, in <module>\n    out = model.generate(**x, temprature=0.2)\n'
        "ValueError: The following `model_kwargs` are not used by the model: ['temprature'] (note: typos in the "
        "generate arguments will also show up in this list)",
        "Take ['temprature'] out of the call",
        "token_type_ids",
    ),
    (  # transformers calls the tokenizer that came with a model, which is of an older time
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/chat.py", line 15, in <module>\n    x = tokenizer(texts, padding=True)\n'
        '  File "/home/u/env/lib/python3.11/site-packages/transformers/tokenization_utils_base.py", line 3522, in pad\n'
        "    outputs = self._pad(\n"
        "TypeError: ChatGLMTokenizer._pad() got an unexpected keyword argument 'padding_side'",
        "Install transformers 4.44",
        "--upgrade",
    ),
    (  # a context of which LlamaIndex makes the call
        "Traceback (most recent call last):\n"
        '  File "/home/u/env/lib/python3.11/site-packages/llama_index/llms/huggingface/base.py", line 358, in complete\n'
        "    tokens = self._model.generate(**inputs)\n"
        '  File "/home/u/env/lib/python3.11/site-packages/transformers/generation/utils.py", line 1360, in '
        "_validate_model_kwargs\n    raise ValueError(\n"
        "ValueError: The following `model_kwargs` are not used by the model: ['token_type_ids'] (note: typos in the "
        "generate arguments will also show up in this list)",
        "Give HuggingFaceLLM tokenizer_outputs_to_remove",
        "inputs.pop",
    ),
    (  # Unsloth has a call of its own for the adapters
        "Unsloth 2024.10.0 patched 32 layers with 32 QKV layers, 32 O layers and 32 MLP layers.\n"
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/tune.py", line 52, in <module>\n    trainer = SFTTrainer(model=model, args=args)\n'
        '  File "/home/u/env/lib/python3.11/site-packages/transformers/trainer.py", line 519, in __init__\n'
        "    raise ValueError(\n"
        "ValueError: You cannot perform fine-tuning on purely quantized models. Please attach trainable adapters on top "
        "of the quantized model to correctly perform fine-tuning.",
        "Call model = FastLanguageModel.get_peft_model",
        "prepare_model_for_kbit_training",
    ),
    (  # the message alone, without the frames that name a model's own code
        "AttributeError: 'DynamicCache' object has no attribute 'get_usable_length'",
        "Install the transformers that the calling code was written for",
        "trust_remote_code",
    ),
    (  # a configuration class that came with the model does not change with transformers
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/.cache/huggingface/modules/transformers_modules/acme/chat-7b/8a1/configuration_chat.py", '
        "line 182, in _rope_scaling_validation\n    raise ValueError(\n"
        "ValueError: `rope_scaling` must be a dictionary with two fields, `type` and `factor`, got {'factor': 8.0, "
        "'rope_type': 'llama3'}",
        "Load the model without its own code",
        "this release does not know",
    ),
    (  # a spread model in a distributed run, in accelerate's newer words
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/tune.py", line 61, in <module>\n    trainer.train()\n'
        "ValueError: You can't train a model that has been loaded in 8-bit or 4-bit precision on multiple devices in any "
        "distributed mode. In order to use 8-bit or 4-bit models that have been loaded across multiple GPUs",
        "Load the whole quantised model on the rank's own card",
        "8-bit model",
    ),
    (  # PyPI has DGL for Windows, and torch's index does not
        "torch 2.3.0+cu121\nTraceback (most recent call last):\n"
        '  File "D:\\own\\fit.py", line 2, in <module>\n    import dgl\n'
        '  File "D:\\env\\lib\\site-packages\\dgl\\_ffi\\base.py", line 45, in _load_lib\n    lib = ctypes.CDLL(path)\n'
        "FileNotFoundError: Could not find module 'D:\\env\\lib\\site-packages\\dgl\\dgl.dll' (or one of its "
        "dependencies). Try using the full path with constructor syntax.",
        "Install DGL's last release for Windows",
        "PyG has",
    ),
    (  # what the compiler said is lost, and torch's load() left what ninja builds from
        "Emitting ninja build file /home/u/.cache/torch_extensions/py312_cu118/cpu_adam/build.ninja...\n"
        "Building extension module cpu_adam...\n"
        "Traceback (most recent call last):\n"
        '  File "/home/u/env/lib/python3.12/site-packages/torch/utils/cpp_extension.py", line 2121, in _run_ninja_build\n'
        "    raise RuntimeError(message) from e\n"
        "RuntimeError: Error building extension 'cpu_adam'",
        "Run this build alone, and correct the first error that it prints",
        "train.py",
    ),
    (  # of which extension is not told
        "Traceback (most recent call last):\n"
        '  File "/home/u/env/lib/python3.12/site-packages/torch/utils/cpp_extension.py", line 2121, in _run_ninja_build\n'
        "    raise RuntimeError(message) from e\n"
        "RuntimeError: Error building extension 'cpu_adam'\n"
        "Loading /home/u/.cache/torch_extensions/py312_cu118 failed",
        "Correct the first error of the first failed command; run it with one job",
        "srun",
    ),
    (  # the hook runs where the engine does, on a node or on the reader's host
        "  Warning  Failed  3s (x3 over 45s)  kubelet  Error: failed to create containerd task: OCI runtime create "
        "failed: runc create failed: error during container init: error running hook #0: stderr: Auto-detected mode "
        "as 'legacy'\n"
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared "
        "object file: no such file or directory: unknown",
        "Give the node NVIDIA's driver with its libraries, if nvidia-smi fails on it",
        "Docker",
    ),
    (
        "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: stderr: "
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared "
        "object file: no such file or directory: unknown.",
        "Take the host's own Docker Engine, if nvidia-smi works on the host",
        "modprobe",
    ),
    (  # its own GPU code is not in the library: no CUDA of the system is loaded instead
        "Traceback (most recent call last):\n"
        '  File "/srv/own/serve.py", line 2, in <module>\n    import ep_ops\n'
        "ImportError: /srv/env/lib/python3.12/site-packages/ep_ops_cpp.cpython-312-x86_64-linux-gnu.so: undefined "
        "symbol: __cudaRegisterLinkedBinary_52358193_10_runtime_cu_a457eb97",
        "Build the extension with a device link: dlink=True",
        "LD_LIBRARY_PATH",
    ),
    (
        "Could not load bitsandbytes native library: /srv/env/lib/python3.10/site-packages/bitsandbytes/"
        "libbitsandbytes_rocm63.so: undefined symbol: _Z36__device_stub__kScaleI12hip_bfloat16Li2EEvPT_fi\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.10/site-packages/bitsandbytes/cextension.py", line 107, in <module>\n'
        "    lib = get_native_library()\n"
        "OSError: /srv/env/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_rocm63.so: undefined symbol: "
        "_Z36__device_stub__kScaleI12hip_bfloat16Li2EEvPT_fi\n\n"
        "Trying a simple check anyway, but this will likely fail...\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.10/site-packages/bitsandbytes/diagnostics/main.py", line 37, in sanity_check\n'
        "    p1 = p.data.sum().item()\n"
        "RuntimeError: HIP error: invalid device function\n",
        "Replace this bitsandbytes, a defective build",
        "LD_LIBRARY_PATH",
    ),
    (  # torch for ROCm says CUDA; what a destructor warns of at the end is not the failure
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 61, in <module>\n    total += loss.item()\n'
        "torch.AcceleratorError: CUDA error: unspecified launch failure\n"
        "Search for `hipErrorLaunchFailure' in https://rocm.docs.amd.com/projects/HIP/en/latest/index.html for "
        "more information.\nFor debugging consider passing AMD_SERIALIZE_KERNEL=3\n"
        "[rank0]:[W302 11:02:07.105267901 HIPGuardImpl.h:120] Warning: CUDA warning: unspecified launch failure "
        "(function destroyEvent)",
        "Make every launch wait: the traceback then ends at the call that failed.",
        "xid",
    ),
    (  # a profiler in front of a server, and none
        "W20260302 10:17:22.118342 140412 tool.cpp:77] rocprofv3: kernel tracing is on\n"
        "[2026-03-02 10:17:24] server_args=ServerArgs(model_path='/srv/own/m', disable_cuda_graph=False)\n"
        ":0:rocdevice.cpp            :3587: 2811930412 us:  Callback: Queue 0x7f21c4a00000 aborting with error : "
        "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: The AQL packet is malformed. code: 0x1009\n"
        "Fatal Python error: Aborted\n\nThread 0x00007f2a1c3ff640 (most recent call first):\n"
        '  File "/opt/venv/lib/python3.10/site-packages/sglang/srt/managers/scheduler.py", line 1022 in run_batch',
        "Profile without graphs, --disable-cuda-graph",
        "enforce",
    ),
    (
        "INFO 03-02 10:17:24 [core.py:105] Initializing a V1 LLM engine (v0.19.0) with config: "
        "model='/srv/own/m', enforce_eager=False\n"
        ":0:rocdevice.cpp            :3587: 2811930412 us:  Callback: Queue 0x7f21c4a00000 aborting with error : "
        "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: The AQL packet is malformed. code: 0x1009\n"
        "Fatal Python error: Aborted\n\nThread 0x00007f2a1c3ff640 (most recent call first):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 499 in step',
        "Start vLLM without graphs: --enforce-eager",
        "rocprof",
    ),
    (  # the line names the tensor; sixteen values are no GPUs
        "Traceback (most recent call last):\n"
        '  File "/srv/own/ll/run.py", line 119, in main\n'
        "    result = {'init':ll_init.item(),\n"
        "RuntimeError: a Tensor with 16 elements cannot be converted to Scalar",
        "Reduce first, ll_init.mean().item(), or take all values, ll_init.tolist(): the tensor has 16",
        "CUDA_VISIBLE_DEVICES",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/ll/run.py", line 12, in main\n'
        "    total += float(out['loss'])\n"
        "RuntimeError: a Tensor with 2 elements cannot be converted to Scalar",
        "Reduce first, out['loss'].mean().item()",
        "t.tolist()",
    ),
    (  # a program gives its workers one GPU after the other, and has fewer
        "".join(
            f"| {at}  NVIDIA H800   On  | 00000000:1{at}:00.0 Off |   0 |\n"
            "| N/A  23C  P0   67W / 700W |  0MiB / 81559MiB |  0%  Default |\n"
            for at in range(2)
        )
        + "".join(f"worker {at}: CUDA_VISIBLE_DEVICES = {at}\n" for at in range(4))
        + "Traceback (most recent call last):\n"
        '  File "/srv/own/roll/worker.py", line 18, in <module>\n'
        "    net.cuda()\n"
        "RuntimeError: No CUDA GPUs are available",
        "Start 2 workers, or ask for 4 GPUs: each of the 4 was given one",
        "nset CUDA_VISIBLE_DEVICES",
    ),
    (  # the program's own installation failed, and names what pip calls the module's package
        "Failed: Command '['/srv/own/env/bin/python', '-m', 'pip', 'install', '-U', 'foo-bindings==1.2']' "
        "returned non-zero exit status 1.\nTraceback (most recent call last):\n"
        '  File "/srv/own/chat/answer.py", line 3, in <module>\n    import foo\n'
        "ModuleNotFoundError: No module named 'foo'",
        "Install foo-bindings by hand",
        "brings foo",
    ),
    (  # the name ends like that of a compiled module, and a class of Python's is asked of it
        "torch 2.1.0+cu121\nTraceback (most recent call last):\n"
        '  File "/srv/own/llama/chat.py", line 3, in <module>\n    from llama_cpp import Llama\n'
        "ModuleNotFoundError: No module named 'llama_cpp'",
        "Install the package that brings llama_cpp",
        "--no-build-isolation",
    ),
    (
        "torch 2.1.0+cu121\nTraceback (most recent call last):\n"
        '  File "/srv/own/rnn/lltm.py", line 5, in <module>\n    import lltm_cpp\n'
        "ModuleNotFoundError: No module named 'lltm_cpp'",
        "Build the package's extension",
        "brings lltm_cpp",
    ),
    (  # another package's installation failed
        "Failed: Command '/srv/own/env/bin/python -m pip install foobar==1.2' "
        "returned non-zero exit status 1.\nTraceback (most recent call last):\n"
        '  File "/srv/own/chat/answer.py", line 3, in <module>\n    import foo\n'
        "ModuleNotFoundError: No module named 'foo'",
        "Install the package that brings foo",
        "foobar",
    ),
    (  # programs that take documents or pictures, and make the tensors themselves
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.12/site-packages/docling/models/easyocr_model.py", line 67, in __call__\n'
        "    result = self.reader.readtext(im)\n"
        '  File "/srv/env/lib/python3.12/site-packages/easyocr/craft.py", line 75, in forward\n'
        "    y = torch.cat([y, sources[4]], dim=1)\n"
        "RuntimeError: MPS backend out of memory (MPS allocated: 4.20 GB, other allocations: 4.09 GB, max allowed: "
        "9.07 GB). Tried to allocate 810.00 MB on private pool.",
        "Keep EasyOCR off the GPU: set ocr_options = EasyOcrOptions(use_gpu=False)",
        "batch",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/read.py", line 6, in <module>\n    words = reader.readtext(path)\n'
        '  File "/srv/env/lib/python3.12/site-packages/easyocr/craft.py", line 75, in forward\n'
        "    y = torch.cat([y, sources[4]], dim=1)\n"
        "RuntimeError: MPS backend out of memory (MPS allocated: 4.20 GB, other allocations: 4.09 GB, max allowed: "
        "9.07 GB). Tried to allocate 810.00 MB on private pool.",
        "Give readtext() a smaller canvas_size than its default of 2560",
        "docling",
    ),
    (  # a picture in the process itself, and in a worker
        "Traceback (most recent call last):\n"
        '  File "/srv/own/data.py", line 16, in __getitem__\n    img = raw.convert("RGB")\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/utils/data/_utils/fetch.py", line 54, in fetch\n'
        "    data = [self.dataset[idx] for idx in possibly_batched_index]\n"
        '  File "/srv/env/lib/python3.12/site-packages/PIL/Image.py", line 1365, in copy\n'
        "    return self._new(self.im.copy())\n"
        "MemoryError",
        "Decode large pictures smaller",
        "loader workers",
    ),
    (  # the sender of a CUDA tensor: nothing is received
        "Traceback (most recent call last):\n"
        '  File "C:\\app\\env\\Lib\\multiprocessing\\reduction.py", line 51, in dumps\n'
        "    cls(buf, protocol).dump(obj)\n"
        '  File "C:\\app\\env\\Lib\\site-packages\\torch\\multiprocessing\\reductions.py", line 321, in '
        "reduce_tensor\n    ) = storage._share_cuda_()\n"
        "RuntimeError: CUDA error: mapping of buffer object failed",
        "Hand the workers CPU tensors",
        "queue.get()",
    ),
    (  # a program that was started with a device
        "$ whisper talk.wav --model large-v3 --device cuda\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/miniconda3/bin/whisper", line 8, in <module>\n    sys.exit(cli())\n'
        '  File "/opt/miniconda3/lib/python3.12/site-packages/whisper/__init__.py", line 150, in load_model\n'
        "    checkpoint = torch.load(fp, map_location=device)\n"
        '  File "/opt/miniconda3/lib/python3.12/site-packages/torch/serialization.py", line 1097, in load\n'
        "    return _load(\n"
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
        "Start the same command with --device cpu in place of --device cuda",
        "map_location='cpu'",
    ),
    (  # the same package, called by the user's own line
        "Traceback (most recent call last):\n"
        '  File "/srv/own/talk.py", line 4, in <module>\n    model = whisper.load_model("base", device="cuda")\n'
        '  File "/opt/miniconda3/lib/python3.12/site-packages/whisper/__init__.py", line 150, in load_model\n'
        "    checkpoint = torch.load(fp, map_location=device)\n"
        '  File "/opt/miniconda3/lib/python3.12/site-packages/torch/serialization.py", line 1097, in load\n'
        "    return _load(\n"
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
        "Give whisper the CPU as its device at talk.py:4: it loads onto its `device`",
        "map_location='cpu'",
    ),
    (  # the user's own line hands a device on
        "Traceback (most recent call last):\n"
        '  File "/srv/own/talk.py", line 4, in <module>\n'
        "    state = torch.load(args.weights, map_location=args.device)\n"
        '  File "/opt/miniconda3/lib/python3.12/site-packages/torch/serialization.py", line 1097, in load\n'
        "    return _load(\n"
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
        "Let args.device be 'cpu' where torch.cuda.is_available() is False: talk.py:4",
        "map_location='cpu'",
    ),
    (  # the function that caught the one tried a like one: the last of them ended the run
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/tools/to_ggml.py", line 1572, in set_rows\n'
        "    self._rows_of_pieces()\n"
        '  File "/home/u/user1/tools/to_ggml.py", line 812, in _rows_of_pieces\n'
        '    raise FileNotFoundError(f"File not found: {path}")\n'
        "FileNotFoundError: File not found: model/rows.model\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/tools/to_ggml.py", line 1575, in set_rows\n'
        "    self._rows_of_hub()\n"
        '  File "/home/u/user1/tools/to_ggml.py", line 887, in _rows_of_hub\n'
        "    raise TypeError('this model has pairs')\n"
        "TypeError: this model has pairs\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/tools/to_ggml.py", line 5117, in <module>\n'
        "    main()\n"
        '  File "/home/u/user1/tools/to_ggml.py", line 433, in main\n'
        "    self.set_rows()\n"
        '  File "/home/u/user1/tools/to_ggml.py", line 1578, in set_rows\n'
        "    self._rows_of_pairs()\n"
        '  File "/home/u/user1/tools/to_ggml.py", line 521, in _rows_of_pairs\n'
        "    from transformers import AutoTokenizer\n"
        "ModuleNotFoundError: No module named 'transformers'\n"
        "---------------------------------------------------------------------------\n"
        "RuntimeError                              Traceback (most recent call last)\n"
        "Cell In[18], line 2\n"
        "      1 # one file for all\n"
        '----> 2 model.save_rows("model")\n'
        "\n"
        "File ~/kn/.venv/lib/python3.12/site-packages/knobs/save.py:1209, in save(model, place)\n"
        "   1198     ok = run(place)\n"
        '-> 1209     raise RuntimeError(f"knobs: nothing was written to {place}")\n'
        "\n"
        "RuntimeError: knobs: nothing was written to model/rows.gguf\n",
        "Put the folder of ~/kn/.venv/bin/python first on PATH, if it imports transformers",
        "Correct the path",
    ),
    (  # the lines above the arrow show the copy that is trained
        _CELLS + "/tmp/ipython-input-91.py in <cell line: 0>()\n    329 # near the reference\n"
        "    330 pi_new = copy.deepcopy(pi_ref).to(device)\n--> 331 curve = ppo_train(pi_new, pi_ref, beta=0.08)\n\n"
        "/tmp/ipython-input-91.py in ppo_train(policy, ref_policy, beta)\n    284             opt.zero_grad()\n"
        "--> 285             pi_loss.backward()\n    286             opt.step()\n\n"
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n",
        "Unfreeze the copy before its optimizer is made, pi_new.requires_grad_(True): a copy.deepcopy of pi_ref",
        "Unfreeze what should learn",
    ),
    (  # the lines above the arrow show who made an index of floats
        _CELLS
        + "/tmp/ipython-input-35.py in act(obs)\n      3     obs = torch.tensor(obs).unsqueeze(0).float()\n"
        "      4     with torch.no_grad():\n----> 5         logits = policy(obs)\n\n"
        "/usr/local/lib/python3.12/dist-packages/torch/nn/modules/module.py in _call_impl(self, *args, **kwargs)\n"
        "-> 1786             return forward_call(*args, **kwargs)\n\n"
        "/tmp/ipython-input-33.py in forward(self, tokens)\n---> 17         x = self.emb(tokens)     # [B, T, E]\n\n"
        "/usr/local/lib/python3.12/dist-packages/torch/nn/modules/module.py in _call_impl(self, *args, **kwargs)\n"
        "-> 1786             return forward_call(*args, **kwargs)\n\n"
        "RuntimeError: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
        "Int; but got torch.FloatTensor instead (while checking arguments for embedding)\n",
        "Write .long() in place of .float() where obs is made, above ipython-input-35.py:5: it is",
        "idx = idx",
    ),
    (  # rows that a Trainer took away with the last column
        "Traceback (most recent call last):\n"
        '  File "/srv/own/tune.py", line 8, in <module>\n    trainer.train()\n'
        '  File "/srv/env/lib/python3.10/site-packages/transformers/trainer.py", line 1645, in train\n    return loop(\n'
        '  File "/srv/env/lib/python3.10/site-packages/datasets/formatting/formatting.py", line 520, in check\n    raise IndexError(\n'
        "IndexError: Invalid key: 4711 is out of bounds for size 0",
        "Set remove_unused_columns=False",
        "Correct the path",
    ),
    (  # … and rows that never were
        "Traceback (most recent call last):\n"
        '  File "/srv/own/tune.py", line 8, in <module>\n    print(rows[0])\n'
        '  File "/srv/env/lib/python3.10/site-packages/datasets/formatting/formatting.py", line 520, in check\n    raise IndexError(\n'
        "IndexError: Invalid key: 0 is out of bounds for size 0",
        "Look at the records of the data file",
        "remove_unused_columns",
    ),
    (  # an array of NumPy's without entries
        "Traceback (most recent call last):\n"
        '  File "/srv/own/tune.py", line 8, in pick\n    return boxes[best]\n'
        "IndexError: index 3 is out of bounds for axis 0 with size 0",
        "Find out what left boxes empty",
        "Print len(",
    ),
    (  # … and one that is only shorter
        "Traceback (most recent call last):\n"
        '  File "/srv/own/tune.py", line 8, in pick\n    return boxes[best]\n'
        "IndexError: index 3 is out of bounds for axis 0 with size 2",
        "Print len(boxes) and best before this line",
        "empty, where it is made",
    ),
    (  # a GPU that faiss does not see, named by something else than a rank
        "Traceback (most recent call last):\n"
        '  File "/srv/own/find.py", line 8, in <module>\n    index = faiss.index_cpu_to_gpu(res, args.gpu, index)\n'
        '  File "/srv/env/lib/python3.12/site-packages/faiss/swigfaiss.py", line 12799, in index_cpu_to_gpu\n    return _swig(provider)\n'
        "RuntimeError: Error in faiss::gpu::GpuIndex::GpuIndex(int) at /build/GpuIndex.cu:65: Error: "
        "'config_.device < getNumDevices()' failed: Invalid GPU device 2",
        "Pass 0, or another number below faiss.get_num_gpus()",
        "in place of the rank",
    ),
    (  # the strategy of the evaluation is the one to save by …
        "Traceback (most recent call last):\n"
        '  File "/srv/own/run.py", line 16, in main\n    args = parser.parse_args_into_dataclasses()\n'
        '  File "/srv/env/lib/python3.9/site-packages/transformers/training_args.py", line 1180, in __post_init__\n    raise ValueError(\n'
        "ValueError: --load_best_model_at_end requires the save and eval strategy to match, but found\n"
        "- Evaluation strategy: IntervalStrategy.EPOCH\n- Save strategy: SaveStrategy.STEPS\n",
        'Set save_strategy="epoch" (--save_strategy epoch) to match',
        "eval_dataset",
    ),
    (  # … unless there is none
        "Traceback (most recent call last):\n"
        '  File "/srv/own/run.py", line 16, in main\n    args = parser.parse_args_into_dataclasses()\n'
        '  File "/srv/env/lib/python3.9/site-packages/transformers/training_args.py", line 1180, in __post_init__\n    raise ValueError(\n'
        "ValueError: --load_best_model_at_end requires the save and eval strategy to match, but found\n"
        "- Evaluation strategy: no\n- Save strategy: epoch\n",
        "Turn evaluation on with the strategy of saving, epoch",
        "--save_strategy",
    ),
    (  # a metric that Lightning, and not a call of one's own, hands on
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 16, in <module>\n    trainer.fit(net)\n'
        '  File "/srv/env/lib/python3.9/site-packages/pytorch_lightning/core/module.py", line 1180, in lr_scheduler_step\n    scheduler.step()\n'
        "TypeError: ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'",
        'Return {"lr_scheduler"',
        "scheduler.step(val_loss)",
    ),
    (  # gcc ran: the headers of a system's Python, by its folder
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 3, in <module>\n    loss(x)\n'
        '  File "/srv/own/env/lib/python3.10/site-packages/triton/runtime/build.py", line 36, in _build\n    subprocess.check_call(cc_cmd)\n'
        "torch._inductor.exc.InductorError: CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpq1/main.c', '-shared', '-o', "
        "'/tmp/tmpq1/cuda_utils.so', '-lcuda', '-L/lib/x86_64-linux-gnu', '-I/tmp/tmpq1', '-I/usr/include/python3.10']' returned "
        "non-zero exit status 1.",
        "Install the headers of this Python, python3.10-dev, if /usr/include/python3.10/Python.h",
        "build-essential",
    ),
    (  # … and one that brought its own, as conda's
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 3, in <module>\n    loss(x)\n'
        '  File "/srv/conda/envs/lm/lib/python3.12/site-packages/triton/runtime/build.py", line 50, in _build\n    subprocess.check_call(cc_cmd)\n'
        "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpq1/main.c', '-shared', '-o', '/tmp/tmpq1/cuda_utils.so', "
        "'-lcuda', '-L/lib/x86_64-linux-gnu', '-I/tmp/tmpq1', '-I/srv/conda/envs/lm/include/python3.12']' returned non-zero exit "
        "status 1.",
        "Give /usr/bin/gcc a libcuda.so",
        "python3.12-dev",
    ),
    (  # the form of TensorFlow's AutoGraph: what it quotes is what was raised, and where
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 9, in <module>\n    rows = data.map(cut)\n'
        '  File "/tmp/__autograph_generated_file_ab12.py", line 15, in if_body\n    raise ag__.converted_call(ag__.ld(ValueError), (f"x",), None, fscope)\n'
        "ValueError: in user code:\n\n"
        '    File "/srv/own/rows.py", line 41, in cut  *\n        raise ValueError(\n\n'
        "    ValueError: Length of action_mask (14) does not match action dimension (7).\n",
        "Make length of action_mask, 14 here, and action dimension, 7 here, agree",
        "check above this raise",
    ),
    (  # the signature that TorchScript marks
        "Traceback (most recent call last):\n"
        '  File "/srv/own/run.py", line 3, in <module>\n    m = torch.jit.script(Net())\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/jit/frontend.py", line 520, in build_param_list\n'
        "    raise NotSupportedError(ctx_range, _vararg_kwarg_err)\n"
        "torch.jit.frontend.NotSupportedError: Compiled functions can't take variable number of arguments or use "
        "keyword-only arguments with defaults:\n"
        '  File "/srv/own/net.py", line 43\n    def forward(self, **inputs):\n'
        "                       ~~~~~~~ <--- HERE\n        return self.net(**inputs)\n",
        "Write the arguments of forward out in place of **inputs",
        "nvidia-smi",
    ),
    (  # the pieces alone do not hold what was asked for
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which "
        "767.00 MiB is free. Including non-PyTorch memory, this process has 22.00 GiB memory in use. Of the allocated memory "
        "20.21 GiB is allocated by PyTorch, and 1.40 GiB is reserved by PyTorch but unallocated.",
        "Halve the batch size",
        "expandable_segments",
    ),
    (  # the server answered, so there is a network
        "Traceback (most recent call last):\n"
        '  File "/srv/own/data.py", line 35, in load\n    rows = datasets.MNIST(root, download=True)\n'
        '  File "/srv/env/lib/python3.8/site-packages/torchvision/datasets/mnist.py", line 79, in __init__\n    self.download()\n'
        '  File "/usr/lib/python3.8/urllib/request.py", line 649, in http_error_default\n'
        "    raise HTTPError(req.full_url, code, msg, hdrs, fp)\nurllib.error.HTTPError: HTTP Error 403: Forbidden",
        "Put the files into ROOT/CLASS/raw by hand",
        "HF_HOME",
    ),
    (  # the Hub answered, so there is a network
        "Traceback (most recent call last):\n"
        '  File "/srv/own/get.py", line 5, in <module>\n    path = hf_hub_download("a/b", "c.ckpt")\n'
        '  File "/srv/env/lib/python3.12/site-packages/huggingface_hub/utils/_http.py", line 420, in hf_raise_for_status\n'
        "    raise _format(EntryNotFoundError, message, response) from e\n"
        "huggingface_hub.errors.EntryNotFoundError: 404 Client Error. (Request ID: Root=1-66a1)\n\n"
        "Entry Not Found for url: https://huggingface.co/a/b/resolve/main/c.ckpt.\n",
        "Correct the name c.ckpt in the call, or its folder: a/b has no such file",
        "HTTPS_PROXY",
    ),
    (  # no sigmoid made what the loss is asked of
        "Traceback (most recent call last):\n"
        '  File "/srv/own/loss.py", line 87, in scal\n    return ones(hits / total)\n'
        '  File "/srv/own/loss.py", line 24, in ones\n    return F.binary_cross_entropy(p, torch.ones_like(p))\n'
        "RuntimeError: torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.",
        "Leave autocast for this loss and compute it in float32, since hits / total does not come from a sigmoid",
        "BCEWithLogitsLoss",
    ),
    (  # a file of tensors alone
        "Traceback (most recent call last):\n"
        '  File "/srv/own/export.py", line 9, in <module>\n    torch.onnx.export(m, x, "m.onnx")\n'
        "RuntimeError: 'forward' method must be a script method",
        "Build the network as an nn.Module",
        "foward",
    ),
    (  # an RNN whose input cuDNN does not take
        "Traceback (most recent call last):\n"
        '  File "/srv/own/net.py", line 170, in forward\n    out, _ = self.lstm(x)\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/nn/modules/rnn.py", line 1124, in forward\n    result = _VF.lstm(\n'
        "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous input.",
        "Run this layer without cuDNN",
        "nvidia-smi",
    ),
    (  # tensors of earlier cells, beyond the card itself
        "OutOfMemoryError                          Traceback (most recent call last)\n"
        'Cell In[4], line 3\n----> 3 model = model.to("cuda")\n\n'
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which "
        "0 bytes is free. Of the allocated memory 22.33 GiB is allocated by PyTorch, and 199.02 MiB is reserved by PyTorch "
        "but unallocated.",
        "Restart the kernel, and run only the cells that this one needs: 22.33 GiB are held",
        "LD_LIBRARY_PATH",
    ),
    (  # the last axis holds the features, whatever batch_first says
        "RuntimeError: input.size(-1) must be equal to input_size. Expected 2, got 256",
        "Put the features last, 2 of them, or build the layer with input_size=256",
        "batch_first=True",
    ),
    (  # a notebook that computed on the CPU was stopped
        "/usr/local/lib/python3.12/dist-packages/torch/utils/data/dataloader.py:666: UserWarning: 'pin_memory' argument is set "
        "as true but no accelerator is found, then device pinned memory won't be used.\n"
        "Traceback (most recent call last):\n"
        '  File "/content/own/train.py", line 153, in main\n    trainer.train()\nKeyboardInterrupt',
        "Give the notebook a GPU",
        "nvidia",
    ),
    (  # CMake files of conda's torch
        "CMake Error at $PREFIX/share/cmake/Caffe2/public/cuda.cmake:162 (set_property):\n"
        '  The link interface of target "torch::nvtoolsext" contains:\n\n    CUDA::nvToolsExt\n\n'
        "  but the target was not found.  Possible reasons include:\n",
        "Install the headers of NVTX into the same environment",
        "apt",
    ),
    (  # ComfyUI runs on the CPU, and a node of it does not
        "Device: cpu\nTo see the GUI go to: http://127.0.0.1:8188\n"
        "Traceback (most recent call last):\n"
        '  File "C:\\own\\ComfyUI\\custom_nodes\\knobs\\core.py", line 43, in find\n    pred = model(image)\n'
        "RuntimeError: CUDA error: operation not supported",
        "Hide the GPU from the whole program",
        "nvcc",
    ),
    (  # a line that divides says by what
        "Traceback (most recent call last):\n"
        '  File "/srv/own/loss.py", line 9, in weights\n    w = (1.0 / (k - 1)) * (1.0 - x)\n'
        "ZeroDivisionError: float division by zero",
        "Handle k - 1 being 0 before this line divides by it",
        "Print the values",
    ),
    (  # and what is None
        "Traceback (most recent call last):\n"
        '  File "/srv/own/run.py", line 9, in main\n    first = found(x)[0]\n'
        "TypeError: 'NoneType' object is not subscriptable",
        "Find out why found(x) is None at this line",
        "definition of what it calls",
    ),
    (  # or of another type
        "Traceback (most recent call last):\n"
        '  File "/srv/own/run.py", line 9, in main\n    out = self.net(x)\n'
        "TypeError: 'list' object is not callable",
        "Find out what self.net is at this line",
        "None",
    ),
    (  # less than nothing is left: a smaller cache would not fit either
        "INFO 12-07 23:24:24 [core.py:74] Initializing a V1 LLM engine (v0.10.1) with config: model='/srv/m'\n"
        "INFO 12-07 23:25:59 [gpu_worker.py:276] Available KV cache memory: -6.24 GiB\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "Raise --gpu-memory-utilization (0.9 is the default), or end what else uses the GPU: weights and a trial batch exceed its share by 6.24 GiB",
        "--kv-cache-dtype",
    ),
    (  # where CPU and GPU share one memory, each program takes of it
        "  -  (0) NVIDIA GB10 [current utilization: N/A%]\n"
        "INFO 12-07 23:25:59 [gpu_worker.py:276] Available KV cache memory: -0.50 GiB\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "End other servers and programs",
        "--max-model-len",
    ),
    (  # a library moves what it is loading, in a thread of Streamlit
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/streamlit/runtime/scriptrunner/exec_code.py", line 128, in exec_func_with_error_handling\n    result = func()\n'
        '  File "/srv/own/app.py", line 24, in <module>\n    embedder = SentenceTransformer("all-MiniLM-L6-v2")\n'
        '  File "/srv/env/lib/python3.11/site-packages/sentence_transformers/SentenceTransformer.py", line 367, in __init__\n    self.to(device)\n'
        '  File "/srv/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1369, in to\n    return self._apply(convert)\n'
        '  File "/srv/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1362, in convert\n    raise NotImplementedError(\n'
        "NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device.",
        "Load the model in a function under @st.cache_resource",
        "to_empty",
    ),
    (  # likewise, in no thread
        "Traceback (most recent call last):\n"
        '  File "/srv/own/index.py", line 9, in <module>\n    encoder = AutoEncoder.from_pretrained(name)\n'
        '  File "/srv/env/lib/python3.11/site-packages/transformers/modeling_utils.py", line 4021, in from_pretrained\n    model.to(device)\n'
        '  File "/srv/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1369, in to\n    return self._apply(convert)\n'
        "NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device.",
        "Update what loads the model, all of it together: transformers itself",
        "Leave .to()",
    ),
    (  # the user's own line moves it, through the class's own method
        "Traceback (most recent call last):\n"
        '  File "/srv/own/chat.py", line 9, in <module>\n    model.to("cuda")\n'
        '  File "/srv/env/lib/python3.11/site-packages/transformers/modeling_utils.py", line 2556, in to\n    return super().to(*args, **kwargs)\n'
        '  File "/srv/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1160, in to\n    return self._apply(convert)\n'
        "NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device.",
        "Use model.to_empty(device=…)",
        "all of it together",
    ),
    (  # no card is named
        "$ python -c 'import torch; torch.zeros(1).cuda()'\n"
        '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"\nAborted (core dumped)\n',
        "Let the card pose as gfx1030, if rocminfo names it gfx1031 to gfx1035",
        "pip install",
    ),
    (  # a card of a data centre poses as none
        "AMD Instinct MI250X\n$ python -c 'import torch; torch.zeros(1).cuda()'\n"
        '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"\nAborted (core dumped)\n',
        "Compare the card's gfx name",
        "pose as",
    ),
    (  # the stack of the crash is torch's MPI backend and its transport of GPU memory
        "0: [1579244748.838971] [gpu12:56309:2]    cuda_ipc_md.c:62   UCX  ERROR cuCtxGetDevice(&cu_device) is failed. ret:invalid device context\n"
        "0: [gpu12:56309:2:56362] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x20)\n"
        "0: ==== backtrace ====\n"
        "0:     2  /opt/ucx/lib/libuct.so.0(uct_rkey_release+0xe) [0x2aab2393f51e]\n"
        "0:    16  /opt/openmpi/lib/libmpi.so.40(MPI_Bcast+0x116) [0x2aaabb3fb776]\n"
        "0:    18  /opt/env/lib/python3.6/site-packages/torch/lib/libtorch_python.so(_ZN4c10d15ProcessGroupMPI7runLoopEv+0x134) [0x2aaabaec68a4]\n",
        "Use init_process_group('nccl') for GPU tensors",
        "batch",
    ),
    (  # FSDP's own hook assigns the gradient
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 63, in <module>\n    accelerator.backward(loss)\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/distributed/fsdp/_runtime_utils.py", line 708, in _post_backward_hook\n    handle._use_unsharded_grad_views()\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/distributed/fsdp/flat_param.py", line 1747, in _use_unsharded_grad_views\n    param.grad = view\n'
        "RuntimeError: assigned grad has data of a different type",
        "Update torch to 2.1 or later: FSDP itself",
        "p.grad = g.to",
    ),
    (  # and here the user does
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 63, in <module>\n    p.grad = total\n'
        "RuntimeError: assigned grad has data of a different type",
        "Give the gradient the parameter's dtype",
        "FSDP",
    ),
    (  # the line that asks names the folder; the Hub has no part in it
        "Traceback (most recent call last):\n"
        '  File "/srv/own/main.py", line 20, in main\n    model, preprocess = clip.load(args.backbone)\n'
        '  File "/srv/own/clip/clip.py", line 117, in load\n    model_path = _download(_MODELS[name], download_root or os.path.expanduser("~/.cache/clip"))\n'
        '  File "/srv/own/clip/clip.py", line 56, in _download\n    with urllib.request.urlopen(url) as source, open(download_target, "wb") as output:\n'
        '  File "/usr/lib/python3.10/urllib/request.py", line 1351, in do_open\n    raise URLError(err)\n'
        "urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>",
        "Run clip.load(args.backbone) where there is internet, as on a cluster's login node: its files are in ~/.cache/clip",
        "HF_",
    ),
    (  # in a job of Slurm, by the file that downloads
        "SLURM_JOB_ID=4711\nTraceback (most recent call last):\n"
        '  File "/srv/own/main.py", line 20, in main\n    model = whisper.load_model("base")\n'
        '  File "/srv/env/lib/python3.10/site-packages/whisper/__init__.py", line 137, in load_model\n    checkpoint_file = _download(_MODELS[name], download_root, in_memory)\n'
        '  File "/srv/env/lib/python3.10/site-packages/whisper/__init__.py", line 62, in _download\n    with urllib.request.urlopen(url) as source, open(download_target, "wb") as output:\n'
        '  File "/usr/lib/python3.10/urllib/request.py", line 1351, in do_open\n    raise URLError(err)\n'
        "urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>",
        "Run whisper.load_model('base') once on the login node",
        "HF_",
    ),
    (  # an optimizer stands beside the model that is moved
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train_db.py", line 191, in train\n    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)\n'
        '  File "/srv/env/lib/python3.10/site-packages/accelerate/accelerator.py", line 912, in prepare_model\n    model = model.to(self.device)\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/nn/modules/module.py", line 927, in to\n    return self._apply(convert)\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/nn/modules/module.py", line 579, in _apply\n    module._apply(fn)\n'
        "RuntimeError: CUDA out of memory. Tried to allocate 16.00 MiB (GPU 0; 4.00 GiB total capacity; 3.36 GiB already allocated; 0 bytes free; 3.41 GiB reserved in total by PyTorch)",
        "Train a LoRA or another adapter",
        "Halve the batch size",
    ),
    (  # the only task of each of two hosts opens the port
        "".join(
            "Traceback (most recent call last):\n"
            '  File "/opt/conda/lib/python3.8/site-packages/torch/distributed/run.py", line 752, in run\n    elastic_launch(\n'
            '  File "/opt/conda/lib/python3.8/site-packages/torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py", line 55, in next_rendezvous\n    self._store = TCPStore(\n'
            "RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
            for _ in range(2)
        )
        + "srun: error: node43: task 0: Exited with exit code 1\nsrun: error: node44: task 1: Exited with exit code 1\n",
        "Give each torchrun the number of nodes and the same endpoint: on 2 hosts",
        "nothing that starts it again",
    ),
    (  # nothing tells of rights, the driver or a variable
        "Traceback (most recent call last):\n"
        '  File "/srv/own/run.py", line 4, in <module>\n    x = torch.zeros(1, device="cuda")\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/cuda/__init__.py", line 314, in _lazy_init\n    torch._C._cuda_init()\n'
        "RuntimeError: No HIP GPUs are available",
        "Run rocminfo in this shell",
        "no card could be opened",
    ),
    (  # the driver is not there
        "$ rocminfo\nROCk module is NOT loaded, possibly no GPU devices\n",
        "Load the kernel's amdgpu module",
        "usermod",
    ),
    (  # which build it is, only pip knows
        "Traceback (most recent call last):\n"
        '  File "C:\\own\\app.py", line 34, in <module>\n    import torch\n'
        '  File "C:\\own\\venv\\lib\\site-packages\\torch\\__init__.py", line 148, in <module>\n    raise err\n'
        'OSError: [WinError 126] The specified module could not be found. Error loading "C:\\own\\venv\\lib\\site-packages\\torch\\lib\\fbgemm.dll" or one of its dependencies.\n',
        "Update torch 2.4.0, whose fbgemm.dll lacks libomp140.x86_64.dll, to 2.4.1; TAG is",
        "whl/cu124",
    ),
    (  # torch's own check of an extension's toolkit, which is there
        "No CUDA runtime is found, using CUDA_HOME='C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.1'\n"
        "Traceback (most recent call last):\n"
        '  File "C:\\src\\knobs\\setup.py", line 9, in <module>\n    setup(\n'
        '  File "C:\\env\\lib\\site-packages\\torch\\utils\\cpp_extension.py", line 383, in _check_cuda_version\n'
        "    torch_cuda_version = packaging.version.parse(torch.version.cuda)\n"
        '  File "C:\\env\\lib\\site-packages\\packaging\\version.py", line 195, in __init__\n'
        "    match = self._regex.search(version)\n"
        "TypeError: expected string or bytes-like object",
        "Install the torch that was built for CUDA 12.1",
        "flash-attn",
    ),
    (  # the same in an environment that pip made for the build
        "Traceback (most recent call last):\n"
        '  File "/tmp/pip-build-env-1x/overlay/lib/python3.10/site-packages/torch/utils/cpp_extension.py", line 383, in _check_cuda_version\n'
        "    torch_cuda_version = packaging.version.parse(torch.version.cuda)\n"
        '  File "/tmp/pip-build-env-1x/overlay/lib/python3.10/site-packages/packaging/version.py", line 195, in __init__\n'
        "    match = self._regex.search(version)\n"
        "TypeError: expected string or bytes-like object, got 'NoneType'",
        "Install torch's CUDA build first, then this package without isolation",
        "in the place of the CPU build",
    ),
    (  # the GPU has MAGMA in this message, and the CPU LAPACK
        '  File "/srv/own/fit.py", line 3, in <module>\n    q, r = torch.linalg.qr(x)\n'
        "RuntimeError: Calling torch.geqrf on a CPU tensor requires compiling PyTorch with LAPACK. Please use PyTorch built with LAPACK support.",
        "Install torch's own wheel in the place of this build",
        "on the CPU",
    ),
    (
        '  File "/srv/own/fit.py", line 3, in <module>\n    c = torch.linalg.cholesky(x)\n'
        "RuntimeError: Calling torch.linalg.cholesky on a CUDA tensor requires compiling PyTorch with MAGMA. Please use PyTorch built with MAGMA support.",
        "Call torch.linalg.cholesky on the CPU",
        "MAGMA.,",
    ),
    (  # a card that is too old gets no newer build, and there is no extension
        "/env/torch/cuda/__init__.py:120: UserWarning:\n    Found GPU%d %s which is of cuda capability %d.%d.\n"
        "    PyTorch no longer supports this GPU because it is too old.\n\n  warnings.warn(old_gpu_warn)\n"
        "Traceback (most recent call last):\n"
        '  File "/env/lib/python3.9/site-packages/torch/nn/modules/conv.py", line 442, in _conv_forward\n    return F.conv2d(input)\n'
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "Run on the CPU, with the GPU hidden",
        "xtension",
    ),
    (
        "/env/torch/cuda/__init__.py:120: UserWarning:\n    Found GPU0 Tesla K80 which is of cuda capability 3.7.\n"
        "    PyTorch no longer supports this GPU because it is too old.\n\n  warnings.warn(old_gpu_warn)\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "Install the build for CUDA 11.8",
        "cu126",
    ),
    (
        "/env/torch/cuda/__init__.py:120: UserWarning:\n    Found GPU0 Tesla K40c which is of cuda capability 3.5.\n"
        "    PyTorch no longer supports this GPU because it is too old.\n\n  warnings.warn(old_gpu_warn)\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "Run on the CPU, with this GPU hidden",
        "whl/",
    ),
    (  # the cache of extensions can be moved, a folder of the reader's gets a letter
        "ninja: error: Stat(C:/Users/user1/AppData/Local/torch_extensions/torch_extensions/Cache/py310_cu118/knobs/knobs.cuda.o): Filename longer than 260 characters\n",
        "Build extensions in a short folder",
        "drive letter",
    ),
    (
        "ninja: error: Stat(E:/a/b/build/temp.win-amd64-cpython-39/Release/a/b/ops/knobs.obj): Filename longer than 260 characters\n"
        "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.\n",
        "Delete the folder build, give the folder of setup.py a drive letter",
        "MAX_JOBS",
    ),
    (  # LibTorch's application and a setup script
        "[ 50%] Building CXX object CMakeFiles/own-app.dir/own-app.cpp.o\nclang: error: unsupported option '-fopenmp'\n"
        "make[2]: *** [CMakeFiles/own-app.dir/own-app.cpp.o] Error 1\n",
        "Configure again in an empty build folder",
        "setup.py",
    ),
    (
        "building 'knobs._C' extension\nclang: error: unsupported option '-fopenmp'\nerror: command 'gcc' failed with exit status 1\n",
        "Build with LLVM's own clang",
        "CMake",
    ),
    (  # whose None it is, the frames tell
        "Traceback (most recent call last):\n"
        '  File "/env/lib/python3.11/site-packages/transformers/tokenization_utils_base.py", line 720, in as_tensor\n    return torch.tensor(value)\n'
        "RuntimeError: Could not infer dtype of NoneType\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/own/ask.py", line 21, in <module>\n    inputs = tokenizer(prompt, return_tensors="pt")\n'
        '  File "/srv/.cache/huggingface/modules/transformers_modules/tokenization_knob.py", line 408, in _encode_plus\n    return self.prepare_for_model(\n'
        "ValueError: Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True' 'truncation=True' to have batched tensors with the same length.\n",
        "Fetch the tokenizer's own code again",
        "padding",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/ask.py", line 21, in <module>\n    inputs = tokenizer(prompt, return_tensors="pt")\n'
        '  File "/env/lib/python3.11/site-packages/transformers/tokenization_utils_base.py", line 720, in as_tensor\n    return torch.tensor(value)\n'
        "RuntimeError: Could not infer dtype of NoneType\n",
        "Look at the ids without return_tensors",
        "label",
    ),
    (  # the image's release stands in its tag, the host's nowhere
        "user1@board:~$ sudo docker run -it --rm --runtime nvidia nvcr.io/nvidia/l4t-pytorch:r32.4.2-pth1.5-py3\n"
        "root@board:/# python3\n>>> import torch\nTraceback (most recent call last):\n"
        '  File "<stdin>", line 1, in <module>\n'
        '  File "/usr/local/lib/python3.6/dist-packages/torch/__init__.py", line 93, in _load_global_deps\n    ctypes.CDLL(lib_path)\n'
        "OSError: libnvToolsExt.so.1: cannot open shared object file: No such file or directory",
        "Start an image of the host's own L4T release",
        "nvidia-jetpack",
    ),
    (  # uv compares the glibc of the wheels with that of this system, and no Python has another
        "error: Distribution `torch==2.7.0 @ registry+https://pypi.org/simple` can't be installed because it doesn't have a source distribution or wheel for the current platform\n\n"
        "hint: You're on Linux (`manylinux_2_27_x86_64`), but `torch` (v2.7.0) only has wheels for the following platforms: `manylinux_2_28_aarch64`, `manylinux_2_28_x86_64`, `win_amd64`; consider adding your platform",
        "Use a system or image with glibc 2.28 or newer: uv takes this one for 2.27",
        "uv venv",
    ),
    (  # another processor is not a matter of glibc
        "hint: You're on Linux (`manylinux_2_35_aarch64`), but `torch` (v2.7.0) only has wheels for the following platforms: `manylinux_2_28_x86_64`, `win_amd64`; consider adding your platform",
        "Ask for another build of torch on this platform",
        "glibc 2",
    ),
    (  # a release that takes ROCm 7.12 for 8.2; Windows is another reader's
        "(lab) $ python -m lab.quantise --bits 8\n"
        "bitsandbytes library load error: Configured ROCm binary not found at /srv/own/lab/lib/python3.12/site-packages/bitsandbytes/libbitsandbytes_rocm82.so\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/own/lab/lib/python3.12/site-packages/bitsandbytes/cextension.py", line 320, in <module>\n'
        "    lib = get_native_library()\n"
        "          ^^^^^^^^^^^^^^^^^^^^\n"
        '  File "/srv/own/lab/lib/python3.12/site-packages/bitsandbytes/cextension.py", line 288, in get_native_library\n'
        '    raise RuntimeError(f"Configured {BNB_BACKEND} binary not found at {cuda_binary_path}")\n'
        "RuntimeError: Configured ROCm binary not found at /srv/own/lab/lib/python3.12/site-packages/bitsandbytes/libbitsandbytes_rocm82.so\n",
        "Install bitsandbytes 0.50 or later",
        "Windows",
    ),
    (  # Python's own releases decide, too
        "Traceback (most recent call last):\n"
        '  File "/srv/own/bench/run.py", line 41, in <module>\n'
        "    net = torch.jit.load(path)\n"
        '  File "/usr/local/lib/python3.6/site-packages/torch/jit/_serialization.py", line 164, in load\n'
        "    cu, f.read(), map_location, _extra_files\n"
        "RuntimeError: \n"
        "Unknown builtin op: aten::_upsample_bilinear2d_aa.\n"
        "Could not find any similar ops to aten::_upsample_bilinear2d_aa. This op may not exist or may not be currently supported in TorchScript.\n"
        ":\n"
        '  File "/home/u/user1/miniconda3/lib/python3.9/site-packages/torch/nn/functional.py", line 3946\n'
        "        return torch._C._nn._upsample_bilinear2d_aa(input, output_size, align_corners, scale_factors)\n"
        "               ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n"
        'Serialized   File "code/__torch__/torch/nn/functional.py", line 77\n'
        "    _3 = torch._upsample_bilinear2d_aa(input, output_size, align_corners, scale_factors)\n"
        "         ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n",
        "Load it with Python 3.9 or later",
        "aa. ",
    ),
    (  # the host has the driver, and Docker is not what runs
        "user1@node07 ~/work $ nvidia-smi\n"
        "Tue Mar  4 09:12:44 2025\n"
        "+-----------------------------------------------------------------------------------------+\n"
        "| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |\n"
        "|-----------------------------------------+------------------------+----------------------+\n"
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
        "|=========================================+========================+======================|\n"
        "|   0  NVIDIA L40S                    On  |   00000000:41:00.0 Off |                    0 |\n"
        "+-----------------------------------------+------------------------+----------------------+\n"
        'user1@node07 ~/work $ apptainer exec --nv image.sif bash -lc "python /opt/job/embed.py"\n'
        "Traceback (most recent call last):\n"
        '  File "/opt/job/embed.py", line 9, in <module>\n'
        '    x = torch.zeros(4, device="cuda")\n'
        '  File "/opt/conda/lib/python3.10/site-packages/torch/cuda/__init__.py", line 293, in _lazy_init\n'
        "    torch._C._cuda_init()\n"
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx\n",
        "Bind the driver's libraries into the container yourself",
        "docker",
    ),
    (  # nothing binds a driver
        "user1@node07 ~/work $ singularity exec embed.sif python embed.py\n"
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/work/embed.py", line 9, in <module>\n'
        '    x = torch.zeros(4, device="cuda")\n'
        '  File "/opt/conda/lib/python3.10/site-packages/torch/cuda/__init__.py", line 293, in _lazy_init\n'
        "    torch._C._cuda_init()\n"
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx\n",
        "Start the container with --nv",
        "docker",
    ),
    (  # the same command without the option worked
        "user1@lab3:~/probe$ apptainer exec torch_amd.sif python see_gpu.py\n"
        "True\n"
        "user1@lab3:~/probe$ apptainer exec --rocm torch_amd.sif python see_gpu.py\n"
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/probe/see_gpu.py", line 1, in <module>\n'
        "    import torch\n"
        '  File "/opt/conda/lib/python3.9/site-packages/torch/__init__.py", line 202, in <module>\n'
        "    from torch._C import *  # noqa: F403\n"
        "ImportError: librocm_smi64.so.5: cannot open shared object file: No such file or directory\n",
        "Leave --rocm out",
        "pip",
    ),
    (  # an image of Apptainer's, in which nothing can be installed
        "user1@lab3:~/probe$ apptainer exec --rocm torch_amd.sif python see_gpu.py\n"
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/probe/see_gpu.py", line 1, in <module>\n'
        "    import torch\n"
        '  File "/opt/conda/lib/python3.9/site-packages/torch/__init__.py", line 202, in <module>\n'
        "    from torch._C import *  # noqa: F403\n"
        "ImportError: librocm_smi64.so.6: cannot open shared object file: No such file or directory\n",
        "Try it without --rocm",
        "pip",
    ),
    (  # the others had nothing more to do
        "dealer   | Traceback (most recent call last):\n"
        'dealer   |   File "/app/start_dealer.py", line 31, in <module>\n'
        "dealer   |     main()\n"
        'dealer   |   File "/app/start_dealer.py", line 24, in main\n'
        "dealer   |     deal(shares=64)\n"
        'dealer   |   File "/app/dealer.py", line 52, in deal\n'
        "dealer   |     dist.send(share, dst=party)\n"
        'dealer   |   File "/usr/local/lib/python3.9/site-packages/torch/distributed/distributed_c10d.py", line 1295, in send\n'
        "dealer   |     default_pg.send([tensor], dst, tag).wait()\n"
        "dealer   | RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [172.21.0.3]:41877\n"
        "party0 exited with code 0\n"
        "party1 exited with code 0\n"
        "dealer exited with code 1\n",
        "Let all processes exchange equally many messages",
        "torchrun",
    ),
    (  # the line of two ranks that wrote at once
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/vid/train.py", line 88, in <module>\n'
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/vid/train.py", line 88, in <module>\n'
        "    main()\n"
        '  File "/home/u/user1/vid/train.py", line 71, in main\n'
        "    main()\n"
        '  File "/home/u/user1/vid/train.py", line 71, in main\n'
        "    metrics = validate(model, loader)\n"
        '  File "/home/u/user1/vid/val.py", line 30, in validate\n'
        "    metrics = validate(model, loader)\n"
        '  File "/home/u/user1/vid/val.py", line 30, in validate\n'
        '    clip = out["clip_ids"].removeprefix("clip_")\n'
        "AttributeError: 'list' object has no attribute 'removeprefix'\n"
        '    clip = out["clip_ids"].removeprefix("clip_")\n'
        "AttributeError: 'list' object has no attribute 'removeprefix'\n",
        "Take .removeprefix of each element of out['clip_ids']",
        "None",
    ),
    (  # a type of Python's own
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/vid/train.py", line 52, in <module>\n'
        '    total += stats["loss"].item()\n'
        "AttributeError: 'float' object has no attribute 'item'\n",
        "Find out where stats['loss'] gets its value",
        "None",
    ),
    (  # no line of the reader's passes it
        "Traceback (most recent call last):\n"
        '  File "/srv/own/chat.py", line 31, in <module>\n    out = model(**inputs)\n'
        '  File "/srv/env/lib/python3.10/site-packages/transformers/integrations/sdpa_attention.py", line 89, in sdpa_attention_forward\n'
        "    attn_output = torch.nn.functional.scaled_dot_product_attention(\n"
        "TypeError: scaled_dot_product_attention() got an unexpected keyword argument 'enable_gqa'",
        "Load the model with attn_implementation='eager'",
        "out, or use the release",
    ),
    (  # likewise, and another package has no such switch
        "Traceback (most recent call last):\n"
        '  File "/srv/own/draw.py", line 12, in <module>\n    image = pipe(prompt)\n'
        '  File "/srv/env/lib/python3.10/site-packages/diffusers/models/attention_dispatch.py", line 1001, in _native_attention\n'
        "    out = torch.nn.functional.scaled_dot_product_attention(\n"
        "TypeError: scaled_dot_product_attention() got an unexpected keyword argument 'enable_gqa'",
        "Install an older diffusers, or a newer torch",
        "eager",
    ),
    (  # the banner shows that torch was imported, in a release that has no such fault
        "Ultralytics YOLOv8.1.2 🚀 Python-3.8.10 torch-2.2.1 CPU (ARMv8 Processor rev 1 (v8l))\n"
        "Illegal instruction (core dumped)\n",
        "On a Jetson Nano or TX2",
        "2.3.1",
    ),
    (  # an index of its own is the one that has to list it
        "C:\\ui>venv\\Scripts\\python -m pip install torch\n"
        "Looking in indexes: https://wheels.example.org/gfx110X/\n"
        "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)",
        "Delete the environment's folder",
        "--torch-backend",
    ),
    (  # a mirror of PyPI is none
        "Looking in indexes: https://mirror.example.org/pypi/simple\n"
        "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)",
        "Use a Python version",
        "example.org",
    ),
    (  # transformers looked for it when it was imported, and the kernel runs on
        "Requirement already satisfied: bitsandbytes in /usr/local/lib/python3.11/dist-packages (0.46.1)\n"
        "ImportError                               Traceback (most recent call last)\n"
        "Cell In[5], line 3\n----> 3 model = AutoModelForCausalLM.from_pretrained(path, quantization_config=bnb)\n\n"
        "File /usr/local/lib/python3.11/dist-packages/transformers/quantizers/quantizer_bnb_4bit.py:76, in validate_environment(self)\n"
        "---> 76     raise ImportError(\n\n"
        "ImportError: Using `bitsandbytes` 4-bit quantization requires the latest version of bitsandbytes: `pip install -U bitsandbytes`",
        "Restart the kernel, and run the cell that installs bitsandbytes",
        "--upgrade",
    ),
    (  # each worker of a WebDataset reads whole files
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 31, in <module>\n    for batch in loader:\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/utils/data/dataloader.py", line 701, in __next__\n    data = self._next_data()\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/_utils.py", line 715, in reraise\n    raise exception\n'
        "ValueError: Caught ValueError in DataLoader worker process 3.\n"
        "Original Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.10/site-packages/torch/utils/data/_utils/fetch.py", line 33, in fetch\n    data.append(next(self.dataset_iter))\n'
        '  File "/srv/env/lib/python3.10/site-packages/webdataset/compat.py", line 105, in check_empty\n    raise ValueError("No samples found in dataset; perhaps you have fewer shards than workers.\\n" +\n'
        "ValueError: No samples found in dataset; perhaps you have fewer shards than workers.\n"
        "Turn off using empty_check=False in the WebDataset constructor.\n",
        "Lower num_workers to the number of shards (tar files) at most",
        "damaged",
    ),
    (  # a method of this release that was an attribute of an earlier one, or brackets that were forgotten
        "Traceback (most recent call last):\n"
        '  File "/srv/own/batches.py", line 12, in collate\n    names = sorted(graph.keys)\n'
        "TypeError: 'method' object is not iterable\n",
        "Call the method that this line uses",
        "Compare",
    ),
    (  # load_inline writes the file from a string, and there is no package to install
        "Building extension module fused_norm...\n"
        "[2/3] /usr/bin/nvcc -DTORCH_EXTENSION_NAME=fused_norm -c /home/kim/.cache/torch_extensions/py311_cu126/fused_norm/cuda.cu -o cuda.cuda.o\n"
        "FAILED: cuda.cuda.o\n"
        '/home/kim/.cache/torch_extensions/py311_cu126/fused_norm/cuda.cu(31): error: identifier "blok" is undefined\n'
        "ninja: build stopped: subcommand failed.\n"
        "RuntimeError: Error building extension 'fused_norm'\n",
        "Correct the string of sources given to load_inline",
        "pip install",
    ),
    (  # the instances of a template share the name of the array
        "Using /home/kim/.cache/torch_extensions/py311_cu126 as PyTorch extensions root...\n"
        "[2/3] /usr/bin/nvcc -DTORCH_EXTENSION_NAME=fused_norm -c /srv/own/norm.cu -o norm.cuda.o\n"
        "FAILED: norm.cuda.o\n"
        '/srv/own/norm.cu(31): error: declaration is incompatible with previous "buf"\n'
        '/srv/own/norm.cu(31): warning #20042-D: a host variable("buf") redeclared with __shared__\n'
        "ninja: build stopped: subcommand failed.\n"
        "RuntimeError: Error building extension 'fused_norm'\n",
        "Declare the kernel's shared memory as bytes",
        "wheel",
    ),
    (  # the hub answers 401 for a name that does not exist, and no login makes it one
        "Traceback (most recent call last):\n"
        '  File "/srv/own/embed.py", line 9, in <module>\n    model = AutoModel.from_pretrained("acne/tiny-bert")\n'
        '  File "/srv/env/lib/python3.11/site-packages/huggingface_hub/utils/_http.py", line 458, in hf_raise_for_status\n'
        "    raise _format(RepositoryNotFoundError, message, response) from e\n"
        "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-7)\n\n"
        "Repository Not Found for url: https://huggingface.co/acne/tiny-bert/resolve/main/config.json.\n"
        "Please make sure you specified the correct `repo_id` and `repo_type`.\n"
        "If you are trying to access a private or gated repo, make sure you are authenticated.\n",
        "Correct the name acne/tiny-bert",
        "Accept the",
    ),
    (  # what a bang starts gets no keyboard, so that a token is asked for in the cell
        "HTTPError                                 Traceback (most recent call last)\n"
        "File /opt/env/lib/python3.11/site-packages/requests/models.py:1026, in Response.raise_for_status(self)\n"
        "-> 1026     raise HTTPError(http_error_msg, response=self)\n\n"
        "HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/acme/closed-7b/resolve/main/config.json\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "GatedRepoError                            Traceback (most recent call last)\n"
        'Cell In[3], line 1\n----> 1 tok = AutoTokenizer.from_pretrained("acme/closed-7b")\n\n'
        "File /opt/env/lib/python3.11/site-packages/huggingface_hub/utils/_http.py:426, in hf_raise_for_status(response)\n"
        "--> 426     raise _format(GatedRepoError, message, response) from e\n\n"
        "GatedRepoError: 401 Client Error. (Request ID: Root=1-7)\n",
        "Accept the terms on https://huggingface.co/acme/closed-7b; then log in, in a cell",
        "python",
    ),
    (  # what is only installed into a project of uv goes with its next sync
        "$ uv sync && uv run python bench.py\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/lab/.venv/lib/python3.10/site-packages/torch/utils/cpp_extension.py", line 12, in <module>\n'
        "    import setuptools\n"
        "ModuleNotFoundError: No module named 'setuptools'",
        "Install setuptools, below 82",
        "pip install",
    ),
    (  # uv names the package that does not declare torch
        "$ uv add blendops\n  × Failed to build `blendops==1.4.0`\n  ├─▶ The build backend returned an error\n"
        "      Traceback (most recent call last):\n"
        '        File "<string>", line 8, in <module>\n'
        "      ModuleNotFoundError: No module named 'torch'\n\n"
        "      hint: This error likely indicates that `blendops@1.4.0` depends on `torch`, but doesn't declare it as a build dependency.\n"
        "  help: If you want to add the package regardless of the failed resolution, provide the `--frozen` flag.",
        "Add torch to the project, then blendops without isolation",
        "uv pip install",
    ),
    (  # the JetPack by the CUDA of its driver
        "Linux board 5.10.104-tegra aarch64 GNU/Linux\nTraceback (most recent call last):\n"
        '  File "/home/u/env/lib/python3.8/site-packages/torch/cuda/__init__.py", line 293, in _lazy_init\n'
        "    torch._C._cuda_init()\n"
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
        "Install NVIDIA's torch for this JetPack",
        "cu118",
    ),
    (  # what started the function is no script of the reader's
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/Workspace/me/.launched/jobs/_start.py", line 9, in <module>\n[rank2]:     call()\n'
        '[rank2]:   File "/databricks/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 4635, in barrier\n'
        "[rank2]:     work = group.barrier(opts=opts)\n"
        "[rank2]: torch.distributed.DistBackendError: [2] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via "
        "c10d key-value store by key '0', but store->get('0') got error: failed to recv, got 0 bytes",
        "Read what rank 0 printed last",
        "_start.py",
    ),
    (  # mmdetection's head was made for more classes than the dataset names
        "Traceback (most recent call last):\n"
        '  File "/srv/mmdetection/tools/test.py", line 149, in <module>\n    main()\n'
        '  File "/srv/mmdetection/mmdet/evaluation/metrics/coco_metric.py", line 239, in results2json\n'
        "    data['category_id'] = self.cat_ids[label]\n"
        "IndexError: list index out of range",
        "Set num_classes of the model's heads",
        "--help",
    ),
    (  # the runtime does not hold what fbgemm.dll needs, and the portable Python is not that of a prompt
        "Traceback (most recent call last):\n"
        '  File "D:\\\\ui\\\\main.py", line 3, in <module>\n    import torch\n'
        '  File "D:\\\\ui\\\\python_embeded\\\\Lib\\\\site-packages\\\\torch\\\\__init__.py", line 148, in <module>\n    raise err\n'
        "OSError: [WinError 126] The specified module could not be found. Error loading "
        '"D:\\\\ui\\\\python_embeded\\\\Lib\\\\site-packages\\\\torch\\\\lib\\\\fbgemm.dll" or one of its dependencies.',
        "Install torch once more with the portable Python",
        "PyQt",
    ),
    (  # what open() would have made; a console broke the message before the path
        "Traceback (most recent call last):\n"
        '  File "C:\\\\own\\\\run.py", line 108, in train\n    with open(path + "state.json", \'w\', encoding="utf-8") as w:\n'
        "FileNotFoundError: [Errno 2] No such file or directory: \n'out/model/state.json'",
        "Make the folder first, os.makedirs('out/model', exist_ok=True)",
        "Correct the path",
    ),
    (  # the weights are float64, and no data of NumPy
        "Traceback (most recent call last):\n"
        '  File "/srv/own/act.py", line 31, in act\n    return self.policy.predict(obs)\n'
        '  File "/srv/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return F.linear(input, self.weight, self.bias)\n'
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and Double",
        "Bring the model to float32",
        "from_numpy",
    ),
    (  # the process that holds the card, not the first one of the list
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 26.00 MiB. GPU 1 has a total capacity of 47.45 GiB of which 26.06 MiB is free. "
        "Process 3107 has 232.00 MiB memory in use. Process 4110 has 43.88 GiB memory in use. Including non-PyTorch memory, this process has 3.31 GiB memory in use.",
        "Look whose process 4110 is",
        "3107",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/opts.py", line 12, in merged\n    return defaults | given\n'
        "TypeError: unsupported operand type(s) for |: 'dict' and 'dict'",
        "Make an environment with Python 3.9 or later, and install there what the program needs: | between",
        "__future__",
    ),
    (  # what went for good is not to be updated further
        "Traceback (most recent call last):\n"
        '  File "/srv/own/run.py", line 2, in <module>\n    from diffusers import DiffusionPipeline\n'
        '  File "/srv/env/lib/python3.10/site-packages/diffusers/utils/dynamic_modules_utils.py", line 28, in <module>\n'
        "    from huggingface_hub import HfFolder, cached_download, hf_hub_download, model_info\n"
        "ImportError: cannot import name 'cached_download' from 'huggingface_hub' "
        "(/srv/env/lib/python3.10/site-packages/huggingface_hub/__init__.py)",
        "Install huggingface_hub 0.25.2, the last release that has cached_download",
        "huggingface-hub",
    ),
    (  # nothing is in it, so that no axis helps
        "Traceback (most recent call last):\n"
        '  File "/srv/own/model.py", line 24, in forward\n    x = self.conv1(x)\n'
        '  File "/srv/env/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 549, in _conv_forward\n    return F.conv2d(\n'
        "RuntimeError: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [1, 0]",
        "Look where the input is made",
        "unsqueeze",
    ),
    (  # pip replaced it under a running session
        "ImportError                               Traceback (most recent call last)\n"
        "Cell In[9], line 1\n----> 1 from vllm import LLM\n\n"
        "File /usr/local/lib/python3.12/dist-packages/torch/fx/experimental/symbolic_shapes.py:64, in <module>\n"
        "---> 64 from torch._library.opaque_object import is_opaque_value\n\n"
        "ImportError: cannot import name 'is_opaque_value' from 'torch._library.opaque_object' "
        "(/usr/local/lib/python3.12/dist-packages/torch/_library/opaque_object.py)",
        "Restart the session",
        "flashinfer",
    ),
    (  # a file of torch's own is gone
        "Traceback (most recent call last):\n"
        '  File "setup.py", line 16, in <module>\n    import torch\n'
        '  File "/usr/local/lib/python3.10/dist-packages/torch/__init__.py", line 377, in _load_global_deps\n'
        "    ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)\n"
        "OSError: /usr/local/lib/python3.10/dist-packages/torch/lib/libtorch_global_deps.so: cannot open shared object "
        "file: No such file or directory",
        "Install torch again",
        "source folder",
    ),
    (  # 64 is the rank on both sides
        "RuntimeError: Error(s) in loading state_dict for PeftModelForCausalLM:\n"
        "\tsize mismatch for base_model.model.layers.0.self_attn.q_proj.lora_A.default.weight: copying a param with shape "
        "torch.Size([64, 2048]) from checkpoint, the shape in current model is torch.Size([64, 4096]).\n"
        "\tsize mismatch for base_model.model.layers.0.self_attn.q_proj.lora_B.default.weight: copying a param with shape "
        "torch.Size([1920, 64]) from checkpoint, the shape in current model is torch.Size([4096, 64]).",
        "Load the adapter onto the base model",
        "Leave out",
    ),
    (
        "RuntimeError: Error(s) in loading state_dict for PeftModelForCausalLM:\n"
        "\tsize mismatch for base_model.model.layers.0.self_attn.q_proj.lora_A.default.weight: copying a param with shape "
        "torch.Size([8, 4096]) from checkpoint, the shape in current model is torch.Size([16, 4096]).",
        "Create the adapter with the rank",
        "Leave out",
    ),
    (  # the pod network has no way to the address
        "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of "
        "(run-b-master-0, 23456). The client socket has failed to connect to 10-2-7-31.run-b-master-0.jobs.svc.cluster.local:23456 "
        "(errno: 113 - No route to host).",
        "Look where rank 0's pod runs",
        "init_process_group",
    ),
    (  # the engine's own process holds nothing yet, and a fifteenth of a card is no place for a model
        "(EngineCore_DP0 pid=77) Traceback (most recent call last):\n"
        '(EngineCore_DP0 pid=77)   File "/opt/env/lib/python3.11/site-packages/vllm/v1/engine/core.py", line 699, in '
        "run_engine_core\n(EngineCore_DP0 pid=77)     engine_core = EngineCoreProc(*args, **kwargs)\n"
        "(EngineCore_DP0 pid=77) ValueError: Free memory on device (5.31/79.19 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.27 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "End what else holds the GPU",
        "gpu_memory_utilization",
    ),
    (  # the weights fill the card: no share of it helps
        "(EngineCore pid=71) INFO 05-02 09:14:20 [gpu_model_runner.py:4820] Model loading took 14.25 GiB memory and 41.5 seconds\n"
        "(EngineCore pid=71) ERROR 05-02 09:15:02 [core.py:1108] Traceback (most recent call last):\n"
        '(EngineCore pid=71) ERROR 05-02 09:15:02 [core.py:1108]   File "/opt/env/lib/python3.12/site-packages/vllm/v1/worker/'
        'gpu_model_runner.py", line 5740, in profile_run\n'
        "(EngineCore pid=71) ERROR 05-02 09:15:02 [core.py:1108]     hidden_states, last = self._dummy_run(\n"
        "(EngineCore pid=71) ERROR 05-02 09:15:02 [core.py:1108] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
        "1.02 GiB. GPU 0 has a total capacity of 14.56 GiB of which 110.00 MiB is free. Including non-PyTorch memory, this "
        "process has 14.45 GiB memory in use. Of the allocated memory 14.26 GiB is allocated by PyTorch, and 54.00 MiB is "
        "reserved by PyTorch but unallocated.",
        "Serve a quantised or smaller model",
        "gpu-memory-utilization",
    ),
    (  # what a tokenizer gives is no dict, and slips through a loop that moves dicts
        "Traceback (most recent call last):\n"
        '  File "/srv/own/model.py", line 59, in forward\n    e = self.text(tokens)["sentence_embedding"]\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/nn/modules/sparse.py", line 192, in forward\n'
        "    return F.embedding(\n"
        "RuntimeError: Expected all tensors to be on the same device, but got index is on cpu, different from other "
        "tensors on cuda:0 (when checking argument in method wrapper_CUDA__index_select)",
        "Move the ids before the model gets them",
        "buffers at all",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 205, in step\n    self.metrics.update(pred, y)\n'
        '  File "/srv/env/lib/python3.11/site-packages/torchmetrics/regression/pearson.py", line 148, in update\n'
        "    self.mean_x = f(preds, target)\n"
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "Give the metric both on one device",
        "buffers at all",
    ),
    (  # IPython shortens a home; the plain wheel of Linux has CUDA
        "AssertionError                            Traceback (most recent call last)\n"
        'Cell In[8], line 11\n     10 model = load()\n---> 11 model.to("cuda")\n\n'
        "File ~/speech/env/lib/python3.10/site-packages/torch/cuda/__init__.py:310, in _lazy_init()\n"
        '--> 310     raise AssertionError("Torch not compiled with CUDA enabled")\n\n'
        "AssertionError: Torch not compiled with CUDA enabled",
        "Take 'mps' for 'cuda' if this is a Mac",
        "JetPack",
    ),
    (  # a picture, and not an array of the reader's making
        "Traceback (most recent call last):\n"
        '  File "C:\\work\\train.py", line 16, in __getitem__\n    img = raw.convert("RGB")\n'
        '  File "C:\\work\\venv\\Lib\\site-packages\\torch\\utils\\data\\_utils\\fetch.py", line 54, in fetch\n    x\n'
        '  File "C:\\work\\venv\\Lib\\site-packages\\PIL\\Image.py", line 1081, in convert\n    return self.copy()\n'
        "MemoryError",
        "Decode large pictures smaller",
        "broadcasts",
    ),
    (  # a row of features for each sample, and one for each step of each sample
        "Traceback (most recent call last):\n"
        '  File "/srv/own/head.py", line 45, in forward\n    x = torch.cat([flat, z], dim=1)\n'
        "RuntimeError: Tensors must have same number of dimensions: got 2 and 3",
        "Make two axes of the tensor that has three",
        "F.interpolate",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/head.py", line 45, in forward\n    x = torch.cat([batch, one], dim=0)\n'
        "RuntimeError: Tensors must have same number of dimensions: got 4 and 3",
        "Add the axis that one tensor lost",
        "flatten",
    ),
    (  # the GPU of a Jetson, for which no wheel of pytorch.org has code
        'Warp 1.12.0 initialized: CUDA Toolkit 12.9, Driver 13.2, "cuda:0": "Orin" (61 GiB, sm_87)\n'
        "UserWarning: Orin with CUDA capability sm_87 is not compatible with the current PyTorch installation.\n"
        "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
        "Install NVIDIA's own torch wheel",
        "download.pytorch.org",
    ),
    (  # nothing of the reader's runs while a server captures its graphs
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 512, in compile_or_warm_up_model\n    self.model_runner.capture_model()\n'
        '  File "/srv/env/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 5801, in capture_model\n    self._capture_cudagraphs(\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1776, in _call_impl\n    return forward_call(*args, **kwargs)\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/cuda/graphs.py", line 130, in capture_end\n    super().capture_end()\n'
        "torch.AcceleratorError: CUDA error: out of memory\n",
        "Start it without CUDA graphs",
        "set_per_process_memory_fraction",
    ),
    (  # a larger share cannot hold it
        "(EngineCore pid=7) INFO 05-02 10:11:01 [gpu_model_runner.py:5306] Model loading took 61.02 GiB memory and 40.1 seconds\n"
        "(EngineCore pid=7) INFO 05-02 10:11:09 non-default args: {'gpu_memory_utilization': 0.88, 'max_model_len': 200000}\n"
        '  File "/srv/env/lib/python3.12/site-packages/vllm/v1/core/kv_cache_utils.py", line 760, in _check_enough_kv_cache_memory\n    raise ValueError(\n'
        "ValueError: To serve at least one request with the model's max seq len (200000), (30.50 GiB KV cache is needed, which is larger than the available KV cache memory (6.20 GiB). "
        "Based on the available memory, the estimated maximum model length is 40640. Try increasing `gpu_memory_utilization`.\n",
        "Start the server with --max-model-len 40640",
        "up to 0.95",
    ),
    (  # the card's registration of GPU memory, and no limit
        "[rank9]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n"
        "[rank9]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. \n"
        "[rank9]: Last error:\n[rank9]: Call to ibv_reg_mr_iova2 failed with error Bad address\n",
        "Run once with NCCL_NET_GDR_LEVEL=0",
        "ulimit",
    ),
    (
        "node7:88:140 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
        "node7:88:140 [0] NCCL INFO init.cc:1263 -> 2\n"
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error, NCCL version 2.14.3\n",
        "Raise the limit of locked memory",
        "GDR",
    ),
    (  # torch 2.1 has no flight recorder, and another program starts the ranks
        "[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=6, NumelOut=6, Timeout(ms)=1800000) ran for 1800210 milliseconds before timing out.\n"
        "Executor: Worker 0 died, killing all workers\n",
        "See where each rank stands",
        "torchrun",
    ),
    (
        "[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=6, NumelOut=6, Timeout(ms)=1800000) ran for 1800210 milliseconds before timing out.\n",
        "See where each rank stands",
        "TRACE_BUFFER",
    ),
    (  # no loader in sight
        "slurmstepd: error: Detected 1 oom_kill event in StepId=771.0. Some of the step tasks have been OOM Killed.\n",
        "Ask for more host memory",
        "DataLoader",
    ),
    (  # nothing is trained under it
        "Traceback (most recent call last):\n"
        '  File "/data/me/run.py", line 80, in validate\n    y = model(x)\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/utils/_contextlib.py", line 116, in decorate_context\n    return func(*args, **kwargs)\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1790, in _call_impl\n    return forward_call(*args, **kwargs)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.72 GiB. GPU 0 has a total capacity of 7.96 GiB of which 0 bytes is free. "
        "Of the allocated memory 6.46 GiB is allocated by PyTorch, and 50.67 MiB is reserved by PyTorch but unallocated.",
        "Evaluate with a smaller batch",
        "accumulation",
    ),
    (  # an assert's line and its message together say what both names held
        "Traceback (most recent call last):\n"
        '  File "/srv/own/rope.py", line 88, in forward\n'
        '    assert n <= self.table.size(0), f"positions run out: {n} > {self.table.size(0)}"\n'
        "AssertionError: positions run out: 700 > 512",
        "Make n at most 512, or self.table.size(0) at least 700: n is 700 at this line.",
        "Print the values",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/read.py", line 9, in load\n'
        '    assert 3 == img.shape[2], "expected %d planes, got %d" % (3, img.shape[2])\n'
        "AssertionError: expected 3 planes, got 4",
        "Make img.shape[2] equal to 3: it is 4 at this line.",
        "Print the values",
    ),
    (  # the line goes on below
        "Traceback (most recent call last):\n"
        '  File "/srv/own/read.py", line 9, in load\n    assert len(rows) == len(names), (\n'
        "AssertionError: 12 rows for 10 names",
        "Bring options and data in line with this check",
        "Print the values",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/read.py", line 9, in load\n    assert len(rows) == len(names)\n'
        "AssertionError",
        "Print the values",
        "Make len",
    ),
    (  # a development checkout hides the installed one
        "Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.11/site-packages/torch/_inductor/codecache.py", line 205, in get_system\n'
        "    from triton.compiler.compiler import triton_key\n"
        "ImportError: cannot import name 'triton_key' from 'triton.compiler.compiler' "
        "(/home/me/src/triton/python/triton/compiler/compiler.py)",
        "Take /home/me/src/triton/python off PYTHONPATH",
        "Install the triton",
    ),
    (  # latents of an earlier run
        "Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.10/site-packages/torch/utils/data/_utils/fetch.py", line 51, in fetch\n'
        "    data = [self.dataset[idx] for idx in possibly_batched_index]\n"
        '  File "/srv/own/lora/dataset.py", line 310, in __getitem__\n    out["latents"] = torch.stack(latents)\n'
        "RuntimeError: stack expects each tensor to be equal size, but got [4, 96, 64] at entry 0 and [4, 64, 64] at entry 1",
        "Delete the cached latents",
        "resize",
    ),
    (  # a policy that learned for a while
        "iter 310 | reward 1.9 | loss 2.4\niter 311 | reward 1.7 | loss 3.9\niter 312 | reward 1.2 | loss 9.1\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/own/ppo.py", line 60, in forward\n    dist = Normal(mu, std)\n'
        '  File "/opt/env/lib/python3.12/site-packages/torch/distributions/distribution.py", line 77, in __init__\n'
        "    raise ValueError(\n"
        "ValueError: Expected parameter loc (Tensor of shape (64, 4)) of distribution Normal(loc: torch.Size([64, 4]), "
        "scale: torch.Size([64, 4])) to satisfy the constraint Real(), but found invalid values:\ntensor([[nan, nan]])",
        "Clip the gradients before optimizer.step()",
        "bfloat16",
    ),
    (  # a script of diffusers' own
        "Traceback (most recent call last):\n"
        '  File "/srv/diffusers/examples/dreambooth/train_dreambooth_lora_sdxl.py", line 1823, in main\n'
        "    accelerator.clip_grad_norm_(params_to_clip, args.max_grad_norm)\n"
        '  File "/opt/env/lib/python3.10/site-packages/torch/amp/grad_scaler.py", line 260, in _unscale_grads_\n'
        '    raise ValueError("Attempting to unscale FP16 gradients.")\n'
        "ValueError: Attempting to unscale FP16 gradients.",
        "Update the clone of diffusers",
        "torch_dtype",
    ),
    (  # the node's own fault, and no build of torch for the CPU
        "srun: job 4711 queued and waiting for resources\n"
        "/opt/env/lib/python3.11/site-packages/torch/cuda/__init__.py:182: UserWarning: CUDA initialization: CUDA unknown "
        "error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES "
        "after program start. Setting the available devices to be zero. (Triggered internally at CUDAFunctions.cpp:119.)\n"
        "NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.",
        "Submit the job again without this node",
        "--no-deps",
    ),
    (  # a mark for a missing value
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    rows = [int(x) for x in line]\n'
        "ValueError: invalid literal for int() with base 10: '.'",
        "Correct or leave out the row of the data: '.'",
        "int(float",
    ),
    (
        "$ uv sync\nUsing CPython 3.12.9 interpreter at: /Users/me/app/.venv/bin/python\n"
        "UserWarning: selective_scan was requested, but nvcc was not found.  Are you sure your environment has nvcc available?\n"
        "Traceback (most recent call last):\n"
        '  File "<string>", line 113, in <module>\n'
        "NameError: name 'bare_metal_version' is not defined. torch.__version__  = 2.6.0",
        "Leave the package out on a Mac",
        "/usr/local/cuda",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/data/me/vlm/dc/train/run.py", line 11, in <module>\n    from dc.train.train import train\n'
        "ModuleNotFoundError: No module named 'dc'",
        "Put /data/me/vlm on PYTHONPATH",
        "Install the package",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/data/me/vlm/run.py", line 11, in <module>\n    import pretty_midi\n'
        "ModuleNotFoundError: No module named 'pretty_midi'",
        "Install the package that brings pretty_midi",
        "Put /data",
    ),
    (
        "$ uv add deepspeed\n"
        "Traceback (most recent call last):\n"
        '  File "<string>", line 157, in <module>\n'
        "AssertionError: Unable to pre-compile ops without torch installed. Please install torch before attempting to pre-compile ops.",
        "Name the package under no-build-isolation-package",
        "USE_CUDA",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/data/me/fuse.py", line 140, in forward\n    y = self.proj(a + b)\n'
        '  File "/opt/env/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1790, in _call_impl\n    return forward_call(*args, **kwargs)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.72 GiB. GPU 0 has a total capacity of 7.96 GiB of which 0 bytes is free. "
        "Of the allocated memory 6.46 GiB is allocated by PyTorch, and 50.67 MiB is reserved by PyTorch but unallocated.",
        "Give the model less at once",
        "vllm",
    ),
    (  # two models: nothing to rename
        "RuntimeError: Error(s) in loading state_dict for PatchNet:\n"
        '\tMissing key(s) in state_dict: "stem.0.weight", "stem.1.weight", "stem.1.bias", "stem.1.running_mean", '
        '"stem.1.running_var", "squeeze.fire.weight", "squeeze.fire.bias". \n'
        '\tUnexpected key(s) in state_dict: "tokens", "patch_proj.weight", "patch_proj.bias", '
        '"encoder.layers.0.ln.weight", "encoder.layers.0.ln.bias", "encoder.layers.0.mlp.weight". ',
        "Build the model that the file is of",
        "rename",
    ),
    (
        "RuntimeError: Error(s) in loading state_dict for SegNet:\n"
        '\tMissing key(s) in state_dict: "helper.conv.weight", "helper.conv.bias". \n'
        '\tUnexpected key(s) in state_dict: "trunk.stage.6.conv.weight", "trunk.stage.6.conv.bias", '
        '"trunk.stage.7.conv.weight", "trunk.stage.7.conv.bias". ',
        "Build SegNet as deep as the checkpoint's (backbone, number of layers): the file goes on at trunk.stage.6",
        "rename",
    ),
    (
        "RuntimeError: Error(s) in loading state_dict for SegNet:\n"
        '\tUnexpected key(s) in state_dict: "helper.conv.weight", "helper.conv.bias". ',
        "Build SegNet with the part helper.conv",
        "rename",
    ),
    (
        "ValueError: Target size (torch.Size([4, 1, 96, 96])) must be the same as input size (torch.Size([4, 1, 30, 30]))",
        "Bring the output to the target's size, F.interpolate(",
        "squeeze",
    ),
    (
        "ValueError: Target size (torch.Size([4, 1, 96])) must be the same as input size (torch.Size([4, 96]))",
        "Give both one shape, target.squeeze(1)",
        "pred.squeeze",
    ),
    (
        "ValueError: Target size (torch.Size([300, 1])) must be the same as input size (torch.Size([600, 1]))",
        "Take prediction and target of the same samples",
        "squeeze",
    ),
    (
        "ValueError: Target size (torch.Size([16])) must be the same as input size (torch.Size([16, 2]))",
        "Use F.cross_entropy(pred, target.long())",
        "squeeze",
    ),
    (  # every rank has a part of the weights
        "[launch.py:31:main] cmd = python -u fit.py --output_dir /srv/runs/seven --deepspeed zero3.json\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 40, in <module>\n    fit()\n'
        "RuntimeError: [enforce fail at inline_container.cc:778] . PytorchStreamWriter failed writing file data/3: "
        "file write failed",
        "Make room in /srv/runs/seven",
        "state_dict",
    ),
    (  # the automatic optimization of Lightning calls backward
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 40, in <module>\n    trainer.fit(net, data)\n'
        '  File "/srv/lib/python3.11/site-packages/lightning/pytorch/loops/optimization/automatic.py", line 241, '
        "in backward_fn\n"
        '    call._call_strategy_hook(self.trainer, "backward", loss, optimizer)\n'
        "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they "
        "have already been freed).",
        "Delete backward(), step() and zero_grad() from training_step",
        "retain_graph",
    ),
    (  # a batch of one channel in a layer of the reader's own
        "Traceback (most recent call last):\n"
        '  File "/srv/own/net.py", line 40, in forward\n    x = self.stem(x)\n'
        '  File "/srv/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 554, in forward\n'
        "    return self._conv_forward(input, self.weight, self.bias)\n"
        "RuntimeError: Given groups=1, weight of size [96, 3, 3, 3], expected input[48, 1, 64, 64] to have 3 channels, "
        "but got 1 channels instead",
        "Build that layer with in_channels=1",
        "the layer before",
    ),
    (  # the Trainer moves the model, whose layers accelerate left elsewhere
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 40, in <module>\n    trainer = Trainer(\n'
        '  File "/srv/lib/python3.11/site-packages/transformers/trainer.py", line 690, in _move_model_to_device\n'
        "    model = model.to(device)\n"
        "NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
        "torch.nn.Module.to() when moving module from meta to a different device.",
        "Train a model that fits on the GPU whole",
        "to_empty",
    ),
    (  # the index is made by the program itself
        "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:93: operator(): block: [8,0,0], thread: [3,0,0] Assertion "
        '`-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.\n'
        "Traceback (most recent call last):\n"
        '  File "/srv/own/cloud.py", line 40, in near\n    near_idx = dist.topk(k)[1]\n'
        "RuntimeError: CUDA error: device-side assert triggered",
        "Run the failing batch with launches that wait",
        "labels",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/net.py", line 40, in forward\n    return self.stem(wave)\n'
        '  File "/srv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1762, in _call_impl\n'
        "    return forward_call(*args, **kwargs)\n"
        "RuntimeError: Input type (c10::Half) and bias type (float) should be the same",
        "Convert the input, wave = wave.to(next(self.stem.parameters()).dtype)",
        "next(model.",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    total = first + second\n'
        "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        "Convert one of the two values at this line",
        "None at",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    total = first + second\n'
        "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'",
        "Find out what is None at this line, which joins int and NoneType",
        "Convert one",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    fit(a, b, c=1)\n'
        "TypeError: fit() got an unexpected keyword argument 'c'",
        "Leave c out where fit() is called",
        "Convert one",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    fit(a)\n'
        "TypeError: Net.fit() missing 1 required positional argument: 'target'",
        "Give Net.fit() also target where it is called",
        "Leave",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    fit(a, b, c)\n'
        "TypeError: fit() takes 2 positional arguments but 3 were given",
        "Leave c out of the call at solve.py:13, or let fit() take that",
        "Compare",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    rows = [int(x) for x in line]\n'
        "ValueError: invalid literal for int() with base 10: '2.50'",
        "Read it with int(float(x)), or correct the data: 2.50",
        "row of the data",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    rows = [int(x) for x in line]\n'
        "ValueError: invalid literal for int() with base 10: 'n/a'",
        "Correct or leave out the row of the data: 'n/a'",
        "int(float",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    for i, batch in loader:\n'
        "ValueError: not enough values to unpack (expected 2, got 1)",
        "Unpack as many names as there are values: the line has 2, and 1 came",
        "and more came",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    for i, batch in loader:\n'
        "ValueError: too many values to unpack (expected 2)",
        "Unpack as many names as there are values: the line has 2, and more came",
        "enumerate",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in run\n    raise ValueError(SIZES)\n'
        "ValueError: sizes differ",
        "Bring options, data and machine in line with the check above this raise",
        "Print the values",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in <module>\n    sys.exit(main())\n'
        "NameError: name 'sys' is not defined",
        "Write `import sys` at the top",
        "spelling",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in <module>\n    grid = np.meshgrid(a, b)\n'
        "NameError: name 'np' is not defined",
        "Write `import numpy as np` at the top",
        "spelling",
    ),
    (  # a name of one's own
        "Traceback (most recent call last):\n"
        '  File "/srv/own/solve.py", line 13, in <module>\n    grid = mesh.build(a, b)\n'
        "NameError: name 'mesh' is not defined",
        "Define mesh before this line",
        "import",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/lib-main/solve.py", line 13, in run\n    n = min(k, m)\n'
        "TypeError: '<' not supported between instances of 'str' and 'int'",
        "Convert one of the two values",
        "git pull",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/lib-main/solve.py", line 13, in run\n    n = solve(k, m, tol=1)\n'
        "TypeError: solve() got an unexpected keyword argument 'tol'",
        "Bring lib and the packages that it imports",
        "spelling",
    ),
    (  # torch before 2.1 cannot grow segments, and prints its figures in this way
        "RuntimeError: CUDA out of memory. Tried to allocate 2.53 GiB (GPU 0; 11.63 GiB total capacity; 1.60 GiB already "
        "allocated; 2.43 GiB free; 8.11 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
        "setting max_split_size_mb to avoid fragmentation.",
        "Keep large blocks from being split",
        "expandable_segments",
    ),
    (  # the kernels are FlashInfer's, though torch's next call reports it
        "INFO 03-02 10:00:01 [core.py:58] Initializing a V1 LLM engine (v0.20.0) with config: model='org/Some-9B-NVFP4'\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/lib/python3.12/site-packages/vllm/utils/flashinfer.py", line 500, in flashinfer_mm_fp4\n'
        "    return flashinfer_mm_fp4_(\n"
        '  File "/srv/lib/python3.12/site-packages/flashinfer/gemm/gemm_base.py", line 6100, in mm_fp4\n'
        "    out = torch.empty(\n"
        "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
        "Let vLLM take other kernels than FlashInfer's",
        "{install",
    ),
    (
        "INFO 02-17 13:40:02 api_server.py:840] vLLM API server version 0.6.7\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/local/lib/python3.12/dist-packages/vllm/worker/worker.py", line 100, in load\n'
        "    x = torch.zeros(4).cuda()\n"
        "RuntimeError: HIP error: invalid device function",
        "Take a newer image of vLLM",
        "install a torch for ROCm",
    ),
    (
        "In file included from src/scan_cuda.cu:2:\n"
        "/home/u/env/lib/python3.10/site-packages/torch/include/ATen/cuda/CUDAContextLight.h:8:10: fatal error: "
        "cusparse.h: No such file or directory\n"
        "compilation terminated.\n"
        "error: command '/apps/nvhpc/24.5/Linux_x86_64/24.5/cuda/12.4/bin/nvcc' failed with exit code 1",
        "Name the math libraries of NVIDIA's HPC SDK",
        "Correct",
    ),
    (
        "#9 [4/7] COPY ext-src/ /opt/ext/\n"
        "#12 31.06 /usr/bin/c++ -DTORCH_EXTENSION_NAME=_ext_C -isystem /usr/lib/dist-packages/torch/include -c flash.cpp\n"
        "#12 31.07 /opt/ext/csrc/src/flash_kernel.h:10:10: fatal error: cute/tensor.hpp: No such file or directory\n"
        "#12 31.07    10 | #include <cute/tensor.hpp>\n"
        "#12 31.08 ninja: build stopped: subcommand failed.\n"
        '#12 ERROR: process "/bin/sh -c cmake --build build --target torch_ext" did not complete successfully: exit code: 1',
        "Fetch the submodules in the folder that COPY takes",
        "RUN git",
    ),
    (
        "Processing ./third/blend-op\n"
        "  building 'blend_op._C' extension\n"
        "  /usr/local/cuda-12.8/bin/nvcc -I/e/site-packages/torch/include -c blend.cu -o b.o -std=c++14\n"
        "  /e/site-packages/torch/include/c10/util/C++17.h:24:2: error: #error You need C++17 to compile PyTorch\n"
        "  error: command '/usr/local/cuda-12.8/bin/nvcc' failed with exit code 1",
        "Write -std=c++17 in extra_compile_args",
        "Use the torch that the package was written for",
    ),
    (
        "Looking in indexes: https://download.pytorch.org/whl/cu121\n"
        "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)\n"
        "ERROR: No matching distribution found for torch",
        "Take a current index in place of cu121",
        "whl/cu121",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/app.py", line 3, in <module>\n    import torch\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/__init__.py", line 409, in <module>\n'
        "    from torch._C import *  # noqa: F403\n"
        "ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory",
        "Install libcusparseLt",
        "the extension's build",
    ),
    (
        "torch._inductor.exc.InductorError: KeyError: 'getpwuid(): uid not found: 501'",
        "Name the user and a home",
        "/etc/passwd",
    ),
    (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!"
        " (when checking argument for argument mat1 in method wrapper_CUDA_addmm)",
        "Move the model, model.to(device): the layer's weights are on the CPU",
        "Move argument",
    ),
    (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        " (when checking argument for argument mat1 in method wrapper_CUDA_addmm)",
        "Move argument 'mat1' to the device of the rest",
        "Move the model",
    ),
    (
        "-- Found Torch: /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch.so\n"
        "[ 33%] Building CUDA object CMakeFiles/voxel_ops.dir/src/scan.cu.o\n"
        "Killed\n"
        "make[2]: *** [CMakeFiles/voxel_ops.dir/build.make:90: CMakeFiles/voxel_ops.dir/src/scan.cu.o] Error 137",
        "Build with few jobs",
        "torch.load",
    ),
    (
        "[error] bitsandbytes library load error: Configured ROCm binary not found at "
        "C:\\ui\\.venv\\Lib\\site-packages\\bitsandbytes\\libbitsandbytes_rocm71.dll",
        "Install the newest bitsandbytes",
        "make",
    ),
    (
        "ImportError: /lib/aarch64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found "
        "(required by /usr/lib/aarch64-linux-gnu/nvidia/libnvdla_compiler.so)",
        "Start an image for the board's own L4T",
        "CONDA_PREFIX",
    ),
    (  # a page made lines of their own of the message's
        "RuntimeError: NCCL error in: /b/ProcessGroupNCCL.cpp:2897, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.27.3\n\n"
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n\nLast error:\n\nBootstrap : no socket interface found\n\n"
        "[rank2]:[W1014 08:12:07.100233417 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=71, addr=[localhost]:41822, remote=[localhost]:29500): failed to recv, got 0 bytes",
        "Correct NCCL_SOCKET_IFNAME",
        "set_device",
    ),
    (
        "RuntimeError: DDP expects same model across all ranks, but Rank 1 has 398 params, while rank 0 has inconsistent 0 params.",
        "Read what rank 0 printed before this",
        "Build the same model",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/Users/u/seg/fit.py", line 88, in fit\n    scaler.step(optimizer)\n'
        '  File "/Users/u/seg/.venv/lib/python3.11/site-packages/torch/amp/grad_scaler.py", line 335, in unscale_\n'
        "    inv_scale = self._scale.double().reciprocal().float()\n"
        "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.",
        "Switch the gradient scaler off on MPS",
        "x.float()",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "D:\\lora\\venv\\Lib\\site-packages\\torch\\distributed\\elastic\\rendezvous\\static_tcp_rendezvous.py", line 67, in next_rendezvous\n'
        "    self._store = TCPStore(  # type: ignore[call-arg]\n"
        "RuntimeError: use_libuv was requested but PyTorch was build without libuv support",
        "Start without the launcher where one GPU is enough",
        "USE_LIBUV =",
    ),
    (
        "Python 3.10.11 (tags/v3.10.11:7d4cc5a, Apr  5 2023, 00:05:31) [MSC v.1929 32 bit (Intel)]\n"
        "ERROR: Could not find a version that satisfies the requirement torch==2.1.2 (from versions: none)",
        "Install the 64-bit Python",
        "uv venv",
    ),
    (
        "node:924:924 [5] NCCL INFO comm 0x5555 rank 13 nranks 16 cudaDev 5 busId 90000 - Abort COMPLETE\n"
        "torch.distributed.DistBackendError: NCCL error in: /b/ProcessGroupNCCL.cpp:1182, internal error - please report this issue to the NCCL developers, NCCL version 2.18.3\n"
        "ncclInternalError: Internal check failed.\nLast error:\nSocket recv failed while polling for opId=0x7ff",
        "Run again with one log for each rank",
        "nproc_per_node",
    ),
    (  # NCCL 2.25 and 2.26 fuse network cards under new numbers
        "n2:711:903 [1] graph/search.cc:1135 NCCL WARN Could not find a path for pattern 1, falling back to simple order\n"
        "n2:711:903 [1] graph/topo.h:230 NCCL WARN Could not find NET with id 0\n"
        "[rank9]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3353, internal error - please report this issue to the NCCL developers, NCCL version 2.26.2",
        "Upgrade NCCL to 2.27 or later on all nodes",
        "NCCL_IB_DISABLE",
    ),
    (
        "n2:711:903 [1] graph/topo.h:230 NCCL WARN Could not find NET with id 0\n"
        "[rank9]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3353, internal error - please report this issue to the NCCL developers, NCCL version 2.27.5",
        "Run again with NCCL_DEBUG=INFO",
        "Upgrade NCCL",
    ),
    (  # no machine but one is a place for the loopback interface
        "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
        "Let the hostname resolve",
        "GLOO_SOCKET_IFNAME=lo",
    ),
    (
        "$ torchrun --nnodes=1 --nproc_per_node=4 train.py\n"
        "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
        "Let the hostname resolve",
        "firewall",
    ),
    (  # a session keeps no variable of a cell's shell
        "!whisperx /content/talk.mp4 --model large-v3\n"
        "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}\n"
        "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor",
        "Install cuDNN 9 into the system of the session",
        "LD_LIBRARY_PATH",
    ),
    (  # code that unsloth wrote, as IPython shows it
        "File ~/unsloth_compiled_cache/unsloth_compiled_module_knob.py:12, in Knob_forward(self, input_ids)\n"
        "     11 if fine:\n---> 12     turned = self.turn(input_ids - 7)\n     13 return turned\n\n"
        "RuntimeError: CUDA error: device-side assert triggered",
        "Update unsloth and unsloth_zoo, delete the folder unsloth_compiled_cache",
        "export CUDA",
    ),
    (
        "ValueError: base_model.model.model.layers.0.mlp.down_proj.lora_A.default.weight is unsupported LoRA weight",
        "Save the adapter with model.save_pretrained(folder)",
        "Merge the adapter",
    ),
    (  # the worker imports the module of a function that was sent to it
        "Traceback (most recent call last):\n"
        '  File "/opt/conda/lib/python3.10/site-packages/ray/_private/serialization.py", line 224, in _deserialize_pickle5_data\n'
        "    obj = pickle.loads(in_band)\n"
        "ModuleNotFoundError: No module named 'mymodels'",
        "Give the workers your folder",
        "pip install",
    ),
    (
        "RuntimeError: Could not run 'aten::empty.memory_format' with arguments from the 'HIP' backend. This could be because the operator doesn't exist for this backend. 'aten::empty.memory_format' is only available for these backends: [CPU, CUDA, SparseCPU].",
        "Name the device cuda",
        "CPU and the result back",
    ),
    (  # what FlashInfer compiles at its first use
        "In file included from /home/u/.cache/flashinfer/86/generated/batch_prefill/batch_prefill_jit_pybind.cu:16:\n"
        "/env/lib/python3.11/site-packages/flashinfer/data/include/flashinfer/utils.cuh:21:10: fatal error: cuda_fp8.h: No such file or directory",
        "Set CUDA_HOME to CUDA 11.8 or newer",
        "submodules",
    ),
    (  # conda-build's own prefix, in the log of a build
        "  /b/_h_env_placehold_placehold_p/lib/python3.11/site-packages/torch/include/torch/extension.h\n"
        "  csrc/cpu/comm/ccl.cpp:8:10: fatal error: oneapi/ccl.hpp: No such file or directory",
        "Fetch the project's submodules",
        "placehold",
    ),
    (
        "ValueError: Free memory on device cuda:0 (61.40/79.18 GiB) on startup is less than desired GPU memory"
        " utilization (0.9, 71.26 GiB). Decrease GPU memory utilization or reduce GPU memory used by other"
        " processes.\nValueError: Free memory on device cuda:1 (40.02/79.18 GiB) on startup is less than desired"
        " GPU memory utilization (0.9, 71.26 GiB). Decrease GPU memory utilization or reduce GPU memory used by"
        " other processes.",
        "End what else holds the GPU",
        "utilization 0.7",
    ),
    (
        "ValueError: Free memory on device (21.90/23.64 GiB) on startup is less than desired GPU memory utilization"
        " (0.95, 22.46 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "Start with gpu_memory_utilization 0.92 or less",
        "if the weights fit",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/models/qwen2.py", line 118, in __init__\n'
        "    assert self.total_num_heads % tp_size == 0\nAssertionError",
        "Start with a --tensor-parallel-size that divides",
        "Print both",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/home/mia/codec/net.py", line 19, in __init__\n'
        "    assert cfg.hop_length % cfg.strides_product == 0\nAssertionError",
        "Make the first number of this line a multiple of the second",
        "parallel",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/Users/mia/upscale/run.py", line 33, in <module>\n'
        "    torch.cuda.reset_peak_memory_stats()\n"
        '  File "/opt/homebrew/lib/python3.11/site-packages/torch/cuda/memory.py", line 374, in'
        " reset_peak_memory_stats\n"
        "    return torch._C._cuda_resetPeakMemoryStats(device)\n"
        "AttributeError: module 'torch._C' has no attribute '_cuda_resetPeakMemoryStats'",
        "Put `if torch.cuda.is_available():` before the call at run.py:33",
        "--cpu",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/Users/mia/upscale/run.py", line 33, in <module>\n'
        "    torch.cuda.synchronize()\n"
        '  File "/opt/homebrew/lib/python3.11/site-packages/torch/cuda/__init__.py", line 954, in synchronize\n'
        "    _lazy_init()\n"
        '  File "/opt/homebrew/lib/python3.11/site-packages/torch/cuda/__init__.py", line 310, in _lazy_init\n'
        '    raise AssertionError("Torch not compiled with CUDA enabled")\n'
        "AssertionError: Torch not compiled with CUDA enabled",
        "Put `if torch.cuda.is_available():` before the call at run.py:33",
        ".to('mps')",
    ),
    (
        "RuntimeError: Error(s) in loading state_dict for Tagger:\n"
        '\tMissing key(s) in state_dict: "head.weight", "head.bias".\n'
        '\tUnexpected key(s) in state_dict: "_orig_mod.head.weight", "_orig_mod.head.bias".',
        "Strip '_orig_mod.'",
        "'module'",
    ),
    (
        "_pickle.UnpicklingError: Weights only load failed. In PyTorch 2.6, we changed the default value.\n"
        "\tWeightsUnpickler error: Unsupported global: GLOBAL ultralytics.nn.tasks.SegmentationModel was not an"
        " allowed global by default.",
        "Update ultralytics",
        "add_safe_globals",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/home/mia/sft.py", line 40, in <module>\n'
        "    trainer.train()\n"
        '  File "/opt/venv/lib/python3.11/site-packages/transformers/trainer.py", line 2901, in _save\n'
        "    self.model.save_pretrained(\n"
        '  File "/opt/venv/lib/python3.11/site-packages/safetensors/torch.py", line 281, in save_file\n'
        "    serialize_file(_flatten(tensors), filename, metadata=metadata)\n"
        "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 122, kind:"
        ' FilesystemQuotaExceeded, message: "Disk quota exceeded" })',
        "Free space, quota or inodes",
        "os.replace",
    ),
    (
        "n1:411:411 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ens9\n"
        "n1:411:411 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n",
        "Unset NCCL_SOCKET_IFNAME, or correct it to an interface of this node: it is set to ens9",
        "firewall",
    ),
    (
        "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cuda:1)",
        "Move the indices in this line to the tensor that they index, x[i.to(x.device)], or that tensor to theirs: it is"
        " on cuda:1.",
        "on cpu",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/home/mia/fit.py", line 12, in <module>\n'
        "    os.makedirs(out)\n"
        '  File "/usr/lib/python3.11/os.py", line 225, in makedirs\n'
        "    mkdir(name, mode)\n"
        "FileExistsError: [Errno 17] File exists: 'runs/a'",
        "Pass exist_ok=True",
        "who may read",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/home/mia/fit.py", line 12, in <module>\n'
        "    out = net(x)\n"
        '  File "/opt/venv/lib/python3.11/site-packages/torch/nn/parallel/data_parallel.py", line 189, in replicate\n'
        "    return replicate(module, device_ids, not torch.is_grad_enabled())\n"
        "RuntimeError: NCCL Error 3: internal error - please report this issue to the NCCL developers",
        "Let each GPU have a process of its own",
        "all nodes",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/home/mia/fit.py", line 12, in <module>\n'
        "    engine, *_ = deepspeed.initialize(model=net, config=config)\n"
        '  File "/opt/venv/lib/python3.11/site-packages/deepspeed/runtime/engine.py", line 1456, in'
        " _configure_optimizer\n"
        "    self.optimizer = self._configure_fp16_optimizer(basic_optimizer)\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 23.64"
        " GiB of which 10.00 MiB is free. Process 4711 has 23.62 GiB memory in use. Of the allocated memory 22.82 GiB is"
        " allocated by PyTorch, and 105.47 MiB is reserved by PyTorch but unallocated.",
        "Set ZeRO stage 3",
        "train_micro_batch_size_per_gpu",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/home/mia/tune.py", line 41, in step\n'
        "    out = model(ids, attention_mask=mask)\n"
        '  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1750, in _call_impl\n'
        "    return forward_call(*args, **kwargs)\n"
        "TypeError: _forward_unimplemented() got an unexpected keyword argument 'attention_mask'",
        "Give the class def forward(self, x)",
        "pdb",
    ),
    (  # 64 channels of 12 x 12: the batch is missing, and the layer is right
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x144 and 9216x128)",
        "Give the model a batch",
        "in_features",
    ),
    (  # widths of two models: 4 x 512 is 2048 by chance
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 2048x1000)",
        "Set in_features",
        "unsqueeze",
    ),
    (
        "RuntimeError: linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
        "Convert before the operation, x.float(), if the Long values are amounts; where they are ids",
        "the tensor is",
    ),
    (
        "FileNotFoundError: Cannot find DGL C++ graphbolt library at /home/u/src/dgl/python/dgl/graphbolt/libgraphbolt_pytorch_2.3.0.so",
        "Start Python outside the folder of DGL's sources",
        "PACKAGE",
    ),
    (  # a message alone, without frames
        "FileNotFoundError: Cannot find DGL C++ graphbolt library at /opt/env/lib/python3.10/site-packages/dgl/graphbolt/libgraphbolt_pytorch_2.4.0.so",
        "Install DGL together with a torch that it was built for",
        "PYTHONPATH",
    ),
    (  # libc10.so and libtorch.so were found: torch is loaded, without its part for CUDA
        '  File "/opt/env/lib/python3.10/site-packages/vllm/platforms/cuda.py", line 18, in <module>\n    import vllm._C\n'
        "ImportError: libtorch_cuda.so: cannot open shared object file: No such file or directory",
        "Install torch's CUDA build",
        "Import torch before",
    ),
    (  # the folder of one triton's back end beside the library of another
        "torch 2.8.0.dev20250418+rocm6.4\nDevice: cuda:0 AMD Radeon RX 7900 XTX\n"
        "ImportError: cannot import name 'intel' from 'triton._C.libtriton' (/v/lib/python3.12/site-packages/triton/_C/libtriton.so)",
        "Remove every triton and what is left of its folder",
        "Put back",
    ),
    (  # this torch is a build for ROCm, and nothing says that the card is NVIDIA's
        '  File "/v/lib/python3.12/site-packages/torch/__init__.py", line 427, in <module>\n    from torch._C import *\n'
        "ImportError: libroctx64.so.4: cannot open shared object file: No such file or directory",
        "Install pytorch.org's build for ROCm, if the card is AMD's",
        "CUDA build",
    ),
    (  # the numbers stand behind the sentence; a line of a Dockerfile
        "#12 7.017 RuntimeError: ('The detected CUDA version (%s) mismatches the version that was used to compilePyTorch (%s). Please make sure to use the same CUDA versions.', '12.4', '13.0')\n"
        "#12 ERROR: exit code: 1\n------\nDockerfile:9\n>>> RUN pip install flash-attn --no-build-isolation\n"
        'ERROR: failed to build: failed to solve: process "/bin/sh -c pip install flash-attn --no-build-isolation" did not complete successfully: exit code: 1',
        "Install torch for the image's CUDA 12.4",
        "torch.version.cuda",
    ),
    (  # low-memory mode is on, and what ran before holds the card
        "Set vram state to: LOW_VRAM\nloaded partially; 0.00 MB usable, 0.00 MB loaded, 11739.54 MB offloaded\n"
        '  File "D:\\ComfyUI\\comfy\\ldm\\lumina\\model.py", line 219, in forward\n    return F.silu(x)\n'
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
        "Start ComfyUI again and run this workflow alone",
        "Start ComfyUI with --lowvram",
    ),
    (  # the decoder works in tiles already
        '  File "/home/u/ComfyUI/custom_nodes/wrapper/vae.py", line 299, in spatial_tiled_decode\n    return self.conv(x)\n'
        '  File "/v/lib/python3.12/site-packages/diffusers/models/vae.py", line 20, in forward\n    return self.conv(x)\n'
        "torch.OutOfMemoryError: Allocation on device",
        "Lower the tiles of the decode node",
        "pipe.",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/llm/chat.py", line 21, in <module>\n'
        "    model = AutoModelForCausalLM.from_pretrained(args.model)\n"
        '  File "/opt/env/lib/python3.10/site-packages/huggingface_hub/utils/_errors.py", line 259, in hf_raise_for_status\n'
        "    response.raise_for_status()\n"
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/None/resolve/main/config.json",
        "Set the name or path in the call shown, which is None there",
        "login",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/seg/train.py", line 9, in <module>\n'
        "    rank = int(os.environ['RANK'])\n"
        '  File "<frozen os>", line 679, in __getitem__\n'
        "KeyError: 'RANK'",
        "Start the program with a launcher (torchrun)",
        "Print the keys",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/ct/tokens.py", line 33, in __init__\n'
        "    self.tokens = nn.ParameterList([width])\n"
        '  File "/opt/env/lib/python3.10/site-packages/torch/nn/modules/container.py", line 580, in __setitem__\n'
        "    return setattr(self, str(idx), param)\n"
        '  File "/opt/env/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1716, in __setattr__\n'
        "    raise TypeError(...)\n"
        "TypeError: cannot assign 'int' object to parameter '0' (torch.nn.Parameter or None required)",
        "Put an nn.Parameter into the ParameterList",
        "self.0",
    ),
    (
        "INFO:     Started server process [4711]\n"
        "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)\n"
        "torch 2.4.0+cu121, device cuda\n"
        "100%|##########| 1/1 [00:01<00:00,  1.57it/s]\n"
        'run.sh: line 39: 4711 Killed                  python app.py --port "$PORT"',
        "Start fewer processes of the server",
        "loader workers",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/seg/train_test.py", line 171, in <module>\n'
        "    train_test(cfg)\n"
        '  File "/srv/seg/train_test.py", line 158, in train_test\n'
        "    train_one_epoch(model, loader, optimizer)\n"
        '  File "/srv/seg/train_test.py", line 56, in train_one_epoch\n'
        "    out = model(x)\n"
        '  File "/opt/env/lib/python3.9/site-packages/torch/nn/functional.py", line 1848, in linear\n'
        "    return torch._C._nn.linear(input, weight, bias)\n"
        "RuntimeError: CUDA out of memory. Tried to allocate 174.00 MiB (GPU 0; 15.00 GiB total capacity; 13.21 GiB already"
        " allocated; 51.38 MiB free; 13.70 GiB reserved in total by PyTorch)",
        "Halve the batch size",
        "evaluation",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/llm/sft.py", line 24, in __call__\n'
        "    batch[k] = torch.stack([row[k] for row in rows])\n"
        "TypeError: expected Tensor as element 0 in argument 0, but got list",
        "Make a tensor of each list first",
        "float32",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/llm/sft.py", line 278, in train\n'
        "    trainer.train()\n"
        '  File "/opt/env/lib/python3.10/site-packages/transformers/trainer.py", line 2636, in _load_best_model\n'
        "    model.load_adapter(self.state.best_model_checkpoint, model.active_adapter)\n"
        '  File "/opt/env/lib/python3.10/site-packages/peft/utils/save_and_load.py", line 475, in load_peft_weights\n'
        "    adapters_weights = safe_load_file(filename, device=device)\n"
        "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
        "Look how large the weights of the checkpoints are",
        "Download",
    ),
    (  # the script that sets the environment up was not found: without it there is no torchrun
        "/var/spool/slurmd/job811/slurm_script: line 14: /home/me/lab/../env/activate.sh: No such file or directory\n"
        "slurmstepd: error: execve(): torchrun: No such file or directory\n"
        "srun: error: gpu07: task 0: Exited with exit code 2\n"
        "srun: error: gpu08: task 1: Exited with exit code 2",
        "Correct the path in line 14 of the job script",
        "--standalone",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/data/me/train.py", line 22, in <module>\n'
        '    ds = load_dataset("acme/dialogs", split="train")\n'
        '  File "/data/me/env/lib/python3.11/site-packages/huggingface_hub/file_download.py", line 1701, in _chmod_and_move\n'
        "    shutil.move(str(src), str(dst), copy_function=_copy_no_matter_what)\n"
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/me/hub/datasets--acme--dialogs/blobs/77ab10.incomplete'",
        "Download the data set once",
        "Download it once",
    ),
    (
        "gpu3:4100:4100 [0] NCCL INFO RCCL version : 2.28.3-HEAD:2bd1678\n"
        "gpu3:4100:4100 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ens3\n"
        "gpu3:4100:4100 [0] [FATAL ERROR]: HIP failure: 'invalid device function'\n"
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3756, "
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.3",
        "Let gloo do the collectives, init_process_group('gloo')",
        "nvidia-smi",
    ),
    (  # what RCCL itself says of HIP is the reason; its line on HSA is in good runs, too
        "gpu3:4100:4100 [0] NCCL INFO RCCL version : 2.28.3-HEAD:2bd1678\n"
        "gpu3:4100:4100 [0] [FATAL ERROR]: HIP failure: 'out of memory'\n"
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3756, "
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.3\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\n"
        "Last error:\n"
        "pfn_hsa_system_get_info failed with 4107",
        "Leave memory for RCCL",
        "pfn_hsa",
    ),
    (  # what only predicts, called by what trains
        "Traceback (most recent call last):\n"
        '  File "/srv/rec/train_rank.py", line 140, in train_rank\n    rows = score_pairs(model, users)\n'
        '  File "/srv/rec/train_rank.py", line 61, in score_pairs\n    vectors = model(users)\n'
        '  File "/srv/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1775, in _wrapped_call_impl\n'
        "    return self._call_impl(*args, **kwargs)\n"
        '  File "/srv/rec/towers.py", line 33, in forward\n    x = torch.cat([a, b], dim=-1)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.10 GiB. GPU 0 has a total capacity of 23.60 GiB of which 1.20 GiB is free.",
        "Give score_pairs a smaller batch",
        "gradient",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/Users/u/ComfyUI/nodes.py", line 338, in decode\n    images = vae.decode(latent)\n'
        '  File "/Users/u/ComfyUI/comfy/sd.py", line 1249, in decode\n    out = self.first_stage_model.decode(samples)\n'
        "RuntimeError: MPS backend out of memory (MPS allocated: 11.02 GiB, other allocations: 2.10 GiB, max allowed: 18.13 GiB). Tried to allocate 5.60 GiB on private pool.",
        "Put the node VAE Decode (Tiled)",
        "Start ComfyUI with --lowvram",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/news/fit.py", line 31, in build\n    model = AutoModelForSequenceClassification.from_pretrained(path, num_labels=4)\n'
        '  File "/srv/venv/lib/python3.11/site-packages/transformers/modeling_utils.py", line 4852, in _load_pretrained_model\n'
        '    raise RuntimeError(f"Error(s) in loading state_dict for {model.__class__.__name__}:")\n'
        "RuntimeError: Error(s) in loading state_dict for RobertaForSequenceClassification:\n"
        "\tsize mismatch for classifier.out_proj.weight: copying a param with shape torch.Size([7, 768]) from checkpoint, the shape in current model is torch.Size([4, 768]).\n"
        "\tYou may consider adding `ignore_mismatched_sizes=True` in the model `from_pretrained` method.",
        "Pass ignore_mismatched_sizes=True to from_pretrained, and train the new head: classifier.out_proj.weight is [7, 768]",
        "strict=False",
    ),
    (  # a model of one's own
        "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1422: indexSelectLargeIndex: block: [3,0,0], thread: [1,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/lm/fit.py", line 90, in step\n    hidden = self.model(input_ids)\n'
        '  File "/srv/lm/net.py", line 12, in forward\n    if torch.isnan(x).any():\n'
        "RuntimeError: CUDA error: device-side assert triggered",
        "Build the model with a row for every token, vocab_size=len(tokenizer)",
        "resize_token_embeddings",
    ),
    (  # a new model in each trial
        "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1422: indexSelectLargeIndex: block: [3,0,0], thread: [1,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/sum/tune.py", line 70, in <module>\n    best = trainer.hyperparameter_search(direction="minimize")\n'
        '  File "/srv/venv/lib/python3.11/site-packages/transformers/trainer.py", line 3473, in hyperparameter_search\n    best_run = backend_obj.run(self, n_trials, direction, **kwargs)\n'
        '  File "/srv/venv/lib/python3.11/site-packages/transformers/models/t5/modeling_t5.py", line 1034, in forward\n    cache_position = torch.arange(\n'
        "RuntimeError: CUDA error: device-side assert triggered",
        "In model_init, call model.resize_token_embeddings",
        "labels",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/amt/data.py", line 77, in collate\n    audio = torch.stack(clips)\n'
        "RuntimeError: stack expects each tensor to be equal size, but got [2, 441000] at entry 0 and [1, 441000] at entry 3",
        "Give every recording the channels that the model takes (mono: x.float().mean(0",
        "pad_sequence",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/cls/data.py", line 77, in collate\n    batch = torch.stack(pictures)\n'
        "RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and [1, 224, 224] at entry 5",
        "Read every picture with the same channels",
        "Resize",
    ),
    (  # boxes, whose number differs
        "Traceback (most recent call last):\n"
        '  File "/srv/det/data.py", line 77, in collate\n    boxes = torch.stack(boxes)\n'
        "RuntimeError: stack expects each tensor to be equal size, but got [3, 4] at entry 0 and [1, 4] at entry 5",
        "Pad in a collate function",
        "channels that",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/gnn/net.py", line 52, in neighbours\n    near = near * torch.block_diag(*[torch.ones((n, n)) for n in sizes])\n'
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "Make the new tensor in this line where the others are",
        "model.to(device)",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/gnn/net.py", line 52, in neighbours\n    near = near * torch.ones((n, n), device=self.device)\n'
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "Move model and batch to one device",
        "Make the new tensor",
    ),
    (
        "TypeError: StepLR.__init__() got an unexpected keyword argument 'verbose'",
        "Take verbose out of StepLR(",
        "install",
    ),
    (
        "RuntimeError: Given normalized_shape=[21], expected input with shape [*, 21], but got input of size[8, 77, 20]",
        "Give the model the width of its input",
        "permute",
    ),
    (
        "RuntimeError: Given normalized_shape=[96], expected input with shape [*, 96], but got input of size[8, 96, 14, 14]",
        "Put the features last for the norm, x.movedim(1, -1)",
        "width of its input",
    ),
    (  # torchrun's own store, on its own machine
        "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to (localhost, 29400).\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.10/site-packages/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py", '
        "line 155, in _create_tcp_store\n    store = TCPStore(\n"
        "TimeoutError: The client socket has timed out after 60s while trying to connect to (localhost, 29400).",
        "Start torchrun with a port of its own on 127.0.0.1",
        "imeout",
    ),
    (  # one worker holds most of the node
        "Loading checkpoint shards:  25%|##5       | 1/4 [00:15<00:45, 15.20s/it]\n"
        "Loading checkpoint shards:  50%|#####     | 2/4 [00:30<00:30, 15.20s/it]\n"
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.4, ID: 5f) where the lease (lease ID: 7c, name=Actor.__init__, pid=812, memory used=96.40GB) "
        "was running was 119.90GB / 125.40GB (0.956), which exceeds the memory usage threshold of 0.95. Ray killed this worker "
        "(ID: a1) because it was the most recently scheduled task",
        "Load the model in half precision (bfloat16)",
        "fewer",
    ),
    (  # a server that no request had reached
        "INFO:     Started server process [5120]\nINFO:     Application startup complete.\n"
        "INFO:     Uvicorn running on http://0.0.0.0:9000 (Press CTRL+C to quit)\n"
        "torch 2.4.0\n/var/spool/slurm/d/job88/slurm_script: line 9: 5120 Killed                  uvicorn app:api --port 9000",
        "Ask for more memory with --mem of sbatch, if Slurm says",
        "request",
    ),
    (  # steps were made, of whatever
        "torch 2.4.0\niters: 100, speed: 0.43s/iter, loss: 0.41\niters: 200, speed: 0.43s/iter, loss: 0.40\n"
        "iters: 300, speed: 0.43s/iter, loss: 0.39\nKilled",
        "Keep less from step to step",
        "while it trained",
    ),
    (  # less than most models need
        "ValueError: Free memory on device (9.02/79.2 GiB) on startup is less than desired GPU memory utilization "
        "(0.9, 71.28 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "End what else holds the GPU",
        "or less (--gpu-memory-utilization), if",
    ),
    (  # a build that brings no torch
        "Traceback (most recent call last):\n"
        '  File "C:\\ai\\textgen-portable-3.4-windows-cuda12.4\\modules\\loaders.py", line 5, in <module>\n    import torch\n'
        "ModuleNotFoundError: No module named 'torch'",
        "Install the full version of the program",
        "pip install",
    ),
    (  # the same first collective on all ranks
        "".join(
            f"[rank{rank}]:[E1018 20:27:21.42641554{rank} ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective operation "
            "timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600081 "
            "milliseconds before timing out.\n"
            for rank in range(2)
        ),
        "Test direct access between the GPUs",
        "which of them",
    ),
    (  # what Pillow says, and not the key that it lacks
        'Traceback (most recent call last):\n  File "/srv/own/fit.py", line 9, in <module>\n    for batch in loader:\n'
        '  File "/opt/env/lib/python3.11/site-packages/torch/_utils.py", line 733, in reraise\n    raise exception\n'
        "TypeError: Caught TypeError in DataLoader worker process 2.\nOriginal Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.11/site-packages/PIL/Image.py", line 3311, in fromarray\n    mode, rawmode = _fromarray_typemap[typekey]\n'
        "KeyError: ((1, 1, 28), '|u1')\n\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop\n'
        "    data = fetcher.fetch(index)\n"
        '  File "/srv/own/digits.py", line 31, in __getitem__\n    image = Image.fromarray(self.images[at])\n'
        '  File "/opt/env/lib/python3.11/site-packages/PIL/Image.py", line 3315, in fromarray\n    raise TypeError(msg) from e\n'
        "TypeError: Cannot handle this data type: (1, 1, 28), |u1",
        "Give fromarray at digits.py:31 uint8",
        "KeyError",
    ),
    (  # the module of the line
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 70, in main\n    kept = teacher(batch["view"].to(device, dtype=kind)).last\n'
        '  File "/opt/env/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1736, in _wrapped_call_impl\n'
        "    return self._call_impl(*args, **kwargs)\n"
        "RuntimeError: Input type (CUDABFloat16Type) and weight type (torch.FloatTensor) should be the same",
        "Call teacher.to(x.device, x.dtype)",
        "model.to",
    ),
    (  # ranks that the program starts by itself, in a job of Slurm
        "[W socket.cpp:464] [c10d] The server socket has failed to bind to [::]:41777 (errno: 98 - Address already in use).\n"
        "[E socket.cpp:500] [c10d] The server socket has failed to listen on any local network address.\n"
        "INFO:root:distributed training not available The server socket has failed to listen on any local network address. "
        "The server socket has failed to bind to [::]:41777 (errno: 98 - Address already in use).\n"
        "Process Process-3:\nTraceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap\n    self.run()\n'
        '  File "/srv/own/fit.py", line 28, in main\n    net = DistributedDataParallel(net)\n'
        '  File "/opt/env/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 1008, in _get_default_group\n'
        "    raise ValueError(\n"
        "ValueError: Default process group has not been initialized, please make sure to call init_process_group.\n"
        "Process Process-2:\nTraceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap\n    self.run()\n'
        '  File "/srv/own/fit.py", line 28, in main\n    net = DistributedDataParallel(net)\n'
        '  File "/opt/env/lib/python3.12/site-packages/torch/distributed/utils.py", line 269, in _verify_param_shape_across_processes\n'
        "    return dist._verify_params_across_processes(process_group, tensors, logger)\n"
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error\n"
        "/var/spool/slurm/d/job4/slurm_script: 5: --epochs=3: not found",
        "Choose a port of its own for each job, since 41777 is taken",
        "launcher",
    ),
    (  # NumPy's own module
        "Traceback (most recent call last):\n"
        '  File "/srv/own/fit.py", line 3, in <module>\n    import torchvision\n'
        '  File "/opt/env/lib/python3.11/site-packages/numpy/random/_pickle.py", line 1, in <module>\n    from .mtrand import RandomState\n'
        "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject",
        "Remove NumPy and install it again",
        "PACKAGE",
    ),
    (  # on AMD's cards, too, who holds the memory is looked up before anything is ended
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 23.98 GiB of which "
        "412.00 MiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
        "Look what else runs on GPU 0",
        "nvidia-smi",
    ),
    (
        "$ pip install ./ball_ops\nRequirement already satisfied: torch>=1.4 in /home/me/env/lib/python3.8/site-packages (1.13.1)\n"
        "      running build_ext\n      error: [Errno 2] No such file or directory: ':/opt/cuda-11.7:/usr/local/cuda/bin/nvcc'\n"
        "  ERROR: Failed building wheel for ball_ops\n",
        "Set CUDA_HOME to /opt/cuda-11.7 alone",
        "has none",
    ),
    (
        "$ pip install ./ball_ops\nRequirement already satisfied: torch>=1.4 in /home/me/env/lib/python3.8/site-packages (1.13.1)\n"
        "      running build_ext\n      error: [Errno 2] No such file or directory: '/opt/cuda-11.7:/usr/local/cuda/bin/nvcc'\n"
        "  ERROR: Failed building wheel for ball_ops\n",
        "Set CUDA_HOME to /opt/cuda-11.7 alone",
        "has none",
    ),
    (
        "$ uv add torch torchvision --index https://wheels.lab.example/vision\n  × No solution found when resolving dependencies:\n"
        "  ╰─▶ Because there are no versions of torch and your project depends on torch, we can conclude that your project's requirements are unsatisfiable.",
        "Correct the address of the index: what is at https://wheels.lab.example/vision lists",
        "venv",
    ),
    (  # ComfyUI lists the devices
        "Total VRAM 12476 MB, total RAM 31905 MB\nAMD arch: gfx1036\nDevice: cuda:0 AMD Radeon(TM) Graphics : native\n"
        "Device: cuda:1 AMD Radeon RX 7900 XT : native\n!!! Exception during processing !!! HIP error: device kernel image is invalid\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/ComfyUI/execution.py", line 542, in execute\n    output_data = await get_output_data(prompt_id)\n'
        '  File "/home/me/ComfyUI/comfy/ops.py", line 753, in forward\n    x = torch.nn.functional.embedding(input, weight)\n'
        "torch.AcceleratorError: HIP error: device kernel image is invalid",
        "Add --cuda-device 1 to the options of ComfyUI",
        "HSA_OVERRIDE_GFX_VERSION=",
    ),
    (  # a toolkit of EasyBuild's tree: its modules, and no names of Debian's
        "[1/2] /sw/arch/EB_production/2023/software/CUDA/12.1.1/bin/nvcc -I/home/u/lib/python3.10/site-packages/torch/include -c -o x.o x.cu -std=c++17\n"
        "FAILED: x.o\n"
        '/home/u/lib/python3.10/site-packages/torch/include/c10/util/C++17.h:16:2: error: #error "You\'re trying to build PyTorch with a too old version of GCC. We need GCC 9 or later."',
        "Load gcc 11 from the cluster's modules",
        "gcc-9",
    ),
    (
        "[1/2] /home/u/miniconda3/envs/ops/bin/nvcc -I/home/u/miniconda3/envs/ops/lib/python3.10/site-packages/torch/include -c -o x.o x.cu -std=c++17\n"
        "FAILED: x.o\n"
        "/home/u/miniconda3/envs/ops/lib/python3.10/site-packages/torch/include/c10/util/complex.h:8:10: fatal error: thrust/complex.h: No such file or directory",
        "Install cuda-cccl of nvcc's release, which brings thrust/complex.h",
        "INCLUDE=",
    ),
    (  # cl reads INCLUDE
        "[1/2] C:\\cuda\\bin\\nvcc -IC:\\venv\\Lib\\site-packages\\torch\\include -c x.cu -o x.obj\n"
        "FAILED: x.obj\n"
        "C:/venv/Lib/site-packages/torch/include\\c10/util/complex.h(8): fatal error C1083: Cannot open include file: 'thrust/complex.h': No such file or directory",
        "Install the whole CUDA toolkit",
        "CPATH",
    ),
    (  # an environment of pip's own has the setuptools that the package asks for
        "  Getting requirements to build wheel did not run successfully.\nTraceback (most recent call last):\n"
        '  File "/tmp/pip-build-env-x1y2z3aa/overlay/lib/python3.11/site-packages/setuptools/config/pyprojecttoml.py", line 57, in validate\n'
        '    raise ValueError(f"{error}\\n{summary}") from None\n'
        "ValueError: invalid pyproject.toml config: `project.license`.\n"
        "configuration error: `project.license` must be valid exactly by one definition (2 matches found):",
        "Raise the bound of setuptools under [build-system] requires",
        "pip install",
    ),
    (  # a worker that got SIGTERM has no traceback of its own
        "Traceback (most recent call last):\n"
        '  File "/srv/own/module.py", line 88, in training_step\n    mask = roads[seen]\n'
        '  File "/srv/env/lib/python3.10/site-packages/torch/utils/data/_utils/signal_handling.py", line 66, in handler\n'
        "    _error_if_any_worker_fails()\n"
        "RuntimeError: DataLoader worker (pid 20881) is killed by signal: Terminated. ",
        "Find who sent SIGTERM",
        "num_workers=0",
    ),
    (  # a pipeline of diffusers runs on rank 0 alone
        "accelerate launch train.py\nTraceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 174, in log_validation\n    image = pipeline(prompt).images[0]\n'
        '  File "/srv/env/lib/python3.10/site-packages/diffusers/pipelines/flux/pipeline_flux.py", line 900, in __call__\n'
        "    noise = self.transformer(\n"
        '  File "/srv/env/lib/python3.10/site-packages/accelerate/utils/operations.py", line 820, in forward\n'
        "    return model_forward(*args, **kwargs)\n"
        '  File "/srv/env/lib/python3.10/site-packages/torch/nn/modules/linear.py", line 117, in forward\n'
        "    return F.linear(input, self.weight, self.bias)\n"
        "RuntimeError: setStorage: sizes [320, 640], strides [1, 320], storage offset 8, and itemsize 2 requiring a storage "
        "size of 409616 are out of bounds for storage of size 0",
        "Train with DDP if `accelerate env` shows FSDP",
        "FSDP off in the config",
    ),
    (  # autocast leaves a write by index as it is
        "Traceback (most recent call last):\n"
        '  File "/srv/own/loss.py", line 58, in forward\n    scores[b, idx] = quality\n'
        "RuntimeError: Index put requires the source and destination dtypes match, got Half for the destination and Float "
        "for the source.",
        "Convert what is written, quality.to(scores.dtype)",
        "torch.autocast",
    ),
    (  # the only metric that validation logs
        "RuntimeError: Early stopping conditioned on metric `val_loss` which is not available. Pass in or modify your "
        "`EarlyStopping` callback to use any of the following: `train_loss`, `lr`, `train_cer`, `val_cer`",
        "Set monitor='val_cer', which is logged",
        "validation loader",
    ),
    (  # the dimension is one that the package asks for
        "Traceback (most recent call last):\n"
        '  File "/srv/own/net.py", line 31, in forward\n    h = self.conv(x, edges)\n'
        '  File "/srv/env/lib/python3.11/site-packages/torch_geometric/nn/conv/gat_conv.py", line 320, in forward\n'
        "    num_nodes = x.size(self.node_dim)\n"
        "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got -2)",
        "Give each node a row of features",
        "dim=-1",
    ),
    (  # what an export cannot trace is not to be split
        "Traceback (most recent call last):\n"
        '  File "/srv/own/to_onnx.py", line 9, in <module>\n    program = torch.export.export(model, (x,))\n'
        '  File "/srv/env/lib/python3.12/site-packages/torch/export/__init__.py", line 270, in export\n'
        "    return _export(\n"
        "torch._dynamo.exc.Unsupported: Unsupported function call",
        "Rewrite a branch on tensor values",
        "fullgraph=True|torch.compiler.disable",
    ),
    (  # a server chooses its devices itself
        "(VllmWorker rank=1 pid=61) ERROR 03-02 10:11:12 [multiproc_executor.py:487] Traceback (most recent call last):\n"
        '(VllmWorker rank=1 pid=61) ERROR 03-02 10:11:12 [multiproc_executor.py:487]   File "/srv/env/lib/python3.12/'
        'site-packages/vllm/v1/worker/gpu_worker.py", line 140, in init_device\n'
        "(VllmWorker rank=1 pid=61) ERROR 03-02 10:11:12 [multiproc_executor.py:487]     torch.cuda.set_device(self.device)\n"
        "(VllmWorker rank=1 pid=61) ERROR 03-02 10:11:12 [multiproc_executor.py:487] RuntimeError: CUDA error: invalid device "
        "ordinal",
        "Lower --tensor-parallel-size",
        "LOCAL_RANK",
    ),
    (  # no limit on tokens counts before the weights are there
        "Traceback (most recent call last):\n"
        '  File "/opt/conda/lib/python3.10/site-packages/text_generation_server/server.py", line 227, in serve_inner\n'
        "    model = get_model(\n"
        '  File "/opt/conda/lib/python3.10/site-packages/text_generation_server/utils/weights.py", line 119, in get_sharded\n'
        "    tensor = tensor.to(device=self.device)\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 21.99 GiB "
        "of which 40.00 MiB is free. Including non-PyTorch memory, this process has 21.94 GiB memory in use. Of the allocated "
        "memory 21.60 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated.",
        "Serve a 4-bit model",
        "--max-total-tokens",
    ),
    (  # a plugin in Go runs on no CPU; the driver comes before the runtime
        "E0611 08:20:31.101010       1 factory.go:113] If this is a GPU node, did you configure the NVIDIA Container Toolkit?",
        "Give the GPU node NVIDIA's driver first",
        "device='cpu'",
    ),
    (  # what Windows holds is in no list of its guest
        "(EngineCore pid=60) WARNING 03-02 09:10:11 [interface.py:525] Using 'pin_memory=False' as WSL is detected.\n"
        "(EngineCore pid=60) Traceback (most recent call last):\n"
        '(EngineCore pid=60)   File "/srv/env/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 1082, in '
        "run_engine_core\n(EngineCore pid=60)     engine_core = EngineCoreProc(*args, **kwargs)\n"
        "(EngineCore pid=60) ValueError: Free memory on device cuda:0 (4.61/6.0 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 5.4 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "Start with gpu_memory_utilization 0.76 or less",
        "another container",
    ),
    (  # an image's number, which no host has in its file
        "KeyError: 'getpwuid(): uid not found: 65534'",
        "Name the user and a home",
        "/etc/passwd:ro",
    ),
    (  # an export in the reader's shell reaches no service
        "worker-1  | RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
        "NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW",
        "Update the host's NVIDIA driver",
        "export LD_LIBRARY_PATH",
    ),
    (  # a kernel keeps what it imported
        "---------------------------------------------------------------------------\n"
        "NotImplementedError                       Traceback (most recent call last)\n"
        "<ipython-input-15-67c9df501452> in <cell line: 0>()\n      2 from datasets import load_dataset\n"
        '----> 4 raw = load_dataset("json", data_files="rows.json")\n\n'
        "/usr/local/lib/python3.11/dist-packages/datasets/builder.py in as_dataset(self, split)\n"
        "   1172         if not is_local:\n"
        '-> 1173             raise NotImplementedError(f"Loading a dataset cached in a {type(self._fs).__name__}")\n\n'
        "NotImplementedError: Loading a dataset cached in a LocalFileSystem is not supported.",
        "Update datasets to 2.14.6 or later, which knows this fsspec, and restart the kernel",
        "--port",
    ),
    (  # one program's option is none of another's
        "Traceback (most recent call last):\n"
        '  File "/srv/own/serve.py", line 40, in <module>\n    web.run_app(app, port=9000)\n'
        '  File "/srv/env/lib/python3.10/site-packages/aiohttp/web_runner.py", line 121, in start\n'
        "    self._server = await loop.create_server(\n"
        "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 9000): address already in use",
        "Start it on another port, port=9010 in web.run_app()",
        "uvicorn",
    ),
    (  # the highest port has none above it
        "INFO:     Started server process [7]\n"
        "ERROR:    [Errno 98] error while attempting to bind on address ('::', 65535, 0, 0): address already in use",
        "Start it on another port, uvicorn's --port 65525",
        "run_app",
    ),
    (  # several names in the line, and none in the message
        "Traceback (most recent call last):\n"
        '  File "/srv/own/eval.py", line 27, in <module>\n    run(features.input_feature, batch.labels)\n'
        '  File "/srv/env/lib/python3.10/site-packages/transformers/feature_extraction_utils.py", line 94, in __getattr__\n'
        "    raise AttributeError\nAttributeError",
        "Look at each name behind a dot in eval.py:27",
        "None is often",
    ),
    (  # one alone
        "Traceback (most recent call last):\n"
        '  File "/srv/own/eval.py", line 27, in <module>\n    x = features.input_feature\n'
        '  File "/srv/env/lib/python3.10/site-packages/transformers/feature_extraction_utils.py", line 94, in __getattr__\n'
        "    raise AttributeError\nAttributeError",
        "Write a name that features has in place of input_feature",
        "behind a dot",
    ),
    (  # the message alone, of arrays or of dictionaries
        "ValueError: The size of the proposed random crop ROI is larger than the image size, got ROI size (96, 96, 64) and label "
        "image size (512, 512, 40) respectively.",
        "Pad ahead of the crop: SpatialPad(spatial_size=(96, 96, 64)), or SpatialPadd",
        "PadIfNeeded",
    ),
    (  # a marker that stands for a whole picture
        "Traceback (most recent call last):\n"
        '  File "/srv/own/ask.py", line 9, in <module>\n'
        "    out = model.generate(**inputs)\n"
        '  File "/srv/env/lib/python3.11/site-packages/transformers/models/llava/modeling_llava.py", line 647, in forward\n'
        "    raise ValueError(\n"
        "ValueError: Image features and image tokens do not match: tokens: 1, features 576\n",
        "Pass text and images to the model's own processor in one call",
        "Raise the length",
    ),
    (  # … for a sound
        "Traceback (most recent call last):\n"
        '  File "/srv/own/ask.py", line 9, in <module>\n'
        "    out = model.generate(**inputs)\n"
        '  File "/srv/env/lib/python3.11/site-packages/transformers/models/qwen2_audio/modeling_qwen2_audio.py", line 647, in forward\n'
        "    raise ValueError(\n"
        "ValueError: Audio features and audio tokens do not match: tokens: 2, features 202\n",
        "Pass text and audio to the model's own processor",
        "pictures",
    ),
    (  # two markers for each picture
        "Traceback (most recent call last):\n"
        '  File "/srv/own/ask.py", line 9, in <module>\n'
        "    out = model.generate(**inputs)\n"
        '  File "/srv/env/lib/python3.11/site-packages/transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py", line 647, in forward\n'
        "    raise ValueError(\n"
        "ValueError: Image features and image tokens do not match: tokens: 108, features 54\n",
        "Compare the markers in the text with the images",
        "Forbid",
    ),
    (  # the tokenizer is not of the model
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.12/site-packages/transformers/processing_utils.py", line 1627, in _check_special_mm_tokens\n'
        "    raise ValueError(\n"
        "ValueError: Mismatch in `image` token count between text and `input_ids`. Got ids=[0] and text=[1]. Likely due to `truncation='max_length'`. Please disable truncation or increase `max_length`.\n",
        "Load the tokenizer and processor that belong to this model",
        "Raise the length",
    ),
    (  # ids that were expanded and cut by the caller
        "ERROR 03-11 09:02:10 [core.py:340] Traceback (most recent call last):\n"
        'ERROR 03-11 09:02:10 [core.py:340]   File "/srv/env/lib/python3.12/site-packages/vllm/model_executor/models/utils.py", line 412, in _merge_multimodal_embeddings\n'
        "ERROR 03-11 09:02:10 [core.py:340] ValueError: Attempted to assign 256 + 256 = 512 multimodal tokens to 506 placeholders\n",
        "Give vLLM the text, or ids with one marker an image",
        "max_prompt_length",
    ),
    (  # in a server the request is at fault
        "(VllmWorker rank=0 pid=2207) /pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:402: masked_scatter_size_check: block: [0,0,0], thread: [0,0,0] Assertion `totalElements <= srcSize` failed.\n"
        '(VllmWorker rank=0 pid=2207) ERROR 05-02 10:12:44 [multiproc_executor.py:470]   File "/srv/env/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 1056, in execute_model\n'
        "(VllmWorker rank=0 pid=2207) ERROR 05-02 10:12:44 [multiproc_executor.py:470] RuntimeError: CUDA error: device-side assert triggered\n",
        "Remove placeholder tokens from the texts of the request",
        "cutoff_len",
    ),
    (  # the last release that had it
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/vllm/model_executor/models/registry.py", line 1120, in _raise_for_unsupported\n'
        "    raise ValueError(\n"
        "ValueError: Model architecture OuroForCausalLM was supported in vLLM until v0.26.0, and is not supported anymore. Please use an older version of vLLM if you want to use this model architecture.\n",
        "Install the last vLLM that has OuroForCausalLM, 0.26.0",
        "Else run it",
    ),
    (  # in an image a newer tag
        "root@host:~# docker run --gpus all vllm/vllm-openai:v0.8.3 --model Qwen/Qwen3-8B\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/vllm/model_executor/models/registry.py", line 398, in _raise_for_unsupported\n'
        "    raise ValueError(\n"
        "ValueError: Model architectures ['Qwen3ForCausalLM'] are not supported for now. Supported architectures: ['LlamaForCausalLM']\n",
        "Start a newer tag of the server's image",
        "Update vLLM",
    ),
    (  # a file of SGLang that could not be imported
        "[2026-01-02 10:00:01] Ignore import error when loading sglang.srt.models.qwen3_5: No module named 'sgl_kernel_npu'\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/sglang/srt/model_loader/utils.py", line 71, in resolve_transformers_arch\n'
        "    raise ValueError(\n"
        "ValueError: Qwen3_5ForCausalLM has no SGlang implementation and the Transformers implementation is not compatible with SGLang.\n",
        "Repair the import that SGLang warns of",
        "docs.vllm.ai",
    ),
    (  # vLLM has the class and could not import it
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/vllm/model_executor/models/registry.py", line 320, in _raise_for_unsupported\n'
        "    raise ValueError(\n"
        "ValueError: Model architectures ['LlamaForCausalLM'] are not supported for now. Supported architectures: ['AquilaModel', 'LlamaForCausalLM']\n",
        "Read the traceback under 'Error in inspecting model architecture'",
        "Update vLLM",
    ),
    (  # fp8 of an older release
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/vllm/config.py", line 3012, in _get_quantization_config\n'
        "    raise ValueError(\n"
        "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current capability: 86.\n",
        "Update vLLM: recent releases run fp8",
        "GPTQ",
    ),
    (  # a card that no release runs it on
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/vllm/config.py", line 3012, in _get_quantization_config\n'
        "    raise ValueError(\n"
        "ValueError: The quantization method modelopt_fp4 is not supported for the current GPU. Minimum capability: 100. Current capability: 86.\n",
        "Serve a version of the model that is quantized another way",
        "Update vLLM",
    ),
    (  # float16 was asked for
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/vllm/config.py", line 3019, in _get_quantization_config\n'
        "    raise ValueError(\n"
        "ValueError: torch.float16 is not supported for quantization method fbgemm_fp8. Supported dtypes: [torch.bfloat16]\n",
        "Start it with a --dtype out of torch.bfloat16",
        "--dtype float16",
    ),
    (  # nothing in the model says so
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/vllm/config.py", line 660, in _verify_quantization\n'
        "    raise ValueError(\n"
        "ValueError: Quantization method specified in the model config (None) does not match the quantization method specified in the `quantization` argument (modelopt).\n",
        "Leave --quantization modelopt out if the weights are not quantized",
        "config.json says None",
    ),
    (  # experts on SGLang
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/sglang/srt/layers/quantization/fp8.py", line 819, in create_weights\n'
        "    raise ValueError(\n"
        "ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128.\n",
        "Keep the experts whole (--ep-size",
        "--enable-expert-parallel",
    ),
    (  # one GPU cannot be halved
        "INFO 10-31 09:12:20 [llm_engine.py:237] Initializing with config: model='own', tensor_parallel_size=1, pipeline_parallel_size=1\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/vllm/model_executor/layers/quantization/utils/marlin_utils.py", line 110, in verify_marlin_supports_shape\n'
        "    raise ValueError(\n"
        "ValueError: Weight input_size_per_partition = 10944 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.\n",
        "Take the kernels that need no tiles of 128",
        "Halve",
    ),
    (  # InfiniBand, by the list of cards
        "node-2:5776:5898 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.2.0.4<0>\n"
        "node-2:5776:5898 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.2.0.4<38254> with error 12, opcode 0, len 0, vendor err 129 (Recv) localGid fe80::1 remoteGid fe80::2\n",
        "Check the InfiniBand fabric",
        "to the RoCE v2 entry",
    ),
    (  # the card of the connection among several
        "node-2:5776:5898 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.2.0.4<0>\n"
        "node-2:5776:5898 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.2.0.4<38254> with error 12, opcode 0, len 0, vendor err 129 (Recv) localGid fe80::1 remoteGid fe80::2 hca mlx5_0\n",
        "Check the InfiniBand fabric",
        "to the RoCE v2 entry",
    ),
    (  # … by the channels
        "node-2:5776:5898 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.2.0.4<0>\n"
        "node-2:5776:5898 [0] NCCL INFO Channel 00/0 : 10[2] -> 18[2] [send] via NET/IB/1/GDRDMA\n"
        "node-2:5776:5898 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.2.0.4<38254> with error 12, opcode 0, len 0, vendor err 129 (Recv) localGid fe80::1 remoteGid fe80::2\n",
        "Set NCCL_IB_GID_INDEX on every node",
        "Check the InfiniBand fabric",
    ),
    (  # which of them is not told
        "node-2:5776:5898 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.2.0.4<0>\n"
        "node-2:5776:5898 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.2.0.4<38254> with error 12, opcode 0, len 0, vendor err 129 (Recv) localGid fe80::1 remoteGid fe80::2\n",
        "Check the ports of both nodes",
        "to the RoCE v2 entry",
    ),
    (  # the word python behind a launcher
        "/opt/conda/bin/python: can't open file '/home/u/exp/python': [Errno 2] No such file or directory\n",
        "Leave the word python out behind the launcher",
        "Correct the path",
    ),
    (  # a node that has it not
        "+ srun torchrun --nnodes=4 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=n01:29500 pretrain.py\n"
        "/usr/bin/python3: can't open file '/home/u/pretrain.py': [Errno 2] No such file or directory\n"
        "E0302 10:11:22 4411 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: 2) local_rank: 0 "
        "(pid: 4411) of binary: /usr/bin/python3\n",
        "Put /home/u/pretrain.py where every node finds it",
        "change into its folder",
    ),
    (  # a Radeon that nothing names
        "Traceback (most recent call last):\n"
        '  File "/home/u/paint/generate.py", line 70, in <module>\n    x = vae.encode(x * 2 - 1).mean * factor\n'
        "RuntimeError: HIP error: invalid device function\n"
        "For debugging consider passing AMD_SERIALIZE_KERNEL=3\n",
        "Let the card pose as gfx1030, if rocminfo names it gfx1031 to gfx1035",
        "CUDA",
    ),
    (  # a Jetson, by the name of its power mode
        "NV Power Mode: MAXN_SUPER\n"
        "Traceback (most recent call last):\n"
        '  File "/home/u/own/mul.py", line 24, in <module>\n    c = a @ b\n'
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n",
        "Take cuBLAS out of the environment",
        "nvidia-smi",
    ),
    (  # a board, by the name in its prompt
        "u@nano:~$ python3\nPython 3.8.10 (default, Jun 22 2022, 20:18:18) \n[GCC 9.4.0] on linux\n"
        ">>> import torch\nIllegal instruction (core dumped)\n",
        "Let OpenBLAS know the core of this ARM board",
        "Proxmox",
    ),
    (  # a library of the system's CUDA, which no pip package holds
        "Traceback (most recent call last):\n"
        '  File "/home/u/own/setup.py", line 12, in <module>\n    import torch\n'
        "ImportError: /lib64/libm.so.6: version `GLIBC_2.29' not found "
        "(required by /usr/local/cuda/lib64/libnvshmem_host.so.3)\n",
        "Put a release of /usr/local/cuda/lib64/libnvshmem_host.so.3 there",
        "ffmpeg",
    ),
    (  # clang's own header around that of a library which is not there
        "-- Check for working HIP compiler: /opt/rocm-7.1.0/lib/llvm/bin/clang++ - broken\n"
        "CMake Error at /usr/share/cmake/Modules/CMakeTestHIPCompiler.cmake:59 (message):\n"
        '    /opt/rocm-7.1.0/lib/llvm/lib/clang/20/include/cuda_wrappers/cmath:30:2: error: "Could not find '
        "standard C++ header 'cmath'. Add -v to your compilation command to check the include paths.\"\n"
        "    /opt/rocm-7.1.0/lib/llvm/lib/clang/20/include/__clang_hip_runtime_wrapper.h:112:10: fatal error: "
        "'cstdlib' file not found\n    2 errors generated when compiling for gfx1151.\n",
        "Install the C++ headers of the GCC that clang selects",
        "hipified",
    ),
    (  # a server compiles FlashInfer's kernel for the types that it was asked for
        "[2026-06-07 18:49:51] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/usr/local/lib/python3.12/dist-packages/sglang/srt/model_executor/cuda_graph_runner.py", lin'
        "e 716, in capture_one_batch_size\n"
        "    run_once()\n"
        '  File "/usr/local/lib/python3.12/dist-packages/flashinfer/jit/cpp_ext.py", line 330, in run_ninja\n'
        "    raise RuntimeError(msg) from e\n"
        "RuntimeError: Ninja build failed. Ninja output:\n"
        "[1/4] /usr/local/cuda/bin/nvcc -DTORCH_EXTENSION_NAME=batch_decode_dtype_kv_fp4_e2m1 -c batch_decode"
        ".cu -o batch_decode.cuda.o\n"
        "FAILED: [code=1] batch_decode.cuda.o\n"
        "/usr/local/lib/python3.12/dist-packages/flashinfer/data/include/flashinfer/vec_dtypes.cuh(117): erro"
        'r: no suitable conversion function from "const Params::DTypeKV" to "float" exists\n'
        '1 error detected in the compilation of "batch_decode.cu".\n'
        "ninja: build stopped: subcommand failed.\n",
        "Ask the server for another type or kernel",
        "Build with the compiler",
    ),
    (  # a server from a wheel is not compiled by its reader
        "(EngineCore pid=1639) ERROR 04-25 03:33:09 [core.py:1108] EngineCore failed to start.\n"
        "(EngineCore pid=1639) ERROR 04-25 03:33:09 [core.py:1108] Traceback (most recent call last):\n"
        '(EngineCore pid=1639) ERROR 04-25 03:33:09 [core.py:1108]   File "/srv/env/lib/python3.12/site-packa'
        'ges/vllm/v1/worker/gpu_worker.py", line 310, in load_model\n'
        "(EngineCore pid=1639) ERROR 04-25 03:33:09 [core.py:1108]     self.model_runner.load_model()\n"
        '(EngineCore pid=1639) ERROR 04-25 03:33:09 [core.py:1108]   File "/srv/env/lib/python3.12/site-packa'
        'ges/vllm/model_executor/layers/quantization/utils/marlin_utils.py", line 307, in marlin_permute_scal'
        "es\n"
        "(EngineCore pid=1639) ERROR 04-25 03:33:09 [core.py:1108]     s = s.reshape((-1, len(scale_perm)))[:"
        ", scale_perm]\n"
        "(EngineCore pid=1639) ERROR 04-25 03:33:09 [core.py:1108] torch.AcceleratorError: CUDA error: the pr"
        "ovided PTX was compiled with an unsupported toolchain.\n",
        "Update the NVIDIA driver on the host to one for the CUDA of this server's wheel",
        "--no-build-isolation",
    ),
    (  # a server from a wheel or image keeps the torch that it was compiled for
        '  File "/usr/local/bin/vllm", line 8, in <module>\n'
        "    sys.exit(main())\n"
        '  File "/usr/local/lib/python3.10/dist-packages/vllm/entrypoints/cli/main.py", line 53, in main\n'
        "    args.dispatch_function(args)\n"
        '  File "/usr/local/lib/python3.10/dist-packages/torch/cuda/__init__.py", line 319, in _lazy_init\n'
        "    torch._C._cuda_init()\n"
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11080). Please update your "
        "GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/"
        "index.aspx\n",
        "Install a newer driver on the host, or take a release or an image of the server",
        "--force-reinstall torch",
    ),
    (  # a server's kernels come with it
        "ERROR 02-06 23:41:11 engine.py:389] Traceback (most recent call last):\n"
        'ERROR 02-06 23:41:11 engine.py:389]   File "/usr/local/lib/python3.12/dist-packages/vllm/worker/work'
        'er.py", line 155, in init_device\n'
        "ERROR 02-06 23:41:11 engine.py:389]     torch.cuda.set_device(self.device)\n"
        "ERROR 02-06 23:41:11 engine.py:389] RuntimeError: CUDA error: no kernel image is available for execu"
        "tion on the device\n",
        "Take a newer release or image of the server for an RTX 50",
        "build the extension",
    ),
    (  # a whole batch is no picture
        "Traceback (most recent call last):\n"
        '  File "/home/u/user1/t.py", line 20, in <module>\n'
        "    plt.imshow(batch)\n"
        "TypeError: Invalid shape (16, 3, 64, 64) for image data\n",
        "Take one picture out of the batch of 16",
        "Move the channels to the end:",
    ),
    (  # a script, whose order no cell numbers show, and its Accelerator by way of the Trainer
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 66, in <module>\n    trainer.train()\n'
        '  File "/srv/env/lib/python3.11/site-packages/transformers/trainer.py", line 2325, in train\n'
        "    return inner_training_loop(\n"
        '  File "/srv/env/lib/python3.11/site-packages/accelerate/state.py", line 1230, in __getattr__\n'
        "    raise AttributeError(f\"'AcceleratorState' object has no attribute '{name}'\")\n"
        "AttributeError: 'AcceleratorState' object has no attribute 'use_distributed'",
        "Make all TrainingArguments",
        "cells",
    ),
    (  # an Accelerator of one's own
        "Traceback (most recent call last):\n"
        '  File "/srv/own/train.py", line 41, in <module>\n    net, data = accelerator.prepare(net, data)\n'
        '  File "/srv/env/lib/python3.11/site-packages/accelerate/accelerator.py", line 485, in distributed_type\n'
        "    return self.state.distributed_type\n"
        "AttributeError: 'AcceleratorState' object has no attribute 'distributed_type'",
        "Make the Accelerator after",
        "before the Trainer",
    ),
    (  # the exporter of torch 1.12 and older, which has no dynamo=
        "Traceback (most recent call last):\n"
        '  File "/srv/own/to_onnx.py", line 12, in <module>\n    torch.onnx.export(net, x, "net.onnx")\n'
        '  File "/srv/env/lib/python3.9/site-packages/torch/onnx/symbolic_registry.py", line 112, in get_registered_op\n'
        "    raise RuntimeError(msg)\n"
        "RuntimeError: Exporting the operator fft_rfft2 to ONNX opset version 13 is not supported. "
        "Please feel free to request support or submit a pull request on PyTorch GitHub.",
        "Export in a fresh environment of torch 2.5",
        "needs onnxscript",
    ),
    (  # ONNX has it from opset 20 on
        "Traceback (most recent call last):\n"
        '  File "/srv/own/to_onnx.py", line 12, in <module>\n    torch.onnx.export(net, x, "net.onnx")\n'
        '  File "/srv/env/lib/python3.9/site-packages/torch/onnx/symbolic_registry.py", line 112, in get_registered_op\n'
        "    raise RuntimeError(msg)\n"
        "RuntimeError: Exporting the operator affine_grid_generator to ONNX opset version 16 is not supported. "
        "Please feel free to request support or submit a pull request on PyTorch GitHub.",
        "Replace F.affine_grid before export",
        "attention by matmul",
    ),
    (  # texts in batches of 32
        "Traceback (most recent call last):\n"
        '  File "/Users/u/rank.py", line 9, in <module>\n    scores = model.predict(pairs)\n'
        '  File "/opt/homebrew/lib/python3.11/site-packages/sentence_transformers/cross_encoder/CrossEncoder.py", '
        "line 441, in predict\n    out = self.model(**features)\n"
        "RuntimeError: MPS backend out of memory (MPS allocated: 1.73 GB, other allocations: 4.80 GB, max allowed: "
        "6.80 GB). Tried to allocate 384.00 MB on private pool.",
        "Give encode() or predict() a smaller batch_size",
        "picture or sequence: torch holds 1.73 GiB of",
    ),
    (  # native frames below the Python stack tell whose code crashed, and in which operation
        "Windows fatal exception: access violation\n\nStack (most recent call first):\n"
        '  File "C:\\own\\Lib\\site-packages\\widgets\\eager.py", line 7 in matmul\n'
        '  File "C:\\own\\run.py", line 9 in <module>\n'
        "Exception Code: 0xC0000005\n"
        "  #0 0x00007ffe5056c36d at::cuda::_int_mm(class at::Tensor const &) "
        "(C:\\own\\Lib\\site-packages\\torch\\lib\\torch_hip.dll+0x26dc36d)\n"
        "  #1 0x00007ffe5b44fb8f at::_ops::_int_mm::call(class at::Tensor const &) "
        "(C:\\own\\Lib\\site-packages\\torch\\lib\\torch_cpu.dll+0x12cfb8f)",
        "Load the model in bfloat16, or as GGUF, in place of int8",
        "Install widgets",
    ),
    (  # a start routine that failed tells of no build, card or release
        "Traceback (most recent call last):\n"
        '  File "D:\\own\\ComfyUI\\comfy\\utils.py", line 20, in <module>\n    import torch\n'
        '  File "D:\\own\\python_embeded\\Lib\\site-packages\\torch\\__init__.py", line 264, in _load_dll_libraries\n'
        "    raise err\n"
        'OSError: [WinError 1114] Error loading "D:\\own\\python_embeded\\Lib\\site-packages\\torch\\lib\\c10.dll" or '
        "one of its dependencies.",
        "Install the current Visual C++ runtime",
        "download.pytorch.org",
    ),
    (  # what the message itself lists needs no command
        "OS: macOS 15.3.2 (x86_64)\nPython version: 3.9.20 (64-bit runtime)\n"
        "ERROR: Could not find a version that satisfies the requirement torch==2.5.1 (from versions: 2.2.1, 2.2.2)\n"
        "ERROR: No matching distribution found for torch==2.5.1",
        "Take torch 2.2.2, the last with wheels for Intel Macs",
        "pip index versions",
    ),
]


def test_a_module_that_another_own_file_imports_is_not_the_program(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/u/webui/modules/menu.py", line 231, in load_wrapper\n    model = load_model(name)\n'
        '  File "/home/u/webui/modules/fast.py", line 5, in <module>\n    from exllamav2 import (\n'
        '  File "/home/u/miniconda3/envs/gen/lib/python3.11/site-packages/exllamav2/ext.py", line 6, in <module>\n'
        "    import exllamav2_ext\n"
        "ImportError: /home/u/miniconda3/envs/gen/lib/python3.11/site-packages/exllamav2_ext.cpython-311-"
        "x86_64-linux-gnu.so: undefined symbol: __cxa_call_terminate\n"
    )
    found = first(f"torch 2.4.0\n{text}", rules)
    assert found.rule == "glibcxx-missing"
    assert not [fix for fix in found.fixes if "fast.py" in (fix.run or "")]


def test_a_command_names_the_folder_that_pip_builds(rules: RuleSet) -> None:
    text = next(text for text, *_ in BY_VALUE if text.startswith("Processing ./third/blend-op"))
    assert (first(text, rules).fixes[0].run or "").endswith(" third/blend-op/setup.py")
    whole = text.replace("Processing ./third", "Processing /srv/own")
    assert (first(whole, rules).fixes[0].run or "").endswith(" /srv/own/blend-op/setup.py")
    other = text.replace("Processing", "Processing ./third/other\nProcessing")
    assert (first(other, rules).fixes[0].run or "").endswith(" setup.py")


def test_pip_is_that_of_the_interpreter_which_a_program_names_as_its_own(rules: RuleSet) -> None:
    text = next(text for text, start, *_ in BY_VALUE if start.startswith("Install foo-bindings"))
    own = "/srv/own/env/bin/python"
    said = f"** Python executable: {own}\n{text}"
    assert (first(said, rules).fixes[0].run or "").startswith(f"{own} -m pip install ")
    two = f"** Python executable: /usr/bin/python3\n{said}"
    assert own not in (first(two, rules).fixes[0].run or "")


def test_what_is_installed_in_a_container_belongs_into_its_image(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        "OSError: /usr/local/lib/python3.10/dist-packages/torchaudio/lib/libtorchaudio.so: undefined symbol: "
        "_ZNK5torch8autograd4Node4nameEv"
    )
    assert "Dockerfile" not in first(text, rules).fixes[0].do
    assert "Dockerfile" in first(f"root@box:~# docker run --gpus all my/asr\n{text}", rules).fixes[0].do


@pytest.mark.parametrize(("text", "start", "never"), BY_VALUE)
def test_a_value_of_the_text_chooses_the_advice(text: str, start: str, never: str, rules: RuleSet) -> None:
    fixes = first(text, rules).fixes
    assert fixes[0].do.startswith(start)
    assert not [fix for fix in fixes if never in fix.do or never in (fix.run or "")]


def test_a_program_that_uv_runs_is_asked_through_uv(rules: RuleSet) -> None:
    text = (
        "argv: uv run train --steps 5\n"
        "UserWarning: Orin with CUDA capability sm_87 is not compatible with the current PyTorch installation.\n"
        "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device\n"
    )
    found = first(text, rules)
    assert "; uv run --no-sync python --version" in (found.fixes[0].run or "")
    assert (found.decide_with or "").startswith("uv run --no-sync python -c ")
    for other in ("uv run --with rich train", "train"):  # another environment; nothing of uv's
        assert "uv run" not in (first(text.replace("uv run train", other), rules).decide_with or "")


def test_micromamba_has_no_conda_beside_it(rules: RuleSet) -> None:
    text = next(text for text, start, *_ in BY_VALUE if start.startswith("Install the whole toolkit"))
    runs = [fix.run or "" for fix in first(text, rules).fixes]
    assert runs[0].startswith("micromamba install -c nvidia/label/cuda-")
    assert any(run.endswith("-ccbin g++-11'") and " && export CC=gcc-11 " in run for run in runs)
    other = [fix.run or "" for fix in first(text.replace("micromamba", "miniconda3"), rules).fixes]
    assert other[0].startswith("conda install ")


def test_what_is_warned_of_on_the_way_out_is_no_main_evidence(rules: RuleSet) -> None:
    text = next(text for text, *_ in BY_VALUE if "(function destroyEvent)" in text)
    assert first(text, rules).evidence[0].text.startswith("torch.AcceleratorError: ")


def test_the_head_of_the_next_run_is_no_part_of_a_message(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/audit.py", line 479, in <module>\n    for result in model(images):\n'
        '  File "/srv/env/lib/python3.10/site-packages/rowmaker/run.py", line 15, in run\n'
        "    assert im.shape == s, f'input size {im.shape} not equal to {s}'\n"
        "AssertionError: input size (219, 3) not equal to (1, 3)\n"
        "========== Settings of run 2 ==========\nweights=/srv/own/int8.engine\n"
    )
    event = read_text(text).events[0]
    assert event.text == "input size (219, 3) not equal to (1, 3)"


def test_a_stack_that_is_there_is_not_asked_for_again(rules: RuleSet) -> None:
    text = next(text for text, *_ in BY_VALUE if "torch_hip.dll" in text)
    found = first(text, rules)
    assert found.decide_with is None
    assert not [fix for fix in found.fixes if "FAULTHANDLER" in (fix.run or "")]


def test_a_line_to_make_sure_asks_for_nothing_that_came_with_a_later_torch(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/homebrew/lib/python3.11/site-packages/torch/nn/modules/module.py", line {}, in _wrapped_call_impl\n'
        "    return self._call_impl(*args, **kwargs)\n"
        "RuntimeError: MPS backend out of memory (MPS allocated: 1.73 GB, other allocations: 4.80 GB, max allowed: "
        "6.80 GB). Tried to allocate 384.00 MB on private pool."
    )
    assert first(text.format(1_511), rules).decide_with is None  # torch 2.2
    assert "recommended_max_memory" in (first(text.format(1_736), rules).decide_with or "")  # torch 2.5


def test_a_line_to_make_sure_names_the_state_that_was_loaded(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/st/main.py", line 189, in main\n'
        "    optimizer.load_state_dict(checkpoint['optimizer'])\n"
        '  File "/srv/env/lib/python3.7/site-packages/torch/optim/optimizer.py", line 123, in load_state_dict\n'
        "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
    )
    told = first(text, rules)
    assert "in checkpoint['optimizer']['param_groups']" in (told.decide_with or "")
    assert "Put your own" not in (told.decide_note or "")


def test_a_line_to_make_sure_bears_the_readers_own_names(rules: RuleSet) -> None:
    text = next(text for text, start, *_ in BY_VALUE if start.startswith("Unfreeze the copy"))
    made_sure = first(text, rules).decide_with or ""
    assert "pi_loss.grad_fn" in made_sure
    assert "pi_new.parameters()" in made_sure


def test_a_known_build_names_its_own_index(rules: RuleSet) -> None:
    text = next(text for text, start, *_ in BY_VALUE if start.startswith("Update torch 2.4.0, whose"))
    fix = first(f"PyTorch version: 2.4.0+cu118\n{text}", rules).fixes[0]
    assert (fix.run or "").endswith("--index-url https://download.pytorch.org/whl/cu118")


def test_what_loads_a_model_is_updated_together(rules: RuleSet) -> None:
    text = next(text for text, start, *_ in BY_VALUE if "@st.cache_resource" in start)
    runs = [fix.run or "" for fix in first(text, rules).fixes]
    assert any(run.endswith(" -U sentence-transformers transformers accelerate") for run in runs)


def test_a_wrapper_with_the_same_words_in_every_run_hands_on_its_cause(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.11/site-packages/rowmaker/writer.py", line 40, in write\n'
        "    self.table.append(row)\n"
        "rowmaker.RowError: no column holds both\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/own/prepare.py", line 7, in <module>\n    made = rowmaker.build(rows)\n'
        '  File "/srv/env/lib/python3.11/site-packages/rowmaker/build.py", line 90, in build\n'
        '    raise BuildError("The rows could not be built") from e\n'
        "rowmaker.BuildError: The rows could not be built\n"
    )
    told = diagnose(read_text(text), FactBook(None), rules).suspect
    assert told is not None
    assert told.message == "no column holds both"
    assert told.frame is not None
    assert told.frame.line == 7
    other = text.replace('"The rows could not be built")', 'f"The rows {what}")')
    kept = diagnose(read_text(other), FactBook(None), rules).suspect
    assert kept is not None
    assert kept.message == "The rows could not be built"


def test_what_ran_a_notebook_hands_on_the_exception_of_a_cell(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/env/bin/papermill", line 8, in <module>\n    sys.exit(papermill())\n'
        '  File "/opt/env/lib/python3.11/site-packages/papermill/execute.py", line 251, in raise_for_execution_errors\n'
        "    raise error\n"
        "papermill.exceptions.PapermillExecutionError: \n"
        f"{'-' * 75}\n"
        'Exception encountered at "In [4]":\n'
        f"{'-' * 75}\n"
        "NotImplementedError                       Traceback (most recent call last)\n"
        "Cell In[4], line 1\n----> 1 from unsloth import FastLanguageModel\n\n"
        "File /opt/env/lib/python3.11/site-packages/unsloth_zoo/device_type.py:218, in get_device_type()\n"
        '--> 218     raise NotImplementedError("Unsloth cannot find any torch accelerator? You need a GPU.")\n\n'
        "NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.\n"
    )
    report = diagnose(read_text(text), FactBook(None), rules)
    assert report.diagnoses[0].rule == "no-cuda-gpus"
    assert not report.runs
    told = [fix for fix in report.diagnoses[0].fixes if "CUDA_VISIBLE_DEVICES" in (fix.run or "")]
    assert told
    assert all(fix.do.startswith("Restart the kernel") for fix in told)
    assert all(fix.run == "import os; os.environ.pop('CUDA_VISIBLE_DEVICES', None)" for fix in told)


def unknown(text: str, rules: RuleSet) -> str:
    suspect = diagnose(read_text(text), FactBook(None), rules).suspect
    assert suspect is not None
    return next_step(suspect)


@pytest.mark.parametrize(
    ("says", "chosen"),
    [
        ("unknown activation 'swish2'; known: relu, gelu", "ValueError"),
        ("cannot read the configuration: 'swish2'", "KeyError"),
        ("no activation of that name", "KeyError"),
    ],
)
def test_a_sentence_about_a_key_says_more_than_the_key(says: str, chosen: str, rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/lib/python3.11/site-packages/netkit/acts.py", line 9, in get\n    return TABLE[name]\n'
        "KeyError: 'swish2'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/lib/python3.11/site-packages/netkit/acts.py", line 11, in get\n    raise ValueError(told)\n'
        f"ValueError: {says}\n"
    )
    suspect = diagnose(read_text(text), FactBook(None), rules).suspect
    assert suspect is not None
    assert suspect.type == chosen


def test_pip_that_may_ask_no_index_is_not_sent_to_one(rules: RuleSet) -> None:
    refused = (
        "  ERROR: Could not find a version that satisfies the requirement setuptools>=61 (from versions: none)\n"
        "  ERROR: No matching distribution found for setuptools>=61\n"
    )
    building = (
        "+ pip install --no-index -e ./ops\n"
        "  Installing build dependencies: finished with status 'error'\n"
        "  × pip subprocess to install build dependencies did not run successfully.\n"
    )
    assert "`pip install --no-build-isolation --no-index -e ./ops`" in unknown(building + refused, rules)
    assert "--find-links" in unknown("+ pip install --no-index -r req.txt\n" + refused, rules)
    assert "pip index versions setuptools" in unknown("+ pip install -r req.txt\n" + refused, rules)


IMPORTS_ANOTHER = (
    "Traceback (most recent call last):\n"
    '  File "/srv/own/main.py", line 1, in <module>\n    from finder import Model\n'
    '  File "/srv/env/lib/python3.12/site-packages/finder/model.py", line 8, in <module>\n    import netkit\n'
    '  File "/srv/env/lib/python3.12/site-packages/netkit/__init__.py", line 181, in <module>\n    start()\n'
    '  File "/srv/env/lib/python3.12/site-packages/netkit/typing.py", line 168, in start\n    a = b.Value\n'
    "AttributeError: module 'netkit.dnn' has no attribute 'Value'\n"
)


def test_of_packages_that_import_each_other_the_one_that_failed_is_named(rules: RuleSet) -> None:
    assert unknown(IMPORTS_ANOTHER, rules).startswith(
        "Install netkit again, in the release that finder asks for"
    )
    called = IMPORTS_ANOTHER.replace("import netkit\n", "x = netkit.take(3)\n")
    assert unknown(called, rules).startswith("Update finder with pip")
    own = IMPORTS_ANOTHER.replace("site-packages/netkit", "site-packages/finder")
    assert unknown(own, rules).startswith("Update finder with pip")


def test_the_option_of_a_command_line_is_named_as_it_is_there(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/env/lib/python3.12/site-packages/netkit/launch.py", line 66, in main\n'
        "    args = prepare(sys.argv[1:])\n"
        '  File "/srv/env/lib/python3.12/site-packages/netkit/args.py", line 837, in check\n'
        "    assert args.turn_mode in MODES\n"
        "AssertionError: netkit expects turn_mode to be one of ['left', 'right'], but got half\n"
    )
    assert unknown(text, rules).startswith("Set --turn-mode to left or right where netkit is started")
    called = text.replace("sys.argv[1:]", "mode")
    assert unknown(called, rules).startswith("Set turn_mode to left or right where netkit is called")
    of_script = called.replace("Traceback (most recent call last):\n", (
        "Traceback (most recent call last):\n"
        '  File "/srv/own/tool.py", line 3, in <module>\n    sys.exit(main(parser.parse_args()))\n'
    ))  # fmt: skip
    assert "--turn-mode" not in unknown(of_script, rules)


PIP_FAILED = (
    "Obtaining file:///srv/src/nervelib-src\n"
    "  Preparing editable metadata (pyproject.toml): finished with status 'error'\n"
    "  error: subprocess-exited-with-error\n"
    "  × Preparing editable metadata (pyproject.toml) did not run successfully.\n"
    "      Traceback (most recent call last):\n"
    '        File "/srv/env/lib/python3.12/site-packages/setuptools/build_meta.py", line 313, in run_setup\n'
    "          exec(code, locals())\n"
    '        File "<string>", line 18, in <module>\n'
    "      ModuleNotFoundError: No module named 'packaging'\n"
    "error: metadata-generation-failed\n"
)
PIP_TRIED = (
    "Traceback (most recent call last):\n"
    '  File "<string>", line 1, in <module>\n'
    "ModuleNotFoundError: No module named 'nervelib'\n"
)


def test_a_module_whose_build_failed_above_is_not_what_is_missing(rules: RuleSet) -> None:
    report = diagnose(read_text(PIP_FAILED + PIP_TRIED), FactBook(None), rules)
    assert report.suspect is not None
    assert "packaging" in report.suspect.message
    assert report.suspect.frame is None
    step = next_step(report.suspect)
    assert "`/srv/env/bin/python -m pip install packaging && " in step
    assert "--no-build-isolation -e /srv/src/nervelib-src`" in step
    assert [note for note in report.notes if "failed above" in note]
    # installed since, or another module
    again = PIP_FAILED + "Successfully installed nervelib-0.4\n" + PIP_TRIED
    assert diagnose(read_text(again), FactBook(None), rules).diagnoses[0].rule == "own-code-error"
    other = PIP_FAILED + PIP_TRIED.replace("nervelib", "pipelines")
    assert diagnose(read_text(other), FactBook(None), rules).diagnoses[0].rule == "own-code-error"


def test_requirements_that_exclude_each_other_are_named(rules: RuleSet) -> None:
    asked = (
        "Collecting panelkit==1.28.2 (from -r req.txt (line 14))\n"
        "ERROR: Cannot install -r req.txt (line 14) and\nnumpy>=2.1.0 because these\n"
        "\nThe conflict is caused by:\n"
        "    The user requested numpy>=2.1.0\n"
        "    panelkit 1.28.2 depends on numpy<2 and >=1.19.3\n"
        "\nTo fix this you could try to:\n"
        "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/\n"
    )
    step = unknown(asked, rules)
    assert "another release of panelkit, or leave its version out (req.txt, line 14)" in step
    assert "numpy>=2.1.0" in step
    both = asked.replace("The user requested numpy>=2.1.0", "solverlib 0.64 depends on numpy>=2.1")
    assert "solverlib 0.64, which needs numpy>=2.1" in unknown(both, rules)


def test_the_first_error_of_a_compiler_counts_however_much_the_build_says_below(rules: RuleSet) -> None:
    copied = "".join(f"  -- meshes/{number}/{number}.obj\n" for number in range(300))
    text = (
        "  src/zip/util.c:322:7: error: expected identifier or '('\n"
        + copied
        + "  error: command '/usr/bin/clang' failed "
        "with exit code 1\n  ERROR: Failed building wheel for ballsim\nFailed to build ballsim\n"
        "error: failed-wheel-build-for-install\n"
    )
    suspect = diagnose(read_text(text), FactBook(None), rules).suspect
    assert suspect is not None
    assert "expected identifier" in suspect.message


@pytest.mark.parametrize(
    ("typed", "run"),
    [
        ("$ uv add --no-build-isolation ./knn\n", "uv pip install --python /home/me/app/.venv/bin/python -v"),
        ("", "/home/me/app/.venv/bin/python -m pip install -v"),
    ],
)
def test_an_environment_of_uv_has_no_pip(typed: str, run: str, rules: RuleSet) -> None:
    text = (
        f"{typed}Traceback (most recent call last):\n"
        '  File "/home/me/app/.venv/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 50, in check\n'
        "    raise RuntimeError(CUDA_MISMATCH_MESSAGE.format(cuda_str_version, torch.version.cuda))\n"
        "RuntimeError: The detected CUDA version (11.5) mismatches the version that was used to compile PyTorch (12.4). "
        "Please make sure to use the same CUDA versions."
    )
    assert any(run in (fix.run or "") for fix in first(text, rules).fixes)


def test_pip_that_is_named_with_its_interpreter_asks_the_same_one(rules: RuleSet) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/venv/lib/python3.10/site-packages/torch_scatter/__init__.py", line 16, in <module>\n'
        "    torch.ops.load_library(spec.origin)\n"
        '  File "/home/me/venv/lib/python3.10/site-packages/torch/_ops.py", line 1295, in load_library\n'
        "    ctypes.CDLL(path)\n"
        "OSError: /home/me/venv/lib/python3.10/site-packages/torch_scatter/_version_cuda.so: undefined symbol: "
        "_ZN3c1017RegisterOperatorsD1Ev"
    )
    assert "torch-$(/home/me/venv/bin/python -c " in (first(text, rules).fixes[0].run or "")


COMFY_START = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/ComfyUI/nodes.py", line 2220, in load_custom_node\n'
    "    module_spec.loader.exec_module(module)\n"
    '  File "/home/me/ComfyUI/custom_nodes/fast-vae/__init__.py", line 3, in <module>\n'
    "    import triton\n"
    "ModuleNotFoundError: No module named 'triton'\n\n"
    "Cannot import /home/me/ComfyUI/custom_nodes/fast-vae module for custom nodes: No module named 'triton'\n"
    "   0.0 seconds (IMPORT FAILED): /home/me/ComfyUI/custom_nodes/fast-vae\n"
)
WEBUI_START = (
    "*** Error loading script: fast_vae.py\n"
    "    Traceback (most recent call last):\n"
    '      File "/home/me/stable-diffusion-webui/modules/scripts.py", line 382, in load_scripts\n'
    "        script_module = script_loading.load_module(scriptfile.path)\n"
    '      File "/home/me/stable-diffusion-webui/extensions/fast-vae/scripts/fast_vae.py", line 6, in <module>\n'
    "        import triton\n"
    "    ModuleNotFoundError: No module named 'triton'\n\n---\n"
)
OWN_WARNING = (
    "fast-vae: the node for tiles could not be imported and will be unavailable.\n"
    "Traceback (most recent call last):\n"
    '  File "/home/me/ComfyUI/custom_nodes/fast-vae/nodes/tiles.py", line 18, in <module>\n'
    "    import triton\n"
    "ModuleNotFoundError: No module named 'triton'\n"
)
PROMPT_FAILED = (
    "Starting server\ngot prompt\n"
    "Traceback (most recent call last):\n"
    '  File "/home/me/ComfyUI/execution.py", line 542, in execute\n'
    "    output_data = await get_output_data(prompt_id)\n"
    '  File "/home/me/ComfyUI/comfy/ops.py", line 753, in forward\n'
    "    x = torch.nn.functional.linear(input, weight)\n"
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (77x2048 and 4096x320)\n"
)


@pytest.mark.parametrize("start", [COMFY_START, WEBUI_START, OWN_WARNING])
def test_a_plugin_that_was_not_imported_is_not_what_ended_a_prompt(start: str, rules: RuleSet) -> None:
    assert first(start, rules).rule == "compile-triton-missing"
    assert first(start + PROMPT_FAILED, rules).rule == "matmul-shape"


def test_what_was_not_imported_counts_where_the_program_was_only_stopped(rules: RuleSet) -> None:
    stopped = 'Traceback (most recent call last):\n  File "/home/me/ComfyUI/main.py", line 3, in <module>\n    run()\n'
    assert first(f"{COMFY_START}{stopped}KeyboardInterrupt\n", rules).rule == "compile-triton-missing"


def test_a_file_that_ranks_of_another_host_do_not_find_is_looked_for_there(rules: RuleSet) -> None:
    lines = [f"localhost: iteration {step} | loss 2.{step}" for step in range(12)]
    for rank in (8, 9, 10, 11):
        lines += [
            f"10.0.0.7: [rank{rank}]: Traceback (most recent call last):",
            f'10.0.0.7: [rank{rank}]:   File "/home/me/lm/data.py", line 31, in index',
            f"10.0.0.7: [rank{rank}]:     return np.load(path)",
            f'10.0.0.7: [rank{rank}]:   File "/home/me/env/lib/python3.11/site-packages/numpy/lib/npyio.py", line 405, in load',
            f'10.0.0.7: [rank{rank}]:     fid = stack.enter_context(open(os_fspath(file), "rb"))',
            f"10.0.0.7: [rank{rank}]: FileNotFoundError: [Errno 2] No such file or directory: '/home/me/lm/cache/doc.npy'",
        ]
    text = "\n".join(lines) + "\n"
    assert "`ssh 10.0.0.7 ls -ld '/home/me/lm/cache/doc.npy'`" in unknown(text, rules)
    assert "ssh" not in unknown(text + text.replace("10.0.0.7", "10.0.0.8"), rules)
    own = "\n".join(line for line in lines if "numpy" not in line and "fid = " not in line) + "\n"
    assert first(own, rules).fixes[0].do.startswith("Copy /home/me/lm/cache/doc.npy to 10.0.0.7")


def test_a_job_that_is_ended_after_a_task_failed_is_not_preempted(rules: RuleSet) -> None:
    port = "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
    failed = "srun: error: gpu07: task 3: Exited with exit code 1\n"
    ended = "slurmstepd: error: *** JOB 524 ON gpu06 CANCELLED AT 2024-10-09T23:25:32 ***\n"

    def causes(text: str) -> list[str]:
        return [one.rule for one in diagnose(read_text(text), FactBook(None), rules).diagnoses]

    assert causes(port + failed + ended) == ["dist-address-in-use"]
    assert "job-preempted" in causes(port + failed + ended.replace(" ***\n", " DUE TO PREEMPTION ***\n"))


def test_a_larger_share_is_advised_where_it_can_be_enough(rules: RuleSet) -> None:
    def advised(card: str, share: str = "0.80", needed: str = "9.00") -> bool:
        text = (
            f"INFO worker.py: the current vLLM instance can use total_gpu_memory ({card}GiB) x gpu_memory_utilization ({share}) = 1GiB\n"
            f"ValueError: To serve at least one request with the models's max seq len (65536), ({needed} GiB KV cache is needed, which is "
            "larger than the available KV cache memory (4.00 GiB). Try increasing `gpu_memory_utilization`.\n"
        )
        return any("up to 0.95" in fix.do for fix in first(text, rules).fixes)

    assert advised("79.15")
    assert not advised("23.50")
    assert not advised("79.15", share="0.95")
    assert not advised("79.15", needed="40.00")


def test_what_is_not_the_case_is_no_evidence_without_figures(rules: RuleSet) -> None:
    text = next(text for text, start, *_ in BY_VALUE if start == "Give the model less at once")
    found = first(text, rules)
    told = [one.fact for one in found.evidence]
    shown = [one.fact for one in proofs(found)]
    assert "oom.evaluation_with_grad" in told
    assert "oom.evaluation_with_grad" not in shown
    assert "oom.epochs_before" not in shown
    assert "oom.fragmented" in shown  # with the sizes


def test_what_rounded_numbers_differ_by_is_no_figure(rules: RuleSet) -> None:
    def told(inside: str) -> list[str]:
        text = (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
            f"10.58 GiB of which 13.12 MiB is free. Including non-PyTorch memory, this process has {inside} GiB memory in use. "
            "Of the allocated memory 8.24 GiB is allocated by PyTorch, and 71.60 MiB is reserved by PyTorch but unallocated."
        )
        return [one.text for one in first(text, rules).evidence if (one.fact or "").startswith("oom.others")]

    assert not [text for text in told("10.56") if "MiB" in text]
    assert [text for text in told("10.36") if "MiB" in text]
