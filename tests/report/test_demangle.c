/* SPDX-License-Identifier: MIT
 * test_demangle.c: names as people write them, and names that were written to harm.
 */
#include "report/symbols/demangle.h"
#include "report/symbols/cxx_name.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char out[DEMANGLE_OUTPUT + 1];

struct example {
	const char *name, *short_name, *base, *full; /* NULL: the name stays as it is */
};

static const char *form_of(enum demangle_form form, const char *name)
{
	size_t bytes = demangle(form, name, strlen(name), out, sizeof out);

	ck_assert_uint_eq(bytes, bytes ? strlen(out) : 0);
	return bytes ? out : NULL;
}

static void check_form(enum demangle_form form, const char *name, const char *wanted)
{
	const char *got = form_of(form, name);

	if (!wanted)
		ck_assert_msg(!got, "%s: \"%s\" where it should have stayed as it is", name, got);
	else
		ck_assert_msg(got && !strcmp(got, wanted), "%s: \"%s\" instead of \"%s\"", name,
			got ? got : "(as it is)", wanted);
}

static void check_examples(const struct example *examples, size_t count)
{
	for (const struct example *e = examples; e < examples + count; e++) {
		check_form(DEMANGLE_NO, e->name, NULL);
		check_form(DEMANGLE_SHORT, e->name, e->short_name);
		check_form(DEMANGLE_BASE, e->name, e->base);
		check_form(DEMANGLE_FULL, e->name, e->full);
	}
}

#define CHECK_EXAMPLES(table) check_examples(table, sizeof(table) / sizeof *(table))

START_TEST(a_mangled_name_has_four_forms)
{
	static const struct example examples[] = {
		{ "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
		  "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
			"vectorized_elementwise_kernel<FillFunctor>",
			"at::native::vectorized_elementwise_kernel",
			"void at::native::vectorized_elementwise_kernel<4, "
			"at::native::FillFunctor<float>, std::array<char*, 1ul> >"
			"(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)" },
		{ "_Z1fIiEDTcl1gfp_EET_", "f", "f", "decltype (g({parm#1})) f<int>(int)" },
		{ "_Z1hIiEPFvT_ES0_", "h", "h", "void (*h<int>(int))(int)" },
		{ "_ZN1A1fEPFiSt6vectorIiSaIiEEE", "f", "A::f",
			"A::f(int (*)(std::vector<int, std::allocator<int> >))" },
		{ "_ZN1AD1Ev", "~A", "A::~A", "A::~A()" },
		{ "_ZNK1A1fB5cxx11Ev", "f[abi:cxx11]", "A::f[abi:cxx11]",
			"A::f[abi:cxx11]() const" },
		{ "_ZTV1A", "vtable for A", "vtable for A", "vtable for A" },
	};

	CHECK_EXAMPLES(examples);
}
END_TEST

START_TEST(operators_keep_their_signs)
{
	static const struct example examples[] = {
		{ "_ZN1AclEi", "operator()", "A::operator()", "A::operator()(int)" },
		{ "_ZN1AixEi", "operator[]", "A::operator[]", "A::operator[](int)" },
		{ "_ZN1AltIiEEbT_", "operator<", "A::operator<", "bool A::operator< <int>(int)" },
		{ "_ZN1AlsIiEERS_T_", "operator<<", "A::operator<<",
			"A& A::operator<< <int>(int)" },
		{ "_ZN1ArsEi", "operator>>", "A::operator>>", "A::operator>>(int)" },
		{ "_ZNK1AptEv", "operator->", "A::operator->", "A::operator->() const" },
		{ "_ZNK1AssEv", "operator<=>", "A::operator<=>", "A::operator<=>() const" },
		{ "_Znwm", "operator new", "operator new", "operator new(unsigned long)" },
		{ "_ZN1AdaEPv", "operator delete[]", "A::operator delete[]",
			"A::operator delete[](void*)" },
		{ "_Zli2_ky", "operator\"\" _k", "operator\"\" _k",
			"operator\"\" _k(unsigned long long)" },
		{ "_ZNK1BcvP1AEv", "operator A*", "B::operator A*", "B::operator A*() const" },
		{ "_ZNK1AcvSt6vectorIiSaIiEEEv", "operator std::vector<int, std::allocator<int> >",
			"A::operator std::vector<int, std::allocator<int> >",
			"A::operator std::vector<int, std::allocator<int> >() const" },
	};

	CHECK_EXAMPLES(examples);
}
END_TEST

