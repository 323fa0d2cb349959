"""A data set whose items are prepared by fkl, importable by the worker processes of a DataLoader."""

import numpy as np

import fkl


class Images:
    """``count`` images of ones, doubled and split into planes on the CPU target; the kernel is composed where it is used."""

    def __init__(self, count):
        self.count = count
        self.kernel = fkl.compose(fkl.TensorRead(), fkl.Cast("float32"), fkl.Mul(2.0), fkl.TensorSplit(), target="cpu")

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if not 0 <= i < self.count:
            raise IndexError(i)
        return self.kernel(np.ones((8, 8, 3), np.uint8))
