"""What is read out of whole texts in which nothing failed, kind by kind, with the same text made harmless."""

from __future__ import annotations

from importlib import import_module

import pytest
from pace import bounded

from torchdoctor.extract import of_whole
from torchdoctor.extract.readings.passage import Passage
from torchdoctor.extract.readings.triggers import READINGS
from torchdoctor.intake.voice import hear
from torchdoctor.model import Event, EventKind, FactValue, Form, Transcript


def transcript(text: str) -> Transcript:
    lines = text.strip("\n").split("\n")
    events = tuple(
        Event(number, EventKind.LOG, line, "question.txt", number + 1, number + 1)
        for number, line in enumerate(lines)
        if line.strip()
    )
    spoken = [line for line in lines if line.strip()]
    return Transcript(("question.txt",), events, speech=hear(spoken, Form.LOG))


def facts(namespace: str, text: str) -> dict[str, FactValue]:
    module = import_module(f"torchdoctor.extract.readings.{namespace}")
    found = list(module.read(Passage(transcript(text))))
    assert {fact.name for fact in found} <= set(module.FACTS)
    assert all(fact.source.startswith("text:question.txt:") for fact in found)
    return {fact.name.partition(".")[2]: fact.value for fact in found}


@pytest.mark.parametrize("namespace", READINGS)
def test_names_begin_with_the_namespace(namespace: str) -> None:
    module = import_module(f"torchdoctor.extract.readings.{namespace}")
    assert namespace == module.NAMESPACE
    assert all(name.startswith(f"{namespace}.") for name in module.FACTS)


@pytest.mark.parametrize("namespace", READINGS)
def test_a_text_about_nothing_gives_nothing(namespace: str) -> None:
    assert facts(namespace, "Why is the sky blue?\n>>> 1 + 1\n2") == {}


def test_only_readings_whose_words_stand_in_the_text_are_run() -> None:
    assert [name for name, _ in of_whole(transcript("epoch 1 loss 0.3"))] == []
    names = [name for name, _ in of_whole(transcript(">>> torch.get_num_threads()"))]
    assert names == ["threads"]


LATE = """Why does it not work?
import os, torch
n = torch.cuda.device_count()
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
print("after", torch.cuda.device_count())

after {count}
"""


def test_a_variable_that_came_too_late() -> None:
    assert facts("late_env", LATE.format(count=4)) == {
        "touched_by": "n = torch.cuda.device_count()",
        "variable": "CUDA_VISIBLE_DEVICES",
        "no_effect": True,
    }


@pytest.mark.parametrize(
    "text",
    [
        LATE.format(count=1),  # it worked
        LATE.replace("n = torch.cuda.device_count()", "n = 4").replace("import os, torch", "import os"),
        # the touch stands in a function that is called later
        "Why?\nimport os, torch\ndef f():\n    torch.cuda.init()\n"
        'os.environ["CUDA_VISIBLE_DEVICES"] = "1"\nf()\nIt is still slow.',
        # nobody says or shows that it had no effect
        'Is this fine?\nimport torch, os\ntorch.cuda.init()\nos.environ["CUDA_VISIBLE_DEVICES"] = "1"',
    ],
)
def test_a_variable_in_time_or_without_a_sign(text: str) -> None:
    assert "no_effect" not in facts("late_env", text)


@pytest.mark.parametrize(
    ("text", "early_works"),
    [
        (
            "I set os.environ['CUDA_VISIBLE_DEVICES']='3' in main.py, but it will always use cuda:0.\n"
            "When I export CUDA_VISIBLE_DEVICES=3 in the shell,\nthe same code will use cuda:3",
            True,
        ),
        (
            "I set os.environ['CUDA_VISIBLE_DEVICES']='3' and it does not work, however "
            "CUDA_VISIBLE_DEVICES=3 python fit.py works",
            True,
        ),
        # the other way round, and words to readers
        (
            "I set os.environ['CUDA_VISIBLE_DEVICES']='1' and it works, but when I export it in bash it "
            "still uses GPU 0.",
            False,
        ),
        (
            "Set os.environ['CUDA_VISIBLE_DEVICES']='1' before you import torch, otherwise it has no effect. "
            "Setting it in the shell always works.",
            False,
        ),
    ],
)
def test_what_is_said_of_the_program_and_of_the_shell(text: str, early_works: bool) -> None:
    assert ("early_works" in facts("late_env", text)) is early_works