START_TEST(brackets_inside_template_arguments_are_seen_through)
{
	static const struct example examples[] = {
		{ "_ZN1AIXaagtLi3ELi2EltLi1ELi2EEE1fEv", "f", "A::f",
			"A<(((3)>(2)))&&((1)<(2))>::f()" },
		{ "_ZN1AIXgeLi3ELi2EEE1fEv", "f", "A::f", "A<(3)>=(2)>::f()" },
		{ "_ZN1AIXrsLi3ELi2EEE1fEv", "f", "A::f", "A<(3)>>(2)>::f()" },
		{ "_ZN1AIXltstiLi2EEE1fEv", "f", "A::f", "A<(sizeof (int))<(2)>::f()" },
		{ "_ZN1AIXadL_ZN1BltEiEEE1fEv", "f", "A::f", "A<&B::operator<>::f()" },
		{ "_ZN1AIXadL_ZN1BgtEiEEE1fEv", "f", "A::f", "A<&B::operator> >::f()" },
		{ "_ZN1AIXadL_ZNK1BptEvEEE1fEv", "f", "A::f", "A<&(B::operator->() const)>::f()" },
		{ "_Z2tkIZN2at4copyERNS0_1TE1QEUliE0_EviT_", "tk", "tk",
			"void tk<at::copy(at::T&, Q)::{lambda(int)#2}>(int, at::copy(at::T&, "
			"Q)::{lambda(int)#2})" },
	};

	CHECK_EXAMPLES(examples);
}
END_TEST

START_TEST(lambdas_locals_and_clones)
{
	static const struct example examples[] = {
		{ "_ZZ4mainENKUliE0_clEi", "operator()", "main::{lambda(int)#2}::operator()",
			"main::{lambda(int)#2}::operator()(int) const" },
		{ "_ZZN1A1fIiEEvT_E1S", "S", "A::f::S", "A::f<int>(int)::S" },
		{ "_ZN1fUt_1gEv", "g", "f::{unnamed type#1}::g", "f::{unnamed type#1}::g()" },
		{ "_Z3foov.constprop.0", "foo", "foo", "foo() [clone .constprop.0]" },
		{ "_Z3foov.part.1.cold", "foo", "foo", "foo() [clone .part.1] [clone .cold]" },
		{ "_ZN12_GLOBAL__N_13fooIiEEvv", "foo", "(anonymous namespace)::foo",
			"void (anonymous namespace)::foo<int>()" },
	};

	CHECK_EXAMPLES(examples);
}
END_TEST

/* clang 18 and later put the declaration of a template parameter (Tn: of a value) before its
 * argument. libiberty knows these since binutils 2.42, and decodes the name as a whole then. */
