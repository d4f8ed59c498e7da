/* SPDX-License-Identifier: MIT
 * Undoes what nvcc and clang add to the names of kernels. libiberty.c decodes, cxx_name.c
 * shortens.
 */
#include "report/symbols/demangle.h"
#include "report/symbols/cxx_name.h"
#include "report/symbols/libiberty.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define ANONYMOUS "(anonymous namespace)"
/* Followed by the kernel's mangled name, or by _ and its name if that is not mangled (extern
 * "C", and always with clang). */
#define STUB_NVCC "__device_stub_"
#define STUB_TEMPLATE "__wrapper__device_stub_"
/* Added by nvcc -rdc=true. Followed by <n>_<n bytes of hash and file>_ and the mangled name. */
#define STATIC_NVCC "__nv_static_"

static struct demangle_counts counts;
static uint64_t spent_ns;

/* Reads a decimal number at `*at` and moves `*at` past it. Returns 0 if there is none. Stops
 * at numbers that exceed the length of a name. */
static size_t parse_length(const char **at)
{
	size_t value = 0;

	while (isdigit((unsigned char)**at) && value < DEMANGLE_INPUT)
		value = value * 10 + (size_t)(*(*at)++ - '0');
	return value;
}

static char *strip_static_stub(char *name)
{
	const char *at = name + strlen(STATIC_NVCC);
	const size_t length = parse_length(&at);

	if (*at++ != '_' || strlen(at) < length + 3 || strncmp(at + length, "__Z", 3))
		return name;
	return name + (at - name) + length + 1;
}

/* Returns the kernel's own name in the name of its host stub or device entry. The result points
 * into `name`, which may be cut, or is `name`. */
static char *strip_kernel_stub(char *name)
{
	const char *at = name;
	size_t length;

	if (!strncmp(name, STATIC_NVCC, strlen(STATIC_NVCC)))
		return strip_static_stub(name);
	if (!strncmp(name, "_Z", 2)) {
		at += 2 + (name[2] == 'L');
		length = parse_length(&at);
		if (strncmp(at, STUB_NVCC "_Z", strlen(STUB_NVCC "_Z")) || strlen(at) < length ||
			length <= strlen(STUB_NVCC))
			return name;
		name += at - name;
		name[length] = '\0';
	}
	if (!strncmp(name, STUB_NVCC "_", strlen(STUB_NVCC "_")))
		return name + strlen(STUB_NVCC) + (name[strlen(STUB_NVCC) + 1] != 'Z');
	return name;
}

static bool is_symbol_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Returns whether the identifier names an unnamed namespace and changes with each build:
 * `_INTERNAL_` or `_GLOBAL__N__`, hash, file. `length`: of the identifier. */
static bool is_build_hash(const char *identifier, size_t length)
{
	static const char *const prefixes[] = { "_INTERNAL_", "_GLOBAL__N__" };
	size_t prefix;

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		prefix = strlen(prefixes[i]);
		if (length >= strlen(ANONYMOUS) && !strncmp(identifier, prefixes[i], prefix) &&
			strspn(identifier + prefix, "0123456789abcdef") == 8 &&
			identifier[prefix + 8] == '_')
			return true;
	}
	return false;
}

static size_t stub_prefix(const char *identifier)
{
	static const char *const prefixes[] = { STUB_TEMPLATE, STUB_NVCC "_" };

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(identifier, prefixes[i], strlen(prefixes[i])))
			return strlen(prefixes[i]);
	return 0;
}

/* Rewrites identifiers in the decoded `text` that a compiler generated. The text never becomes
 * longer. Returns the new length. */
static size_t strip_build_hashes(char *text)
{
	char *to = text;
	size_t length;

	for (const char *from = text; *from; from += length) {
		length = 1;
		if (!is_symbol_byte(*from)) {
			*to++ = *from;
			continue;
		}
		from += stub_prefix(from);
		for (length = 0; is_symbol_byte(from[length]); length++)
			;
		if (is_build_hash(from, length))
			to = (char *)memcpy(to, ANONYMOUS, strlen(ANONYMOUS)) + strlen(ANONYMOUS);
		else
			to = (char *)memmove(to, from, length) + length;
	}
	*to = '\0';
	return (size_t)(to - text);
}

static bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) ||
	       (!strncmp(name, "_R", 2) && isupper((unsigned char)name[2]));
}

static bool decode_counted(
	const char *name, enum decode_style style, char *out, size_t room, size_t *bytes)
{
	enum decode_result end = DECODE_TOO_SLOW;

	if (spent_ns < DEMANGLE_TOTAL_TIME_NS) {
		end = libiberty_decode(name, style, out, room, bytes);
		if (end == DECODE_TOO_SLOW)
			spent_ns += DEMANGLE_TIME_NS;
	}
	counts.decoded += end == DECODE_DONE && style == DECODE_FULL;
	counts.too_long += end == DECODE_TOO_LONG;
	counts.too_slow += end == DECODE_TOO_SLOW;
	return end == DECODE_DONE;
}

#define PREFIX_BYTES 1024u /* of a qualified name that decode_prefix reads */

