#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The project's documents: every file and case that they name exists, lines fit on a page, and each link has a target."""
import re

from harness import ROOT, Skip, case, main, report, run

COLUMNS = 90
# Names with parts that a reader fills in, and files that a build creates.
NOT_FILES = re.compile(r"NAME|\*|[<>{}$]|^build/|^/|^\w+://|^-|\.\.\.")


def documents():
    listed = run(ROOT, "git", "ls-files", "*.md", check=None)
    if listed.returncode:
        raise Skip("this is no checkout of git")
    return [ROOT / name for name in listed.stdout.decode().split() if (ROOT / name).exists()]


def without_code(text):
    return re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)


def is_named_file(word):
    return re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", word) and not NOT_FILES.search(word) and (ROOT / word.split("/")[0]).is_dir()


@case
def every_file_that_a_document_names_exists(folder):
    found = 0
    for document in documents():
        for word in re.findall(r"`([^`\n]+)`", document.read_text()):
            if is_named_file(word):
                found += 1
                assert (ROOT / word).exists(), "%s names %s" % (document.relative_to(ROOT), word)
    assert found > 300, found


def cases_of(path):
    """The names of the cases in a test file: Check's START_TEST in C, functions marked @case, @slow or @unsanitized in Python."""
    return re.findall(r"START_TEST\((\w+)\)|^@(?:case|slow|unsanitized)\ndef (\w+)\(", path.read_text(), re.M)


def is_case_of(words, path):
    """True if a case of the file is called so. Quoted words have blanks for underscores and may be a part of the name."""
    quoted = re.sub(r"\W+", "_", words)
    return any("_%s" % quoted in "_" + c_name + python_name for c_name, python_name in cases_of(path))


@case
def each_file_and_each_case_quoted_in_FALSIFY_exists(folder):
    """A case belongs to the file that is named last before it in its row."""
    files = quotes = 0
    for row in re.findall(r"^\|.*", (ROOT / "tests" / "FALSIFY.md").read_text(), re.M):
        source = None
        for name, words in re.findall(r"`([^`]+)`|(?<!\*)\*([^*`]+)\*", row):
            if name:
                is_path = re.search(r"\.(c|h|py|sh|map)$", name) and " " not in name
                assert not is_path or (ROOT / name).is_file(), "FALSIFY.md names %s, which is no file" % name
                source, files = ROOT / name if is_path else source, files + bool(is_path)
                continue
            assert source and is_case_of(words, source), "FALSIFY.md quotes *%s*, which is no case of %s" % (words, source)
            quotes += 1
    assert files > 150 and quotes > 130, (files, quotes)


@case
def the_document_of_the_metrics_has_the_help_of_each_column(folder):
    """The first sentence under a column's heading is what --legend prints of it."""
    columns = (ROOT / "doc" / "metrics.md").read_text().split("\n# Columns\n")[1].split("\n# Columns of ranks")[0]
    described = {key: " ".join(text.split()) for key, text in re.findall(r"^##+ `([\w.]+)`\n+(.*?)(?=\n\n|\Z)", columns, re.M | re.S)}
    legend = report("--legend", "--width", "10000").stdout.decode()
    printed = dict(re.findall(r"^  ([\w.]+) +(.*)$", legend[legend.index("\ncolumns ("):], re.M))
    assert sorted(described) == sorted(printed) and len(printed) > 150, set(described) ^ set(printed)
    for key, text in printed.items():
        sentence = text[0].upper() + text[1:] + "."
        assert described[key].startswith(sentence), "%s: --legend has %r, the document %r" % (key, sentence, described[key][:100])


@case
def every_link_has_a_target(folder):
    for document in documents():
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", without_code(document.read_text())):
            assert re.match(r"\w+://|mailto:", target) or (document.parent / target).exists(), "%s links to %s" % (document.relative_to(ROOT), target)


@case
def lines_of_text_fit_on_a_page(folder):
    """Tables and blocks of code may be wider."""
    for document in documents():
        if document.name in ("NEWS.md", "RESULTS.md") or document.parent.name == "fuzz":
            continue
        for number, line in enumerate(without_code(document.read_text()).split("\n"), 1):
            wide = len(line) > COLUMNS and not line.startswith(("|", "    ", "!["))
            assert not wide, "%s:%d has %d columns" % (document.relative_to(ROOT), number, len(line))


main()
