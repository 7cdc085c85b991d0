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

test("tokens sampled after the worker's lease ended are discarded", async () => {
  const stop = new AbortController();
  const lost = new Error("the attempt was stopped: lost");
  const engine = watchEngineLease(preparedEngine([says("Hello.")]), () => stop.abort(lost));
  await expect(engine.generate(request, { signal: stop.signal })).rejects.toBe(lost);
});

test("tokens sampled within the lease are passed on unchanged", async () => {
  const { signal } = new AbortController();
  const plain = await preparedEngine([says("Hello.")]).generate(request, { signal });
  const engine = watchEngineLease(preparedEngine([says("Hello.")]), () => {});
  expect(await engine.generate(request, { signal })).toEqual(plain);
});
