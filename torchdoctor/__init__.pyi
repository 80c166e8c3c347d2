from torchdoctor import ddp as ddp
from torchdoctor.hooks.elastic import record as record
from torchdoctor.hooks.explain import explain as explain
from torchdoctor.hooks.install import install as install
from torchdoctor.hooks.install import uninstall as uninstall
from torchdoctor.hooks.ipython import load_ipython_extension as load_ipython_extension
from torchdoctor.hooks.ipython import unload_ipython_extension as unload_ipython_extension
from torchdoctor.hooks.report import Report as Report
from torchdoctor.watch import watch_globals as watch_globals

__version__: str
