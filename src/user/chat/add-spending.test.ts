import { expect, test } from "vitest";
import { addSpending, noSpending } from "./add-spending.ts";

const free = { callCount: 1, inputTokenCount: 10, outputTokenCount: 5 };
const paid = { ...free, costUsd: 0.25 };

test("`addSpending()` adds calls, tokens and costs", () => {
  expect(addSpending(paid, paid)).toEqual({
    callCount: 2,
    inputTokenCount: 20,
    outputTokenCount: 10,
    costUsd: 0.5,
  });
});

test("`addSpending()` has no cost without a price, otherwise the cost of the priced calls", () => {
  expect(addSpending(noSpending, free)).toEqual(free);
  expect(addSpending(free, paid).costUsd).toBe(0.25);
  expect(addSpending(noSpending, { ...free, costUsd: 0 }).costUsd).toBe(0);
});
