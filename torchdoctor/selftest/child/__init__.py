"""Programs that run in the examined interpreter: each is put together with ``bench`` into one file."""
