import multiprocessing

multiprocessing.set_start_method("spawn")  # <- start-method: not set -> spawn
