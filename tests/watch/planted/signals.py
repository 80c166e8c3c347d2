import signal


def leave(number, frame):
    raise SystemExit(number)


signal.signal(signal.SIGUSR1, leave)  # <- signal.SIGUSR1: default action -> planted.signals.leave (signals.py:4)
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # <- signal.SIGTERM: default action -> ignored
