import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isShareOver, isTurnOver, takeTurn } from "./take-turn.ts";

/** A clock that only work advances, so that a round takes equally long on any machine. */
let nowMs = 0;
beforeEach(async () => {
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  // Each starts with an empty queue and in a round of its own: the test before can end before its last round does.
  do await new Promise((resolve) => setImmediate(resolve));
  while (isTurnOver());
  await new Promise((resolve) => setImmediate(resolve));
});
afterEach(() => {
  vi.restoreAllMocks();
});

function work(ms: number): void {
  nowMs += ms;
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
  // 40 ms of work in stretches of 3 ms.
  expect(roundCount).toBeGreaterThanOrEqual(13);
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
  expect(Math.max(...workedByRound)).toBe(3);
});

test("long work that can be cut anywhere ends the round, for all, before its time", async () => {
  let worked: string[] = [];
  const byRound: string[] = [];
  let isOver = false;
  const markRounds = () => {
    byRound.push(worked.join(""));
    worked = [];
    if (!isOver) setImmediate(markRounds);
  };
  setImmediate(markRounds);
  const long = async () => {
    if (isTurnOver()) await takeTurn();
    for (let part = 0; part < 5; part++) {
      work(1);
      worked.push("l");
      if (isShareOver()) await takeTurn();
    }
  };
  const short = async () => {
    await takeTurn();
    for (let part = 0; part < 4; part++) {
      work(1);
      worked.push("s");
      if (isTurnOver()) await takeTurn();
    }
  };
  await Promise.all([long(), short()]);
  isOver = true;
  byRound.push(worked.join(""));
  // Two milliseconds of long work, three in which short work comes at last.
  expect(byRound.filter((round) => round !== "")).toEqual(["ll", "ll", "lss", "ss"]);
});

test("a caller continues through its promise reactions before the next one starts", async () => {
  const order: string[] = [];
  await Promise.all(
    ["a", "b", "c"].map(async (name) => {
      await takeTurn();
      for (let step = 0; step < 5; step++) {
        order.push(`${name}${step}`);
        // The rest of a turn requests no other turn, and may wait for promises.
        if (isTurnOver()) await takeTurn();
        for (let hop = 0; hop < 10; hop++) await Promise.resolve();
      }
    }),
  );
  expect(order).toEqual(
    ["a", "b", "c"].flatMap((name) => [0, 1, 2, 3, 4].map((n) => `${name}${n}`)),
  );
});

test("a caller that loses a turn comes first in the next round, and only once", async () => {
  const order: string[] = [];
  const long = async (): Promise<void> => {
    await takeTurn();
    for (let part = 0; part < 3; part++) {
      order.push(`long ${part}`);
      work(4);
      await takeTurn();
    }
  };
  const short = async (name: string): Promise<void> => {
    await takeTurn();
    order.push(name);
  };
  await Promise.all([long(), short("a"), short("b")]);
  expect(order).toEqual(["long 0", "long 1", "a", "b", "long 2"]);
});

test("a new caller joins the line while others wait", async () => {
  const order: string[] = [];
  await new Promise(setImmediate);
  const first = takeTurn().then(() => order.push("first"));
  expect(isTurnOver()).toBe(true);
  const second = takeTurn().then(() => order.push("second"));
  await Promise.all([first, second]);
  expect(order).toEqual(["first", "second"]);
  await new Promise(setImmediate);
  expect(isTurnOver()).toBe(false);
});
