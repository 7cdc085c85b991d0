import { expect, test } from "vitest";
import { preparedEngine, says } from "../../episode/lamp-episode.fixture.ts";
import { watchEngineLease } from "./watch-engine-lease.ts";

const request = {
  promptIds: [1],
  maxNewTokens: 10,
  sampling: {},
  sessionId: "s",
  requestId: "r",
} as unknown as Parameters<ReturnType<typeof preparedEngine>["generate"]>[0];

test("what was sampled while nobody counted on the worker any more is seen by nobody", async () => {
  const stop = new AbortController();
  const lost = new Error("the attempt was stopped: lost");
  const engine = watchEngineLease(preparedEngine([says("Hello.")]), () => stop.abort(lost));
  await expect(engine.generate(request, { signal: stop.signal })).rejects.toBe(lost);
});

test("what was sampled within the lease is handed on as it is", async () => {
  const { signal } = new AbortController();
  const plain = await preparedEngine([says("Hello.")]).generate(request, { signal });
  const engine = watchEngineLease(preparedEngine([says("Hello.")]), () => {});
  expect(await engine.generate(request, { signal })).toEqual(plain);
});
