"""Processor seconds of an epoch of the perceptron of PyTorch's tutorial (512, 256) on files of MNIST's layout.

    mlp.py FOLDER loader|tensors EPOCHS

'loader' reads as the tutorial's script does: torchvision's transforms of each image, in a DataLoader. 'tensors' cuts
its batches from two tensors, which is the fastest way. The first two epochs are not counted.
"""
import gzip
import pathlib
import struct
import sys
import time

import numpy
import torch
from PIL import Image
from torchvision import transforms

torch.set_num_threads(1)
MEAN, DEVIATION, BATCH = 0.1307, 0.3081, 64


def read(path):
    with gzip.open(path) as file:
        dimensions = file.read(4)[3]
        extent = struct.unpack(f">{dimensions}i", file.read(4 * dimensions))
        return numpy.frombuffer(file.read(), numpy.uint8).reshape(extent)


class Digits(torch.utils.data.Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(Image.fromarray(self.images[i])), int(self.labels[i])


def shuffled(images, labels):
    order = torch.randperm(len(images))
    for first in range(0, len(images), BATCH):
        part = order[first:first + BATCH]
        yield images[part], labels[part]


def main():
    folder, way, epochs = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    images, labels = (read(folder / f"train-{word}-ubyte.gz") for word in ("images-idx3", "labels-idx1"))
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(images[0].size, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss = torch.nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(Digits(images, labels), batch_size=BATCH, shuffle=True)
    whole = (torch.tensor(images)[:, None] / 255 - MEAN) / DEVIATION, torch.tensor(labels.astype(numpy.int64))
    seconds = []
    for epoch in range(2 + epochs):
        begin = time.process_time()
        for x, y in loader if way == "loader" else shuffled(*whole):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
        seconds.append(time.process_time() - begin)
    print("seconds", sum(seconds[2:]) / epochs)


main()
