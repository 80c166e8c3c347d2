"""What starts the reader's ranks, on which machines, and where their variables are set."""

# ruff: noqa: E501 - a line of a log is one line

from __future__ import annotations

import re

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.launch import Launch, apart, local_rank, started, where
from torchdoctor.intake import read_text
from torchdoctor.model import Diagnosis

ONE = Launch("torchrun --nproc_per_node=4", "", shown=True, several=False, server=False)
NODES = Launch("torchrun --nproc_per_node=8", "", shown=True, several=True, server=False)
SRUN = Launch("srun python", "", shown=True, several=True, server=False)
DEEPSPEED = Launch("deepspeed", "", shown=True, several=True, server=False)
SERVER = Launch("torchrun --nproc_per_node=gpu", "", shown=False, several=False, server=True)
OWN = Launch(
    "torchrun --nproc_per_node=4", "", True, False, False, "--nproc_per_node=4", "B=2 python fit.py --lr 1"
)
PROGRAM = Launch("torchrun --nproc_per_node=4", "", False, False, False, other=True)
RANKS = "torchrun --nproc_per_node=gpu train.py"

# two launchers on one node with two cards
TWICE = """\
gpu041:73110:73877 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 10 and rank 8 both on CUDA device 17000
gpu041:73112:73879 [1] init.cc:943 NCCL WARN Duplicate GPU detected : rank 11 and rank 9 both on CUDA device ca000
"""
# all ranks of a node on its first card
UNBOUND = """\
gpu041:73110:73877 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 17000
gpu041:73111:73878 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 2 and rank 0 both on CUDA device 17000
"""
SERVER_AND_TRAINER = """\
  File "/srv/env/lib/python3.11/site-packages/trl/extras/vllm_client.py", line 214, in init_communicator
    self.pynccl_comm = PyNcclCommunicator(pg, device=device)
RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)
ws7:20113:20113 [0] init.cc:1012 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 65000
"""
GLOBAL_RANK = """\
node2: [rank9]: Traceback (most recent call last):
node2: [rank9]:   File "/srv/segm/pretrain.py", line 118, in <module>
node2: [rank9]:     torch.cuda.set_device(dist.get_rank())
node2: [rank9]:   File "/srv/env/lib/python3.11/site-packages/torch/cuda/__init__.py", line 512, in set_device
node2: [rank9]:     torch._C._cuda_setDevice(device)
node2: [rank9]: RuntimeError: CUDA error: invalid device ordinal
node1: [rank2]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 2.
"""
LONELY = "[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: /w/NCCLUtils.hpp:275, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3\n"


def first(text: str, rules: RuleSet) -> Diagnosis:
    return diagnose(read_text(text), FactBook(None), rules).diagnoses[0]


@pytest.mark.parametrize(
    ("command", "launch", "told"),
    [
        (f"A=1 {RANKS}", ONE, "A=1 torchrun --nproc_per_node=4 train.py"),
        (f"A=1 B='x y' {RANKS} 2>&1 | grep WARN", ONE, "A=1 B='x y' torchrun --nproc_per_node=4 train.py 2>&1 | grep WARN"),
        # what starts several machines, and the rest of its options, is the reader's
        (f"A=1 {RANKS}", NODES, "export A=1"),
        (RANKS, NODES, None),
        (f"A=1 {RANKS} 2>&1 | grep WARN", NODES, None),
        ("torchrun --standalone --nproc_per_node=gpu train.py", NODES, None),
        ("torchrun --standalone --nproc_per_node=gpu train.py", ONE, "torchrun --standalone --nproc_per_node=gpu train.py"),
        (f"A=1 {RANKS}", SRUN, "A=1 srun python train.py"),
        # DeepSpeed takes NCCL's own variables along, and no others
        (f"TORCH_DISTRIBUTED_DEBUG=DETAIL {RANKS}", DEEPSPEED, "printf '%s\\n' TORCH_DISTRIBUTED_DEBUG=DETAIL >> ~/.deepspeed_env"),
        (f"NCCL_DEBUG=INFO {RANKS}", DEEPSPEED, "export NCCL_DEBUG=INFO"),
        (f"A=1 {RANKS}", SERVER, "export A=1"),
        ("CUDA_LAUNCH_BLOCKING=1 python train.py", SERVER, "export CUDA_LAUNCH_BLOCKING=1"),
        ("CUDA_LAUNCH_BLOCKING=1 python train.py", ONE, "CUDA_LAUNCH_BLOCKING=1 torchrun --nproc_per_node=4 train.py"),
        ("CUDA_VISIBLE_DEVICES=0 python train.py", ONE, "CUDA_VISIBLE_DEVICES=0 python train.py"),
        ("python train.py", ONE, "python train.py"),
        ("python train.py --num_workers 0", ONE, "python train.py --num_workers 0"),
        # his own command, with his arguments; one program that starts another takes the variables along
        (f"A=1 {RANKS} 2>&1 | grep WARN", OWN, "A=1 B=2 python fit.py --lr 1 2>&1 | grep WARN"),
        (f"B=3 {RANKS}", OWN, "B=3 python fit.py --lr 1"),
        ("torchrun --standalone --nproc_per_node=gpu train.py", OWN, "torchrun --standalone --nproc_per_node=4 fit.py --lr 1"),
        (f"A=1 {RANKS}", PROGRAM, "export A=1"),
        ("torchrun --standalone --nproc_per_node=gpu train.py", PROGRAM, None),
    ],
)  # fmt: skip
def test_a_command_is_that_of_the_reader_s_launcher(command: str, launch: Launch, told: str | None) -> None:
    assert started(command, launch, ranked=True) == told


