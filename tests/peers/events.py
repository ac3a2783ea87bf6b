"""Check the events of a run by TensorBoard's own reader, or write the golden file.

    events.py RUN          compare the event files of a run folder with its metrics.jsonl
    events.py --golden FILE
"""
import json
import math
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import attr_value_pb2, event_pb2, graph_pb2, node_def_pb2, summary_pb2
from tensorboard.compat.proto import tensor_shape_pb2, versions_pb2
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def golden_graph():
    """Give a GraphDef of an input and an operation on it."""
    shape = tensor_shape_pb2.TensorShapeProto
    shapes = [shape(dim=[shape.Dim(size=n) for n in (2, 1, 4, 4, channels)]) for channels in (1, 8)]
    nodes = [node_def_pb2.NodeDef(name="level_1/input", op="input"),
             node_def_pb2.NodeDef(name="level_1/a/convolution", op="convolution", input=["level_1/input"])]
    for node, found in zip(nodes, shapes):
        node.attr["_output_shapes"].CopyFrom(
            attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(shape=[found])))
    return graph_pb2.GraphDef(node=nodes, versions=versions_pb2.VersionDef(producer=22))


def golden_image():
    """Give a value with an image of a description; its bytes stand for a PNG."""
    image = summary_pb2.Summary.Image(height=2, width=3, colorspace=3, encoded_image_string=b"\x89PNG")
    metadata = summary_pb2.SummaryMetadata(
        summary_description="columns", plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="images"))
    return summary_pb2.Summary.Value(tag="case/liver_1", image=image, metadata=metadata)


def write_golden(path):
    """Write a version, a graph, a record of two scalars, an image, and a start event."""
    value = summary_pb2.Summary.Value
    values = [value(tag="step/loss", simple_value=0.5), value(tag="step/lr", simple_value=0.25)]
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    with open(path, "wb") as file:
        writer = RecordWriter(file)
        for event in (event_pb2.Event(wall_time=1, file_version="brain.Event:2"),
                      event_pb2.Event(wall_time=1.5, graph_def=golden_graph().SerializeToString()),
                      event_pb2.Event(wall_time=2.5, step=300, summary=summary_pb2.Summary(value=values)),
                      event_pb2.Event(wall_time=3, step=300, summary=summary_pb2.Summary(value=[golden_image()])),
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


def png_size(data):
    """Give width and height of a whole PNG file, else end."""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[-8:-4] != b"IEND":
        sys.exit("an image is no PNG file")
    return struct.unpack(">II", data[16:24])


def check_images(events, validations):
    """Require of each case at most one image a validation, one of the last, and the sizes of the PNG files."""
    tags = [tag for tag in events.Tags()["images"] if tag.startswith("case/")]
    count = 0
    for tag in tags:
        images = events.Images(tag)
        steps = [image.step for image in images]
        if steps != sorted(set(steps)) or not set(steps) <= set(validations) or steps[-1] != validations[-1]:
            sys.exit(f"{tag} has images of steps {steps}, validations are {validations}")
        for image in images:
            if png_size(image.encoded_image_string) != (image.width, image.height):
                sys.exit(f"{tag}: a PNG of {png_size(image.encoded_image_string)}, not {image.width, image.height}")
        count += len(images)
    return f"{count} images of {len(tags)} cases"


def check_graph(events):
    """Require unique names, inputs that are nodes, one shape each, and levels as outer boxes."""
    graph = events.Graph()
    names = [node.name for node in graph.node]
    if len(set(names)) < len(names) or any(name not in names for node in graph.node for name in node.input):
        sys.exit("the graph has two nodes of one name, or an input that is no node")
    if any(len(node.attr["_output_shapes"].list.shape) != 1 for node in graph.node):
        sys.exit("a node of the graph has no shape")
    levels = {name.split("/")[0] for name in names}
    kinds = [node.op for node in graph.node]
    return (f"a graph of {len(names)} nodes with {kinds.count('parameter')} parameters and "
            f"{kinds.count('convolution')} convolutions in levels {' '.join(sorted(levels))}")


def compare(run):
    """Compare every scalar, and look for the hyperparameters, images and the graph."""
    events = EventAccumulator(run, size_guidance={"scalars": 0, "images": 0})
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
    validations = [step for step, _ in wanted.get("validation/cases", [])]
    print(check_images(events, validations) if validations else "no validation")
    print(check_graph(events))


if __name__ == "__main__":
    if sys.argv[1] == "--golden":
        write_golden(sys.argv[2])
    else:
        compare(sys.argv[1])