def test_tf32_by_setting_and_by_contrast() -> None:
    text = "Is the A100 broken?\nmax abs diff 4.1e-03\nallow_tf32 = True\n"
    assert facts("tensor_float", text) == {"difference": 0.0041, "card": "A100", "on": True}
    off = "Why?\nmax abs diff 4.1e-03\nallow_tf32 = False\nmax abs diff 2.0e-06\n"
    assert facts("tensor_float", off)["gone_without"] is True


@pytest.mark.parametrize(
    "text",
    [
        "The flag allows TF32 on A100.\nallow_tf32 = True\nmax abs diff 4.1e-03",  # nobody asks
        "Is it ok?\nA100 allow_tf32 = True\nmax abs diff 1.4e-06",  # too small for TF32
        "Is it ok?\nA100 allow_tf32 = True\nval accuracy 0.0041 error",  # no difference of results
    ],
)
def test_tf32_that_is_no_cause(text: str) -> None:
    found = facts("tensor_float", text)
    assert "difference" not in found or "on" not in found


FREE = """$ free -g
       total   used   free  shared  buff/cache  available
Mem:    1007    983      5     861          18          9
Swap:     63     {used}      0
"""


def test_pinned_memory_and_the_paging_file_of_windows() -> None:
    text = (
        "I cache all latents: pinned (page-locked) host memory: 41.8 GB, RAM 62.9/63.8 GB\n"
        "The desktop freezes because of the pagefile. Without --pin_memory it is fine.\n"
    )
    found = facts("pinned", text)
    assert (found["told_swapping"], found["fine_without"]) == (True, True)
    assert "told_swapping" not in facts("pinned", text.replace("because of", "with or without"))


def test_pinned_memory_as_a_share_of_the_machine() -> None:
    text = "8 ranks, pin_memory=True, why does it swap?\n" + FREE.format(used=63)
    text += '>>> torch.cuda.host_memory_stats()["allocated_bytes.current"] / 2**30\n105.0\n'
    found = facts("pinned", text)
    assert (found["swapping"], found["share"], found["bytes"]) == (True, 0.83, 8 * 105 * 1024**3)
    assert "swapping" not in facts("pinned", text.replace("63     63", "63      0"))
    assert facts("pinned", text.replace("pin_memory=True", "pin_memory=False").replace("host_mem", "x")) == {}


@pytest.mark.parametrize(
    ("words", "fine"),
    [
        ("With pin_memory=False swap stays at 0.", True),
        ("It does not swap without pinning.", True),
        ("With pin_memory=False it swaps as much.", False),
    ],
)
def test_the_contrast_without_pinning(words: str, fine: bool) -> None:
    text = "pin_memory=True, why?\n" + FREE.format(used=63) + words
    assert ("fine_without" in facts("pinned", text)) is fine


@pytest.mark.parametrize(
    ("text", "slower"),
    [
        ("num_threads = 1\naugment: 412.0 s   (python alone: 41.2 s)", 10.0),
        ("num_threads = 1\nWith torchrun 9.0 s, with OMP_NUM_THREADS=12 torchrun it takes 3.0 s.", 3.0),
        ("num_threads = 1\n$ python a.py\ntotal 5.0 s\n$ torchrun a.py\ntotal 50.0 s", 10.0),
        ("num_threads = 1\n8.0 it/s under torchrun, 80.0 it/s with plain python", 10.0),
        ("num_threads = 1\nstep 0.41 s with torchrun, 0.40 s with plain python", None),
        ("num_threads = 8\naugment: 412.0 s   (python alone: 41.2 s)", None),
        ("OMP_NUM_THREADS=1 212.0 ms\n2 threads 110.0 ms\n4 threads 60.0 ms", None),  # a benchmark
    ],
)
def test_one_thread_and_what_it_costs(text: str, slower: float | None) -> None:
    assert facts("threads", "Why is the CPU slow with torchrun?\n" + text).get("slower") == slower


