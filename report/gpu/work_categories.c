/* SPDX-License-Identifier: MIT */
#include "report/gpu/work_categories.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/escape.h"
#include "report/symbols/demangle.h"
#include "report/text/builtin_table.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (CATEGORIES_RULES_MAX / 64)
#define BLANKS " \t\r"
#define SHORT_NAME 1024 /* bytes of a name that is folded without an allocation */

/* Includes the text of the rules. The assembler finds the file from the project's root. */
__asm__(".pushsection .rodata\n"
	".hidden categories_source\n"
	".global categories_source\n"
	"categories_source:\n"
	".incbin \"report/gpu/work_categories.rules\"\n"
	".byte 0\n"
	".popsection\n");
extern const char categories_source[] __attribute__((visibility("hidden")));

/* The words of a rule: the conditions, and `not`, which excludes names of kernels. */
enum { EXCEPT = CATEGORY_CONDITIONS, WORD_KINDS };
static const char *const words[WORD_KINDS] = { "kernel", "memcpy", "memset", "around", "not" };

struct pattern {
	const char *text; /* in lower case; NULL: no such condition */
	/* If the pattern is *TEXT* without other wildcards: TEXT, which is found much faster. Else
	 * NULL. */
	const char *contained;
	size_t length; /* of `contained` */
};

struct category_rule {
	struct pattern patterns[WORD_KINDS];
	uint8_t category;
};

/* A text of rules, cut into words: a file, or the built-in rules that it includes. */
struct rules_text {
	char *text;
	const char *path;
};

struct categories {
	struct rules_text file, built_in;
	const struct rules_text *reading; /* the one that is being read */
	const char *names[CATEGORIES_MAX];
	unsigned count, rule_count;
	unsigned communication;     /* category; CATEGORIES_MAX: no rule names it */
	unsigned communication_end; /* index + 1 of its last rule for kernels; 0: none */
	struct category_rule rules[CATEGORIES_RULES_MAX];
	/* Rules without a kernel, memcpy or memset pattern, except those of communication. They
	 * apply to GPU work of any name. */
	struct matching_rules no_name_for_gpu;
	/* Rules without a kernel, memcpy or memset pattern, also those of communication. They apply
	 * to the CPU time of ranges. */
	struct matching_rules no_name_for_ranges;
	struct matching_rules no_around; /* rules without an around pattern */
};

static bool character_matches(char pattern, char character)
{
	return pattern == '?' ||
	       (pattern && tolower((unsigned char)pattern) == tolower((unsigned char)character));
}

