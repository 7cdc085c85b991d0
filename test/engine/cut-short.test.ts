import { expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import type { ServerPolicy } from "../../src/testing/index.ts";
import { startSglangTestServer, startVllmTestServer } from "../../src/testing/index.ts";
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
  ...(["generate", "completions"] as const).map((api) => ({
    name: `vLLM in development mode, ${api},`,
    serve: (policy: ServerPolicy) =>
      startVllmTestServer({ policy, apis: [api], isDevelopment: true }),
    connect: (url: string) => createVllmEngine({ url, api }),
  })),
];

test.each(SERVERS)("$name hands over what it has of a turn that is cut short", async (server) => {
  const { policy, atGate } = gatedPolicy([10, 11, 12, 2]);
  const served = await server.serve(policy);
  const engine = server.connect(served.url);
  const cut = new AbortController();
  const call = engine.generate(toRequest(), { cutShort: cut.signal });
  await atGate;
  cut.abort();
  expect(await call).toMatchObject({
    outputIds: [10, 11],
    logprobs: [-10, -11],
    finish: { type: "length" },
    pieces: [{ requestId: "a", tokenCount: 2, finish: "abort" }],
    discarded: [],
  });
  await engine.close();
  await served.close();
});