@pytest.mark.parametrize(
    ("rows", "slower"),
    [
        ("num_workers=0 40.0 s\nnum_workers=4 80.0 s\nnum_workers=8 160.0 s", 4.0),
        ("0 workers: 40.0 it/s\n4 workers: 20.0 it/s", 2.0),
        ("num_workers=0 160.0 s\nnum_workers=4 40.0 s\nnum_workers=8 80.0 s", None),
        ("num_workers=4 40.0 s", None),
    ],
)
def test_more_workers_that_are_slower(rows: str, slower: float | None) -> None:
    assert facts("worker_timing", "Why?\n" + rows).get("slower") == slower


def test_every_epoch_waits_for_its_workers() -> None:
    text = "Why, with num_workers=8?\nepoch 0: first batch 40.0 s\nepoch 1: first batch {second} s\n"
    assert facts("worker_restart", text.format(second="39.5"))["seconds"] == 39.5
    assert facts("worker_restart", text.format(second="0.2")) == {}


CALLS = "\n".join(f"call {number} {{}} ms" for number in range(20))


def test_outliers_of_equal_calls() -> None:
    usual = ["10.0"] * 20
    slow = [*usual[:8], "90.0", *usual[9:15], "95.0", *usual[16:]]
    asked = "Why are some calls of the GPU slow?\n"
    assert facts("latency", asked + CALLS.format(*slow))["tail"] == 9.5
    assert facts("latency", asked + CALLS.format("900.0", "90.0", *usual[2:])) == {}  # warming up
    assert facts("latency", asked + "prompts of any length\n" + CALLS.format(*slow)) == {}
    assert facts("latency", asked + "p50 4.0 ms p99 40.0 ms")["tail"] == 10.0
    assert facts("latency", asked + "p50 4.0 ms p99 5.0 ms") == {}
    # the unit stands once in the line
    assert facts("latency", asked + "p50 4.0 ms p99 40.0")["tail"] == 10.0
    assert facts("latency", asked + "p50 9,8 ms p99 98.0")["tail"] == 10.0
    assert facts("latency", asked + "p50 4.0 ms p99 5.0") == {}


SMI = """|   {0}  NVIDIA A100-SXM4-40GB   On  | 00000000:07:00.0 Off |   0 |
| N/A   {1}C    P0     {2}W / {3}W |  {4}MiB / 40960MiB |    {5}%      Default |
"""


def smi(*rows: tuple[int, int, int, int, int, int]) -> str:
    return "Why is it slow, with torchrun?\n" + "".join(SMI.format(*row) for row in rows)


def test_rows_of_nvidia_smi_side_by_side() -> None:
    even = [(index, 50, 390, 400, 20_000, 100) for index in range(4)]
    assert facts("gpu_rows", smi(*even)) == {}
    assert facts("gpu_rows", smi((0, 50, 390, 400, 30_000, 100), *even[1:])) == {
        "first_heavier": 1.5,
        "symmetric": True,
    }
    assert facts("gpu_rows", smi(*even[:2], (2, 36, 149, 150, 20_000, 100), even[3]))["low_limit"] == 2
    assert facts("gpu_rows", smi(*even[:3], (3, 91, 140, 400, 20_000, 100)))["hot"] == 3
    assert facts("gpu_rows", smi(*even[:3], (3, 91, 395, 400, 20_000, 100))) == {}  # warm, and as fast
    held = smi((0, 30, 50, 400, 9_000, 0))
    assert "held" not in facts("gpu_rows", held)
    assert facts("gpu_rows", held + "How do I free it?")["held"] is True


def test_processes_that_keep_memory_on_the_first_gpu() -> None:
    row = "|    {}   N/A  N/A   {}      C   python    {}MiB |\n"
    table = row.format(5, 100, 2885) + row.format(5, 101, 1000) + row.format(6, 101, 2889)
    assert facts("gpu_rows", "Why do I see that with DDP?\n" + table)["strays"] == 1
    assert facts("gpu_rows", "Why do I see that with DDP?\n" + table.replace("1000MiB", "0MiB")) == {}


