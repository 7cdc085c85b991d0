import { expect, test } from "vitest";
import { takeTurn } from "./take-turn.ts";

function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("takeTurn() serves in order, and lets the event loop round in between", async () => {
  const order: number[] = [];
  let roundCount = 0;
  let isOver = false;
  const countRounds = () => {
    roundCount++;
    if (!isOver) setImmediate(countRounds);
  };
  setImmediate(countRounds);
  await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      await takeTurn();
      order.push(index);
      work(1);
    }),
  );
  isOver = true;
  expect(order).toEqual(Array.from({ length: 40 }, (_, index) => index));
  // 40 ms of work in stretches of about 3 ms.
  expect(roundCount).toBeGreaterThanOrEqual(5);
});

test("takeTurn() counts the work of all callbacks of one round together", async () => {
  let worked = 0;
  const workedByRound: number[] = [];
  let isOver = false;
  const markRounds = () => {
    workedByRound.push(worked);
    worked = 0;
    if (!isOver) setImmediate(markRounds);
  };
  setImmediate(markRounds);
  await Promise.all(
    Array.from(
      { length: 40 },
      () =>
        new Promise<void>((resolve) => {
          // Forty timers of the same moment.
          setTimeout(() => {
            void takeTurn().then(() => {
              work(1);
              worked++;
              resolve();
            });
          }, 5);
        }),
    ),
  );
  isOver = true;
  workedByRound.push(worked);
  expect(workedByRound.reduce((sum, count) => sum + count, 0)).toBe(40);
  expect(Math.max(...workedByRound)).toBeLessThanOrEqual(10);
});
