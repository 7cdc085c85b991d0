import { describe, expect, test } from "vitest";
import { SessionPlacement } from "./session-placement.ts";

describe("SessionPlacement", () => {
  test("spreads sessions evenly, also those of later calls", () => {
    const placement = new SessionPlacement(2);
    const threads = Array.from({ length: 6 }, (_, index) => placement.enter(`s${index}`));
    expect(threads).toEqual([0, 1, 0, 1, 0, 1]);
    for (const thread of threads) placement.leave(thread);
    expect([placement.loadOf(0), placement.loadOf(1)]).toEqual([0, 0]);
    expect(placement.enter("new")).toBe(0);
  });

  test("keeps a session on the thread of its earlier turns", () => {
    const placement = new SessionPlacement(3);
    placement.leave(placement.enter("a"));
    const home = placement.enter("b");
    placement.leave(home);
    for (let turn = 0; turn < 5; turn++) {
      expect(placement.enter("b")).toBe(home);
      placement.leave(home);
    }
  });

  test("moves a session away from a thread with far more calls", () => {
    const placement = new SessionPlacement(2);
    placement.leave(placement.enter("a"));
    placement.leave(placement.enter("b"));
    expect(placement.enter("a")).toBe(0);
    expect(placement.enter("a")).toBe(0);
    expect(placement.enter("a")).toBe(1);
  });
});
