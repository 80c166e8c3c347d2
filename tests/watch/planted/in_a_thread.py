import threading

import torch


def work():
    torch.set_grad_enabled(False)
    torch.backends.cudnn.benchmark = True  # <- cudnn-benchmark: False -> True


worker = threading.Thread(target=work)
worker.start()
worker.join()
