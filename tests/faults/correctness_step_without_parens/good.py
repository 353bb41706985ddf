import torch
import torch.nn as nn


class LSTMTagger(nn.Module):
    def __init__(self, emb, hid, vocab, tags):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hid)
        self.out = nn.Linear(hid, tags)

    def forward(self, sentence):
        h, _ = self.lstm(self.emb(sentence).unsqueeze(1))
        return self.out(h.squeeze(1))


def fit(model, training_data, epochs=300):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_function = nn.CrossEntropyLoss()
    step_fn = optimizer.step
    for epoch in range(epochs):
        for sentence, tags in training_data:
            model.zero_grad()
            loss = loss_function(model(sentence), tags)
            loss.backward()
            optimizer.step()
    return model, step_fn
