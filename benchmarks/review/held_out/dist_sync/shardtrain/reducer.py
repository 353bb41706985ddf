"""Gradient averaging between replicas, overlapped with the backward pass."""
import torch
import torch.distributed as dist


class _Bucket:
    def __init__(self, params):
        self.params = params
        self.reset()

    def reset(self):
        self.pending = len(self.params)
        self.grads, self.flat, self.work = [], None, None


class Reducer:
    """Buckets are filled in reverse parameter order and launched in that order."""

    def __init__(self, model, mesh, bucket_bytes=16 * 1024):
        self.mesh = mesh
        self.buckets, self.sync = [], False
        if mesh.dp == 1:
            return
        current, size = [], 0
        for p in reversed(list(model.parameters())):
            current.append(p)
            size += p.numel() * p.element_size()
            if size >= bucket_bytes:
                self.buckets.append(_Bucket(current))
                current, size = [], 0
        if current:
            self.buckets.append(_Bucket(current))
        for bucket in self.buckets:
            for p in bucket.params:
                p.register_post_accumulate_grad_hook(self._make_hook(bucket))

    def _make_hook(self, bucket):
        def hook(_):
            if self.sync:
                bucket.pending -= 1
                self._launch_ready()

        return hook

    def begin(self, sync):
        """Call before each backward; sync tells whether its gradients are exchanged."""
        self.sync = sync
        self.next = 0
        for bucket in self.buckets:
            bucket.reset()

    def _launch_ready(self):
        while self.next < len(self.buckets) and self.buckets[self.next].pending == 0:
            self._launch(self.buckets[self.next])
            self.next += 1

    def _launch(self, bucket):
        bucket.grads = [p.grad for p in bucket.params if p.grad is not None]
        bucket.flat = torch.cat([g.flatten() for g in bucket.grads])
        bucket.work = dist.all_reduce(bucket.flat, group=self.mesh.dp_group, async_op=True)
        bucket.flat.div_(self.mesh.dp)

    def finish(self):
        """Call after backward: send what is left, wait, write the means back."""
        if not self.sync:
            return
        for bucket in self.buckets[self.next if self.buckets else 0 :]:
            self._launch(bucket)
        for bucket in self.buckets:
            bucket.work.wait()
            parts = bucket.flat.split([g.numel() for g in bucket.grads])
            for g, part in zip(bucket.grads, parts):
                g.copy_(part.view_as(g))


def clip_gradients(model, mesh, max_norm):
    """Scale all gradients so that the norm of the whole model is at most max_norm."""
    return torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
