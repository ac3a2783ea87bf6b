"""Write scikit-learn's digits (Alpaydin and Kaynak 1998, in its package) as the four files of MNIST.

    digits.py FOLDER

Every fifth of the 1,797 images of 8 x 8 pixels is held out, under the name t10k, so that both parts
have all writers. Values 0 to 16 become 0 to 255.
"""
import gzip
import pathlib
import struct
import sys

import numpy
from sklearn.datasets import load_digits


def write(path, array):
    extents = struct.pack(f">{1 + array.ndim}i", 0x800 + array.ndim, *array.shape)
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(extents + array.astype(numpy.uint8).tobytes())


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    images = numpy.minimum(digits.images * 16, 255)
    held_out = numpy.arange(len(images)) % 5 == 4
    for word, part in (("train", ~held_out), ("t10k", held_out)):
        write(folder / f"{word}-images-idx3-ubyte.gz", images[part])
        write(folder / f"{word}-labels-idx1-ubyte.gz", digits.target[part])


main()
