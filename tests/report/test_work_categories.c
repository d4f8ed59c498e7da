/* SPDX-License-Identifier: MIT
 * test_work_categories.c: which category work is of: by its name, by what it was launched in, by
 * rules of one's own.
 */
#include "report/analysis/tree_categories.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool matches(const char *pattern, const char *name)
{
	return category_matches(pattern, name, strlen(name));
}

START_TEST(patterns)
{
	ck_assert(matches("*gemm*", "volta_sgemm_64x64_nt"));
	ck_assert(matches("GEMM", "gemm"));
	ck_assert(matches("a?c", "a c"));
	ck_assert(matches("*", ""));
	ck_assert(matches("", ""));
	ck_assert(matches("a*b*c", "axxbyybzzc"));
	ck_assert(matches("*aab", "aaab"));
	ck_assert(!matches("a?c", "ac"));
	ck_assert(!matches("gemm", "gemm2"));
	ck_assert(!matches("*x", "xy"));
	ck_assert(!matches("a", ""));
	ck_assert(category_matches("a*", "a\0b", 3));
}
END_TEST

/* A kernel, launched in an operator in a module of that class; the name of its category. */
static const char *category_in(const char *kernel, const char *op, const char *class)
{
	static char name[64];
	struct categories *categories = categories_read(NULL);
	struct string_table *texts = string_table_new();
	struct tree *tree = tree_new();
	uint32_t module = tree_module(tree, 0, string_table_intern(texts, "layer", 5), 0,
		string_table_intern(texts, class, strlen(class)));
	uint32_t range = tree_child(
		tree, module, string_table_intern(texts, op, strlen(op)), 0, NODE_OP);
	uint32_t leaf = tree_child(
		tree, range, string_table_intern(texts, kernel, strlen(kernel)), 0, NODE_KERNEL);
	uint8_t *of_node = categories_of_tree(categories, tree, texts);

	snprintf(name, sizeof name, "%s", categories_name(categories, of_node[leaf]));
	free(of_node);
	tree_free(tree);
	string_table_free(texts);
	categories_free(categories);
	return name;
}

#define ELEMENTWISE \
	"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)"

