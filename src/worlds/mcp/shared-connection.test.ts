import { expect, test } from "vitest";
import type { McpConnection } from "./mcp-connection.ts";
import { SharedConnection } from "./shared-connection.ts";

test("a connection that has ended is replaced, and closed with the one after it", async () => {
  const closed: number[] = [];
  const opened: { isClosed: boolean }[] = [];
  const shared = new SharedConnection(() => {
    const place = opened.length;
    const connection = {
      isClosed: false,
      [Symbol.asyncDispose]: async () => {
        await Promise.resolve();
        closed.push(place);
      },
    };
    opened.push(connection);
    return Promise.resolve(connection as unknown as McpConnection);
  });
  const first = await shared.connection();
  opened[0]!.isClosed = true;
  const second = await shared.connection();
  expect(second).not.toBe(first);
  // A call may still be in flight on the first one.
  expect(closed).toEqual([]);
  await shared[Symbol.asyncDispose]();
  expect(closed).toEqual([1, 0]);
});
