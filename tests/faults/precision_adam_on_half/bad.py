import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

name = "gpt2"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.float16).cuda()
model.gradient_checkpointing_enable()
teacher = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.float16).cuda().eval()

optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)  # FAULT: adam-on-float16


def train(dataset):
    loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2, pin_memory=True)
    model.train()
    for step, batch in enumerate(loader):
        ids = batch["input_ids"].cuda(non_blocking=True)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            print(step, loss.item())
