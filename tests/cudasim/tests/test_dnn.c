/* SPDX-License-Identifier: MIT
 * The simulated cuDNN: what its calls launch, and what they say of sizes and places.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check_cuda.h"
#include "libraries/dnn_api.h"

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream);
size_t cudnnGetVersion(void);
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *made);
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
	cudnnBackendAttributeType_t type, int64_t count, const void *array);
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
	cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *array);
cudnnStatus_t cudnnBackendExecute(
	cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack);
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *made);
cudnnStatus_t cudnnSetTensorNdDescriptor(
	cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int count, const int dims[], const int strides[]);
cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, int room, cudnnDataType_t *type, int *count,
	int dims[], int strides[]);
cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
	const void *beta, cudnnTensorDescriptor_t x_of, const void *x, cudnnTensorDescriptor_t y_of, void *y,
	cudnnTensorDescriptor_t scale_of, const void *scale, const void *bias, const void *mean, const void *variance,
	double epsilon);
cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *made);
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t cell,
	cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction, cudnnRNNInputMode_t input, cudnnDataType_t type,
	cudnnDataType_t precision, cudnnMathType_t math, int32_t input_size, int32_t hidden, int32_t projection,
	int32_t layers, cudnnDropoutDescriptor_t dropout, uint32_t flags);
cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, size_t *bytes);
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t pseudo_layer, size_t bytes,
	const void *space, int32_t id, cudnnTensorDescriptor_t matrix_of, void **matrix,
	cudnnTensorDescriptor_t bias_of, void **bias);
cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *made);
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type, cudnnRNNDataLayout_t layout,
	int steps, int batch, int width, const int lengths[], void *padding);
cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
	const int32_t lengths[], cudnnRNNDataDescriptor_t x_of, const void *x, cudnnRNNDataDescriptor_t y_of, void *y,
	cudnnTensorDescriptor_t h_of, const void *hx, void *hy, cudnnTensorDescriptor_t c_of, const void *cx, void *cy,
	size_t weight_bytes, const void *weights, size_t work_bytes, void *work, size_t reserve_bytes, void *reserve);

#define MOST 16

static char names[MOST][256];
static uint32_t correlations[MOST], streams[MOST];
static size_t kernels;
static uint32_t launch_id; /* of the call of the runtime in progress */
static const char *launched_in;

static void on_enter(struct sim_scope *scope)
{
	if (strcmp(scope->function->name, "cudaLaunchKernel") != 0)
		return;
	launch_id = scope->correlation;
	launched_in = scope->outer ? scope->outer->function->name : NULL;
}

static void on_exit_of(struct sim_scope *scope)
{
	(void)scope;
}

static void on_work(const struct sim_work *work)
{
	if (work->kind != SIM_KERNEL || kernels == MOST)
		return;
	strncpy(names[kernels], work->name, sizeof(names[0]) - 1);
	streams[kernels] = work->stream;
	correlations[kernels++] = work->correlation;
}

static void on_memory(const struct sim_memory *memory)
{
	(void)memory;
}

static void on_sync(const struct sim_sync *sync)
{
	(void)sync;
}

static void on_event(const struct sim_event_record *event)
{
	(void)event;
}

static void on_resource(const struct sim_resource *resource)
{
	(void)resource;
}

static const struct sim_tools tools = { on_enter, on_exit_of, on_work, on_memory, on_sync, on_event, on_resource };

static cudnnHandle_t start(void)
{
	cudnnHandle_t handle;

	OK(cudnnCreate(&handle));
	sim_tools_set(&tools);
	return handle;
}

static cudnnBackendDescriptor_t descriptor(int type)
{
	cudnnBackendDescriptor_t made;

	OK(cudnnBackendCreateDescriptor(type, &made));
	return made;
}

static void set(cudnnBackendDescriptor_t to, int name, int type, int64_t count, const void *array)
{
	OK(cudnnBackendSetAttribute(to, name, type, count, array));
}

