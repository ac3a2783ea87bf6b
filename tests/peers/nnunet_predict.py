#!/usr/bin/env python3
"""nnU-Net's prediction on the processor, whole and in parts, for the files that pons gets.

usage: nnunet_predict.py FOLDER make     plans for CT of 512 x 512 x 200 voxels of 0.8 x 0.8 x 1.5 mm by nnU-Net's
                                         planner, with random weights: FOLDER/model (3 classes), model_thin (2 to 20
                                         features) and model_thin_100 (100 classes); scans of 0.75 x 0.75 x 1.4 mm that
                                         become a window of 191 x 191 x 63, 256 x 256 x 100 and 512 x 512 x 200 voxels:
                                         FOLDER/one, small and large
       nnunet_predict.py FOLDER STEP     processor seconds and the peak in MiB of import: the imports and the model;
                                         prepare: read, crop, normalize and resample the large scan; window: one of the
                                         network's, after one that warms up; sums: a window's logits times gaussian,
                                         added; export: resample the large scan's logits back, arg-max and write
"""
import json, os, pathlib, resource, shutil, sys

import numpy as np

NAME, SPACING, SHAPE, CASES = "Dataset903_Window", [1.5, 0.8, 0.8], [200, 512, 512], 20
SCANS = {"one": (204, 204, 68), "small": (273, 273, 107), "large": (546, 546, 214)}
PLAIN = "nnUNetTrainer__nnUNetPlans__3d_fullres"
CT = dict(max=400.0, mean=24.18, median=20.0, min=-300.0, percentile_00_5=-61.5, percentile_99_5=118.0, std=37.91)


def spent():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def set_folders(folder):
    for name in ("raw", "preprocessed", "results"):
        os.environ[f"nnUNet_{name}"] = str(folder / name)
        (folder / name).mkdir(exist_ok=True)


def write_scan(path, extent):
    """A body in air with organs of different density, and noise."""
    import nibabel as nib
    rng = np.random.default_rng(0)
    i, j, k = np.meshgrid(*[np.linspace(-1, 1, e, dtype=np.float32) for e in extent], indexing="ij")
    image = np.where(i ** 2 + 1.4 * j ** 2 < 0.8, 40, -1000).astype(np.float32)
    for c in range(1, 5):
        x = rng.uniform(-0.4, 0.4, 3)
        image[(i - x[0]) ** 2 + (j - x[1]) ** 2 + (k - x[2]) ** 2 / 2 < rng.uniform(0.03, 0.1)] += 30 * c
    image += 15 * rng.standard_normal(extent, dtype=np.float32)
    path.parent.mkdir(exist_ok=True)
    nib.save(nib.Nifti1Image(image.astype(np.int16), np.diag([-0.75, -0.75, 1.4, 1.0])), path)


def make_plans(folder):
    """The plans of a fingerprint; of the images nnU-Net looks at names alone, and opens the first."""
    from nnunetv2.experiment_planning.experiment_planners.default_experiment_planner import ExperimentPlanner
    raw, to = folder / "raw" / NAME, folder / "preprocessed" / NAME
    for place in (raw / "imagesTr", raw / "labelsTr", to):
        place.mkdir(parents=True, exist_ok=True)
    for n in range(CASES):
        write_scan(raw / f"imagesTr/case_{n}_0000.nii.gz", (4, 4, 4))
        write_scan(raw / f"labelsTr/case_{n}.nii.gz", (4, 4, 4))
    (raw / "dataset.json").write_text(json.dumps(header(3)))
    (to / "dataset_fingerprint.json").write_text(json.dumps({
        "spacings": [SPACING] * CASES, "shapes_after_crop": [SHAPE] * CASES,
        "foreground_intensity_properties_per_channel": {"0": CT}, "median_relative_size_after_cropping": 1.0}))
    ExperimentPlanner(NAME).plan_experiment()
    return json.loads((to / "nnUNetPlans.json").read_text())


def header(classes):
    return {"channel_names": {"0": "CT"}, "labels": {"background": 0, **{f"c{c}": c for c in range(1, classes)}},
            "numTraining": CASES, "file_ending": ".nii.gz"}


