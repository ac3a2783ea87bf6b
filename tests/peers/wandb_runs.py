"""Check the offline run of a run folder by the client of Weights & Biases (pip install wandb).

    wandb_runs.py RUN            let 'wandb sync' deliver RUN/wandb to a server in this process, and compare each row
                                 that arrives, the summary, the settings and the state with metrics.jsonl
    wandb_runs.py --golden FILE  let the client write an offline run of two rows and a record longer than a block
"""
import glob
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from events import numbers


def write_golden(path):
    """Write a run without anything of this machine."""
    import wandb
    with tempfile.TemporaryDirectory() as folder:
        settings = wandb.Settings(mode="offline", host="host", x_disable_meta=True, x_disable_stats=True,
                                  x_disable_machine_info=True, disable_git=True, save_code=False, console="off",
                                  silent=True, program="program", run_id="abcd1234")
        with wandb.init(dir=folder, project="p", name="n", config={"long": 33000 * "x"}, settings=settings) as run:
            run.log({"step/loss": 0.5, "step/lr": 0.25}, step=1)
            run.log({"step/loss": 0.25, "validation/dice.mean": 1e-3}, step=2)
        wandb.teardown()
        shutil.copy(glob.glob(f"{folder}/wandb/offline-run-*/*.wandb")[0], path)


class Server(BaseHTTPRequestHandler):
    """As much of a server as 'wandb sync' needs; keeps what arrives."""
    rows, settings, summary, end = {}, {}, {}, {}

    def do_POST(self):
        """Answer a query, or take rows."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path == "/graphql":
            self.answer(self.query(json.loads(body)))
        elif self.path.endswith("/file_stream"):
            self.take(json.loads(body))
            self.answer({"exitcode": None, "limits": {}})
        else:
            self.answer({})

    def do_PUT(self):
        """Take a file."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer({})

    def query(self, request):
        """Answer the two mutations; 'wandb sync' does without the answers to other queries."""
        given = request.get("variables") or {}
        if "upsertBucket" in request["query"]:
            self.settings.update(json.loads(given.get("config") or "{}"))
            project = {"id": "p", "name": given["project"], "entity": {"id": "e", "name": given["entity"] or "me"}}
            bucket = {"id": "b", "name": given["name"], "displayName": given["displayName"], "project": project,
                      "historyLineCount": 0}
            return {"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}}
        if "createRunFiles" in request["query"]:
            address = f"http://127.0.0.1:{self.server.server_address[1]}/upload"
            files = [{"name": name, "uploadUrl": address} for name in given["files"]]
            return {"data": {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}}}
        return {"data": {}}

    def take(self, sent):
        """Keep rows by their line, and the last summary."""
        history = sent.get("files", {}).get("wandb-history.jsonl")
        for line, row in enumerate(history["content"] if history else [], history["offset"] if history else 0):
            self.rows[line] = json.loads(row)
        for text in sent.get("files", {}).get("wandb-summary.json", {}).get("content", []):
            self.summary.update(json.loads(text))
        if sent.get("complete"):
            self.end["exit code"] = sent["exitcode"]

    def answer(self, what):
        """Send JSON."""
        data = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


def deliver(run):
    """Run 'wandb sync' as a user does."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        setting = dict(os.environ, HOME=home, WANDB_API_KEY=40 * "0",
                       WANDB_BASE_URL=f"http://127.0.0.1:{server.server_address[1]}")
        program = os.path.join(os.path.dirname(sys.executable), "wandb")
        done = subprocess.run([program, "sync", "--include-synced", *glob.glob(f"{run}/wandb/offline-run-*")],
                              env=setting, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "Finished syncing" not in done.stdout + done.stderr:
        sys.exit(f"wandb sync: {done.stdout}{done.stderr}")


def wanted_rows(run):
    """Give {step: {name: number}} of metrics.jsonl."""
    rows = {}
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            rows.setdefault(record["step"], {}).update(numbers(record))
    return rows


def compare(run):
    """Compare what has arrived."""
    deliver(run)
    found = [Server.rows[line] for line in sorted(Server.rows)]
    wanted = wanted_rows(run)
    if [row["_step"] for row in found] != sorted(wanted):
        sys.exit(f"steps differ: {[row['_step'] for row in found]}, expected {sorted(wanted)}")
    last = {}
    for row in found:
        got = {name: number for name, number in row.items() if not name.startswith("_")}
        if got != wanted[row["_step"]]:
            sys.exit(f"step {row['_step']} differs: {got}, expected {wanted[row['_step']]}")
        last.update(row)
    differing = [name for name in last if Server.summary.get(name) != last[name]]
    if differing:
        sys.exit(f"the summary differs in {differing}")
    print(f"{len(found)} rows, {len(Server.summary)} values of the summary, {len(Server.settings)} settings, "
          f"model {Server.settings['model.plugin']['value']}, exit code {Server.end.get('exit code')}")


if __name__ == "__main__":
    if sys.argv[1] == "--golden":
        write_golden(sys.argv[2])
    else:
        compare(sys.argv[1])
