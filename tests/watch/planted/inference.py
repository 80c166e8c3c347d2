import torch

mode = torch.inference_mode()
mode.__enter__()  # <- inference-mode: False -> True, grad-mode: True -> False
