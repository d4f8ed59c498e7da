/* SPDX-License-Identifier: MIT
 * kineto_like LAUNCHES [SESSIONS [PAUSE_MS]]: a CUPTI client that works as Kineto does. It enables
 * external correlation, kernels, copies, runtime and driver calls, and links each GPU record to a
 * call by the correlation id, and to its own number by the external id.
 *
 * Outside of sessions it launches, too. In a session it launches kernels and copies by the runtime,
 * pauses, does the same again, and launches some kernels by the driver. For each session it prints
 * what a profiler shows of it:
 *
 *	kernels 20 linked 20 external 20 ...
 *
 * and the name of each driver function that has records, with their number.
 */
#include "kernels.h"

#include <cuda.h>
#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECORDS 65536
#define CALLS 1024
#define BUFFER_BYTES (256 << 10)
#define CHECK(call) check((int)(call), #call)

KERNEL(client_kernel)

struct row {
	uint32_t kind, correlation, cbid;
	uint64_t external;
};

static struct row rows[RECORDS];
static size_t row_count;
static float *memory;

static void check(int error, const char *call)
{
	if (error == 0)
		return;
	fprintf(stderr, "kineto_like: %s: %d\n", call, error);
	exit(1);
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *bytes, size_t *records)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*bytes = BUFFER_BYTES;
	*records = 0;
}

static void add_row(const CUpti_Activity *record)
{
	struct row row = { .kind = record->kind };

	if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
		const CUpti_ActivityExternalCorrelation *external = (const void *)record;

		row.correlation = external->correlationId;
		row.external = external->externalId;
	} else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME ||
		   record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
		const CUpti_ActivityAPI *call = (const void *)record;

		row.correlation = call->correlationId;
		row.cbid = call->cbid;
	} else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
		row.correlation =
			((const CUpti_ActivityKernel9 *)(const void *)record)->correlationId;
	} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
		row.correlation =
			((const CUpti_ActivityMemcpy5 *)(const void *)record)->correlationId;
	} else {
		return;
	}
	if (row_count < RECORDS)
		rows[row_count++] = row;
}

static void CUPTIAPI completed(
	CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context, (void)stream, (void)bytes;
	while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		add_row(record);
	free(buffer);
}

/* The row of one of two kinds with this correlation id. */
static const struct row *find(uint32_t kind, uint32_t or_kind, uint32_t correlation)
{
	for (size_t i = 0; i < row_count; i++)
		if ((rows[i].kind == kind || rows[i].kind == or_kind) &&
			rows[i].correlation == correlation)
			return &rows[i];
	return NULL;
}

static void print_links(const char *what, uint32_t kind)
{
	int all = 0, linked = 0, external = 0;

	for (size_t i = 0; i < row_count; i++) {
		const uint32_t id = rows[i].correlation;

		if (rows[i].kind != kind)
			continue;
		all++;
		linked += find(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, id) != NULL;
		external += find(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0, id) != NULL;
	}
	printf("%s %d linked %d external %d ", what, all, linked, external);
}

static void print_driver_calls(void)
{
	int counts[CALLS] = { 0 };
	const char *name;

	for (size_t i = 0; i < row_count; i++)
		if (rows[i].kind == CUPTI_ACTIVITY_KIND_DRIVER && rows[i].cbid < CALLS)
			counts[rows[i].cbid]++;
	for (uint32_t id = 0; id < CALLS; id++)
		if (counts[id] && cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) ==
					  CUPTI_SUCCESS)
			printf("%s %d ", name, counts[id]);
	printf("\n");
}

static void launch(int count, uint64_t number)
{
	uint64_t last;

	for (int i = 0; i < count; i++) {
		cuptiActivityPushExternalCorrelationId(
			CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, number + (uint64_t)i);
		CHECK(LAUNCH(client_kernel, 1, 32, 0, 0, memory, 64));
		CHECK(cudaMemcpyAsync(memory, memory + 64, 64, cudaMemcpyDeviceToDevice, 0));
		cuptiActivityPopExternalCorrelationId(
			CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
	}
}

/* As Triton does. */
static void launch_by_driver(CUfunction function, int count)
{
	unsigned long length = 64;
	void *arguments[] = { &memory, &length };

	for (int i = 0; i < count; i++)
		CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
}

static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
	CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
	CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER };
#define KINDS (sizeof kinds / sizeof *kinds)

static void session(int count, long pause_ms, CUfunction function)
{
	const struct timespec pause = { pause_ms / 1000, pause_ms % 1000 * 1000000 };
	void *more;

	row_count = 0;
	for (size_t i = 0; i < KINDS; i++)
		CHECK(cuptiActivityEnable(kinds[i]));
	launch(count - count / 2, 100);
	CHECK(cudaDeviceSynchronize());
	nanosleep(&pause, NULL);
	CHECK(cudaMalloc(&more, 4096));
	launch(count / 2, 200);
	launch_by_driver(function, 3);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(more));
	for (size_t i = 0; i < KINDS; i++)
		CHECK(cuptiActivityDisable(kinds[i]));
	CHECK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
	print_links("kernels", CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	print_links("copies", CUPTI_ACTIVITY_KIND_MEMCPY);
	print_driver_calls();
}

int main(int argc, char **argv)
{
	const int count = argc > 1 ? atoi(argv[1]) : 20, sessions = argc > 2 ? atoi(argv[2]) : 1;
	cudaFunction_t function;

	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	CHECK(cudaMalloc((void **)&memory, 4096));
	CHECK(cudaGetFuncBySymbol(&function, &client_kernel));
	for (int i = 0; i < sessions; i++) {
		launch(5, 1);
		CHECK(cudaDeviceSynchronize());
		session(count, argc > 3 ? atol(argv[3]) : 0, (CUfunction)function);
	}
	launch(5, 1);
	CHECK(cudaDeviceSynchronize());
	return 0;
}
