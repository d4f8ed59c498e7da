# SPDX-License-Identifier: MIT
"""Under torchrun: trains a model on several ranks. The last rank prepares something slowly before
each backward."""
import time
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
slow = dist.get_rank() == dist.get_world_size() - 1
torch.cuda.set_device(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)).cuda()
model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    loss = model(torch.ones(8, 64, device="cuda")).sum()
    with torch.profiler.record_function("prepare"):
        time.sleep(0.05 if slow else 0)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
dist.destroy_process_group()
