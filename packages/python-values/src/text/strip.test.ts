import { describe, expect, test } from "vitest";
import { pythonSplit } from "./split.ts";
import { pythonLstrip, pythonRstrip, pythonStrip } from "./strip.ts";

const space =
  " \t\n\v\f\r\u001C\u001D\u001E\u001F\u0085\u00A0\u1680\u2000\u200A\u2028\u2029\u202F\u205F\u3000";

describe("pythonStrip()", () => {
  test("removes Python's white space, which is not JavaScript's", () => {
    expect(pythonStrip(`${space}a b${space}`)).toBe("a b");
    expect(pythonStrip("\uFEFF\u200Ba\uFEFF")).toBe("\uFEFF\u200Ba\uFEFF");
    expect(pythonStrip(space)).toBe("");
  });

  test("removes a given set of code points", () => {
    expect(pythonStrip("\u{1F600}xa\u{1F600}", "\u{1F600}x")).toBe("a");
    expect(pythonStrip(" a ", "")).toBe(" a ");
    expect(pythonStrip("\u{1F600}", "\ud83d")).toBe("\u{1F600}");
  });

  test("has a left and a right half", () => {
    expect(pythonLstrip(" a ")).toBe("a ");
    expect(pythonRstrip(" a ")).toBe(" a");
    expect(pythonLstrip("\n\na", "\n")).toBe("a");
    expect(pythonRstrip("a}}", "}")).toBe("a");
  });
});

describe("pythonSplit()", () => {
  test("splits at runs of Python's white space", () => {
    expect(pythonSplit(`${space}a${space}b\uFEFFc `)).toEqual(["a", "b\uFEFFc"]);
    expect(pythonSplit(" ")).toEqual([]);
  });
});
