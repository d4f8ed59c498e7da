/* SPDX-License-Identifier: MIT
 * cxx_name.c: one walk from left to right. Brackets are stepped over; a blank, `*` or `&` outside of them means
 * that what came before was the return type, so the name begins anew; a parenthesis right behind a name begins its
 * parameters.
 */
#include "report/symbols/cxx_name.h"

#include <stdbool.h>
#include <string.h>

#define ANONYMOUS "(anonymous namespace)"

struct walk {
	const char *at, *end;
	char *out;
	size_t used, last, before_last; /* where the last component begins, and the one before it */
	bool is_function; /* something was seen that only functions of C++ and Rust have */
};

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
	       (unsigned char)c >= 0x80;
}

static bool begins(const char *at, const char *end, const char *prefix)
{
	size_t length = strlen(prefix);

	return (size_t)(end - at) >= length && !memcmp(at, prefix, length);
}

static bool begins_word(const char *at, const char *end, const char *word)
{
	size_t length = strlen(word);

	return begins(at, end, word) && (at + length == end || !is_word(at[length]));
}

/* `at` is one of ( [ {: the place behind its partner, NULL if it has none. */
static const char *skip_group(const char *at, const char *end)
{
	size_t depth = 0;

	for (; at < end; at++) {
		if (*at == '(' || *at == '[' || *at == '{')
			depth++;
		else if ((*at == ')' || *at == ']' || *at == '}') && --depth == 0)
			return at + 1;
	}
	return NULL;
}

/* Behind `operator`, at its blank: a conversion to a type, which ends at the parameters. */
static const char *skip_conversion(const char *at, const char *end)
{
	size_t depth = 0;

	for (; at < end; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && depth && at[-1] != '-')
			depth--;
		else if (begins(at, end, ANONYMOUS))
			at += sizeof ANONYMOUS - 2;
		else if (*at == '(' && depth == 0)
			break;
	}
	return at;
}

/* The place behind the operator's name that begins at `at`, or `at` if none does. */
static const char *skip_operator(const char *at, const char *end)
{
	static const char *const signs[] = {
		"()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "==", "!=", "&&", "||", "++", "--",
		"+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", " new[]", " new", " delete[]", " delete", " co_await",
		"+", "-", "*", "/", "%", "^", "&", "|", "~", "!", "=", "<", ">", ",",
	};
	const char *name = at + strlen("operator");

	if (!begins_word(at, end, "operator"))
		return at;
	if (begins(name, end, "\"\"")) {
		for (name += 2; name < end && (*name == ' ' || is_word(*name)); name++)
			;
		return name;
	}
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (begins(name, end, signs[i]) && (signs[i][0] != ' ' || begins_word(name, end, signs[i])))
			return name + strlen(signs[i]);
	return name < end && *name == ' ' ? skip_conversion(name + 1, end) : at;
}

/* The length of `<`, `<<`, `>=` ... when it compares or shifts: demanglers put the operands in parentheses, and
 * `)>(` in one more pair. */
static size_t comparison(const char *begin, const char *at, const char *end)
{
	size_t length = 1;

	if (at == begin || at[-1] != ')')
		return 0;
	while (length < 3 && at + length < end && strchr("<=>", at[length]))
		length++;
	return at + length < end && at[length] == '(' && (*at == '<' || length > 1) ? length : 0;
}

/* `at` is the < of template arguments: the place behind their end, NULL if there is none. */
static const char *skip_arguments(const char *at, const char *end)
{
	const char *begin = at, *behind, *after_operator = NULL;
	size_t depth = 0;

	while (at < end) {
		if (is_word(*at) && (at == begin || !is_word(at[-1])) && (behind = skip_operator(at, end)) != at) {
			after_operator = at = behind;
			continue;
		}
		if (*at == '(' || *at == '[' || *at == '{') {
			at = skip_group(at, end);
			if (!at)
				return NULL;
			continue;
		}
		if ((*at == '<' || *at == '>') && at != after_operator && comparison(begin, at, end)) {
			at += comparison(begin, at, end);
			continue;
		}
		if (*at == '<')
			depth++;
		else if (*at == '>' && at[-1] != '-' && --depth == 0)
			return at + 1;
		at++;
	}
	return NULL;
}

static void keep(struct walk *walk, const char *behind)
{
	size_t bytes = (size_t)(behind - walk->at);

	memcpy(walk->out + walk->used, walk->at, bytes);
	walk->used += bytes;
	walk->at = behind;
}

