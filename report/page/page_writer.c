/* SPDX-License-Identifier: MIT
 *
 * A browser hashes the exact content of each style and script element, so nothing is added to it,
 * not even a line end.
 */
#include "report/page/page_writer.h"
#include "report/page/page_text.h"
#include "report/page/sha256.h"

static bool is_style(enum page_asset asset)
{
	return asset < PAGE_SCRIPT_BASE;
}

static void write_hashes(
	struct output *out, const enum page_asset *assets, size_t count, bool styles)
{
	for (size_t i = 0; i < count; i++) {
		const struct asset asset = asset_get(assets[i]);
		char base64[SHA256_BASE64_BYTES];
		struct sha256 hash;

		if (is_style(assets[i]) != styles)
			continue;
		sha256_begin(&hash);
		sha256_add(&hash, asset.text, asset.length);
		sha256_end_base64(&hash, base64);
		output_string(out, " 'sha256-");
		output_string(out, base64);
		output_string(out, "'");
	}
}

static void write_elements(
	struct output *out, const enum page_asset *assets, size_t count, bool styles)
{
	for (size_t i = 0; i < count; i++) {
		const struct asset asset = asset_get(assets[i]);

		if (is_style(assets[i]) != styles)
			continue;
		output_string(out, styles ? "<style>" : "<script>");
		output_bytes(out, asset.text, asset.length);
		output_string(out, styles ? "</style>\n" : "</script>\n");
	}
}

void page_begin(struct output *out, const char *title, const enum page_asset *assets, size_t count)
{
	output_string(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			   "<meta http-equiv=\"Content-Security-Policy\" content=\""
			   "default-src 'none'; script-src");
	write_hashes(out, assets, count, false);
	output_string(out, "; style-src");
	write_hashes(out, assets, count, true);
	output_string(out,
		"; base-uri 'none'; form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
	page_write_markup_text(out, title, strlen(title));
	output_string(out, " - pperf</title>\n");
	write_elements(out, assets, count, true);
	output_string(out,
		"</head>\n<body>\n<header id=\"head\"></header>\n<main "
		"id=\"main\">\n<noscript>This "
		"page draws its pictures by scripts that it contains. It loads nothing. Without "
		"scripts, use the text views of pperf-report.</noscript>\n</main>\n"
		"<div id=\"tip\" role=\"tooltip\" hidden></div>\n"
		"<div id=\"live\" aria-live=\"polite\" class=\"unseen\"></div>\n"
		"<script type=\"application/json\" id=\"data\">");
}

void page_end(struct output *out, const enum page_asset *assets, size_t count)
{
	output_string(out, "</script>\n");
	write_elements(out, assets, count, false);
	output_string(out, "</body>\n</html>\n");
}
