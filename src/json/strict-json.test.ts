import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { decodeText, readTextFile } from "../text/decode-text.ts";
import { parseStrictJson } from "./strict-json.ts";

test.each([
  ["9007199254740993", "it is 9007199254740993, which JavaScript would read as 9007199254740992"],
  ['{"a": [1, {"id": 18446744073709551615}]}', "a[1].id is 18446744073709551615"],
  ['{"x": 1E400}', "x is 1E400, which JavaScript would read as Infinity"],
  ['{"x": -1e400}', "x is -1e400, which JavaScript would read as -Infinity"],
  [`[${"9".repeat(5000)}]`, `[0] is ${"9".repeat(60)}…, which JavaScript would read as Infinity`],
  ['{"a": {"k": 1, "k": 2}}', "a.k occurs twice, expected one value"],
  ['{"a": 1, "\\u0061": 2}', "a occurs twice"],
  ['{"__proto__": 1, "__proto__": 2}', "__proto__ occurs twice"],
  ['{"a b": {"": "\\ud800"}}', '["a b"][""] contains half of a surrogate pair'],
  ['{"\\udc00x": 1}', "contains half of a surrogate pair"],
  ["\uFEFF{}", "it begins with a byte order mark (U+FEFF), expected JSON without one"],
])("strict JSON refuses %j and names the place", (text, problem) => {
  expect(() => parseStrictJson(text)).toThrow(problem);
});

test.each([
  "{}",
  '{"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 1}]}',
  "[9007199254740992, -9007199254740992, 18014398509481984, 1.0, 1e2, -0, 0.1234567890123456789]",
  '["9007199254740993", "1e400", "\\"k\\\\", "\\ud83d\\ude00", "\\\\ud800", "\u2028", "\\u0000"]',
  '{"10": 1, "2": 2, "__proto__": 3}',
  '"\\\\"',
  `${"[".repeat(900)}1${"]".repeat(900)}`,
])("strict JSON reads %j", (text) => {
  expect(parseStrictJson(text)).toEqual(JSON.parse(text));
});

test("a key __proto__ is a member like any other", () => {
  expect(JSON.stringify(parseStrictJson('{"__proto__":{"x":1}}'))).toBe('{"__proto__":{"x":1}}');
});

test.each([
  ["an invalid byte", [0x61, 0x0a, 0x62, 0xff], "line 2 is not UTF-8"],
  ["an overlong form", [0xc0, 0xaf], "line 1 is not UTF-8"],
  ["a surrogate's bytes", [0x0a, 0x0a, 0xed, 0xa0, 0x80], "line 3 is not UTF-8"],
  ["UTF-16 LE", [0xff, 0xfe, 0x61, 0x00], "it is UTF-16, expected UTF-8"],
  ["UTF-16 BE", [0xfe, 0xff, 0x00, 0x61], "it is UTF-16, expected UTF-8"],
  ["a character that is cut off", [0x61, 0xe2, 0x82], "line 1 is not UTF-8"],
])("%s is refused", (_, bytes, problem) => {
  expect(() => decodeText(Uint8Array.from(bytes))).toThrow(problem);
});

test("a byte order mark stays, or is dropped once if it is not part of the value", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-text-"));
  const file = path.join(dir, "a.txt");
  await writeFile(file, Uint8Array.from([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf, 0xc3, 0xa9]));
  expect(await readTextFile(file)).toBe("\uFEFF\uFEFFé");
  expect(await readTextFile(file, { mark: "drop" })).toBe("\uFEFFé");
  await rm(dir, { recursive: true });
});
