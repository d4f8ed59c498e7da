/* SPDX-License-Identifier: MIT */
#include "report/analysis/work_categories.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/builtin_table.h"
#include "report/base/escape.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (CATEGORIES_RULES_MOST / 64)
#define BLANKS " \t\r"

/* The file, as it is; the assembler finds it from the root of the project. */
__asm__(".pushsection .rodata\n"
	".hidden categories_source\n"
	".global categories_source\n"
	"categories_source:\n"
	".incbin \"report/analysis/work_categories.rules\"\n"
	".byte 0\n"
	".popsection\n");
extern const char categories_source[] __attribute__((visibility("hidden")));

enum condition { OF_KERNEL, OF_MEMCPY, OF_MEMSET, OF_AROUND, CONDITIONS };

static const char *const conditions[CONDITIONS] = { "kernel", "memcpy", "memset", "around" };

struct rule {
	const char *patterns[CONDITIONS]; /* NULL: not asked for */
	uint8_t category;
};

struct categories {
	char *text; /* of the file, cut into words */
	const char *path;
	const char *names[CATEGORIES_MOST];
	unsigned count, rule_count;
	struct rule rules[CATEGORIES_RULES_MOST];
};

/* Which rules something holds for. */
struct matches {
	uint64_t words[WORDS];
};