START_TEST(declared_template_parameters_do_not_hide_the_kernel)
{
	static const char *const names[] = {
		"_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_"
		"Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
		"_ZN7sgl_hip10activation18act_and_mul_kernelIiTyvEEvT_",
	};
	static const char *const others[] = { "_ZN1aI", "_ZN9aITn", "_ZN1aTn", "_ZN1aIXE",
		"_ZN1aITz", "_ZNITn" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		ck_assert_str_eq(form_of(DEMANGLE_SHORT, names[i]), "act_and_mul_kernel");
		ck_assert_str_eq(form_of(DEMANGLE_BASE, names[i]),
			"sgl_hip::activation::act_and_mul_kernel");
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		ck_assert_ptr_null(form_of(DEMANGLE_SHORT, others[i]));
}
END_TEST

/* Names that nvcc 13.0 made, plain and with -rdc=true, and the host stubs of nvcc and clang. */
START_TEST(kernels_are_called_what_the_source_calls_them)
{
	static const struct example examples[] = {
		{ "_Z2tkIN30_GLOBAL__N__81b14f35_4_k_cu_ck1SEEvT_Pi", "tk", "tk",
			"void tk<(anonymous namespace)::S>((anonymous namespace)::S, int*)" },
		{ "_ZN48_INTERNAL_7fe15a50_20_Foo_cu_fbf4f50f4_1234567893fooEv", "foo",
			"(anonymous namespace)::foo", "(anonymous namespace)::foo()" },
		{ "__nv_static_19__81b14f35_4_k_cu_ck__Z7statickPi", "statick", "statick",
			"statick(int*)" },
		{ "__nv_static_19__81b14f35_4_k_cu_ck__ZN1a30_GLOBAL__N__81b14f35_4_k_cu_"
		  "ck4deepIiEEvPT_",
			"deep", "a::(anonymous namespace)::deep",
			"void a::(anonymous namespace)::deep<int>(int*)" },
		{ "_ZL64__device_stub__ZN1a30_GLOBAL__N__81b14f35_4_k_cu_ck4deepIfEEvPT_Pf", "deep",
			"a::(anonymous namespace)::deep",
			"void a::(anonymous namespace)::deep<float>(float*)" },
		{ "_ZL26__device_stub__Z7statickPiPi", "statick", "statick", "statick(int*)" },
		{ "_Z25__wrapper__device_stub_tkIiEvRT_RPi", "tk", "tk",
			"void tk<int>(int&, int*&)" },
		{ "_Z18__device_stub__foov", "foo", "foo", "foo()" },
		{ "__device_stub__Z9vectorAddPKfS0_Pfi", "vectorAdd", "vectorAdd",
			"vectorAdd(float const*, float const*, float*, int)" },
		{ "__device_stub__saxpy", "saxpy", "saxpy", "saxpy" },
		{ "triton_poi_fused_add_0", NULL, NULL, NULL },
		{ "ampere_sgemm_128x64_nn", NULL, NULL, NULL },
		{ "__nv_static_99__81b14f35_4_k_cu_ck__Z7statickPi", NULL, NULL, NULL },
		{ "__nv_static_", NULL, NULL, NULL },
		{ "_ZL99__device_stub__Z7statickPiPi", NULL, NULL, NULL },
	};

	CHECK_EXAMPLES(examples);
}
END_TEST

START_TEST(rust_passes_through_the_same_door)
{
	static const struct example examples[] = {
		{ "_ZN4core3fmt5Write9write_fmt17h05af221e174051e9E", "write_fmt",
			"core::fmt::Write::write_fmt", "core::fmt::Write::write_fmt" },
		{ "_RNvC6_123foo3bar", "bar", "123foo::bar", "123foo::bar" },
		{ "_RINvNtC3std3mem8align_ofNtC3std1DE", "align_of", "std::mem::align_of",
			"std::mem::align_of::<std::D>" },
		{ "_RNvYNtC3foo1SNtC3foo1T1m", "m", "<foo::S as foo::T>::m",
			"<foo::S as foo::T>::m" },
		{ "_RNvNtC1au8gdel_5qa3foo", "foo", "a::gödel::foo", "a::gödel::foo" },
		{ "_RNvMC1aFGzzzzzzz_EuE3foo", NULL, NULL,
			NULL }, /* for<...> with 3e12 lifetimes */
		{ "_R", NULL, NULL, NULL },
	};

	CHECK_EXAMPLES(examples);
}
END_TEST

/* As torch.profiler and CUPTI's newer interfaces give them. */
START_TEST(names_that_are_decoded_already_are_only_shortened)
{
	static const struct example examples[] = {
		{ "void at::native::vectorized_elementwise_kernel<4, "
		  "at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, float)",
			"vectorized_elementwise_kernel<FillFunctor>",
			"at::native::vectorized_elementwise_kernel", NULL },
		{ "void (*f<int>(int))(char)", "f", "f", NULL },
		{ "int A<B>::operator->*(int) const", "operator->*", "A::operator->*", NULL },
		{ "void at::native::(anonymous namespace)::k<float, int>(T) [clone .cold]", "k",
			"at::native::(anonymous namespace)::k", NULL },
		{ "auto f<int>(int)::{lambda(auto:1)#1}::operator()<int>(int) const", "operator()",
			"f::{lambda(auto:1)#1}::operator()", NULL },
		{ "main::'lambda0'(int)::operator()(int) const", "operator()",
			"main::'lambda0'::operator()", NULL },
		{ "std::enable_if<(sizeof (int))<(8), void>::type g<int>(int)", "g", "g", NULL },
		{ "f<int>", "f", "f", NULL },
		{ "main", NULL, NULL, NULL },
		{ "Memcpy HtoD (Pageable -> Device)", NULL, NULL, NULL },
		{ "Memset (Device)", NULL, NULL, NULL },
		{ "my label", NULL, NULL, NULL },
		{ "step (1) of 10", NULL, NULL, NULL },
		{ "f(int", NULL, NULL, NULL },
		{ "f<int", NULL, NULL, NULL },
		{ "f)", NULL, NULL, NULL },
		{ "::", NULL, NULL, NULL },
		{ "operator", NULL, NULL, NULL },
		{ "pthread_create@@GLIBC_2.34", NULL, NULL, NULL },
		{ "", NULL, NULL, NULL },
	};

	CHECK_EXAMPLES(examples);
}
END_TEST

START_TEST(a_result_that_does_not_fit_is_not_given)
{
	static const char name[] = "_ZN1A1fEv"; /* A::f() */
	char small[7];

	ck_assert_uint_eq(demangle(DEMANGLE_FULL, name, strlen(name), small, 7), 6);
	ck_assert_str_eq(small, "A::f()");
	ck_assert_uint_eq(demangle(DEMANGLE_FULL, name, strlen(name), small, 6), 0);
	ck_assert_uint_eq(demangle(DEMANGLE_SHORT, name, strlen(name), small, 2), 1);
	ck_assert_uint_eq(demangle(DEMANGLE_SHORT, name, strlen(name), small, 1), 0);
	ck_assert_uint_eq(demangle(DEMANGLE_SHORT, name, strlen(name), small, 0), 0);
	ck_assert_uint_eq(demangle(DEMANGLE_FULL, "_ZN1A1f\0Ev", 10, small, 7), 0);
}
END_TEST

/* What CUTLASS launches through one template is told apart by what the template was given. */
START_TEST(wrappers_say_what_they_wrap)
{
	check_form(DEMANGLE_SHORT,
		"void cutlass::Kernel2<cutlass_80_gemm_nn>(cutlass_80_gemm_nn::Params)",
		"cutlass_80_gemm_nn");
	check_form(DEMANGLE_SHORT, "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<int, 4>>(int)",
		"Kernel<Gemm>");
	check_form(DEMANGLE_SHORT, "void cutlass::device_kernel<flash::FlashAttnFwdSm90<int>>(int)",
		"device_kernel<FlashAttnFwdSm90>");
	check_form(DEMANGLE_BASE, "void cutlass::Kernel2<cutlass_80_gemm_nn>(int)",
		"cutlass::Kernel2");
	check_form(DEMANGLE_SHORT, "void mine::Kernel<mine::gemm>(int)", "Kernel");
	check_form(DEMANGLE_SHORT, "void cutlass::Kernel<4>(int)", "Kernel<4>");
	check_form(DEMANGLE_SHORT, "void cutlass::Kernel<", NULL);
}
END_TEST

/* PyTorch's loops over elements, by what they do to each: the first name inside of types, numbers
 * and other shells. */
START_TEST(loops_say_what_they_do)
{
	check_form(DEMANGLE_SHORT,
		"void at::native::vectorized_elementwise_kernel<4, "
		"at::native::CUDAFunctor_add<float>, int>(int)",
		"vectorized_elementwise_kernel<CUDAFunctor_add>");
	check_form(DEMANGLE_SHORT,
		"void at::native::unrolled_elementwise_kernel<at::native::AUnaryFunctor<float, "
		"c10::Half, "
		"at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 2> "
		">(int)",
		"unrolled_elementwise_kernel<MulFunctor>");
	check_form(DEMANGLE_SHORT,
		"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
		"namespace)::clamp_impl"
		"(at::TensorIterator&, c10::Scalar)::{lambda()#1}::operator()() "
		"const::{lambda(float)#1}, int>(int)",
		"vectorized_elementwise_kernel<clamp_impl>");
	check_form(DEMANGLE_SHORT,
		"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
		"at::native::func_wrapper_t<float, "
		"at::native::sum_functor<float>::operator()(at::TensorIterator&)::{lambda(float, "
		"float)#1}>, 4> >(int)",
		"reduce_kernel<sum_functor>");
	check_form(DEMANGLE_SHORT,
		"void at::native::elementwise_kernel<128, 4ul, float>(int, float)",
		"elementwise_kernel");
	check_form(DEMANGLE_BASE,
		"void at::native::elementwise_kernel<2, at::native::Add<int> >(int)",
		"at::native::elementwise_kernel");
	check_form(DEMANGLE_SHORT, "void at::native::elementwise_kernel<2, at::native::>(int)",
		"elementwise_kernel");
}
END_TEST

/* CUTLASS's kernels have names of several thousand bytes. */
START_TEST(long_names_are_decoded)
{
	char name[9000] = "_ZN7cutlass13device_kernelI", *at = name + strlen(name);

	for (int i = 0; i < 500; i++)
		at = stpcpy(at, "N4cute1CILi8EEE");
	strcpy(at, "EEvT_");
	check_form(DEMANGLE_BASE, name, "cutlass::device_kernel");
	check_form(DEMANGLE_SHORT, name, "device_kernel<C>");
	ck_assert_uint_gt(strlen(form_of(DEMANGLE_FULL, name)), 4000);
	ck_assert_uint_eq(demangle_counts().too_long, 0);
	ck_assert_uint_eq(demangle_counts().decoded, 3);
}
END_TEST

static char *append(char *at, const char *text, size_t times)
{
	while (times--)
		at = stpcpy(at, text);
	return at;
}

/* "S_", "S0_" ... in base 36. */
static char *append_substitution(char *at, size_t index)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	*at++ = 'S';
	if (index > 36)
		*at++ = digits[(index - 1) / 36];
	if (index > 0)
		*at++ = digits[(index - 1) % 36];
	return stpcpy(at, "_");
}

