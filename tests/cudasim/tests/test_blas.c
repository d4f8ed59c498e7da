/* SPDX-License-Identifier: MIT
 * The simulated cuBLAS and cuBLASLt: what their calls launch, where, and what they refuse.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libraries/blas_api.h"
#include "tests/check_cuda.h"
#include "core/sim.h"

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t left, cublasOperation_t right, int m, int n, int k,
	const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t left, cublasOperation_t right, int m, int n, int k,
	const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b, cudaDataType b_type, int ldb,
	const void *beta, void *c, cudaDataType c_type, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, const float *x, int incx, const float *y, int incy, float *result);
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
cublasStatus_t cublasLtMatrixLayoutCreate(
	cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t leading);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute, cudaDataType_t scale);
cublasStatus_t cublasLtMatmulDescSetAttribute(
	cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
	cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
	cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
	int asked, cublasLtMatmulHeuristicResult_t results[], int *found);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
	cublasLtMatrixLayout_t a_of, const void *b, cublasLtMatrixLayout_t b_of, const void *beta, const void *c,
	cublasLtMatrixLayout_t c_of, void *d, cublasLtMatrixLayout_t d_of, const cublasLtMatmulAlgo_t *algorithm,
	void *workspace, size_t workspace_bytes, cudaStream_t stream);

#define MOST 8
enum { PLAIN = CUBLAS_OP_N, TURNED = 1, POINTER_ON_DEVICE = 1 };

static struct sim_work works[MOST];
static size_t kernels;

static void ignore_call(struct sim_scope *scope)
{
	(void)scope;
}

static void on_work(const struct sim_work *work)
{
	if (work->kind == SIM_KERNEL && kernels < MOST)
		works[kernels++] = *work;
}

static void ignore_memory(const struct sim_memory *memory)
{
	(void)memory;
}

static void ignore_sync(const struct sim_sync *sync)
{
	(void)sync;
}

static void ignore_event(const struct sim_event_record *event)
{
	(void)event;
}

static void ignore_resource(const struct sim_resource *resource)
{
	(void)resource;
}

static const struct sim_tools tools = { ignore_call, ignore_call, on_work, ignore_memory, ignore_sync, ignore_event,
	ignore_resource };

static cublasHandle_t start(void)
{
	cublasHandle_t handle;

	OK(cublasCreate_v2(&handle));
	sim_tools_set(&tools);
	return handle;
}

static void multiply(cublasHandle_t handle, int m, int n, int k)
{
	kernels = 0;
	OK(cublasSgemm_v2(handle, PLAIN, TURNED, m, n, k, NULL, NULL, m, NULL, n, NULL, NULL, m));
}

static void expect(size_t at, const char *word)
{
	ck_assert_uint_gt(kernels, at);
	ck_assert_msg(strstr(works[at].name, word) != NULL, "%s, not %s", works[at].name, word);
}

START_TEST(a_product_is_one_kernel_with_a_block_for_each_tile)
{
	cublasHandle_t handle = start();

	multiply(handle, 64, 96, 32);
	ck_assert_uint_eq(kernels, 1);
	expect(0, "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize32x32x8");
	ck_assert_uint_eq(works[0].grid.x * works[0].grid.y * works[0].grid.z, 2 * 3);
	multiply(handle, 8192, 8192, 64);
	expect(0, "tilesize256x128x8");
	ck_assert_uint_eq(works[0].grid.x * works[0].grid.y, 32 * 64);
}
END_TEST

START_TEST(the_type_and_the_mode_choose_the_kernel)
{
	cublasHandle_t handle = start();

	OK(cublasGemmEx(handle, PLAIN, PLAIN, 64, 64, 64, NULL, NULL, CUDA_R_16BF, 64, NULL, CUDA_R_16BF, 64, NULL, NULL,
		CUDA_R_16BF, 64, (cublasComputeType_t)0, (cublasGemmAlgo_t)0));
	expect(0, "nvjet_bf16_");
	OK(cublasSetMathMode(handle, (cublasMath_t)CUBLAS_TF32_TENSOR_OP_MATH));
	multiply(handle, 64, 64, 64);
	expect(0, "tf32");
}
END_TEST

/* Only with memory to sum in; the one that is set is gone with the stream. */
START_TEST(a_long_sum_is_split_where_there_is_a_workspace)
{
	cublasHandle_t handle = start();

	multiply(handle, 64, 64, 8192);
	ck_assert_uint_eq(kernels, 2);
	expect(1, "splitKreduce");
	ck_assert_uint_gt(works[0].grid.z, 1);
	OK(cublasSetWorkspace_v2(handle, NULL, 0));
	multiply(handle, 64, 64, 8192);
	ck_assert_uint_eq(kernels, 1);
	OK(cublasSetStream_v2(handle, NULL));
	multiply(handle, 64, 64, 8192);
	ck_assert_uint_eq(kernels, 2);
	FAILS(cublasSetWorkspace_v2(handle, (void *)(uintptr_t)0x101, MIB), CUBLAS_STATUS_INVALID_VALUE);
}
END_TEST

