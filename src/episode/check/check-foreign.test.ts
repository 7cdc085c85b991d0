import { expect, test } from "vitest";
import { hideEverywhere } from "../../secrets/redactor.ts";
import { checkFirstLine, checkLine, checkOpening, checkScore, checkStep } from "./check-foreign.ts";

const broken = "a\ud83d";
const mended = "a\ufffd";

test("half of a surrogate pair in the policy's input is U+FFFD, as the tokenizer reads it", () => {
  const step = { observation: broken, from: "tool", source: "cut", isError: true };
  expect(checkStep(step, "x")).toEqual({ ...step, observation: mended });
  expect(checkOpening(broken, "x")).toBe(mended);
  expect(checkFirstLine(broken, "x")).toBe(mended);
  expect(checkLine(broken, "x")).toBe(mended);
  expect(checkLine({ text: broken, leaves: true }, "x")).toEqual({ text: mended, leaves: true });
});

test("and in score details, so that strict readers can read the file", () => {
  const details = { [broken]: [broken, "\\ud800", "😀", "\\\ud800"] };
  expect(checkScore({ reward: 1, details }, "x")).toEqual({
    reward: 1,
    details: { [mended]: [mended, "\\ud800", "😀", "\\\ufffd"] },
  });
});

test("a wrong value is quoted up to a key, and not within it", () => {
  hideEverywhere({ secrets: ["value-canary-0123456789"] });
  const said = `${"x".repeat(70)} value-canary-0123456789`;
  const step = { observation: "", from: said, source: "cut" };
  expect(() => checkStep(step, "x")).toThrow(`from is "${"x".repeat(70)} …, expected`);
});