/* pair<pair<..., X>, X> where each X is the pair before: 2^levels leaves. */
static char *append_doubling(char *at, size_t levels)
{
	at = append(stpcpy(at, "St4pairI"), "S_I", levels);
	at = stpcpy(at, "iiE");
	for (size_t i = 1; i <= levels; i++)
		at = stpcpy(append_substitution(at, i), "E");
	return at;
}

static double seconds_for(const char *name)
{
	clock_t begin = clock();

	ck_assert_ptr_null(form_of(DEMANGLE_FULL, name));
	return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

START_TEST(names_that_explode_are_given_up)
{
	char name[4096], *at;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL); /* whatever the caller has blocked */
	at = append(stpcpy(name, "_ZN1Acv"), "T_I",
		200); /* parsing a conversion operator tries each level twice */
	at = append(stpcpy(at, "i"), "E", 200);
	strcpy(at, "Ev");
	ck_assert_double_lt(seconds_for(name), 1.0);
	append_doubling(stpcpy(name, "_Z1fDp"),
		60); /* looking for a pack walks the whole of it and prints nothing */
	ck_assert_double_lt(seconds_for(name), 1.0);
	ck_assert_uint_eq(demangle_counts().too_slow, 2);
	append_doubling(stpcpy(name, "_Z1f"), 60); /* prints without end */
	ck_assert_double_lt(seconds_for(name), 1.0);
	ck_assert_uint_eq(demangle_counts().too_long, 1);
	check_form(DEMANGLE_FULL, "_Z1fv", "f()");
}
END_TEST

