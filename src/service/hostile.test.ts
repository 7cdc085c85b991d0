import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import type { Environment } from "../environment/environment.ts";
import { Redactor } from "../secrets/redactor.ts";
import { lamps } from "../run/lamp-run.fixture.ts";
import { caller, openLamps, twoLamps } from "./lamp-service.fixture.ts";
import { createServiceApp } from "./server/service-app.ts";
import { serveRollouts } from "./server/serve-rollouts.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-service-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const wrong: readonly (readonly [string, object, number, string])[] = [
  ["a misspelt member", { ...twoLamps, sample: 2 }, 400, 'There is no member "sample"'],
  ["no key", { ...twoLamps, key: undefined }, 400, '"key" is missing'],
  ["a long key", { ...twoLamps, key: "k".repeat(201) }, 400, '"key" is wrong'],
  ["a number as a key", { ...twoLamps, key: 5 }, 400, '"key" is wrong'],
  ["an unknown split", { ...twoLamps, split: "../../etc" }, 400, '"split" is wrong'],
  ["a split of the prototype", { ...twoLamps, split: "constructor" }, 400, '"split" is wrong'],
  ["no tasks", { ...twoLamps, tasks: [] }, 400, '"tasks" is wrong'],
  ["a task twice", { ...twoLamps, tasks: [1, 1] }, 400, "listed twice"],
  ["a task that is not there", { ...twoLamps, tasks: [50] }, 400, "expected 0 to 49"],
  ["half a task", { ...twoLamps, tasks: [0.5] }, 400, '"tasks" is wrong'],
  ["no attempts", { ...twoLamps, samples: 0 }, 400, '"samples" is wrong'],
  ["too many attempts", { ...twoLamps, samples: 40_000 }, 413, "80000 attempts"],
  ["seeds beyond what is exact", { ...twoLamps, seed: 2 ** 53 - 2 }, 400, '"seed" is wrong'],
  ["an unknown sampling", { ...twoLamps, sampling: { topk: 1 } }, 400, '"sampling.topk"'],
  ["a hot sampling", { ...twoLamps, sampling: { temperature: 1e9 } }, 400, "sampling.temperature"],
  ["sampling as a list", { ...twoLamps, sampling: [] }, 400, '"sampling" is wrong'],
  ["a deadline that is over", { ...twoLamps, deadlineS: 0 }, 400, '"deadlineS" is wrong'],
  ["a prototype", JSON.parse('{"__proto__": {"key": "x"}}') as object, 400, '"__proto__"'],
];