START_TEST(an_empty_product_launches_nothing_and_a_wrong_one_is_refused)
{
	cublasHandle_t handle = start();

	multiply(handle, 0, 64, 64);
	multiply(handle, 64, 0, 64);
	ck_assert_uint_eq(kernels, 0);
	FAILS(cublasSgemm_v2(handle, PLAIN, PLAIN, -1, 4, 4, NULL, NULL, 4, NULL, 4, NULL, NULL, 4), CUBLAS_STATUS_INVALID_VALUE);
	FAILS(cublasSgemm_v2(NULL, PLAIN, PLAIN, 4, 4, 4, NULL, NULL, 4, NULL, 4, NULL, NULL, 4),
		CUBLAS_STATUS_NOT_INITIALIZED);
	ck_assert_uint_eq(kernels, 0);
}
END_TEST

START_TEST(work_goes_to_the_stream_of_the_handle)
{
	cublasHandle_t handle = start();
	cudaStream_t stream, now;

	OK(cudaStreamCreate(&stream));
	OK(cublasSetStream_v2(handle, stream));
	OK(cublasGetStream_v2(handle, &now));
	ck_assert_ptr_eq(now, stream);
	multiply(handle, 64, 64, 64);
	ck_assert_uint_eq(works[0].stream, sim_stream_id(sim_stream_of(NULL, stream, false)));
}
END_TEST

START_TEST(a_result_on_the_host_is_there_at_once_one_on_the_device_is_not_touched)
{
	cublasHandle_t handle = start();
	float result = 7;

	OK(cublasSdot_v2(handle, 100, NULL, 1, NULL, 1, &result));
	ck_assert(result == 0);
	ck_assert_uint_eq(kernels, 2);
	result = 7;
	OK(cublasSetPointerMode_v2(handle, (cublasPointerMode_t)POINTER_ON_DEVICE));
	OK(cublasSdot_v2(handle, 100, NULL, 1, NULL, 1, &result));
	ck_assert(result == 7);
}
END_TEST

/* D (96 x 64) = A (96 x 128) B (128 x 64), with what comes after it in the kernel's name. */
START_TEST(a_described_product_has_its_epilogue_and_one_algorithm)
{
	const uint32_t epilogue = 32 | CUBLASLT_EPILOGUE_BIAS;
	const uint64_t room = MIB;
	cublasLtHandle_t light;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulDesc_t what;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t results[2];
	int found = 0;

	start();
	OK(cublasLtCreate(&light));
	OK(cublasLtMatrixLayoutCreate(&a, CUDA_R_16F, 96, 128, 96));
	OK(cublasLtMatrixLayoutCreate(&b, CUDA_R_16F, 128, 64, 128));
	OK(cublasLtMatrixLayoutCreate(&d, CUDA_R_16F, 96, 64, 96));
	OK(cublasLtMatmulDescCreate(&what, (cublasComputeType_t)0, CUDA_R_32F));
	OK(cublasLtMatmulDescSetAttribute(what, (cublasLtMatmulDescAttributes_t)CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
	FAILS(cublasLtMatmulDescSetAttribute(what, (cublasLtMatmulDescAttributes_t)CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasLtMatmulPreferenceCreate(&preference));
	OK(cublasLtMatmulPreferenceSetAttribute(
		preference, (cublasLtMatmulPreferenceAttributes_t)CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
	OK(cublasLtMatmulAlgoGetHeuristic(light, what, a, b, d, d, preference, 2, results, &found));
	ck_assert_int_eq(found, 1);
	ck_assert_uint_le(results[0].workspaceSize, room);
	OK(cublasLtMatmul(light, what, NULL, NULL, a, NULL, b, NULL, NULL, d, NULL, d, &results[0].algo, NULL, 0, NULL));
	ck_assert_uint_eq(kernels, 1);
	expect(0, "nvjet_f16_32x32");
	expect(0, "_gelu_bias_NN");
	ck_assert_uint_eq(works[0].grid.x * works[0].grid.y, 3 * 2);
	FAILS(cublasLtMatmul(light, what, NULL, NULL, NULL, NULL, b, NULL, NULL, d, NULL, d, NULL, NULL, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
}
END_TEST

START_TEST(nothing_works_in_a_forked_child)
{
	cublasHandle_t handle = start();
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit((int)cublasSetStream_v2(handle, NULL) == CUBLAS_STATUS_NOT_INITIALIZED ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

SUITE("cuBLAS", a_product_is_one_kernel_with_a_block_for_each_tile, the_type_and_the_mode_choose_the_kernel,
	a_long_sum_is_split_where_there_is_a_workspace, an_empty_product_launches_nothing_and_a_wrong_one_is_refused,
	work_goes_to_the_stream_of_the_handle, a_result_on_the_host_is_there_at_once_one_on_the_device_is_not_touched,
	a_described_product_has_its_epilogue_and_one_algorithm, nothing_works_in_a_forked_child)
