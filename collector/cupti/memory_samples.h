/* SPDX-License-Identifier: MIT
 * Samples how much memory of each GPU is free, and how much of it this process uses, from NVML.
 *
 * NVML needs no CUDA context and takes none of CUDA's locks, so our own thread may call it at any
 * time, also during a stream capture. It is used only if the program has loaded and initialised it:
 * to initialise it opens device files, and may wake up GPUs. PyTorch (device_count, expandable
 * segments) and NCCL do.
 */
#ifndef PPERF_COLLECTOR_CUPTI_MEMORY_SAMPLES_H
#define PPERF_COLLECTOR_CUPTI_MEMORY_SAMPLES_H

/* Writes a DEVICE_MEMORY record for each GPU on which this process uses memory, if a sample is due:
 * one second after the last one, or a thousand times as long as that took. Only on the thread that
 * flushes CUPTI's buffers. */
void memory_samples_poll(void);

#endif
