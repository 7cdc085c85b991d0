import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { seededPolicy } from "../../testing/seeded-policy.ts";
import { startSglangTestServer } from "../../testing/sglang-test-server.ts";
import { loadSglangWeights } from "./load-weights.ts";

describe("loadSglangWeights()", () => {
  test("has every server load the weights under the version that is named", async () => {
    await using one = await startSglangTestServer({ policy: seededPolicy({ seed: 1 }) });
    await using other = await startSglangTestServer({ policy: seededPolicy({ seed: 1 }) });
    const urls = [one.url, `${other.url}/`];
    await loadSglangWeights({ urls }, { path: "/shared/step-13", version: "13" });
    for (const url of [one.url, other.url]) {
      const info = await (await fetch(`${url}/model_info`)).json();
      expect(info).toMatchObject({ weight_version: "13" });
    }
  });

  test("names the server that is not there, and changes none", async () => {
    await using one = await startSglangTestServer({ policy: seededPolicy({ seed: 1 }) });
    const before: unknown = await (await fetch(`${one.url}/model_info`)).json();
    const urls = [one.url, "http://127.0.0.1:1"];
    await expect(loadSglangWeights({ urls }, { path: "/w", version: "2" })).rejects.toMatchObject({
      code: "engine/unreachable",
    });
    expect(await (await fetch(`${one.url}/model_info`)).json()).toEqual(before);
  });

  test("gives the others back what they had where one server refuses", async () => {
    await using one = await startSglangTestServer({
      ...{ policy: seededPolicy({ seed: 1 }), weightVersion: "7", modelPath: "/shared/step-7" },
    });
    const refusing = createServer((request, response) => {
      const isInfo = request.url === "/model_info";
      const said = isInfo
        ? { model_path: "/shared/step-7", weight_version: "7" }
        : { success: false, message: "no such folder" };
      response.writeHead(isInfo ? 200 : 400).end(JSON.stringify(said));
    });
    refusing.listen(0, "127.0.0.1");
    await once(refusing, "listening");
    const url = `http://127.0.0.1:${(refusing.address() as AddressInfo).port}`;
    try {
      const urls = [one.url, url];
      await expect(loadSglangWeights({ urls }, { path: "/w", version: "8" })).rejects.toMatchObject(
        {
          ...{ code: "engine/server-error", message: `Cannot load /w at ${url}: no such folder` },
        },
      );
    } finally {
      refusing.closeAllConnections();
      refusing.close();
    }
    const info = await (await fetch(`${one.url}/model_info`)).json();
    expect(info).toMatchObject({ weight_version: "7" });
  });
});
