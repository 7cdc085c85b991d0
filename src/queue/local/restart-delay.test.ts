import { expect, test } from "vitest";
import { RestartDelay } from "./restart-delay.ts";

test("the first replacement starts at once, and workers that crash again wait up to 30 s", () => {
  const delay = new RestartDelay();
  const waits = Array.from({ length: 8 }, () => delay.next(500));
  expect(waits).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

test("a worker that played for a minute starts the count again", () => {
  const delay = new RestartDelay();
  delay.next(500);
  delay.next(500);
  expect(delay.next(59_999)).toBe(2_000);
  expect(delay.next(60_000)).toBe(0);
  expect(delay.next(500)).toBe(1_000);
});
