"""A real S3 server (moto's) on loopback, and a proxy before it that breaks answers when told to.

The server is a process of its own, ended by its id; the kernel ends it with the tests.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import importlib.util
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

BUCKET = "crawl"
LARGEST = 16 << 20  # bytes that one request may ask for


def pytest_collection_modifyitems(items):
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.object_store)
            # aiohttp leaves sockets to the collector when its loop ends with the process
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))


def _die_with_tests() -> None:
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@dataclass
class Store:
    """The server behind its proxy. `fault` gets the number of the GET and names what breaks."""

    endpoint: str
    env: dict[str, str]
    client: Any
    fault: Any = None
    gets: list[tuple[str, int]] = field(default_factory=list)  # (path, bytes asked for or -1)

    def put(self, key: str, data: bytes) -> str:
        """Store an object; returns its address."""
        self.client.put_object(Bucket=BUCKET, Key=key, Body=data)
        return f"s3://{BUCKET}/{key}"


def _proxy(store: Store, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format, *args):  # noqa: A002
            pass

        def _pass(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            mode = None
            if self.command == "GET" and "?" not in self.path:
                span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
                store.gets.append((self.path, int(span[2]) - int(span[1]) + 1 if span else -1))
                mode = store.fault(len(store.gets)) if store.fault else None
            if mode == "refuse":
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            far = http.client.HTTPConnection("127.0.0.1", port)
            far.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                far.putheader(name, value)
            far.endheaders(body)
            answer = far.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"connection", "transfer-encoding", "content-length"}:
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else len(data)
            self.send_header("Content-Length", str(length or 0))
            self.end_headers()
            if mode == "cut":
                self.wfile.write(data[: len(data) // 2])
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="session")
def server() -> Iterator[int]:
    for name in ("moto", "s3fs", "flask"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: make test-cluster installs it")
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=_die_with_tests,  # noqa: PLW1509 - one system call, no lock
    )
    try:
        for _ in range(300):
            if process.poll() is not None:
                pytest.fail(f"the S3 server ended with status {process.returncode}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        else:
            pytest.fail("the S3 server did not listen within 30 s")
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def store(server, monkeypatch) -> Iterator[Store]:
    """An empty bucket, reached through the proxy by this process and those that it starts."""
    import botocore.session
    import fsspec

    made = Store("", {}, None)
    proxy = _proxy(made, server)
    made.endpoint = f"http://127.0.0.1:{proxy.server_address[1]}"
    made.env = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": made.endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    made.client = botocore.session.get_session().create_client("s3")
    made.client.create_bucket(Bucket=BUCKET)
    filesystem = fsspec.get_filesystem_class("s3")
    filesystem.clear_instance_cache()
    yield made
    made.fault = None
    listed = made.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    for entry in listed:
        made.client.delete_object(Bucket=BUCKET, Key=entry["Key"])
    made.client.delete_bucket(Bucket=BUCKET)
    filesystem.clear_instance_cache()
    proxy.shutdown()
    proxy.server_close()
