/* SPDX-License-Identifier: MIT
 * gpu_device.h: the GPUs of this process and their limits, as the driver knows them.
 */
#ifndef PPERF_COLLECTOR_CUPTI_DEVICES_H
#define PPERF_COLLECTOR_CUPTI_DEVICES_H

/* Writes a DEVICE for each GPU; once in a process, when the driver has been initialised: before that nothing, and the next call tries again. Calls the driver, so not from a CUPTI callback,
 * nor while the driver is being initialised; needs no context and leaves none. Keeps errno. */
void gpu_device_record(void);

#endif
