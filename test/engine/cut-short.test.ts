import { expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import type { ServerPolicy } from "../../src/testing/index.ts";
import {
  startLlamaCppTestServer,
  startSglangTestRouter,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import { toRequest } from "./request.ts";
import { gatedPolicy } from "./waiting-policies.ts";

interface Served {
  readonly url: string;
  close(): Promise<void>;
}

const SERVERS: readonly {
  readonly name: string;
  readonly serve: (policy: ServerPolicy) => Promise<Served>;
  readonly connect: (url: string) => Engine;
}[] = [
  {
    name: "SGLang",
    serve: (policy) => startSglangTestServer({ policy }),
    connect: (url) => createSglangEngine({ url, mode: "direct" }),
  },
  ...(["auto", "router"] as const).map((mode) => ({
    name: `SGLang's router, mode ${mode},`,
    async serve(policy: ServerPolicy) {
      const worker = await startSglangTestServer({ policy });
      const router = await startSglangTestRouter({ workers: [worker.url] });
      const close = async (): Promise<void> => {
        await router.close();
        await worker.close();
      };
      return { url: router.url, close };
    },
    connect: (url: string) => createSglangEngine({ url, mode }),
  })),
  ...(["generate", "completions"] as const).map((api) => ({
    name: `vLLM in development mode, ${api},`,
    serve: (policy: ServerPolicy) =>
      startVllmTestServer({ policy, apis: [api], isDevelopment: true }),
    connect: (url: string) => createVllmEngine({ url, api }),
  })),
];

test.each(SERVERS)("$name returns the sampled part of an interrupted turn", async (server) => {
  const { policy, atGate } = gatedPolicy([10, 11, 12, 2]);
  const served = await server.serve(policy);
  const engine = server.connect(served.url);
  const cut = new AbortController();
  let notCutCount = 0;
  const onNotCutShort = (): void => void (notCutCount += 1);
  const call = engine.generate(toRequest(), { cutShort: cut.signal, onNotCutShort });
  await atGate;
  cut.abort();
  expect(await call).toMatchObject({
    outputIds: [10, 11],
    logprobs: [-10, -11],
    finish: { type: "length" },
    pieces: [{ requestId: "a", tokenCount: 2, finish: "abort" }],
    discarded: [],
  });
  expect(notCutCount).toBe(0);
  await engine.close();
  await served.close();
});

test.each(SERVERS)(
  "$name continues equal requests of other callers when one is interrupted",
  async (server) => {
    const { policy, atGate, open } = gatedPolicy([10, 11, 12, 2], { requestCount: 4 });
    const served = await server.serve(policy);
    const [engine, another] = [server.connect(served.url), server.connect(served.url)];
    const cut = new AbortController();
    const first = engine.generate(toRequest(), { cutShort: cut.signal });
    const others = [
      engine.generate(toRequest()),
      another.generate(toRequest()),
      another.generate(toRequest({ requestId: "a;w1;" })),
    ];
    await atGate;
    cut.abort();
    expect(await first).toMatchObject({ outputIds: [10, 11], finish: { type: "length" } });
    open();
    const whole = { outputIds: [10, 11, 12, 2], finish: { type: "stop" }, discarded: [] };
    expect(await Promise.all(others)).toMatchObject(
      ["a", "a", "a;w1;"].map((requestId) => ({ ...whole, pieces: [{ requestId }] })),
    );
    await engine.close();
    await another.close();
    await served.close();
  },
);

const UNTOLD: typeof SERVERS = [
  {
    name: "vLLM outside development mode, completions,",
    serve: (policy) => startVllmTestServer({ policy, apis: ["completions"] }),
    connect: (url) => createVllmEngine({ url, api: "completions" }),
  },
  {
    name: "llama.cpp",
    serve: (policy) => startLlamaCppTestServer({ policy }),
    connect: (url) => createLlamaCppEngine({ url }),
  },
];

test.each(UNTOLD)(
  "$name samples a turn that is cut short to its end, and says so",
  async (server) => {
    const { policy, atGate, open } = gatedPolicy([10, 11, 12, 2]);
    const served = await server.serve(policy);
    const engine = server.connect(served.url);
    const cut = new AbortController();
    // The abort is sent before any token arrives: it opens the gate.
    const call = engine.generate(toRequest(), { cutShort: cut.signal, onNotCutShort: open });
    await atGate;
    cut.abort();
    expect(await call).toMatchObject({
      outputIds: [10, 11, 12, 2],
      finish: { type: "stop" },
      discarded: [],
    });
    await engine.close();
    await served.close();
  },
);
