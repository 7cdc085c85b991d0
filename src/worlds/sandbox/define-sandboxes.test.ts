import { expect, test } from "vitest";
import { defineSandboxes } from "./define-sandboxes.ts";
import type { Sandbox } from "./sandbox.ts";

const { signal } = new AbortController();
const box: Sandbox = {
  id: "one",
  run: async () => await Promise.reject(new Error("not run here")),
  [Symbol.asyncDispose]: async () => await Promise.resolve(),
};

test.each([
  ["has a number at once", () => 3],
  [
    "throws",
    () => {
      throw new Error("no service");
    },
  ],
])("a sweep that is not async and %s keeps no sandbox from being opened", async (_, sweep) => {
  const open = async () => await Promise.resolve(box);
  const boxes = defineSandboxes({ open, sweep: sweep as unknown as () => Promise<number> });
  expect((await boxes.open({ signal })).id).toBe(box.id);
});

test("a command that no system can start never reaches the service, and all others do", async () => {
  const boxes = defineSandboxes({ open: async () => await Promise.resolve(box) });
  const opened = await boxes.open({ signal });
  expect(await opened.run(["echo", "a\0"], { signal })).toMatchObject({ exitCode: 126 });
  await expect(opened.run(["echo", "a"], { signal })).rejects.toThrow("not run here");
  expect(JSON.stringify({ opened })).toBe('{"opened":{"sandbox":"one"}}');
});