/* Returns whether `arguments`, the rest of a name from its template arguments on, has a declaration
 * of a template parameter. clang 18 and later mangle these; libiberty 2.40 refuses them. */
static bool has_parameter_declaration(const char *arguments)
{
	for (const char *at = arguments; (at = strchr(at, 'T')); at++)
		if (at[1] && strchr("yntpk", at[1]))
			return true;
	return false;
}

/* Decodes the qualified name before the template arguments, which is all that SHORT and BASE show.
 *
 *	_ZN1a1b1fIiTnPFT_RKS0_E...   ->  a::b::f
 *
 * Returns the length, or 0 if the name has another form. */
static size_t decode_prefix(const char *name, char *out, size_t room)
{
	char prefix[PREFIX_BYTES];
	const char *at = name + strlen("_ZN");
	size_t bytes, length;

	if (strncmp(name, "_ZN", strlen("_ZN")) != 0)
		return 0;
	while (isdigit((unsigned char)*at)) {
		length = parse_length(&at);
		if (strlen(at) < length)
			return 0;
		at += length;
	}
	bytes = (size_t)(at - name);
	if (*at != 'I' || bytes + 2 > sizeof prefix || !has_parameter_declaration(at))
		return 0;
	memcpy(prefix, name, bytes);
	memcpy(prefix + bytes, "E", 2);
	if (!decode_counted(prefix, DECODE_PLAIN, out, room, &bytes))
		return 0;
	counts.decoded++;
	return strip_build_hashes(out);
}

/* Writes the decoded `name` to `out`. For SHORT and BASE it is decoded without parameters, after
 * the full form has been decoded successfully. */
static size_t decode_text(enum demangle_form form, const char *name, char *out, size_t room)
{
	size_t bytes;

	if (!decode_counted(name, DECODE_FULL, out, room, &bytes))
		return form == DEMANGLE_FULL ? 0 : decode_prefix(name, out, room);
	if (form != DEMANGLE_FULL && !strncmp(name, "_Z", 2) &&
		!decode_counted(name, DECODE_PLAIN, out, room, &bytes))
		return 0;
	return strip_build_hashes(out);
}

static size_t copy_demangled(const char *text, size_t bytes, char *out, size_t room)
{
	if (bytes >= room) {
		counts.too_long++;
		return 0;
	}
	memcpy(out, text, bytes);
	out[bytes] = '\0';
	return bytes;
}

/* A qualified name among the template arguments in a decoded text. */
struct qualified_name {
	const char *begin, *end; /* the last component */
};

static bool is_one_of_words(const char *text, size_t bytes, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == bytes && !memcmp(words[i], text, bytes))
			return true;
	return false;
}

#define IS_ONE_OF(text, bytes, words) \
	is_one_of_words(text, bytes, words, sizeof(words) / sizeof *(words))

/* Returns the end of the qualified name at `from`. Sets `argument` to its last component. Unnamed
 * namespaces are not components. */
static const char *skip_components(const char *from, struct qualified_name *argument)
{
	argument->begin = from;
	while (is_symbol_byte(*from)) {
		while (is_symbol_byte(*from))
			from++;
		argument->end = from;
		if (strncmp(from, "::", 2) != 0)
			break;
		from += 2;
		if (!strncmp(from, ANONYMOUS "::", strlen(ANONYMOUS "::")))
			from += strlen(ANONYMOUS "::");
		if (is_symbol_byte(*from))
			argument->begin = from;
	}
	return from;
}

/* Reads the next qualified name from `*at` on, skips it, and sets `argument` to its last component.
 * Returns false if there is none. */
static bool next_name(const char **at, struct qualified_name *argument)
{
	const char *from = *at;

	while (*from && !(isalpha((unsigned char)*from) || *from == '_'))
		from += isdigit((unsigned char)*from)
				? strspn(from, "0123456789abcdefghijklmnopqrstuvwxyz")
				: 1;
	*at = skip_components(from, argument);
	return argument->begin < *at;
}

/* Names in the arguments of PyTorch's kernel templates that are not the operation. */
static const char *const shells[] = {
	"bool",
	"char",
	"short",
	"int",
	"long",
	"unsigned",
	"signed",
	"float",
	"double",
	"void",
	"const",
	"volatile",
	"Half",
	"BFloat16",
	"__half",
	"__nv_bfloat16",
	"complex",
	"true",
	"false",
	"anonymous",
	"namespace",
	"at",
	"native",
	"AUnaryFunctor",
	"BUnaryFunctor",
	"BinaryFunctor",
	"gpu_kernel_impl",
	"gpu_kernel_impl_nocast",
	"ReduceOp",
	"func_wrapper_t",
	"TensorListMetadata",
	"TensorListScalarListMetadata",
	"FusedOptimizerTensorListMetadata",
	"Array",
	"array",
	"OffsetCalculator",
	"TrivialOffsetCalculator",
	"TensorIteratorBase",
	"TensorIterator",
	"LoadWithCast",
	"LoadWithoutCast",
	"StoreWithCast",
	"StoreWithoutCast",
	"operator",
	"lambda",
	"std",
	"c10",
};

