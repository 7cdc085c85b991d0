import { describe, expect, test } from "vitest";
import { pythonRepr, reprString } from "./repr.ts";
import { pythonStr } from "./str.ts";

describe("reprString()", () => {
  test.each([
    ["a", "'a'"],
    ["it's", '"it\'s"'],
    [`it's "so"`, `'it\\'s "so"'`],
    ['"', "'\"'"],
    ["\\\n\r\t\0\x7f", "'\\\\\\n\\r\\t\\x00\\x7f'"],
    ["é\xa0\xad", "'é\\xa0\\xad'"],
    ["\u2028\u3000\ud83d", "'\\u2028\\u3000\\ud83d'"],
    ["\u{1F600}\u{E0001}", "'\u{1F600}\\U000e0001'"],
    ["\u{1FAE8}", "'\\U0001fae8'"],
  ])("of %j is Python's", (text, repr) => {
    expect(reprString(text)).toBe(repr);
  });
});

describe("pythonRepr()", () => {
  test("prints containers with the repr of their items", () => {
    const value = new Map([["a", [null, true, false, 1n, 1, "x", Number.NaN]]]);
    expect(pythonRepr(value)).toBe("{'a': [None, True, False, 1, 1.0, 'x', nan]}");
    expect(pythonRepr([])).toBe("[]");
    expect(pythonRepr(new Map())).toBe("{}");
  });
});

describe("pythonStr()", () => {
  test("prints strings unchanged and all other values as `repr()` does", () => {
    expect(pythonStr("it's")).toBe("it's");
    expect(pythonStr(["a"])).toBe("['a']");
    expect(pythonStr(50)).toBe("50.0");
  });
});
