import { describe, expect, test } from "vitest";
import { seededPolicy } from "../../testing/seeded-policy.ts";
import { startVllmTestServer } from "../../testing/vllm-test-server.ts";
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
