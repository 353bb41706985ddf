import torch
from torch.nn.utils import clip_grad_norm_


def train(model, loader, optimizer, scheduler, accum_steps=4, max_norm=1.0):
    scaler = torch.amp.GradScaler("cuda")
    model.train()
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        batch = {k: v.cuda(non_blocking=True) for k, v in batch.items()}
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(**batch).loss / accum_steps
        scaler.scale(loss).backward()
        if (i + 1) % accum_steps == 0:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            optimizer.zero_grad()
