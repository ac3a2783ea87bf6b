"""Logits of exported models by onnxruntime beside those of pons.

usage: onnx_logits.py MODEL.onnx IMAGE.nii.gz PREDICTION_logits.nii.gz ...

Prints the largest difference for each image, as a share of the largest logit, and fails above 1e-4.
"""
import sys

import nibabel
import numpy
import onnx
import onnxruntime.backend


def main():
    path, pairs = sys.argv[1], sys.argv[2:]
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    rank = len(model.graph.input[0].type.tensor_type.shape.dim)
    network = onnxruntime.backend.prepare(path, "CPU")
    worst = 0
    for image, predicted in zip(pairs[::2], pairs[1::2]):
        expected = numpy.moveaxis(nibabel.load(predicted).get_fdata(), -1, 0)
        voxels = nibabel.load(image).get_fdata().astype(numpy.float32)[None, None]
        if rank == 4:
            voxels = voxels.reshape([1, 1] + [n for n in voxels.shape[2:] if n > 1])
        logits = network.run(voxels)[0][0].reshape(expected.shape)
        share = abs(logits - expected).max() / abs(expected).max()
        print(f"{path}: {list(voxels.shape)}, difference {share:.1e} of the largest logit")
        worst = max(worst, share)
    return int(worst > 1e-4)


sys.exit(main())
