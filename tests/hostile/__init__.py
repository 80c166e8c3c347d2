"""Situations made to break the tool: hostile logs, hostile folders, faulty machines.

One file a kind, ``test_<letter>_<what>.py``: a execution, b the gate, c bounds, d faults from input,
e redaction, f the rest. Each collected item is one situation. ``held_before`` marks those that held
already before version 0.2; all others failed then. Inputs are generated, never committed.
"""