START_TEST(many_exploding_names_cost_two_seconds_together)
{
	clock_t begin = clock();
	char name[4096];

	for (size_t i = 0; i < 10000; i++) {
		append_doubling(stpcpy(name, "_Z1fDp"), 40 + i % 40);
		ck_assert_ptr_null(form_of(DEMANGLE_FULL, name));
	}
	ck_assert_double_lt((double)(clock() - begin) / CLOCKS_PER_SEC, 4.0);
	ck_assert_uint_eq(demangle_counts().too_slow, 10000);
	ck_assert_ptr_null(form_of(DEMANGLE_FULL, "_Z1fv"));
	check_form(DEMANGLE_BASE, "void A::f<int>(int)", "A::f");
}
END_TEST

/* What nests deepest for its length, at the largest length that is taken: the stack must hold. */
START_TEST(deep_names_do_not_exhaust_the_stack)
{
	static const char *const nests[][4] = {
		{ "_Z1f", "P", "i", "" },
		{ "_Z1f", "VK", "i", "" },
		{ "_Z1f", "A_", "i", "" },
		{ "_Z1f", "Dp", "i", "" },
		{ "_Z1f", "M1a", "i", "" },
		{ "_Z1f", "1aI", "i", "E" },
		{ "_Z1f", "N1aI", "i", "EE" },
		{ "_Z1f", "PFv", "v", "E" },
		{ "_Z1f", "PF", "i", "vE" },
		{ "_Z1fI", "J", "i", "E" },
		{ "_Z1fIiEv", "DTad", "Li0E", "E" },
		{ "_Z1fIiEv", "DTcl", "Li0E", "EE" },
		{ "_Z1fIX", "ad", "Li0EEEvv", "" },
		{ "_Z1fIX", "cv", "iLi0EEEvv", "" },
		{ "_Z", "Z", "1fv", "E1g" },
		{ "_Z", "GV", "1a", "" },
		{ "_ZT", "h1_", "1a", "" },
		{ "_Z1fI", "L_Z1aI", "i", "EE" },
		{ "_ZN1A", "1b", "Ev", "" },
		{ "_Z1f", "DvLi1E_", "i", "" },
		{ "_Z1f", "U1aP", "i", "" },
		{ "_Z1fIiEv", "RT_", "", "" },
		{ "_Z1fIiEv", "1aIiE", "RT_", "" },
		{ "_R", "NvC1a", "", "1b" },
		{ "_RINvC1a1f", "T", "", "E" },
	};
	static char name[DEMANGLE_INPUT + 1];
	char *at;

	for (size_t i = 0; i < sizeof nests / sizeof *nests; i++)
		for (size_t length = 1000; length < DEMANGLE_INPUT;
			length = length * 2 - length / 40) {
			size_t times = (length - strlen(nests[i][0]) - strlen(nests[i][2])) /
				       (strlen(nests[i][1]) + strlen(nests[i][3]));

			at = append(stpcpy(name, nests[i][0]), nests[i][1], times);
			append(stpcpy(at, nests[i][2]), nests[i][3], times);
			form_of(DEMANGLE_FULL, name);
		}
	/* libiberty makes an array of the product of these two numbers. */
	for (size_t references = 100; references < 4000; references += 300) {
		at = append(stpcpy(name, "_Z1fIiEv"), "RT_", references);
		append(at, "1aIiE", (DEMANGLE_INPUT - 8 - 3 * references) / 5);
		form_of(DEMANGLE_FULL, name);
	}
	ck_assert_uint_eq(demangle_counts().too_slow, 0);
}
END_TEST

