"""Datasets of torchvision with made images: shapes and classes are those of the real ones, where one
size is usual."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SAMPLES = 512
_FEW = (_SAMPLES, _SAMPLES // 4)
_SIDE = 256
"""Pixels of images that have no size of their own: crops of 224 fit."""
_BOXES = 2


@dataclass(frozen=True, slots=True)
class _Form:
    """What one sample of a dataset is."""

    side: int = _SIDE
    grey: bool = False
    target: str = "class"
    """`class`, `attributes` (numbers of 0 and 1), `mask` (an image of classes), `boxes` (as of COCO),
    `captions`, `voc` (annotations of boxes), `none`."""
    classes: int = 10


_FORMS = {
    "MNIST": _Form(28, True), "EMNIST": _Form(28, True, classes=47), "USPS": _Form(16, True),
    "Omniglot": _Form(105, True, classes=964), "CIFAR10": _Form(32), "CIFAR100": _Form(32, classes=100),
    "SVHN": _Form(32), "STL10": _Form(96), "CelebA": _Form(218, target="attributes", classes=40),
    "Cityscapes": _Form(target="mask", classes=19), "VOCSegmentation": _Form(target="mask", classes=21),
    "SBDataset": _Form(target="mask", classes=21), "VOCDetection": _Form(target="voc"),
    "CocoDetection": _Form(target="boxes"), "CocoCaptions": _Form(target="captions"),
    "Flickr8k": _Form(target="captions"), "Flickr30k": _Form(target="captions"),
    "OxfordIIITPet": _Form(classes=37), "Food101": _Form(classes=101), "Flowers102": _Form(classes=102),
    "Caltech101": _Form(classes=101), "Caltech256": _Form(classes=256), "StanfordCars": _Form(classes=196),
    "FGVCAircraft": _Form(classes=100), "ImageNet": _Form(classes=1000), "Places365": _Form(classes=365),
    "GTSRB": _Form(classes=43), "DTD": _Form(classes=47), "SUN397": _Form(classes=397), "LFWPeople": _Form(250, classes=5749),
    "LSUN": _Form(classes=10), "SEMEION": _Form(16, True), "PCAM": _Form(96, classes=2), "Country211": _Form(classes=211),
    "EuroSAT": _Form(64), "FER2013": _Form(48, True, classes=7), "Imagenette": _Form(), "INaturalist": _Form(classes=1000),
    "RenderedSST2": _Form(classes=2), "CLEVRClassification": _Form(classes=8),
}  # fmt: skip
"""By class; others of the library are images of one of ten classes. Subclasses have the form of theirs."""


_COUNTS = {
    "MNIST": (60_000, 10_000), "CIFAR10": (50_000, 10_000), "CIFAR100": (50_000, 10_000),
    "SVHN": (73_257, 26_032), "STL10": (5_000, 8_000), "USPS": (7_291, 2_007),
}  # fmt: skip
"""Samples for training and for tests, for programs that split a dataset by numbers."""


def replace_dataset(name: str, as_many: bool = False) -> None:
    """From now on the dataset, with all that inherits from it, is made when it is constructed; nothing is
    read or fetched. `as_many`: with as many samples as the real one has."""
    module = importlib.import_module("torchvision.datasets")
    kind = getattr(module, name)
    base = importlib.import_module("torchvision.datasets.vision").VisionDataset
    if "data" not in vars(kind) and name in ("MNIST", "FashionMNIST", "KMNIST", "QMNIST", "EMNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10", "USPS"):  # fmt: skip
        known = next(
            (_COUNTS[item.__name__] for item in kind.__mro__ if item.__name__ in _COUNTS), _FEW
        )
        _hold_all(kind, base, form_of(kind), known if as_many else _FEW)
    else:
        _make_each(kind, base, form_of(kind))


def form_of(kind: type) -> _Form:
    """The form of the nearest class that is known."""
    return next(
        (_FORMS[item.__name__] for item in kind.__mro__ if item.__name__ in _FORMS), _Form()
    )


def _hold_all(kind: Any, base: Any, form: _Form, counts: tuple[int, int]) -> None:
    """Small datasets hold their images in `data` and their classes in `targets`, which programs use."""
    numpy, torch = importlib.import_module("numpy"), importlib.import_module("torch")
    shape = (form.side, form.side) if form.grey else (form.side, form.side, 3)
    shape = (3, form.side, form.side) if kind.__name__ in ("SVHN", "STL10") else shape

    def construct(self: Any, root: Any = "data", *args: Any, **kwargs: Any) -> None:
        train, kwargs = _arguments(args, kwargs)
        base.__init__(self, root, transform=kwargs.get("transform"), target_transform=kwargs.get("target_transform"))  # fmt: skip
        draw = random.Random(0 if train else 1)
        count = counts[0] if train else counts[1]
        some = min(count, _SAMPLES)
        size = some
        for side in shape:
            size *= side
        values = numpy.frombuffer(draw.randbytes(size), numpy.uint8).reshape(some, *shape)
        values = values[numpy.arange(count) % some]
        labels = [draw.randrange(form.classes) for _ in range(count)]
        is_tensor = form.grey and kind.__name__ != "USPS"
        self.train, self.split = train, kwargs.get("split", "train")
        self.data = torch.from_numpy(values) if is_tensor else values
        self.targets = torch.tensor(labels) if is_tensor else labels
        self.labels = numpy.array(labels)
        self.classes = [str(number) for number in range(form.classes)]
        if not isinstance(getattr(kind, "class_to_idx", None), property):
            self.class_to_idx = {label: number for number, label in enumerate(self.classes)}

    kind.__init__ = construct


def _make_each(kind: Any, base: Any, form: _Form) -> None:
    """Samples are made when they are asked for."""

    def construct(self: Any, root: Any = "data", *args: Any, **kwargs: Any) -> None:
        train, kwargs = _arguments(args, kwargs)
        base.__init__(self, root, transforms=kwargs.get("transforms"), transform=kwargs.get("transform"),
                      target_transform=kwargs.get("target_transform"))  # fmt: skip
        self._made = _SAMPLES if train else _SAMPLES // 4
        self.classes = [str(number) for number in range(form.classes)]
        self.class_to_idx = {label: number for number, label in enumerate(self.classes)}
        self.targets = [index % form.classes for index in range(self._made)]
        self.samples = self.imgs = [(str(index), label) for index, label in enumerate(self.targets)]

    def item(self: Any, index: int) -> Any:
        image, target = _image(form, index), _target(form, index)
        if getattr(self, "transforms", None) is not None:
            return self.transforms(image, target)
        return image, target

    kind.__init__ = construct
    kind.__getitem__ = item
    kind.__len__ = lambda self: self._made


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether it is the training part, and the transforms, wherever they stand among the arguments."""
    split = next(
        (item for item in (*args, *kwargs.values()) if isinstance(item, (bool, str))), True
    )
    calls = [item for item in args if callable(item)]
    named = dict(zip(("transform", "target_transform"), calls, strict=False))
    is_held_out = split is False or str(split).lower().startswith(("test", "val"))
    return not is_held_out, {**named, **kwargs}


