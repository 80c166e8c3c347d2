from torch._C import _set_grad_enabled as switch

switch(False)  # <- grad-mode: True -> False
