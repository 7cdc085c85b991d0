import { expect, test } from "vitest";
import { TextCache } from "./text-cache.ts";

test("TextCache returns the same value for the same text, and keeps a bounded number", () => {
  const cache = new TextCache<object>();
  let readCount = 0;
  const find = (text: string) =>
    cache.find(text, () => {
      readCount += 1;
      return {};
    });
  const first = find("a");
  expect(find("a")).toBe(first);
  expect(find("b")).not.toBe(first);
  for (let count = 0; count < 62; count++) find(`set ${count}`);
  expect(find("a")).toBe(first);
  // "b" was used least recently.
  find("one more");
  readCount = 0;
  find("a");
  expect(readCount).toBe(0);
  find("b");
  expect(readCount).toBe(1);
  readCount = 0;
  const long = "x".repeat(3_000_000);
  find(long);
  find(`${long}${long}`);
  find("a");
  expect(readCount).toBe(2);
  find(`${long}${long}`);
  expect(readCount).toBe(3);
  find(`${long}y`);
  find(long);
  expect(readCount).toBe(5);
});
