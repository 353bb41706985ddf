import torch
import torch.distributed as dist


class GradReducer:
    def __init__(self, model, group=None):
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.group = group

    def reduce(self):
        flat = torch.cat([p.grad.flatten() for p in self.params])
        work = dist.all_reduce(flat, group=self.group, async_op=True)
        work.wait()
        flat /= dist.get_world_size()
        offset = 0
        for p in self.params:
            n = p.numel()
            p.grad.copy_(flat[offset : offset + n].view_as(p))
            offset += n

    def reduce_each(self):
        works = [dist.all_reduce(p.grad, async_op=True) for p in self.params]
        for w in works:
            w.wait()

    def broadcast(self):
        for p in self.params:
            dist.broadcast(p.data, src=0)
