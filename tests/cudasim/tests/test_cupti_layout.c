/*
 * The simulated CUPTI's records, read back field by field through the offsets of cupti_layout.h,
 * and their lengths in each version. That the offsets are the real ones is asserted by
 * cupti_layout.c.
 */
#include "tests/cupti_client.h"

#include <stdio.h>
#include <stdlib.h>

#define KERNEL CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
#define MEMCPY CUPTI_ACTIVITY_KIND_MEMCPY
#define MEMSET CUPTI_ACTIVITY_KIND_MEMSET

/* One record of each device kind; `stream` is where. */
static void one_of_each(int major)
{
	CUfunction kernel;
	char host[64] = "";
	void *memory;

	client_open(major);
	kernel = client_kernel("_Z4fillPfi");
	client_record(KERNEL, MEMCPY, MEMSET, CUPTI_ACTIVITY_KIND_MEMCPY2, 0);
	client_enable(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 0);
	client_launch(kernel, NULL, 5);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 1 << 16), cudaSuccess);
	ck_assert_int_eq(
		cuda.cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
	ck_assert_int_eq(cuda.cudaMemsetAsync(memory, 0x5a, 4096, NULL), cudaSuccess);
	client_finish();
}

START_TEST(a_kernel_reads_back)
{
	const uint8_t *record;

	one_of_each(_i);
	record = client_entry(KERNEL, 0);
	ck_assert_uint_eq(CUPTI_GET(record, Kernel, kind), KERNEL);
	ck_assert_str_eq(CUPTI_GET(record, Kernel, name), "_Z4fillPfi");
	ck_assert_int_eq(CUPTI_GET(record, Kernel, gridX), 5);
	ck_assert_int_eq(CUPTI_GET(record, Kernel, gridY), 2);
	ck_assert_int_eq(CUPTI_GET(record, Kernel, gridZ), 3);
	ck_assert_int_eq(CUPTI_GET(record, Kernel, blockX), 32);
	ck_assert_int_eq(CUPTI_GET(record, Kernel, blockY), 2);
	ck_assert_int_eq(CUPTI_GET(record, Kernel, blockZ), 1);
	ck_assert_int_eq(CUPTI_GET(record, Kernel, dynamicSharedMemory), 1024);
	ck_assert_uint_gt(CUPTI_GET(record, Kernel, registersPerThread), 0);
	ck_assert_uint_eq(CUPTI_GET(record, Kernel, deviceId), 0);
	ck_assert_uint_eq(CUPTI_GET(record, Kernel, contextId), 1);
	ck_assert_uint_eq(CUPTI_GET(record, Kernel, streamId), 7);
	ck_assert_uint_eq(CUPTI_GET(record, Kernel, correlationId), 1);
	ck_assert_uint_eq(CUPTI_GET(record, Kernel, graphNodeId), 0);
	ck_assert_uint_eq(CUPTI_GET(record, Kernel, graphId), 0);
	ck_assert_uint_eq(CUPTI_GET(record, Kernel, launchType), 0);
	ck_assert_uint_gt(CUPTI_GET(record, Kernel, end), CUPTI_GET(record, Kernel, start));
}
END_TEST

