/*
 * The simulated CUPTI on graphs: nodes are created during capture, cloned at instantiation, and the
 * records of each launch name the clones.
 * Every test runs for CUDA 12 and 13; `_i` is the major.
 */
#include "tests/cupti_client.h"

#include <stdlib.h>

#define KERNEL CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
#define RESOURCE CUPTI_CB_DOMAIN_RESOURCE
#define RUNTIME CUPTI_CB_DOMAIN_RUNTIME_API
#define LAUNCH CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000
#define GRAPH_LAUNCH CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000
#define CREATED CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED
#define CLONED CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED
#define EXEC_CREATED CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED

static cudaStream_t stream;
static void *memory;

/* Captures two kernels and a memset into an executable graph. */
static cudaGraphExec_t capture(void)
{
	const void *first = client_runtime_kernel("first"),
		   *second = client_runtime_kernel("second");
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	ck_assert_int_eq(cuda.cudaMalloc(&memory, 4096), cudaSuccess);
	ck_assert_int_eq(cuda.cudaStreamCreate(&stream), cudaSuccess);
	ck_assert_int_eq(
		cuda.cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
	client_runtime_launch(first, stream, 1);
	client_runtime_launch(second, stream, 1);
	ck_assert_int_eq(cuda.cudaMemsetAsync(memory, 0, 4096, stream), cudaSuccess);
	ck_assert_int_eq(cuda.cudaStreamEndCapture(stream, &graph), cudaSuccess);
	ck_assert_int_eq(cuda.cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	return exec;
}

static cudaGraphExec_t open_and_capture(int major)
{
	client_open(major);
	client_record(KERNEL, CUPTI_ACTIVITY_KIND_MEMSET, 0);
	client_enable(RESOURCE, CREATED, CLONED, EXEC_CREATED, 0);
	client_enable(RUNTIME, LAUNCH, GRAPH_LAUNCH, 0);
	return capture();
}

START_TEST(nodes_are_created_inside_the_launch_that_is_captured)
{
	const struct event *enter, *created, *leave;

	open_and_capture(_i);
	ck_assert_uint_eq(client_events(RESOURCE, CREATED), 6); /* three of them clones */
	enter = client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 0);
	created = client_event(RESOURCE, CREATED, 0);
	leave = client_api(RUNTIME, LAUNCH, CUPTI_API_EXIT, 0);
	ck_assert_uint_lt(enter->order, created->order);
	ck_assert_uint_lt(created->order, leave->order);
	ck_assert_int_eq(created->tid, enter->tid);
	ck_assert_uint_ne(created->node, 0);
	ck_assert_int_eq(created->node_kind, CU_GRAPH_NODE_TYPE_KERNEL);
	ck_assert_int_eq(client_event(RESOURCE, CREATED, 2)->node_kind, CU_GRAPH_NODE_TYPE_MEMSET);
}
END_TEST

START_TEST(captured_launches_do_not_run)
{
	open_and_capture(_i);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 0);
}
END_TEST

START_TEST(instantiation_clones_each_node)
{
	open_and_capture(_i);
	ck_assert_uint_eq(client_events(RESOURCE, CLONED), 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(client_event(RESOURCE, CLONED, i)->original_node,
			client_event(RESOURCE, CREATED, i)->node);
		ck_assert_uint_ne(client_event(RESOURCE, CLONED, i)->node,
			client_event(RESOURCE, CREATED, i)->node);
	}
	ck_assert_uint_eq(client_events(RESOURCE, EXEC_CREATED), 1);
	ck_assert_uint_ne(client_event(RESOURCE, EXEC_CREATED, 0)->graph_exec, 0);
}
END_TEST

/* Proton, CuptiProfiler.cpp: "When cuGraphClone or cuGraphInstantiate is called, CUPTI triggers both
 * CREATED and CLONED callbacks for each node." No source names their order. */
