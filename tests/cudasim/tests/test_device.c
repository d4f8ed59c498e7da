/* The simulated driver's start and its devices: settings, injection, forks, properties, contexts,
 * symbols. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check_cuda.h"
#include "runtime/properties12.h"

KERNEL(forked_kernel)

#define NAME "pperf simulated device"

/*
 * The library reads its settings when it is loaded, so what depends on them runs in a new process:
 * this program again, with PROBE naming one of these. A probe answers 0 if all is as it should be,
 * else the line.
 */
#define EXPECT(condition)                \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

static int no_device(void)
{
	void *memory;
	int count = 7;

	EXPECT(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
	EXPECT(count == 0);
	EXPECT(cudaMalloc(&memory, 64) == cudaErrorNoDevice);
	EXPECT(cuInit(0) == CUDA_ERROR_NO_DEVICE);
	EXPECT(!getenv("INJECTION_STARTED"));
	return 0;
}

static int third_allocation_fails(void)
{
	void *memory;

	EXPECT(cudaMalloc(&memory, 64) == cudaSuccess);
	EXPECT(cudaMallocHost(&memory, 64) == cudaSuccess);
	EXPECT(cudaMallocAsync(&memory, 64, 0) == cudaSuccess);
	EXPECT(cudaMalloc(&memory, 64) == cudaErrorMemoryAllocation);
	EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
	EXPECT(cudaMalloc(&memory, 64) == cudaSuccess);
	return 0;
}

static int four_megabytes(void)
{
	void *a, *b, *c;
	size_t left, total;

	EXPECT(cudaMalloc(&a, 1) == cudaSuccess);
	EXPECT(cudaMalloc(&b, 1) == cudaSuccess);
	EXPECT(cudaMalloc(&c, 1) == cudaErrorMemoryAllocation);
	EXPECT(cudaMemGetInfo(&left, &total) == cudaSuccess);
	EXPECT(left == 0 && total == 4 * MIB);
	EXPECT(cudaMallocManaged(&c, 8 * MIB, cudaMemAttachGlobal) == cudaSuccess);
	return 0;
}

static int two_devices(void)
{
	int count, device, peer;
	void *here, *there;
	struct cudaPointerAttributes attributes;
	char in = 5, out = 0;

	EXPECT(cudaGetDeviceCount(&count) == cudaSuccess && count == 2);
	EXPECT(cudaSetDevice(2) == cudaErrorInvalidDevice);
	EXPECT(cudaMalloc(&here, 64) == cudaSuccess);
	EXPECT(cudaSetDevice(1) == cudaSuccess);
	EXPECT(cudaGetDevice(&device) == cudaSuccess && device == 1);
	EXPECT(cudaMalloc(&there, 64) == cudaSuccess);
	EXPECT(cudaPointerGetAttributes(&attributes, there) == cudaSuccess &&
		attributes.device == 1);
	EXPECT(cudaPointerGetAttributes(&attributes, here) == cudaSuccess &&
		attributes.device == 0);
	EXPECT(cudaDeviceCanAccessPeer(&peer, 0, 1) == cudaSuccess && peer == 1);
	EXPECT(cudaDeviceEnablePeerAccess(0, 0) == cudaSuccess);
	EXPECT(cudaMemcpy(here, &in, 1, cudaMemcpyHostToDevice) == cudaSuccess);
	EXPECT(cudaMemcpyPeer(there, 1, here, 0, 64) == cudaSuccess);
	EXPECT(cudaMemcpy(&out, there, 1, cudaMemcpyDeviceToHost) == cudaSuccess && out == 5);
	return 0;
}

static int injected(void)
{
	void *memory;

	EXPECT(cudaMalloc(&memory, 64) == cudaSuccess);
	EXPECT(cuInit(0) == CUDA_SUCCESS);
	EXPECT(getenv("INJECTION_STARTED") && strcmp(getenv("INJECTION_STARTED"), "once") == 0);
	EXPECT(strcmp(getenv("INJECTION_CONTEXT"), "none") == 0);
	return 0;
}

static int injection_ignored(void)
{
	EXPECT(cuInit(0) == CUDA_SUCCESS);
	EXPECT(!getenv("INJECTION_STARTED"));
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} probes[] = {
	{ "no_device", no_device },
	{ "third_allocation_fails", third_allocation_fails },
	{ "four_megabytes", four_megabytes },
	{ "two_devices", two_devices },
	{ "injected", injected },
	{ "injection_ignored", injection_ignored },
};

__attribute__((constructor)) static void run_probe(void)
{
	const char *name = getenv("PROBE");
	int line;

	for (size_t i = 0; name && i < sizeof(probes) / sizeof(probes[0]); i++) {
		if (strcmp(name, probes[i].name) != 0)
			continue;
		line = probes[i].run();
		if (line)
			fprintf(stderr, "probe %s: line %d\n", name, line);
		_exit(line != 0);
	}
}

static void probe(const char *name, const char *variable, const char *value)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		setenv("PROBE", name, 1);
		setenv(variable, value, 1);
		execl("/proc/self/exe", "test_device", (char *)NULL);
		_exit(127);
	}
	waitpid(child, &status, 0);
	ck_assert_int_eq(status, 0);
}