START_TEST(a_name_that_says_what_it_does_is_enough)
{
	ck_assert_str_eq(category_in("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "aten::add", ""),
		"communication");
	ck_assert_str_eq(category_in("flash_fwd_kernel", "aten::linear", ""), "attention");
	ck_assert_str_eq(
		category_in("void cudnn::bn_bw_1C11_kernel_new<float>(float)", "x", ""), "norm");
	ck_assert_str_eq(
		category_in("ampere_sgemm_128x64_nn", "Optimizer.step#SGD.step", ""), "GEMM");
	ck_assert_str_eq(
		category_in("sm80_xmma_fprop_implicit_gemm_indexed", "x", ""), "convolution");
	ck_assert_str_eq(
		category_in("multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float> >",
			"x", ""),
		"optimizer");
	ck_assert_str_eq(
		category_in("void at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)",
			"aten::add", ""),
		"copy");
	ck_assert_str_eq(category_in("rotary_embedding_kernel", "x", ""), "rope");
	ck_assert_str_eq(category_in("triton_red_fused_add_mean_mul_pow_rsqrt_0", "x", ""), "norm");
	ck_assert_str_eq(category_in("triton_red_fused_add_sum_0", "x", ""), "reduction");
}
END_TEST

START_TEST(a_name_that_says_how_is_of_what_it_was_launched_for)
{
	ck_assert_str_eq(category_in(ELEMENTWISE, "aten::add", ""), "elementwise");
	ck_assert_str_eq(category_in(ELEMENTWISE, "Optimizer.step#SGD.step", ""), "optimizer");
	ck_assert_str_eq(category_in(ELEMENTWISE, "aten::native_layer_norm", ""), "norm");
	ck_assert_str_eq(category_in(ELEMENTWISE, "aten::add", "LlamaRMSNorm"), "norm");
	ck_assert_str_eq(category_in("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>(int)",
				 "aten::cudnn_convolution", ""),
		"convolution");
	ck_assert_str_eq(category_in("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>(int)",
				 "aten::mm", ""),
		"GEMM");
	ck_assert_str_eq(category_in("void at::native::indexSelectLargeIndex<float>(int)",
				 "aten::embedding", ""),
		"embedding");
	ck_assert_str_eq(category_in("void at::native::indexSelectLargeIndex<float>(int)",
				 "aten::index_select", ""),
		"indexing");
	ck_assert_str_eq(category_in("Kernel", "aten::bmm", ""), "GEMM");
}
END_TEST

struct named_work {
	const char *category, *kernel;
};

/* Names as traces have them. */
static const struct named_work known_kernels[] = {
	{ "communication", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)" },
	{ "communication", "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, "
			   "16>(c10::BFloat16*, unsigned long, unsigned int**)" },
	{ "communication", "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)" },
	{ "communication", "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(int)" },
	{ "communication", "void deep_ep::internode::notify_dispatch<false, 4>(int const*)" },
	{ "communication", "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*)" },
	{ "moe-routing", "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)" },
	{ "communication",
		"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, "
		"vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)" },
	{ "communication",
		"void sglang::cross_device_reduce_2stage<__half, 8>(sglang::RankData*)" },
	{ "communication", "void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, "
			   "CodecQ4<__half, 8>, true>, __half>(__half const*)" },
	{ "communication",
		"void flashinfer::trtllm_allreduce_fusion::"
		"allreduce_fusion_kernel_oneshot_lamport<__nv_bfloat16, 8, false>(int)" },
	{ "communication", "void oneshotAllreduceFusionKernel<8, __nv_bfloat16, true>(int)" },
	{ "communication", "rmsNormLamport<4, __nv_bfloat16>" },
	{ "communication", "moeA2ADispatchKernel" },
	{ "communication", "void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int, int)" },
	{ "communication", "kuserbuffers_pushsend(int*, int*, int4*, int4*, int)" },
	{ "communication", "nvshmemi_collective_launch_barrier" },
	{ "communication", "_ZN7mscclpp9allreduceEPf" },
	/* Compiled kernels are named after what was fused, also after a collective before them. */
	{ "elementwise", "triton_poi_fused_add_all_reduce_wait_tensor_3" },
	{ "reduction", "triton_red_fused_all_gather_into_tensor_sum_1" },
	{ "GEMM", "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT" },
	{ "GEMM", "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_swiGlu_dynBatch_sm100f" },
	{ "GEMM", "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u>(int)" },
	{ "GEMM", "void marlin::Marlin<__nv_bfloat16, 1125899906843648l, 256>(int4 const*)" },
	{ "GEMM", "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_SN" },
	{ "GEMM", "fused_moe_kernel" },
	{ "attention", "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128" },
	{ "attention", "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, "
		       "(vllm::Fp8KVCacheDataType)0, 1, 128, 256, false, 4>(__hip_bfloat16)" },
	{ "attention", "void cutlass::device_kernel<flash::enable_sm90_or_later<int> >(int)" },
	{ "attention", "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(int)2, 8u>(int)" },
	{ "attention", "flash_fwd_splitkv_mla_kernel" },
	{ "kv-cache", "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, "
		      "(vllm::Fp8KVCacheDataType)1>(__nv_bfloat16 const*)" },
	{ "rope", "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)" },
	{ "norm", "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)" },
	{ "moe-routing", "void moe::dev::finalize::finalizeKernelVecLoad<moe::dev::finalize::"
			 "KernelParams<cutlass::bfloat16_t, cutlass::bfloat16_t> >(int)" },
	{ "sampling", "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(float*)" },
	{ "quantization", "void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16>(int)" },
	{ "activation", "void vllm::act_and_mul_kernel<c10::BFloat16, silu_kernel>(int)" },
	{ "softmax", "void (anonymous namespace)::softmax_warp_forward<float, float, 6>(float*)" },
	{ "sort", "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)" },
	{ "indexing", "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)" },
	{ "rnn", "void elemWiseRNNcell<float, float, float, (cudnnRNNMode_t)2>(int)" },
	{ "random", "void at::native::(anonymous namespace)::"
		    "distribution_elementwise_grid_stride_kernel<float, 4>(int)" },
	{ "optimizer",
		"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native"
		"::FusedAdamMathFunctor<float, 4> >(int)" },
	{ "wait", "at::cuda::(anonymous namespace)::spin_kernel(long)" },
};

START_TEST(kernels_of_known_libraries_have_their_category)
{
	struct categories *categories = categories_read(NULL);

	for (size_t i = 0; i < sizeof known_kernels / sizeof *known_kernels; i++) {
		const struct named_work *known = &known_kernels[i];
		const struct trace_text name = { known->kernel, (uint32_t)strlen(known->kernel),
			true };
		const bool communicates = strcmp(known->category, "communication") == 0;

		ck_assert_msg(strcmp(category_in(known->kernel, "x", ""), known->category) == 0,
			"%s: %s", known->kernel, category_in(known->kernel, "x", ""));
		ck_assert_msg(categories_is_communication(categories, name) == communicates, "%s",
			known->kernel);
	}
	categories_free(categories);
}
END_TEST

/* What knows only the names of kernels agrees with what also knows the ranges around them. */
START_TEST(ranges_make_no_gpu_work_communication_and_take_none_away)
{
	ck_assert_str_eq(category_in(ELEMENTWISE, "nccl:all_reduce", ""), "elementwise");
	ck_assert_str_eq(category_in("stencil", "c10d::allreduce_", ""), "other");
	ck_assert_str_eq(category_in("cross_device_reduce_1stage", "Optimizer.step#SGD.step", ""),
		"communication");
}
END_TEST

START_TEST(a_mangled_name_is_matched_as_it_is_shown)
{
	static const char mangled[] = "_ZN7deep_ep9intranode8dispatchILi8EEEvPf";
	struct categories *categories = categories_read(NULL);

	ck_assert(categories_is_communication(
		categories, (struct trace_text){ mangled, sizeof mangled - 1, true }));
	ck_assert(!categories_is_communication(NULL, (struct trace_text){ "nccl", 4, true }));
	categories_free(categories);
}
END_TEST

/* No rule takes whatever comes. */
START_TEST(a_name_that_says_nothing_is_other)
{
	ck_assert_str_eq(category_in("stencil", "my range", ""), "other");
	ck_assert_str_eq(category_in("update_cells", "aten::something", ""), "other");
	ck_assert_str_eq(category_in("triton__0d1d2d", "x", ""), "other");
	ck_assert_str_eq(category_in("convert_units", "normal", "Optimistic"), "other");
}
END_TEST

static struct trace_builder *traced(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "GPU");
	build_push(builder, 1, 100, "aten::mm");
	build_launch(builder, 1, 110, 1);
	build_launch(builder, 1, 120, 2);
	build_copy(builder, 1, 130, TRACE_COPY, 3, 64);
	build_pop(builder, 1, 200);
	build_kernel(builder, 9, 900, 1, "volta_sgemm_64x64_nt", 300, 400);
	build_kernel(builder, 9, 900, 2, "mine\x1b[2J", 400, 440);
	build_gpu_copy(builder, 9, 900, TRACE_GPU_COPY, 3, 64, 500, 510);
	return builder;
}