def test_a_part_of_a_card_that_somebody_misses_the_rest_of() -> None:
    text = ">>> torch.cuda.get_device_name(0)\n'{}'\nWhy do I get only 8 GB?"
    assert facts("gpu_slice", text.format("NVIDIA A10-8Q"))["name"] == "NVIDIA A10-8Q"
    assert "MIG 1g.10gb" in str(facts("gpu_slice", text.format("NVIDIA A100-SXM4-80GB MIG 1g.10gb"))["name"])
    assert facts("gpu_slice", text.format("NVIDIA A100-PCIE-40GB")) == {}


FORK = "Why does it hang?\nimport torch\nfrom multiprocessing import Process\n{}p = Process(target=f)\n{}"


def test_forks_that_hang_unless() -> None:
    assert facts("fork_hang", FORK.format("", "It works with spawn."))["works_otherwise"] is True
    assert facts("fork_hang", FORK.format("", "f()  # doesn't hang without this line"))["works_otherwise"]
    assert "works_otherwise" not in facts("fork_hang", FORK.format("", "No idea."))
    chosen = 'set_start_method("spawn")\n'
    assert facts("fork_hang", FORK.format(chosen, "It works with spawn.")) == {}


SAMPLER = """Is that a bug?
s = DistributedSampler(ds, shuffle={shuffle})
for epoch in range(2):
    {body}
epoch 0 first [7, 1, 9]
epoch 1 first {second}
"""


@pytest.mark.parametrize(
    ("shuffle", "body", "second", "repeats"),
    [
        ("True", "train(loader)", "[7, 1, 9]", True),
        ("True", "train(loader)", "[2, 3, 4]", False),
        ("True", "s.set_epoch(epoch)", "[7, 1, 9]", False),
        ("False", "train(loader)", "[7, 1, 9]", False),
    ],
)
def test_epochs_in_the_same_order(shuffle: str, body: str, second: str, repeats: bool) -> None:
    found = facts("sampler_order", SAMPLER.format(shuffle=shuffle, body=body, second=second))
    assert ("repeats" in found) is repeats


def test_wild_solutions_of_least_squares() -> None:
    text = ">>> torch.linalg.lstsq(A.cuda(), b).solution\ntensor([{}])\nrank 2 of {}\n"
    assert facts("least_squares", text.format("8.1e+12", 3)) == {"wild": True, "rank_low": True}
    assert facts("least_squares", text.format("8.1e+12", 2)) == {"wild": True}
    assert facts("least_squares", text.format("0.25", 3)) == {}


TRACED = """Why?
def forward(self, x):
    {branch}
        return x * 2
    return x
t = torch.jit.trace(m, x)
print(m(y), t(y))
tensor([1.]) tensor([{second}])
"""


def test_a_trace_that_took_one_way() -> None:
    found = facts("traced", TRACED.format(branch="if x.sum() > 0:", second="2."))
    assert (found["branch"], found["differs"]) == ("if x.sum() > 0:", True)
    assert "differs" not in facts("traced", TRACED.format(branch="if x.sum() > 0:", second="1."))
    assert facts("traced", TRACED.format(branch="if self.training:", second="2.")) == {}


def test_an_index_that_names_two_cards() -> None:
    text = "GPU 0: GeForce GT 1030 (UUID: GPU-1)\nGPU 1: GeForce RTX 3080 (UUID: GPU-2)\n"
    asked = ">>> torch.cuda.get_device_name(0)\n'{}'"
    found = facts("device_names", text + asked.format("GeForce RTX 3080"))
    assert found == {"differ": True, "by_torch": "GeForce RTX 3080", "by_smi": "GeForce GT 1030"}
    assert facts("device_names", text + asked.format("NVIDIA GeForce GT 1030")) == {}
    assert facts("device_names", text + asked.format("GeForce RTX 4090")) == {}  # another machine's
    hidden = "$ CUDA_VISIBLE_DEVICES=1 python\n"
    assert facts("device_names", text + hidden + asked.format("GeForce RTX 3080")) == {}