START_TEST(names_beyond_the_bound_are_not_looked_at)
{
	static char name[DEMANGLE_INPUT + 2];

	strcpy(append(stpcpy(name, "_Z16376"), "a", DEMANGLE_INPUT - 8), "v");
	ck_assert_uint_eq(strlen(name), DEMANGLE_INPUT);
	ck_assert_ptr_nonnull(form_of(DEMANGLE_FULL, name));
	strcat(name, "v");
	ck_assert_ptr_null(form_of(DEMANGLE_FULL, name));
	ck_assert_uint_eq(demangle_counts().too_long, 1);
}
END_TEST

static uint64_t random_state = 1;

static size_t random_below(size_t bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (size_t)((random_state >> 16) % bound);
}

static size_t mutate(char *name, size_t bytes)
{
	static const char letters[] =
		"_ZNSTIEJLKPRODFXMCUABGVW<>()[]{}:~*& operatordecltype0123456789";
	size_t at = random_below(bytes), count = 1 + random_below(8);

	switch (random_below(4)) {
	case 0:
		name[at] = letters[random_below(sizeof letters - 1)];
		return bytes;
	case 1:
		name[at] = (char)random_below(256);
		return bytes;
	case 2: /* cut out */
		count = count < bytes - at ? count : bytes - at - 1;
		memmove(name + at, name + at + count, bytes - at - count);
		return bytes - count;
	default: /* repeat */
		count = count < at ? count : at;
		memmove(name + at + count, name + at, bytes - at);
		memmove(name + at, name + at - count, count);
		return bytes + count;
	}
}

