"""The preparation scripts of benchmarks/data that compute descriptors of images."""

import numpy as np
import pytest
from preparation import FOLDER, known, module

if not FOLDER.is_dir():
    pytest.skip("benchmarks/data is not here", allow_module_level=True)


def test_hog_by_hand():
    """A ramp has one orientation: a block of four equal cells is clipped and has unit length again."""
    down = np.tile(np.arange(64.0)[:, None], (1, 64))
    blocks = module("_images").hog(down, 8).reshape(7, 7, 2, 2, 9)
    assert np.flatnonzero(blocks[3, 3, 0, 0]).tolist() == [4]  # 90 degrees
    np.testing.assert_allclose(blocks[3, 3, :, :, 4], 0.5)
    mixed = np.where(np.arange(64) < 32, down, down.T)
    blocks = module("_images").hog(mixed, 8).reshape(7, 7, 2, 2, 9)
    assert [np.flatnonzero(blocks[3, column, 0, 0]).tolist() for column in (0, 6)] == [[4], [0]]


def test_shrink_takes_rounded_means():
    image = np.arange(16, dtype=np.uint8).reshape(4, 4)
    assert module("_images").shrink(image, 2).tolist() == [[2, 4], [10, 12]]  # 2.5, 4.5, 10.5, 12.5: halves to even


def test_objects(tmp_path):
    image_module = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for k, name in enumerate(["cow2-090-022", "cow2-035-045", "apple1-000-000", "cow11-035-045"]):
        folder = tmp_path / name.split("-")[0]
        (folder / "maps").mkdir(parents=True, exist_ok=True)
        image = np.full((256, 256, 3), (200, 40, 10 * k), dtype=np.uint8)
        image[:, 128:] += 8
        mask = np.zeros((256, 256), dtype=np.uint8)
        mask[64:192, 64:192] = 255
        image_module.fromarray(image).save(folder / f"{name}.png")
        image_module.fromarray(mask).save(folder / "maps" / f"{name}-map.png")
    made = module("eth80").build(tmp_path)["eth80_views.npz"]
    assert made["class_names"][made["y"]].tolist() == ["apple", "cow", "cow", "cow"]
    assert made["object_number"].tolist() == [1, 2, 2, 11]
    assert made["object_id"].tolist() == [0, 0, 0, 1]
    assert list(zip(made["polar"], made["azimuth"], strict=True)) == [(0, 0), (35, 45), (90, 22), (35, 45)]
    assert made["images"][1, 0, 0].tolist() == [200, 40, 10]
    assert made["images"][1, 0, -1].tolist() == [208, 48, 18]
    assert made["masks"].shape == (4, 64, 64)
    assert made["masks"][0, 16:48, 16:48].min() == 255
    for view in ("dxdy", "maglap"):
        assert np.all(made[view].reshape(4, 3, 256).sum(axis=2) == 128 * 128)
    assert made["colour"].sum(axis=1).tolist() == [128 * 128] * 4
    assert made["colour"][1].nonzero()[0].tolist() == [64 * 6 + 8 + 0]  # 200 and 208, 40 and 48, 10 and 18: one bin
    # bins of 2.5 from -20 on: the step of 8 has the slope 8 exp(-1/8) / sqrt(2 pi) = 2.8 in two columns of 128 pixels
    fine = made["dxdy"][1].reshape(3, 16, 16)[0]
    assert (fine[9, 8], fine[8, 8]) == (2 * 128, 126 * 128)
    (tmp_path / "cow2" / "maps" / "cow2-035-045-map.png").unlink()
    with pytest.raises(SystemExit, match=r"The map of cow2-035-045\.png is missing"):
        module("eth80").build(tmp_path)


def test_known_objects_hold_their_checks(data_folder):
    script, z = module("eth80"), known(data_folder, "eth80_views.npz")
    assert all(holds for _, holds in script.checks("eth80_views.npz", z))
    for view in ("colour", "maglap", "hog"):
        assert round(script.accuracy(z, view), 1) == script.ACCURACIES[view]
    area = z["masks"].astype(float).sum(axis=(1, 2)) * 16 / 255
    np.testing.assert_allclose(z["colour"].sum(axis=1), area, atol=2.5)
    numbers = z["object_number"][z["class_names"][z["y"]] == "car"]
    assert np.unique(numbers).tolist() == [1, 2, 3, 5, 6, 7, 9, 11, 12, 14]


def test_known_flowers_hold_their_checks(data_folder):
    script, z = module("flower17"), known(data_folder, "flower17_own_features.npz")
    for name, rows in script.splits(17).items():
        np.testing.assert_array_equal(rows, z[name])
        assert rows.dtype == z[name].dtype
    assert z["class_names"].tolist() == list(script.SPECIES)
    assert np.all(z["hsv"].sum(axis=1) % len(range(2, 256, 5)) == 0)  # a grid over a side of 256 pixels
    np.testing.assert_array_equal(z["colour"].sum(axis=1), z["texture"].sum(axis=1))
    np.testing.assert_array_equal(z["siftint"].sum(axis=1), z["shape"].sum(axis=1))
    assert np.all(z["siftbdy"].sum(axis=1) == 400)
    assert round(script.accuracy(z, "texture"), 1) == script.ACCURACIES["texture"]


def test_flowers(tmp_path):
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed: flower17.py needs it")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:280, :340]
    for k in range(4):
        image = rng.integers(0, 60, (280, 340, 3), dtype=np.uint8) + np.array([10, 90, 10], dtype=np.uint8)
        image[np.hypot(y - 140, x - 170) < 60 + 5 * k] = (200, 30 + 10 * k, 220)
        cv2.imwrite(str(tmp_path / f"image_{k + 1:04d}.jpg"), image)
    script = module("flower17")
    words = dict.fromkeys(script.WORDS, 5)
    made = script.build(tmp_path, words, 2)["flower17_own_features.npz"]
    width = round(340 * 256 / 280)
    disc = np.pi * ((60 + 5 * np.arange(4)) * 256 / 280) ** 2 / (256 * width)
    np.testing.assert_allclose(made["fg_fraction"], disc, rtol=0.05)
    assert made["hsv"].sum(axis=1).tolist() == [51 * len(range(2, width, 5))] * 4
    np.testing.assert_allclose(made["colour"].sum(axis=1), disc * 256 * width / 16, rtol=0.05)
    np.testing.assert_allclose(made["siftint"].sum(axis=1), disc * 256 * width / 49, rtol=0.1)
    assert made["hog"].shape == (4, 1764)
    assert made["y"].tolist() == [0, 0, 1, 1]
    assert {made[view].shape for view in words} == {(4, 5)}