def _image(form: _Form, index: int, mode: str = "") -> Any:
    library = importlib.import_module("PIL.Image")
    mode = mode or ("L" if form.grey else "RGB")
    size = form.side * form.side * (1 if mode == "L" else 3)
    return library.frombytes(mode, (form.side, form.side), random.Random(index).randbytes(size))


def _mask(form: _Form, index: int) -> Any:
    return _image(form, index, "L").point(lambda value: value % form.classes)


def _target(form: _Form, index: int) -> Any:
    return _TARGETS[form.target](form, index)


def _attributes(form: _Form, index: int) -> Any:
    torch = importlib.import_module("torch")
    draw = random.Random(index)
    return torch.tensor([draw.randrange(2) for _ in range(form.classes)])


def _boxes(form: _Form, index: int) -> Any:
    return [
        {"bbox": [10.0 * place, 20.0, 40.0, 50.0], "category_id": place + 1, "area": 2000.0, "iscrowd": 0,
         "image_id": index, "id": _BOXES * index + place, "segmentation": [[10, 20, 50, 20, 50, 70]]}
        for place in range(_BOXES)
    ]  # fmt: skip


def _voc(form: _Form, index: int) -> Any:
    box = {"xmin": "10", "ymin": "20", "xmax": "50", "ymax": "70"}
    size = {"width": str(form.side), "height": str(form.side), "depth": "3"}
    found = [{"name": "person", "difficult": "0", "bndbox": box} for _ in range(_BOXES)]
    return {"annotation": {"filename": f"{index}.jpg", "size": size, "object": found}}


def _captions(form: _Form, index: int) -> Any:
    return [f"a man sees {place} red houses" for place in range(form.classes // 2 + index % 1)]


_TARGETS: dict[str, Callable[[_Form, int], Any]] = {
    "class": lambda form, index: index % form.classes,
    "attributes": _attributes,
    "mask": _mask,
    "boxes": _boxes,
    "captions": _captions,
    "voc": _voc,
}