def test_a_task_of_srun_reads_slurm_s_name_of_its_rank_on_the_node() -> None:
    bind = "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))."
    assert local_rank(bind, lambda: SRUN) == "torch.cuda.set_device(int(os.environ['SLURM_LOCALID']))."
    assert local_rank(bind, lambda: ONE) == bind


def test_a_program_of_one_process_keeps_its_start() -> None:
    assert started("A=1 python train.py", ONE, ranked=False) == "A=1 python train.py"


@pytest.mark.parametrize(
    ("launch", "runtime", "words"),
    [
        (ONE, "", ""),
        (NODES, "", "on every node"),
        (NODES, "ray", "before ray start"),
        (NODES, "slurm", "job script"),
        (ONE, "kubernetes", "under env of the container"),
    ],
)
def test_a_variable_reaches_the_processes(launch: Launch, runtime: str, words: str) -> None:
    told = where("export A=1", "Do it.", {"runtime": frozenset({runtime} - {""})}, lambda: launch)
    assert words in told
    assert bool(words) == bool(told)


@pytest.mark.parametrize(
    ("text", "start", "never"),
    [
        (TWICE, "Start one launcher on each node, with one process for each GPU (mpiexec: --ppn): at least 4 ranks share 2", "torchrun|31000|set_device"),
        (UNBOUND, "Bind each process first, torch.cuda.set_device(int(os.environ['LOCAL_RANK'])): ranks 1 and 0 took the GPU at 0000:17:00.0", "CUDA_VISIBLE_DEVICES="),
        (SERVER_AND_TRAINER, "Give server and trainer different GPUs", "set_device|torchrun"),
        (GLOBAL_RANK, "Choose the device by the rank on this node", "nproc_per_node=gpu"),
    ],
)  # fmt: skip
def test_the_log_s_ranks_and_hosts_choose_the_action(
    text: str, start: str, never: str, rules: RuleSet
) -> None:
    found = first(text, rules)
    assert found.fixes[0].do.startswith(start)
    shown = [f"{fix.do} {fix.run or ''}" for fix in found.fixes[1:]] + [found.fixes[0].run or ""]
    assert not [text for text in shown for word in never.split("|") if word in text]


@pytest.mark.parametrize(
    ("head", "several"),
    [
        ("", False),
        ("torchrun --nnodes=1 --nproc_per_node=8 fit.py\n", False),
        ("torchrun --nnodes=2 --node_rank=0 fit.py\n", True),
        ("accelerate launch --num_machines 4 fit.py\n", True),
        ("#SBATCH -N 2\n", True),
        ("INFO parallel_state.py: rank=9 local_rank=1\n", True),
        ("INFO parallel_state.py: rank=1 local_rank=1\n", False),
        ("n1:1:1 [0] NCCL INFO comm 0x1 rank 0\nn2:1:1 [0] NCCL INFO comm 0x1 rank 4\n", True),
        ("n1:1:1 [0] NCCL INFO comm 0x1 rank 0\nn1:2:2 [1] NCCL INFO comm 0x1 rank 1\n", False),
    ],
)
def test_several_machines_get_no_launch_of_one(head: str, several: bool, rules: RuleSet) -> None:
    fixes = first(head + LONELY.format(rank=1), rules).fixes
    settings = [fix.do for fix in fixes if (fix.run or "").startswith("export NCCL_DEBUG=INFO")]
    assert any(re.search("on every node|job script", do) for do in settings) == several, settings
    starts = [fix.run for fix in fixes if re.match("(?:torchrun|accelerate launch) ", fix.run or "")]
    assert not several or not starts


