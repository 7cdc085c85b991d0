import { describe, expect, test } from "vitest";
import { createSeededPolicy } from "../../testing/policies/seeded-policy.ts";
import { startVllmTestServer } from "../../testing/protocol-servers/vllm/vllm-test-server.ts";
import { answeringServer } from "../answering-server.fixture.ts";
import { createVllmWeightLoader } from "./load-weights.ts";

const server = async (weightVersion = "default") =>
  await startVllmTestServer({
    policy: createSeededPolicy({ seed: 1 }),
    isDevelopment: true,
    weightVersion,
  });

async function stateOf(url: string): Promise<unknown> {
  const read = async (path: string): Promise<object> =>
    (await (await fetch(url + path)).json()) as object;
  return { ...(await read("/weight_info")), ...(await read("/is_paused")) };
}

describe("createVllmWeightLoader()", () => {
  test("loads the weights on every server under the given version, and resumes", async () => {
    await using one = await server();
    await using other = await server();
    const loader = createVllmWeightLoader({ urls: [one.url, `${other.url}/`] });
    await loader.load({ path: "/shared/step-13", version: "13" });
    for (const { url } of [one, other]) {
      expect(await stateOf(url)).toEqual({ weight_version: "13", is_paused: false });
    }
  });

  test("restores all servers if one fails, including that one", async () => {
    await using one = await server("7");
    await using other = await server("7");
    const loader = createVllmWeightLoader({ urls: [one.url, other.url] });
    await expect(loader.load({ path: "/nowhere", version: "8" })).rejects.toMatchObject({
      code: "engine/server-error",
      message: expect.stringContaining("/collective_rpc answered 500: Call to") as string,
    });
    for (const { url } of [one, other]) {
      expect(await stateOf(url)).toEqual({ weight_version: "7", is_paused: false });
    }
  });

  test("does not resume if the previous weights' cache remains, and restores them twice", async () => {
    let resets = 0;
    await using server = await answeringServer(({ path }) => {
      if (path === "/weight_info") return { body: { weight_version: "7" } };
      if (path === "/v1/models") return { body: { data: [{ root: "/shared/step-7" }] } };
      // As 0.32.0 answers while blocks are in use, with a successful status.
      if (path.startsWith("/reset_prefix_cache")) return { body: { success: resets++ > 0 } };
      return { body: {} };
    });
    const loader = createVllmWeightLoader({ urls: [server.url] });
    await expect(loader.load({ path: "/shared/step-8", version: "8" })).rejects.toMatchObject({
      code: "engine/server-error",
      message: expect.stringContaining("did not drop the cache of the previous weights") as string,
    });
    const loads = server.calls.slice(2).map(({ path, body }) => {
      const { new_version: version, kwargs } = body as {
        new_version?: string;
        kwargs?: { weights_path: string };
      };
      return [path, version ?? kwargs?.weights_path].filter(Boolean).join(" ");
    });
    const load = (step: number, ends: boolean): readonly string[] => [
      "/update_weight_version loading",
      `/collective_rpc /shared/step-${step}`,
      "/reset_prefix_cache?reset_external=true",
      ...(ends ? [`/update_weight_version ${step}`] : []),
    ];
    expect(loads).toEqual([
      "/pause?mode=abort",
      ...load(8, false),
      // No server samples before all are restored, because a half-loaded model would crash the
      // server.
      "/pause?mode=abort",
      ...load(7, true),
      ...load(7, true),
      "/resume",
    ]);
  });

  test("removes a key that a server echoes", async () => {
    const apiKey = "sk-engine-0123456789";
    const message = `the key Bearer ${apiKey} may not do that`;
    await using server = await answeringServer(() => ({ status: 401, body: { error: message } }));
    const loader = createVllmWeightLoader({ urls: [server.url], apiKey });
    await expect(loader.load({ path: "/w", version: "1" })).rejects.toMatchObject({
      message:
        `Cannot load weights at ${server.url}: /weight_info answered 401: ` +
        "the key Bearer [redacted] may not do that",
    });
  });

  test("says how to start a server that lacks these calls", async () => {
    await using one = await startVllmTestServer({
      policy: createSeededPolicy({ seed: 1 }),
      isDevelopment: false,
    });
    const loader = createVllmWeightLoader({ urls: [one.url] });
    await expect(loader.load({ path: "/w", version: "1" })).rejects.toThrow(
      "start `vllm serve` with VLLM_SERVER_DEV_MODE=1",
    );
  });
});
