import os
import torch

# nanoGPT-like: everything is a global
learning_rate = 6e-4
max_iters = 1000
grad_clip = 1.0
device = "cuda"
dtype = "bfloat16"
ptdtype = torch.bfloat16


def run(model, get_batch):
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
    scaler = torch.amp.GradScaler("cuda")  # FAULT: scaler-with-bfloat16
    ctx = torch.autocast(device_type="cuda", dtype=torch.bfloat16)
    for it in range(max_iters):
        X, Y = get_batch("train")
        with ctx:
            logits, loss = model(X, Y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if it % 100 == 0:
            print(f"iter {it}: loss {loss.item():.4f}")
    os.makedirs("out", exist_ok=True)
    torch.save({"model": model.state_dict(), "scaler": scaler.state_dict()}, "out/ckpt.pt")