STACK = """\
{line}
Traceback (most recent call last):
  File "{start}", line 8, in <module>
    sys.exit(main())
  File "/srv/env/lib/python3.11/site-packages/tool/cli.py", line 22, in main
    model = DistributedDataParallel(model)
"""


@pytest.mark.parametrize(
    ("line", "start", "run"),
    [
        ("$ A=0,1 fairseq-train data-bin --arch t", "/srv/env/bin/fairseq-train", "NCCL_DEBUG=INFO A=0,1 fairseq-train data-bin --arch t"),
        ("(env) me@gpu1:~/x$ bash tools/dist_train.sh a.py 4", "/srv/tools/train.py", "NCCL_DEBUG=INFO bash tools/dist_train.sh a.py 4"),
        ("+ srun -n 4 python -u fit.py --lr 1", "/srv/fit.py", "NCCL_DEBUG=INFO srun -n 4 python -u fit.py --lr 1"),
        ("$ cat out.log", "/srv/env/bin/tool-cli", "export NCCL_DEBUG=INFO"),
        ("$ cat out.log", "/srv/env/lib/python3.11/site-packages/tool/launcher.py", "export NCCL_DEBUG=INFO"),
        ("$ cat out.log", "/srv/fit.py", "NCCL_DEBUG=INFO torchrun --nproc_per_node=gpu fit.py"),
        ("$ python fit.py --lr $LR", "/srv/fit.py", "NCCL_DEBUG=INFO torchrun --nproc_per_node=gpu fit.py"),
    ],
)  # fmt: skip
def test_the_reader_s_own_command_is_kept(line: str, start: str, run: str, rules: RuleSet) -> None:
    lonely = LONELY.format(rank=1).removeprefix("[rank1]: ")
    found = first(STACK.format(line=line, start=start) + lonely, rules)
    assert run in [fix.run for fix in found.fixes]


PORT = """\
{head}RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
"""


@pytest.mark.parametrize(
    ("head", "run"),
    [
        (
            "accelerate launch --num_processes 2 fit.py\n",
            "accelerate launch --main_process_port 29501 train.py",
        ),
        ("deepspeed --num_gpus 2 fit.py\n", "deepspeed --master_port 29501 train.py"),
        ("torchrun --nproc_per_node=2 fit.py\n", "torchrun --standalone --nproc_per_node=2 train.py"),
        ("torchrun --nnodes=2 --nproc_per_node=8 fit.py\n", None),
    ],
)
def test_another_port_is_given_to_the_launcher_that_runs(head: str, run: str | None, rules: RuleSet) -> None:
    found = first(PORT.format(head=head), rules)
    assert (found.rule, found.fixes[0].run) == ("dist-address-in-use", run)
    assert "another port" in found.fixes[0].do


def test_torchrun_on_several_nodes_takes_its_log_options_from_the_environment(rules: RuleSet) -> None:
    text = "torchrun --nnodes=2 fit.py\n[rank9]: torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n"
    found = first(text, rules)
    assert found.fixes[0].run == "export PET_LOG_DIR=logs PET_REDIRECTS=3 PET_TEE=3"
    assert found.fixes[0].do.endswith("Set it on every node before the program starts.")


def test_what_settles_a_cause_is_not_said_twice(rules: RuleSet) -> None:
    text = "slurmstepd: error: Detected 1 oom_kill event in StepId=52011.0. Some of the step tasks have been OOM Killed.\n"
    found = first(text, rules)
    assert found.rule == "scheduler-oom-kill"
    assert (found.fixes[0].run or "").startswith("sacct -j 52011 --format=")
    assert found.decide_with is None


SRUN_TASKS = """\
Traceback (most recent call last):
  File "/u/me/fit.py", line 41, in main
    dist.init_process_group("nccl")
RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:23456 (errno: 98 - Address already in use).
"""
ENDS = "srun: error: node7: tasks 1-2: Exited with exit code 1\n"


