import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compilePattern, findAll, removeAll } from "./compile-pattern.ts";
import { PatternError } from "./pattern-node.ts";
import type { PatternFlags } from "./read-pattern.ts";
import { StepBudget, StepLimitError } from "./step-budget.ts";

const budget = () => new StepBudget(1_000_000);
const matches = (source: string, text: string, flags?: PatternFlags) =>
  compilePattern(source, flags).test(text, budget());

describe("compilePattern() reads JavaScript's patterns", () => {
  test.each([
    ["^[a-z]{2,3}$", "ab", "a"],
    ["^\\p{L}+$", "é", "1"],
    ["^\\u00e9\\x41\\u{1F600}$", "éA😀", "éA"],
    ["^\\ud83d\\ude00$", "😀", "\ud83d"],
    ["^.$", "😀", "\n"],
    ["^(?=.*[A-Z])(?=.*\\d).{8,}$", "abcdefG1", "abcdefgh"],
    ["^(?!-)[a-z-]+(?<!-)$", "a-b", "a-"],
    ["(?<=a{2})b", "aab", "ab"],
    ["\\bcat\\b", "a cat.", "concat"],
    ["^(?:a|ab)(?:c|bcd)$", "abcd", "abd"],
    ["^[^]$", "\n", ""],
    ["^[\\d\\-x]+$", "1-x", "y"],
    ["^(?:a{2}){2}$", "aaaa", "aaa"],
    ["^(a*)*b$", "aab", "aac"],
    ["^[\\b]$", "\b", "b"],
  ])("%s", (source, fits, other) => {
    expect([matches(source, fits), matches(source, other)]).toEqual([true, false]);
  });

  test("flags say how characters and lines are compared", () => {
    expect(matches("^É$", "é", { ignoresCase: true })).toBe(true);
    expect(matches("^b$", "a\nb", { isMultiline: true })).toBe(true);
    expect(matches("^a.b$", "a\nb", { isDotAll: true })).toBe(true);
  });
});

describe("compilePattern() reads patterns that are invalid with the flag u", () => {
  test.each([
    ["^http\\:\\/\\/", "http://a", "ftp://a"],
    ["^\\d{4}\\-\\d{2}$", "2026-11", "2026/11"],
    ["^[\\w-.]+$", "a-b.c", "a b"],
    ["^{.*}$", "{}", "()"],
    ["^a]$", "a]", "a"],
    ["^(?P<year>\\d{4})$", "2026", "26"],
    ["(?i)\\A[a-z]+\\Z", "Abc", "Ab1"],
    ["\\A\\w+\\Z", "été", "é é"],
    ["\\A[\\w-]+\\Z", "é-é", "é é"],
    ["\\A\\W+\\Z", "?!", "é"],
    ["(?s)a.b\\Z", "a\nb", "a\nc"],
    ["^(?P<a>x)$", "x\n", "xx"],
    ["^\\-[]a]+$", "-]a", "-b"],
    ["^\\-x{,2}$", "-xx", "-xxx"],
    ["^(?#digits)\\-\\d$", "-1", "-a"],
    ["^\\-\\pL$", "-é", "-1"],
    ["^\\-(?i:ab)c$", "-ABc", "-ABC"],
  ])("%s", (source, fits, other) => {
    expect([matches(source, fits), matches(source, other)]).toEqual([true, false]);
  });
});