def test_memory_that_rises_to_the_end() -> None:
    text = "Why does memory grow?\nlosses.append(loss)\n" + "iter {} | gpu mem {} GiB\n" * 5
    rising = [part for step in range(5) for part in (step * 100, 2.0 + step)]
    found = facts("memory_growth", text.format(*rising))
    assert (found["gpu"], found["kept"]) == (3.0, "losses.append(loss)")
    level = [part for step in range(5) for part in (step * 100, min(4.0, 2.0 + 2 * step))]
    assert facts("memory_growth", text.format(*level)) == {}
    sizes = [part for step in range(5) for part in (8 * 2**step, 2.0 + step)]  # batch sizes that were tried
    assert facts("memory_growth", text.format(*sizes)) == {}
    host = text.replace("gpu mem", "RAM") + "num_workers=0\niter 400 | RAM 2.1 GiB\n"
    assert facts("memory_growth", host.format(*rising))["flat_without"] is True


def test_gradients_and_losses_at_a_prompt() -> None:
    assert facts("session", ">>> loss\ntensor(nan, grad_fn=<NllLossBackward0>)") == {"loss_nan": True}
    assert facts("session", ">>> loss\ntensor(0.3)") == {}
    off = "Why?\n>>> torch.is_grad_enabled()\nFalse"
    assert facts("session", off) == {"grad_off": True}
    assert facts("session", ">>> torch.set_grad_enabled(False)\n" + off) == {}
    text = (
        ">>> w = torch.ones(3, requires_grad=True){}\n>>> (w * 2).sum().backward()\n>>> print(w.grad)\nNone"
    )
    assert facts("session", text.format(".cuda()"))["non_leaf_grad"] is True
    assert facts("session", text.format("")) == {}


def test_an_argument_that_was_cut_along_its_layers() -> None:
    text = "Why, with nn.DataParallel?\nx [64, 50, 128] h [8, 64, 256]\nin: x [16, 50, 128] h [2, {}, 256]"
    assert facts("scattered", text.format(64)) == {"uneven": True, "replicas": 4, "parallel": True}
    assert facts("scattered", text.format(16)) == {}


HOSTILE = (
    "os.environ['CUDA_VISIBLE_DEVICES'] = '1' ", "torch.cuda.init() ", "tensor(1e-3, ", "max diff 1e-3 A100 ",
    "num_workers=0 RAM 1 GiB ", "call 1 5 ms ", "| 0 N/A N/A 1 C x 1MiB | ", "if x.sum(", "[1, 2] (3, 4) ",
    "Mem: 1 2 3 ", "epoch 1 [1, 2, 3] ", "1 1 1 1 1 1 ", "process memory on gpu ", "works spawn hang ",
)  # fmt: skip


@pytest.mark.parametrize("seed", HOSTILE)
def test_time_is_bounded_for_texts_that_nearly_match(seed: str) -> None:
    text = "Why does it grow, hang, differ with torchrun?\n" + "\n".join([seed * 15] * 300)
    found = Passage(transcript(text))
    modules = [import_module(f"torchdoctor.extract.readings.{namespace}") for namespace in READINGS]
    bounded(3.0, lambda: [list(module.read(found)) for module in modules])  # all 45 together


def test_a_gpu_that_torch_does_not_see() -> None:
    text = ">>> torch.__version__\n'2.1.2{}'\n>>> torch.cuda.is_available()\n{}\nI have an RTX 3060, why?\n"
    found = facts("availability", text.format("+cpu", "False"))
    assert found == {"missing": True, "gpu": "RTX 3060", "cpu_build": "2.1.2+cpu"}
    assert facts("availability", text.format("+cpu", "True")) == {}
    assert "cpu_build" not in facts("availability", text.format("+cu121", "False"))
    hidden = text.format("+cu121", "False") + "$ echo $CUDA_VISIBLE_DEVICES\n{}\n"
    assert facts("availability", hidden.format("-1"))["hidden"] is True
    assert "hidden" not in facts("availability", hidden.format("0"))
    mac = text.format("+cpu", "False") + "It is a MacBook."
    assert facts("availability", mac) == {}