bool category_matches(const char *pattern, const char *name, size_t length)
{
	const char *star = NULL;
	size_t at = 0, after = 0;

	while (at < length) {
		if (*pattern == '*') {
			star = pattern++;
			after = at;
		} else if (*pattern == '?' ||
			   (*pattern && tolower((unsigned char)*pattern) == tolower((unsigned char)name[at]))) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star + 1;
			at = ++after;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* A word of the file, in a sentence for the terminal. */
static const char *shown(const char *word)
{
	static char text[64];

	visible(text, sizeof text, word, strlen(word), true);
	return text;
}

static uint8_t category_named(struct categories *categories, const char *name, unsigned line)
{
	for (unsigned i = 0; i < categories->count; i++)
		if (strcmp(categories->names[i], name) == 0)
			return (uint8_t)i;
	if (categories->count == CATEGORIES_MOST)
		fatal(STATUS_USAGE, "%s:%u: `%s` is one category more than the %u that there is room for",
			categories->path, line, shown(name), CATEGORIES_MOST - 1);
	categories->names[categories->count] = name;
	return (uint8_t)categories->count++;
}

static void read_conditions(struct categories *categories, struct rule *rule, char **rest, unsigned line)
{
	const char *word, *pattern;
	unsigned kind, work = 0;

	while ((word = strtok_r(NULL, BLANKS, rest))) {
		for (kind = 0; kind < CONDITIONS && strcmp(conditions[kind], word) != 0; kind++)
			;
		if (kind == CONDITIONS)
			fatal(STATUS_USAGE, "%s:%u: `%s` is no condition; there are kernel, memcpy, memset and around",
				categories->path, line, shown(word));
		pattern = strtok_r(NULL, BLANKS, rest);
		if (!pattern)
			fatal(STATUS_USAGE, "%s:%u: `%s` needs a pattern behind it, such as *gemm*", categories->path, line, word);
		if (rule->patterns[kind])
			fatal(STATUS_USAGE, "%s:%u: `%s` stands twice; a rule has one pattern for it, write a line for each",
				categories->path, line, word);
		rule->patterns[kind] = pattern;
		work += kind != OF_AROUND;
	}
	if (work > 1)
		fatal(STATUS_USAGE, "%s:%u: nothing is a kernel, a memcpy and a memset at once; write a line for each",
			categories->path, line);
	if (!work && !rule->patterns[OF_AROUND])
		fatal(STATUS_USAGE, "%s:%u: a rule is CATEGORY CONDITION PATTERN, such as `GEMM kernel *gemm*`",
			categories->path, line);
}

static void read_line(void *context, char *text, unsigned line)
{
	struct categories *categories = context;
	struct rule *rule = &categories->rules[categories->rule_count];
	char *rest, *name = strtok_r(text, BLANKS, &rest);

	if (!name || *name == '#')
		return;
	if (categories->rule_count == CATEGORIES_RULES_MOST)
		fatal(STATUS_USAGE, "%s:%u: one rule more than the %u that there is room for", categories->path, line,
			CATEGORIES_RULES_MOST);
	rule->category = category_named(categories, name, line);
	read_conditions(categories, rule, &rest, line);
	categories->rule_count++;
}

struct categories *categories_read(const char *path)
{
	struct categories *categories = need(sizeof *categories);

	categories->path = path ? path : "built-in categories";
	categories->text = text_table_read(path, categories_source, "categories");
	categories->names[categories->count++] = CATEGORY_OTHER_NAME;
	text_table_lines(categories->text, read_line, categories);
	if (!categories->rule_count)
		fatal(STATUS_USAGE, "%s: no rule is in it; a rule is CATEGORY CONDITION PATTERN", categories->path);
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

static void add(struct matches *to, const struct matches *from)
{
	for (unsigned i = 0; i < WORDS; i++)
		to->words[i] |= from->words[i];
}

/* The rules whose pattern of that condition matches. */
static struct matches match(const struct categories *categories, enum condition condition, struct text name)
{
	struct matches matches = { .words = { 0 } };

	for (unsigned i = 0; i < categories->rule_count; i++) {
		const char *pattern = categories->rules[i].patterns[condition];

		if (pattern && category_matches(pattern, name.bytes, name.length))
			matches.words[i / 64] |= (uint64_t)1 << i % 64;
	}
	return matches;
}

/* What is asked of the same names again and again. */
struct looked_up {
	const struct categories *categories;
	const struct texts *texts;
	struct matches *around; /* by text */
	bool *known;
	struct matches any_around; /* rules that do not ask what is around, and those that ask for no work */
	struct matches plain;
};

static const struct matches *around_of(struct looked_up *up, uint32_t text)
{
	if (!up->known[text])
		up->around[text] = match(up->categories, OF_AROUND, text_of(up->texts, text));
	up->known[text] = true;
	return &up->around[text];
}

static uint8_t first(const struct categories *categories, const struct matches *a, const struct matches *b)
{
	for (unsigned i = 0; i < WORDS; i++)
		if (a->words[i] & b->words[i])
			return categories->rules[64 * i + (unsigned)__builtin_ctzll(a->words[i] & b->words[i])].category;
	return CATEGORY_OTHER;
}

static uint8_t of_node(struct looked_up *up, const struct node *node, const struct matches *around)
{
	const struct categories *categories = up->categories;
	const enum condition condition = node->kind == NODE_KERNEL   ? OF_KERNEL
					 : node->kind == NODE_MEMCPY ? OF_MEMCPY
					 : node->kind == NODE_MEMSET ? OF_MEMSET
								     : OF_AROUND;
	struct matches holds = up->any_around, work = up->plain;

	add(&holds, around);
	if (condition != OF_AROUND) {
		struct matches named = match(categories, condition, text_of(up->texts, node->name));

		add(&work, &named);
	}
	return first(categories, &holds, &work);
}

static struct looked_up look_up(const struct categories *categories, const struct tree *tree, const struct texts *texts)
{
	struct looked_up up = { .categories = categories, .texts = texts };
	uint32_t last = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		last = tree->nodes[id].name > last ? tree->nodes[id].name : last;
		last = tree->nodes[id].class > last ? tree->nodes[id].class : last;
	}
	up.around = need(((size_t)last + 1) * sizeof *up.around);
	up.known = need((size_t)last + 1);
	for (unsigned i = 0; i < categories->rule_count; i++) {
		const struct rule *rule = &categories->rules[i];
		const bool plain = !rule->patterns[OF_KERNEL] && !rule->patterns[OF_MEMCPY] && !rule->patterns[OF_MEMSET];

		up.any_around.words[i / 64] |= (uint64_t)!rule->patterns[OF_AROUND] << i % 64;
		up.plain.words[i / 64] |= (uint64_t)plain << i % 64;
	}
	return up;
}

uint8_t *categories_of_tree(const struct categories *categories, const struct tree *tree, const struct texts *texts)
{
	struct looked_up up = look_up(categories, tree, texts);
	struct matches *around = need(tree->count * sizeof *around); /* by node: of what it lies in, and of itself */
	uint8_t *result = need(tree->count);

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		around[id] = around[node->parent];
		if (node_kind_class(node->kind) == NODE_RANGES) {
			add(&around[id], around_of(&up, node->name));
			if (node->class)
				add(&around[id], around_of(&up, node->class));
		}
		result[id] = of_node(&up, node, &around[id]);
	}
	free(around);
	free(up.around);
	free(up.known);
	return result;
}
