"""The protocol of the peers: phases as they begin, then one result, a JSON object a line on stdout.

{"phase": NAME} says what the peer is about to do, so that the driver knows where a peer died. The
result has "version" and "seconds", a number for each phase, and what the driver compares.
"""

import json
import time
from types import TracebackType
from typing import Any, Self


def line(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


class Phases:
    """Seconds of each phase: `with phases("load"): …`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str) -> Self:
        line(phase=name)
        self.name, self.start = name, time.perf_counter()
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.seconds[self.name] = self.seconds.get(self.name, 0.0) + time.perf_counter() - self.start