START_TEST(any_bytes_are_survived)
{
	static const char *const seeds[] = {
		"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
		"11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
		"_ZL64__device_stub__ZN1a30_GLOBAL__N__81b14f35_4_k_cu_ck4deepIfEEvPT_Pf",
		"__nv_static_19__81b14f35_4_k_cu_ck__ZN1a30_GLOBAL__N__81b14f35_4_k_cu_"
		"ck4deepIiEEvPT_",
		"_Z2tkIZN2at4copyERNS0_1TE1QEUliE0_EviT_",
		"_ZN1AIXadL_ZNK1BptEvEEE1fEv",
		"_ZNK1AcvSt6vectorIiSaIiEEEv",
		"_RINvNtC3std3mem8align_ofNtC3std1DE",
		"_RNvNtC1au8gdel_5qa3foo",
		"_ZN4core3fmt5Write9write_fmt17h05af221e174051e9E",
		"auto f<int>(int)::{lambda(auto:1)#1}::operator()<int>(int) const",
		"void (*f<(a)<(b)>(int))(char) [clone .cold]",
	};
	size_t bytes, done;
	char *name, *result;

	for (size_t round = 0; round < 20000; round++) {
		const char *seed = seeds[random_below(sizeof seeds / sizeof *seeds)];

		bytes = strlen(seed);
		name = malloc(bytes + 100); /* so that a sanitizer sees the first byte beyond */
		memcpy(name, seed, bytes);
		for (size_t i = random_below(10); i > 0 && bytes > 1; i--)
			bytes = mutate(name, bytes);
		name = realloc(name, bytes);
		for (enum demangle_form form = 0; form < DEMANGLE_FORM_COUNT; form++) {
			size_t room = random_below(20) ? 4096 : random_below(40);

			result = malloc(room + 1);
			done = demangle(form, name, bytes, result, room);
			ck_assert(done == 0 || (done < room && strlen(result) == done));
			free(result);
		}
		free(name);
	}
}
END_TEST

START_TEST(shortening_takes_linear_time)
{
	static char text[1 << 20], name[sizeof text + 1];
	static const char *const parts[] = { "f(", "<", "f<", "operator", "a::", "(", "{",
		"decltype (", " ", "f(a)::", "(anonymous namespace)", "a<)>(" };
	clock_t begin = clock();
	size_t last;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		append(text, parts[i], (sizeof text - 1) / strlen(parts[i]));
		cxx_name(text, strlen(text), name, &last);
	}
	ck_assert_double_lt((double)(clock() - begin) / CLOCKS_PER_SEC, 2.0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("demangle");
	TCase *names = tcase_create("names"), *bounds = tcase_create("bounds");
	SRunner *runner;
	int failed;

	tcase_add_test(names, a_mangled_name_has_four_forms);
	tcase_add_test(names, operators_keep_their_signs);
	tcase_add_test(names, wrappers_say_what_they_wrap);
	tcase_add_test(names, loops_say_what_they_do);
	tcase_add_test(names, brackets_inside_template_arguments_are_seen_through);
	tcase_add_test(names, lambdas_locals_and_clones);
	tcase_add_test(names, declared_template_parameters_do_not_hide_the_kernel);
	tcase_add_test(names, kernels_are_called_what_the_source_calls_them);
	tcase_add_test(names, rust_passes_through_the_same_door);
	tcase_add_test(names, names_that_are_decoded_already_are_only_shortened);
	tcase_add_test(names, a_result_that_does_not_fit_is_not_given);
	tcase_add_test(names, long_names_are_decoded);
	tcase_set_timeout(bounds, 30);
	tcase_add_test(bounds, names_that_explode_are_given_up);
	tcase_add_test(bounds, many_exploding_names_cost_two_seconds_together);
	tcase_add_test(bounds, deep_names_do_not_exhaust_the_stack);
	tcase_add_test(bounds, names_beyond_the_bound_are_not_looked_at);
	tcase_add_test(bounds, any_bytes_are_survived);
	tcase_add_test(bounds, shortening_takes_linear_time);
	suite_add_tcase(suite, names);
	suite_add_tcase(suite, bounds);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
