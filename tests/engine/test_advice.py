"""What is advised to whom: gating by surroundings, commands in the reader's shell, torch from the right place."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from case_files import table

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


# texts that differ from a fixture's by a value alone: how the first fix starts, and what no fix says
SHAPES = [
    (head, "\n".join(text), *said)
    for head, text, said in table(Path(__file__).with_name("first_actions.cases"))
]
BY_VALUE = [row for _, *row in SHAPES]


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


@pytest.mark.parametrize(("text", "start", "never"), BY_VALUE, ids=[head for head, *_ in SHAPES])
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
