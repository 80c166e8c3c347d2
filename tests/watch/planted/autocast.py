import torch

torch.set_autocast_enabled("cpu", True)  # <- autocast-cpu: False -> True
torch.set_autocast_dtype("cuda", torch.bfloat16)  # <- autocast-dtype-cuda: torch.float16 -> torch.bfloat16
