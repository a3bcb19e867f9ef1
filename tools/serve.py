"""Serve the built pages on this machine: python -m tools.serve 8000. Control and C end it."""

import contextlib
import os
import socket
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from _ext.weights import PLACE, WEIGHTS, weights

PAGES = Path(__file__).parent.parent / "_build" / "html"


class Pages(SimpleHTTPRequestHandler):
    """Files with the types that browsers insist on; some Windows machines name others."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def translate_path(self, path: str) -> str:
        """The weights of the engine are served from where they are installed."""
        place = super().translate_path(path)
        own = Path(place).match(f"{PLACE}/{WEIGHTS}") and not Path(place).exists() and weights()
        return str(own) if own else place

    def log_message(self, *args) -> None:
        """No line for each file that is asked for."""


class Server(ThreadingHTTPServer):
    """At a port that has just been left, too; on Windows the same setting would let two share one."""

    allow_reuse_address = os.name != "nt"


def free_port(text: str) -> int:
    """The number of a port on which nobody answers yet; else the program ends with a sentence."""
    if not text.isdecimal() or not 0 < int(text) < 2**16:
        sys.exit(f"Error: PORT is {text}; it must be a number from 1 to 65535, such as 8000")
    with socket.socket() as tried:
        if Server.allow_reuse_address:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", int(text)))
        except OSError as error:
            sys.exit(
                f"Error: port {text} cannot be used ({error.strerror}); name another: PORT={int(text) % 65000 + 1}"
            )
    return int(text)


if __name__ == "__main__":
    port = free_port(sys.argv[1])
    with Server(("127.0.0.1", port), partial(Pages, directory=str(PAGES))) as server:
        print(f"The book is on http://localhost:{port}. Control and C end it.", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
