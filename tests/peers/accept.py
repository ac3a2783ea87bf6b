#!/usr/bin/env python3
"""Drive the installed program over a golden set: what MONAI and PyTorch compute, asked of pons by its commands.

usage: accept.py PONS GOLDEN [--only networks,trajectory,losses,optimizers,windows,transforms,metrics,schedules,counts,monai,fuzz]

PONS is the installed program, GOLDEN a folder of golden values (tests/golden, or such a set of another seed). Every
check prints a line when it fails; the last line counts them. Needs numpy, nibabel, safetensors, torch and monai.

One golden set in several is out of reach of any float32 program: a trajectory in which an activation comes nearer to its
kink than rounding (1e-7 of it), or Adam meets a gradient of its eps. PyTorch's own float32 misses those end weights too.
"""
import argparse
import json
import math
import pathlib
import shutil
import subprocess
import tempfile
import warnings

import nibabel
import numpy as np
from safetensors.numpy import load_file, save_file

warnings.filterwarnings("ignore")

LOGITS, LOGITS_BF16 = 1e-4, 3e-2          # of the largest element
GRADIENT = 1e-4                           # of max(largest of the tensor, 0.01 x largest of the network)
LOSS, TRAJECTORY_BF16 = 1e-5, 2e-2        # relative
WEIGHTS, WEIGHTS_LEAST = 1e-5, 1e-6       # of the largest element, or absolute
VOXELS, GEOMETRY, LABELS = 1e-4, 1e-4, 1e-3


