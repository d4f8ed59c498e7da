/* SPDX-License-Identifier: MIT
 *
 * The rule about matrix products and convolutions that do not use tensor cores.
 *
 * A kernel's name shows whether it multiplies in FP32 on the ordinary cores. Only names that are
 * known to do so are counted. Names of the same libraries with tensor cores are different ones
 * (tensorop, xmma, s1688gemm, h884, hmma, nvjet).
 */
#include "report/analysis/device_peaks.h"
#include "report/base/alloc.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/gpu/work_categories.h"
#include <stdlib.h>

/* Names of FP32 kernels of cuBLAS, cuDNN and CUTLASS, demangled or mangled. */
static const char *const fp32_kernels[] = { "volta_sgemm_*", "turing_sgemm_*", "ampere_sgemm_*",
	"maxwell_sgemm_*", "sm*_sgemm_*", "*_scudnn_*", "*simt_sgemm*", "*implicit_convolve_sgemm*",
	"*precomputed_convolve_sgemm*", "*explicit_convolve_sgemm*", "*dgrad_engine<float*",
	"*dgrad_engineIf*", "*wgrad_alg0_engine<float*", "*wgrad_alg0_engineIf*",
	"*wgrad_alg1_engine<float*", "*wgrad_alg1_engineIf*", "*dgrad_alg1_engine<float*",
	"*dgrad_alg1_engineIf*", "*gemmSN_*_kernel<float*", "*sgemm_largek*", NULL };

struct fp32_products {
	uint64_t total_ns, calls, gain_ns;
	const struct launch_config *most;
	uint64_t known_ns;    /* of all kernels, on GPUs whose rates are known */
	double speed, faster; /* FP32 rates of the GPU of `most`, without and with tensor cores */
	bool tf32;            /* `faster` is that of TF32, else of FP16 */
	uint64_t *name_ns;    /* by shown name */
	size_t names;
};

static bool is_fp32_product(const struct diagnosis *diagnosis, const struct launch_config *kernel)
{
	const struct trace_text name = reader_name(diagnosis->process->reader, kernel->record.name);

	for (const char *const *pattern = fp32_kernels; *pattern; pattern++)
		if (category_matches(*pattern, name.bytes, name.length))
			return true;
	return false;
}

static void add_product(struct fp32_products *products, const struct launch_config *kernel,
	const struct peaks *peaks)
{
	const bool tf32 = peaks->flops[PEAK_TF32] > 0;
	const double fp32 = peaks->flops[PEAK_FP32],
		     faster = peaks->flops[tf32 ? PEAK_TF32 : PEAK_FP16];

	products->total_ns += kernel->total_ns;
	products->calls += kernel->calls;
	products->gain_ns += (uint64_t)((double)kernel->total_ns * (1 - fp32 / faster));
	ARRAY_GROW(products->name_ns, products->names, (size_t)kernel->name + 1);
	products->name_ns[kernel->name] += kernel->total_ns;
	if (products->most && kernel->total_ns <= products->most->total_ns)
		return;
	products->most = kernel;
	products->speed = fp32;
	products->faster = faster;
	products->tf32 = tf32;
}

/* Returns true if the GPU has tensor cores with a known rate. */
static bool has_tensor_cores(const struct peaks *peaks)
{
	return peaks->flops[PEAK_FP32] > 0 &&
	       (peaks->flops[PEAK_TF32] > peaks->flops[PEAK_FP32] ||
		       peaks->flops[PEAK_FP16] > 2 * peaks->flops[PEAK_FP32]);
}

static struct fp32_products fp32_products_of(const struct diagnosis *diagnosis)
{
	const struct launch_configs *kernels = diagnosis->profile->kernels;
	struct peaks_table *table = peaks_read(diagnosis->options->peaks);
	struct fp32_products products = { .most = NULL };
	struct peaks peaks = { .bytes = 0 };
	int64_t device = -1;

	for (uint32_t i = 0; i < kernels->count; i++) {
		const struct launch_config *kernel = &kernels->kernels[i];

		if (device != kernel->record.gpu.device) {
			device = kernel->record.gpu.device;
			peaks = peaks_of_process(diagnosis->process, table, (uint32_t)device);
		}
		if (!has_tensor_cores(&peaks))
			continue;
		products.known_ns += kernel->total_ns;
		if (is_fp32_product(diagnosis, kernel))
			add_product(&products, kernel, &peaks);
	}
	peaks_free(table);
	return products;
}

