"""Compare a run on a real server of MLflow with the metrics.jsonl of its folder.

    mlflow server --port 5000 &                                  # pip install mlflow
    pons train e.ini --set log.sinks=mlflow
    mlflow_runs.py RUN
"""
import json
import sys

from events import read_lines
from mlflow.tracking import MlflowClient


def compare(run):
    """Compare every number and step, the status and a parameter."""
    with open(f"{run}/mlflow.json", encoding="utf-8") as file:
        state = json.load(file)
    client = MlflowClient(state["uri"])
    found = client.get_run(state["run_id"])
    wanted = read_lines(run)
    if set(found.data.metrics) != set(wanted):
        sys.exit(f"names differ: {set(found.data.metrics) ^ set(wanted)}")
    for name, points in wanted.items():
        history = sorted((m.step, m.value) for m in client.get_metric_history(state["run_id"], name))
        same = [h[0] for h in history] == [p[0] for p in points] and (
            name.endswith("seconds") or name.endswith("memory")
            or all(abs(h[1] - p[1]) <= 1e-6 * abs(p[1]) for h, p in zip(history, points)))
        if not same:
            sys.exit(f"{name} differs: {history}, expected {points}")
    print(f"{len(wanted)} metrics of {sum(map(len, wanted.values()))} points, {len(found.data.params)} parameters, "
          f"model {found.data.params['model.plugin']}, {found.info.status}")


compare(sys.argv[1])
