import torch


@torch.inference_mode()
def embed_mean(encoder, loader, dim, device="cuda"):
    """Average embedding of a corpus, with a half precision encoder."""
    encoder = encoder.half().to(device).eval()
    total = torch.zeros(dim, dtype=torch.float32, device=device)
    count = 0
    for batch in loader:
        ids = batch["input_ids"].to(device, non_blocking=True)
        mask = batch["attention_mask"].to(device, non_blocking=True)
        hidden = encoder(ids, attention_mask=mask).last_hidden_state
        pooled = hidden[:, 0]
        total += pooled.float().sum(0)
        count += ids.size(0)
    return total / count


if __name__ == "__main__":
    from transformers import AutoModel

    model = AutoModel.from_pretrained("bert-base-uncased")
    scratch = torch.empty(128, 768, dtype=torch.float16, device="cuda")
    print(scratch.shape, embed_mean(model, [], 768).shape)
