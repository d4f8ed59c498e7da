/* SPDX-License-Identifier: MIT */
#include "tests/support/import_samples.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char sample_kineto[] =
	"{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"G\", \"numSms\": "
	"132}], \"distributedInfo\": {\"rank\": 1},\n"
	"\"baseTimeNanoseconds\": 1711964646000000000, \"traceEvents\": [\n"
	"{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 7, \"tid\": 0, \"ts\": 0, \"args\": "
	"{\"name\": \"python3\"}},\n"
	"{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#1\", \"pid\": 7, "
	"\"tid\": 1, \"ts\": 1.000, \"dur\": 900.5},\n"
	"{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"a.py(3): f\", \"pid\": 7, "
	"\"tid\": 1, \"ts\": 2, \"dur\": 800},\n"
	"{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"nn.Module: Net_0\", \"pid\": 7, "
	"\"tid\": 1, \"ts\": 3, \"dur\": 700},\n"
	"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 7, \"tid\": 1, "
	"\"ts\": 10.125, \"dur\": 50, \"args\": {\"External id\": 5, "
	"\"Input Dims\": [[8, 8], []], \"Call stack\": \"b.py(1): g;c.py(2): h\", \"Sequence "
	"number\": 4, \"Fwd thread id\": 0}},\n"
	"{\"ph\": \"X\", \"cat\": \"Operator\", \"name\": \"\\u00e4\\ud800\\\\\", \"pid\": 7, "
	"\"tid\": \"1\", \"ts\": 40, \"dur\": 50, \"args\": {\"External id\": 6}},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 7, "
	"\"tid\": 1, \"ts\": 20, \"dur\": 5, \"args\": {\"correlation\": 1}},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_driver\", \"name\": \"cuGraphLaunch\", \"pid\": 7, "
	"\"tid\": 1, \"ts\": 30, \"dur\": 5, \"args\": {\"correlation\": 2}},\n"
	"{\"ph\": \"X\", \"cat\": \"Runtime\", \"name\": \"cudaMemcpyAsync\", \"pid\": 7, \"tid\": "
	"1, \"ts\": 41, \"dur\": 5, \"args\": {\"External id\": 6}},\n"
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": "
	"60, \"dur\": 7.001, \"args\": {\"correlation\": 1, \"device\": 0, "
	"\"stream\": 7, \"grid\": [4, 1, 1], \"block\": [128, 1, 1], \"registers per thread\": 32, "
	"\"shared memory\": 1024}},\n"
	"{\"ph\": \"X\", \"cat\": \"Kernel\", \"name\": \"nccl\", \"pid\": 0, \"tid\": \"stream "
	"9\", \"ts\": 62, \"dur\": 9, \"args\": {\"correlation\": 2}},\n"
	"{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pageable -> Device)\", "
	"\"pid\": 0, \"tid\": 7, \"ts\": 80, \"dur\": 3, "
	"\"args\": {\"External id\": 6, \"bytes\": 64}},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"Stream Sync\", \"pid\": 0, \"tid\": "
	"7, \"ts\": 85, \"dur\": 2, \"args\": {\"stream\": 7}},\n"
	"{\"ph\": \"i\", \"name\": \"[memory]\", \"pid\": 7, \"tid\": 1, \"ts\": 25, \"args\": "
	"{\"Bytes\": 512, \"Addr\": 4096, \"Device Type\": 1, "
	"\"Device Id\": 0, \"Total Allocated\": 512, \"Total Reserved\": 1024}},\n"
	"{\"ph\": \"i\", \"name\": \"[memory]\", \"pid\": 7, \"tid\": 1, \"ts\": 26, \"args\": "
	"{\"Bytes\": -512, \"Device Type\": 1, \"Device Id\": 0}},\n"
	"{\"ph\": \"s\", \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"id\": 1, \"pid\": 7, "
	"\"tid\": 1, \"ts\": 10.125},\n"
	"{\"ph\": \"f\", \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"id\": 1, \"pid\": 7, "
	"\"tid\": 2, \"ts\": 200, \"bp\": \"e\"},\n"
	"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"MmBackward0\", \"pid\": 7, \"tid\": 2, "
	"\"ts\": 200, \"dur\": 30, \"args\": {\"Sequence number\": 4, \"Fwd thread id\": 1}},\n"
	"{\"ph\": \"B\", \"cat\": \"cpu_op\", \"name\": \"begun\", \"pid\": 7, \"tid\": 1, \"ts\": "
	"300}, {\"ph\": \"E\", \"pid\": 7, \"tid\": 1, \"ts\": 310}\n"
	"], \"traceName\": \"x\", \"odd\": NaN}\n";

