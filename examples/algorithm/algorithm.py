"""A whole algorithm in a container. Change `load` and `answer`; the rest is the contract.

Under Proctor it listens on the Unix socket that PROCTOR_SOCKET names and gets each question as JSON by POST /invoke.
On Grand Challenge it listens on port 4743, finds each question in /input and writes its answer to /output.
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


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200, {})  # GET /health: the model is loaded before the socket is there

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            said = {"answer": answer(MODEL, json.loads(body) if body else from_files())}
            if not body:
                Path("/output/answer.json").write_text(json.dumps(said))
            self.reply(201, said)
        except Exception as error:
            self.reply(500, {"error": type(error).__name__})
            raise

    def reply(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Prints nothing for each question."""


def from_files():
    """The question as Grand Challenge gives it: JSON files are its fields, every other file is one of its media."""
    question = {"media": []}
    for one in json.loads(Path("/input/inputs.json").read_text()):
        path = Path("/input", one["socket"]["relative_path"])
        if path.suffix == ".json":
            question |= json.loads(path.read_text())
        else:
            question["media"].append({"path": str(path)})
    return question


if __name__ == "__main__":
    MODEL, place = load(), os.environ.get("PROCTOR_SOCKET")
    server = UnixStreamServer(place, Handler) if place else HTTPServer(("", 4743), Handler)
    if place:
        Path(place).chmod(0o666)  # who asks is another user
    server.serve_forever()
