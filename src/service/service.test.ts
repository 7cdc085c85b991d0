import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Redactor } from "../secrets/redactor.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { verifySample } from "../trajectory/verify-sample.ts";
import { createServiceApp } from "./server/service-app.ts";
import { caller, lampEngine, openLamps, twoLamps } from "./lamp-service.fixture.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-service-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

interface Line {
  readonly type: string;
  readonly cursor: number;
  readonly state?: string;
  readonly group: {
    readonly taskIndex: number;
    readonly batch: string;
    readonly attempts: readonly Readonly<Record<string, unknown>>[];
  };
}

function parsed(body: unknown): readonly Line[] {
  return (body as readonly string[]).map((line) => JSON.parse(line) as Line);
}

test("its metrics cover its work and its process", async () => {
  await using service = await openLamps(dir);
  const redactor = new Redactor();
  const app = createServiceApp(service, { version: "0", checksHost: true, redactor });
  const read = async (): Promise<readonly string[]> => {
    const page = await app.request("/metrics");
    expect(page.headers.get("content-type")).toContain("text/plain");
    return (await page.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  };
  const own = (lines: readonly string[]) => lines.filter((line) => line.startsWith("turnwright_"));
  expect(own(await read())).toEqual([
    "turnwright_service_unfinished_batches 0",
    "turnwright_service_queued_attempts 0",
    "turnwright_service_running_attempts 0",
    "turnwright_service_unread_groups 0",
    "turnwright_service_acknowledged_cursor 0",
    "turnwright_service_paused 0",
    "turnwright_service_groups_total 0",
  ]);
  const call = caller(service);
  await call("POST", "/v1/policy", { version: 3 });
  await call("POST", "/v1/batches", twoLamps);
  await call("GET", "/v1/groups?batch=b1");
  await call("POST", "/v1/groups/ack", { cursor: 1 });
  // Asked again, sums are not added up.
  for (let each = 0; each < 2; each++) {
    const lines = await read();
    expect(lines).toEqual(
      expect.arrayContaining([
        "turnwright_service_policy_version 3",
        "turnwright_service_unread_groups 1",
        'turnwright_service_attempts_total{outcome="completed"} 4',
        "turnwright_service_groups_total 2",
      ]),
    );
    expect(lines.some((line) => line.startsWith("process_resident_memory_bytes "))).toBe(true);
  }
});

describe("the rollout service", () => {
  test("plays a batch and streams its groups with their rows, to the last line", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    const accepted = await call("POST", "/v1/batches", twoLamps);
    expect(accepted.status).toBe(201);
    expect(accepted.body).toMatchObject({ batch: "b1", key: "step-1", groups: 2 });
    const { body, headers } = await call("GET", "/v1/groups?batch=b1");
    expect(headers.get("content-type")).toBe("application/x-ndjson");
    const lines = parsed(body);
    expect(lines.map(({ type, cursor, state }) => [type, cursor, state])).toEqual([
      ["group", 1, undefined],
      ["group", 2, undefined],
      ["end", 2, "finished"],
    ]);
    const groups = lines
      .slice(0, 2)
      .map(({ group }) => group)
      .toSorted((one, other) => one.taskIndex - other.taskIndex);
    expect(groups).toMatchObject([
      { batch: "b1", key: "step-1", groupId: "lamp/test/4", taskId: "lamp/test/4", split: "test" },
      { batch: "b1", key: "step-1", groupId: "lamp/test/7", taskId: "lamp/test/7", split: "test" },
    ]);
    const attempts = groups.flatMap((group) => group.attempts);
    expect(attempts.map(({ rolloutId, seed, reward }) => [rolloutId, seed, reward])).toEqual([
      ["lamp/test/4#0", 5, 0],
      ["lamp/test/4#1", 6, 0],
      ["lamp/test/7#0", 7, 0],
      ["lamp/test/7#1", 8, 0],
    ]);
    for (const { rows } of attempts) {
      expect(rows).toHaveLength(1);
      expect(verifySample((rows as readonly unknown[])[0])).toEqual([]);
    }
    expect((await call("GET", "/v1/batches/b1")).body).toEqual({
      batch: "b1",
      key: "step-1",
      state: "finished",
      groups: 2,
      finishedGroups: 2,
    });
  });

  test("continues after a cursor with the same bytes", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/batches", twoLamps);
    const whole = (await call("GET", "/v1/groups?batch=b1")).body as string[];
    const rest = (await call("GET", "/v1/groups?batch=b1&cursor=1")).body;
    expect(rest).toEqual(whole.slice(1));
    expect((await call("GET", "/v1/groups?batch=b1&cursor=2")).body).toEqual(whole.slice(2));
  });

  test("treats the same key as the same batch, also for two concurrent requests", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    const answers = await Promise.all([
      call("POST", "/v1/batches", twoLamps),
      call("POST", "/v1/batches", { ...twoLamps, sampling: {} }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([201, 200]);
    expect((await call("GET", "/v1/batches")).body).toMatchObject({ batches: [{ batch: "b1" }] });
    const other = await call("POST", "/v1/batches", { ...twoLamps, tasks: [4] });
    expect([other.status, other.body]).toMatchObject([409, { error: { code: "key-reused" } }]);
  });

  test("reads no group before it is asked for", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/batches", { ...twoLamps, tasks: [1, 2, 3, 4, 5, 6] });
    await call("GET", "/v1/groups?batch=b1");
    let readCount = 0;
    const { groups } = service;
    const read = groups.read.bind(groups);
    groups.read = (entry) => {
      readCount += 1;
      return read(entry);
    };
    const { streamGroups } = await import("./group-stream.ts");
    const reader = streamGroups(service, { cursor: 0, batch: "b1" }).getReader();
    await reader.read();
    expect(readCount).toBe(1);
    await reader.read();
    expect(readCount).toBe(2);
    await reader.cancel();
  });

  test("reports once the end of a stream whose reader leaves during a wait", async () => {
    await using service = await openLamps(dir);
    let endCount = 0;
    const onEnd = (): void => {
      endCount += 1;
    };
    const { streamGroups } = await import("./group-stream.ts");
    const reader = streamGroups(service, { cursor: 0 }, { onEnd }).getReader();
    const waiting = reader.read();
    await new Promise(setImmediate);
    await reader.cancel();
    expect(await waiting).toEqual({ done: true, value: undefined });
    // After the wait that the reader left, the next caller waits as long.
    await new Promise(setImmediate);
    expect(endCount).toBe(1);
  });

  test("hands out the first group while others are played", async () => {
    const held = withResolvers();
    const engine = lampEngine(async ({ sessionId }, { signal } = {}) => {
      if (sessionId !== "lamp/test/7#1") return;
      await Promise.race([
        held.promise,
        new Promise((resolve) => signal?.addEventListener("abort", resolve)),
      ]);
    });
    await using service = await openLamps(dir, { engine });
    const call = caller(service);
    await call("POST", "/v1/batches", twoLamps);
    const { streamGroups } = await import("./group-stream.ts");
    const reader = streamGroups(service, { cursor: 0 }).getReader();
    const { value } = await reader.read();
    expect(JSON.parse(Buffer.from(value!).toString())).toMatchObject({
      type: "group",
      cursor: 1,
      group: { taskIndex: 4 },
    });
    expect((await call("GET", "/v1/batches/b1")).body).toMatchObject({ state: "running" });
    held.resolve();
    await reader.read();
    await reader.cancel();
  });

  test("forgets acknowledged groups, and says so to who asks for them", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/batches", twoLamps);
    await call("GET", "/v1/groups?batch=b1");
    expect((await call("POST", "/v1/groups/ack", { cursor: 1 })).body).toEqual({ cursor: 1 });
    expect(await readdir(path.join(dir, "groups"))).toEqual(["2.json"]);
    const gone = await call("GET", "/v1/groups?batch=b1");
    expect([gone.status, gone.body]).toMatchObject([410, { error: { code: "cursor-gone" } }]);
    expect((await call("GET", "/v1/groups?batch=b1&cursor=1")).body).toHaveLength(2);
    expect((await call("POST", "/v1/groups/ack", { cursor: 0 })).body).toEqual({ cursor: 0 });
    expect((await call("POST", "/v1/groups/ack", { cursor: 3 })).status).toBe(400);
    expect(service.health.unreadGroups).toBe(1);
  });

  test("forgets acknowledged groups of one batch, also after a restart, and no others", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    for (const key of ["one", "two"]) await call("POST", "/v1/batches", { ...twoLamps, key });
    const lines = async (app: typeof call, batch: string) =>
      parsed((await app("GET", `/v1/groups?batch=${batch}`)).body);
    const cursors = (await lines(call, "b1")).slice(0, 2).map(({ cursor }) => cursor);
    const others = (await lines(call, "b2")).slice(0, 2).map(({ cursor }) => cursor);
    // Up to the newest of all: those of the other batch stay.
    const ack = { cursor: 4, batch: "b1" };
    for (let each = 0; each < 2; each++) {
      expect((await call("POST", "/v1/groups/ack", ack)).body).toEqual(ack);
    }
    const files = others.map((cursor) => `${cursor}.json`).toSorted();
    const check = async (app: typeof call, unreadGroups: number) => {
      expect((await readdir(path.join(dir, "groups"))).toSorted()).toEqual(files);
      expect((await app("GET", "/v1/groups?batch=b1")).body).toMatchObject({
        error: { code: "cursor-gone", message: expect.stringContaining("up to 4") as string },
      });
      expect((await lines(app, "b2")).map(({ type }) => type)).toEqual(["group", "group", "end"]);
      expect((await app("GET", "/v1/health")).body).toMatchObject({ unreadGroups });
    };
    await check(call, 2);
    await service[Symbol.asyncDispose]();
    await using next = await openLamps(dir);
    const again = caller(next);
    await check(again, 2);
    // A reader of all batches receives only groups without a consumer.
    const { streamGroups } = await import("./group-stream.ts");
    const reader = streamGroups(next, { cursor: 0 }).getReader();
    const first = JSON.parse(Buffer.from((await reader.read()).value!).toString()) as Line;
    expect([first.cursor, first.group.batch]).toEqual([Math.min(...others), "b2"]);
    await reader.cancel();
    expect(cursors).not.toContain(first.cursor);
    await again("POST", "/v1/groups/ack", { cursor: 4 });
    expect((await again("GET", "/v1/health")).body).toMatchObject({ unreadGroups: 0 });
    expect(await readdir(path.join(dir, "groups"))).toEqual([]);
    expect((await again("POST", "/v1/groups/ack", { batch: "b2" })).body).toEqual({
      cursor: 4,
      batch: "b2",
    });
    expect((await again("POST", "/v1/groups/ack", {})).status).toBe(400);
    await again("POST", "/v1/pause", {});
    await again("POST", "/v1/batches", { ...twoLamps, key: "three" });
    expect((await again("POST", "/v1/groups/ack", { batch: "b3" })).body).toMatchObject({
      error: {
        code: "bad-request",
        message: expect.stringContaining('"cursor" is missing') as string,
      },
    });
    const unknown = await again("POST", "/v1/groups/ack", { cursor: 1, batch: "b9" });
    expect([unknown.status, unknown.body]).toMatchObject([404, { error: { code: "not-found" } }]);
  });

  test("writes no entry if an acknowledged batch has no more groups to forget", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    const play = async (key: string, batch: string) => {
      await call("POST", "/v1/batches", { ...twoLamps, key });
      await call("GET", `/v1/groups?batch=${batch}`);
    };
    await play("one", "b1");
    await call("POST", "/v1/groups/ack", { batch: "b1" });
    await play("two", "b2");
    const journal = async () => await readFile(path.join(dir, "service.jsonl"), "utf8");
    const before = await journal();
    const again = await call("POST", "/v1/groups/ack", { batch: "b1" });
    expect([again.status, again.body]).toEqual([200, { cursor: 4, batch: "b1" }]);
    expect(await journal()).toBe(before);
    expect(service.health.unreadGroups).toBe(2);
  });
});
