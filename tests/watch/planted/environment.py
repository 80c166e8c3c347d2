import os
from os import environ as variables


def put(target, **values):
    target.update(values)  # <- env.OMP_NUM_THREADS: * -> 3, env.NCCL_DEBUG: not set -> INFO


os.environ["TOKENIZERS_PARALLELISM"] = "false"  # <- env.TOKENIZERS_PARALLELISM: not set -> false
put(variables, OMP_NUM_THREADS="3", NCCL_DEBUG="INFO", OF_NO_CONCERN="1")
os.environ.pop("NCCL_DEBUG")  # <- env.NCCL_DEBUG: INFO -> not set