START_TEST(a_clone_is_reported_as_created_too)
{
	static const char *const orders[] = { "before", "after", "never" };

	setenv("SIM_CUPTI_CLONE_CREATED", orders[_i / 2], 1);
	open_and_capture(12 + _i % 2);
	ck_assert_uint_eq(client_events(RESOURCE, CLONED), 3);
	ck_assert_uint_eq(client_events(RESOURCE, CREATED), _i / 2 == 2 ? 3 : 6);
	for (size_t i = 0; i < 3 && _i / 2 < 2; i++) {
		const struct event *cloned = client_event(RESOURCE, CLONED, i),
				   *created = client_event(RESOURCE, CREATED, 3 + i);

		ck_assert_uint_eq(created->node, cloned->node);
		ck_assert_uint_eq(created->original_node, 0);
		if (_i / 2 == 0)
			ck_assert_uint_lt(created->order, cloned->order);
		else
			ck_assert_uint_gt(created->order, cloned->order);
	}
}
END_TEST

START_TEST(records_of_a_launch_name_the_clones)
{
	cudaGraphExec_t exec = open_and_capture(_i);
	uint32_t graph = client_event(RESOURCE, EXEC_CREATED, 0)->graph_exec;
	const uint8_t *set;

	ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 2);
	for (size_t i = 0; i < 2; i++) {
		const uint8_t *record = client_entry(KERNEL, i);

		ck_assert_uint_eq(CUPTI_GET(record, Kernel, graphNodeId),
			client_event(RESOURCE, CLONED, i)->node);
		ck_assert_uint_eq(CUPTI_GET(record, Kernel, graphId), graph);
	}
	set = client_entry(CUPTI_ACTIVITY_KIND_MEMSET, 0);
	ck_assert_uint_eq(
		CUPTI_GET(set, Memset, graphNodeId), client_event(RESOURCE, CLONED, 2)->node);
	ck_assert_uint_eq(CUPTI_GET(set, Memset, graphId), graph);
}
END_TEST

START_TEST(all_work_of_a_launch_has_the_launchs_id)
{
	cudaGraphExec_t exec = open_and_capture(_i);
	uint32_t id;

	ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	client_finish();
	id = client_api(RUNTIME, GRAPH_LAUNCH, CUPTI_API_ENTER, 0)->correlation;
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(CUPTI_GET(client_entry(KERNEL, i), Kernel, correlationId), id);
	ck_assert_uint_eq(
		CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_MEMSET, 0), Memset, correlationId), id);
}
END_TEST

START_TEST(each_launch_has_its_records)
{
	cudaGraphExec_t exec = open_and_capture(_i);

	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 20);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_MEMSET), 10);
}
END_TEST

START_TEST(tracing_whole_graphs_leaves_the_nodes_out)
{
	cudaGraphExec_t exec = open_and_capture(_i);
	const uint8_t *record;

	ck_assert_int_eq(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), CUPTI_SUCCESS);
	ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 0);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), 1);
	record = client_entry(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 0);
	ck_assert_uint_eq(CUPTI_GET(record, GraphTrace, graphId),
		client_event(RESOURCE, EXEC_CREATED, 0)->graph_exec);
	ck_assert_uint_eq(CUPTI_GET(record, GraphTrace, correlationId),
		client_api(RUNTIME, GRAPH_LAUNCH, CUPTI_API_ENTER, 0)->correlation);
	ck_assert_uint_gt(CUPTI_GET(record, GraphTrace, end), CUPTI_GET(record, GraphTrace, start));
}
END_TEST

/* No source says whether CUPTI changes how it records graphs that exist already. */
START_TEST(graphs_may_be_traced_as_at_their_instantiation)
{
	cudaGraphExec_t exec;

	setenv("SIM_CUPTI_GRAPH_TRACE", "instantiation", 1);
	exec = open_and_capture(_i);
	ck_assert_int_eq(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), CUPTI_SUCCESS);
	ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	ck_assert_int_eq(cuda.cudaGraphLaunch(capture(), stream), cudaSuccess);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 2);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), 1);
}
END_TEST

/* How long the two kernels and the memset of a launch take, from the first start to the last end.
 */
static uint64_t length_of_launch(int major, const char *cost, bool whole)
{
	cudaGraphExec_t exec;
	const uint8_t *first, *last;

	setenv("SIM_CUPTI_NODE_COST", cost, 1);
	exec = open_and_capture(major);
	if (whole)
		cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	client_finish();
	if (whole) {
		first = client_entry(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 0);
		return CUPTI_GET(first, GraphTrace, end) - CUPTI_GET(first, GraphTrace, start);
	}
	first = client_entry(KERNEL, 0);
	last = client_entry(CUPTI_ACTIVITY_KIND_MEMSET, 0);
	return CUPTI_GET(last, Memset, end) - CUPTI_GET(first, Kernel, start);
}

