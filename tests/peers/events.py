"""Check the events of a run by TensorBoard's own reader, or write the golden file.

    events.py RUN          compare the event files of a run folder with its metrics.jsonl
    events.py --golden FILE
"""
import json
import math
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def write_golden(path):
    """Write a version, a record of two scalars, and a start event."""
    value = summary_pb2.Summary.Value
    values = [value(tag="step/loss", simple_value=0.5), value(tag="step/lr", simple_value=0.25)]
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    with open(path, "wb") as file:
        writer = RecordWriter(file)
        for event in (event_pb2.Event(wall_time=1, file_version="brain.Event:2"),
                      event_pb2.Event(wall_time=2.5, step=300, summary=summary_pb2.Summary(value=values)),
                      event_pb2.Event(wall_time=3.5, step=301, session_log=start)):
            writer.write(event.SerializeToString())


def numbers(record):
    """Give the tag and the number of each finite number of a record of metrics.jsonl."""
    for name, value in record.items():
        if name in ("kind", "step", "epoch"):
            continue
        for key, number in value.items() if isinstance(value, dict) else [(None, value)]:
            if number is not None and math.isfinite(number):
                yield f"{record['kind']}/{name}" + (f".{key}" if key is not None else ""), number


def read_lines(run):
    """Give {tag: [(step, float32)]} of metrics.jsonl."""
    found = {}
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            for tag, number in numbers(record):
                short = struct.unpack("f", struct.pack("f", number))[0]
                found.setdefault(tag, []).append((record["step"], short))
    return found


def compare(run):
    """Compare every scalar, and look for the hyperparameters."""
    events = EventAccumulator(run, size_guidance={"scalars": 0})
    events.Reload()
    wanted = read_lines(run)
    read = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    if set(read) != set(wanted):
        sys.exit(f"tags differ: {set(read) ^ set(wanted)}")
    for tag, points in wanted.items():
        same = [p[0] for p in read[tag]] == [p[0] for p in points] and all(
            abs(a[1] - b[1]) <= 1e-6 * abs(b[1]) for a, b in zip(read[tag], points))
        if not same:
            sys.exit(f"{tag} differs: {read[tag]}, expected {points}")
    (content,) = events.PluginTagToContent("hparams").values()
    data = plugin_data_pb2.HParamsPluginData.FromString(content)
    parameters = getattr(data, data.WhichOneof("data")).hparams
    print(f"{len(wanted)} scalars of {sum(map(len, wanted.values()))} points, {len(parameters)} hyperparameters, "
          f"model {parameters['model.plugin'].string_value}")


if __name__ == "__main__":
    if sys.argv[1] == "--golden":
        write_golden(sys.argv[2])
    else:
        compare(sys.argv[1])
