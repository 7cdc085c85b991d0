import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { vi } from "vitest";

/** The moment at which a frozen run starts and ends, in milliseconds since 1970. */
const frozenAtMs = Date.UTC(2026, 0, 1);

/**
 * Stops the clocks of this process, and has `Math.random()` and `randomBytes()` return the same values in each play.
 * Timers still run.
 */
export function stillProcess(): Disposable {
  vi.useFakeTimers({ toFake: ["Date"], now: frozenAtMs });
  const spies = [
    vi.spyOn(performance, "now").mockReturnValue(1000),
    vi.spyOn(Math, "random").mockReturnValue(0.5),
  ];
  const { randomBytes } = crypto;
  const drawCounts = new Map<number, number>();
  // Counted by size: one more draw of a kind leaves the others as they are.
  const countedBytes = (size: number): Buffer => {
    const count = (drawCounts.get(size) ?? 0) + 1;
    drawCounts.set(size, count);
    const block = crypto.createHash("sha512").update(`draw ${count} of ${size}`).digest();
    return Buffer.alloc(size, block);
  };
  crypto.randomBytes = countedBytes as typeof randomBytes;
  syncBuiltinESMExports();
  return {
    [Symbol.dispose]() {
      crypto.randomBytes = randomBytes;
      syncBuiltinESMExports();
      for (const spy of spies) spy.mockRestore();
      vi.useRealTimers();
    },
  };
}