def test_two_tasks_that_listen_are_both_rank_0_and_no_rank_is_named(rules: RuleSet) -> None:
    twice = first(SRUN_TASKS * 2 + ENDS, rules)
    assert twice.fixes[0].do.startswith("Set the ranks inside each task, not once in the job script: 2 tasks")
    assert twice.rank is None
    once = first(SRUN_TASKS + ENDS, rules)
    assert not any("tasks tried" in fix.do for fix in once.fixes)


BARRIER = """\
Traceback (most recent call last):
  File "/home/user/lm/run.py", line 64, in <module>
    dist.barrier()
  File "/home/user/env/lib/python3.10/site-packages/torch/distributed/distributed_c10d.py", line 3696, in barrier
    work = default_pg.barrier(opts=opts)
torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, invalid usage
"""
REFUSED = """\
[W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29511 (errno: 98 - Address already in use).
[E socket.cpp:472] [c10d] The server socket has failed to listen on any local network address.
"""


@pytest.mark.parametrize(
    "text",
    [
        REFUSED + BARRIER,
        "srun: job 7 queued and waiting for resources\n" + REFUSED + BARRIER,
        "accelerate launch --num_processes 8 fit.py\n" + PORT.format(head="") * 2,
    ],
)
def test_a_port_that_this_job_holds_itself_asks_for_one_launcher_a_node(text: str, rules: RuleSet) -> None:
    found = first(text, rules)
    assert found.rule == "dist-address-in-use"
    assert found.fixes[0].do.startswith("Start one launcher on each node")


def test_a_check_asks_a_user_of_a_cluster_for_no_root_rights(rules: RuleSet) -> None:
    killed = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.\n"
    assert "sudo dmesg" in (first(killed, rules).decide_with or "")
    shared = first("srun: error: node7: task 0: Exited with exit code 1\n" + killed, rules)
    assert shared.decide_with == "cat /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/memory.events"


def test_a_note_on_a_command_that_is_left_out_is_left_out(rules: RuleSet) -> None:
    head = "OSError: [WinError 1455] C:\\env\\lib\\cudnn64.dll\n"
    timeout = "RuntimeError: DataLoader timed out after 30 seconds\n"
    told = [first(text, rules) for text in (head, timeout)]
    assert all(one.decide_with or not one.decide_note for one in told)


def test_a_port_that_stands_in_the_program_s_line_is_the_one_to_change(rules: RuleSet) -> None:
    text = SRUN_TASKS.replace('("nccl")', '("nccl", init_method="tcp://127.0.0.1:12355")').replace(
        "[::]:23456 (", "("
    )
    found = first(text.replace("The server socket has failed to bind to (errno: 98 - ", "("), rules)
    assert found.rule == "dist-address-in-use"
    assert any("12355" in f"{fix.do} {fix.run}" for fix in found.fixes)


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("A=1 python train.py; dmesg", ["A=1 python train.py", "dmesg"]),
        ("python -c 'a; b'; A=1 python train.py", ["python -c 'a; b'", "A=1 python train.py"]),
        ("python -c 'a; b'; ls train.py", ["python -c 'a; b'; ls train.py"]),
    ],
)
def test_the_start_of_the_program_is_told_from_its_neighbours(command: str, parts: list[str]) -> None:
    assert apart(command) == parts


@pytest.mark.parametrize(
    ("own", "run"),
    [
        ("$ python3 learn.py --env Walker-v3\n", "env -u LD_LIBRARY_PATH python3 learn.py --env Walker-v3"),
        ("", "unset LD_LIBRARY_PATH"),
    ],
)
def test_a_variable_is_taken_out_of_the_reader_s_own_command(own: str, run: str, rules: RuleSet) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/srv/rl/learn.py", line 3, in <module>\n    import torch\n'
        '  File "/srv/env/lib/python3.11/site-packages/torch/__init__.py", line 367, in <module>\n'
        "    from torch._C import *\n"
        "ImportError: /usr/local/cuda-11.2/lib64/libcublas.so.11: undefined symbol: cublasLtGetStatusString, "
        "version libcublasLt.so.11\n"
    )
    if not own:
        text = text[text.index("ImportError") :]
    found = first(own + text, rules)
    assert found.rule == "cuda-library-shadowed"
    assert run in [fix.run for fix in found.fixes], [fix.run for fix in found.fixes]


def test_a_tool_starts_the_reader_s_own_command() -> None:
    own = Launch("torchrun --nproc_per_node=gpu", "", False, False, False, own="python fit.py -s data/train")
    told = started("compute-sanitizer --tool memcheck python train.py", own, ranked=False)
    assert told == "compute-sanitizer --tool memcheck python fit.py -s data/train"
