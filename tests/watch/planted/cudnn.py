from torch.backends import cudnn

cudnn.benchmark = True  # <- cudnn-benchmark: False -> True
cudnn.deterministic = True  # <- cudnn-deterministic: False -> True
cudnn.enabled = False  # <- cudnn-enabled: True -> False
