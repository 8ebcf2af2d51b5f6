"""Perfetto's trace files, by the message classes of the Python package perfetto.

Needs perfetto and protobuf. It profiles a small model by the command, once as it is and once with thread groups, parses the
trace with Perfetto's own classes, and follows the rules of its importer: texts are interned before they are named, each end
closes the slice that was begun last on its track, times of a track do not run backwards, counters have a track. Compared
are the number of launches of each kernel with the profile's own table, the steps with what they are made of, the
largest arena with the plan's, and the number of events with the file's label.
"""
import collections
import importlib.metadata
import json
import pathlib
import subprocess
import tempfile

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

CONFIG = "model: {name: gpt, layers: 2, heads: 2, width: 32, context: 32}\ntrain: {batch_size: 4}\n"
SETTINGS = [["engine.parallel_microbatches=1"], ["engine.parallel_microbatches=2", "engine.accumulate=2"]]


class Trace:
    """What a file holds: slices by track name, counters by name, labels of the process."""

    def __init__(self, data, differences):
        self.slices = collections.defaultdict(list)
        self.counters = collections.defaultdict(list)
        self.labels = {}
        self.events = 0
        self.differences = differences
        trace = protos.Trace()
        trace.ParseFromString(data)
        trace.DiscardUnknownFields()
        if trace.ByteSize() != len(data):
            differences.append(f"{len(data)} bytes, of which the package knows {trace.ByteSize()}")
        names, keys, values, tracks, stacks, last = {}, {}, {}, {}, collections.defaultdict(list), {}
        for packet in trace.packet:
            if packet.trusted_packet_sequence_id == 0:
                differences.append("a packet of no sequence")
            if packet.HasField("interned_data"):
                names.update((entry.iid, entry.name) for entry in packet.interned_data.event_names)
                keys.update((entry.iid, entry.name) for entry in packet.interned_data.debug_annotation_names)
                values.update((entry.iid, entry.str.decode())
                              for entry in packet.interned_data.debug_annotation_string_values)
            if packet.HasField("track_descriptor"):
                self.add_track(packet.track_descriptor, tracks)
            if packet.HasField("track_event"):
                if not packet.sequence_flags & protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE:
                    differences.append("an event that does not ask for the interned texts")
                self.add_event(packet, names, keys, values, tracks, stacks, last)
        for track, stack in stacks.items():
            if stack:
                differences.append(f"{track}: {len(stack)} slices without an end")

    def add_track(self, descriptor, tracks):
        if descriptor.HasField("process"):
            self.labels = dict(label.split(": ", 1) for label in descriptor.process.process_labels)
        elif descriptor.HasField("thread"):
            tracks[descriptor.uuid] = descriptor.thread.thread_name
        elif descriptor.HasField("counter"):
            if descriptor.counter.unit != protos.CounterDescriptor.UNIT_SIZE_BYTES:
                self.differences.append(f"{descriptor.name}: not of bytes")
            tracks[descriptor.uuid] = descriptor.name

    def add_event(self, packet, names, keys, values, tracks, stacks, last):
        event, differences = packet.track_event, self.differences
        if event.track_uuid not in tracks:
            differences.append(f"an event on track {event.track_uuid}, which is none")
            return
        track = tracks[event.track_uuid]
        if packet.timestamp < last.get(track, 0):
            differences.append(f"{track}: time runs backwards at {packet.timestamp}")
        last[track] = packet.timestamp
        if event.type == protos.TrackEvent.TYPE_COUNTER:
            self.events += 1
            self.counters[track].append((packet.timestamp, event.counter_value))
        elif event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
            self.events += 1
            if event.name_iid not in names:
                differences.append(f"{track}: name {event.name_iid} is not interned")
            arguments = {}
            for one in event.debug_annotations:
                value = values.get(one.string_value_iid) if one.string_value_iid else (one.int_value or one.double_value)
                arguments[keys.get(one.name_iid)] = value
                if one.name_iid not in keys or value is None:
                    differences.append(f"{track}: an argument whose text is not interned")
            stacks[track].append((names.get(event.name_iid), packet.timestamp, arguments))
        elif event.type == protos.TrackEvent.TYPE_SLICE_END:
            if not stacks[track]:
                differences.append(f"{track}: an end without a begin")
                return
            name, begin, arguments = stacks[track].pop()
            self.slices[track].append((name, begin, packet.timestamp, len(stacks[track]), arguments))
        else:
            differences.append(f"{track}: an event of type {event.type}")