START_TEST(the_view_has_each_category_and_its_kernels)
{
	const struct report_run run = run_report(traced(), "categories trace.bin --ascii");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out,
		"                               gpu  gpu self %  calls  gpu avg     p50     max\n"
		"GEMM                        140 ns      93.3 %      2    70 ns   40 ns  100 ns\n"
		"  |-- volta_sgemm_64x64_nt  100 ns      66.7 %      1   100 ns  100 ns  100 ns\n"
		"  +-- mine\\x1b[2J            40 ns      26.7 %      1    40 ns   40 ns   40 ns\n"
		"memcpy                       10 ns       6.7 %      1    10 ns   10 ns   10 ns\n"
		"  +-- memcpy HtoD            10 ns       6.7 %      1    10 ns   10 ns   10 ns\n");
}
END_TEST

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

START_TEST(rules_of_ones_own_replace_ours)
{
	struct report_run run;

	write_file("rules",
		"# mine\n\nmy-work kernel mine*\n  slow\tkernel *gemm* around aten::mm\r\n");
	run = run_report(traced(), "categories trace.bin --ascii --categories rules -d 1");
	ck_assert_str_eq(run.out,
		"            gpu  gpu self %  calls  gpu avg     p50     max     p95     min\n"
		"slow     100 ns      66.7 %      1   100 ns  100 ns  100 ns  100 ns  100 ns\n"
		"my-work   40 ns      26.7 %      1    40 ns   40 ns   40 ns   40 ns   40 ns\n"
		"other     10 ns       6.7 %      1    10 ns   10 ns   10 ns   10 ns   10 ns\n"
		"not shown: 3 deeper (--depth)\n");
	run = run_report(NULL, "table trace.bin --ascii --by category --categories rules");
	ck_assert_str_eq(run.out,
		"   gpu  gpu self  cpu self  calls       %     cpu  gpu avg  cpu avg  name\n"
		"100 ns    100 ns      0 ns      1  66.7 %    0 ns   100 ns     0 ns  slow\n"
		" 40 ns     40 ns      0 ns      1  26.7 %    0 ns    40 ns     0 ns  my-work\n"
		" 10 ns     10 ns    100 ns      1   6.7 %  100 ns    10 ns   100 ns  other\n"
		"legend    %: of all GPU time, 150 ns\n");
}
END_TEST

