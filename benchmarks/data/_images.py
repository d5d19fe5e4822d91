"""What the scripts for images share: means of pixels, histograms of oriented gradients, and filter responses."""

import numpy as np

ORIENTATIONS = 9


def shrink(image, factor):
    """Return the means of squares of pixels, rounded."""
    height, width = (side // factor for side in image.shape[:2])
    blocks = image[: height * factor, : width * factor].reshape(height, factor, width, factor, *image.shape[2:])
    return np.round(blocks.mean(axis=(1, 3))).astype(image.dtype)


def hog(grey, cell):
    """Return the histogram of oriented gradients of a grey image (Dalal and Triggs 2005).

    Nine unsigned orientations, square cells, blocks of 2 x 2 cells that overlap by one cell. Blocks have unit length,
    are clipped at 0.2 and get unit length again. The order is block row, block column, cell row, cell column,
    orientation.
    """
    grey = np.asarray(grey, dtype=np.float64)
    down, right = np.zeros_like(grey), np.zeros_like(grey)
    down[1:-1] = grey[2:] - grey[:-2]
    right[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    angle = np.rad2deg(np.arctan2(down, right)) % 180
    places = np.minimum((angle * ORIENTATIONS / 180).astype(int), ORIENTATIONS - 1)
    planes = np.where(places[..., None] == np.arange(ORIENTATIONS), np.hypot(down, right)[..., None], 0)
    height, width = (side // cell for side in grey.shape)
    planes = planes[: height * cell, : width * cell].reshape(height, cell, width, cell, ORIENTATIONS)
    cells = planes.mean(axis=(1, 3))
    blocks = np.stack(
        [np.stack([cells[i : height - 1 + i, j : width - 1 + j] for j in (0, 1)], axis=2) for i in (0, 1)], axis=2
    )
    return _unit(np.minimum(_unit(blocks), 0.2)).ravel()


def _unit(blocks):
    return blocks / np.sqrt((blocks**2).sum(axis=(2, 3, 4), keepdims=True) + 1e-10)


def filter_responses(cv2, grey, scales=(1.0, 2.0, 4.0)):
    """Return eight responses of each pixel: edge and bar at three scales, a Gaussian and its Laplacian.

    Those of edges and bars are the largest of six orientations (Varma and Zisserman 2005).
    """
    grey = grey.astype(np.float32)
    planes = []
    for scale in scales:
        radius = int(np.ceil(9 * scale))
        y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1].astype(np.float64)
        edges, bars = [], []
        for angle in np.arange(6) * np.pi / 6:
            across, along = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
            bell = np.exp(-0.5 * ((across / scale) ** 2 + (along / (3 * scale)) ** 2))
            for kernels, shape in ((edges, across), (bars, (across / scale) ** 2 - 1)):
                kernel = shape * bell
                kernel -= kernel.mean()
                kernels.append(np.abs(cv2.filter2D(grey, cv2.CV_32F, kernel / np.abs(kernel).sum())))
        planes += [np.max(edges, axis=0), np.max(bars, axis=0)]
    smooth = cv2.GaussianBlur(grey, (0, 0), 10)
    return np.stack([*planes, smooth, cv2.Laplacian(smooth, cv2.CV_32F)], axis=-1)
