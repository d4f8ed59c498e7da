/* SPDX-License-Identifier: MIT
 * test_page_text.c: foreign text in pages, and the hash of a page's scripts.
 */
#include "report/page/page_text.h"
#include "report/page/sha256.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void text_becomes(const char *bytes, size_t length, const char *wanted, bool changed)
{
	struct page_text page = page_text_of(bytes, length);

	ck_assert_str_eq(page.text, wanted);
	ck_assert_uint_eq(page.length, strlen(wanted));
	ck_assert_int_eq(page.changed, changed);
	free(page.text);
}

START_TEST(control_and_direction_characters_are_shown)
{
	text_becomes("", 0, "", false);
	text_becomes("plain \xc2\xb5", 8, "plain \xc2\xb5", false);
	text_becomes("a\0b\x1b[31m", 8, "a\\x00b\\x1b[31m", true);
	text_becomes("\xe2\x80\xae", 3, "\\u202e", true);
	text_becomes("\xff", 1, "\\xff", true);
}
END_TEST

START_TEST(long_texts_keep_begin_and_end)
{
	char text[1200], wanted[1200];

	memset(text, 'x', sizeof text);
	text[0] = 'a';
	text[400] = 'e';
	text[399] = 'e';
	text_becomes(
		text, 400, memcpy(wanted, text, 401) ? (wanted[400] = '\0', wanted) : "", false);
	memset(wanted, 'x', 400);
	wanted[0] = 'a';
	memcpy(wanted + 260, "\xe2\x80\xa6", 3);
	memset(wanted + 263, 'x', 139);
	wanted[263 + 137] = 'e';
	wanted[263 + 138] = 'e';
	wanted[263 + 139] = '\0';
	text_becomes(text, 401, wanted, true);
	for (size_t i = 0; i < 401; i++)
		memcpy(text + 2 * i, "\xc2\xb5", 2);
	text_becomes(
		text, 800, memcpy(wanted, text, 800) ? (wanted[800] = '\0', wanted) : "", false);
}
END_TEST

/* Returns what `write` writes to a pipe. */
static const char *written(
	void (*write)(struct output *out, const char *text, size_t length), const char *text)
{
	static char read_back[4096];
	int ends[2];
	struct output *out = calloc(1, sizeof *out);
	ssize_t count;

	ck_assert_int_eq(pipe(ends), 0);
	out->fd = ends[1];
	write(out, text, strlen(text));
	output_close(out, "a pipe");
	count = read(ends[0], read_back, sizeof read_back - 1);
	close(ends[0]);
	read_back[count > 0 ? count : 0] = '\0';
	return read_back;
}

START_TEST(no_text_ends_a_script_element)
{
	ck_assert_str_eq(written(page_write_json_text, "</script><!-- \"a\\b\" & "),
		"\"\\u003c/script\\u003e\\u003c!-- \\\"a\\\\b\\\" \\u0026 \"");
	ck_assert_str_eq(written(page_write_markup_text, "<a href='x' title=\"y\">&"),
		"&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;");
}
END_TEST

static void write_two_sentences(struct output *out, const char *text, size_t length)
{
	struct json_writer json = { .out = out };

	json_write_begin(&json, '[');
	page_write_sentence(&json, text, length);
	page_write_sentence(&json, "<b>", 3);
	json_write_end(&json, ']');
}

START_TEST(sentences_are_longer_than_names)
{
	static char sentence[PAGE_SENTENCE_CHARACTERS + 2], wanted[sizeof sentence + 32];

	memset(sentence, 'x', PAGE_SENTENCE_CHARACTERS);
	snprintf(wanted, sizeof wanted, "[\"%s\",\"\\u003cb\\u003e\"]", sentence);
	ck_assert_str_eq(written(write_two_sentences, sentence), wanted);
	sentence[PAGE_SENTENCE_CHARACTERS] = 'x';
	ck_assert_uint_eq(strlen(written(write_two_sentences, sentence)),
		PAGE_TEXT_CHARACTERS + strlen("\xe2\x80\xa6") - 1 +
			strlen("[\"\",\"\\u003cb\\u003e\"]"));
}
END_TEST

static void hash_is(const char *text, size_t length, size_t piece, const char *wanted)
{
	char base64[SHA256_BASE64_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	for (size_t at = 0; at < length; at += piece)
		sha256_add(&hash, text + at, length - at < piece ? length - at : piece);
	sha256_end_base64(&hash, base64);
	ck_assert_str_eq(base64, wanted);
}

/* The first three are the examples of FIPS 180-4. */
START_TEST(the_hash_is_sha_256)
{
	static char million[1000000];

	memset(million, 'a', sizeof million);
	hash_is("", 0, 1, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
	hash_is("abc", 3, 1, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
	hash_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 9,
		"JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE=");
	hash_is(million, sizeof million, 977, "zcduXJkU+5KBocfihNc+Z/GAmkiklyAOBG05zMcRLNA=");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("page text");
	TCase *test = tcase_create("page text");
	SRunner *runner;
	int failed;

	tcase_add_test(test, control_and_direction_characters_are_shown);
	tcase_add_test(test, long_texts_keep_begin_and_end);
	tcase_add_test(test, no_text_ends_a_script_element);
	tcase_add_test(test, sentences_are_longer_than_names);
	tcase_add_test(test, the_hash_is_sha_256);
	suite_add_tcase(suite, test);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