START_TEST(a_copy_reads_back)
{
	const uint8_t *record;

	one_of_each(_i);
	record = client_entry(MEMCPY, 0);
	ck_assert_uint_eq(CUPTI_GET(record, Memcpy, copyKind), CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
	ck_assert_uint_eq(CUPTI_GET(record, Memcpy, srcKind), CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
	ck_assert_uint_eq(CUPTI_GET(record, Memcpy, dstKind), CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
	ck_assert_uint_eq(CUPTI_GET(record, Memcpy, flags), 0);
	ck_assert_uint_eq(CUPTI_GET(record, Memcpy, bytes), 64);
	ck_assert_uint_eq(CUPTI_GET(record, Memcpy, streamId), 7);
	ck_assert_uint_eq(CUPTI_GET(record, Memcpy, contextId), 1);
	ck_assert_uint_eq(CUPTI_GET(record, Memcpy, copyCount), 1);
	ck_assert_uint_gt(CUPTI_GET(record, Memcpy, end), CUPTI_GET(record, Memcpy, start));
}
END_TEST

START_TEST(a_set_reads_back)
{
	const uint8_t *record;

	one_of_each(_i);
	record = client_entry(MEMSET, 0);
	ck_assert_uint_eq(CUPTI_GET(record, Memset, value), 0x5a);
	ck_assert_uint_eq(CUPTI_GET(record, Memset, bytes), 4096);
	ck_assert_uint_eq(CUPTI_GET(record, Memset, memoryKind), CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
	ck_assert_uint_eq(CUPTI_GET(record, Memset, flags), CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
	ck_assert_uint_eq(CUPTI_GET(record, Memset, streamId), 7);
}
END_TEST

START_TEST(a_copy_between_devices_reads_back)
{
	void *memory[2];
	const uint8_t *record;

	setenv("SIM_DEVICES", "2", 1);
	client_open(_i);
	client_kernel("k");
	client_record(MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, 0);
	for (int device = 0; device < 2; device++) {
		ck_assert_int_eq(cuda.cudaSetDevice(device), cudaSuccess);
		ck_assert_int_eq(cuda.cudaMalloc(&memory[device], 1000), cudaSuccess);
	}
	ck_assert_int_eq(
		cuda.cudaMemcpyPeerAsync(memory[1], 1, memory[0], 0, 1000, NULL), cudaSuccess);
	ck_assert_int_eq(cuda.cudaDeviceSynchronize(), cudaSuccess);
	client_flush(false);
	ck_assert_uint_eq(client_entries(MEMCPY), 0);
	record = client_entry(CUPTI_ACTIVITY_KIND_MEMCPY2, 0);
	ck_assert_uint_eq(CUPTI_GET(record, MemcpyPtoP, copyKind), CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
	ck_assert_uint_eq(CUPTI_GET(record, MemcpyPtoP, bytes), 1000);
	ck_assert_uint_eq(CUPTI_GET(record, MemcpyPtoP, srcDeviceId), 0);
	ck_assert_uint_eq(CUPTI_GET(record, MemcpyPtoP, dstDeviceId), 1);
}
END_TEST

START_TEST(a_device_reads_back)
{
	const uint8_t *record;
	uint8_t sum = 0;

	client_open(_i);
	client_record(CUPTI_ACTIVITY_KIND_DEVICE, 0);
	client_kernel("k");
	client_flush(false);
	record = client_entry(CUPTI_ACTIVITY_KIND_DEVICE, 0);
	ck_assert_uint_eq(CUPTI_GET(record, Device, id), 0);
	ck_assert_uint_eq(CUPTI_GET(record, Device, numThreadsPerWarp), 32);
	ck_assert_uint_gt(CUPTI_GET(record, Device, numMultiprocessors), 0);
	ck_assert_uint_gt(CUPTI_GET(record, Device, globalMemorySize), 0);
	ck_assert_uint_eq(CUPTI_GET(record, Device, maxWarpsPerMultiprocessor), 64);
	ck_assert_uint_eq(CUPTI_GET(record, Device, computeCapabilityMajor), 9);
	for (int i = 0; i < 16; i++)
		sum |= record[AT_Device_uuid + i];
	ck_assert_uint_ne(sum, 0);
}
END_TEST

/* The same bytes as the newest struct of the real headers has them. */
START_TEST(offsets_and_structs_agree)
{
#if CUPTI_API_VERSION >= 130000
	CUpti_ActivityKernel10 kernel;
	CUpti_ActivityMemcpy6 copy;

	one_of_each(13);
	memcpy(&kernel, client_entry(KERNEL, 0), sizeof kernel);
	memcpy(&copy, client_entry(MEMCPY, 0), sizeof copy);
	ck_assert_str_eq(kernel.name, "_Z4fillPfi");
	ck_assert_int_eq(kernel.gridX, 5);
	ck_assert_uint_eq(kernel.correlationId, 1);
	ck_assert_uint_eq(kernel.isDeviceLaunched, 0);
	ck_assert_uint_eq(copy.bytes, 64);
	ck_assert_uint_eq(copy.copyCount, 1);
#endif
}
END_TEST

/* The calls that make one record each. */
static CUfunction kernel_;
static cudaEvent_t event_;
static void *memory_;

static void make_kernel(void)
{
	client_launch(kernel_, NULL, 1);
}

static void make_copy(void)
{
	cuda.cudaMemcpyAsync(memory_, (char *)memory_ + 512, 512, cudaMemcpyDeviceToDevice, NULL);
}

static void make_set(void)
{
	cuda.cudaMemsetAsync(memory_, 0, 512, NULL);
}

static void make_memory(void)
{
	void *memory;

	cuda.cudaMalloc(&memory, 64);
}

static void make_event(void)
{
	cuda.cudaEventRecord(event_, NULL);
}

static void make_wait(void)
{
	cuda.cudaStreamSynchronize(NULL);
}

static void make_stream(void)
{
	cudaStream_t stream;

	cuda.cudaStreamCreate(&stream);
}

/* What each version of CUPTI gives for some kinds; the list of lengths again, from the other side.
 */
static const struct {
	const char *version;
	int major;
	uint32_t kernel, copy, memory, sync, event;
} versions[] = {
	{ "19", 12, 208, 88, 120, 40, 24 },
	{ "20", 12, 208, 88, 120, 40, 24 },
	{ "23", 12, 208, 88, 120, 40, 24 },
	{ "24", 12, 208, 88, 128, 40, 24 },
	{ "26", 12, 208, 96, 128, 56, 56 },
	{ "28", 12, 208, 96, 128, 56, 56 },
	{ "130000", 13, 216, 96, 128, 56, 56 },
	{ "130001", 13, 216, 96, 128, 56, 56 },
};

/* The length of the one record of `kind` that `make` makes. */
static void expect(CUpti_ActivityKind kind, uint32_t length, void (*make)(void))
{
	size_t before = client.buffer_count;

	ck_assert_int_eq(cupti.cuptiActivityEnable(kind), CUPTI_SUCCESS);
	make();
	ck_assert_int_eq(cupti.cuptiActivityDisable(kind), CUPTI_SUCCESS);
	client_finish();
	ck_assert_uint_eq(client.buffer_count, before + 1);
	ck_assert_uint_eq(client.buffers[before].records, 1);
	ck_assert_uint_eq(client.entries[client.entry_count - 1].kind, kind);
	ck_assert_uint_eq(client.buffers[before].valid, length);
}

START_TEST(records_have_the_length_of_the_version)
{
	setenv("SIM_CUPTI_VERSION", versions[_i].version, 1);
	client_open(versions[_i].major);
	kernel_ = client_kernel("k");
	client_record(0);
	ck_assert_int_eq(cuda.cudaMalloc(&memory_, 1024), cudaSuccess);
	ck_assert_int_eq(cuda.cudaEventCreate(&event_), cudaSuccess);
	expect(KERNEL, versions[_i].kernel, make_kernel);
	expect(MEMCPY, versions[_i].copy, make_copy);
	expect(MEMSET, 88, make_set);
	expect(CUPTI_ACTIVITY_KIND_MEMORY2, versions[_i].memory, make_memory);
	expect(CUPTI_ACTIVITY_KIND_RUNTIME, 40, make_event);
	expect(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, versions[_i].sync, make_wait);
	expect(CUPTI_ACTIVITY_KIND_CUDA_EVENT, versions[_i].event, make_event);
	expect(CUPTI_ACTIVITY_KIND_STREAM, 24, make_stream);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cupti layout");
	TCase *fields = tcase_create("fields"), *lengths = tcase_create("lengths");

#define BOTH(test) tcase_add_loop_test(fields, test, 12, 14);
	BOTH(a_kernel_reads_back)
	BOTH(a_copy_reads_back)
	BOTH(a_set_reads_back)
	BOTH(a_copy_between_devices_reads_back)
	BOTH(a_device_reads_back)
	tcase_add_test(fields, offsets_and_structs_agree);
	tcase_add_loop_test(lengths, records_have_the_length_of_the_version, 0,
		sizeof versions / sizeof *versions);
	suite_add_tcase(suite, fields);
	suite_add_tcase(suite, lengths);
	return client_run(suite);
}
