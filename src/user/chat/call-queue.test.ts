import { setMaxListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createCallQueue } from "./call-queue.ts";

const signal = new AbortController().signal;
setMaxListeners(0, signal);
const full = new Error("full");

function queueOf(maxConcurrent: number, maxWaiting = 100) {
  return createCallQueue({ maxConcurrent, maxWaiting, onFull: () => full });
}

/** Creates calls that end on demand and record their start. */
function manualCalls() {
  const begun: number[] = [];
  const ends = new Map<number, () => void>();
  return {
    begun,
    call: (name: number) => () =>
      new Promise<number>((resolve) => {
        begun.push(name);
        ends.set(name, () => resolve(name));
      }),
    end: (name: number) => ends.get(name)?.(),
  };
}

describe("createCallQueue()", () => {
  test("runs a limited number of calls at once, and the others in order of arrival", async () => {
    const queue = queueOf(2);
    const { begun, call, end } = manualCalls();
    const results = [0, 1, 2, 3].map((name) => queue.run(call(name), { signal }));
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    end(1);
    await results[1];
    await Promise.resolve();
    expect(begun).toEqual([0, 1, 2]);
    end(2);
    end(0);
    await results[2];
    await results[0];
    end(3);
    expect(await Promise.all(results)).toEqual([0, 1, 2, 3]);
    expect(begun).toEqual([0, 1, 2, 3]);
  });

  test("never exceeds the limit, over 2,000 calls", async () => {
    const queue = queueOf(7, 2000);
    let running = 0;
    let most = 0;
    const results = Array.from({ length: 2000 }, (_, name) =>
      queue.run(
        async () => {
          running += 1;
          most = Math.max(most, running);
          await Promise.resolve();
          running -= 1;
          return name;
        },
        { signal },
      ),
    );
    expect(await Promise.all(results)).toEqual(Array.from({ length: 2000 }, (_, name) => name));
    expect(most).toBe(7);
  });

  test("refuses a call that finds the queue full, and accepts calls later", async () => {
    const queue = queueOf(1, 1);
    const { call, end } = manualCalls();
    const first = queue.run(call(0), { signal });
    const second = queue.run(call(1), { signal });
    await expect(queue.run(call(2), { signal })).rejects.toBe(full);
    end(0);
    await first;
    await Promise.resolve();
    end(1);
    await second;
    const third = queue.run(call(3), { signal });
    await Promise.resolve();
    end(3);
    expect(await third).toBe(3);
  });

  test("a failed call passes its place on", async () => {
    const queue = queueOf(1);
    const failed = queue.run(() => Promise.reject(new Error("no")), { signal });
    const next = queue.run(async () => "yes", { signal });
    await expect(failed).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });

  test("a call that is aborted while it waits never runs and frees its place", async () => {
    const queue = queueOf(1, 1);
    const { begun, call, end } = manualCalls();
    const first = queue.run(call(0), { signal });
    const abort = new AbortController();
    const second = queue.run(call(1), { signal: abort.signal });
    abort.abort(new Error("gone"));
    await expect(second).rejects.toThrow("gone");
    const third = queue.run(call(2), { signal });
    end(0);
    await first;
    await Promise.resolve();
    end(2);
    expect(await third).toBe(2);
    expect(begun).toEqual([0, 2]);
  });

  test("an aborted signal is refused immediately", async () => {
    const queue = queueOf(1);
    const gone = AbortSignal.abort(new Error("gone"));
    await expect(queue.run(async () => 1, { signal: gone })).rejects.toThrow("gone");
    expect(await queue.run(async () => 2, { signal })).toBe(2);
  });
});