/* A file beside this program. */
static char *beside(const char *name)
{
	static char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);

	ck_assert_int_gt(length, 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, name);
	return path;
}

START_TEST(a_machine_without_a_device_says_so)
{
	probe("no_device", "SIM_NO_DEVICE", "1");
}
END_TEST

START_TEST(the_allocation_that_is_named_fails_and_no_other)
{
	probe("third_allocation_fails", "SIM_FAIL_MALLOC", "3");
}
END_TEST

START_TEST(the_capacity_is_as_set)
{
	probe("four_megabytes", "SIM_MEM", "4194304");
}
END_TEST

START_TEST(devices_are_as_many_as_set_and_reach_each_other)
{
	probe("two_devices", "SIM_DEVICES", "2");
}
END_TEST

START_TEST(the_injected_library_is_started_once_before_any_context)
{
	probe("injected", "CUDA_INJECTION64_PATH", beside("lib_injection.so"));
}
END_TEST

START_TEST(an_injection_that_cannot_be_loaded_is_ignored)
{
	probe("injection_ignored", "CUDA_INJECTION64_PATH", "none");
	probe("injection_ignored", "CUDA_INJECTION64_PATH", "/nowhere/library.so");
	probe("injection_ignored", "CUDA_INJECTION64_PATH", "");
}
END_TEST

