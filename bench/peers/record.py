"""What a comparison found out, as JSON and as a table; bench/peers/README.md names the fields."""
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def spread(values):
    if len(values) < 2:
        values = [*values, *values]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "lower_quartile": low, "upper_quartile": high,
            "least": min(values), "most": max(values)}


def shown_word(word):
    """As one would type it here: where this checkout, its Python or a file lies is nobody's business."""
    if word.endswith(("/python", "/python3")):
        return "python"
    key, equals, value = word.replace(f"{ROOT}/", "").rpartition("=")
    return key + equals + (pathlib.Path(value).name if value.startswith("/") else value)


def shown_command(side):
    return [shown_word(word) for word in side.command]


def summary(side, fullbore_sides):
    seconds = [block["seconds_per_step"] for block in side.blocks]
    ratios = {}
    for reference in fullbore_sides:
        by_round = {block["round"]: block["seconds_per_step"] for block in reference.blocks}
        ratios[reference.name] = spread([block["seconds_per_step"] / by_round[block["round"]]
                                         for block in side.blocks])
    tokens = side.blocks[0]["tokens_per_second"] * seconds[0]
    return {"name": side.name, "command": shown_command(side),
            **{key: shown_word(value) if isinstance(value, str) else value for key, value in side.ready.items()
               if key not in ("ready", "side", "job", "machine")},
            "seconds_per_step": spread(seconds),
            "cpu_seconds_per_step": spread([block["cpu_seconds_per_step"] for block in side.blocks]),
            "least_seconds_per_step": min(block["least_seconds_per_step"] for block in side.blocks),
            "tokens_per_second": tokens / statistics.median(seconds),
            "time_ratio_to": ratios,
            "losses": [block["loss"] for block in side.blocks],
            "last_step": side.blocks[-1]["step"],
            "peak_resident_bytes": side.blocks[-1]["peak_resident_bytes"],
            **{key: side.blocks[-1][key] for key in ("peak_device_bytes",) if key in side.blocks[-1]},
            "blocks_seconds_per_step": seconds}


def git(*words):
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def microarchitecture(cpuinfo):
    """The kind of an AMD processor whose cores are called Zen, by /proc/cpuinfo; of others their vendor, family and model."""
    fields = dict(re.findall(r"^(\S[^:]*?)\s*: (.*)$", cpuinfo.split("\n\n")[0], re.M))
    try:
        vendor, family, model = fields["vendor_id"], int(fields["cpu family"]), int(fields["model"])
    except (KeyError, ValueError):
        return None
    if vendor == "AuthenticAMD" and family in (25, 26):
        return "Zen 5" if family == 26 else "Zen 4" if "avx512f" in fields["flags"].split() else "Zen 3"
    return f"{vendor} family {family} model {model}"


def card():
    """What the driver's own program tells of the first card that may be used; {} without it."""
    which = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    try:
        done = subprocess.run(["nvidia-smi", f"--id={which}", "--query-gpu=name,driver_version,memory.total,clocks.max.sm",
                               "--format=csv,noheader"], capture_output=True, text=True, timeout=10, check=True)
        name, driver, memory, clock = done.stdout.strip().split(", ")
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return {"card": name, "driver": driver, "card_memory": memory, "card_clock_at_most": clock}


