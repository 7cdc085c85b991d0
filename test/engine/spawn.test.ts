import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import {
  TEST_SERVER_PROGRAM,
  spawnTestServer,
} from "../../src/testing/protocol-servers/spawn-test-server.ts";
import { toRequest } from "./request.ts";

const isBuilt = existsSync(TEST_SERVER_PROGRAM);
if (!isBuilt) console.warn("Skipping tests of server processes: the project is not built");

describe.skipIf(!isBuilt)("a test server in a process of its own", () => {
  test("is killed in the middle of a turn and started again, and the turn is sampled again", async () => {
    await using server = await spawnTestServer({
      policy: "scripted",
      policyOptions: { s: [{ outputIds: [10, 11, 2] }] },
      options: { tokenLatencyMs: 150, contextLength: 1_000 },
    });
    const { pid, url } = server;
    const engine = createSglangEngine({
      url,
      mode: "direct",
      retry: { baseDelayMs: 10, maxDelayMs: 50, maxAttempts: 500 },
    });
    expect(await engine.describe()).toMatchObject({ contextLength: 1_000 });
    const call = engine.generate(toRequest());
    await untilGenerateCount(url, 1);
    await server.kill();
    expect(server.pid).toBeUndefined();
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(server.url).toBe(url);
    const generation = await call;
    expect(generation.outputIds).toEqual([10, 11, 2]);
    // The connection broke under a request that had been sent; requests that could not connect
    // sampled nothing.
    expect(generation.discarded.map(({ requestId }) => requestId)).toEqual(["a"]);
    expect(generation.pieces).toHaveLength(1);
    await engine.close();
  });

  test("takes a policy from a module, and options for it", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "turnwright-policy-"));
    const policy = path.join(folder, "policy.mjs");
    await writeFile(
      policy,
      `export const createPolicy = ({ id }) => ({
        name: "own",
        begin: () => [{ id, logprob: -1 }, { id: 2, logprob: -2 }],
      });`,
    );
    await using server = await spawnTestServer({ policy, policyOptions: { id: 42 } });
    const engine = createSglangEngine({ url: server.url });
    expect((await engine.generate(toRequest())).outputIds).toEqual([42, 2]);
    await engine.close();
    await rm(folder, { recursive: true });
  });

  test("starts a router for other servers on request", async () => {
    await using worker = await spawnTestServer({ policy: "echo" });
    await using router = await spawnTestServer({ workers: [worker.url] });
    const engine = createSglangEngine({ url: router.url, mode: "router" });
    expect((await engine.generate(toRequest())).outputIds).toEqual([1, 2]);
    await engine.close();
  });

  test("says why it did not start", async () => {
    await expect(spawnTestServer({ policy: "./no-such-policy.mjs" })).rejects.toThrow(
      /Cannot start the test server: .*no-such-policy/,
    );
  });
});

/** Polls the process's counts until it has counted a number of requests. */
async function untilGenerateCount(url: string, count: number): Promise<void> {
  for (;;) {
    const stats = (await (await fetch(`${url}/test/stats`)).json()) as { generateCount: number };
    if (stats.generateCount >= count) return;
  }
}
