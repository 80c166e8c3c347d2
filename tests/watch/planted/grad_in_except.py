import torch

try:
    import a_module_that_is_not_there
except ImportError:
    a_module_that_is_not_there = None
    torch.set_grad_enabled(False)  # <- grad-mode: True -> False
finally:
    done = True
