import { expect, test } from "vitest";
import { WeightLimit } from "./weight-limit.ts";
import { withResolvers } from "./with-resolvers.ts";

/** Works that end when the test ends them. `started` has their names in order. */
function openWorks(limit: number) {
  const weightLimit = new WeightLimit(limit);
  const started: string[] = [];
  const begin = (name: string, weight: number) => {
    const { promise, resolve, reject } = withResolvers();
    const done = weightLimit.run(weight, async () => {
      started.push(name);
      await promise;
      return name;
    });
    done.catch(() => {});
    return { done, end: () => resolve(), fail: () => reject(new Error(name)) };
  };
  return { begin, started };
}

const settled = async (): Promise<void> => {
  await new Promise((resolve) => setImmediate(resolve));
};

test("work runs while the sum of the weights is within the limit, in the order of the calls", async () => {
  const { begin, started } = openWorks(10);
  const a = begin("a", 6);
  const b = begin("b", 4);
  const c = begin("c", 5);
  // Light work does not overtake heavy work that waits.
  begin("d", 1);
  await settled();
  expect(started).toEqual(["a", "b"]);
  b.end();
  await expect(b.done).resolves.toBe("b");
  await settled();
  expect(started).toEqual(["a", "b"]);
  a.end();
  await settled();
  expect(started).toEqual(["a", "b", "c", "d"]);
  c.end();
  await expect(c.done).resolves.toBe("c");
});

test("work above the limit runs alone, and failed work makes room", async () => {
  const { begin, started } = openWorks(10);
  const heavy = begin("heavy", 50);
  const next = begin("next", 10);
  await settled();
  expect(started).toEqual(["heavy"]);
  heavy.fail();
  await expect(heavy.done).rejects.toThrow("heavy");
  await settled();
  expect(started).toEqual(["heavy", "next"]);
  next.end();
  await expect(next.done).resolves.toBe("next");
});