def make_model(to, plans, classes):
    import torch
    from nnunetv2.utilities.get_network_from_plans import get_network_from_plans
    arch = plans["configurations"]["3d_fullres"]["architecture"]
    torch.manual_seed(0)
    network = get_network_from_plans(arch["network_class_name"], arch["arch_kwargs"], arch["_kw_requires_import"], 1,
                                     classes, deep_supervision=True)
    (to / "fold_0").mkdir(parents=True, exist_ok=True)
    (to / "plans.json").write_text(json.dumps(plans))
    (to / "dataset.json").write_text(json.dumps(header(classes)))
    torch.save({"network_weights": network.state_dict(), "optimizer_state": {}, "grad_scaler_state": None,
                "logging": {}, "_best_ema": None, "current_epoch": 1000, "trainer_name": "nnUNetTrainer",
                "init_args": {"plans": plans, "configuration": "3d_fullres", "fold": 0,
                              "dataset_json": header(classes)},
                "inference_allowed_mirroring_axes": (0, 1, 2)}, to / "fold_0/checkpoint_final.pth")


def make(folder):
    set_folders(folder)
    plans = make_plans(folder)
    for name, extent in SCANS.items():
        write_scan(folder / name / "scan_0000.nii.gz", extent)
    make_model(folder / "model" / PLAIN, plans, 3)
    kwargs = plans["configurations"]["3d_fullres"]["architecture"]["arch_kwargs"]
    kwargs["features_per_stage"] = [f // 16 for f in kwargs["features_per_stage"]]
    make_model(folder / "model_thin" / PLAIN, plans, 3)
    make_model(folder / "model_thin_100" / PLAIN, plans, 100)
    shutil.rmtree(folder / "results", ignore_errors=True)


class Peer:
    def __init__(self, folder):
        set_folders(folder)
        import torch
        from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor
        torch.set_num_threads(1)
        self.folder, self.torch = folder, torch
        self.predictor = nnUNetPredictor(use_mirroring=False, perform_everything_on_device=False, allow_tqdm=False,
                                         device=torch.device("cpu"))
        self.predictor.initialize_from_trained_model_folder(str(folder / "model" / PLAIN), (0,), "checkpoint_final.pth")
        self.plans = self.predictor.configuration_manager

    def case(self):
        from nnunetv2.preprocessing.preprocessors.default_preprocessor import DefaultPreprocessor
        p = self.predictor
        return DefaultPreprocessor(verbose=False).run_case(
            [str(self.folder / "large/scan_0000.nii.gz")], None, p.plans_manager, p.configuration_manager,
            p.dataset_json)

    def read(self):
        self.begin = 0

    def prepare(self):
        self.begin = spent()
        self.case()

    def window(self):
        network = self.predictor.network
        network.load_state_dict(self.predictor.list_of_parameters[0])
        network.eval()
        x = self.torch.randn(1, 1, *self.plans.patch_size)
        with self.torch.no_grad():
            network(x)
            self.begin = spent()
            network(x)

    def sums(self):
        from nnunetv2.inference.sliding_window_prediction import compute_gaussian
        shape = tuple(self.plans.patch_size)
        weight = compute_gaussian(shape, 1.0 / 8, 10, device=self.torch.device("cpu"))
        total = self.torch.zeros((3, *SHAPE), dtype=self.torch.half)
        count = self.torch.zeros(SHAPE, dtype=self.torch.half)
        y = self.torch.randn(3, *shape)
        self.begin = spent()
        y *= weight
        total[:, :shape[0], :shape[1], :shape[2]] += y
        count[:shape[0], :shape[1], :shape[2]] += weight

    def export(self):
        from nnunetv2.inference.export_prediction import export_prediction_from_logits
        p = self.predictor
        properties = self.case()[-1]
        logits = self.torch.randn((3, 20, 52, 52))
        logits = self.torch.nn.functional.interpolate(logits[None], SHAPE, mode="trilinear")[0].half()
        self.begin = spent()
        export_prediction_from_logits(logits, properties, self.plans, p.plans_manager, p.dataset_json,
                                      str(self.folder / "exported"), False)


if __name__ == "__main__":
    place, word = pathlib.Path(sys.argv[1]), sys.argv[2]
    if word == "make":
        make(place)
    else:
        peer = Peer(place)
        getattr(peer, {"import": "read"}.get(word, word))()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"\nfigures {spent() - peer.begin:.3f} {peak:.0f}")
