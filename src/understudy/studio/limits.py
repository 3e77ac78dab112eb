"""How much one address may ask for: buckets of tokens, and only so many buckets."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

ADDRESSES = 10_000


class Limit:
    """Each address has a bucket of `burst` tokens, refilled at `rate` a second; a request takes one, or is refused."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Take a token, if there is one."""
        now = self._clock()
        tokens, then = self._buckets.pop(address, (self._burst, now))
        tokens = min(self._burst, tokens + self._rate * (now - then))
        allowed = tokens >= 1.0
        self._buckets[address] = (tokens - 1.0 if allowed else tokens, now)
        if len(self._buckets) > ADDRESSES:
            self._buckets.popitem(last=False)
        return allowed