def compare(trace, table, plan, differences):
    """Returns how many things were compared."""
    steps = next(slices for track, slices in trace.slices.items() if track.startswith("steps of"))
    outer = sorted((s for s in steps if s[3] == 0), key=lambda s: s[1])
    if len(outer) != table["steps"]:
        differences.append(f"{len(outer)} steps, {table['steps']} in the table")
    for name, begin, end, _, _ in outer:
        inner = sum(s[2] - s[1] for s in steps if s[3] == 1 and begin <= s[1] and s[2] <= end)
        if abs(inner - (end - begin)) > 1000:
            differences.append(f"{name}: {end - begin} ns, its parts {inner}")
    kernels = collections.Counter()
    for track, slices in trace.slices.items():
        if track == "worker 0":
            kernels.update(s[0] for s in slices)
        if track.startswith("worker"):
            for name, begin, end, _, _ in slices:
                if not any(o[1] <= begin and end <= o[2] for o in outer):
                    differences.append(f"{track}: {name} lies in no step")
    table_launches = collections.Counter()
    for kernel in table["kernels"]:
        table_launches[kernel["kernel"]] += kernel["launches"] * table["steps"]
    workers = sum(track.startswith("worker") for track in trace.slices)
    for kernel, launches in table_launches.items():
        # In thread groups each worker makes the launches of its own group.
        found = sum(s[0] == kernel for track, slices in trace.slices.items() if track.startswith("worker") for s in slices)
        if not launches <= found <= launches * workers:
            differences.append(f"{kernel}: {found} slices, {launches} launches")
    for name in kernels:
        if name not in table_launches:
            differences.append(f"{name}: not in the table")
    arena = max(value for _, value in trace.counters["live bytes of the arena"])
    if not 0 < arena <= plan["arena_bytes"]:
        differences.append(f"{arena} bytes live, the arena has {plan['arena_bytes']}")
    if min(value for _, value in trace.counters["resident bytes of the process"]) <= 0:
        differences.append("a process without memory")
    if int(trace.labels["events"]) != trace.events:
        differences.append(f"{trace.events} events, the label says {trace.labels['events']}")
    return len(outer) + len(table_launches) + trace.events


def run(root, build, keep):
    del root, keep
    binary = build / "bin" / "fullbore"
    differences, compared, sizes = [], 0, {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "small.yaml").write_text(CONFIG, encoding="utf-8")

        def command(*arguments):
            return subprocess.run([str(binary), *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout

        for settings in SETTINGS:
            job = ["small.yaml", "--vocabulary", "65", *settings]
            command("profile", *job, "--trace", "small.pftrace", "--json", "table.json")
            table = json.loads((folder / "table.json").read_text(encoding="utf-8"))
            plan = json.loads(command("plan", *job, "--json"))
            data = (folder / "small.pftrace").read_bytes()
            trace = Trace(data, differences)
            compared += compare(trace, table, plan["train"], differences)
            command("profile", *job, "--trace", "small.json")
            sizes[" ".join(settings)] = {"pftrace_bytes": len(data), "json_bytes": (folder / "small.json").stat().st_size}
    return {"versions": {package: importlib.metadata.version(package) for package in ("perfetto", "protobuf")},
            "compared": compared, "differences": differences[:50], "sizes": sizes}
