"""Metrics and settings of a run as a server of MLflow keeps them, against the run's own metrics.jsonl.

Needs the Python package mlflow and the built command. A server is started with a database of its own, two small runs go
there, one of them while the server is down for a while; every metric of metrics.jsonl must be there with its step and value, and
every setting of config.resolved.yaml as a parameter, as MLflow's own client reads them.
"""
import json
import math
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import mlflow
from mlflow.tracking import MlflowClient

STEPS = 4000
SECONDS_AWAY = 100  # of the run whose server is away as it begins


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def start_server(folder, port):
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
         "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}", "--default-artifact-root", str(folder / "artifacts")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return server
        except OSError:
            time.sleep(0.25)
    raise SystemExit("mlflow: the server has not begun")


def stop(server):
    server.terminate()
    server.wait(timeout=60)


def train(root, build, folder, name, port, steps):
    """A run that records about forty of its steps."""
    text = folder / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 2000)
    return subprocess.Popen(
        [build / "bin/fullbore", "train", root / "configs/default.yaml", f"data.path={text}", "model.layers=1",
         "model.width=32", "model.heads=2", "model.context=32", "train.batch_size=4", f"train.steps={steps}",
         f"train.eval_interval={steps // 4}", f"log.interval={steps // 40}", "train.eval_batches=1", "train.sample_characters=0", "train.checkpoint_interval=0",
         f"run.dir={folder / name}", f"log.mlflow=http://127.0.0.1:{port}", f"log.mlflow_experiment={name}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def steps_per_second(folder):
    """Without start and end."""
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    first, *_, last = (record for record in records if record["kind"] == "train")
    return (last["step"] - first["step"]) / (last["seconds"] - first["seconds"])


def numbers(folder):
    """(curve, step) -> value of metrics.jsonl, for finite numbers."""
    found = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] not in ("train", "evaluation"):
            continue
        for name, value in record.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and name != "step" and math.isfinite(value):
                found[f"{record['kind']}/{name}", record["step"]] = float(value)
    return found


def compare(client, name, folder):
    """How many numbers agree, and the texts of differences."""
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return 0, [f"{name}: the server has no such experiment"]
    runs = client.search_runs([experiment.experiment_id])
    if len(runs) != 1:
        return 0, [f"{name}: the server has {len(runs)} runs"]
    run = runs[0]
    differences = [] if run.info.status == "FINISHED" else [f"{name}: the run is {run.info.status}"]
    expected = numbers(folder)
    kept = {}
    for curve in {curve for curve, _ in expected}:
        for each in client.get_metric_history(run.info.run_id, curve):
            kept[curve, each.step] = each.value
    for place, value in expected.items():
        if kept.get(place) != value:
            differences.append(f"{name}: {place} is {value}, and {kept.get(place)} to the server")
    settings = sum(":" in line and line.startswith(" ") for line in (folder / "config.resolved.yaml").read_text().splitlines())
    if len(run.data.params) < settings - 5 or run.data.params.get("model.layers") != "1":
        differences.append(f"{name}: {len(run.data.params)} of {settings} settings are there")
    return len(expected) + len(run.data.params), differences


def run(root, build, keep):
    compared, differences = 0, []
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        port = free_port()
        server = start_server(folder, port)
        client = MlflowClient(f"http://127.0.0.1:{port}")
        try:
            train(root, build, folder, "there", port, STEPS).communicate(timeout=300)
            count, found = compare(client, "there", folder / "there")
            compared, differences = compared + count, differences + found
            # Down when the run begins, back while it goes on, however long a server takes to begin.
            stop(server)
            training = train(root, build, folder, "away", port, int(steps_per_second(folder / "there") * SECONDS_AWAY))
            time.sleep(5)
            server = start_server(folder, port)
            words = training.communicate(timeout=500)[1]
            if "answers again" not in words:
                differences.append("away: the log does not say that the server answers again")
            count, found = compare(client, "away", folder / "away")
            compared, differences = compared + count, differences + found
        finally:
            stop(server)
    return {"compared": compared, "differences": differences[:20], "mlflow": mlflow.__version__}
