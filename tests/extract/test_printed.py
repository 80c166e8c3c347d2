"""Facts of lines that programs print: losses, counts, memory, stores, listings, loaders."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from extracted import values

from torchdoctor.extract import NAMESPACES, of_event, store, torch_in_folder
from torchdoctor.model import Event, EventKind, FactValue, Frame, State, Transcript


# Losses that are not a number, in the formats of different programs, and look-alikes
@pytest.mark.parametrize(
    "text",
    [
        "step 5 loss: nan",
        "Speed 2178.40 samples/sec   Loss nan   LearningRate 0.001000",
        "{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-5}",
        '{"loss": NaN, "epoch": 1}',
        "epoch 1 train_loss=inf",
        "loss tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)",
        " 10%|#  | 2/20 [00:01<00:02, 3it/s, loss=nan, v_num=0]",
        "loss_cls: 3.1, loss_bbox: nan",
        "total_word=29310 ppl=nan",
        "total_loss -> nan",
        "Loss_D: 0.31 Loss_G: nan",
        "lossD=nan",
        "     1/299     5.31G       nan       nan       nan        71       640: 100%|###| 110/110",
    ],
)
def test_a_loss_that_is_no_number(text: str) -> None:
    assert values("loss", text) == {"not_a_number": True}


@pytest.mark.parametrize(
    "text",
    [
        "     1/299     5.31G    0.1021   0.06512   0.04411        71       640: 100%|###| 110/110",
        "number of nan iterations: 0",
        "best_loss: inf",
        "Validation loss decreased (inf --> 0.31)",
        "val_loss improved from inf to 0.2",
        "loss_scale inf --> 65536",
        "MeanSquaredError: 0.01",
        "skip_nan_loss: True",
        "loss nan_count=0",
        "loss: nano",
        "loss: 0.3, info: nan",
        "finance loss 3.2",
    ],
)
def test_look_alikes(text: str) -> None:
    assert values("loss", text) == {}


# The number of trainable parameters, in the forms in which programs print it
def count(*texts: str) -> FactValue:
    return values("trainable", *texts, "does not require grad", at=-1).get("params")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("trainable params: 0 || all params: 6,738,415,616 || trainable%: 0.0000", 0),
        ("trainable params: 8,388,608 || all params: 13,024,252,928 || trainable%: 0.0644", 8_388_608),
        ("Trainable params: 1,024", 1024),
        ("11.2 M    Trainable params", 11_200_000),
        ("0         Trainable params", 0),
        ("Trainable params: 1.5 M", 1_500_000),
        ("Non-trainable params: 0", None),
        ("7.0 K     Non-trainable params", None),
        ("all params: 0", None),
    ],
)
def test_forms(text: str, value: FactValue) -> None:
    assert count(text) == value


def test_the_last_count_before_the_error_decides() -> None:
    assert (
        count("trainable params: 99 || all params: 99", "step 1", "trainable params: 0 || all params: 99")
        == 0
    )


# Records of kills for memory, and host memory that rises
@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("Out of memory: Killed process 93311 (python) total-vm:428113344kB", True),
        ("Out of memory: Kill process 812 (java) score 901 or sacrifice child", False),
        ("Memory cgroup out of memory: Killed process 1211 (pt_data_worker) total-vm:2kB", True),
        ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=pt_main_thread,pid=4,uid=0", True),
    ],
)
def test_the_victim(line: str, ours: bool) -> None:
    found = values("host_memory", line)
    assert (found["kill_recorded"], found["ours"]) == (True, ours)


def test_a_record_anywhere_counts_for_every_event() -> None:
    lines = [
        "DataLoader worker (pid 3) is killed by signal: Killed.",
        "$ dmesg",
        "x oom-kill:constraint=A,task=python,pid=3",
    ]
    assert values("host_memory", *lines)["kill_recorded"] is True


def test_without_a_record_nothing_is_known() -> None:
    assert "kill_recorded" not in values("host_memory", "Killed")


@pytest.mark.parametrize(
    ("lines", "grew"),
    [
        ([f"[worker 0] step {n} rss {3 + 2 * n} GiB" for n in range(6)], True),
        ([f"epoch {n} host mem {30 + 25 * n}.0 GB" for n in range(5)], True),
        ([f"step {n} RAM: {58 + n % 2}.3/503.4 GB" for n in range(8)], False),
        (["rss 3 GiB", "rss 9 GiB"], None),
        ([f"step {n} gpu mem {n} GB" for n in range(1, 9)], None),
    ],
)
def test_growth(lines: list[str], grew: bool | None) -> None:
    assert values("host_memory", *lines, at=-1).get("grew") is grew


# Whether a wait at the store was that for the ranks to meet
SOCKET = (
    "[c10d] waitForInput: socket SocketImpl(fd=61, addr=[a]:41022, remote=[b]:29500) timed out after 6000ms"
)


def waits_for(*texts: str, frames: tuple[Frame, ...] = ()) -> tuple[State, object]:
    """What is told of the first line that comes from the socket, else of the last line."""
    events = tuple(
        Event(number, EventKind.LOG, text, "job.log", number + 1, number + 1, frames=frames)
        for number, text in enumerate(texts)
    )
    asked = next((event for event in events if "waitForInput" in event.text), events[-1])
    facts = {fact.name: fact for fact in of_event("store", asked, Transcript(("job.log",), events))}
    assert facts.keys() <= set(store.FACTS)
    fact = facts["store.waits_for"]
    return fact.state, fact.value


def test_a_line_of_the_socket_alone_tells_nothing() -> None:
    assert waits_for("starting up", SOCKET) == (State.UNKNOWN, None)


@pytest.mark.parametrize(
    "beside",
    [
        "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0",
        "Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
    ],
)
def test_the_start_is_named_beside_it(beside: str) -> None:
    assert waits_for(SOCKET, beside) == (State.KNOWN, "the ranks")


def test_the_start_is_named_in_a_stack() -> None:
    frames = (Frame("/opt/torch/distributed/distributed_c10d.py", 1710, "init_process_group", "", "torch"),)
    assert waits_for(SOCKET, frames=frames) == (State.KNOWN, "the ranks")


@pytest.mark.parametrize("step", ["step 1200 loss 2.31", "Epoch 3:  12%| 120/1000 [1:02<7:01, 2.1it/s]"])
def test_a_run_that_made_steps_is_past_the_start(step: str) -> None:
    assert waits_for(step, SOCKET) == (State.KNOWN, "something later")


def test_other_messages_speak_of_the_start_themselves() -> None:
    assert waits_for("The client socket has timed out after 900s") == (State.KNOWN, "the ranks")


def test_the_id_of_nccl_is_asked_for_after_the_start() -> None:
    line = "[9] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store"
    assert waits_for(line) == (State.KNOWN, "something later")


# torch in a listing: beside the script it hides the package, in site-packages it is the package
ERROR = "No module named 'torch._custom_ops'"


def listed(*lines: str, error: str = ERROR, name: str = "ModuleNotFoundError") -> FactValue:
    events = [Event(0, EventKind.EXCEPTION, error, "ci.log", 1, 1, type=name)]
    events += [Event(n, EventKind.LOG, line, "ci.log", n + 1, n + 1) for n, line in enumerate(lines, 1)]
    found = list(of_event("listing", events[0], Transcript(("ci.log",), tuple(events))))
    assert {fact.name for fact in found} <= set(torch_in_folder.FACTS)
    return found[0].value if found else None


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (("+ ls /work/src", "configs  data.py  main.py  torch  tf"), "torch"),
        (("me@box:~/p$ ls -la", "drwxr-xr-x 4 me me 4096 Apr  2 10:01 torch/"), "torch/"),
        (("C:\\p> dir", "02.04.2024  10:01    812 torch.py"), "torch.py"),
        (("$ tree -L 1", ".", "\u251c\u2500\u2500 main.py", "\u2514\u2500\u2500 torch.py"), "torch.py"),
    ],
)
def test_a_listing_that_shows_it(lines: tuple[str, ...], name: str) -> None:
    assert listed(*lines) == name


@pytest.mark.parametrize(
    "lines",
    [
        ("$ ls /opt/venv/lib/python3.11/site-packages", "numpy  torch  torchvision"),
        ("$ ls /opt/conda/lib/python3.11/site-packages/torch", "torch  _C.so"),
        ("$ pip list", "torch    2.3.1"),
        ("$ ls", "torchvision-0.18.1  pytorch  torch-2.3.1.whl  my.torch"),
        ("torch", "$ ls", "main.py"),
    ],
)
def test_others_do_not(lines: tuple[str, ...]) -> None:
    assert listed(*lines) is None


def test_other_errors_are_not_asked_about() -> None:
    shown = ("$ ls", "torch")
    assert listed(*shown, error="No module named 'einops'") is None
    assert listed(*shown, name="RuntimeError") is None


# Frames of exceptions and stacks under a DataLoader
FETCH = Frame("/e/torch/utils/data/_utils/fetch.py", 54, "fetch", package="torch")

WORKER = Frame("D:\\e\\torch\\utils\\data\\_utils\\worker.py", 309, "_worker_loop", package="torch")


def getitem(code: str) -> Frame:
    return Frame("/home/u/data.py", 20, "__getitem__", code)


def extract(
    frames: tuple[Frame, ...], kind: EventKind = EventKind.EXCEPTION, text: str = ""
) -> dict[str, FactValue]:
    return values("loader", Event(0, kind, text, "run.log", 1, 1, frames=frames))


@pytest.mark.parametrize(
    ("code", "claim"),
    [
        ("img, gt = self.pairs[idx]", True),
        ("row = self.df.iloc[index]", True),
        ("x = self.data[self.order[i]]", True),
        ("y = frames[idx // 4]", True),
        ('label = line.split("\\t")[3]', False),
        ("box = boxes[0]", False),
    ],
)
def test_the_sample_index(code: str, claim: bool) -> None:
    assert extract((FETCH, getitem(code)))["by_sample_index"] is claim


def test_a_library_below_getitem_may_raise() -> None:
    below = Frame("/e/pandas/core/indexing.py", 1557, "_validate_integer", package="pandas")
    assert extract((FETCH, getitem("row = self.df.iloc[idx]"), below))["by_sample_index"] is True


def test_own_code_below_getitem_is_another_matter() -> None:
    below = Frame("/home/u/boxes.py", 9, "crop", "return boxes[i]")
    assert extract((FETCH, getitem("return crop(self.items[idx])"), below))["by_sample_index"] is False


def test_worker_and_main_process() -> None:
    assert extract((WORKER, FETCH, getitem("return self.x[i]")))["fetching"] is True
    assert extract((WORKER,))["fetching"] is True
    assert extract((Frame("/home/u/a.py", 1, "main"),))["fetching"] is False


def test_no_frames_no_facts() -> None:
    assert extract(()) == {}


def test_a_forked_child_in_a_lock() -> None:
    child = (Frame("multiprocessing/popen_fork.py", 71, "_launch"), Frame("", None, "__lll_lock_wait"))
    assert extract(child, EventKind.STACK)["child_waits_for_lock"] is True
    parent = (Frame("multiprocessing/popen_fork.py", 27, "poll"),)
    assert "child_waits_for_lock" not in extract(parent, EventKind.STACK)


# A fact that nothing reads is not read out of a text either
RULES = Path(__file__).parents[2] / "rules"

# what the sample of a rule in the documentation asks for
OF_THE_SAMPLE = {"assert.kernel"}


def test_every_fact_of_a_message_is_read() -> None:
    rules = "\n".join(path.read_text(encoding="utf-8") for path in RULES.rglob("*.toml"))
    modules = (import_module(f"torchdoctor.extract.{name}") for name in NAMESPACES.values())
    unread = {name for module in modules for name in module.FACTS if name not in rules}
    # `for` of a fix reads the facts of context.py
    assert {name for name in unread if not name.startswith("context.")} == OF_THE_SAMPLE