bool category_matches(const char *pattern, const char *name, size_t length)
{
	const char *star = NULL;
	size_t at = 0, after = 0;

	while (at < length) {
		if (*pattern == '*') {
			star = pattern++;
			after = at;
		} else if (character_matches(*pattern, name[at])) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star + 1;
			at = ++after;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}

/* Returns a word of the file, escaped for a message. The buffer is static. */
static const char *printable_category_word(const char *word)
{
	static char text[64];

	escape_text(text, sizeof text, word, strlen(word), true);
	return text;
}

static uint8_t category_named(struct categories *categories, const char *name, unsigned line)
{
	for (unsigned i = 0; i < categories->count; i++)
		if (strcmp(categories->names[i], name) == 0)
			return (uint8_t)i;
	if (categories->count == CATEGORIES_MAX)
		fatal(STATUS_USAGE, "%s:%u: `%s`: too many categories; the limit is %u",
			categories->reading->path, line, printable_category_word(name),
			CATEGORIES_MAX - 1);
	if (strcmp(name, CATEGORY_COMMUNICATION_NAME) == 0)
		categories->communication = categories->count;
	categories->names[categories->count] = name;
	return (uint8_t)categories->count++;
}

static struct pattern compile_pattern(char *text)
{
	const size_t length = strlen(text);
	struct pattern pattern = { .text = text };

	for (char *at = text; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	if (length > 2 && *text == '*' && strcspn(text + 1, "*?") == length - 2 &&
		text[length - 1] == '*') {
		pattern.contained = text + 1;
		pattern.length = length - 2;
	}
	return pattern;
}

static void read_condition(const struct categories *categories, struct category_rule *rule,
	const char *word, char **rest, unsigned line)
{
	const char *path = categories->reading->path;
	char *pattern;
	unsigned kind;

	for (kind = 0; kind < WORD_KINDS && strcmp(words[kind], word) != 0; kind++)
		;
	if (kind == WORD_KINDS)
		fatal(STATUS_USAGE,
			"%s:%u: `%s` is not a condition; conditions are kernel, memcpy, memset, "
			"around and not",
			path, line, printable_category_word(word));
	pattern = strtok_r(NULL, BLANKS, rest);
	if (!pattern)
		fatal(STATUS_USAGE, "%s:%u: `%s` must be followed by a pattern such as *gemm*",
			path, line, word);
	if (rule->patterns[kind].text)
		fatal(STATUS_USAGE, "%s:%u: `%s` is given twice; write one line for each pattern",
			path, line, word);
	rule->patterns[kind] = compile_pattern(pattern);
}

/* Ends the program if the conditions of a rule do not go together. */
static void check_conditions(
	const struct categories *categories, const struct category_rule *rule, unsigned line)
{
	const struct pattern *patterns = rule->patterns;
	const char *path = categories->reading->path;
	const int work = !!patterns[OF_KERNEL].text + !!patterns[OF_MEMCPY].text +
			 !!patterns[OF_MEMSET].text;

	if (work > 1)
		fatal(STATUS_USAGE,
			"%s:%u: kernel, memcpy and memset exclude each other; write one line for "
			"each",
			path, line);
	if (patterns[EXCEPT].text && !patterns[OF_KERNEL].text)
		fatal(STATUS_USAGE,
			"%s:%u: `not` excludes names from those of `kernel`; write `kernel "
			"*gemm* not *igemm*`",
			path, line);
	if (!work && !patterns[OF_AROUND].text)
		fatal(STATUS_USAGE,
			"%s:%u: a rule is CATEGORY CONDITION PATTERN, such as `GEMM kernel *gemm*`",
			path, line);
	if (rule->category == categories->communication && work &&
		(!patterns[OF_KERNEL].text || patterns[OF_AROUND].text))
		fatal(STATUS_USAGE,
			"%s:%u: the name of a kernel alone decides if it is communication; write "
			"`communication kernel *nccl*`",
			path, line);
}

static void read_rules(struct categories *categories, const struct rules_text *rules);

static void include_built_in(struct categories *categories, char **rest, unsigned line)
{
	const struct rules_text *file = categories->reading;
	const char *what = strtok_r(NULL, BLANKS, rest);

	if (!what || strcmp(what, "built-in") != 0 || strtok_r(NULL, BLANKS, rest))
		fatal(STATUS_USAGE,
			"%s:%u: only the built-in rules can be included; write "
			"`include built-in`",
			file->path, line);
	if (categories->built_in.text)
		fatal(STATUS_USAGE, "%s:%u: the built-in rules are included twice", file->path,
			line);
	categories->built_in = (struct rules_text){
		builtin_table_read(NULL, categories_source, "categories"), "built-in categories"
	};
	read_rules(categories, &categories->built_in);
	categories->reading = file;
}

static void read_rule_line(void *context, char *text, unsigned line)
{
	struct categories *categories = context;
	struct category_rule *rule = &categories->rules[categories->rule_count];
	char *rest, *name = strtok_r(text, BLANKS, &rest);
	const char *word;

	if (!name || *name == '#')
		return;
	if (strcmp(name, "include") == 0) {
		include_built_in(categories, &rest, line);
		return;
	}
	if (categories->rule_count == CATEGORIES_RULES_MAX)
		fatal(STATUS_USAGE, "%s:%u: too many rules; the limit is %u",
			categories->reading->path, line, CATEGORIES_RULES_MAX);
	rule->category = category_named(categories, name, line);
	while ((word = strtok_r(NULL, BLANKS, &rest)))
		read_condition(categories, rule, word, &rest, line);
	check_conditions(categories, rule, line);
	categories->rule_count++;
}

static void read_rules(struct categories *categories, const struct rules_text *rules)
{
	categories->reading = rules;
	builtin_table_for_lines(rules->text, read_rule_line, categories);
}

static void sort_rules(struct categories *categories)
{
	struct matching_rules communicating = { .words = { 0 } };

	for (unsigned i = 0; i < categories->rule_count; i++) {
		const struct category_rule *rule = &categories->rules[i];
		const uint64_t bit = (uint64_t)1 << i % 64;

		if (!rule->patterns[OF_KERNEL].text && !rule->patterns[OF_MEMCPY].text &&
			!rule->patterns[OF_MEMSET].text)
			categories->no_name_for_ranges.words[i / 64] |= bit;
		if (rule->category == categories->communication)
			communicating.words[i / 64] |= bit;
		if (rule->category == categories->communication && rule->patterns[OF_KERNEL].text)
			categories->communication_end = i + 1;
		if (!rule->patterns[OF_AROUND].text)
			categories->no_around.words[i / 64] |= bit;
	}
	for (unsigned i = 0; i < WORDS; i++)
		categories->no_name_for_gpu.words[i] = categories->no_name_for_ranges.words[i] &
						       ~communicating.words[i];
}

struct categories *categories_read(const char *path)
{
	struct categories *categories = xcalloc(sizeof *categories);

	categories->communication = CATEGORIES_MAX;
	categories->names[categories->count++] = CATEGORY_OTHER_NAME;
	categories->file = (struct rules_text){ builtin_table_read(
							path, categories_source, "categories"),
		path ? path : "built-in categories" };
	read_rules(categories, &categories->file);
	if (!categories->rule_count)
		fatal(STATUS_USAGE,
			"%s: the file has no rules; a rule is CATEGORY CONDITION PATTERN",
			categories->file.path);
	sort_rules(categories);
	return categories;
}

void categories_free(struct categories *categories)
{
	if (!categories)
		return;
	free(categories->file.text);
	free(categories->built_in.text);
	free(categories);
}

unsigned categories_count(const struct categories *categories)
{
	return categories->count;
}

const char *categories_name(const struct categories *categories, unsigned category)
{
	return categories->names[category];
}

/* `name` is in lower case. */
static bool pattern_matches(const struct pattern *pattern, const char *name, size_t length)
{
	return pattern->contained
		       ? memmem(name, length, pattern->contained, pattern->length) != NULL
		       : category_matches(pattern->text, name, length);
}

static bool rule_matches(const struct category_rule *rule, enum category_condition condition,
	const char *name, size_t length)
{
	const struct pattern *pattern = &rule->patterns[condition],
			     *except = &rule->patterns[EXCEPT];

	return pattern->text && pattern_matches(pattern, name, length) &&
	       !(condition == OF_KERNEL && except->text && pattern_matches(except, name, length));
}

/* Returns a name in lower case, in `near` if it fits, else in memory to be freed. */
static char *fold_name(const char *name, size_t length, char near[SHORT_NAME])
{
	char *folded = length > SHORT_NAME ? xcalloc(length) : near;

	for (size_t i = 0; i < length; i++)
		folded[i] = (char)tolower((unsigned char)name[i]);
	return folded;
}

struct matching_rules categories_match(const struct categories *categories,
	enum category_condition condition, const char *name, size_t length)
{
	struct matching_rules matches = { .words = { 0 } };
	char near[SHORT_NAME], *folded = fold_name(name, length, near);

	for (unsigned i = 0; i < categories->rule_count; i++)
		if (rule_matches(&categories->rules[i], condition, folded, length))
			matches.words[i / 64] |= (uint64_t)1 << i % 64;
	if (folded != near)
		free(folded);
	return matches;
}

/* Returns the category of the first rule that is in `a` and `b`; CATEGORY_OTHER if there is
 * none. */
static uint8_t first_in_both(const struct categories *categories, const struct matching_rules *a,
	const struct matching_rules *b)
{
	for (unsigned i = 0; i < WORDS; i++)
		if (a->words[i] & b->words[i])
			return categories
				->rules[64 * i +
					(unsigned)__builtin_ctzll(a->words[i] & b->words[i])]
				.category;
	return CATEGORY_OTHER;
}

static struct matching_rules unite(const struct matching_rules *a, const struct matching_rules *b)
{
	struct matching_rules both = *a;

	for (unsigned i = 0; i < WORDS; i++)
		both.words[i] |= b->words[i];
	return both;
}

/* Returns the category of a kernel by the rules without a condition on ranges. */
static uint8_t category_of_name(
	const struct categories *categories, const struct matching_rules *by_name)
{
	return first_in_both(categories, by_name, &categories->no_around);
}

uint8_t category_by_first_rule(const struct categories *categories, enum category_condition kind,
	const struct matching_rules *by_name, const struct matching_rules *around)
{
	const struct matching_rules around_applies = unite(&categories->no_around, around),
				    name_applies = unite(kind == OF_AROUND
								 ? &categories->no_name_for_ranges
								 : &categories->no_name_for_gpu,
					    by_name);

	if (kind == OF_KERNEL && category_of_name(categories, by_name) == categories->communication)
		return (uint8_t)categories->communication;
	return first_in_both(categories, &name_applies, &around_applies);
}

/* Applies the same rules as category_of_name, but only those up to the last one of communication.
 * `name` is in lower case. */
static bool is_communication_name(
	const struct categories *categories, const char *name, size_t length)
{
	for (unsigned i = 0; i < categories->communication_end; i++) {
		const struct category_rule *rule = &categories->rules[i];

		if (!rule->patterns[OF_AROUND].text && rule_matches(rule, OF_KERNEL, name, length))
			return rule->category == categories->communication;
	}
	return false;
}

bool categories_is_communication(const struct categories *categories, struct trace_text name)
{
	static char full[DEMANGLE_OUTPUT];
	char near[SHORT_NAME], *folded;
	size_t length;
	bool result;

	if (!categories || !categories->communication_end)
		return false;
	if (!name.length)
		name = (struct trace_text){ CATEGORY_NO_KERNEL_NAME,
			strlen(CATEGORY_NO_KERNEL_NAME), true };
	length = demangle(DEMANGLE_FULL, name.bytes, name.length, full, sizeof full);
	folded = fold_name(length ? full : name.bytes, length ? length : name.length, near);
	result = is_communication_name(categories, folded, length ? length : name.length);
	if (folded != near)
		free(folded);
	return result;
}
