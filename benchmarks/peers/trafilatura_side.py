"""trafilatura over pages on stdin, one JSON string a line; its texts and CPU seconds on stdout.

Runs in trafilatura's own environment; imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
import time

import trafilatura

trafilatura.extract("<html><body><p>Warm.</p></body></html>")
for line in sys.stdin:
    page = json.loads(line)
    begun = time.process_time()
    try:
        text = trafilatura.extract(page) or ""
    except Exception:  # noqa: BLE001 - a page that it fails on is a page without text
        text = ""
    print(json.dumps([text, time.process_time() - begun]))