size_t sample_kineto_bytes(void)
{
	return sizeof sample_kineto - 1;
}

static const char *const statements[] = {
	"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
	"INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, '_Z4gemmPfi'), (3, "
	"'forward'), (4, '[Unknown]')",
	"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
	"globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER)",
	"INSERT INTO NVTX_EVENTS VALUES (100, 9000, 59, 'step', 281474976710657, NULL, NULL, 0), "
	"(200, 8000, 59, NULL, 281474993487874, NULL, 3, 5)",
	"INSERT INTO NVTX_EVENTS VALUES (50, NULL, 75, 'domain', 281474976710657, NULL, NULL, 5), "
	"(300, 400, 60, 'span', 281474976710657, 281474976710658, NULL, 0), (350, NULL, 34, "
	"'mark', 281474976710657, NULL, NULL, 0)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
	"correlationId INTEGER, nameId INTEGER)",
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 600, 281474976710657, 7, 1), (510, "
	"620, 281474993487874, 7, 1)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
	"contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
	"mangledName INTEGER, shortName INTEGER)",
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (700, 900, 0, 1, 7, 7, 281474976710656, 2, "
	"2), (710, 920, 0, 1, 7, 7, 281474993487872, 4, 2)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, "
	"correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind "
	"INTEGER, dstKind INTEGER)",
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1000, 1100, 0, 9, 281474976710656, 64, 1, "
	"0, 2)",
	"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)",
	"INSERT INTO PROCESSES VALUES (281474976710656, 0, 'python3')",
	"CREATE TABLE MPI_START_WAIT_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId "
	"INTEGER)",
	"INSERT INTO MPI_START_WAIT_EVENTS VALUES (2000, 3000, 281474976710657, 3), (2000, 3000, "
	"281474976710657, 3), (4000, NULL, 281474976710657, 3)",
	"CREATE TABLE COMPOSITE_EVENTS (id INTEGER PRIMARY KEY, start INTEGER, globalTid INTEGER)",
	"INSERT INTO COMPOSITE_EVENTS VALUES (1, 550, 281474976710657), (2, 2500, 281474976710657)",
	"CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth "
	"INTEGER)",
	"INSERT INTO SAMPLING_CALLCHAINS VALUES (1, 3, 4, 0), (1, 2, 4, 1), (2, 2, 3, 0)",
};

static void must(int result)
{
	if (result == SQLITE_OK)
		return;
	fprintf(stderr, "import_samples: SQLite says %d\n", result);
	abort();
}

unsigned char *sample_nsys_export(size_t *bytes)
{
	sqlite3_int64 count = 0;
	unsigned char *serial, *copy;
	sqlite3 *db;

	must(sqlite3_open(":memory:", &db));
	must(sqlite3_exec(db, "PRAGMA page_size = 512", NULL, NULL, NULL));
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		must(sqlite3_exec(db, statements[i], NULL, NULL, NULL));
	serial = sqlite3_serialize(db, "main", &count, 0);
	sqlite3_close(db);
	copy = serial ? malloc((size_t)count) : NULL;
	must(copy ? SQLITE_OK : SQLITE_NOMEM);
	memcpy(copy, serial, (size_t)count);
	sqlite3_free(serial);
	*bytes = (size_t)count;
	return copy;
}
