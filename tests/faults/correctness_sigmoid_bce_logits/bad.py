import torch
import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.layer_1 = nn.Linear(n_features, 64)
        self.layer_2 = nn.Linear(64, 64)
        self.layer_out = nn.Linear(64, 1)
        self.relu = nn.ReLU()
        self.gate = nn.Linear(64, 64)

    def forward(self, x):
        x = self.relu(self.layer_1(x))
        x = x * torch.sigmoid(self.gate(x))
        x = self.relu(self.layer_2(x))
        return self.layer_out(x)


def fit(X_train, y_train, epochs=50):
    model = Classifier(X_train.shape[1])
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for e in range(epochs):
        optimizer.zero_grad()
        y_pred = torch.sigmoid(model(X_train))
        loss = criterion(y_pred, y_train.unsqueeze(1))  # FAULT: sigmoid-before-bce-with-logits
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        acc = (torch.sigmoid(model(X_train)).round().squeeze(1) == y_train).float().mean()
    return model, acc
