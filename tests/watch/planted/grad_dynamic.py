import importlib

importlib.import_module("planted.deep.inner")
