/* SPDX-License-Identifier: MIT */
#include "report/analysis/work_categories.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/builtin_table.h"
#include "report/base/escape.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (CATEGORIES_RULES_MAX / 64)
#define BLANKS " \t\r"

/* Includes the text of the rules. The assembler finds the file from the project's root. */
__asm__(".pushsection .rodata\n"
	".hidden categories_source\n"
	".global categories_source\n"
	"categories_source:\n"
	".incbin \"report/analysis/work_categories.rules\"\n"
	".byte 0\n"
	".popsection\n");
extern const char categories_source[] __attribute__((visibility("hidden")));

enum rule_condition { OF_KERNEL, OF_MEMCPY, OF_MEMSET, OF_AROUND, CONDITIONS };

static const char *const conditions[CONDITIONS] = { "kernel", "memcpy", "memset", "around" };

struct category_rule {
	const char *patterns[CONDITIONS]; /* NULL: no such condition */
	uint8_t category;
};

struct categories {
	char *text; /* of the file, cut into words */
	const char *path;
	const char *names[CATEGORIES_MAX];
	unsigned count, rule_count;
	struct category_rule rules[CATEGORIES_RULES_MAX];
};

/* A bit set of rules. */
struct matching_rules {
	uint64_t words[WORDS];
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
			categories->path, line, printable_category_word(name), CATEGORIES_MAX - 1);
	categories->names[categories->count] = name;
	return (uint8_t)categories->count++;
}

static void read_conditions(
	struct categories *categories, struct category_rule *rule, char **rest, unsigned line)
{
	const char *word, *pattern;
	unsigned kind, work = 0;

	while ((word = strtok_r(NULL, BLANKS, rest))) {
		for (kind = 0; kind < CONDITIONS && strcmp(conditions[kind], word) != 0; kind++)
			;
		if (kind == CONDITIONS)
			fatal(STATUS_USAGE,
				"%s:%u: `%s` is not a condition; conditions are kernel, memcpy, "
				"memset and around",
				categories->path, line, printable_category_word(word));
		pattern = strtok_r(NULL, BLANKS, rest);
		if (!pattern)
			fatal(STATUS_USAGE,
				"%s:%u: `%s` must be followed by a pattern such as *gemm*",
				categories->path, line, word);
		if (rule->patterns[kind])
			fatal(STATUS_USAGE,
				"%s:%u: `%s` is given twice; write one line for each pattern",
				categories->path, line, word);
		rule->patterns[kind] = pattern;
		work += kind != OF_AROUND;
	}
	if (work > 1)
		fatal(STATUS_USAGE,
			"%s:%u: kernel, memcpy and memset exclude each other; write one line for "
			"each",
			categories->path, line);
	if (!work && !rule->patterns[OF_AROUND])
		fatal(STATUS_USAGE,
			"%s:%u: a rule is CATEGORY CONDITION PATTERN, such as `GEMM kernel *gemm*`",
			categories->path, line);
}

static void read_rule_line(void *context, char *text, unsigned line)
{
	struct categories *categories = context;
	struct category_rule *rule = &categories->rules[categories->rule_count];
	char *rest, *name = strtok_r(text, BLANKS, &rest);

	if (!name || *name == '#')
		return;
	if (categories->rule_count == CATEGORIES_RULES_MAX)
		fatal(STATUS_USAGE, "%s:%u: too many rules; the limit is %u", categories->path,
			line, CATEGORIES_RULES_MAX);
	rule->category = category_named(categories, name, line);
	read_conditions(categories, rule, &rest, line);
	categories->rule_count++;
}

struct categories *categories_read(const char *path)
{
	struct categories *categories = xcalloc(sizeof *categories);

	categories->path = path ? path : "built-in categories";
	categories->text = builtin_table_read(path, categories_source, "categories");
	categories->names[categories->count++] = CATEGORY_OTHER_NAME;
	builtin_table_for_lines(categories->text, read_rule_line, categories);
	if (!categories->rule_count)
		fatal(STATUS_USAGE,
			"%s: the file has no rules; a rule is CATEGORY CONDITION PATTERN",
			categories->path);
	return categories;
}

