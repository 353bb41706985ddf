"""Pages are cut and filled as the vendor does it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageOps

from torchstone.core.errors import InputError
from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.model.session import DeepSeekOCRSession
from torchstone.cost.ocr.model.shapes import DEEPSEEK_OCR, DEEPSEEK_OCR_2, SMALL
from torchstone.cost.ocr.page.images import crop_grid, fit, open_page, plan, views

CPU = torch.device("cpu")


def by_brute_force(width: int, height: int, most: int, side: int) -> tuple[int, int]:
    """The rule in other words: all grids, scored, the last best one that may replace an equal."""
    if max(width, height) <= side:
        return (1, 1)
    pairs = {(i, j) for n in range(2, most + 1) for i in range(1, n + 1) for j in range(1, n + 1)}
    grids = sorted(
        (pair for pair in pairs if 2 <= pair[0] * pair[1] <= most), key=lambda p: p[0] * p[1]
    )
    nearest = min(abs(width / height - i / j) for i, j in grids)
    equal = [pair for pair in grids if abs(width / height - pair[0] / pair[1]) == nearest]
    chosen = equal[0]
    for pair in equal[1:]:
        if width * height > 0.5 * side * side * pair[0] * pair[1]:
            chosen = pair
    return chosen


@pytest.mark.parametrize(("shape", "side"), [(DEEPSEEK_OCR, 640), (DEEPSEEK_OCR_2, 768)])
def test_grids_of_many_sizes(shape: Any, side: int) -> None:
    sizes = [*range(16, 4000, 197), 639, 640, 641, 768, 769, 1024, 1280, 1920, 2560]
    for width in sizes:
        for height in sizes:
            expected = by_brute_force(width, height, shape.maximum_crops, side)
            assert crop_grid(width, height, side, shape.maximum_crops) == expected, (width, height)


@pytest.mark.parametrize(
    ("width", "height", "grid"),
    [
        (640, 640, (1, 1)),
        (641, 640, (2, 2)),
        (1024, 1024, (2, 2)),
        (1920, 1920, (3, 3)),
        (1700, 2200, (2, 3)),
        (3000, 500, (6, 1)),
        (20000, 100, (9, 1)),
        (100, 700, (1, 7)),
    ],
)
def test_grids_known_by_hand(width: int, height: int, grid: tuple[int, int]) -> None:
    assert crop_grid(width, height, 640, 9) == grid


def test_without_crops_the_view_has_the_image_size() -> None:
    stretched = plan(1700, 2200, AnalysisConfig(crop_mode=False, image_size=512), DEEPSEEK_OCR)
    assert (stretched.view, stretched.crops, stretched.stretch) == (512, 0, True)
    padded = plan(1700, 2200, AnalysisConfig(crop_mode=False, image_size=1280), DEEPSEEK_OCR)
    assert (padded.view, padded.crops, padded.stretch) == (1280, 0, False)


@pytest.mark.parametrize("size", [(300, 200), (200, 300), (300, 300), (1000, 7), (13, 999)])
def test_a_grey_page_is_what_pillow_makes_of_it(size: tuple[int, int]) -> None:
    config = AnalysisConfig(base_size=256, image_size=128)
    cut = plan(*size, config, SMALL)
    crops, whole = views(None, cut, CPU, torch.float32)
    real_crops, real = views(Image.new("RGB", size, (128,) * 3), cut, CPU, torch.float32)
    assert torch.equal(whole, real)
    assert torch.equal(crops, real_crops)
    expected = ImageOps.pad(Image.new("RGB", size, (128,) * 3), (256, 256), color=(127,) * 3)
    assert sorted(set(expected.tobytes())) == ([128] if size[0] == size[1] else [127, 128])
    wide, high, left, top = fit(*size, 256)
    assert expected.getpixel((min(left, 255), min(top, 255))) == (128,) * 3
    assert (wide, high) == (256, high) or (wide, high) == (wide, 256)


def picture(width: int, height: int) -> Image.Image:
    image = Image.new("RGB", (width, height))
    image.putdata([(x * 255 // width, y * 255 // height, (x * y) % 256)
                   for y in range(height) for x in range(width)])  # fmt: skip
    return image


def by_hand(image: Image.Image) -> torch.Tensor:
    rows = torch.tensor(list(image.tobytes()), dtype=torch.float32)
    return (rows.view(image.height, image.width, 3).permute(2, 0, 1) / 255 - 0.5) / 0.5


def test_crops_and_view_of_a_real_image() -> None:
    image = picture(150, 290)
    config = AnalysisConfig(base_size=256, image_size=128)
    cut = plan(150, 290, config, SMALL)
    assert cut.grid == (1, 2)
    crops, whole = views(image, cut, CPU, torch.float32)
    stretched = image.resize((128, 256))
    tiles = [stretched.crop((0, 0, 128, 128)), stretched.crop((0, 128, 128, 256))]
    assert torch.equal(crops, torch.stack([by_hand(tile) for tile in tiles]))
    assert torch.equal(whole[0], by_hand(ImageOps.pad(image, (256, 256), color=(127,) * 3)))


def test_tiles_go_row_by_row() -> None:
    image = Image.new("RGB", (256, 256))
    for place, box in enumerate([(0, 0), (128, 0), (0, 128), (128, 128)]):
        image.paste((60 * place, 0, 0), (*box, box[0] + 128, box[1] + 128))
    cut = plan(256, 256, AnalysisConfig(base_size=256, image_size=128), SMALL)
    crops, _ = views(image, cut, CPU, torch.float32)
    assert [round(float((tile[0].mean() * 0.5 + 0.5) * 255)) for tile in crops] == [0, 60, 120, 180]


def test_no_crops_gives_one_black_crop() -> None:
    cut = plan(100, 90, AnalysisConfig(base_size=256, image_size=128), SMALL)
    crops, whole = views(None, cut, CPU, torch.float32)
    assert crops.shape == (1, 3, 256, 256)
    assert not crops.any()
    assert whole.shape == (1, 3, 256, 256)


def test_meta_views_have_the_same_shapes() -> None:
    cut = plan(1700, 2200, AnalysisConfig(), DEEPSEEK_OCR)
    crops, whole = views(None, cut, torch.device("meta"), torch.bfloat16)
    assert crops.shape == (6, 3, 640, 640)
    assert whole.shape == (1, 3, 1024, 1024)
    assert crops.is_meta
    assert whole.dtype is torch.bfloat16


def test_a_photo_is_turned_the_right_way_up(tmp_path: Path) -> None:
    path = tmp_path / "page.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    picture(40, 60).save(path, exif=exif)
    assert open_page(path).size == (60, 40)


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n" + b"\0" * 30])
def test_broken_files_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "page.png"
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"page\.png: got .*an image that Pillow can read"
    ) as caught:
        open_page(path)
    assert "0x" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.png", tmp_path):
        with pytest.raises(InputError, match="Pillow"):
            open_page(path)


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    picture(200, 200).save(buffer, "PNG")
    path = tmp_path / "half.png"
    path.write_bytes(buffer.getvalue()[:400])
    with pytest.raises(InputError, match=r"half\.png"):
        open_page(path)


def test_a_strip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "strip.png"
    Image.new("RGB", (3000, 2)).save(path)
    with pytest.raises(InputError, match="3000 x 2"):
        open_page(path)


def test_prepare_inputs_reads_the_image(tmp_path: Path, small: DeepSeekOCRSession) -> None:
    path = tmp_path / "page.png"
    picture(150, 290).save(path)
    config = AnalysisConfig(
        base_size=256, image_size=128, use_synthetic_inputs=False, sample_image_path=str(path)
    )
    _, kwargs = DeepseekOCRStaticAnalyzer(small).prepare_inputs(config)
    crops, whole = kwargs["images"][0]
    assert crops.shape == (2, 3, 128, 128)
    assert torch.equal(
        whole[0], by_hand(ImageOps.pad(picture(150, 290), (256, 256), color=(127,) * 3))
    )
    assert kwargs["images_spatial_crop"].tolist() == [[1, 2]]