def machine(reported):
    kind = microarchitecture(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return {**reported, **({"microarchitecture": kind} if kind else {}), "system": platform.platform(),
            "processors": os.cpu_count(), "load_average_at_end": os.getloadavg()}


def title(job, config, parameters):
    """"MINE 10.7 M"."""
    millions = parameters / 1e6
    return f"{job.titles.get(config, job.title)} {millions:.{1 if millions < 100 else 0}f} M"


def result(measured, unavailable, options, job):
    """`measured`: the sides with their blocks, Fullbore's first; `unavailable`: (name, reason) pairs; `job`: a
    comparison.Job."""
    ours = [side for side in measured if side.ready["side"] == "fullbore"]
    first = measured[0].ready
    config = pathlib.Path(options.job[0]).stem
    return {"schema": 2, "what": job.what, "config": config, "title": title(job, config, first["parameters"]),
            "work": job.work.format_map(first.get("job", {})),
            "settings": [shown_word(word) for word in options.job[1:]],
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": git("rev-parse", "HEAD"),
            "uncommitted_changes": bool(git("status", "--porcelain", "--untracked-files=no")),
            "device": options.device,
            "machine": {**machine(first.get("machine", {})), **(card() if options.on_card else {})},
            "job": first.get("job", {}), "parameters": first["parameters"], "passive_peers": options.passive,
            "processor": options.processor,
            "rounds": options.rounds, "seconds_per_block": options.block_seconds,
            "warm_up_seconds": options.warm_up_seconds,
            "sides": [summary(side, ours) for side in measured],
            "time_limit": options.time_limit,
            "unavailable": [{"name": name, "reason": reason} for name, reason in unavailable]}


def to_json(record):
    return json.dumps(record, indent=1) + "\n"


def mebibytes(count):
    return f"{count / 2**20:.0f}" if count else ""


def ratio_cell(side, reference):
    ratio = side["time_ratio_to"].get(reference)
    if ratio is None or side["name"] == reference:
        return "1" if ratio else ""
    return f"{ratio['median']:.2f} ({ratio['lower_quartile']:.2f} to {ratio['upper_quartile']:.2f})"


def start_cells(side):
    """The start, and what of it came before a step could be made."""
    if side["start_seconds"] is None:
        return "", ""
    before = max(0, side["start_seconds"] - side["seconds_per_step"]["median"])
    return f"{side['start_seconds']:.1f}", f"{before:.1f}"


def table(record):
    """Markdown."""
    counted = record["job"].get("counted", "tokens")
    on_card = record.get("device", "cpu") != "cpu"
    ours = [side["name"] for side in record["sides"] if side["name"].startswith("fullbore")]
    heads = ["side", "ms/step", f"{counted}/s", *(f"time, {name} = 1" for name in ours), "start, s", "less a step",
             "peak RSS, MiB", *(["on the card, MiB"] if on_card else []), "planned, MiB", "first loss", "last loss"]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for side in record["sides"]:
        cells = [side["name"], f"{1e3 * side['seconds_per_step']['median']:.2f}", f"{side['tokens_per_second']:.0f}",
                 *(ratio_cell(side, name) for name in ours),
                 *start_cells(side),
                 mebibytes(side["peak_resident_bytes"]), *([mebibytes(side.get("peak_device_bytes"))] if on_card else []),
                 mebibytes(side.get("planned_peak_bytes")),
                 f"{side['first_loss']:.4f}", f"{side['losses'][-1]:.4f}"]
        lines.append("| " + " | ".join(cells) + " |")
    for side in record["unavailable"]:
        lines.append(f"| {side['name']} | not available: {side['reason']} |" + " |" * (len(heads) - 2))
    return "\n".join(lines)


def rooflines(record):
    for side in record["sides"]:
        if "roofline_seconds" in side:
            share = side["roofline_seconds"] / side["seconds_per_step"]["median"]
            yield (f"- {side['name']}: at {100 * share:.0f} % of the roofline, {1e3 * side['roofline_seconds']:.2f} ms; "
                   f"{side['launches']} launches")


def markdown(record):
    machine = record["machine"]
    peaks = ", ".join(f"{machine[key] / 1e9:.0f} {unit}" for key, unit in (
        ("fp32_flops", "GFLOP/s fp32"), ("bf16_flops", "GFLOP/s bf16"), ("bytes_per_second", "GB/s")) if key in machine)
    commit = record["commit"][:12] + (" with uncommitted changes" if record["uncommitted_changes"] else "")
    details = "\n".join(f"- {side['name']}: {', '.join(f'{k} {v}' for k, v in side.get('versions', {}).items()) or commit}; "
                        f"{', '.join(side['flags'])}; {side['threads']} threads" for side in record["sides"])
    settings = " ".join(record["settings"])
    card = f"{machine['card']}, driver {machine['driver']}; " if "card" in machine else ""
    return f"""# {record['config']}: a training step beside its peers, {record['date'][:10]}

{record['parameters']} parameters, {record['work']}; settings: {settings}.
{card}{machine.get('processor', 'unknown processor')}, {machine['processors']} processors; measured peaks: {peaks}; load {machine['load_average_at_end'][0]:.1f}.
{record['rounds']} interleaved rounds, blocks of about {record['seconds_per_block']:g} s, after {record['warm_up_seconds']:g} s of warm-up; \
{'peers told not to spin; ' if record['passive_peers'] else ''}\
{f"every side kept to {record['processor']}; " if record['processor'] != 'auto' else ''}every side from the same parameters and first batch.

{table(record)}

Times are medians over rounds; ratios are of the same round, with quartiles: above 1, Fullbore is faster. Start: from
the process's beginning to the end of its first step, with empty caches (Fullbore's without writing what the others begin
with); less a step: what of it is no work of a step.

{chr(10).join(rooflines(record))}
{details}
"""
