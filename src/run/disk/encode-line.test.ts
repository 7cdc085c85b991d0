import { expect, test } from "vitest";
import { hashRow } from "../../trajectory/hash-row.ts";
import { encodeLine, hashLine } from "./encode-line.ts";

test("encodeLine() gives the bytes and the hash of JSON.stringify(), and lets other work run", async () => {
  const row = {
    tokenIds: Array.from({ length: 100_000 }, (_, index) => (index * 7919) % 150_000),
    logprobs: Array.from({ length: 100_000 }, (_, index) => -index / 77_777),
    policyVersions: Array.from({ length: 100_000 }, () => ""),
    text: "ü🦊".repeat(50_000),
  };
  let roundCount = 0;
  let isOver = false;
  const countRounds = (): void => {
    roundCount++;
    if (!isOver) setImmediate(countRounds);
  };
  setImmediate(countRounds);
  const { blocks, hash } = await encodeLine(row);
  isOver = true;
  const text = JSON.stringify(row);
  expect(Buffer.concat(blocks).toString("utf8") === `${text}\n`).toBe(true);
  expect(hash).toBe(hashRow(row));
  // Four megabytes are more than one stretch of work on any machine.
  expect(roundCount).toBeGreaterThanOrEqual(2);
  expect(Math.max(...blocks.map(({ length }) => length))).toBeLessThan(1_000_000);
});

test("encodeLine() gives a small value as one line", async () => {
  const { blocks, hash } = await encodeLine({ a: [1, "ü"] });
  expect(Buffer.concat(blocks).toString("utf8")).toBe('{"a":[1,"ü"]}\n');
  expect(hash).toBe(hashRow({ a: [1, "ü"] }));
  expect(hashLine(Buffer.from('{"a":[1,"ü"]}'))).toBe(hash);
});
