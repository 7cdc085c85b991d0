import { expect, test } from "vitest";
import { releaseBytes, acquireBytes } from "./lent-bytes.ts";

test("acquireBytes() reuses a released buffer of the same size", () => {
  const bytes = acquireBytes(20_000);
  expect(bytes.length).toBe(20_000);
  releaseBytes(bytes.subarray(0, 10));

  const next = acquireBytes(30_000);
  const other = acquireBytes(30_000);

  expect(next.length).toBe(30_000);
  expect(next.buffer).toBe(bytes.buffer);
  expect(other.buffer).not.toBe(bytes.buffer);
});

test("room that is lent is not lent to another before it is given back", () => {
  const rooms = Array.from({ length: 50 }, () => acquireBytes(9_000).buffer);
  expect(new Set(rooms).size).toBe(50);
});

test("releaseBytes() takes the same bytes once, and only acquired ones", () => {
  const bytes = acquireBytes(2_000_000);
  releaseBytes(bytes);
  releaseBytes(bytes);
  const foreign = Buffer.allocUnsafeSlow(2 ** 21);
  releaseBytes(foreign);

  const rooms = [acquireBytes(2_000_000).buffer, acquireBytes(2_000_000).buffer];

  expect(rooms[0]).toBe(bytes.buffer);
  expect(rooms[1]).not.toBe(bytes.buffer);
  expect(rooms).not.toContain(foreign.buffer);
});

test.each([0, 1, 8_191, 8_192, 8_193, 4 * 2 ** 20, 4 * 2 ** 20 + 1])("lends %i bytes", (size) => {
  const bytes = acquireBytes(size);
  expect(bytes.length).toBe(size);
  releaseBytes(bytes);
});

test("at most 64 MiB are kept", () => {
  const lent = Array.from({ length: 40 }, () => acquireBytes(4 * 2 ** 20));
  for (const bytes of lent) releaseBytes(bytes);
  const known = new Set<unknown>(lent.map(({ buffer }) => buffer));

  const again = Array.from({ length: 40 }, () => acquireBytes(4 * 2 ** 20));

  // Buffers that others have released are kept as well.
  expect(again.filter(({ buffer }) => known.has(buffer)).length).toBeLessThanOrEqual(16);
});
