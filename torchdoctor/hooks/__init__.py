"""torchdoctor where the failure appears: in the user's own process, notebook, test run, launcher or agent.

Nothing here imports torch: what is in memory already is looked at, never loaded. A hook that breaks says
nothing, and the program ends as it would have without it.
"""
