"""Converters that misbehave on one page, for the guard; its child imports this module by name."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from gristmill.documents.records import Draft


@dataclass(frozen=True)
class Awkward:
    """Does with a page what its body says; `marks` is a file that grows a byte each time."""

    marks: str = ""

    def __call__(self, items):
        for item in items:
            body = item.body.decode() if item.body is not None else "text"
            if body.startswith("once"):
                with Path(self.marks).open("ab") as file:
                    file.write(b"x")
                    first = file.tell() == 1
                if first:
                    os.kill(os.getpid(), signal.SIGKILL)
            while body == "spin":
                pass
            while body == "sleep":
                time.sleep(0.1)
            if body == "die":
                os.kill(os.getpid(), signal.SIGSEGV)
            if body == "leave":
                os._exit(3)
            if body == "raise":
                raise ValueError(body)
            yield Draft(locator=item.locator, text=body)
