"""Logits of exported models by onnxruntime beside those of pons.

usage: onnx_logits.py NAME.onnx PREDICTION_logits.nii.gz IMAGE.nii.gz

Prints the largest difference as a share of the largest logit, and fails above 1e-4.
"""
import sys

import nibabel
import numpy
import onnx
import onnxruntime


def main():
    model, predicted, image = sys.argv[1:4]
    onnx.checker.check_model(onnx.load(model), full_check=True)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    expected = numpy.moveaxis(nibabel.load(predicted).get_fdata(), -1, 0)
    voxels = nibabel.load(image).get_fdata().astype(numpy.float32)[None, None]
    if len(given.shape) == 4:
        voxels = voxels.reshape([1, 1] + [n for n in voxels.shape[2:] if n > 1])
    logits = session.run(None, {given.name: voxels})[0][0].reshape(expected.shape)
    share = abs(logits - expected).max() / abs(expected).max()
    print(f"{model}: {given.shape}, difference {share:.1e} of the largest logit")
    return int(share > 1e-4)


sys.exit(main())
