import fc from "fast-check";
import { expect, test } from "vitest";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { hashableText } from "./database-text.ts";
import { JsonText } from "./json-text.ts";

test.each([
  ["{}", "()"],
  ["[]", "()"],
  ["[ 1 ]", "(1,)"],
  ['{"b": 1, "a": 1.0}', "(('a', 1.0), ('b', 1))"],
  [
    '{ "a" : [ -0 , -0.0 , 1e2 , 12345678901234567890 ] }',
    "(('a', (0, -0.0, 100.0, 12345678901234567890)),)",
  ],
  ["[true,false,null]", "(True, False, None)"],
  ['{"a": 1, "b": 2, "a": 3}', "(('a', 3), ('b', 2))"],
  ['{"\\u0061\\"": "it\'s"}', "(('a\"', \"it's\"),)"],
  ['["\\\\", "\\\\\\"", "\\ud800"]', "('\\\\', '\\\\\"', '\\ud800')"],
  ['{"\u{1F600}": 1, "\uFFFD": [2]}', "(('\uFFFD', (2,)), ('\u{1F600}', 1))"],
])("converts %s", (json, expected) => {
  expect(new JsonText().of(json)).toBe(expected);
});

test("gives the text of the parsed value", () => {
  const texts = new JsonText();
  fc.assert(
    fc.property(fc.json(), fc.nat(2), (json, indent) => {
      const spaced = JSON.stringify(JSON.parse(json), undefined, indent);
      for (const text of [json, spaced])
        expect(texts.of(text)).toBe(hashableText(parsePythonJson(text)));
    }),
  );
});
