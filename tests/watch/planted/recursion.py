import sys

sys.setrecursionlimit(sys.getrecursionlimit() + 1234)  # <- recursion-limit: * -> *
