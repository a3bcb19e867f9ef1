"""Serves the built pages on this machine, compressed as a host on the web sends them: python _ext/serve.py 8000."""

import functools
import gzip
import io
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGES = Path(__file__).parent.parent / "_build" / "html"
TEXT = {".css", ".html", ".js", ".json", ".mjs", ".svg", ".txt", ".wasm"}


@functools.lru_cache(maxsize=256)
def compressed(path: Path, changed: float) -> bytes:
    """A file, compressed once until it changes."""
    return gzip.compress(path.read_bytes(), mtime=0)


class Handler(SimpleHTTPRequestHandler):
    """Files as they are, and text compressed for a browser that takes it; one connection for many of them."""

    protocol_version = "HTTP/1.1"

    def send_head(self):
        path = Path(self.translate_path(self.path))
        if path.is_dir() and self.path.endswith("/"):
            path /= "index.html"
        takes = "gzip" in self.headers.get("Accept-Encoding", "")
        if not takes or path.suffix not in TEXT or not path.is_file() or "If-Modified-Since" in self.headers:
            return super().send_head()
        changed = path.stat().st_mtime
        body = compressed(path, changed)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", self.date_time_string(changed))
        self.end_headers()
        return io.BytesIO(body)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # a page that was built anew is shown at once
        self.send_header("Vary", "Accept-Encoding")
        super().end_headers()

    def log_message(self, *args) -> None:
        pass


def serve(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server for a folder on this machine alone; port 0 takes any that is free."""
    return ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=str(folder)))


if __name__ == "__main__":
    with serve(Path(sys.argv[2]) if len(sys.argv) > 2 else PAGES, int(sys.argv[1])) as running:
        print(f"The book is on http://localhost:{running.server_port}. Control and C end it.", flush=True)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print()
