"""No search for reference cycles while a kernel is compiled.

Numba makes millions of small objects for a kernel, nearly all of which stay until it is compiled.
Python's cyclic collector goes through them again and again and frees little: a tenth of the time of
a first fit. It is paused for as long as one of our kernels takes, and then goes on. Numba tells of
each compilation through `numba.core.event`, which its manual offers to applications.
"""

import gc
from typing import Any

from numba.core import event


class PauseCollector(event.Listener):  # type: ignore[misc]
    """Pauses the cyclic collector from the start to the end of a compilation.

    Functions of other packages are compiled as ever, unless a kernel of ours calls them. What a
    kernel calls is compiled within it: only the outermost counts. Numba compiles in one thread at
    a time, so that starts and ends are nested.
    """

    def __init__(self) -> None:
        """Begin outside any compilation."""
        self.depth = 0
        self.was_enabled = False

    def _concerns_us(self, compilation: Any) -> bool:
        module = compilation.data["dispatcher"].py_func.__module__ or ""
        return self.depth > 0 or module.startswith(f"{__package__}.")

    def on_start(self, event: event.Event) -> None:
        """Pause where the outermost compilation begins."""
        if self._concerns_us(event):
            if self.depth == 0:
                self.was_enabled = gc.isenabled()
                gc.disable()
            self.depth += 1

    def on_end(self, event: event.Event) -> None:
        """Leave the collector as it was found, also where compiling has failed."""
        if self._concerns_us(event):
            self.depth -= 1
            if self.depth == 0 and self.was_enabled:
                gc.enable()


event.register("numba:compile", PauseCollector())
