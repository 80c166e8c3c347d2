"""Pitfalls of training code, found on the syntax tree before the run.

``run.Run`` looks at files, ``examine.examine`` at one source, ``registry.all_checks`` names the checks.
Nothing of what is looked at is run or imported.
"""
