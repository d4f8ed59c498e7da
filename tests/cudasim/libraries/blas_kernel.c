/* SPDX-License-Identifier: MIT
 * The kernels that a product of matrices takes: their names are made as those of an H100 are, and
 * the grid is what their tile makes of the result.
 */
#include <stdio.h>

#include "libraries/blas_api.h"

#define SM_COUNT 132
#define SPLIT_K \
	2048 /* as long as this, k is summed in parts where the tiles do not fill the device */
#define PART_K 512 /* and none is shorter than this */

/* A tile of the result is what one block computes. */
struct tile {
	int64_t rows, columns;
};

static int64_t parts(int64_t whole, int64_t part)
{
	return (whole + part - 1) / part;
}

static bool is_short(cudaDataType_t type)
{
	return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_8F_E4M3 ||
	       type == CUDA_R_8F_E5M2 || type == CUDA_R_8I;
}

/* The largest of which there is one for every multiprocessor. */
static struct tile tile_of(const struct blas_product *p)
{
	static const struct tile tiles[] = { { 256, 128 }, { 128, 128 }, { 128, 64 }, { 64, 64 },
		{ 32, 32 } };
	size_t last = sizeof(tiles) / sizeof(tiles[0]) - 1;

	for (size_t i = 0; i < last; i++)
		if (parts(p->m, tiles[i].rows) * parts(p->n, tiles[i].columns) * p->batch >=
			SM_COUNT)
			return tiles[i];
	return tiles[last];
}

static const char *type_name(cudaDataType_t type)
{
	switch (type) {
	case CUDA_R_16F:
		return "f16";
	case CUDA_R_16BF:
		return "bf16";
	case CUDA_R_64F:
		return "f64";
	case CUDA_C_32F:
		return "cf32";
	case CUDA_C_64F:
		return "cf64";
	case CUDA_R_8F_E4M3:
		return "e4m3";
	case CUDA_R_8F_E5M2:
		return "e5m2";
	case CUDA_R_8I:
		return "i8";
	default:
		return "f32";
	}
}

static char operation(cublasOperation_t operation)
{
	return operation == CUBLAS_OP_N ? 'n' : 't';
}

static void name_product(char *name, size_t room, const struct blas_product *p, struct tile tile)
{
	const char *type = type_name(p->type);

	if (is_short(p->type))
		snprintf(name, room, "nvjet_%s_%dx%d_64x4_1x2_h_bz%s_%c%cN", type, (int)tile.rows,
			(int)tile.columns, p->epilogue, operation(p->left) - 'a' + 'A',
			operation(p->right) - 'a' + 'A');
	else
		snprintf(name, room,
			"sm80_xmma_gemm_%s%s_%s%s_%s_%c%c_n_tilesize%dx%dx8_stage3_%s%s_execute_"
			"kernel__5x_cublas",
			type, type, p->tf32 ? "tf32" : type, type, type, operation(p->left),
			operation(p->right), (int)tile.rows, (int)tile.columns,
			p->tf32 ? "tensor16x8x8" : "ffma", p->epilogue);
}

static cublasStatus_t status(int result)
{
	return result == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* Adds up what the parts of k gave. */
static cublasStatus_t reduce(const struct blas_product *p, cudaStream_t stream)
{
	struct library_kernel kernel = {
		.name = "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffLb1EEEvT1_PKT2_PT3_",
		.grid = library_grid((uint64_t)(p->m * p->n * p->batch), 512, 4, 1 << 20),
		.block = { 32, 16, 1 },
		.writes = p->result,
	};

	return status(library_launch(&kernel, stream));
}

/* In how many parts k is summed. */
static int64_t split_of(const struct blas_product *p, struct tile tile)
{
	int64_t tiles = parts(p->m, tile.rows) * parts(p->n, tile.columns) * p->batch;
	int64_t split = tiles > 0 ? SM_COUNT / tiles : 1;

	if (!p->splits || p->k < SPLIT_K || split < 2)
		return 1;
	return split < p->k / PART_K ? split : p->k / PART_K;
}

cublasStatus_t blas_product(const struct blas_product *p, cudaStream_t stream)
{
	struct tile tile = tile_of(p);
	int64_t split = split_of(p, tile);
	char name[160];
	struct library_kernel kernel = { .name = name, .shared = 36864, .writes = p->result };
	cublasStatus_t result;

	if (p->m < 0 || p->n < 0 || p->k < 0 || p->batch < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (p->m == 0 || p->n == 0 || p->batch == 0)
		return CUBLAS_STATUS_SUCCESS;
	name_product(name, sizeof(name), p, tile);
	kernel.block = (struct sim_dim){ is_short(p->type)                 ? 384
					 : tile.rows * tile.columns > 4096 ? 256
									   : 128,
		1, 1 };
	kernel.grid = (struct sim_dim){ (unsigned)parts(p->m, tile.rows),
		(unsigned)parts(p->n, tile.columns),
		(unsigned)(p->batch > 65535 / split ? 65535 : p->batch * split) };
	result = status(library_launch(&kernel, stream));
	return result == CUBLAS_STATUS_SUCCESS && split > 1 ? reduce(p, stream) : result;
}

cublasStatus_t blas_simple(const char *name, uint64_t elements, void *written, cudaStream_t stream)
{
	struct library_kernel kernel = {
		.name = name,
		.grid = library_grid(elements, 128, 1, 65535),
		.block = { 128, 1, 1 },
		.writes = written,
	};

	return status(library_launch(&kernel, stream));
}