static int calls_fail(void)
{
	void *memory;
	int count;

	EXPECT(cudaMalloc(&memory, 64) == cudaErrorInitializationError);
	EXPECT(cudaGetLastError() == cudaErrorInitializationError);
	EXPECT(cudaGetLastError() == cudaSuccess);
	EXPECT(cudaGetDeviceCount(&count) == cudaErrorInitializationError);
	EXPECT(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
	EXPECT(cudaDeviceSynchronize() == cudaErrorInitializationError);
	EXPECT(LAUNCH(forked_kernel, 1, 1, 0, 0, NULL, 0) == cudaErrorInitializationError);
	return 0;
}

static int calls_work(void)
{
	void *memory;

	EXPECT(cudaMalloc(&memory, 64) == cudaSuccess);
	return 0;
}

static int in_child(int (*run)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(run() != 0);
	waitpid(child, &status, 0);
	return status;
}

START_TEST(a_child_forked_after_the_start_cannot_use_cuda)
{
	OK(cuInit(0));
	ck_assert_int_eq(in_child(calls_fail), 0);
	ck_assert_int_eq(calls_work(), 0);
}
END_TEST

START_TEST(a_child_forked_before_the_start_can)
{
	ck_assert_int_eq(in_child(calls_work), 0);
	ck_assert_int_eq(calls_work(), 0);
}
END_TEST

START_TEST(properties_have_the_layout_of_the_major)
{
#if SIM_MAJOR >= 13
	struct cudaDeviceProp p;

	OK(cudaGetDeviceProperties(&p, 0));
#else
	cudaError_t get(struct properties12 *, int) __asm__("cudaGetDeviceProperties_v2");
	struct properties12 p;

	OK(get(&p, 0));
	ck_assert_int_eq(p.clockRate, 1980000);
#endif
	ck_assert_str_eq(p.name, NAME);
	ck_assert_int_eq(p.multiProcessorCount, 132);
	ck_assert_int_eq(p.maxThreadsPerMultiProcessor, 2048);
	ck_assert_int_eq(p.regsPerMultiprocessor, 65536);
	ck_assert_uint_eq(p.sharedMemPerMultiprocessor, 233472);
	ck_assert_int_eq(p.maxBlocksPerMultiProcessor, 32);
	ck_assert_int_eq(p.major, 9);
	ck_assert_uint_eq(p.totalGlobalMem, 16 * 1024 * MIB);
}
END_TEST

START_TEST(the_driver_says_the_same)
{
	char name[64], bus[32];
	CUdevice device;
	CUuuid uuid;
	int value;
	size_t bytes;

	FAILS(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	FAILS(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetName(name, sizeof(name), device));
	ck_assert_str_eq(name, NAME);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	ck_assert_int_eq(value, 132);
	OK(cuDeviceTotalMem(&bytes, device));
	ck_assert_uint_eq(bytes, 16 * 1024 * MIB);
	OK(cuDeviceGetUuid(&uuid, device));
	ck_assert_mem_eq(uuid.bytes, "pperf simulated", 15);
	OK(cuDeviceGetPCIBusId(bus, sizeof(bus), device));
	OK(cuDeviceGetByPCIBusId(&device, bus));
	ck_assert_int_eq(device, 0);
}
END_TEST

START_TEST(versions_are_those_of_the_major)
{
	int runtime, driver;

	OK(cudaRuntimeGetVersion(&runtime));
	OK(cuDriverGetVersion(&driver));
	ck_assert_int_eq(runtime / 1000, SIM_MAJOR);
	ck_assert_int_eq(driver, runtime);
}
END_TEST

START_TEST(symbols_carry_the_version_of_their_major)
{
	const char *node = SIM_MAJOR == 12 ? "libcudart.so.12" : "libcudart.so.13";
	const char *other = SIM_MAJOR == 12 ? "libcudart.so.13" : "libcudart.so.12";

	ck_assert_ptr_nonnull(dlvsym(RTLD_DEFAULT, "cudaMalloc", node));
	ck_assert_ptr_nonnull(dlvsym(RTLD_DEFAULT, "cudaLaunchKernel_ptsz", node));
	ck_assert_ptr_nonnull(dlvsym(RTLD_DEFAULT, "__cudaRegisterFunction", node));
	ck_assert_ptr_null(dlvsym(RTLD_DEFAULT, "cudaMalloc", other));
}
END_TEST

START_TEST(a_context_is_made_by_the_first_call_that_needs_one)
{
	CUcontext context;
	unsigned flags;
	int active, count;
	void *memory;

	OK(cudaGetDeviceCount(&count));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	ck_assert_int_eq(active, 0);
	OK(cudaMalloc(&memory, 64));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	ck_assert_int_eq(active, 1);
	OK(cuCtxGetCurrent(&context));
	ck_assert_ptr_nonnull(context);
}
END_TEST

START_TEST(a_reset_takes_all_memory_back_and_a_new_context_begins)
{
	void *memory;
	size_t before, after, total;
	cudaStream_t stream;

	OK(cudaMemGetInfo(&before, &total));
	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&memory, 64 * MIB));
	OK(cudaDeviceReset());
	OK(cudaMemGetInfo(&after, &total));
	ck_assert_uint_eq(before, after);
	FAILS(cudaFree(memory), cudaErrorInvalidValue);
	FAILS(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}
END_TEST

START_TEST(contexts_stack)
{
	CUcontext first, second, current;
	CUdevice device;

	OK(cuInit(0));
	OK(cuCtxCreate(&first, NULL, 0, 0));
	OK(cuDevicePrimaryCtxRetain(&second, 0));
	OK(cuCtxPushCurrent(second));
	OK(cuCtxGetCurrent(&current));
	ck_assert_ptr_eq(current, second);
	OK(cuCtxPopCurrent(&current));
	OK(cuCtxGetDevice(&device));
	OK(cuCtxGetCurrent(&current));
	ck_assert_ptr_eq(current, first);
	OK(cuCtxDestroy(first));
	FAILS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	FAILS(cuCtxSetCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

static void *peek(void *error)
{
	*(cudaError_t *)error = cudaPeekAtLastError();
	return NULL;
}

START_TEST(each_thread_has_a_last_error_of_its_own)
{
	cudaError_t others;
	pthread_t thread;

	FAILS(cudaSetDevice(9), cudaErrorInvalidDevice);
	pthread_create(&thread, NULL, peek, &others);
	pthread_join(thread, NULL);
	ck_assert_int_eq(others, cudaSuccess);
	FAILS(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	FAILS(cudaGetLastError(), cudaErrorInvalidDevice);
	OK(cudaGetLastError());
	ck_assert_str_eq(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
	ck_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
	ck_assert_str_eq(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
}
END_TEST

START_TEST(entry_points_are_those_of_the_version_requested)
{
	enum cudaDriverEntryPointQueryResult found;
	CUdriverProcAddressQueryResult status;
	void *address, *twin;

	OK(cuInit(0));
	OK(cuGetProcAddress("cuMemAlloc", &address, SIM_MAJOR * 1000, 0, &status));
	ck_assert_ptr_eq(address, dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	OK(cuGetProcAddress("cuStreamGetCaptureInfo", &address, 12000, 0, &status));
	ck_assert_ptr_eq(address, dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v2"));
	OK(cuGetProcAddress("cuStreamGetCaptureInfo", &address, 12030, 0, &status));
	ck_assert_ptr_eq(address, dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v3"));
	OK(cuGetProcAddress("cuLaunchKernel", &address, 12000, 0, &status));
	OK(cuGetProcAddress("cuLaunchKernel", &twin, 12000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
	ck_assert_ptr_eq(twin, dlsym(RTLD_DEFAULT, "cuLaunchKernel_ptsz"));
	FAILS(cuGetProcAddress("cuNothing", &address, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
	ck_assert_ptr_null(address);
	OK(cudaGetDriverEntryPointByVersion("cuMemCreate", &address, 12000, 0, &found));
	ck_assert_int_eq(found, cudaDriverEntryPointSuccess);
	ck_assert_ptr_nonnull(address);
	OK(cudaGetDriverEntryPointByVersion("cuNothing", &address, 12000, 0, &found));
	ck_assert_int_eq(found, cudaDriverEntryPointSymbolNotFound);
}
END_TEST

START_TEST(what_is_not_simulated_says_so)
{
	cudaIpcMemHandle_t handle;

	FAILS(cudaIpcGetMemHandle(&handle, NULL), cudaErrorNotSupported);
	FAILS(cuMulticastCreate(NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

SUITE("cudasim devices", a_machine_without_a_device_says_so,
	the_allocation_that_is_named_fails_and_no_other, the_capacity_is_as_set,
	devices_are_as_many_as_set_and_reach_each_other,
	the_injected_library_is_started_once_before_any_context,
	an_injection_that_cannot_be_loaded_is_ignored,
	a_child_forked_after_the_start_cannot_use_cuda, a_child_forked_before_the_start_can,
	properties_have_the_layout_of_the_major, the_driver_says_the_same,
	versions_are_those_of_the_major, symbols_carry_the_version_of_their_major,
	a_context_is_made_by_the_first_call_that_needs_one,
	a_reset_takes_all_memory_back_and_a_new_context_begins, contexts_stack,
	each_thread_has_a_last_error_of_its_own, entry_points_are_those_of_the_version_requested,
	what_is_not_simulated_says_so)
