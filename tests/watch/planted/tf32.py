import torch

torch.backends.cudnn.allow_tf32 = False  # <- cudnn-tf32: True -> False
torch.set_float32_matmul_precision("high")  # <- matmul-precision: highest -> high, matmul-tf32: False -> True
