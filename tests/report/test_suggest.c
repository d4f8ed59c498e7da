/* SPDX-License-Identifier: MIT
 * test_suggest.c: which known name is nearest to a misspelt word.
 */
#include "report/text/suggest.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct suggestion suggest_among(const char *word, const char *const *names)
{
	struct suggestion near = suggest_for(word, strlen(word));

	for (; *names; names++)
		suggest_offer(&near, *names);
	return near;
}

static const char *const names[] = { "tree", "table", "critical", "critical-path", "gpu_total_ns",
	"gpu_self_ns", "gpu self", "id", "%", "", NULL };

static const struct {
	const char *word, *nearest;
} words[] = {
	{ "tre", "tree" },
	{ "treee", "tree" },
	{ "tere", "tree" },
	{ "TREE", "tree" },
	{ "tabel", "table" },
	{ "criticla", "critical" },
	{ "critical-pth", "critical-path" },
	{ "crit", "critical" },
	{ "gpu_total", "gpu_total_ns" },
	{ "gpu_totl", "gpu_total_ns" },
	{ "gpu slef", "gpu self" },
	{ "gpu_slef_ns", "gpu_self_ns" },
	{ "xy", "" },
	{ "x", "" },
	{ "", "" },
	{ "nonsense", "" },
	{ "trxx", "" },
};

START_TEST(the_nearest_name_is_suggested_if_it_is_near)
{
	ck_assert_str_eq(suggest_among(words[_i].word, names).best, words[_i].nearest);
}
END_TEST

START_TEST(of_equally_near_names_the_first_is_suggested)
{
	ck_assert_str_eq(
		suggest_among("stap", (const char *const[]){ "step", "stop", NULL }).best, "step");
	ck_assert_str_eq(
		suggest_among("stap", (const char *const[]){ "stop", "step", NULL }).best, "stop");
}
END_TEST

START_TEST(a_word_is_read_up_to_its_length)
{
	struct suggestion near = suggest_for("tre=5", 3);

	suggest_offer(&near, "tree");
	ck_assert_str_eq(near.best, "tree");
}
END_TEST

START_TEST(words_and_names_of_any_length_are_survived)
{
	char word[4 * SUGGEST_BYTES];

	memset(word, 'a', sizeof word);
	for (size_t i = 0; i < sizeof word; i++)
		for (size_t j = i < 2 ? 0 : i - 2; j < sizeof word && j < i + 2; j++) {
			char name[4 * SUGGEST_BYTES + 1] = "";
			struct suggestion near = suggest_for(word, i);

			memset(name, 'a', j);
			suggest_offer(&near, name);
			ck_assert(!*near.best || strlen(near.best) == j);
		}
}
END_TEST

START_TEST(the_sentence_ends_with_the_name_or_else_as_it_did)
{
	struct suggestion near = suggest_among("tre", names),
			  far = suggest_among("nonsense", names);

	ck_assert_str_eq(suggest_text(&near, "see --help"), "; did you mean `tree`?");
	ck_assert_str_eq(suggest_text(&far, "see --help"), "; see --help");
	ck_assert_str_eq(suggest_text(&far, NULL), "");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("suggest");
	TCase *cases = tcase_create("suggest");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(cases, the_nearest_name_is_suggested_if_it_is_near, 0,
		sizeof words / sizeof *words);
	tcase_add_test(cases, of_equally_near_names_the_first_is_suggested);
	tcase_add_test(cases, a_word_is_read_up_to_its_length);
	tcase_add_test(cases, words_and_names_of_any_length_are_survived);
	tcase_add_test(cases, the_sentence_ends_with_the_name_or_else_as_it_did);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
