import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createSeededPolicy } from "../../testing/policies/seeded-policy.ts";
import { startSglangTestServer } from "../../testing/protocol-servers/sglang/sglang-test-server.ts";
import { answeringServer, type ReceivedCall } from "../answering-server.fixture.ts";
import { loadSglangWeights } from "./load-weights.ts";

describe("loadSglangWeights()", () => {
  test("loads the weights on every server under the given version", async () => {
    await using one = await startSglangTestServer({ policy: createSeededPolicy({ seed: 1 }) });
    await using other = await startSglangTestServer({ policy: createSeededPolicy({ seed: 1 }) });
    const urls = [one.url, `${other.url}/`];
    await loadSglangWeights({ urls }, { path: "/shared/step-13", version: "13" });
    for (const url of [one.url, other.url]) {
      const info = await (await fetch(`${url}/model_info`)).json();
      expect(info).toMatchObject({ weight_version: "13" });
    }
  });

  test("names an unreachable server, and changes none", async () => {
    await using one = await startSglangTestServer({ policy: createSeededPolicy({ seed: 1 }) });
    const before: unknown = await (await fetch(`${one.url}/model_info`)).json();
    const urls = [one.url, "http://127.0.0.1:1"];
    await expect(loadSglangWeights({ urls }, { path: "/w", version: "2" })).rejects.toMatchObject({
      code: "engine/unreachable",
    });
    expect(await (await fetch(`${one.url}/model_info`)).json()).toEqual(before);
  });

  test("restores the other servers if one refuses", async () => {
    await using one = await startSglangTestServer({
      policy: createSeededPolicy({ seed: 1 }),
      weightVersion: "7",
      modelPath: "/shared/step-7",
    });
    await using refusing = await answeringServer(({ path, body }) => {
      if (path === "/model_info") return { body: at7 };
      const isOld = body["model_path"] === "/shared/step-7";
      return isOld
        ? { body: { success: true, message: "Succeeded to update model weights." } }
        : { status: 400, body: { success: false, message: "no such folder" } };
    });
    const { url } = refusing;
    const urls = [one.url, url];
    await expect(loadSglangWeights({ urls }, { path: "/w", version: "8" })).rejects.toMatchObject({
      code: "engine/server-error",
      message: `Cannot load /w at ${url}: no such folder`,
    });
    const info = await (await fetch(`${one.url}/model_info`)).json();
    expect(info).toMatchObject({ weight_version: "7", model_path: "/shared/step-7" });
    expect(pathsOf(refusing.calls)).toEqual(["/w", "/shared/step-7"]);
  });

  test("removes a key that a server echoes, and restores a folder whose name contains the key", async () => {
    const apiKey = "shared/step";
    await using server = await answeringServer(({ path, body }) => {
      if (path === "/model_info") return { body: at7 };
      const isOld = body["model_path"] === "/shared/step-7";
      return isOld
        ? { body: { success: true, message: "" } }
        : { status: 403, body: { success: false, message: `Bearer ${apiKey} may not do that` } };
    });
    const { url, calls } = server;
    const weights = { path: "/w", version: "8" };
    await expect(loadSglangWeights({ urls: [url], apiKey }, weights)).rejects.toMatchObject({
      message: `Cannot load /w at ${url}: Bearer [redacted] may not do that`,
    });
    expect(pathsOf(calls)).toEqual(["/w", "/shared/step-7"]);
  });

  test("removes the password of an address", async () => {
    const urls = ["http://reader:s3cret-word@127.0.0.1:1"];
    await expect(loadSglangWeights({ urls }, { path: "/w", version: "8" })).rejects.toMatchObject({
      code: "engine/unreachable",
      message: expect.stringContaining(
        "Cannot reach the engine at http://[redacted]@127.0.0.1:1/model_info: ",
      ) as string,
    });
  });

  test("waits for running requests that block the cache flush, and loads again", async () => {
    let runs = true;
    await using server = await answeringServer(({ path }) => {
      if (path === "/model_info") return { body: at7 };
      if (path.startsWith("/flush_cache")) {
        runs = false;
        return { body: "Cache flushed." };
      }
      return runs ? { status: 400, body: unflushed } : { body: { success: true, message: "" } };
    });
    await loadSglangWeights({ urls: [server.url] }, { path: "/shared/step-8", version: "8" });
    expect(server.calls.map(({ path }) => path)).toEqual([
      "/model_info",
      "/update_weights_from_disk",
      "/flush_cache?timeout=30",
      "/update_weights_from_disk",
    ]);
  });

  test("restores a server that loaded the weights but reports its previous ones", async () => {
    await using server = await answeringServer(({ path, body }) => {
      if (path === "/model_info") return { body: at7 };
      const isOld = body["model_path"] === "/shared/step-7";
      return isOld ? { body: { success: true, message: "" } } : { status: 400, body: unflushed };
    });
    const urls = [server.url];
    const weights = { path: "/shared/step-8", version: "8" };
    await expect(loadSglangWeights({ urls }, weights)).rejects.toMatchObject({
      code: "engine/server-error",
      message: expect.stringContaining("the cache was not flushed") as string,
    });
    expect(pathsOf(server.calls)).toEqual([weights.path, weights.path, "/shared/step-7"]);
  });

  test("the test server answers as SGLang does while a request still runs", async () => {
    await using server = await startSglangTestServer({
      policy: createSeededPolicy({ seed: 1 }),
      weightVersion: "7",
      modelPath: "/shared/step-7",
      tokenLatencyMs: 60_000,
    });
    const body = JSON.stringify({ input_ids: [1], sampling_params: { max_new_tokens: 2 } });
    const headers = { "content-type": "application/json" };
    const controller = new AbortController();
    const { signal } = controller;
    const running = fetch(`${server.url}/generate`, { method: "POST", headers, body, signal });
    const ended = expect(running).rejects.toThrow();
    const loads = async (): Promise<string> => await (await fetch(`${server.url}/v1/loads`)).text();
    while (!(await loads()).includes('"num_running_reqs":1')) await setImmediate();
    const update = { model_path: "/shared/step-8", weight_version: "8" };
    const reply = await fetch(`${server.url}/update_weights_from_disk`, {
      method: "POST",
      headers,
      body: JSON.stringify(update),
    });
    expect([reply.status, await reply.json()]).toEqual([400, unflushed]);
    expect(await (await fetch(`${server.url}/model_info`)).json()).toMatchObject(at7);
    controller.abort();
    await ended;
  });
});

const at7 = { model_path: "/shared/step-7", weight_version: "7" };

/** The reply of 0.5.23 after the client of a sampling request had left. */
const unflushed = {
  success: false,
  message:
    "Weights were updated, but the cache was not flushed because requests are still running or queued. " +
    "Retract or finish them, then call /flush_cache.",
  num_paused_requests: 0,
};

/** The folders that a server was calls to load. */
function pathsOf(calls: readonly ReceivedCall[]): readonly unknown[] {
  return calls.flatMap(({ body }) => ("model_path" in body ? [body["model_path"]] : []));
}