class Acceptance:
    def __init__(self, pons, golden, work, seed):
        self.pons, self.golden, self.work, self.seed = pons, golden, work, seed
        self.checks, self.failures, self.worst = 0, 0, {}

    def check(self, name, good, text=""):
        self.checks += 1
        if not good:
            self.failures += 1
            print(f"FAILED {name}: {text}", flush=True)

    def near(self, name, found, expected, bound):
        """Largest difference at most `bound`; keeps the worst share of the bound per kind of check."""
        found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
        if found.shape != expected.shape:
            return self.check(name, False, f"shape {found.shape}, expected {expected.shape}")
        off = float(np.abs(found - expected).max()) if found.size else 0.0
        share = off / bound if bound else (0.0 if off == 0 else math.inf)
        kind = " ".join(part for part in name.split() if not part.startswith("@"))
        self.worst[kind] = max(self.worst.get(kind, 0), share)
        self.check(name, share <= 1, f"off by {off:.3g}, bound {bound:.3g}")

    def run(self, *arguments, code=0):
        done = subprocess.run([str(self.pons), *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != code:
            print(f"pons {' '.join(map(str, arguments))}: code {done.returncode}\n{done.stderr.strip()}", flush=True)
        self.check(f"exit code of {arguments[0]}", done.returncode == code, f"{done.returncode}, expected {code}")
        return done.stdout if done.returncode == code else None

    def load(self, kind):
        cases = json.loads((self.golden / f"{kind}.json").read_text())
        file = self.golden / f"{kind}.safetensors"
        return cases, load_file(file) if file.exists() else {}

    def folder(self, name):
        path = self.work / name.replace("/", "-")
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path


def part(arrays, prefix):
    return {k[len(prefix):]: v for k, v in arrays.items() if k.startswith(prefix)}


def text(value):
    """A Python value as pons writes it in an INI file: a b c, items a,b,c d,e,f, yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return " ".join(",".join(map(str, v)) if isinstance(v, (list, tuple)) else str(v) for v in value)
    return str(value)


def axes_of(arguments, flat):
    """Model options for pons: a 2D network's per-axis values take a 1 on the flat axis."""
    options = {k: v for k, v in arguments.items() if k not in ("spatial_dims", "in_channels", "out_channels")}
    if arguments["spatial_dims"] == 2:
        def widen(v):
            v = v if isinstance(v, (list, tuple)) else [v, v]
            return [*v[:flat], 1, *v[flat:]]
        options["strides"] = [widen(s) for s in options["strides"]]
        for k in ("kernel_size", "up_kernel_size"):
            if k in options:
                options[k] = widen(options[k])
    return options


def volume(array, flat=None):
    """[spatial] or [C, spatial] in file order, with the flat axis of a 2D image put back."""
    return array if flat is None else np.expand_dims(array, flat - 3)


def write(path, array, spacing=(1, 1, 1)):
    nibabel.save(nibabel.Nifti1Image(array, np.diag([*spacing, 1.0])), path)


def write_image(folder, stem, image, form):
    """An image [C, D, H, W] as files, and how pons is told of it: one per channel, or 4D with the channels last."""
    if form == "4d" and len(image) > 1:
        write(folder / f"{stem}.nii.gz", np.moveaxis(image, 0, -1))
        return str(folder / f"{stem}.nii.gz")
    for c, channel in enumerate(image):
        write(folder / f"{stem}_c{c}.nii.gz", channel)
    return ",".join(str(folder / f"{stem}_c{c}.nii.gz") for c in range(len(image)))


def ini(sections):
    return "".join(f"[{name}]\n" + "".join(f"{k} = {text(v)}\n" for k, v in keys.items()) for name, keys in sections.items())


def label_words(classes):
    return " ".join(f"class{c}:{c}" for c in range(classes))


def sections(folder, channels, classes, extent, model, **more):
    """What every file of this script says; `more` adds or replaces sections' keys."""
    base = {
        "experiment": dict(name="run", output=str(folder / "runs")),
        "data": dict(image=" ".join(str(folder / f"train/*_c{c}.nii.gz") for c in range(channels)),
                     label=str(folder / "train/*_label.nii.gz"), labels=label_words(classes), validation="none"),
        "patch": dict(extent=list(extent), sampling="whole"),
        "model": {"plugin": "unet", **model},
        "loss": dict(plugin="dice_ce"),
        "optimizer": dict(plugin="sgd", lr=1),
        "train": dict(steps=1, batch=2, precision="fp32"),
        "distribute": dict(threads=2),
    }
    for name, keys in more.items():
        base[name] = {**base.get(name, {}), **keys}
    return base


def write_training(folder, image, target, flat=None):
    """The two cases of a golden batch: channel files and a label each."""
    (folder / "train").mkdir(exist_ok=True)
    for n in range(len(image)):
        write_image(folder / "train", f"case{n}", volume(image[n], flat), "files")
        write(folder / "train" / f"case{n}_label.nii.gz", volume(target[n, 0], flat).astype(np.uint8))


def train(a, folder, content, name):
    """Train; the step records and the weights at the end, or None."""
    (folder / f"{name}.ini").write_text(ini(content))
    if a.run("train", folder / f"{name}.ini", "--set", f"experiment.name={name}", "-q") is None:
        return None
    run = folder / "runs" / name
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = (run / "checkpoints" / "last").read_text().strip()
    return [r for r in records if r["kind"] == "step"], load_file(run / "checkpoints" / last / "model.safetensors")


def gradients_near(a, name, found, expected):
    largest = max(np.abs(v).max() for v in expected.values())
    for k, v in expected.items():
        a.near(f"{name} @{k}", found[k], v, GRADIENT * max(np.abs(v).max(), 0.01 * largest))


def weights_near(a, name, found, expected):
    for k, v in expected.items():
        a.near(f"{name} @{k}", found[k], v, max(WEIGHTS * np.abs(v).max(), WEIGHTS_LEAST))


# ------------------------------------------------------------------ networks
def predict_logits(a, folder, images, weights, config, form, *flags):
    """Logits of each image [C, D, H, W], channels first."""
    names = [write_image(folder, f"{form}{n}", image, form) for n, image in enumerate(images)]
    out = folder / f"out_{form}"
    if a.run("predict", weights, "--config", config, *names, "-o", out, "--logits", "-q", *flags) is None:
        return None
    files = sorted(out.glob("*_logits.nii.gz"))
    a.check("predict writes a segmentation per image", len(list(out.glob("*.nii.gz"))) == 2 * len(images), str(list(out.iterdir())))
    logits = []
    for file in files:
        loaded = nibabel.load(file)
        a.check("logits are float32", loaded.get_data_dtype() == np.float32, str(loaded.get_data_dtype()))
        logits.append(np.moveaxis(loaded.get_fdata(), -1, 0))
        ids = nibabel.load(str(file).replace("_logits", "")).get_fdata()
        a.check("segmentation is the arg-max", (ids == logits[-1].argmax(0)).mean() > 0.999)
    return logits


PLUGINS = dict(UNet="unet", SegResNet="segresnet", DynUNet="dynunet")


def networks(a):
    cases, arrays = a.load("networks")
    for case in cases:
        if case["network"] not in PLUGINS or case["name"].startswith("count_"):
            continue
        flats = (2, 0, 1) if case["arguments"]["spatial_dims"] == 2 else (None,)
        for flat in flats:
            network(a, case, part(arrays, case["name"] + "/"), flat)


def network(a, case, arrays, flat):
    name = case["name"] + ("" if flat is None else f"_flat{flat}")
    folder, arguments = a.folder(name), case["arguments"]
    state, image, target = part(arrays, "state/"), arrays["image"], arrays["target"]
    extent = list(volume(image[0, 0], flat).shape)
    save_file(state, folder / "state.safetensors")
    model = {**axes_of(arguments, flat), "plugin": PLUGINS[case["network"]]}
    content = sections(folder, arguments["in_channels"], arguments["out_channels"], extent, model)
    (folder / "predict.ini").write_text(ini({k: v for k, v in content.items() if k not in ("loss", "optimizer")}))
    expected = [volume(v, flat) for v in arrays["eval/logits"]]
    for form in ("files", "4d") if arguments["in_channels"] > 1 else ("files",):
        for precision, share in (("fp32", LOGITS), ("bf16", LOGITS_BF16)):
            logits = predict_logits(a, folder, [volume(v, flat) for v in image], folder / "state.safetensors",
                                    folder / "predict.ini", form, "--set", f"train.precision={precision}")
            for n, v in enumerate(logits or []):
                a.near(f"{name} logits {precision} @{form}{n}", v, expected[n], share * np.abs(arrays["eval/logits"]).max())
    write_training(folder, image, target, flat)
    content["train"]["pretrained"] = str(folder / "state.safetensors")
    # The weights' own rounding hides tiny gradients: step as far as the weights are large.
    lr = max(1.0, 2.0 ** -round(math.log2(max(np.abs(v).max() for v in part(arrays, "gradient/").values()))))
    content["optimizer"] = dict(content["optimizer"], lr=lr)
    done = train(a, folder, content, "step")
    if not done:
        return
    records, end = done
    a.check(f"{name} one step", len(records) == 1, str(records))
    a.near(f"{name} loss", records[0]["loss"], case["loss"], LOSS * case["loss"])
    gradients_near(a, f"{name} gradient", {k: (state[k].astype(np.float64) - end[k]) / lr for k in part(arrays, "gradient/")}, part(arrays, "gradient/"))
    norm = math.sqrt(sum(float((v.astype(np.float64) ** 2).sum()) for v in part(arrays, "gradient/").values()))
    a.near(f"{name} grad_norm", records[0]["grad_norm"], norm, 1e-4 * norm)
    for k, v in part(arrays, "after/").items():
        a.near(f"{name} after @{k}", end[k], v, LOGITS * np.abs(v).max())
    tracked = [v for k, v in end.items() if k.endswith("num_batches_tracked")]
    a.check(f"{name} num_batches_tracked", all(v.dtype == np.int64 and v.shape == () and v == 1 for v in tracked), str(tracked))
    a.check(f"{name} tensors", {k: v.shape for k, v in end.items() if not k.endswith("tracked")} ==
            {k: v.shape for k, v in state.items() if not k.startswith("skip_layers.")})


# ------------------------------------------------------------------ trajectory
def trajectory(a):
    cases, arrays = a.load("trajectory")
    extra = {"adam_dice_ce": ({}, {}), "novograd_dice": ({}, dict(include_background=False)),
             "sgd_dice_focal": (dict(momentum=0.9, nesterov=True), {})}
    for case in cases:
        name, own = case["name"], part(arrays, case["name"] + "/")
        folder, (optimizer, loss) = a.folder(name), extra[case["name"]]
        write_training(folder, own["image"], own["target"])
        save_file(part(own, "start/"), folder / "start.safetensors")
        for precision in ("fp32", "bf16"):
            content = sections(folder, 1, 2, own["image"].shape[2:], axes_of(case["arguments"], None),
                               loss=dict(plugin=case["loss"], **loss), optimizer=dict(plugin=case["optimizer"], lr=case["lr"], **optimizer),
                               train=dict(steps=6, precision=precision, pretrained=str(folder / "start.safetensors")))
            done = train(a, folder, content, precision)
            if not done:
                continue
            records, end = done
            bound = LOSS if precision == "fp32" else TRAJECTORY_BF16
            a.check(f"{name} steps", len(records) == 6, f"{len(records)}")
            for record, value in zip(records, case["losses"]):
                a.near(f"{name} {precision} loss @{record['step']}", record["loss"], value, bound * abs(value))
            if precision == "fp32":
                weights_near(a, f"{name} end", end, part(own, "end/"))


# ------------------------------------------------------------------ losses and optimizers, beside MONAI in double
def monai_network(arguments, seed):
    import torch
    from monai.networks.nets import UNet
    torch.manual_seed(seed)
    return UNet(**arguments)


def state_of(net):
    return {k: v.detach().to(dtype=v.dtype if "tracked" in k else v.float().dtype).numpy().copy() for k, v in net.state_dict().items()}


def beside_monai(a, name, arguments, image, target, make_loss, loss, data, optimizer, make_optimizer, steps, flat=None):
    """The same steps by MONAI in double and by pons; losses and weights at the end."""
    import torch
    net = monai_network(arguments, 11)
    folder = a.folder(name)
    start = state_of(net.float())
    save_file(start, folder / "start.safetensors")
    net = net.double().train()
    chosen, values = make_optimizer(net.parameters()), []
    for _ in range(steps):
        chosen.zero_grad()
        value = make_loss(net(torch.from_numpy(image).double()), torch.from_numpy(target["monai"]).double())
        value.backward()
        chosen.step()
        values.append(value.item())
    write_training(folder, image, target["ids"], flat)
    if steps == 1:  # the weights' own rounding hides tiny gradients: step as far as the weights are large
        names = [k for k, _ in net.named_parameters()]
        moved = {k: start[k].astype(np.float64) - net.state_dict()[k].detach().numpy() for k in names}
        optimizer = {**optimizer, "lr": max(1.0, 2.0 ** -round(math.log2(max(np.abs(v).max() for v in moved.values()))))}
    content = sections(folder, arguments["in_channels"], arguments["out_channels"], volume(image[0, 0], flat).shape,
                       axes_of(arguments, flat), data=data, loss=loss, optimizer=optimizer,
                       train=dict(steps=steps, pretrained=str(folder / "start.safetensors")))
    if data.get("regions"):
        del content["data"]["labels"]
    done = train(a, folder, content, "run")
    if not done:
        return
    records, end = done
    for record, value in zip(records, values):
        a.near(f"{name} loss @{record['step']}", record["loss"], value, LOSS * abs(value))
    gold = {k: v.detach().numpy() for k, v in net.state_dict().items() if "tracked" not in k}
    if steps == 1:
        gradients_near(a, f"{name} gradient", {k: (start[k].astype(np.float64) - end[k]) / optimizer["lr"] for k in names}, moved)
    else:
        weights_near(a, f"{name} end", end, gold)


def losses(a):
    """Every option of losses.json on a small network: value and gradients of one step of plain descent."""
    import torch
    from monai.losses import DiceCELoss, DiceFocalLoss, DiceLoss
    classes_of = {"dice": DiceLoss, "dice_ce": DiceCELoss, "dice_focal": DiceFocalLoss}
    cases, arrays = a.load("losses")
    rng = np.random.default_rng(5)
    for case in cases:
        name, softmax = case["name"], case["activation"] == "softmax"
        logits = arrays[f"{name}/logits"]
        classes, flat = logits.shape[1], 2 if logits.ndim == 4 else None
        spatial = (8, 12) if flat is not None else (8, 4, 12)
        arguments = dict(spatial_dims=len(spatial), in_channels=1, out_channels=classes, channels=(4, 8), strides=(2,), num_res_units=1)
        image = rng.standard_normal((2, 1) + spatial).astype(np.float32)
        most = (classes if softmax else classes + 1) - (1 if name.endswith("_absent") else 0)
        ids = rng.integers(0, max(most, 1), (2, 1) + spatial).astype(np.uint8)
        options = dict(case["options"])
        loss = dict(plugin=case["loss"], activation=case["activation"], **options)
        if "weight" in options:
            options["weight"] = torch.tensor(options["weight"], dtype=torch.float64)
        if softmax:
            target, data = ids, {}
            made = classes_of[case["loss"]](softmax=True, to_onehot_y=True, **options)
        else:  # nested regions: 1, 2, .. / 2, 3, .. / ...
            target = np.concatenate([(ids > c).astype(np.uint8) for c in range(classes)], 1)
            data = dict(regions=" ".join(f"r{c}:" + ",".join(str(i) for i in range(c + 1, classes + 1)) for c in range(classes)))
            made = classes_of[case["loss"]](sigmoid=True, **options)
        beside_monai(a, f"loss_{name}", arguments, image, dict(monai=target, ids=ids), made, loss, data, dict(plugin="sgd", lr=1),
                     lambda p: torch.optim.SGD(p, lr=1), 1, flat)


def optimizers(a):
    """Every option set of optimizers.json: six steps on a small network."""
    import torch
    from monai.losses import DiceCELoss
    from monai.optimizers import Novograd

    def maker(kind, lr, o):
        o, betas = dict(o), {}
        if "beta1" in o or "beta2" in o:
            first, second = (0.9, 0.999) if kind == "adam" else (0.9, 0.98)
            betas = dict(betas=(o.pop("beta1", first), o.pop("beta2", second)))
        classes = dict(adam=torch.optim.AdamW if o.pop("decoupled", False) else torch.optim.Adam, sgd=torch.optim.SGD, novograd=Novograd)
        return lambda p: classes[kind](p, lr=lr, **betas, **o)

    cases, _ = a.load("optimizers")
    rng = np.random.default_rng(6)
    arguments = dict(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1, norm="batch")
    for case in cases:
        image = rng.standard_normal((2, 1, 8, 4, 12)).astype(np.float32)
        ids = (image > 0.3).astype(np.uint8)
        lr = case["lr"] if case["optimizer"] != "novograd" else 1e-3
        beside_monai(a, f"optimizer_{case['name']}", arguments, image, dict(monai=ids, ids=ids), DiceCELoss(softmax=True, to_onehot_y=True),
                     dict(plugin="dice_ce"), {}, dict(plugin=case["optimizer"], lr=lr, **case["options"]),
                     maker(case["optimizer"], lr, case["options"]), 6)


# ------------------------------------------------------------------ windows
def windows(a):
    cases, arrays = a.load("windows")
    folder = a.folder("windows")
    save_file(part(arrays, "state/"), folder / "state.safetensors")
    for case in cases:
        if not case["name"].startswith("logits_"):
            continue
        content = sections(folder, 1, 2, case["extent"], axes_of(case["arguments"], None),
                           window=dict(extent=case["extent"], overlap=case["overlap"], mode=case["blend"],
                                       **({"mirror": case["mirror"]} if case["mirror"] else {})))
        (folder / "window.ini").write_text(ini(content))
        for batch in (1, 3):
            out = folder / f"{case['name']}_{batch}.nii.gz"
            if a.run("predict", folder / "state.safetensors", "--config", folder / "window.ini", a.golden / "windows_image.nii.gz",
                     "-o", out, "--logits", "-q", "--set", f"window.batch={batch}") is None:
                continue
            found = nibabel.load(str(out).replace(".nii.gz", "_logits.nii.gz"))
            expected = arrays[case["name"]][0]
            a.near(f"windows {case['name']} @{batch}", np.moveaxis(found.get_fdata(), -1, 0), expected, LOGITS * np.abs(expected).max())
            a.near("windows geometry", found.affine, nibabel.load(a.golden / "windows_image.nii.gz").affine, GEOMETRY)


# ------------------------------------------------------------------ transforms
def transforms(a):
    cases, _ = a.load("transforms")
    for case in cases:
        folder, name, chain = a.folder("transform"), case["name"], case["chain"]
        source = a.golden / "transforms"
        content = f"[data]\nimage = {source}/{case['volume']}_image.nii.gz\nlabel = {source}/{case['volume']}_label.nii.gz\n"
        ids = sorted(set(np.unique(nibabel.load(source / f"{case['volume']}_label.nii.gz").get_fdata().astype(int))) | {0})
        content += "labels = " + " ".join(f"class{i}:{i}" for i in ids) + "\n"
        (folder / "chain.ini").write_text(content + case.get("ini", ""))
        if a.run("data", "preprocess", folder / "chain.ini", "-o", folder / "out", "-q") is None:
            continue
        image = nibabel.load(folder / "out" / f"{case['volume']}_image" / "image.nii.gz")
        label = nibabel.load(folder / "out" / f"{case['volume']}_image" / "label.nii.gz")
        a.check(f"transform {name} float32", image.get_data_dtype() == np.float32)
        a.check(f"transform {name} extent", list(image.shape) == case["extent"], f"{image.shape}, expected {case['extent']}")
        a.near(f"transform {chain} affine @{name}", image.affine, case["affine"], GEOMETRY)
        a.near(f"transform {chain} label affine @{name}", label.affine, case["affine"], GEOMETRY)
        if list(image.shape) != case["extent"]:
            continue
        if chain == "read":
            gold = nibabel.load(source / f"{case['volume']}_image.nii.gz").get_fdata()
            gold_label = nibabel.load(source / f"{case['volume']}_label.nii.gz").get_fdata()
        else:
            gold = nibabel.load(source / f"{case['volume']}_{chain}_image.nii.gz").get_fdata()
            gold_label = nibabel.load(source / f"{case['volume']}_{chain}_label.nii.gz").get_fdata()
        a.near(f"transform {chain} image @{name}", image.get_fdata(), gold, VOXELS * max(gold.max() - gold.min(), 1e-6))
        differ = (label.get_fdata() != gold_label).mean()
        a.check(f"transform {name} label", differ <= LABELS, f"{differ:.4%} of the voxels differ")


# ------------------------------------------------------------------ metrics
def metrics(a):
    cases, _ = a.load("metrics")
    source = a.golden / "metrics"
    folder = a.folder("metrics")
    for side in ("prediction", "label"):
        (folder / side).mkdir()
        for case in cases:
            shutil.copy(source / f"{case['name']}_{side}.nii.gz", folder / side / f"{case['name']}.nii.gz")
    out = a.run("evaluate", "--prediction", folder / "prediction", "--label", folder / "label", "--labels", "one:1 two:2", "--json")
    if out is None:
        return
    result = json.loads(out)
    found = {c["case"]: c["classes"] for c in result["cases"]}
    for case in cases:
        single = a.run("evaluate", "--prediction", source / f"{case['name']}_prediction.nii.gz",
                       "--label", source / f"{case['name']}_label.nii.gz", "--labels", "one:1 two:2", "--json")
        for answer in (found.get(case["name"]), json.loads(single)["cases"][0]["classes"] if single else None):
            for n, cls in enumerate(("one", "two")):
                for metric in ("dice", "iou"):
                    value, expected = (answer or {}).get(cls, {}).get(metric, "none"), case[metric][n]
                    name = f"metrics {metric} @{case['name']} @{cls}"
                    if expected is None or value is None or value == "none":
                        a.check(name, value is expected, f"{value}, expected {expected}")
                    else:
                        a.near(name, value, expected, 1e-6)
    for n, cls in enumerate(("one", "two")):
        defined = [c["dice"][n] for c in cases if c["dice"][n] is not None]
        summary = result["summary"][cls]["dice"]
        a.near("metrics summary", summary["mean"], np.mean(defined), 1e-6)
        a.check("metrics defined", summary["defined"] == len(defined), str(summary))


# ------------------------------------------------------------------ schedules
def schedules(a):
    cases, _ = a.load("schedules")
    folder = a.folder("schedules")
    for case in cases:
        own = {k: case[k] for k in ("warmup_steps", "warmup_multiplier", "power", "flat", "final_divisor") if k in case}
        content = sections(folder, 1, 2, (16, 16, 16), dict(channels=(4, 8), strides=(2,)), schedule=dict(plugin=case["schedule"], **own),
                           optimizer=dict(plugin="adam", lr=case["lr"]), train=dict(steps=case["steps"]))
        (folder / "schedule.ini").write_text(ini(content))
        write_training(folder, np.zeros((2, 1, 16, 16, 16), np.float32), np.zeros((2, 1, 16, 16, 16)))
        out = a.run("explain", folder / "schedule.ini", "--schedule")
        if out is None:
            continue
        rows = [line.split() for line in out.splitlines()]
        table = {int(r[0]): float(r[1]) for r in rows if len(r) >= 2 and r[0].isdigit()}
        shift = 0 if 0 in table else 1
        values = [table.get(step + shift, math.nan) for step in range(case["steps"])]
        a.near(f"schedule {case['name']}", values, case["values"], 1e-6 * case["lr"])


# ------------------------------------------------------------------ counts and MONAI
COUNTS = {
    "count_spleen": ((1, 2), dict(channels=(16, 32, 64, 128, 256), strides=(2, 2, 2, 2), num_res_units=2, norm="batch")),
    "count_spleen_fast": ((1, 2), dict(channels=(32, 64, 128, 256, 512), strides=(2, 2, 2, 2), num_res_units=2, norm="batch", dropout=0.2)),
    "count_brats_unet": ((4, 3), dict(channels=(16, 32, 64, 128, 256), strides=(2, 2, 2, 2), num_res_units=2)),
    "count_nobrainer": ((1, 2), dict(channels=(16, 32, 64, 128, 256), strides=(2, 2, 2, 2), norm="batch", act="relu")),
}


def counts(a):
    """Parameters as explain counts them, tensors of a checkpoint by name and shape."""
    for case in a.load("networks")[0]:
        if case["name"] not in COUNTS:
            continue
        folder, ((inputs, outputs), model) = a.folder(case["name"]), COUNTS[case["name"]]
        rng = np.random.default_rng(1)
        image = rng.standard_normal((2, inputs, 32, 32, 32)).astype(np.float32)
        write_training(folder, image, rng.integers(0, outputs, (2, 1, 32, 32, 32)))
        content = sections(folder, inputs, outputs, (32, 32, 32), model)
        done = train(a, folder, content, "run")
        out = a.run("explain", folder / "run.ini", "--json")
        if out:
            a.check(f"{case['name']} parameter_count", json.loads(out)["parameter_count"] == case["parameters"], out[:200])
        if done:
            a.check(f"{case['name']} tensors", {k: list(v.shape) for k, v in done[1].items()} == case["state"])


def monai(a):
    """Weights travel both ways: a trained checkpoint loads strictly in MONAI, MONAI's saved state predicts in pons."""
    import torch
    cases, arrays = a.load("networks")
    for case in cases:
        if case["network"] != "UNet" or "arguments" not in case or case["arguments"]["spatial_dims"] == 2:
            continue
        own, arguments, name = part(arrays, case["name"] + "/"), case["arguments"], f"monai_{case['name']}"
        folder = a.folder(name)
        write_training(folder, own["image"], own["target"])
        content = sections(folder, arguments["in_channels"], arguments["out_channels"], own["image"].shape[2:], axes_of(arguments, None),
                           optimizer=dict(plugin="adam", lr=1e-2), train=dict(steps=3))
        done = train(a, folder, content, "run")
        if not done:
            continue
        net = monai_network(arguments, 3)
        try:
            net.load_state_dict({k: torch.from_numpy(v) for k, v in done[1].items()}, strict=True)
        except RuntimeError as error:
            a.check(name, False, str(error))
            continue
        foreign = monai_network(arguments, 4)
        from safetensors.torch import save_file as save_torch
        save_torch(foreign.state_dict(), folder / "foreign.safetensors")
        for kind, network, weights in (("run", net, folder / "runs/run"), ("foreign", foreign, folder / "foreign.safetensors")):
            with torch.no_grad():
                expected = network.double().eval()(torch.from_numpy(own["image"]).double()).numpy()
            flags = ("--config", folder / "run.ini") if kind == "foreign" else ()
            names = [write_image(folder, f"{kind}{n}", image, "files") for n, image in enumerate(own["image"])]
            if a.run("predict", weights, *flags, *names, "-o", folder / kind, "--logits", "-q") is None:
                continue
            for n, file in enumerate(sorted((folder / kind).glob("*_logits.nii.gz"))):
                found = np.moveaxis(nibabel.load(file).get_fdata(), -1, 0)
                a.near(f"{name} {kind} @{n}", found, expected[n], LOGITS * np.abs(expected).max())


def random_network(rng):
    """Arguments of a UNet that MONAI takes too, and an extent along D H W that it keeps."""
    pick, dims = (lambda *values: values[rng.integers(len(values))]), 2 if rng.random() < 0.3 else 3

    def per_axis(*values):
        return [pick(*values) for _ in range(dims)] if rng.random() < 0.5 else pick(*values)
    levels = pick(2, 3, 4)
    strides = [per_axis(1, 2) if rng.random() < 0.8 else per_axis(1, 3) for _ in range(levels - 1)]
    arguments = dict(spatial_dims=dims, in_channels=pick(1, 2, 5), out_channels=pick(2, 3, 4), channels=[int(rng.integers(2, 12)) for _ in range(levels)],
                     strides=strides, kernel_size=per_axis(1, 3, 5), up_kernel_size=per_axis(3, 5), num_res_units=pick(0, 1, 2, 3),
                     act=pick("prelu", "relu", "leakyrelu"), norm=pick("instance", "batch"), bias=bool(rng.random() < 0.7), adn_ordering=pick("NDA", "NA", "DAN", "AN", "A", "N", "ND"))
    whole = np.prod([[s] * dims if isinstance(s, int) else s for s in strides], axis=0)
    return arguments, [int(w * -(-int(rng.integers(6, 12)) // w)) for w in whole]


def nearest_kink(arguments, image):
    """The smallest size of what goes into an activation in the training step: at a kink float and double part."""
    import torch
    net, sizes = monai_network(arguments, 11).double().train(), [1.0]
    for module in net.modules():
        if isinstance(module, (torch.nn.PReLU, torch.nn.ReLU, torch.nn.LeakyReLU)):
            module.register_forward_pre_hook(lambda m, given: sizes.append(given[0].abs().min().item()))
    with torch.no_grad():
        net(torch.from_numpy(image).double())
    return min(sizes)


def fuzz(a):
    """Random arguments: one step's loss and gradients, and the prediction, beside MONAI in double."""
    import torch
    from monai.losses import DiceCELoss
    for n in range(40):
        rng = np.random.default_rng(a.seed * 1000 + n)
        arguments, extent = random_network(rng)
        flat = int(rng.integers(3)) if arguments["spatial_dims"] == 2 else None
        image = rng.standard_normal((2, arguments["in_channels"], *extent)).astype(np.float32)
        for _ in range(20):
            if nearest_kink(arguments, image) > 2e-6:
                break
            image = rng.standard_normal(image.shape).astype(np.float32)
        ids = rng.integers(0, arguments["out_channels"], (2, 1, *extent)).astype(np.uint8)
        before = a.failures
        beside_monai(a, f"fuzz_{n}", arguments, image, dict(monai=ids, ids=ids), DiceCELoss(softmax=True, to_onehot_y=True), dict(plugin="dice_ce"), {},
                     dict(plugin="sgd", lr=1), lambda p: torch.optim.SGD(p, lr=1), 1, flat)
        folder = a.work / f"fuzz_{n}"
        net = monai_network(arguments, 11)
        with torch.no_grad():
            expected = net.double().eval()(torch.from_numpy(image).double()).numpy()
        logits = predict_logits(a, folder, [volume(v, flat) for v in image], folder / "start.safetensors", folder / "run.ini", "files")
        for found, gold in zip(logits or [], expected):
            a.near(f"fuzz logits @{n}", found, volume(gold, flat), LOGITS * np.abs(expected).max())
        if a.failures > before:
            print(f"  fuzz_{n}: {arguments} {extent} flat {flat}")


PARTS = dict(networks=networks, trajectory=trajectory, losses=losses, optimizers=optimizers, windows=windows, transforms=transforms,
             metrics=metrics, schedules=schedules, counts=counts, monai=monai, fuzz=fuzz)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pons", type=pathlib.Path)
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--keep", type=pathlib.Path, help="work here and keep it")
    parser.add_argument("--seed", type=int, default=0, help="of fuzz")
    options = parser.parse_args()
    work = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="pons-accept-"))
    a = Acceptance(options.pons.resolve(), options.golden.resolve(), work.resolve(), options.seed)
    for name in options.only.split(","):
        before = a.failures, a.checks
        PARTS[name](a)
        print(f"{name}: {a.checks - before[1]} checks, {a.failures - before[0]} failures", flush=True)
    for kind, share in sorted(a.worst.items(), key=lambda item: -item[1])[:12]:
        print(f"  {share:6.3f} of the bound: {kind}")
    if not options.keep:
        shutil.rmtree(work)
    print(f"{a.checks} checks, {a.failures} failures")
    return 1 if a.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
