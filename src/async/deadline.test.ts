import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { createClock } from "./clock.ts";
import { startDeadline, withDeadline } from "./deadline.ts";

test("a deadline aborts when its time is over", async () => {
  const clock = createManualClock();
  using deadline = startDeadline({ ms: 50, parents: [], clock: createClock(clock) });
  await clock.advance(49);
  expect([deadline.signal.aborted, deadline.expired]).toEqual([false, false]);
  await clock.advance(1);
  expect([deadline.signal.aborted, deadline.expired]).toEqual([true, true]);
  expect(deadline.signal.reason).toMatchObject({ name: "TimeoutError" });
});

const kinds = ["own", "shared"] as const;

/** The signals as parents of either kind. */
function parentsOf(kind: (typeof kinds)[number], ...signals: (AbortSignal | undefined)[]) {
  return kind === "own" ? { parents: signals } : { parents: [], shared: signals };
}

test.each(kinds)(
  "a deadline aborts with %s parents, for their reason, and is then not expired",
  async (kind) => {
    const clock = createManualClock();
    const parent = new AbortController();
    const parents = parentsOf(kind, undefined, parent.signal);
    using deadline = startDeadline({ ms: 50, ...parents, clock: createClock(clock) });
    const reason = new Error("enough");
    parent.abort(reason);
    await clock.advance(100);
    expect(deadline.signal.reason).toBe(reason);
    expect(deadline.expired).toBe(false);
    using late = startDeadline({ ms: 50, ...parents, clock: createClock(clock) });
    expect(late.signal.reason).toBe(reason);
  },
);

test.each(kinds)("a deadline leaves no listeners on %s parents and no timer", (kind) => {
  const clock = createManualClock();
  const parent = new AbortController();
  const parents = parentsOf(kind, parent.signal);
  for (let count = 0; count < 20; count++) {
    using deadline = startDeadline({ ms: 50, ...parents, clock: createClock(clock) });
    expect(deadline.signal.aborted).toBe(false);
  }
  expect(getEventListeners(parent.signal, "abort")).toEqual([]);
  expect(clock.pendingCount).toBe(0);
});

test("a deadline without end starts no timer", async () => {
  const clock = createManualClock();
  using deadline = startDeadline({ ms: Infinity, parents: [], clock: createClock(clock) });
  expect(clock.pendingCount).toBe(0);
  expect(deadline.signal.aborted).toBe(false);
});

test("`withDeadline()` returns the result of `onLate` on timeout", async () => {
  const clock = createManualClock();
  const parent = new AbortController();
  const seen: AbortSignal[] = [];
  // Work that ignores its signal is not waited for.
  const late = withDeadline<string>(
    (signal) => {
      seen.push(signal);
      return new Promise(() => {});
    },
    { ms: 50, signal: parent.signal, clock: createClock(clock), onLate: () => "late" },
  );
  await clock.advance(50);
  expect(await late).toBe("late");
  expect(seen[0]?.reason).toMatchObject({ name: "TimeoutError" });
  expect(getEventListeners(parent.signal, "abort")).toEqual([]);
  expect(clock.pendingCount).toBe(0);
});

test("`withDeadline()` throws the error of `onLate`, even if the work throws on abort", async () => {
  const clock = createManualClock();
  const late = withDeadline(
    (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("cancelled")));
      }),
    {
      ms: 50,
      signal: new AbortController().signal,
      clock: createClock(clock),
      onLate: () => {
        throw new Error("too late");
      },
    },
  );
  const outcome = expect(late).rejects.toThrow("too late");
  await clock.advance(50);
  await outcome;
});

test("`withDeadline()` throws the outer signal's reason if it aborts first", async () => {
  const clock = createManualClock();
  const parent = new AbortController();
  const reason = new Error("enough");
  const onLate = (): never => expect.unreachable();
  const options = { ms: 50, signal: parent.signal, clock: createClock(clock), onLate };
  const stopped = withDeadline(() => new Promise(() => {}), options);
  const outcome = expect(stopped).rejects.toBe(reason);
  parent.abort(reason);
  await outcome;
  await clock.advance(100);
  await expect(withDeadline(async () => 1, options)).rejects.toBe(reason);
  expect(getEventListeners(parent.signal, "abort")).toEqual([]);
  expect(clock.pendingCount).toBe(0);
});

test("`withDeadline()` returns the work's result or throws its error, and leaves no timer", async () => {
  const clock = createManualClock();
  const { signal } = new AbortController();
  const onLate = (): never => expect.unreachable();
  const options = { ms: 50, signal, clock: createClock(clock), onLate };
  expect(await withDeadline(async () => 1, options)).toBe(1);
  const failure = new Error("failed");
  await expect(withDeadline(() => Promise.reject(failure), options)).rejects.toBe(failure);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  expect(clock.pendingCount).toBe(0);
});