START_TEST(rules_of_ones_own_precede_and_follow_ours)
{
	struct report_run run;

	write_file("rules", "mine kernel *sgemm_64x64*\ninclude built-in\n"
			    "late kernel mine*\nlate memcpy *\n");
	run = run_report(traced(), "categories trace.bin --ascii --categories rules -d 1");
	ck_assert_str_eq(run.out,
		"           gpu  gpu self %  calls  gpu avg     p50     max     p95     min\n"
		"mine    100 ns      66.7 %      1   100 ns  100 ns  100 ns  100 ns  100 ns\n"
		"GEMM     40 ns      26.7 %      1    40 ns   40 ns   40 ns   40 ns   40 ns\n"
		"memcpy   10 ns       6.7 %      1    10 ns   10 ns   10 ns   10 ns   10 ns\n"
		"not shown: 3 deeper (--depth)\n");
}
END_TEST

/* The user's rules apply to the views that separate communication from computation. */
START_TEST(communication_of_ones_own_is_communication_in_every_view)
{
	struct report_run run;

	write_file("rules", "communication kernel mine*\ninclude built-in\n");
	run = run_report(traced(), "overlap trace.bin --categories rules -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "\"gpu_communication_ns\": 40,"));
	ck_assert_ptr_nonnull(strstr(run.out, "\"gpu_exposed_communication_ns\": 40,"));
	ck_assert_ptr_nonnull(strstr(run.out, "\"kind\": \"communication\""));
	run = run_report(NULL, "critical-path trace.bin --categories rules -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "\"communication\""));
	run = run_report(NULL, "tree trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "\"gpu_communication_ns\": 0,"));
}
END_TEST

/* The first of five kernels takes most of the time. */
static struct trace_builder *dominated_by(const char *name)
{
	static const char *const others[] = { "a", "b", "c", "d" };
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "GPU");
	build_push(builder, 1, 100, "layer");
	for (uint64_t i = 1; i <= 5; i++)
		build_launch(builder, 1, 100 + 10 * i, i);
	build_pop(builder, 1, 200);
	build_kernel(builder, 9, 9000000, 1, name, 300, 8000300);
	for (uint64_t i = 0; i < 4; i++)
		build_kernel(builder, 9, 9000000, i + 2, others[i], 8000300 + 100 * i,
			8000400 + 100 * i);
	return builder;
}

/* Nothing in the shown name `dispatch` says so: the full name decides. */
START_TEST(a_shortened_name_communicates_as_its_full_name_does)
{
	struct report_run run = run_report(dominated_by("_ZN7deep_ep9intranode8dispatchILi8EEEvPf"),
		"diagnose trace.bin -f json");

	ck_assert_ptr_null(strstr(run.out, "One kernel takes"));
	run = run_report(NULL, "tree trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "\"name\": \"dispatch\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"gpu_communication_ns\": 8000000,"));
	run = run_report(
		dominated_by("_ZN4mine9intranode5solveILi8EEEvPf"), "diagnose trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "One kernel takes"));
}
END_TEST

