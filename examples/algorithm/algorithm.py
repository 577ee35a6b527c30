"""A whole algorithm in a container: change `load` and `answer`; the rest is the contract.

Under Proctor it listens on the Unix socket PROCTOR_SOCKET and gets each question as JSON by POST /invoke. On Grand
Challenge it listens on port 4743, finds each question in /input and writes its answer to /output.
"""

import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import UnixStreamServer


def load():
    """Loads the model, once, before the first question."""
    return {"usual": "yes"}


def answer(model, question):
    """The text of an answer. `question` has question, options, format, instruction, deadline_s and media: a list with
    the path of each file, its kind (video, image, sound), and its times in seconds."""
    return question["options"][0] if question.get("options") else model["usual"]


def from_files(question):
    """The question as Grand Challenge gives it: JSON files are its fields, every other file is one of its media."""
    for one in json.loads(Path("/input/inputs.json").read_text()):
        path = Path("/input", one["socket"]["relative_path"])
        question |= json.loads(path.read_text()) if path.suffix == ".json" else {}
        question["media"] += [{"path": str(path)}] if path.suffix != ".json" else []
    return question


class Handler(BaseHTTPRequestHandler):
    def do_GET(self, status=200, content=None):  # GET /health: the model is loaded before the socket is there
        body = json.dumps(content or {}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            said = {"answer": answer(MODEL, json.loads(body) if body else from_files({"media": []}))}
            if not body:
                Path("/output/answer.json").write_text(json.dumps(said))
            self.do_GET(201, said)
        except Exception as error:
            self.do_GET(500, {"error": type(error).__name__})
            raise


if __name__ == "__main__":
    MODEL, path = load(), os.environ.get("PROCTOR_SOCKET")
    Handler.log_message = lambda *_: None
    server = UnixStreamServer(path, Handler) if path else HTTPServer(("", 4743), Handler)
    if path:
        Path(path).chmod(0o666)  # who asks is another user
    server.serve_forever()
