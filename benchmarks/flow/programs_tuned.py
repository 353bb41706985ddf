"""Small programs with their true data flow, labelled by hand.

The docstring lists edges between operators, `maker>user`, by the short name of each; `#2` is the
second of its name in the order of execution. A write makes a new version of its array, so that
later readers depend on the write. Calls of the programs' own functions are no operators.
"""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce

import cv2
import numpy as np
import torch
from PIL import Image

IMAGE = np.random.default_rng(0).integers(0, 255, (40, 50, 3), np.uint8)
OTHER = np.random.default_rng(1).integers(0, 255, (40, 50, 3), np.uint8)
FLOATS = np.random.default_rng(2).random((6, 8))
TENSOR = torch.arange(12.0).reshape(3, 4)


def chain():
    """resize>cvtColor cvtColor>divide"""
    small = cv2.resize(IMAGE, (20, 10))
    rgb = cv2.cvtColor(small, cv2.COLOR_BGR2RGB)
    return rgb / 255.0


def fork_and_join():
    """resize>flip resize>GaussianBlur flip>addWeighted GaussianBlur>addWeighted"""
    small = cv2.resize(IMAGE, (20, 10))
    left = cv2.flip(small, 1)
    right = cv2.GaussianBlur(small, (3, 3), 0)
    return cv2.addWeighted(left, 0.5, right, 0.5, 0)


def temporaries_share_addresses():
    """resize>mean resize#2>mean#2 resize#3>mean#3"""
    return [cv2.resize(IMAGE, (9, n)).mean() for n in (3, 4, 5)]


def rebound_name():
    """add>multiply multiply>subtract"""
    x = FLOATS
    x = x + 1
    x = x * 2
    x = x - 3
    return x


def in_place_operators():
    """add>isubtract isubtract>idivide idivide>sum"""
    x = FLOATS + 0
    x -= 1
    x /= 2
    return x.sum()


def write_through_a_view():
    """copy>getitem getitem>setitem setitem>mean"""
    image = IMAGE.copy()
    corner = image[:5, :5]
    corner[:] = 0
    return np.mean(image)


def write_beside_a_view():
    """copy>getitem copy>setitem getitem>sum setitem>max"""
    image = FLOATS.copy()
    top = image[:2]
    image[4:] = 0
    return top.sum(), image.max()


def slice_writes_chain():
    """zeros>setitem resize>setitem setitem>setitem#2 resize#2>setitem#2 setitem#2>mean"""
    out = np.zeros((2, 5, 5, 3), np.uint8)
    for n in range(2):
        out[n] = cv2.resize(IMAGE, (5, 5))
    return out.mean()


def destination_argument():
    """empty_like>blur blur>add"""
    out = np.empty_like(IMAGE)
    cv2.blur(IMAGE, (3, 3), dst=out)
    return out + 1


def ufunc_out():
    """zeros_like>sqrt sqrt>log1p"""
    out = np.zeros_like(FLOATS)
    np.sqrt(FLOATS, out=out)
    return np.log1p(out)


def drawing():
    """copy>rectangle rectangle>circle circle>resize"""
    canvas = IMAGE.copy()
    cv2.rectangle(canvas, (1, 1), (9, 9), (255, 0, 0))
    cv2.circle(canvas, (5, 5), 3, (0, 255, 0))
    return cv2.resize(canvas, (8, 8))


def tuple_results():
    """split>merge"""
    b, g, r = cv2.split(IMAGE)
    return cv2.merge([r, g, b])


def number_and_array():
    """cvtColor>threshold threshold>countNonZero threshold>multiply"""
    grey = cv2.cvtColor(IMAGE, cv2.COLOR_BGR2GRAY)
    level, mask = cv2.threshold(grey, 0, 255, cv2.THRESH_OTSU)
    cv2.countNonZero(mask)
    return level * 0.5


