"""What is advised where the log itself says what the reader has: his program, his value, his file."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import re

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.wording import stand_ins, to_put_in
from torchdoctor.intake import read_text
from torchdoctor.model import Diagnosis

SCATTER = (
    "../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:365: operator(): block: [9,0,0], thread: [3,0,0] "
    'Assertion `idx_dim >= 0 && idx_dim < index_size && "index out of bounds"` failed.\n'
)
LOOKUP = (
    "../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [4,0,0], thread: [7,0,0] "
    "Assertion `srcIndex < srcSelectDimSize` failed.\n"
)
EMBEDDING = (
    'Traceback (most recent call last):\n  File "{file}", line 20, in forward\n    {code}\n'
    '  File "/v/lib/python3.10/site-packages/torch/nn/modules/sparse.py", line 163, in forward\n    return F.embedding(\n'
    '  File "/v/lib/python3.10/site-packages/torch/nn/functional.py", line 2264, in embedding\n'
    "    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)\nIndexError: index out of range in self\n"
)
NDARRAY = (
    "/AppleInternal/Library/BuildRoots/a/com.apple.xbs/Sources/MetalPerformanceShaders/MPSCore/Types/MPSNDArray.mm:{line}: "
    "failed assertion `[MPSNDArray initWithDevice:descriptor:] Error: {what}'\n"
)
DOUBLE = (
    "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.\n"
)
CLONE = (
    'Traceback (most recent call last):\n  File "/usr/lib/python3.11/runpy.py", line 198, in _run_module_as_main\n    return _run_code(\n'
    '  File "{file}", line 71, in <module>\n    main()\n  File "{inner}", line 102, in start\n    limit = engine.max_ragged_tokens\n'
    "AttributeError: 'InferenceEngineV2' object has no attribute 'max_ragged_tokens'\n"
)
STARTED = (
    'Traceback (most recent call last):\n  File "{first}", line 8, in <module>\n    main()\n'
    '  File "{inner}", line 96, in build\n    limit = engine.max_ragged_tokens\n'
    "AttributeError: 'KoboTask' object has no attribute 'max_ragged_tokens'\n"
)
MII = "/srv/DeepSpeed-MII/mii/"
MAC = (
    'Traceback (most recent call last):\n  File "/Users/me/net/demo.py", line 4, in <module>\n    x = x.cuda()\n'
    '  File "/opt/homebrew/lib/python3.11/site-packages/torch/cuda/__init__.py", line 310, in _lazy_init\n'
    '    raise AssertionError("Torch not compiled with CUDA enabled")\nAssertionError: Torch not compiled with CUDA enabled\n'
)
BYTES, ELEMENTS = "total bytes of NDArray > 2**32", "product of dimension sizes > 2**31"

# (text, the rule, how its first fix begins)
FIRST = [
    ("monai/losses/dice.py:130: UserWarning: `to_onehot_y=True` ignored.\n" + SCATTER, "cuda-assert-label-range", "Map the labels to 0 … C-1"),
    (SCATTER, "cuda-assert-index-range", "Bring every index of gather or scatter into 0"),
    ("Token indices sequence length is longer than the specified maximum sequence length for this model (871 > 512).\n" + LOOKUP,
     "cuda-assert-index-range", "Cut the inputs to the 512 positions of the model"),
    (LOOKUP, "cuda-assert-index-range", "Compare the largest id with num_embeddings"),
    (EMBEDDING.format(file="/home/me/rec/model.py", code="u = self.user_table(batch.user)"), "cuda-assert-index-range", "Give the embedding a row for every id"),
    (EMBEDDING.format(file="/v/lib/python3.10/site-packages/transformers/models/x.py", code="h = self.position_embeddings(position_ids)"),
     "cuda-assert-index-range", "Cut the inputs to the positions of the model"),
    (EMBEDDING.format(file="/v/lib/python3.10/site-packages/transformers/models/x.py", code="h = self.word_embeddings(input_ids)"),
     "cuda-assert-index-range", "Use the tokenizer that belongs to the checkpoint"),
    ('Traceback (most recent call last):\n  File "gcn.py", line 4, in forward\n    return out.index_add_(0, edge_index[1], m)\n'
     "IndexError: index 40 is out of bounds for dimension 0 with size 40\n", "cuda-assert-index-range", "Number the nodes from 0 without gaps"),
    (NDARRAY.format(line=850, what=BYTES), "mps-array-limit", "Make the input smaller, or work in parts (tiles of the image, chunks of the sequence, half the batch), so that no tensor passes 4 GiB"),
    (NDARRAY.format(line=705, what=ELEMENTS), "mps-array-limit", "Make the input smaller, or work in parts (tiles of the image, chunks of the sequence, half the batch), so that no tensor has 2^31"),
    ("Requested to load BaseModel\n" + NDARRAY.format(line=850, what=BYTES), "mps-array-limit", "Scale image and mask down before the sampler"),
    (CLONE.format(file=MII + "entrypoints/server.py", inner=MII + "batching/queue.py"), "packages-out-of-step",
     "Update deepspeed-mii, and deepspeed on which it is built"),
    ("n2:83:91 [0] misc/socket.cc:544 NCCL WARN socketPollConnect: connect returned No route to host, exceeded error retry count (35)\n",
     "nccl-socket-interface", "Open all TCP ports between the nodes"),
    ('Traceback (most recent call last):\n  File "/v/lib/python3.11/site-packages/torch/amp/autocast_mode.py", line 241, in __init__\n'
     "    raise RuntimeError(\nRuntimeError: User specified an unsupported autocast device_type 'mps'\n", "trainer-precision-refused",
     "Set mixed_precision='no'"),
    ("ModuleNotFoundError: No module named 'ts.torch_handler.ner'\n", "model-archive-incomplete", "Correct what the first traceback says: ner.py"),
    # a script beside the package is the reader's own, and so is a module that lies at its top
    (CLONE.format(file="/srv/kobo/kobo/train.py", inner="/srv/kobo/kobo/loop.py"), "own-code-error", "Correct the name max_ragged_tokens"),
    # a program of others: by its own command, as an example of many, from a download, as a plug-in; not its own tests
    (STARTED.format(first="/v/bin/kobo-train", inner="/srv/kobo/kobo_cli/train.py").replace(
        "AttributeError", '  File "/srv/kobo/kobo/tasks/asr.py", line 7, in build\n    x\nAttributeError'), "own-code-error", "Bring kobo and the packages that it imports"),
    (STARTED.format(first="/srv/Kobo/examples/asr/ctc/train.py", inner="/srv/Kobo/kobo/core/model.py"), "own-code-error", "Bring Kobo and the packages"),
    (STARTED.format(first="/srv/kobo-main/train.py", inner="/srv/kobo-main/net.py"), "own-code-error", "Bring kobo and the packages"),
    (STARTED.format(first="D:\\UI\\main.py", inner="D:\\UI\\custom_nodes\\kobo-nodes\\a.py"), "own-code-error", "Update kobo-nodes and the program that loads it"),
    ("*** Error running process: D:\\ui\\extensions\\kobo\\a.py\n" + STARTED.format(first="D:\\ui\\a.py", inner="D:\\ui\\b.py"), "own-code-error", "Update kobo and the program"),
    (STARTED.format(first="/home/runner/work/kobo/kobo/kobo/tests/a/b.py", inner="/home/runner/work/kobo/kobo/kobo/loop.py"), "own-code-error", "Correct the name"),
    ("AttributeError: module 'kobo' has no attribute 'fit'\n".join((STARTED.format(first="/srv/a.py", inner="/srv/b.py").partition("AttributeE")[0], "")),
     "own-code-error", "Look which file kobo is"),
    ('Traceback (most recent call last):\n  File "/v/lib/python3.7/site-packages/accelerate/optimizer.py", line 134, in step\n    self.scaler.step(x)\n'
     "ValueError: Attempting to unscale FP16 gradients.\n", "amp-fp16-grad", "Keep the weights that are trained in float32"),
    ("TypeError: __init__() got an unexpected keyword argument 'load_in_4bit'\n", "argument-unknown", "Pass quantization_config=BitsAndBytesConfig(load_in_4bit=True)"),
    ("TypeError: __init__() got an unexpected keyword argument 'torch_dtype'\n", "argument-unknown", "Leave torch_dtype out"),
    ("ValueError: Expected input batch_size (784) to match target batch_size (64).\n", "target-shape", "Keep one row for each label, x.flatten(1)"),
    (MAC, "cuda-on-mac", "Change .cuda() to .to('mps') or .to('cpu')"),
    ('Traceback (most recent call last):\n  File "/Users/me/rl/a.py", line 63, in learn\n    r = torch.as_tensor(rewards).to("mps")\n' + DOUBLE,
     "mps-dtype", "Give the dtype in this line"),
    ('Traceback (most recent call last):\n  File "/Users/me/rl/a.py", line 88, in learn\n    x = torch.from_numpy(obs).to(device)\n' + DOUBLE,
     "mps-dtype", "Convert the array in this line"),
    ('Traceback (most recent call last):\n  File "D:\\det\\train.py", line 12, in <module>\n    import torchvision\n'
     '  File "<frozen importlib._bootstrap_external>", line 1041, in get_data\nMemoryError\n', "cpu-alloc-failed", "Start fewer worker processes"),
    ("$ python demo.py --device=mps\n" + MAC, "cuda-on-mac", "Run it on a machine with an NVIDIA GPU"),
]  # fmt: skip

# (text, what is wrong for this reader)
NEVER = [
    (SCATTER, "tokenizer|num_embeddings"),
    (EMBEDDING.format(file="/home/me/rec/model.py", code="u = self.user_table(batch.user)"), "tokenizer"),
    # an argument that only newer releases know, and a Trainer's options in a plain script
    ("ValueError: Attempting to unscale FP16 gradients.\n", r"[( ]dtype=torch|bf16=True"),
    # a file that may be the reader's own is never to be deleted
    ("_pickle.UnpicklingError: invalid load key, 'x'.\ntorch.load\n", "Delete"),
    ("ValueError: Expected input batch_size (784) to match target batch_size (64).\n", "token"),
    ("IndexError: index 29 is out of bounds for dimension 0 with size 29\n", "padding_idx|embedding|dimension larger"),
    ("Requested to load BaseModel\n" + NDARRAY.format(line=850, what=BYTES), r"whl/cu|contiguous_format|clone\("),
]  # fmt: skip


def _first(text: str, rules: RuleSet) -> Diagnosis:
    return diagnose(read_text(text), FactBook(None), rules).diagnoses[0]


@pytest.mark.parametrize(("text", "rule", "start"), FIRST)
def test_what_the_log_says_chooses_the_first_action(text: str, rule: str, start: str, rules: RuleSet) -> None:
    found = _first(text, rules)
    assert found.rule == rule
    assert found.fixes[0].do.startswith(start), [fix.do for fix in found.fixes]


@pytest.mark.parametrize(("text", "never"), NEVER)
def test_what_the_log_rules_out_is_not_advised(text: str, never: str, rules: RuleSet) -> None:
    shown = [f"{fix.do} {fix.run or ''}" for fix in _first(text, rules).fixes]
    assert shown
    assert not [one for one in shown if re.search(never, one)]


def test_a_check_says_which_of_its_names_the_reader_replaces(rules: RuleSet) -> None:
    log = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    y = x[index]\n'
    text = "IndexError: index 7 is out of bounds for dimension 0 with size 5\n"
    assert "Put your own in place of index and x." in (_first(text, rules).decide_note or "")
    assert "Put your own" not in (_first(log + text, rules).decide_note or "")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("print(torch.isfinite(t).all())", "", "Put your own in place of t."),
        ("print([p for p in model.parameters()])", "model(x)", ""),
        ("print(a, b, c)", "", "Put your own in place of a, b and c."),
        ("ls -l FILE; head -c 9 FILE", "", "Put your own in place of FILE."),
        ("kill PID", "", "Put your own in place of PID."),
        ("export NCCL_DEBUG=INFO", "", ""),
        ("python train.py --help", "", "Put your own in place of train.py."),
        ("nvidia-smi -q | grep -A3 'GPU 0'", "", ""),
        ("nvidia-smi -i GPU | grep -E 'GPU|ECC'", "", "Put your own in place of GPU."),
    ],
)
def test_names_to_put_in(command: str, code: str, said: str) -> None:
    assert to_put_in(command, "", code) == said


def test_a_statement_that_is_none_of_python_has_no_names() -> None:
    assert stand_ins("print(", "") == ()