describe("refused requests", () => {
  test.each(wrong)("%s", async (_what, body, status, message) => {
    await using service = await openLamps(dir);
    const refused = await caller(service)("POST", "/v1/batches", body);
    expect(refused.status).toBe(status);
    expect((refused.body as { error: { message: string } }).error.message).toContain(message);
    expect(service.batches).toEqual([]);
  });

  test("tasks that the environment cannot give, which would stop all others later", async () => {
    const broken: Environment = {
      ...lamps(50),
      task(split, index) {
        if (index === 3) throw new Error("no such lamp");
        return { ...lamps(50).task(split, index), ...(index > 9 && { id: "lamp" }) };
      },
    };
    await using service = await openLamps(dir, { environment: broken });
    const call = caller(service);
    for (const [tasks, message] of [
      [[1, 3], "no such lamp"],
      [[11, 12], "12 has the id of another task"],
    ] as const) {
      const refused = await call("POST", "/v1/batches", { ...twoLamps, tasks });
      expect(refused.status).toBe(400);
      expect((refused.body as { error: { message: string } }).error.message).toContain(message);
    }
    await call("POST", "/v1/batches", twoLamps);
    expect((await call("GET", "/v1/groups?batch=b1")).body).toHaveLength(3);
  });

  test("bodies that are not a JSON object, too large, or not declared as JSON", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    const headers = { "content-type": "application/json" };
    const send = async (body: string, more: Record<string, string> = headers) =>
      (await call("POST", "/v1/batches", undefined, { body, headers: more })).status;
    expect(await send("{")).toBe(400);
    expect(await send("[]")).toBe(400);
    expect(await send("")).toBe(400);
    expect(await send(JSON.stringify(twoLamps), { "content-type": "text/plain" })).toBe(400);
    expect(await send(`"${"x".repeat(8 * 1024 * 1024)}"`)).toBe(413);
    expect(service.batches).toEqual([]);
  });

  test("unknown paths, methods and parameters", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    const asked = async (method: string, at: string) => {
      const { status, body, headers } = await call(method, at);
      return [status, (body as { error: { code: string } }).error.code, headers.get("allow")];
    };
    expect(await asked("GET", "/v2")).toEqual([404, "not-found", null]);
    expect(await asked("GET", "/v1/batches/b9")).toEqual([404, "not-found", null]);
    expect(await asked("GET", "/v1/batches/..%2f..%2fetc")).toEqual([404, "not-found", null]);
    expect(await asked("PUT", "/v1/batches")).toEqual([405, "bad-method", "POST, GET, DELETE"]);
    expect(await asked("GET", "/v1/pause")).toEqual([405, "bad-method", "POST"]);
    for (const query of ["cursor=-1", "cursor=1e3", "cursor=", "cursor=1&cursor=2", "from=1"]) {
      expect(await asked("GET", `/v1/groups?${query}`)).toEqual([400, "bad-request", null]);
    }
    expect(await asked("GET", "/v1/groups?batch=b9")).toEqual([404, "not-found", null]);
  });

  test("more attempts than the queue holds, until there is room", async () => {
    await using service = await openLamps(dir, { maxQueued: 4 });
    const call = caller(service);
    await call("POST", "/v1/pause");
    await call("POST", "/v1/batches", twoLamps);
    const refused = await call("POST", "/v1/batches", { ...twoLamps, key: "more", tasks: [1] });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
    await call("DELETE", "/v1/batches/b1");
    expect((await call("POST", "/v1/batches", { ...twoLamps, key: "more" })).status).toBe(201);
  });

  test("a batch that the queue can never hold", async () => {
    await using service = await openLamps(dir, { maxQueued: 3 });
    const refused = await caller(service)("POST", "/v1/batches", twoLamps);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([413, null]);
    expect(refused.body).toMatchObject({
      error: {
        code: "too-large",
        message:
          "The batch has 4 attempts, and at most 3 may be accepted and unfinished: submit several, " +
          "or start the service with a higher --max-queued",
      },
    });
  });

  test("the 513th stream, until another one ends", async () => {
    await using service = await openLamps(dir);
    await caller(service)("POST", "/v1/batches", twoLamps);
    const redactor = new Redactor();
    const app = createServiceApp(service, { version: "0.1.0", checksHost: false, redactor });
    const open = async (): Promise<Response> => await app.request("/v1/groups?batch=b1");
    const streams: Response[] = [];
    for (let count = 0; count < 512; count++) streams.push(await open());
    expect(streams.filter(({ status }) => status !== 200)).toEqual([]);
    const refused = await open();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
    await streams[0]?.body?.cancel();
    streams.push(await open());
    expect(streams.at(-1)?.status).toBe(200);
    for (const stream of streams.slice(1)) await stream.body?.cancel();
  });

  test("calls without the token, to any path", async () => {
    await using service = await openLamps(dir);
    const call = caller(service, { token: "s3cret" });
    for (const at of ["/v1/health", "/metrics", "/openapi.json", "/nowhere", "/v1/groups"]) {
      for (const given of [undefined, "Bearer other", "Bearer ", "Basic s3cret", "s3cret"]) {
        const headers: Record<string, string> = given === undefined ? {} : { authorization: given };
        const { status, body } = await call("GET", at, undefined, { headers });
        expect([status, body]).toMatchObject([401, { error: { code: "unauthorized" } }]);
      }
    }
    const headers = { authorization: "Bearer s3cret" };
    expect((await call("GET", "/v1/health", undefined, { headers })).status).toBe(200);
  });

  test("pages in a browser, which reach this machine by other names", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    for (const headers of [{ host: "evil.example" }, { origin: "https://evil.example" }]) {
      expect((await call("POST", "/v1/pause", undefined, { headers })).status).toBe(403);
    }
    expect(service.health.state).toBe("running");
  });

  test("to reveal a known key by the kind of error", async () => {
    const key = "sk-engine-0123456789";
    const weights = {
      findProblem: () => {
        throw new RolloutError("engine/bad-reply", `no access with ${key}`);
      },
      load: () => Promise.resolve(),
      have: () => Promise.resolve(false),
    };
    await using service = await openLamps(dir, { weights });
    const call = caller(service, { redactor: new Redactor([key]) });
    const { status, body } = await call("POST", "/v1/policy", { version: 1, weights: "/w" });
    expect([status, body]).toEqual([
      502,
      { error: { code: "engine-failed", message: "no access with [redacted]" } },
    ]);
  });

  test("an address beyond this machine without a token", async () => {
    await using service = await openLamps(dir);
    const place = { host: "0.0.0.0", port: 0, version: "0", redactor: new Redactor() };
    await expect(serveRollouts(service, place)).rejects.toThrow("without --token-env");
  });
});
