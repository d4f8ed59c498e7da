/* SPDX-License-Identifier: MIT
 * What the simulated device remembers: bytes that only copies and sets touched, exactly; all else
 * as zeros.
 */
#include <string.h>

#include "tests/check_cuda.h"

KERNEL(work)

enum { COUNT = 1000 };

static int written[COUNT], seen[COUNT];

/* Device memory with 1, 2, 3, ... in it. */
static int *filled(void)
{
	int *memory;

	OK(cudaMalloc((void **)&memory, sizeof(written)));
	for (int i = 0; i < COUNT; i++)
		written[i] = i + 1;
	OK(cudaMemcpy(memory, written, sizeof(written), cudaMemcpyHostToDevice));
	return memory;
}

static void read_back(const int *memory)
{
	memset(seen, 0xff, sizeof(seen));
	OK(cudaMemcpy(seen, memory, sizeof(seen), cudaMemcpyDeviceToHost));
}

/* A call of its own, so that no address lies about on the stack of the caller. */
static __attribute__((noinline)) void launch_on(int *memory, cudaStream_t stream)
{
	OK(LAUNCH(work, 1, 32, 0, stream, (float *)memory, 1ul));
}

static int zeros(void)
{
	int count = 0;

	for (int i = 0; i < COUNT; i++)
		count += seen[i] == 0;
	return count;
}

START_TEST(a_copy_comes_back_whatever_else_runs)
{
	int *memory = filled(), *other;

	OK(cudaMalloc((void **)&other, 4096));
	launch_on(other, NULL);
	OK(cudaMemset(other, 7, 4096));
	read_back(memory);
	ck_assert_mem_eq(seen, written, sizeof(seen));
}
END_TEST

START_TEST(what_a_kernel_was_given_reads_as_zeros)
{
	int *memory = filled();

	launch_on(memory, NULL);
	read_back(memory);
	ck_assert_int_eq(zeros(), COUNT);
	OK(cudaMemcpy(memory, written, sizeof(written), cudaMemcpyHostToDevice));
	read_back(memory);
	ck_assert_mem_eq(seen, written, sizeof(seen));
}
END_TEST

START_TEST(a_kernel_given_the_middle_leaves_what_is_before_it)
{
	int *memory = filled();

	launch_on(memory + 600, NULL);
	read_back(memory);
	ck_assert_int_eq(zeros(), 400);
	ck_assert_mem_eq(seen, written, 600 * sizeof(int));
}
END_TEST

START_TEST(a_write_in_the_middle_is_known_by_itself)
{
	int *memory = filled();

	launch_on(memory, NULL);
	OK(cudaMemcpy(memory + 100, written, 50 * sizeof(int), cudaMemcpyHostToDevice));
	OK(cudaMemset(memory + 500, 1, 4));
	read_back(memory);
	ck_assert_int_eq(zeros(), COUNT - 51);
	ck_assert_mem_eq(seen + 100, written, 50 * sizeof(int));
	ck_assert_int_eq(seen[500], 0x01010101);
}
END_TEST

START_TEST(copies_on_the_device_carry_what_is_known)
{
	int *memory = filled(), *copy;

	OK(cudaMalloc((void **)&copy, sizeof(written)));
	launch_on(memory + 900, NULL);
	OK(cudaMemcpy(copy, memory, sizeof(written), cudaMemcpyDeviceToDevice));
	read_back(copy);
	ck_assert_int_eq(zeros(), 100);
	ck_assert_mem_eq(seen, written, 900 * sizeof(int));
}
END_TEST

START_TEST(freed_memory_is_forgotten)
{
	int *memory = filled(), *again;

	OK(cudaMallocAsync((void **)&again, sizeof(written), NULL));
	OK(cudaMemcpyAsync(again, memory, sizeof(written), cudaMemcpyDeviceToDevice, NULL));
	OK(cudaFreeAsync(again, NULL));
	OK(cudaMallocAsync((void **)&again, sizeof(written), NULL));
	read_back(again);
	ck_assert_int_eq(zeros(), COUNT);
}
END_TEST

START_TEST(a_captured_kernel_writes_at_each_replay)
{
	int *memory = filled();
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	launch_on(memory, stream);
	OK(cudaStreamEndCapture(stream, &graph));
	read_back(memory);
	ck_assert_mem_eq(seen, written, sizeof(seen));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		OK(cudaGraphLaunch(exec, stream));
		OK(cudaStreamSynchronize(stream));
		read_back(memory);
		ck_assert_int_eq(zeros(), COUNT);
		OK(cudaMemcpy(memory, written, sizeof(written), cudaMemcpyHostToDevice));
	}
}
END_TEST

START_TEST(arguments_off_the_stack_may_be_any)
{
	void **argument = calloc(1, sizeof(*argument));
	int *memory = filled();

	ck_assert_ptr_nonnull(argument);
	OK(cudaLaunchKernel(&work, (dim3){ 1, 1, 1 }, (dim3){ 32, 1, 1 }, argument, 0, 0));
	read_back(memory);
	ck_assert_int_eq(zeros(), COUNT);
	free(argument);
}
END_TEST

SUITE("cudasim values", a_copy_comes_back_whatever_else_runs,
	what_a_kernel_was_given_reads_as_zeros, a_kernel_given_the_middle_leaves_what_is_before_it,
	a_write_in_the_middle_is_known_by_itself, copies_on_the_device_carry_what_is_known,
	freed_memory_is_forgotten, a_captured_kernel_writes_at_each_replay,
	arguments_off_the_stack_may_be_any)
