"""A service that predicts and learns at the same time, and goes on where it stopped.

Start it:    python serve.py --port 8000 --checkpoint model.cons
Learn:       curl localhost:8000/learn -d '{"views": {"a": [1.0, 2.0], "b": [0.5]}, "label": "yes"}'
Predict:     curl localhost:8000/predict -d '{"views": {"a": [1.0, 2.0]}}'

Requests are answered in threads, from the latest snapshot of the model. One thread learns, from a queue. After every
`--every` samples, and at the end, the model is written to the checkpoint. Ctrl-C learns what is in the queue and stops.
"""

import argparse
import json
import queue
import signal
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import consilience as cs
from consilience.io import read_checkpoint, write_checkpoint

LONGEST = 1 << 20  # bytes of a request
WAITING = 10_000  # samples in the queue
TOGETHER = 256  # samples learned between two snapshots


class Learner(threading.Thread):
    """The one thread that learns; `current` is the latest snapshot of its model, and `refused` counts bad samples."""

    def __init__(self, checkpoint: Path, every: int):
        super().__init__(daemon=True)
        self.checkpoint, self.every = checkpoint, every
        self.model = read_checkpoint(checkpoint)["model"] if checkpoint.exists() else new_model()
        self.samples = queue.Queue(WAITING)
        self.refused = self.unsaved = 0
        self.current = self.model.snapshot()

    def run(self):
        going = True
        while going:
            batch = [self.samples.get()]  # waits for a sample
            while not self.samples.empty() and len(batch) < TOGETHER:
                batch.append(self.samples.get())
            going = None not in batch
            for views, label in filter(None, batch):
                try:
                    self.model.learn_one(views, label)
                    self.unsaved += 1
                except Exception:  # no sample may end the thread
                    self.refused += 1
            self.current = self.model.snapshot()
            if self.unsaved >= self.every or not going:
                write_checkpoint({"model": self.model}, self.checkpoint)
                self.unsaved = 0

    def stop(self):
        """Learn what is in the queue, write the checkpoint, and end."""
        self.samples.put(None)
        self.join()


def new_model():
    return cs.OrthogonalPerceptron(average=True, prepare=["impute", "standardize"])


def views_of(request):
    if not isinstance(request["views"], dict):
        raise TypeError("'views' is not an object with the values of views by name")
    return request["views"]


def predict(learner, request):
    current, views = learner.current, views_of(request)  # one snapshot for the whole answer
    likely, label = current.predict_proba_one(views), current.predict_one(views)
    label = label.item() if hasattr(label, "item") else label  # JSON has no numbers of NumPy
    return 200, {"label": label, "probabilities": {str(name): share for name, share in likely.items()}}


def learn(learner, request):
    try:
        learner.samples.put_nowait((views_of(request), request["label"]))
    except queue.Full:
        return 503, {"error": "the queue is full: send the sample again later"}
    return 202, {"waiting": learner.samples.qsize()}


class Handler(BaseHTTPRequestHandler):
    routes = {"/predict": predict, "/learn": learn}
    timeout = 30  # seconds for a request

    def do_POST(self):
        given = self.headers.get("Content-Length", "0")
        size = int(given) if given.isdecimal() else LONGEST + 1
        if self.path not in self.routes or size > LONGEST:
            return self.answer(404 if self.path not in self.routes else 413, {"error": "post to /predict or /learn"})
        if "Origin" in self.headers:  # any page that a browser on this machine shows can send requests here
            return self.answer(403, {"error": "requests of web pages are refused"})
        try:
            self.answer(*self.routes[self.path](self.server.learner, json.loads(self.rfile.read(size))))
        except KeyError as error:
            self.answer(400, {"error": f"{error} is missing"})
        except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError) as error:  # not a sample
            self.answer(400, {"error": str(error)})

    def do_GET(self):
        learner = self.server.learner
        seen = learner.current.n_samples_seen_
        self.answer(200, {"samples": seen, "waiting": learner.samples.qsize(), "refused": learner.refused})

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given):
        """Print nothing for each request."""


def start(port, checkpoint, every):
    """Return a server on this machine alone, with its learner running; port 0 is any free one."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.learner = Learner(Path(checkpoint), every)
    server.learner.start()
    return server


def main():
    parser = argparse.ArgumentParser(description="Predict and learn at the same time.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--checkpoint", default="model.cons")
    parser.add_argument("--every", type=int, default=1000, help="samples between checkpoints")
    given = parser.parse_args()
    server = start(given.port, given.checkpoint, given.every)
    # `shutdown` waits for `serve_forever`, so it cannot run in the thread that serves
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    with suppress(KeyboardInterrupt):
        server.serve_forever()
    server.server_close()
    server.learner.stop()


if __name__ == "__main__":
    main()
