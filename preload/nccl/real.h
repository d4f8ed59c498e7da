/* SPDX-License-Identifier: MIT
 * Finds the real functions behind the interposed functions of NCCL, and has the one list of these.
 *
 * A process may have several libraries of NCCL, and a communicator belongs to one of them. Which
 * one a call goes to is decided as for the CUDA runtime (preload/cuda/interposed_library.h).
 *
 * A program that looks these symbols up in the global scope finds them also without NCCL, where a
 * call returns NCCL_INVALID_USAGE.
 */
#ifndef PPERF_PRELOAD_NCCL_REAL_H
#define PPERF_PRELOAD_NCCL_REAL_H

#include <stddef.h>

/* Types of NCCL's interface, which has not changed since NCCL 2.0. */
typedef struct nccl_id {
	char bytes[128]; /* ncclUniqueId, passed by value */
} nccl_id;

/* ncclConfig_t from NCCL 2.27 on. */
struct nccl_config {
	size_t size;
	unsigned magic, version;
	int blocking, cga_cluster_size, min_ctas, max_ctas;
	const char *net_name;
	int split_share, traffic_class;
	const char *comm_name; /* NULL: none. PyTorch: name of the process group */
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu
#define NCCL_CONFIG_WITH_NAME 22700u /* the first version */

#define NCCL_SUCCESS 0
#define NCCL_INVALID_USAGE 5
#define NCCL_IN_PROGRESS 7 /* of a communicator that does not block */

/* X(name, parameters, arguments) */
#define NCCL_FUNCTIONS(X)                                                                          \
	X(ncclAllReduce,                                                                           \
		(const void *from, void *to, size_t count, int type, int operation, void *comm,    \
			void *stream),                                                             \
		(from, to, count, type, operation, comm, stream))                                  \
	X(ncclAllGather,                                                                           \
		(const void *from, void *to, size_t count, int type, void *comm, void *stream),    \
		(from, to, count, type, comm, stream))                                             \
	X(ncclReduceScatter,                                                                       \
		(const void *from, void *to, size_t count, int type, int operation, void *comm,    \
			void *stream),                                                             \
		(from, to, count, type, operation, comm, stream))                                  \
	X(ncclBroadcast,                                                                           \
		(const void *from, void *to, size_t count, int type, int root, void *comm,         \
			void *stream),                                                             \
		(from, to, count, type, root, comm, stream))                                       \
	X(ncclBcast, (void *buffer, size_t count, int type, int root, void *comm, void *stream),   \
		(buffer, count, type, root, comm, stream))                                         \
	X(ncclReduce,                                                                              \
		(const void *from, void *to, size_t count, int type, int operation, int root,      \
			void *comm, void *stream),                                                 \
		(from, to, count, type, operation, root, comm, stream))                            \
	X(ncclAlltoAll,                                                                            \
		(const void *from, void *to, size_t count, int type, void *comm, void *stream),    \
		(from, to, count, type, comm, stream))                                             \
	X(ncclGather,                                                                              \
		(const void *from, void *to, size_t count, int type, int root, void *comm,         \
			void *stream),                                                             \
		(from, to, count, type, root, comm, stream))                                       \
	X(ncclScatter,                                                                             \
		(const void *from, void *to, size_t count, int type, int root, void *comm,         \
			void *stream),                                                             \
		(from, to, count, type, root, comm, stream))                                       \
	X(ncclSend,                                                                                \
		(const void *from, size_t count, int type, int peer, void *comm, void *stream),    \
		(from, count, type, peer, comm, stream))                                           \
	X(ncclRecv, (void *to, size_t count, int type, int peer, void *comm, void *stream),        \
		(to, count, type, peer, comm, stream))                                             \
	X(ncclGroupStart, (void), ())                                                              \
	X(ncclGroupEnd, (void), ())                                                                \
	X(ncclGroupSimulateEnd, (void *information), (information))                                \
	X(ncclCommInitRank, (void **comm, int ranks, nccl_id id, int rank),                        \
		(comm, ranks, id, rank))                                                           \
	X(ncclCommInitRankConfig, (void **comm, int ranks, nccl_id id, int rank, void *config),    \
		(comm, ranks, id, rank, config))                                                   \
	X(ncclCommInitRankScalable,                                                                \
		(void **comm, int ranks, int rank, int count, nccl_id *ids, void *config),         \
		(comm, ranks, rank, count, ids, config))                                           \
	X(ncclCommInitAll, (void **comms, int count, const int *devices), (comms, count, devices)) \
	X(ncclCommSplit, (void *comm, int color, int key, void **made, void *config),              \
		(comm, color, key, made, config))                                                  \
	X(ncclCommDestroy, (void *comm), (comm))                                                   \
	X(ncclCommAbort, (void *comm), (comm))

/* The functions that this library defines. */
#define X(name, parameters, arguments) __attribute__((visibility("default"))) int name parameters;
NCCL_FUNCTIONS(X)
#undef X

/* The real functions of one library. No member is NULL: in place of a function that the library
 * lacks there is one that returns NCCL_INVALID_USAGE. The last three are not interposed. NULL: the
 * library has none. */
struct nccl_real {
#define X(name, parameters, arguments) int(*name) parameters;
	NCCL_FUNCTIONS(X)
#undef X
	int (*ncclCommCount)(void *comm, int *count);
	int (*ncclCommUserRank)(void *comm, int *rank);
	int (*ncclCommCuDevice)(void *comm, int *device);
};

/* Returns the functions for a call that returns to `caller`. Any thread. Keeps errno. The first
 * call of each caller searches the loaded objects. */
const struct nccl_real *nccl_real_of(const void *caller);

#endif