/* Finds the operation in the arguments of a PyTorch kernel template, whose own name only says
 * how it iterates. It may be nested: the first name that is not a number, a type or one of the
 * `shells`. */
static bool skip_to_functor(const char *at, struct qualified_name *argument)
{
	while (next_name(&at, argument))
		if (!IS_ONE_OF(argument->begin, (size_t)(argument->end - argument->begin), shells))
			return true;
	return false;
}

static bool first_argument(const char *at, struct qualified_name *argument)
{
	for (argument->begin = at; is_symbol_byte(*at) || *at == ':'; at++)
		if (*at == ':')
			argument->begin = at + 1;
	argument->end = at;
	return argument->begin < at && *at;
}

#define CUTLASS_PREFIX "cutlass_"

/* CUTLASS's templates, which run their first argument. */
static const char *const wrapper_kernels[] = { "Kernel", "Kernel2", "device_kernel" };

/* PyTorch's templates, which run a functor for each element. */
static const char *const loop_kernels[] = {
	"vectorized_elementwise_kernel",
	"unrolled_elementwise_kernel",
	"elementwise_kernel",
	"legacy_elementwise_kernel",
	"elementwise_kernel_with_index",
	"index_elementwise_kernel",
	"unrolled_elementwise_kernel_for_multi_outputs",
	"elementwise_kernel_manual_unroll",
	"vectorized_templated_elementwise_kernel",
	"reduce_kernel",
	"multi_tensor_apply_kernel",
	"distribution_elementwise_grid_stride_kernel",
	"kernelPointwiseApply1",
	"kernelPointwiseApply2",
	"kernelPointwiseApply3",
};

/* Appends to `base` the argument that says what runs. CUTLASS and PyTorch launch most kernels
 * through a few templates, whose names say nothing.
 *
 * The last component of that argument is appended, as in Kernel<Gemm>. If it begins with
 * cutlass_, it replaces the last component of `base`, as in cutlass_80_gemm. `bytes`: the length
 * of `base`, which has room for as many bytes as `text` has. Returns the new length. */
static size_t add_argument(const char *text, char *base, size_t bytes, size_t last)
{
	const bool wraps = IS_ONE_OF(base + last, bytes - last, wrapper_kernels),
		   loop = IS_ONE_OF(base + last, bytes - last, loop_kernels);
	const char *from = (wraps && strstr(text, "cutlass")) || loop ? strchr(text, '<') : NULL;
	struct qualified_name argument = { NULL, NULL };
	size_t length;

	if (!from)
		return bytes;
	if (!(loop ? skip_to_functor : first_argument)(from + 1, &argument))
		return bytes;
	length = (size_t)(argument.end - argument.begin);
	if (!loop && !strncmp(argument.begin, CUTLASS_PREFIX, strlen(CUTLASS_PREFIX))) {
		memcpy(base + last, argument.begin, length);
		return last + length;
	}
	base[bytes] = '<';
	memcpy(base + bytes + 1, argument.begin, length);
	base[bytes + 1 + length] = '>';
	return bytes + length + 2;
}

static size_t shorten_demangled(
	enum demangle_form form, const char *text, size_t bytes, char *out, size_t room)
{
	static char base[DEMANGLE_OUTPUT + 1];
	size_t last = 0;

	bytes = bytes < sizeof base ? cxx_name(text, bytes, base, &last) : 0;
	if (bytes && form == DEMANGLE_SHORT)
		bytes = add_argument(text, base, bytes, last);
	if (form == DEMANGLE_BASE)
		last = 0;
	return bytes ? copy_demangled(base + last, bytes - last, out, room) : 0;
}

size_t demangle(enum demangle_form form, const char *name, size_t bytes, char *out, size_t room)
{
	static char copy[DEMANGLE_INPUT + 1], text[DEMANGLE_OUTPUT + 1];
	char *kernel;
	size_t length;

	if (form == DEMANGLE_NO || memchr(name, '\0', bytes))
		return 0;
	if (bytes > DEMANGLE_INPUT) {
		counts.too_long += bytes > 2 && !memcmp(name, "_Z", 2);
		return 0;
	}
	memcpy(copy, name, bytes);
	copy[bytes] = '\0';
	kernel = strip_kernel_stub(copy);
	if (!is_mangled(kernel)) {
		if (form != DEMANGLE_FULL && kernel == copy)
			return shorten_demangled(form, kernel, strlen(kernel), out, room);
		return kernel == copy ? 0 : copy_demangled(kernel, strlen(kernel), out, room);
	}
	length = decode_text(form, kernel, text, sizeof text);
	if (!length)
		return kernel == copy ? 0 : copy_demangled(kernel, strlen(kernel), out, room);
	if (form != DEMANGLE_FULL) {
		bytes = shorten_demangled(form, text, length, out, room);
		if (bytes)
			return bytes;
	}
	return copy_demangled(text, length, out, room);
}

struct demangle_counts demangle_counts(void)
{
	return counts;
}