static void expect_refusal(const char *rules, const char *sentence)
{
	char text[512];
	struct report_run run;

	write_file("rules", rules);
	run = run_report(traced(), "categories trace.bin --categories rules");
	snprintf(text, sizeof text, "pperf-report: rules%s\n", sentence);
	ck_assert_str_eq(run.err, text);
	ck_assert_str_eq(run.out, "");
	ck_assert_int_eq(run.status, 64);
}

START_TEST(what_is_wrong_with_rules_is_said_with_the_line)
{
	struct report_run run;

	expect_refusal("a kernel x\nb kernl y\n",
		":2: `kernl` is not a condition; conditions are kernel, memcpy, memset, "
		"around and not");
	expect_refusal("a \x1b[31m x\n", ":1: `\\x1b[31m` is not a condition; conditions are "
					 "kernel, memcpy, memset, around and not");
	expect_refusal("a kernel\n", ":1: `kernel` must be followed by a pattern such as *gemm*");
	expect_refusal("\n\na\n",
		":3: a rule is CATEGORY CONDITION PATTERN, such as `GEMM kernel *gemm*`");
	expect_refusal("a kernel x kernel y\n",
		":1: `kernel` is given twice; write one line for each pattern");
	expect_refusal("a kernel x memcpy y\n",
		":1: kernel, memcpy and memset exclude each other; write one line for each");
	expect_refusal("a memcpy x not y\n", ":1: `not` excludes names from those of `kernel`; "
					     "write `kernel *gemm* not *igemm*`");
	expect_refusal("include mine\n", ":1: only the built-in rules can be included; write "
					 "`include built-in`");
	expect_refusal("include built-in\ninclude built-in\n",
		":2: the built-in rules are included twice");
	expect_refusal("communication kernel x around y\n",
		":1: the name of a kernel alone decides if it is communication; write "
		"`communication kernel *nccl*`");
	expect_refusal("communication memcpy *PtoP*\n",
		":1: the name of a kernel alone decides if it is communication; write "
		"`communication kernel *nccl*`");
	expect_refusal(
		"# nothing\n", ": the file has no rules; a rule is CATEGORY CONDITION PATTERN");
	run = run_report(NULL, "categories trace.bin --categories absent");
	ck_assert_str_eq(run.err, "pperf-report: absent: the table of categories cannot be "
				  "read: No such file or directory\n");
}
END_TEST

START_TEST(a_trace_without_a_gpu_has_none)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 100, "work");
	build_pop(builder, 1, 200);
	ck_assert_str_eq(run_report(builder, "categories trace.bin").out,
		"warning: trace.bin: no GPU work is in this trace; pperf-report info lists its "
		"sources\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("categories");
	TCase *rules = tcase_create("rules"), *views = tcase_create("views");
	SRunner *runner;
	int failed;

	tcase_add_test(rules, patterns);
	tcase_add_test(rules, a_name_that_says_what_it_does_is_enough);
	tcase_add_test(rules, a_name_that_says_how_is_of_what_it_was_launched_for);
	tcase_add_test(rules, kernels_of_known_libraries_have_their_category);
	tcase_add_test(rules, ranges_make_no_gpu_work_communication_and_take_none_away);
	tcase_add_test(rules, a_mangled_name_is_matched_as_it_is_shown);
	tcase_add_test(rules, a_name_that_says_nothing_is_other);
	tcase_add_checked_fixture(views, run_report_setup, run_report_teardown);
	tcase_add_test(views, the_view_has_each_category_and_its_kernels);
	tcase_add_test(views, rules_of_ones_own_replace_ours);
	tcase_add_test(views, rules_of_ones_own_precede_and_follow_ours);
	tcase_add_test(views, communication_of_ones_own_is_communication_in_every_view);
	tcase_add_test(views, a_shortened_name_communicates_as_its_full_name_does);
	tcase_add_test(views, what_is_wrong_with_rules_is_said_with_the_line);
	tcase_add_test(views, a_trace_without_a_gpu_has_none);
	suite_add_tcase(suite, rules);
	suite_add_tcase(suite, views);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
