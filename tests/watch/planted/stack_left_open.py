import contextlib

import torch

stack = contextlib.ExitStack()
stack.enter_context(torch.device("meta"))  # <- default-device: not set -> meta
stack.enter_context(torch.no_grad())  # <- grad-mode: True -> False
stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))  # <- autocast-cpu: False -> True
kept = stack.pop_all()