@pytest.mark.parametrize(
    ("build", "driver", "too_old"),
    [
        ("121", "10.2", True),
        ("121", "11.4", True),
        ("121", "12.0", False),
        ("118", "11.0", False),
        ("102", "10.1", True),
    ],
)
def test_a_driver_that_is_too_old_for_the_build(build: str, driver: str, too_old: bool) -> None:
    text = f">>> torch.__version__\n'2.1.2+cu{build}'\n>>> torch.cuda.is_available()\nFalse\n"
    text += f"| CUDA Version: {driver} |\nWhy?"
    assert ("driver_cuda" in facts("availability", text)) is too_old


BRANCH = """Why does it hang?
for epoch in range(3):
    if rank == 0:
        save(model)
{call}
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("        dist.barrier()", True),
        ("    dist.barrier()", False),
        ("        pass\n    if rank == 0:\n        dist.barrier()", True),
        ("        dist.barrier()\n    else:\n        dist.barrier()", False),
        ("        # dist.barrier()", False),
    ],
)
def test_a_collective_under_a_test_of_the_rank(call: str, told: bool) -> None:
    assert ("call" in facts("rank_branch", BRANCH.format(call=call))) is told


def test_the_spread_of_one_value() -> None:
    assert (
        facts("session", ">>> x = torch.tensor([3.0])\n>>> x.std()\ntensor(nan)")["single_value"] == "x.std()"
    )
    assert facts("session", ">>> x = torch.tensor([3.0, nan])\n>>> x.std()\ntensor(nan)") == {}


SLOW = "Why is my job so slow? The environment:\n\n"


@pytest.mark.parametrize(
    ("line", "variable"),
    [
        ("CUDA_LAUNCH_BLOCKING=1", "CUDA_LAUNCH_BLOCKING=1"),
        ('declare -x PYTORCH_NO_CUDA_MEMORY_CACHING="1"', "PYTORCH_NO_CUDA_MEMORY_CACHING=1"),
        ("ENV TORCH_DISTRIBUTED_DEBUG=DETAIL", "TORCH_DISTRIBUTED_DEBUG=DETAIL"),
        ("- name: CUDA_LAUNCH_BLOCKING\n  value: '1'", "CUDA_LAUNCH_BLOCKING=1"),
        ("CUDA_LAUNCH_BLOCKING=0", None),
        ("TORCH_DISTRIBUTED_DEBUG=OFF", None),
        ("NCCL_DEBUG=WARN", None),
    ],
)
def test_variables_for_debugging(line: str, variable: str | None) -> None:
    assert facts("debug_env", SLOW + line).get("variable") == variable
    assert facts("debug_env", f"Variables of the job:\n\n{line}") == {}


def test_nan_in_half_precision_alone() -> None:
    text = "My model gives nan logits in float16. "
    assert facts("half_nan", text + "In float32 the output is correct.").keys() == {
        "output",
        "sound_otherwise",
    }
    assert facts("half_nan", text + "In float32 it is nan, too.") == {}
    assert facts("half_nan", "The loss is nan in fp16, my optimizer is Adam. In fp32 it works.") == {}


def test_residuals_of_two_devices() -> None:
    code = "x = torch.linalg.lstsq(A, b).solution\ny = torch.linalg.lstsq(A.cuda(), b.cuda()).solution\n"
    printed = "print((A @ x - b).norm())  # 4.13\nprint((A.cuda() @ y - b.cuda()).norm())  # "
    assert facts("least_squares", f"{code}{printed}1.9e+05") == {"wild": True, "other_solver": True}
    assert facts("least_squares", f"{code}{printed}4.14") == {}


def test_a_stack_in_a_barrier_tells_more_than_words() -> None:
    text = "Workers of multiprocessing.Pool hang for ever after the fork.\n\n"
    assert facts("fork_hang", text + "#1  0x7f in gomp_team_barrier_wait_end ()").keys() == {
        "starts",
        "hangs",
        "works_otherwise",
    }
    assert facts("fork_hang", text + "  31.2%  libgomp.so  gomp_team_barrier_wait_end") == {}


@pytest.mark.parametrize(
    ("words", "told", "hangs"),
    [
        ("My DDP job hangs: the shards are not split evenly, rank 1 waits.", "not split evenly", True),
        ("We have a different number of batches on each rank, is that fine with DDP?", None, None),
        ("I get uneven batches per rank with DDP and it is stuck at the end.", "uneven batches", True),
        ("The Join API of DDP lets ranks with uneven inputs end without a hang, I read.", None, None),
        ("My single process hangs with uneven batches.", None, None),
        ("Uneven batches make DDP ranks hang.", None, None),
    ],
)
def test_ranks_with_other_numbers_of_batches(words: str, told: str | None, hangs: bool | None) -> None:
    found = facts("uneven_loops", words)
    assert (found.get("told"), found.get("hangs")) == (told, hangs)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("My GPU memory keeps growing with every epoch until the training stops.", "memory_grows"),
        ("I train with your code and there is a GPU memory leak.", "memory_grows"),
        ("My loss becomes nan after 20 epochs.", "loss_nan"),
        ("I doubled the batch size and GPU memory increased in training, is there a rule?", None),
        ("The GPU memory leak in my training is fixed.", None),
        ("If the loss becomes nan, I usually lower the learning rate.", None),
    ],
)
def test_complaints_in_plain_words(said: str, name: str | None) -> None:
    assert facts("complaint", said) == ({name: True} if name else {})


def test_a_solution_far_above_the_one_beside_it() -> None:
    text = (
        "Why do these two differ on my GPU?\n"
        "print(torch.linalg.lstsq(A, B).solution.ravel())\n"
        "print(torch.linalg.lstsq(A.cuda(), B.cuda()).solution.ravel())\n"
        "tensor([-0.2778,  1.1944,  0.6389])\n"
        "tensor([{}, 0.5], device='cuda:0')"
    )
    assert facts("least_squares", text.format("153933.1250"))["wild"] is True
    assert facts("least_squares", text.format("-0.2778")) == {}


def test_a_difference_that_is_rounding_of_large_results() -> None:
    text = (
        "Why do my CPU and my RTX 3090 differ?\n"
        "torch.backends.cuda.matmul.allow_tf32 = True\n"
        "print((c - g).abs().max(), c.abs().max())\n"
        "tensor(6.1035e-05) tensor({})"
    )
    assert facts("tensor_float", text.format("101.8410")) == {}
    assert facts("tensor_float", text.format("1.8410"))["difference"] == 6.1035e-05


@pytest.mark.parametrize(
    ("words", "input_found"),
    [
        ("If I set use_reentrant=False it works.", True),
        ("I have use_reentrant=False and it works.", False),
    ],
)
def test_the_other_form_of_a_checkpoint_as_a_remedy(words: str, input_found: bool) -> None:
    text = f"I call model.gradient_checkpointing_enable() on a frozen model with LoRA. {words} Why?"
    assert ("input" in facts("no_gradient", text)) is input_found


def test_a_variable_that_slurm_sets_for_a_job_without_gpus() -> None:
    text = (
        "I wonder why my GPU is not seen.\n"
        '$ python -c "import torch; print(torch.cuda.is_available())"\nFalse\n'
        "$ echo $CUDA_VISIBLE_DEVICES\n{}"
    )
    assert facts("availability", text.format("NoDevFiles"))["hidden"] is True
    assert "hidden" not in facts("availability", text.format("0"))


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        (
            "\u6211\u7528\u4e86fp16\u6a21\u5f0f\uff0c\u51fa\u73b0loss\u4e3anan\u7684\u60c5\u51b5\u3002\u600e\u4e48\u529e\uff1f",
            True,
        ),
        ("I use K.set_floatx('float16').\nThe total loss is nan. Any ideas?", False),
        ("I follow the tensorflow guide.\nMy loss is nan with mixed precision, why?", False),
        ("I came from tensorflow to torch.\nMy loss is nan with mixed precision, why?", True),
    ],
)
def test_a_loss_that_is_told_to_be_nan(text: str, lost: bool) -> None:
    assert facts("complaint", text).get("loss_nan", False) is lost
