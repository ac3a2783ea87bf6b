#!/usr/bin/env python3
"""froc.py GOLDEN_MORE OUT: the FROC cases of metrics_more, and MONAI's detections and targets of maps and masks."""
import json, pathlib, sys
import numpy as np
from monai.apps.pathology.utils import PathologyProbNMS, compute_isolated_tumor_cells, compute_multi_instance_mask
from monai.transforms import ForegroundMask
from safetensors.numpy import load_file, save_file
from scipy import ndimage
from skimage.filters import threshold_otsu

more, out = map(pathlib.Path, sys.argv[1:])
rows = [r for r in json.loads((more / "metrics_more.json").read_text()) if r["kind"] == "froc"]
arrays = {k: v for k, v in load_file(more / "metrics_more.safetensors").items() if k.startswith("froc")}

rng = np.random.default_rng(17)
for n, (shape, spacing, box, threshold) in enumerate([((60, 70), 16.0, 8, 0.5), ((41, 33), 31.0, 5, 0.3), ((50, 50), 8.0, 48, 0.5)]):
    smooth = ndimage.gaussian_filter(rng.standard_normal(shape), 2)
    prob = np.clip(np.round(0.5 + 0.3 * smooth / smooth.std(), 2), 0, 1).astype(np.float32)  # rounded: some are equal
    found = PathologyProbNMS(sigma=0.0, prob_threshold=threshold, box_size=box)(prob.copy())
    mask = (ndimage.gaussian_filter(rng.standard_normal(shape), 2.5) > 0.11).astype(np.uint8)
    mask[shape[0] // 2 - 6 : shape[0] // 2 + 6, shape[1] // 2 - 6 : shape[1] // 2 + 6] = 1
    mask[shape[0] // 2 - 5 : shape[0] // 2 + 5, shape[1] // 2 - 5 : shape[1] // 2 + 5] = 0  # a ring with a hole
    areas = compute_multi_instance_mask(mask, 75 / (spacing * 2))
    small = compute_isolated_tumor_cells(areas, (200 + 75) / spacing)
    assert small and len(small) < areas.max()
    key = f"targets_{n}"
    arrays |= {f"{key}/map": prob, f"{key}/mask": mask, f"{key}/areas": areas.astype(np.int32)}
    rows.append(dict(name=key, kind="targets", spacing=spacing, box=box, threshold=threshold, excluded=small,
                     peaks=[[float(p), int(y), int(x)] for p, y, x in found]))

for n, (shape, tint) in enumerate([((48, 64), (150, 80, 160)), ((37, 29), (200, 170, 210))]):
    field = ndimage.gaussian_filter(rng.standard_normal(shape), 4)
    tissue = np.clip(field / field.std(), 0, 1)[None]
    white, colour = np.float64([243, 241, 244])[:, None, None], np.float64(tint)[:, None, None]
    image = np.clip(white + (colour - white) * tissue + 3 * rng.standard_normal((3,) + shape), 0, 255).astype(np.uint8)
    key = f"tissue_{n}"
    mask = np.asarray(ForegroundMask(hsv_threshold={"S": "otsu"})(image)).reshape(shape)
    arrays |= {f"{key}/image": image, f"{key}/mask": mask.astype(np.uint8)}
    rows.append(dict(name=key, kind="tissue", thresholds=[int(threshold_otsu(c)) for c in image]))

(out / "froc.json").write_text(json.dumps(rows) + "\n")
save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, out / "froc.safetensors")