describe("compilePattern() refuses patterns that linear time does not allow, and invalid ones", () => {
  test.each([
    ["(a)\\1", "it holds a back-reference"],
    ["(?<n>a)\\k<n>", "it holds a back-reference"],
    ["(?P<n>a)(?P=n)", "it holds the group (?P"],
    ["a++", "it holds a possessive repetition"],
    ["(?>a)b", "it holds the group (?>"],
    ["(?x)a b", "it holds the group (?x"],
    ["a**", "it holds a repetition of a repetition"],
    ["*a", "it holds a repetition without an operand"],
    ["(a", "it holds a group without its end"],
    ["a)", "it holds a closing parenthesis without its group"],
    ["[a", "it holds an incomplete expression"],
    ["a\\", "it holds an incomplete expression"],
    ["[z-a]", "it holds a range that runs backwards"],
    ["^[[:alpha:]]+$", "it holds a named class such as [:alpha:]"],
    ["^\\-[a-z&&[^b]]$", "it holds a set within a class"],
    ["\\p{Nonsense}", "it contains an unknown character class"],
    ["\\Qa.b\\E", "it holds the escape \\Q"],
    ["(?:a{1,1000}){1,1000}", "its repetitions expand to more than 10000 characters"],
    // Each copy of a look-around has instructions of its own.
    ["(?:(?=a{100})){101}", "its repetitions expand to more than 10000 characters"],
    ["(".repeat(300) + ")".repeat(300), "it holds groups deeper than 200"],
    ["a".repeat(30_000), "it is longer than 20000 characters"],
  ])("%s", (source, message) => {
    expect(() => compilePattern(source)).toThrow(new PatternError(message));
  });
});

describe("a compiled pattern", () => {
  test.each(["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^(.*a){20}$", "(?:a?){30}a{30}$"])(
    "%s takes no exponential time",
    (source) => {
      // An engine that backtracks does not come to an end in a lifetime.
      const text = `${"a".repeat(2_000)}!`;
      expect(compilePattern(source).test(text, budget())).toBe(false);
    },
  );

  test("stops at its budget", () => {
    const pattern = compilePattern("^[a-z]+$");
    expect(() => pattern.test("a".repeat(1_000), new StepBudget(1_000))).toThrow(
      new StepLimitError("it takes more than 1000 steps"),
    );
  });

  test("returns the texts of its groups", () => {
    const pattern = compilePattern('<p name="(?<key>[^"]+)">(?<value>.*?)</p>(?<rest>!)?');
    const text = '<p name="a">1</p> <p name="b">2</p>!';
    const found = [...findAll(pattern, text, budget())];
    expect(found.map(({ start, end }) => [start, end])).toEqual([
      [0, 17],
      [18, 36],
    ]);
    expect(found.map(({ groups }) => Object.fromEntries(groups()))).toEqual([
      { key: "a", value: "1" },
      { key: "b", value: "2", rest: "!" },
    ]);
  });

  test("removes all matches, and skips empty ones", () => {
    expect(removeAll(compilePattern("b+"), "abbcb😀", budget())).toBe("ac😀");
    expect(removeAll(compilePattern("b*"), "abbcb😀", budget())).toBe("ac😀");
  });

  test("finds the matches of JavaScript's own engine, if no repetition matches the empty text", () => {
    const atom = fc.constantFrom(
      "a",
      "b",
      ".",
      "[ab]",
      "[^a]",
      "\\w",
      "(?:a|b)",
      "(?<g>a|ab)",
      "é",
      "😀",
    );
    const edge = fc.constantFrom("\\b", "^", "$", "(?=a)", "(?!b)", "(?<=a)");
    const repeat = fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??");
    const part = fc.oneof(
      fc.tuple(atom, repeat).map(([one, times]) => one + times),
      edge,
      fc.tuple(atom, atom, repeat).map(([one, other, times]) => `(?:${one}|${other})${times}`),
    );
    const source = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(""));
    const text = fc
      .array(fc.constantFrom("a", "b", "1", " ", "é", "😀"), { maxLength: 8 })
      .map((characters) => characters.join(""));
    fc.assert(
      fc.property(source, text, (pattern, given) => {
        fc.pre(pattern.split("(?<g>").length <= 2);
        const expected = new RegExp(pattern, "u").exec(given);
        const found = compilePattern(pattern).find(given, 0, budget());
        expect(found && [found.start, found.end]).toEqual(
          expected === null ? undefined : [expected.index, expected.index + expected[0].length],
        );
      }),
      { seed: 7, numRuns: 2_000 },
    );
  });
});
