"""The command line. Importing it is the first thing that the program does."""

import gc

# Start-up makes some fifty thousand objects that all stay: looking through them for garbage every few
# hundred costs a tenth of a short run and finds none.
gc.set_threshold(100_000, 20, 20)
