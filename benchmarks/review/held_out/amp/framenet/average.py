import torch


class WeightAverage:
    """Exponential moving average of the weights, used for evaluation."""

    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {k: v.detach().clone().half() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            s = self.shadow[k]
            s.add_((v.to(s.dtype) - s) * (1 - self.decay))

    def copy_to(self, model):
        model.load_state_dict(self.shadow)

    def state_dict(self):
        return self.shadow

    def load_state_dict(self, state):
        self.shadow = {k: v.clone() for k, v in state.items()}