def scalar_results():
    """mean>subtract std>divide subtract>divide"""
    mean = FLOATS.mean()
    std = FLOATS.std()
    return (FLOATS - mean) / std


def scalar_through_float():
    """max>float float>divide"""
    top = float(FLOATS.max())
    return FLOATS / top


def through_a_list():
    """resize>stack resize#2>stack stack>mean"""
    kept = []
    for image in (IMAGE, OTHER):
        kept.append(cv2.resize(image, (8, 8)))
    return np.stack(kept).mean(axis=0)


def through_a_dict():
    """flip>blur"""
    store = {}
    store["image"] = cv2.flip(IMAGE, 0)
    return cv2.blur(store["image"], (3, 3))


@dataclass
class Sample:
    image: np.ndarray
    label: int = 0


def through_a_dataclass():
    """flip>resize resize>divide"""
    sample = Sample(cv2.flip(IMAGE, 0))
    sample.image = cv2.resize(sample.image, (8, 8))
    return sample.image / 255.0


def _images():
    for image in (IMAGE, OTHER):
        yield cv2.flip(image, 0)


def through_a_generator():
    """flip>mean flip#2>mean#2"""
    return [image.mean() for image in _images()]


def sum_of_a_generator():
    """blur>mean blur#2>mean#2 mean>sum mean#2>sum"""
    return sum(cv2.blur(image, (3, 3)).mean() for image in (IMAGE, OTHER))


def closure():
    """mean>subtract"""
    level = FLOATS.mean()

    def centre(x):
        return x - level

    return centre(FLOATS)


def comprehension():
    """flip>vstack flip#2>vstack"""
    return np.vstack([cv2.flip(image, 0) for image in (IMAGE, OTHER)])


def through_an_exception():
    """flip>resize"""
    flipped = cv2.flip(IMAGE, 0)
    try:
        cv2.resize(None, (3, 3))
    except cv2.error:
        flipped = cv2.resize(flipped, (3, 3))
    return flipped


def through_threads():
    """flip>resize flip#2>resize#2 resize>stack resize#2>stack"""
    flipped = [cv2.flip(IMAGE, 0), cv2.flip(OTHER, 0)]
    with ThreadPoolExecutor(1) as pool:
        small = list(pool.map(_shrink, flipped))
    return np.stack(small)


def _shrink(image):
    return cv2.resize(image, (8, 8))


def through_a_queue():
    """flip>resize"""
    box = queue.Queue()
    done = []

    def work():
        done.append(cv2.resize(box.get(), (8, 8)))

    thread = threading.Thread(target=work)
    thread.start()
    box.put(cv2.flip(IMAGE, 0))
    thread.join()
    return done


def tensors():
    """from_numpy>permute permute>float float>divide divide>unsqueeze"""
    x = torch.from_numpy(IMAGE).permute(2, 0, 1).float()
    return (x / 255).unsqueeze(0)


def shared_memory():
    """copy>from_numpy from_numpy>mul_ mul_>sum"""
    array = FLOATS.copy()
    tensor = torch.from_numpy(array)
    tensor.mul_(2)
    return array.sum()


def images_of_pil():
    """fromarray>resize resize>convert convert>asarray asarray>divide"""
    image = Image.fromarray(IMAGE)
    image = image.resize((8, 8)).convert("L")
    return np.asarray(image) / 255


def folded_by_reduce():
    """add>add#2"""
    return reduce(lambda a, b: a + b, [FLOATS, FLOATS, FLOATS])


def partial_call():
    """flip>resize"""
    shrink = partial(cv2.resize, dsize=(8, 8))
    return shrink(cv2.flip(IMAGE, 0))


def other_names():
    """flip>resize resize>GaussianBlur"""
    from cv2 import flip
    from cv2 import resize as shrink

    table = {"blur": cv2.GaussianBlur}
    return table["blur"](shrink(flip(IMAGE, 0), (8, 8)), (3, 3), 0)
