"""What watching a training costs: sensors, event files, Prometheus and MLflow, all on against all off.

Pairs of trainings of one seed make their steps in turns, one by one; every second pair is started the other way round. A small
server here takes what goes to MLflow, and what Prometheus would ask for is asked for every second. A failure is a cost above 1 %, or a
server that was sent nothing.

settings: pairs=16, steps=300
"""

import http.server
import json
import math
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import gathered
from planted_jobs import words as made_up_words
from turns import log_ratio

MOST = 0.01
OFF = ["sensors.log=false", "log.tensorboard=false", "log.prometheus_port=0", "log.mlflow="]
# Of Student's distribution, two-sided 95 %: 1.96 + 2.4 / degrees of freedom is within a hundredth from 8 degrees on.
T_AT_MANY, T_SLOPE = 1.96, 2.4


class Mlflow(http.server.BaseHTTPRequestHandler):
    """As much of its REST interface as a training asks for."""

    metrics = 0

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answers = {"get-by-name": {"experiment": {"experiment_id": "1"}}, "create": {"run": {"info": {"run_id": "a"}}}}
        if self.path.endswith("log-batch"):
            Mlflow.metrics += len(json.loads(body).get("metrics", []))
        text = json.dumps(answers.get(self.path.split("?")[0].rsplit("/", 1)[-1], {})).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Scraper(threading.Thread):
    """Asks for what Prometheus would, every second."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.address, self.answers, self.over = f"http://127.0.0.1:{port}/metrics", 0, threading.Event()

    def run(self):
        while not self.over.wait(1):
            try:
                self.answers += b"fullbore" in urllib.request.urlopen(self.address, timeout=1).read()
            except OSError:
                pass  # between two trainings nobody listens


def free_port():
    with http.server.HTTPServer(("127.0.0.1", 0), Mlflow) as server:
        return server.server_address[1]


def run(context):
    pairs, steps = context.setting("pairs", 16), context.setting("steps", 300)
    binary = pathlib.Path(context.build).resolve() / "bin" / "fullbore"
    if not binary.is_file():
        raise context.skip(f"{binary} is not built")
    jobs = [job for part in gathered.parts("monitoring").values() for job in part.JOBS]
    if not jobs:
        raise context.skip("no workload has a job for it")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mlflow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    on = ["sensors.log=true", "log.tensorboard=true", f"log.prometheus_port={port}",
          f"log.mlflow=http://127.0.0.1:{server.server_address[1]}"]
    scraper, costs = Scraper(port), []
    scraper.start()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text(made_up_words(random.Random(context.seed), 60000))
        (folder / "configs").symlink_to(context.root / "configs")
        for pair in range(pairs):
            job = [word.format(text=folder / "text.txt") for word in jobs[pair % len(jobs)]]
            job += [f"train.steps={steps}", f"run.seed={context.seed + pair}", f"engine.cache_dir={folder}/cache"]
            words = [[*job, *extra, f"run.dir={folder}/{label}-{pair}"] for label, extra in (("off", OFF), ("on", on))]
            costs.append(log_ratio(binary, *words, folder, steps, second_begins=pair % 2 == 1))
            context.progress(f"{pair + 1}/{pairs}: {costs[-1]:+.4f}")
    scraper.over.set()
    server.shutdown()
    mean = statistics.fmean(costs)
    half = (T_AT_MANY + T_SLOPE / (pairs - 1)) * statistics.stdev(costs) / math.sqrt(pairs)
    failures = [f"{mean:.2%} of the time"] if mean > MOST else []
    failures += ["nothing came to MLflow"] if Mlflow.metrics == 0 else []
    failures += ["nothing was told to Prometheus"] if scraper.answers == 0 else []
    return {"tries": pairs, "failures": failures, "steps": steps, "cost": round(mean, 5),
            "interval": [round(mean - half, 5), round(mean + half, 5)], "to_mlflow": Mlflow.metrics,
            "to_prometheus": scraper.answers}
