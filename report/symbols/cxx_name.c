/* SPDX-License-Identifier: MIT
 * Parses the text once from left to right. Brackets are skipped. A blank, `*` or `&` outside
 * brackets means that the text before it was the return type, so the name starts again. A
 * parenthesis directly after a name starts its parameters.
 */
#include "report/symbols/cxx_name.h"

#include <stdbool.h>
#include <string.h>

#define ANONYMOUS "(anonymous namespace)"

struct cxx_parser {
	const char *at, *end;
	char *out;
	/* `out`: bytes used; start of the last component; start of the one before it. */
	size_t used, last, before_last;
	bool is_function; /* the text has something that only C++ and Rust functions have */
};

static bool is_identifier_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool starts_with_bytes(const char *at, const char *end, const char *prefix)
{
	size_t length = strlen(prefix);

	return (size_t)(end - at) >= length && !memcmp(at, prefix, length);
}

static bool starts_with_word(const char *at, const char *end, const char *word)
{
	size_t length = strlen(word);

	return starts_with_bytes(at, end, word) &&
	       (at + length == end || !is_identifier_byte(at[length]));
}

/* Returns the end of the group that begins at `at` with one of ( [ {. Returns NULL if it is not
 * closed. */
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

/* Returns the end of a conversion operator's type, which ends at the parameters. `at`: at or
 * after the blank that follows `operator`. */
static const char *skip_conversion(const char *at, const char *end)
{
	size_t depth = 0;

	for (; at < end; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && depth && at[-1] != '-')
			depth--;
		else if (starts_with_bytes(at, end, ANONYMOUS))
			at += sizeof ANONYMOUS - 2;
		else if (*at == '(' && depth == 0)
			break;
	}
	return at;
}

/* What may follow `operator`. A sign comes after all that begin with it. */
static const char *const operators[] = { "()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>",
	"<=", ">=", "->", "==", "!=", "&&", "||", "++", "--",
	"+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", " new[]", " new", " delete[]", " delete",
	" co_await", "+", "-", "*", "/", "%", "^", "&", "|", "~", "!", "=", "<", ">", "," };

/* Returns the end of the operator name that begins at `at`, or `at` if there is none. */
static const char *skip_operator(const char *at, const char *end)
{
	const char *name = at + strlen("operator");

	if (!starts_with_word(at, end, "operator"))
		return at;
	if (starts_with_bytes(name, end, "\"\"")) {
		for (name += 2; name < end && (*name == ' ' || is_identifier_byte(*name)); name++)
			;
		return name;
	}
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		if (starts_with_bytes(name, end, operators[i]) &&
			(operators[i][0] != ' ' || starts_with_word(name, end, operators[i])))
			return name + strlen(operators[i]);
	return name < end && *name == ' ' ? skip_conversion(name + 1, end) : at;
}

/* Returns the length of `<`, `<<`, `>=` and the like if it compares or shifts, else 0.
 * Demanglers put its operands in parentheses, and `>` in an additional pair. */
static size_t comparison_length(const char *begin, const char *at, const char *end)
{
	size_t length = 1;

	if (at == begin || at[-1] != ')')
		return 0;
	while (length < 3 && at + length < end && strchr("<=>", at[length]))
		length++;
	return at + length < end && at[length] == '(' && (*at == '<' || length > 1) ? length : 0;
}

