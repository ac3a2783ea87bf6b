"""Segment an array with a network of pons, which needs ctypes and NumPy alone.

    python3 segment.py runs/spleen ct.npy labels.npy 1.5 1.5 2.0

ct.npy is [i, j, k] in any order and type, and the numbers are its spacing in mm along i, j, k.
"""
import ctypes as c
import sys

import numpy as np

TYPES = ["", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"]
PROGRESS = c.CFUNCTYPE(None, c.c_void_p, c.c_double)


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("text", c.c_char * 2048)]


class Settings(c.Structure):
    _fields_ = [("size", c.c_uint32), ("run", c.c_char_p), ("config", c.c_char_p), ("set_count", c.c_int),
                ("set", c.c_void_p), ("image_channels", c.c_int), ("line", c.c_void_p), ("context", c.c_void_p)]


class Image(c.Structure):
    _fields_ = [("size", c.c_uint32), ("type", c.c_int), ("channels", c.c_int), ("extent", c.c_int64 * 3),
                ("stride", c.c_int64 * 4), ("affine", c.c_double * 12), ("voxels", c.c_void_p)]


class Request(c.Structure):
    _fields_ = [("size", c.c_uint32), ("name", c.c_char_p), ("image", c.POINTER(Image)), ("file_count", c.c_int),
                ("file", c.c_void_p), ("target", c.c_int), ("logits", c.c_bool), ("probabilities", c.c_bool),
                ("uncertainty", c.c_bool), ("force", c.c_bool), ("stop", c.c_void_p), ("progress", PROGRESS),
                ("context", c.c_void_p)]


class Volume(c.Structure):
    _fields_ = [("type", c.c_int), ("channels", c.c_int), ("extent", c.c_int64 * 3), ("inside", c.c_int64 * 6),
                ("affine", c.c_double * 12), ("voxels", c.c_void_p)]


if len(sys.argv) != 7:
    sys.exit("usage: segment.py RUN IMAGE.npy LABELS.npy SPACING SPACING SPACING")
run, source, target, *spacing = sys.argv[1:]
pons, error, predictor, result = c.CDLL("libpons.so.1"), Error(), c.c_void_p(), c.c_void_p()
pons.pons_process_prepare()
pons.pons_prediction_volume.restype = c.POINTER(Volume)
array, affine = np.load(source), np.diag([float(s) for s in spacing] + [1])[:3]
array = array.astype(array.dtype.newbyteorder("="), copy=False)
image = Image(c.sizeof(Image), TYPES.index(array.dtype.name), 1, array.shape, (*array.strides, array.itemsize),
              tuple(affine.ravel()), array.ctypes.data)
settings = Settings(c.sizeof(Settings), run.encode())
request = Request(c.sizeof(Request), source.encode(), c.pointer(image),
                  progress=PROGRESS(lambda context, share: print(f"\r{100 * share:3.0f} %", end="", file=sys.stderr)))
if pons.pons_predictor_open(c.byref(settings), c.byref(predictor), c.byref(error)) \
        or pons.pons_predictor_run(predictor, c.byref(request), c.byref(result), c.byref(error)):
    sys.exit(f"\n{error.text.decode()}")
volume = pons.pons_prediction_volume(result, 0).contents
shape = (*volume.extent, volume.channels)
voxels = c.cast(volume.voxels, c.POINTER(c.c_uint8))
np.save(target, np.ctypeslib.as_array(voxels, shape)[..., 0].copy())
pons.pons_prediction_free(result)
pons.pons_predictor_close(predictor)
