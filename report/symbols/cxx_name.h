/* SPDX-License-Identifier: MIT
 * cxx_name.h: the name in the text of a C++ or Rust function, as a demangler prints it. Text only, linear time, no
 * state.
 */
#ifndef PPERF_REPORT_SYMBOLS_CXX_NAME_H
#define PPERF_REPORT_SYMBOLS_CXX_NAME_H

#include <stddef.h>

/* Writes to `out` (room for bytes + 1) the qualified name in `text`: without return type, template arguments,
 * parameters and what follows them. `*last` is where its last component begins. Returns its length, or 0: `text` is
 * not the text of a function, whatever it holds.
 *
 *	void (*ns::f<int (*)(A<4>)>(char))(int)             ns::f
 *	a::(anonymous namespace)::S<T>::operator<< <int>    a::(anonymous namespace)::S::operator<<, last at operator
 *	main::{lambda(int)#2}::operator()(int) const        main::{lambda(int)#2}::operator()
 *	f(int) [clone .constprop.0]                         f
 *	A<B>::operator B const&() const                     A::operator B const&
 *	<T as core::fmt::Debug>::fmt::<u8>                  <T as core::fmt::Debug>::fmt
 */
size_t cxx_name(const char *text, size_t bytes, char *out, size_t *last);

#endif