/* Returns the end of the template arguments whose < is at `at`, or NULL if they are not closed. */
static const char *skip_arguments(const char *at, const char *end)
{
	const char *begin = at, *behind, *after_operator = NULL;
	size_t depth = 0;

	while (at < end) {
		if (is_identifier_byte(*at) && (at == begin || !is_identifier_byte(at[-1])) &&
			(behind = skip_operator(at, end)) != at) {
			after_operator = at = behind;
			continue;
		}
		if (*at == '(' || *at == '[' || *at == '{') {
			at = skip_group(at, end);
			if (!at)
				return NULL;
			continue;
		}
		if ((*at == '<' || *at == '>') && at != after_operator &&
			comparison_length(begin, at, end)) {
			at += comparison_length(begin, at, end);
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

static void append_up_to(struct cxx_parser *parser, const char *behind)
{
	size_t bytes = (size_t)(behind - parser->at);

	memcpy(parser->out + parser->used, parser->at, bytes);
	parser->used += bytes;
	parser->at = behind;
}

static bool append_group(struct cxx_parser *parser)
{
	const char *behind = skip_group(parser->at, parser->end);

	if (behind)
		append_up_to(parser, behind);
	return behind;
}

/* Drops the text so far, which was not the name, and skips a character. */
static void restart_name(struct cxx_parser *parser)
{
	parser->used = parser->last = parser->before_last = 0;
	parser->at++;
}

static bool is_symbol_name_byte(char byte)
{
	return is_identifier_byte(byte) || byte == '.' || byte == '@';
}

static bool parse_name_word(struct cxx_parser *parser)
{
	const char *behind = skip_operator(parser->at, parser->end);

	if (behind != parser->at) {
		append_up_to(parser, behind);
		return true;
	}
	if (starts_with_word(parser->at, parser->end, "decltype")) {
		parser->at += strlen("decltype");
		parser->at += parser->at < parser->end && *parser->at == ' ';
		behind = parser->at < parser->end && *parser->at == '('
				 ? skip_group(parser->at, parser->end)
				 : NULL;
		parser->at = behind;
		return behind;
	}
	for (behind = parser->at; behind < parser->end && is_symbol_name_byte(*behind);)
		behind++;
	append_up_to(parser, behind);
	return true;
}

static bool parse_cxx_arguments(struct cxx_parser *parser)
{
	const char *behind = skip_arguments(parser->at, parser->end);

	if (!behind)
		return false;
	parser->is_function = true;
	if (parser->used == 0) { /* <Type as Trait>:: of Rust */
		append_up_to(parser, behind);
		return true;
	}
	if (parser->used > 2 && parser->used == parser->last) { /* f::<Type> of Rust */
		parser->used -= 2;
		parser->last = parser->before_last;
	}
	parser->at = behind;
	return true;
}

static const char *skip_qualifiers(const char *at, const char *end)
{
	static const char *const qualifiers[] = { "const", "volatile", "noexcept", "restrict", "&&",
		"&" };
	const char *before;

	do {
		before = at;
		for (size_t i = 0; i < sizeof qualifiers / sizeof *qualifiers; i++)
			if (starts_with_bytes(at, end, " ") &&
				starts_with_word(at + 1, end, qualifiers[i]))
				at += 1 + strlen(qualifiers[i]);
	} while (at != before);
	return at;
}

/* Skips the parameters at their parenthesis. A further component may follow, as in
 * f(int)::local; other text does not belong to the name. */
static bool parse_cxx_parameters(struct cxx_parser *parser)
{
	const char *behind = skip_group(parser->at, parser->end);

	if (!behind)
		return false;
	behind = skip_qualifiers(behind, parser->end);
	parser->is_function = true;
	parser->at = behind;
	if (behind == parser->end || starts_with_bytes(behind, parser->end, "::"))
		return true;
	parser->at = parser->end;
	return *behind == ')' || *behind == '.' || *behind == '@' ||
	       starts_with_bytes(behind, parser->end, " [");
}

static bool parse_parenthesis(struct cxx_parser *parser)
{
	if (starts_with_bytes(parser->at, parser->end, ANONYMOUS)) {
		append_up_to(parser, parser->at + sizeof ANONYMOUS - 1);
		return true;
	}
	if (parser->used > 0)
		return parse_cxx_parameters(parser);
	parser->at++; /* a declarator: void (*f())() */
	return true;
}

static void parse_blank(struct cxx_parser *parser)
{
	if (parser->used && starts_with_bytes(parser->at, parser->end, " <"))
		parser->at++; /* operator< <int> */
	else if (parser->used && starts_with_bytes(parser->at, parser->end, " ["))
		parser->at = parser->end; /* f [clone .cold] */
	else
		restart_name(parser);
}

static bool parse_step(struct cxx_parser *parser)
{
	char c = *parser->at;

	if (is_identifier_byte(c))
		return parse_name_word(parser);
	switch (c) {
	case ':':
		if (!starts_with_bytes(parser->at, parser->end, "::"))
			return false;
		append_up_to(parser, parser->at + 2);
		parser->before_last = parser->last;
		parser->last = parser->used;
		parser->is_function = true;
		return true;
	case '<':
		return parse_cxx_arguments(parser);
	case '(':
		return parse_parenthesis(parser);
	case '{':
	case '[':
		return append_group(parser);
	case ' ':
		parse_blank(parser);
		return true;
	case '*':
	case '&':
		restart_name(parser);
		return true;
	case '~':
	case '\'':
		append_up_to(parser, parser->at + 1);
		return true;
	default:
		return false;
	}
}

size_t cxx_name(const char *text, size_t bytes, char *out, size_t *last)
{
	struct cxx_parser parser = { .at = text, .end = text + bytes, .out = out };

	while (parser.at < parser.end)
		if (!parse_step(&parser))
			return 0;
	if (!parser.is_function || parser.last == parser.used)
		return 0;
	out[parser.used] = '\0';
	*last = parser.last;
	return parser.used;
}
