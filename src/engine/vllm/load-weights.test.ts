import { describe, expect, test } from "vitest";
import { seededPolicy } from "../../testing/seeded-policy.ts";
import { startVllmTestServer } from "../../testing/vllm-test-server.ts";
import { answeringServer } from "../answering-server.fixture.ts";
import { createVllmWeightLoader } from "./load-weights.ts";

const server = async (weightVersion = "default") =>
  await startVllmTestServer({
    policy: seededPolicy({ seed: 1 }),
    isDevelopment: true,
    weightVersion,
  });

async function stateOf(url: string): Promise<unknown> {
  const read = async (path: string): Promise<object> =>
    (await (await fetch(url + path)).json()) as object;
  return { ...(await read("/weight_info")), ...(await read("/is_paused")) };
}

describe("createVllmWeightLoader()", () => {
  test("has every server load the weights under the version that is named, and go on", async () => {
    await using one = await server();
    await using other = await server();
    const loader = createVllmWeightLoader({ urls: [one.url, `${other.url}/`] });
    await loader.load({ path: "/shared/step-13", version: "13" });
    for (const { url } of [one, other]) {
      expect(await stateOf(url)).toEqual({ weight_version: "13", is_paused: false });
    }
  });

  test("gives all back what they had where one does not, that one too", async () => {
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

  test("does not go on behind what the weights before had cached, and gives back what it had twice", async () => {
    let resets = 0;
    await using server = await answeringServer(({ path }) => {
      if (path === "/weight_info") return { body: { weight_version: "7" } };
      if (path === "/v1/models") return { body: { data: [{ root: "/shared/step-7" }] } };
      // As 0.32.0 answers while blocks are held: by the status all is well.
      if (path.startsWith("/reset_prefix_cache")) return { body: { success: resets++ > 0 } };
      return { body: {} };
    });
    const loader = createVllmWeightLoader({ urls: [server.url] });
    await expect(loader.load({ path: "/shared/step-8", version: "8" })).rejects.toMatchObject({
      code: "engine/server-error",
      message: expect.stringContaining("did not drop what the weights before had cached") as string,
    });
    const told = server.asked.slice(2).map(({ path, body }) => {
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
    expect(told).toEqual([
      "/pause?mode=abort",
      ...load(8, false),
      // Nobody samples before all is as it was: what a failed load leaves ends the server then.
      "/pause?mode=abort",
      ...load(7, true),
      ...load(7, true),
      "/resume",
    ]);
  });

  test("tells no key that a server repeats", async () => {
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

  test("says how a server is started that has no such calls", async () => {
    await using one = await startVllmTestServer({
      policy: seededPolicy({ seed: 1 }),
      isDevelopment: false,
    });
    const loader = createVllmWeightLoader({ urls: [one.url] });
    await expect(loader.load({ path: "/w", version: "1" })).rejects.toThrow(
      "start `vllm serve` with VLLM_SERVER_DEV_MODE=1",
    );
  });
});
