import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { createManualClock } from "../../testing/manual-clock.ts";
import { answeringServer } from "../answering-server.fixture.ts";
import { toWorker } from "../http/http-engine.ts";
import { createRouterAborter } from "./router-aborter.ts";
import { toSglangSettings } from "./sglang-options.ts";

/** A router that lists the given workers, and its aborter. */
async function routerOf(list: () => unknown) {
  const router = await answeringServer(() => ({ body: list() }));
  const clock = createManualClock();
  const settings = toSglangSettings({ url: router.url, ...clock });
  const worker = toWorker(router.url, settings);
  const aborter = createRouterAborter(settings);
  return {
    clock,
    calls: router.calls,
    abort: (requestId: string) => aborter.abortRequest(worker, requestId),
    async [Symbol.asyncDispose]() {
      await aborter.close();
      await Promise.all([worker.transport.close(), worker.control.close()]);
      await router[Symbol.asyncDispose]();
    },
  };
}

const abortOf = (rid: string) => ({ path: "/abort_request", body: { rid } });

test("each listed worker gets the abort, its ranks once, and the list is cached for a while", async () => {
  await using first = await answeringServer(() => ({ body: "" }));
  await using second = await answeringServer(() => ({ body: "" }));
  const urls = [`${first.url}@0`, `${first.url}@1`, second.url];
  await using router = await routerOf(() => ({ workers: urls.map((url) => ({ url })) }));
  expect(await Promise.all([router.abort("a"), router.abort("b")])).toEqual([true, true]);
  expect(first.calls).toHaveLength(2);
  expect(first.calls).toEqual(expect.arrayContaining([abortOf("a"), abortOf("b")]));
  expect(second.calls).toHaveLength(2);
  expect(router.calls).toEqual([{ path: "/workers", body: {} }]);
  await router.clock.advance(4999);
  await router.abort("c");
  expect(router.calls).toHaveLength(1);
  await router.clock.advance(1);
  await router.abort("d");
  expect(router.calls).toHaveLength(2);
  expect(first.calls.slice(2)).toEqual([abortOf("c"), abortOf("d")]);
});

test("an abort fails if one of the router's workers cannot be reached", async () => {
  await using willing = await answeringServer(() => ({ body: "" }));
  await using refusing = await answeringServer(() => ({ status: 401, body: "" }));
  const lists: unknown[] = [
    { workers: [{ url: willing.url }, { url: refusing.url }] },
    { workers: [{ url: willing.url }, { url: "grpc://127.0.0.1:30000" }] },
    { workers: [{ url: willing.url }, { id: "nameless" }] },
    { workers: [] },
    { detail: "Not Found" },
  ];
  for (const list of lists) {
    await using router = await routerOf(() => list);
    expect(await router.abort("a")).toBe(false);
  }
  // The reachable workers get the abort anyway.
  expect(willing.calls).toEqual([abortOf("a"), abortOf("a"), abortOf("a")]);
});

test("a worker that cannot be reached is skipped for a minute", async () => {
  let askedCount = 0;
  const breaking = createServer((request) => {
    askedCount += 1;
    request.socket.destroy();
  });
  breaking.listen(0, "127.0.0.1");
  await once(breaking, "listening");
  const url = `http://127.0.0.1:${(breaking.address() as AddressInfo).port}`;
  await using router = await routerOf(() => ({ workers: [{ url }] }));
  expect(await router.abort("a")).toBe(false);
  await router.clock.advance(59_999);
  expect(await router.abort("b")).toBe(false);
  expect(askedCount).toBe(1);
  await router.clock.advance(1);
  expect(await router.abort("c")).toBe(false);
  expect(askedCount).toBe(2);
  breaking.close();
});
