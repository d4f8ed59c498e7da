/* SPDX-License-Identifier: MIT
 * Records the GPUs of this process and their limits, as the driver reports them.
 */
#ifndef PPERF_COLLECTOR_CUPTI_DEVICES_H
#define PPERF_COLLECTOR_CUPTI_DEVICES_H

/* Writes a DEVICE record for each GPU, once in a process. If the driver is not initialised yet,
 * writes nothing, and the next call tries again. It calls the driver. Do not call it from a CUPTI
 * callback, or while the driver is being initialised. It needs no CUDA context and creates none.
 * errno is preserved. */
void gpu_device_record(void);

#endif
