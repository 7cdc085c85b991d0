import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { engineAddress } from "./engine-address.ts";
import { caller, lampEngine, openLamps, twoLamps } from "./lamp-service.fixture.ts";
import { readServiceConfig } from "./service-settings.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-engines-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const other = "http://10.0.0.5:30000";

/** An engine that counts its sampled turns. */
function counting(
  before?: Parameters<typeof lampEngine>[0],
): Engine & { readonly calls: string[] } {
  const calls: string[] = [];
  const inner = lampEngine(async (...call) => {
    calls.push(call[0].sessionId ?? "");
    await before?.(...call);
  });
  return { ...inner, calls };
}

describe("a batch that names its engine", () => {
  test("is refused if the service was not started with the address, and no request is sent to it", async () => {
    const own = counting();
    const allowed = counting();
    const refusal = {
      error: {
        code: "forbidden",
        message:
          '"engine" is not allowed: leave it out to sample at the service\'s own engine, or have the ' +
          "service started with --batch-engine ADDRESS",
      },
    };
    await using service = await openLamps(dir, { engine: own });
    const call = caller(service);
    const plain = await call("POST", "/v1/batches", { ...twoLamps, engine: other });
    expect([plain.status, plain.body]).toMatchObject([403, refusal]);
    expect((await call("GET", "/v1/batches")).body).toEqual({ batches: [] });
    await service[Symbol.asyncDispose]();

    const batchEngines = new Map([[other, allowed]]);
    await using listed = await openLamps(dir, { engine: own, batchEngines });
    const callListed = caller(listed);
    for (const engine of [
      "http://10.0.0.5:30001",
      "https://10.0.0.5:30000",
      "http://10.0.0.5:30000/v1",
      "http://169.254.169.254/latest/meta-data",
      "http://10.0.0.5.evil.example:30000",
    ]) {
      const answer = await callListed("POST", "/v1/batches", { ...twoLamps, engine });
      expect([answer.status, answer.body]).toMatchObject([403, refusal]);
      expect(JSON.stringify(answer.body)).not.toContain("10.0.0.5");
    }
    for (const engine of [
      "",
      "10.0.0.5:30000",
      "file:///etc/passwd",
      "http://user:key@10.0.0.5:30000",
      "http://10.0.0.5:30000?x=1",
      "http://10.0.0.5:30000#x",
      7,
      [other],
      null,
    ]) {
      const answer = await callListed("POST", "/v1/batches", { ...twoLamps, engine });
      expect([engine, answer.status, answer.body]).toMatchObject([
        engine,
        400,
        { error: { code: "bad-request" } },
      ]);
    }
    expect([own.calls, allowed.calls]).toEqual([[], []]);
  });

  test("is sampled only at that address, by the announced version, and its folder records the address", async () => {
    const own = counting();
    const allowed = counting();
    await using service = await openLamps(dir, {
      engine: own,
      batchEngines: new Map([[other, allowed]]),
    });
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 4 });
    const asked = { ...twoLamps, engine: "HTTP://10.0.0.5:30000//" };
    expect((await call("POST", "/v1/batches", asked)).status).toBe(201);
    expect((await call("POST", "/v1/batches", { ...asked, engine: other })).status).toBe(200);
    expect((await call("POST", "/v1/batches", twoLamps)).status).toBe(409);
    const { body } = await call("GET", "/v1/groups?batch=b1");
    expect((body as string[])[0]).toContain('"policyVersions":');
    expect(JSON.stringify(body)).toContain(String.raw`\"4\"`);
    expect([own.calls.length, allowed.calls.length]).toEqual([0, 4]);
    const text = await readFile(path.join(dir, "batches", "b1", "run.json"), "utf8");
    expect(JSON.parse(text)).toMatchObject({ found: { settings: { url: [other] } } });
  });

  test("is paused with the others", async () => {
    const begun = withResolvers();
    const engine = counting(async (_request, { cutShort } = {}) => {
      begun.resolve();
      if (engine.calls.length > 1) return;
      await new Promise((resolve) => cutShort?.addEventListener("abort", resolve));
    });
    await using service = await openLamps(dir, { batchEngines: new Map([[other, engine]]) });
    const call = caller(service);
    await call("POST", "/v1/batches", { ...twoLamps, tasks: [4], samples: 1, engine: other });
    await begun.promise;
    expect((await call("POST", "/v1/pause", {})).body).toEqual({ state: "paused" });
    const before = engine.calls.length;
    await call("POST", "/v1/batches", { ...twoLamps, key: "k2", samples: 1, engine: other });
    expect(engine.calls.length).toBe(before);
    await call("POST", "/v1/resume", {});
    expect((await call("GET", "/v1/groups?batch=b2")).body).toHaveLength(3);
  });

  test("waits if a later start does not allow the address, until one does", async () => {
    await using first = await openLamps(dir, { batchEngines: new Map([[other, counting()]]) });
    await caller(first)("POST", "/v1/pause", {});
    await caller(first)("POST", "/v1/batches", { ...twoLamps, engine: other });
    await first[Symbol.asyncDispose]();
    const own = counting();
    await using second = await openLamps(dir, { engine: own });
    await caller(second)("POST", "/v1/resume", {});
    await caller(second)("POST", "/v1/batches", { ...twoLamps, key: "own" });
    await caller(second)("GET", "/v1/groups?batch=b2");
    expect(second.batch("b1").state).toBe("queued");
    expect(own.calls).toHaveLength(4);
    await second[Symbol.asyncDispose]();
    const allowed = counting();
    await using third = await openLamps(dir, { batchEngines: new Map([[other, allowed]]) });
    expect((await caller(third)("GET", "/v1/groups?batch=b1")).body).toHaveLength(3);
    expect(allowed.calls).toHaveLength(4);
  });
});

test("engineAddress() writes an address one way, and takes no more than one", () => {
  expect(engineAddress("http://Host:80/")).toBe("http://host");
  expect(engineAddress("https://host:8000/engine/")).toBe("https://host:8000/engine");
  expect(engineAddress("http://0x7f.1:30000")).toBe("http://127.0.0.1:30000");
  expect(engineAddress("ftp://host")).toBeUndefined();
});

test("--batch-engine wants addresses, and an engine that has one", () => {
  const shop = { env: "storefront", user: "scripted", model: "m" };
  const server = { ...shop, engine: "sglang", url: ["http://127.0.0.1:1"] };
  const named = { "batch-engine": ["http://a:1/", "http://A:1", "http://b:2"] };
  expect(readServiceConfig({ ...server, ...named }).batchEngines).toEqual([
    "http://a:1",
    "http://b:2",
  ]);
  expect(readServiceConfig(server).batchEngines).toEqual([]);
  expect(() => readServiceConfig({ ...server, "batch-engine": ["a:1"] })).toThrow(
    "Cannot use --batch-engine a:1: expected http://host:port",
  );
  expect(() => readServiceConfig({ ...shop, engine: "reference", ...named })).toThrow(
    "Cannot use --batch-engine with --engine reference",
  );
  const queue = { queue: "redis://127.0.0.1:6379" };
  expect(() => readServiceConfig({ ...server, ...named, ...queue })).toThrow(
    "Cannot use --batch-engine with --queue",
  );
});
