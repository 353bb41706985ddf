"""A large network, a small one, and what maps the features of one to those of the other."""

from torch import nn


class Network(nn.Module):
    """Convolutions, the mean over the picture, and one output for each kind."""

    def __init__(self, width, depth, dropout=0.0):
        super().__init__()
        layers, channels = [], 1
        for _ in range(depth):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        self.features = nn.Sequential(*layers)
        self.drop = nn.Dropout(dropout)
        self.pool = nn.AdaptiveAvgPool2d(4)
        self.last = nn.Linear(16 * width, 10)

    def forward(self, pictures):
        features = self.features(pictures)
        return self.last(self.drop(self.pool(features).flatten(1))), features


class Bridge(nn.Module):
    """From the student's features to as many channels as the teacher's."""

    def __init__(self, student, teacher):
        super().__init__()
        self.map = nn.Conv2d(student, teacher, 1)

    def forward(self, features):
        return self.map(features)