void categories_free(struct categories *categories)
{
	if (categories)
		free(categories->text);
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

static void add_matches(struct matching_rules *to, const struct matching_rules *from)
{
	for (unsigned i = 0; i < WORDS; i++)
		to->words[i] |= from->words[i];
}

/* Returns the rules whose pattern for `condition` matches `name`. */
static struct matching_rules match_rules(
	const struct categories *categories, enum rule_condition condition, struct string_view name)
{
	struct matching_rules matches = { .words = { 0 } };

	for (unsigned i = 0; i < categories->rule_count; i++) {
		const char *pattern = categories->rules[i].patterns[condition];

		if (pattern && category_matches(pattern, name.bytes, name.length))
			matches.words[i / 64] |= (uint64_t)1 << i % 64;
	}
	return matches;
}

/* Results that are needed again for the same names. */
struct category_lookup {
	const struct categories *categories;
	const struct string_table *texts;
	struct matching_rules *around; /* by text */
	bool *known;
	/* any_around: rules without a condition `around`. plain: rules without one for GPU work. */
	struct matching_rules any_around;
	struct matching_rules plain;
};

static const struct matching_rules *matches_around(struct category_lookup *lookup, uint32_t text)
{
	if (!lookup->known[text])
		lookup->around[text] = match_rules(
			lookup->categories, OF_AROUND, string_table_get(lookup->texts, text));
	lookup->known[text] = true;
	return &lookup->around[text];
}

static uint8_t first_category(const struct categories *categories, const struct matching_rules *a,
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

static uint8_t category_of_node(struct category_lookup *lookup, const struct node *node,
	const struct matching_rules *around)
{
	const struct categories *categories = lookup->categories;
	const enum rule_condition condition = node->kind == NODE_KERNEL   ? OF_KERNEL
					      : node->kind == NODE_MEMCPY ? OF_MEMCPY
					      : node->kind == NODE_MEMSET ? OF_MEMSET
									  : OF_AROUND;
	struct matching_rules holds = lookup->any_around, work = lookup->plain;

	add_matches(&holds, around);
	if (condition != OF_AROUND) {
		struct matching_rules named = match_rules(
			categories, condition, string_table_get(lookup->texts, node->name));

		add_matches(&work, &named);
	}
	return first_category(categories, &holds, &work);
}

static struct category_lookup lookup_new(const struct categories *categories,
	const struct tree *tree, const struct string_table *texts)
{
	struct category_lookup lookup = { .categories = categories, .texts = texts };
	uint32_t last = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		last = tree->nodes[id].name > last ? tree->nodes[id].name : last;
		last = tree->nodes[id].class > last ? tree->nodes[id].class : last;
	}
	lookup.around = xcalloc(((size_t)last + 1) * sizeof *lookup.around);
	lookup.known = xcalloc((size_t)last + 1);
	for (unsigned i = 0; i < categories->rule_count; i++) {
		const struct category_rule *rule = &categories->rules[i];
		const bool plain = !rule->patterns[OF_KERNEL] && !rule->patterns[OF_MEMCPY] &&
				   !rule->patterns[OF_MEMSET];

		lookup.any_around.words[i / 64] |= (uint64_t)!rule->patterns[OF_AROUND] << i % 64;
		lookup.plain.words[i / 64] |= (uint64_t)plain << i % 64;
	}
	return lookup;
}

static void free_category_lookup(struct category_lookup *lookup)
{
	free(lookup->around);
	free(lookup->known);
}

uint8_t *categories_of_tree(const struct categories *categories, const struct tree *tree,
	const struct string_table *texts)
{
	struct category_lookup lookup = lookup_new(categories, tree, texts);
	/* By node: rules whose `around` matches the node or an ancestor. */
	struct matching_rules *around = xcalloc(tree->count * sizeof *around);
	uint8_t *result = xcalloc(tree->count);

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		around[id] = around[node->parent];
		if (node_kind_class(node->kind) == NODE_RANGES)
			add_matches(&around[id], matches_around(&lookup, node->name));
		if (node_kind_class(node->kind) == NODE_RANGES && node->class)
			add_matches(&around[id], matches_around(&lookup, node->class));
		result[id] = category_of_node(&lookup, node, &around[id]);
	}
	free(around);
	free_category_lookup(&lookup);
	return result;
}