/* Returns the name of the kernels with the most time at a node; 0: none. */
static uint32_t largest_name(
	const struct diagnosis *diagnosis, uint32_t at, const struct fp32_products *products)
{
	const struct tree *tree = diagnosis->profile->tree;
	uint32_t most = 0, name = 0;

	for (uint32_t id = tree->nodes[at].first_child; id; id = tree->nodes[id].next) {
		const struct node *node = &tree->nodes[id];

		if (node->kind != NODE_KERNEL || !node->gpu || node->name >= products->names ||
			!products->name_ns[node->name] ||
			(most && node->gpu->self_ns <= tree->nodes[most].gpu->self_ns))
			continue;
		most = id;
		name = node->name;
	}
	return name;
}

/* Sets the place of the finding: the time of these kernels, by the node that launched them. */
static void set_place_of_products(
	struct diagnosis *diagnosis, struct finding *finding, const struct fp32_products *products)
{
	const struct tree *tree = diagnosis->profile->tree;
	uint64_t *ns = xcalloc(tree->count * sizeof *ns);

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (node->kind == NODE_KERNEL && node->gpu && !node->captured &&
			node->name < products->names && products->name_ns[node->name])
			ns[node->parent] += node->gpu->self_ns;
	}
	finding_set_place(diagnosis, finding, ns, tree->count);
	free(ns);
}

static bool is_product(const struct path_node *work, void *context)
{
	const struct fp32_products *products = context;

	return work->kind == ACTIVITY_KERNEL && work->name < products->names &&
	       products->name_ns[work->name];
}

static void report_products(
	struct diagnosis *diagnosis, struct finding *finding, struct fp32_products *products)
{
	const uint64_t whole = diagnosis->profile->totals.gpu_sum_ns;

	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason,
		"the names of these kernels show FP32 arithmetic on the ordinary cores; the gain "
		"is modelled from the GPU's peak rates, and needs a lower precision");
	SET_TEXT(finding->sentence,
		"%s of all GPU time are matrix products and convolutions in FP32 that do not use "
		"tensor cores.",
		diagnose_share(diagnosis, products->total_ns, whole));
	finding_set_impact(finding, 0, products->calls, products->gain_ns);
	set_place_of_products(diagnosis, finding, products);
	finding->places_name = "of these kernels";
	finding_set_gain(diagnosis, finding,
		1 - (double)products->gain_ns / (double)products->total_ns, is_product, products);
	SET_TEXT(finding->evidence,
		"%s, %s of %s of GPU time, which tensor cores would make shorter by %s; the "
		"largest part there is %s; peak rates: FP32 %.1f TFLOP/s, %s on tensor cores %.0f "
		"TFLOP/s",
		diagnose_plural(diagnosis, products->calls, "launch"),
		diagnose_time(diagnosis, products->total_ns), diagnose_time(diagnosis, whole),
		diagnose_time(diagnosis, products->gain_ns),
		diagnose_name(diagnosis, largest_name(diagnosis, finding->node, products)),
		products->speed / 1e12, products->tf32 ? "TF32" : "FP16", products->faster / 1e12);
	SET_TEXT(finding->next, "%s",
		products->tf32
			? "Allow TF32 (torch.set_float32_matmul_precision(\"high\"), "
			  "torch.backends.cudnn.allow_tf32), or use automatic mixed precision "
			  "(torch.autocast with bfloat16)."
			: "Use automatic mixed precision (torch.autocast with float16 and a "
			  "GradScaler); this GPU has no TF32.");
	SET_TEXT(finding->view, "kernels --top 20");
	finding->has_example = finding->node == products->most->node;
	finding->example_ns = products->most->longest_start_ns;
}

void diagnose_tensor_cores(struct diagnosis *diagnosis, struct finding *finding)
{
	struct fp32_products products = fp32_products_of(diagnosis);
	const uint64_t whole = diagnosis->profile->totals.gpu_sum_ns;

	if (!products.known_ns)
		finding_set_unchecked(finding, "the peak rates of the GPU are not known");
	else if (products.most && products.calls >= LIMIT_CALLS_FEW &&
		 diagnose_is_share(products.total_ns, whole, LIMIT_FP32) &&
		 diagnose_is_share(products.gain_ns, diagnosis->facts.span_ns, LIMIT_WORTH))
		report_products(diagnosis, finding, &products);
	else
		finding_set_small(finding, products.gain_ns, LIMIT_WORTH, diagnosis->facts.span_ns,
			"the GPU span");
	free(products.name_ns);
}
