"""python examples/own_loop.py: only the history recorder, inside a plain PyTorch loop."""

import torch
from torch import nn

import unskew

data = unskew.load("digits")
images, labels = data.images.float() / 255, data.labels
model = nn.Sequential(nn.Flatten(), nn.Linear(images[0].numel(), 64), nn.ReLU(), nn.Linear(64, data.num_classes))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
history = unskew.PredictionHistory(labels, window=5, class_names=data.class_names)

for _ in range(10):
    for index in torch.randperm(len(data)).split(32):
        loss = (history.weights[index] * unskew.losses(model(images[index]), labels[index])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        logits = model(images)
        history.record(torch.arange(len(data)), logits.argmax(1), unskew.losses(logits, labels))
    history.end_epoch()

partition = history.partition(data)
print(int(partition.conflicting.sum()), "of", len(data), "samples break the pattern")
if data.aligned is not None:  # digits come with the truth
    print(partition.quality(data.aligned))
