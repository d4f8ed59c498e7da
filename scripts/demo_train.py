# SPDX-License-Identifier: MIT
"""A small language model learns to continue a text. An ordinary PyTorch program: nothing in it knows of pperf."""
import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TEXT = "the quick brown fox jumps over the lazy dog; " * 64
CONTEXT, WIDTH, HEADS, LAYERS, BATCH, STEPS = 32, 64, 4, 4, 8, 10


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

    def forward(self, x):
        x = self.letters(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def main():
    torch.manual_seed(1)
    alphabet = sorted(set(TEXT))
    data = torch.tensor([alphabet.index(letter) for letter in TEXT])
    model = Model(len(alphabet)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(STEPS):
        starts = torch.randint(0, len(data) - CONTEXT - 1, (BATCH,)).tolist()
        x = torch.stack([data[s:s + CONTEXT] for s in starts]).to(DEVICE)
        y = torch.stack([data[s + 1:s + CONTEXT + 1] for s in starts]).to(DEVICE)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        print("step %d: loss %.3f" % (step, loss.item()))


main()
