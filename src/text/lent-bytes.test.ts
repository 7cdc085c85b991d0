import { expect, test } from "vitest";
import { giveBackBytes, lendBytes } from "./lent-bytes.ts";

test("lendBytes() gives room that was given back to the next who asks for as much", () => {
  const bytes = lendBytes(20_000);
  expect(bytes.length).toBe(20_000);
  giveBackBytes(bytes.subarray(0, 10));

  const next = lendBytes(30_000);
  const other = lendBytes(30_000);

  expect(next.length).toBe(30_000);
  expect(next.buffer).toBe(bytes.buffer);
  expect(other.buffer).not.toBe(bytes.buffer);
});

test("room that is lent is not lent to another before it is given back", () => {
  const rooms = Array.from({ length: 50 }, () => lendBytes(9_000).buffer);
  expect(new Set(rooms).size).toBe(50);
});

test("giveBackBytes() takes the same bytes once, and none that were not lent", () => {
  const bytes = lendBytes(2_000_000);
  giveBackBytes(bytes);
  giveBackBytes(bytes);
  const foreign = Buffer.allocUnsafeSlow(2 ** 21);
  giveBackBytes(foreign);

  const rooms = [lendBytes(2_000_000).buffer, lendBytes(2_000_000).buffer];

  expect(rooms[0]).toBe(bytes.buffer);
  expect(rooms[1]).not.toBe(bytes.buffer);
  expect(rooms).not.toContain(foreign.buffer);
});

test.each([0, 1, 8_191, 8_192, 8_193, 4 * 2 ** 20, 4 * 2 ** 20 + 1])("lends %i bytes", (size) => {
  const bytes = lendBytes(size);
  expect(bytes.length).toBe(size);
  giveBackBytes(bytes);
});

test("no more is kept than 64 MiB", () => {
  const lent = Array.from({ length: 40 }, () => lendBytes(4 * 2 ** 20));
  for (const bytes of lent) giveBackBytes(bytes);
  const known = new Set<unknown>(lent.map(({ buffer }) => buffer));

  const again = Array.from({ length: 40 }, () => lendBytes(4 * 2 ** 20));

  // What others have given back is kept as well.
  expect(again.filter(({ buffer }) => known.has(buffer)).length).toBeLessThanOrEqual(16);
});
