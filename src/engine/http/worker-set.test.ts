import { expect, test } from "vitest";
import type { Clock } from "../../async/clock.ts";
import type { Worker } from "./worker-set.ts";
import { createWorkerSet } from "./worker-set.ts";

/** Workers of which only the address is used. */
const [one, other] = ["http://one", "http://other"].map((url) => ({ url }) as Worker) as [
  Worker,
  Worker,
];

function startSet() {
  let nowMs = 0;
  const clock = { now: () => nowMs } as Clock;
  const set = createWorkerSet({ workers: [one, other], cooldownMs: 1_000, clock });
  const home = set.pick("session");
  return { set, home, pass: (ms: number) => void (nowMs += ms) };
}

test("a worker that does not answer is skipped for longer each time", () => {
  const { set, home, pass } = startSet();
  for (const cooldownMs of [1_000, 2_000, 4_000, 8_000, 16_000, 16_000]) {
    set.markDown(home);
    pass(cooldownMs - 1);
    expect(set.pick("session")).not.toBe(home);
    pass(1);
    expect(set.pick("session")).toBe(home);
  }
});

test("turns that break together count as one failure, and an answer resets the count", () => {
  const { set, home, pass } = startSet();
  for (let count = 0; count < 100; count++) set.markDown(home);
  pass(1_000);
  expect(set.pick("session")).toBe(home);
  set.markUp(home);
  set.markDown(home);
  pass(1_000);
  expect(set.pick("session")).toBe(home);
});

test("a healthy worker's sessions stay on it", () => {
  const { set, home } = startSet();
  const sessions = Array.from({ length: 50 }, (_, index) => `s${index}`);
  const placed = sessions.map((session) => set.pick(session));
  set.markDown(home);
  for (const [index, session] of sessions.entries()) {
    if (placed[index] !== home) expect(set.pick(session)).toBe(placed[index]);
  }
});
