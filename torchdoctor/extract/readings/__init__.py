"""Readings: causes that a text shows in which nothing failed.

Settings, figures and pasted code taken together. One module a kind, with NAMESPACE, FACTS and ``read``; none
is imported unless words of its kind stand in the text (:data:`.triggers.READINGS`).
"""
