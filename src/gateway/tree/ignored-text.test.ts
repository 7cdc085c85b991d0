import { expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { ClientError } from "../client-error.ts";
import { ignoredText } from "./ignored-text.ts";
import { defaultIgnore } from "./message-keys.ts";

test("ignoredText() removes each match", () => {
  expect(ignoredText(/^date: .*\n?/gm).remove("a\ndate: 1\nb\ndate: 2")).toBe("a\nb\n");
  expect(ignoredText(/\s+$/i).remove("a b  ")).toBe("a b");
});

test("the default pattern removes only the billing line", () => {
  const [billing] = defaultIgnore;
  const text =
    "x-anthropic-billing-header: cc_version=2; cch=1;\nYou are x-anthropic-billing-header: a";
  expect(billing?.remove(text)).toBe("You are x-anthropic-billing-header: a");
});

test("a pattern with exponential backtracking runs in linear time", () => {
  const text = `${"a".repeat(2_000)}!`;
  expect(ignoredText(/^(a+)+$/).remove(text)).toBe(text);
});

test.each([
  [/(a)\1/, "Cannot ignore what /(a)\\1/ matches: it holds a back-reference"],
  [new RegExp("[a--b]", "v"), "Cannot ignore what /[a--b]/ matches: it has the flag v"],
])("%s is refused at the start", (pattern, message) => {
  expect(() => ignoredText(pattern)).toThrow(new UsageError(message));
});

test("a pattern that is too slow for a text fails the request, naming the setting", () => {
  const slow = ignoredText(/(?:(?=.*b)a)*c/);
  const remove = () => slow.remove(`${"a".repeat(3_000)}b`);
  expect(remove).toThrow(ClientError);
  expect(remove).toThrow(
    "Cannot compare a message of 3001 characters: the gateway's setting ignore, /(?:(?=.*b)a)*c/, is too " +
      "slow for it (it takes more than 1300100 steps), expected a simpler pattern there",
  );
});