static void put(cudnnBackendDescriptor_t to, int name, cudnnBackendDescriptor_t part)
{
	set(to, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

static cudnnBackendDescriptor_t tensor(int type, int64_t channels, const int64_t strides[4])
{
	cudnnBackendDescriptor_t made = descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	const int64_t dims[] = { 8, channels, 16, 16 };

	set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
	set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
	OK(cudnnBackendFinalize(made));
	return made;
}

/* From operations to a plan, as cuDNN's users go: the heuristics, their engine configuration, the plan. */
static cudnnBackendDescriptor_t plan_of(cudnnBackendDescriptor_t const *operations, int64_t count)
{
	cudnnBackendDescriptor_t graph = descriptor(15), heuristics = descriptor(4), found = descriptor(3), plan = descriptor(5);
	int64_t results = 0;

	set(graph, 801, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
	put(heuristics, 201, graph);
	OK(cudnnBackendGetAttribute(
		heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &results, NULL));
	ck_assert_int_eq(results, 1);
	OK(cudnnBackendGetAttribute(
		heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &results, &found));
	put(plan, 401, found);
	OK(cudnnBackendFinalize(plan));
	return plan;
}

static cudnnBackendDescriptor_t convolution(const int64_t strides[4], int type)
{
	cudnnBackendDescriptor_t operation = descriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);

	put(operation, 704, tensor(type, 16, strides));
	put(operation, 705, tensor(type, 16, strides));
	return operation;
}

START_TEST(a_convolution_is_launched_within_the_call_that_executes_its_plan)
{
	static const int64_t channels_last[] = { 4096, 1, 256, 16 };
	cudnnHandle_t handle = start();
	cudnnBackendDescriptor_t operation = convolution(channels_last, CUDNN_DATA_HALF), plan = plan_of(&operation, 1);

	OK(cudnnBackendExecute(handle, plan, descriptor(16)));
	ck_assert_uint_eq(kernels, 1);
	ck_assert(strstr(names[0], "fprop_implicit_gemm"));
	ck_assert(strstr(names[0], "f16f16"));
	ck_assert_uint_eq(correlations[0], launch_id);
	ck_assert_str_eq(launched_in, "cudnnBackendExecute");
}
END_TEST

START_TEST(what_lies_channels_first_is_turned_before_and_after)
{
	static const int64_t channels_first[] = { 4096, 256, 16, 1 };
	cudnnHandle_t handle = start();
	cudnnBackendDescriptor_t operation = convolution(channels_first, CUDNN_DATA_FLOAT), plan = plan_of(&operation, 1);

	OK(cudnnBackendExecute(handle, plan, descriptor(16)));
	ck_assert_uint_eq(kernels, 3);
	ck_assert(strstr(names[0], "nchwToNhwc"));
	ck_assert(strstr(names[1], "tf32f32"));
	ck_assert(strstr(names[2], "nhwcToNchw"));
}
END_TEST

START_TEST(two_products_of_matrices_are_attention_and_five_its_way_back)
{
	cudnnHandle_t handle = start();
	cudnnBackendDescriptor_t products[5];

	for (int i = 0; i < 5; i++)
		products[i] = descriptor(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	OK(cudnnBackendExecute(handle, plan_of(products, 2), descriptor(16)));
	OK(cudnnBackendExecute(handle, plan_of(products, 5), descriptor(16)));
	ck_assert(strstr(names[0], "flash_fprop"));
	ck_assert(strstr(names[1], "flash_bprop"));
}
END_TEST

START_TEST(attributes_come_back_as_they_were_set_last)
{
	cudnnBackendDescriptor_t made = (start(), descriptor(0));
	const int64_t first[] = { 1, 2 }, second[] = { 3, 4, 5 };
	int64_t count = 0, got[2] = { 0 };

	set(made, 103, CUDNN_TYPE_INT64, 2, first);
	set(made, 103, CUDNN_TYPE_INT64, 3, second);
	OK(cudnnBackendGetAttribute(made, 103, CUDNN_TYPE_INT64, 2, &count, got));
	ck_assert_int_eq(count, 3);
	ck_assert_int_eq(got[0], 3);
	ck_assert_int_eq(got[1], 4);
	OK(cudnnBackendGetAttribute(made, 104, CUDNN_TYPE_INT64, 2, &count, got));
	ck_assert_int_eq(count, 0);
	OK(cudnnBackendDestroyDescriptor(made));
}
END_TEST

static cudnnRNNDescriptor_t network(cudnnRNNMode_t cell, int bias, int projection)
{
	cudnnRNNDescriptor_t rnn;

	OK(cudnnCreateRNNDescriptor(&rnn));
	OK(cudnnSetRNNDescriptor_v8(rnn, 0, cell, bias, CUDNN_BIDIRECTIONAL, 0, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, 0, 5, 7,
		projection, 2, NULL, 1));
	return rnn;
}

/* The bytes of a matrix or bias, whose place must be the one where the last ended. */
static void follows(cudnnTensorDescriptor_t what, const char *at, const char **end)
{
	int count, dims[8], strides[8], type;
	size_t elements = 1;

	OK(cudnnGetTensorNdDescriptor(what, 8, &type, &count, dims, strides));
	ck_assert_ptr_eq(at, *end);
	for (int i = 0; i < count; i++)
		elements *= (size_t)dims[i];
	*end = at + elements * sizeof(float);
}

START_TEST(weights_lie_gate_after_gate_and_fill_their_space)
{
	static const struct {
		cudnnRNNMode_t cell;
		int matrices, projection;
	} kinds[] = { { CUDNN_LSTM, 8, 7 }, { CUDNN_GRU, 6, 7 }, { 0, 2, 7 }, { CUDNN_LSTM, 8, 3 } };
	cudnnTensorDescriptor_t matrix_of, bias_of;
	cudnnHandle_t handle = start();
	char *space = (char *)0x10000;

	OK(cudnnCreateTensorDescriptor(&matrix_of));
	OK(cudnnCreateTensorDescriptor(&bias_of));
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		cudnnRNNDescriptor_t rnn = network(kinds[k].cell, CUDNN_RNN_DOUBLE_BIAS, kinds[k].projection);
		const char *matrix_end = space, *bias_end = NULL;
		void *matrix, *bias;
		size_t bytes;

		OK(cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes));
		for (int layer = 0; layer < 4; layer++) {
			for (int id = 0; id < kinds[k].matrices; id++) {
				OK(cudnnGetRNNWeightParams(
					handle, rnn, layer, bytes, space, id, matrix_of, &matrix, bias_of, &bias));
				follows(matrix_of, matrix, &matrix_end);
				if (!bias_end)
					bias_end = bias;
				follows(bias_of, bias, &bias_end);
			}
			if (kinds[k].projection == 7)
				continue;
			OK(cudnnGetRNNWeightParams(handle, rnn, layer, bytes, space, 8, matrix_of, &matrix, bias_of, &bias));
			follows(matrix_of, matrix, &matrix_end);
			ck_assert_ptr_null(bias);
		}
		ck_assert_ptr_eq(bias_end, space + bytes);
	}
}
END_TEST

START_TEST(a_network_goes_through_each_layer_in_each_direction)
{
	cudnnRNNDescriptor_t rnn = network(CUDNN_LSTM, CUDNN_RNN_NO_BIAS, 7);
	cudnnRNNDataDescriptor_t x;
	cudnnHandle_t handle = start();

	OK(cudnnCreateRNNDataDescriptor(&x));
	OK(cudnnSetRNNDataDescriptor(x, CUDNN_DATA_FLOAT, 0, 6, 3, 5, NULL, NULL));
	OK(cudnnRNNForward(handle, rnn, 1, NULL, x, NULL, x, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, 0,
		NULL));
	ck_assert_uint_eq(kernels, 8);
	ck_assert(strstr(names[0], "gemm"));
	ck_assert(strstr(names[1], "RNN_blockPersist_fp_LSTM"));
}
END_TEST

START_TEST(work_goes_to_the_stream_of_the_handle)
{
	static const int dims[] = { 8, 16, 4, 4 }, strides[] = { 256, 16, 4, 1 };
	cudnnTensorDescriptor_t x;
	cudaStream_t stream, now;
	cudnnHandle_t handle;

	OK(cudaStreamCreate(&stream));
	handle = start();
	OK(cudnnSetStream(handle, stream));
	OK(cudnnGetStream(handle, &now));
	ck_assert_ptr_eq(now, stream);
	OK(cudnnCreateTensorDescriptor(&x));
	OK(cudnnSetTensorNdDescriptor(x, CUDNN_DATA_FLOAT, 4, dims, strides));
	OK(cudnnBatchNormalizationForwardInference(
		handle, 1, NULL, NULL, x, NULL, x, NULL, x, NULL, NULL, NULL, NULL, 1e-5));
	ck_assert(strstr(names[0], "bn_fw_inf"));
	ck_assert_uint_eq(streams[0], sim_stream_id(sim_stream_of(NULL, stream, false)));
}
END_TEST

START_TEST(nothing_works_in_a_forked_child_but_its_version)
{
	cudnnHandle_t handle = start();
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(cudnnSetStream(handle, NULL) == CUDNN_STATUS_NOT_INITIALIZED && cudnnGetVersion() > 90000 ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

SUITE("cuDNN", a_convolution_is_launched_within_the_call_that_executes_its_plan,
	what_lies_channels_first_is_turned_before_and_after, two_products_of_matrices_are_attention_and_five_its_way_back,
	attributes_come_back_as_they_were_set_last, weights_lie_gate_after_gate_and_fill_their_space,
	a_network_goes_through_each_layer_in_each_direction, work_goes_to_the_stream_of_the_handle,
	nothing_works_in_a_forked_child_but_its_version)
