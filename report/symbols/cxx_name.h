/* SPDX-License-Identifier: MIT
 * Extracts the qualified name from the demangled text of a C++ or Rust function. It works on
 * text only, in linear time, and has no state.
 */
#ifndef PPERF_REPORT_SYMBOLS_CXX_NAME_H
#define PPERF_REPORT_SYMBOLS_CXX_NAME_H

#include <stddef.h>

/* Writes the qualified name in `text` to `out`, which has room for bytes + 1. The name is
 * without return type, template arguments, parameters and what follows them. `*last` is set to
 * the start of its last component. Returns the length, or 0 if `text` is not the text of a
 * function.
 *
 *	void (*ns::f<int (*)(A<4>)>(char))(int)             ns::f
 *	a::(anonymous namespace)::S<T>::operator<< <int>    a::(anonymous namespace)::S::operator<<
 *	main::{lambda(int)#2}::operator()(int) const        main::{lambda(int)#2}::operator()
 *	f(int) [clone .constprop.0]                         f
 *	A<B>::operator B const&() const                     A::operator B const&
 *	<T as core::fmt::Debug>::fmt::<u8>                  <T as core::fmt::Debug>::fmt
 *
 * In the second line `*last` is at `operator`. */
size_t cxx_name(const char *text, size_t bytes, char *out, size_t *last);

#endif