/* nsys profile --help, of --cuda-graph-trace=node: "may cause significant runtime overhead". */
START_TEST(tracing_the_nodes_of_a_graph_takes_time)
{
	const uint64_t nodes = length_of_launch(_i, "1000000", false);

	ck_assert_uint_ge(nodes, 2000000);
}
END_TEST

START_TEST(tracing_whole_graphs_takes_none)
{
	const uint64_t whole = length_of_launch(_i, "1000000", true);

	ck_assert_uint_lt(whole, 1000000);
}
END_TEST

/* Release notes of CUPTI 11.0: "CUPTI no longer disables the conversion of memset nodes into kernel
 * nodes". */
START_TEST(a_memset_between_kernels_is_reported_as_a_kernel)
{
	const int converted = _i < 2;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	const void *kernel;

	if (!converted)
		setenv("SIM_CUPTI_GRAPH_MEMSET", "memset", 1);
	open_and_capture(12 + _i % 2);
	kernel = client_runtime_kernel("third");
	ck_assert_int_eq(
		cuda.cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
	client_runtime_launch(kernel, stream, 1);
	ck_assert_int_eq(cuda.cudaMemsetAsync(memory, 0, 4096, stream), cudaSuccess);
	client_runtime_launch(kernel, stream, 1);
	ck_assert_int_eq(cuda.cudaMemsetAsync(memory, 0, 4096, stream), cudaSuccess);
	ck_assert_int_eq(cuda.cudaStreamEndCapture(stream, &graph), cudaSuccess);
	ck_assert_int_eq(cuda.cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), converted ? 3 : 2);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_MEMSET), converted ? 1 : 2);
	if (converted) /* three clones of the first graph are before those of this one */
		ck_assert_uint_eq(CUPTI_GET(client_entry(KERNEL, 1), Kernel, graphNodeId),
			client_event(RESOURCE, CLONED, 4)->node);
}
END_TEST

START_TEST(the_serialising_kind_does_not_see_graphs)
{
	cudaGraphExec_t exec;

	client_open(_i);
	client_record(CUPTI_ACTIVITY_KIND_KERNEL, 0);
	exec = capture();
	ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	client_runtime_launch(client_runtime_kernel("plain"), stream, 1);
	client_finish();
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_KERNEL), 1);
}
END_TEST

START_TEST(graphs_made_before_the_client_came_are_recorded)
{
	cudaGraphExec_t exec;

	client_load(_i);
	exec = capture();
	client_record(KERNEL, 0);
	ck_assert_int_eq(cuda.cudaGraphLaunch(exec, stream), cudaSuccess);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 2);
	ck_assert_uint_ne(CUPTI_GET(client_entry(KERNEL, 0), Kernel, graphNodeId), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cupti graphs");
	TCase *both = tcase_create("both majors");

#define BOTH(test) tcase_add_loop_test(both, test, 12, 14);
	BOTH(nodes_are_created_inside_the_launch_that_is_captured)
	BOTH(captured_launches_do_not_run)
	BOTH(instantiation_clones_each_node)
	tcase_add_loop_test(both, a_clone_is_reported_as_created_too, 0, 6);
	BOTH(records_of_a_launch_name_the_clones)
	BOTH(all_work_of_a_launch_has_the_launchs_id)
	BOTH(each_launch_has_its_records)
	BOTH(tracing_whole_graphs_leaves_the_nodes_out)
	BOTH(graphs_may_be_traced_as_at_their_instantiation)
	BOTH(tracing_the_nodes_of_a_graph_takes_time)
	BOTH(tracing_whole_graphs_takes_none)
	tcase_add_loop_test(both, a_memset_between_kernels_is_reported_as_a_kernel, 0, 4);
	BOTH(the_serialising_kind_does_not_see_graphs)
	BOTH(graphs_made_before_the_client_came_are_recorded)
	suite_add_tcase(suite, both);
	return client_run(suite);
}
