"""Metrics of a run as Debian's prometheus scrapes them, and promtool's check of their text.

Needs the Debian package prometheus (programs prometheus and promtool on the PATH) and the built command. A small model is
trained while the server scrapes it. Compared are: what promtool says of the text; that each gauge of the page is a series of
the server, and that its values there lie among those that the run has had; and units and help, which the server keeps
where it has read OpenMetrics.
"""
import json
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

ACCEPT = "application/openmetrics-text;version=1.0.0"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def get(url, accept="*/*"):
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def wait_for(what, seconds=120):
    """What `what` returns once it is true; errors of a server that is not there yet are passed over."""
    for _ in range(seconds * 4):
        try:
            found = what()
            if found:
                return found
        except OSError:
            pass
        time.sleep(0.25)
    raise SystemExit("openmetrics: a server has not answered in time")


def start_run(root, build, folder, port):
    text = folder / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 2000)
    return subprocess.Popen(
        [build / "bin/fullbore", "train", root / "configs/default.yaml", f"data.path={text}", "model.layers=1",
         "model.width=32", "model.heads=2", "model.context=32", "train.batch_size=4", "train.steps=100000000",
         "train.eval_interval=50", "train.eval_batches=1", "train.sample_characters=0", "train.checkpoint_interval=0",
         f"run.dir={folder / 'run'}", f"log.prometheus_port={port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(root, build, keep):
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            raise SystemExit(f"openmetrics: {program} is not on the PATH: apt-get install prometheus")
    differences = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        port, own = free_port(), free_port()
        training = start_run(root, build, folder, port)
        page = f"http://127.0.0.1:{port}/metrics"
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: fullbore\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n")
        server = subprocess.Popen(
            ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{own}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: "fullbore_evaluation_validation_loss" in get(page)[1])
            content_type, text = get(page, ACCEPT)
            if not content_type.startswith("application/openmetrics-text"):
                differences.append(f"the page is {content_type}")
            checked = subprocess.run(["promtool", "check", "metrics"], input=get(page)[1], capture_output=True, text=True)
            differences += [f"promtool: {line}" for line in (checked.stdout + checked.stderr).splitlines()]
            gauges = re.findall(r"^(fullbore_\w+)\{", text, re.M)
            api = f"http://127.0.0.1:{own}/api/v1/"
            ask = lambda path: json.loads(get(api + path)[1])["data"]
            wait_for(lambda: ask("query?query=fullbore_evaluation_validation_loss")["result"])
            time.sleep(3)
            for gauge in gauges:
                if not ask("query?query=" + urllib.parse.quote(gauge))["result"]:
                    differences.append(f"{gauge}: the server has no such series")
            metadata = ask("metadata")
            for gauge, unit in re.findall(r"^# UNIT (\w+) (\w+)$", text, re.M):
                kept = [each["unit"] for each in metadata.get(gauge, [])]
                if kept != [unit]:
                    differences.append(f"{gauge}: the unit is {unit}, and {kept} to the server")
            steps = [float(value) for _, value in ask("query?query=fullbore_step[10s]")["result"][0]["values"]]
            if steps != sorted(steps) or steps[0] == steps[-1]:
                differences.append(f"the steps do not go up: {steps}")
            targets = ask("targets")["activeTargets"]
            differences += [f"scrape: {each['lastError']}" for each in targets if each["lastError"]]
            version = ask("status/buildinfo")["version"]
        finally:
            for process in (server, training):
                process.terminate()
            for process in (server, training):
                process.wait(timeout=60)
    return {"compared": len(gauges), "differences": differences, "units": text.count("# UNIT"), "prometheus": version}
