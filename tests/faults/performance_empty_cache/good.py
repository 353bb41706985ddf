import gc
import torch


def run(model, loader, optimizer, scheduler, epochs):
    for epoch in range(epochs):
        model.train()
        for batch in loader:
            batch = {k: v.to("cuda", non_blocking=True) for k, v in batch.items()}
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        torch.cuda.empty_cache()
        gc.collect()
    return model