static bool keep_group(struct walk *walk)
{
	const char *behind = skip_group(walk->at, walk->end);

	if (behind)
		keep(walk, behind);
	return behind;
}

/* What came so far was not the name yet. */
static void restart(struct walk *walk)
{
	walk->used = walk->last = walk->before_last = 0;
	walk->at++;
}

static bool word(struct walk *walk)
{
	const char *behind = skip_operator(walk->at, walk->end);

	if (behind != walk->at) {
		keep(walk, behind);
		return true;
	}
	if (begins_word(walk->at, walk->end, "decltype")) {
		walk->at += strlen("decltype");
		walk->at += walk->at < walk->end && *walk->at == ' ';
		behind = walk->at < walk->end && *walk->at == '(' ? skip_group(walk->at, walk->end) : NULL;
		walk->at = behind;
		return behind;
	}
	for (behind = walk->at; behind < walk->end && (is_word(*behind) || *behind == '.' || *behind == '@'); behind++)
		;
	keep(walk, behind);
	return true;
}

static bool arguments(struct walk *walk)
{
	const char *behind = skip_arguments(walk->at, walk->end);

	if (!behind)
		return false;
	walk->is_function = true;
	if (walk->used == 0) { /* <Type as Trait>:: of Rust */
		keep(walk, behind);
		return true;
	}
	if (walk->used > 2 && walk->used == walk->last) { /* f::<Type> of Rust */
		walk->used -= 2;
		walk->last = walk->before_last;
	}
	walk->at = behind;
	return true;
}

static const char *skip_qualifiers(const char *at, const char *end)
{
	static const char *const qualifiers[] = {"const", "volatile", "noexcept", "restrict", "&&", "&"};
	const char *before;

	do {
		before = at;
		for (size_t i = 0; i < sizeof qualifiers / sizeof *qualifiers; i++)
			if (begins(at, end, " ") && begins_word(at + 1, end, qualifiers[i]))
				at += 1 + strlen(qualifiers[i]);
	} while (at != before);
	return at;
}

/* At the ( of parameters. Behind them, another component may follow (f(int)::local), or nothing of the name. */
static bool parameters(struct walk *walk)
{
	const char *behind = skip_group(walk->at, walk->end);

	if (!behind)
		return false;
	behind = skip_qualifiers(behind, walk->end);
	walk->is_function = true;
	walk->at = behind;
	if (behind == walk->end || begins(behind, walk->end, "::"))
		return true;
	walk->at = walk->end;
	return *behind == ')' || *behind == '.' || *behind == '@' || begins(behind, walk->end, " [");
}

static bool parenthesis(struct walk *walk)
{
	if (begins(walk->at, walk->end, ANONYMOUS)) {
		keep(walk, walk->at + sizeof ANONYMOUS - 1);
		return true;
	}
	if (walk->used > 0)
		return parameters(walk);
	walk->at++; /* a declarator: void (*f())() */
	return true;
}

static void blank(struct walk *walk)
{
	if (walk->used && begins(walk->at, walk->end, " <"))
		walk->at++; /* operator< <int> */
	else if (walk->used && begins(walk->at, walk->end, " ["))
		walk->at = walk->end; /* f [clone .cold] */
	else
		restart(walk);
}

static bool step(struct walk *walk)
{
	char c = *walk->at;

	if (is_word(c))
		return word(walk);
	switch (c) {
	case ':':
		if (!begins(walk->at, walk->end, "::"))
			return false;
		keep(walk, walk->at + 2);
		walk->before_last = walk->last;
		walk->last = walk->used;
		walk->is_function = true;
		return true;
	case '<':
		return arguments(walk);
	case '(':
		return parenthesis(walk);
	case '{':
	case '[':
		return keep_group(walk);
	case ' ':
		blank(walk);
		return true;
	case '*':
	case '&':
		restart(walk);
		return true;
	case '~':
	case '\'':
		keep(walk, walk->at + 1);
		return true;
	default:
		return false;
	}
}

size_t cxx_name(const char *text, size_t bytes, char *out, size_t *last)
{
	struct walk walk = {.at = text, .end = text + bytes, .out = out};

	while (walk.at < walk.end)
		if (!step(&walk))
			return 0;
	if (!walk.is_function || walk.last == walk.used)
		return 0;
	out[walk.used] = '\0';
	*last = walk.last;
	return walk.used;
}
