# SPDX-License-Identifier: MIT
"""Checks JSON values against a JSON Schema (draft 2020-12), as far as doc/pperf-report.schema.json
uses it: $ref into $defs, type, const, enum, anyOf, properties, required, additionalProperties,
items, minItems, maxItems, minimum and pattern. Other keywords are refused.

A test is stricter than the schema: an object with `properties` and without `additionalProperties`
may have no other keys. So a key that is printed and not documented fails."""
import json, re

ANNOTATIONS = ("$schema", "$id", "$defs", "title", "description")
TYPES = {"null": type(None), "boolean": bool, "integer": int, "number": (int, float), "string": str, "array": list, "object": dict}


class Schema:
    def __init__(self, path):
        self.root = json.loads(path.read_text())
        self.parts = {}

    def errors(self, value, name=None, limit=20):
        """Sentences about the first differences from $defs/NAME, or from the whole schema."""
        found = []
        self.check(value, self.root["$defs"][name] if name else self.root, "$", found)
        return found[:limit]

    def resolve(self, reference):
        assert reference.startswith("#/$defs/"), reference
        return self.root["$defs"][reference[len("#/$defs/"):]]

    def check(self, value, schema, where, found):
        for keyword, wanted in schema.items():
            if keyword not in ANNOTATIONS:
                getattr(self, "check_" + keyword.lstrip("$"))(value, wanted, schema, where, found)

    def check_ref(self, value, reference, schema, where, found):
        self.check(value, self.resolve(reference), where, found)

    def check_type(self, value, types, schema, where, found):
        types = [types] if isinstance(types, str) else types
        fits = any(isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool)) for name in types)
        if not fits:
            found.append("%s: %.60r is no %s" % (where, value, " or ".join(types)))

    def check_const(self, value, wanted, schema, where, found):
        if value != wanted or type(value) is not type(wanted):
            found.append("%s: %.60r is not %r" % (where, value, wanted))

    def check_enum(self, value, values, schema, where, found):
        if not any(value == one and type(value) is type(one) for one in values):
            found.append("%s: %.60r is none of %r" % (where, value, values))

    def check_anyOf(self, value, branches, schema, where, found):
        tried = []
        for branch in branches:
            tried.append([])
            self.check(value, branch, where, tried[-1])
            if not tried[-1]:
                return
        found.extend(min(tried, key=len))

    def check_properties(self, value, properties, schema, where, found):
        if not isinstance(value, dict):
            return
        for key, part in value.items():
            if key in properties:
                self.check(part, properties[key], "%s.%s" % (where, key), found)
            elif "additionalProperties" not in schema:
                found.append("%s: the key %r is not in the schema" % (where, key))

    def check_required(self, value, keys, schema, where, found):
        if isinstance(value, dict):
            found.extend("%s: the key %r is missing" % (where, key) for key in keys if key not in value)

    def check_additionalProperties(self, value, part, schema, where, found):
        for key in value if isinstance(value, dict) else ():
            if key not in schema.get("properties", {}):
                self.check(value[key], part, "%s.%s" % (where, key), found)

    def check_items(self, value, part, schema, where, found):
        for number, item in enumerate(value if isinstance(value, list) else ()):
            self.check(item, part, "%s[%d]" % (where, number), found)

    def check_minItems(self, value, least, schema, where, found):
        if isinstance(value, list) and len(value) < least:
            found.append("%s: %d items, fewer than %d" % (where, len(value), least))

    def check_maxItems(self, value, most, schema, where, found):
        if isinstance(value, list) and len(value) > most:
            found.append("%s: %d items, more than %d" % (where, len(value), most))

    def check_minimum(self, value, least, schema, where, found):
        if isinstance(value, (int, float)) and value < least:
            found.append("%s: %r is below %r" % (where, value, least))

    def check_pattern(self, value, pattern, schema, where, found):
        if isinstance(value, str) and not re.search(pattern, value):
            found.append("%s: %.60r does not match %s" % (where, value, pattern))
