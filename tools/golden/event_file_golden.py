#!/usr/bin/env python3
"""Golden bytes of TensorBoard's event files, and a check of ours by TensorBoard's own reader.

    tools/golden/event_file_golden.py > tests/monitor/golden/event_file.json
    tools/golden/event_file_golden.py RUN/tensorboard      prints every curve that the reader finds

Needs the Python package `tensorboard` (2.x).
"""

import io
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

SCALARS = [("train/loss", 2.5), ("train/learning_rate", 1e-3), ("evaluation/validation_loss", float("inf"))]


def scalars(step, seconds):
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in SCALARS]
    return Event(wall_time=seconds, step=step, summary=Summary(value=values))


def golden():
    events = [
        Event(wall_time=1700000000.25, file_version="brain.Event:2"),
        Event(wall_time=1700000000.5, step=301, session_log=SessionLog(status=SessionLog.START)),
        scalars(310, 1700000001.0),
        scalars(123456789012, 1700000002.0),
    ]
    buffer = io.BytesIO()
    writer = RecordWriter(buffer)
    for event in events:
        writer.write(event.SerializeToString())
    return {"scalars": [[tag, str(value)] for tag, value in SCALARS], "file": buffer.getvalue().hex()}


def read(folder):
    accumulator = EventAccumulator(folder)
    accumulator.Reload()
    for tag in sorted(accumulator.Tags()["scalars"]):
        points = accumulator.Scalars(tag)
        print(tag, len(points), "points, steps", points[0].step, "to", points[-1].step, "last", points[-1].value)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        read(sys.argv[1])
    else:
        print(json.dumps(golden(), indent=1))
