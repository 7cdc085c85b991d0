import { describe, expect, test } from "vitest";
import type { SglangTestRouterOptions, SglangTestServerOptions } from "../../src/testing/index.ts";
import {
  createDeferred,
  createEchoPolicy,
  startSglangTestRouter,
  startSglangTestServer,
} from "../../src/testing/index.ts";

async function start(
  serverOptions: readonly SglangTestServerOptions[] = [{ policy: createEchoPolicy() }],
  routerOptions: Partial<SglangTestRouterOptions> = {},
) {
  const servers = await Promise.all(serverOptions.map((options) => startSglangTestServer(options)));
  const router = await startSglangTestRouter({
    workers: servers.map(({ url }) => url),
    retryDelayMs: 0,
    ...routerOptions,
  });
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(router.url + path, { method: "POST", body: JSON.stringify(body), headers });
  return {
    servers,
    router,
    post,
    async [Symbol.asyncDispose]() {
      await router.close();
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

const BODY = { rid: "x", input_ids: [5], sampling_params: { stop_token_ids: [2] } };

describe("the router", () => {
  test("has none of the engine's control paths", async () => {
    await using tested = await start();
    const paths = [
      "/abort_request",
      "/pause_generation",
      "/continue_generation",
      "/update_weights_from_disk",
      "/v1/messages",
    ];
    for (const path of paths) {
      expect((await tested.post(path, {})).status).toBe(404);
    }
    expect(tested.router.stats.unknownPathCount).toBe(5);
  });

  test("drops the fields that it does not know, and headers too", async () => {
    await using tested = await start();
    const body = {
      ...BODY,
      return_logprob: true,
      return_prompt_token_ids: true,
      sampling_params: {
        ...BODY.sampling_params,
        temperature: 0.5,
        spaces_between_special_tokens: false,
        custom_params: { a: 1 },
        logit_bias: { 5: 1 },
        stop_regex: "x",
      },
    };
    const response = await tested.post("/generate", body, {
      "x-smg-routing-key": "s",
      "x-other": "1",
    });
    const reply = (await response.json()) as Record<string, unknown>;
    expect(reply).toMatchObject({ output_ids: [5, 2], meta_info: { id: "x" } });
    expect(reply).not.toHaveProperty("prompt_token_ids");
    expect(tested.servers[0]?.requests).toMatchObject([
      {
        routingKey: "s",
        samplingParams: {
          temperature: 0.5,
          spaces_between_special_tokens: true,
          custom_params: null,
          logit_bias: null,
          stop_regex: null,
        },
      },
    ]);
  });

  test("refuses a list of ids of requests", async () => {
    await using tested = await start();
    expect((await tested.post("/generate", { ...BODY, rid: ["x"] })).status).toBe(422);
  });

  test("keeps a routing key on one worker while that one is healthy", async () => {
    await using tested = await start([
      { policy: createEchoPolicy() },
      { policy: createEchoPolicy() },
    ]);
    const { servers, router, post } = tested;
    for (let count = 0; count < 4; count++) {
      await (await post("/generate", BODY, { "x-smg-routing-key": "s" })).text();
    }
    const [own, other] = servers.toSorted((a, b) => b.requests.length - a.requests.length);
    expect([own?.requests.length, other?.requests.length]).toEqual([4, 0]);
    router.setHealthy(own?.url ?? "", false);
    await (await post("/generate", BODY, { "x-smg-routing-key": "s" })).text();
    router.setHealthy(own?.url ?? "", true);
    await (await post("/generate", BODY, { "x-smg-routing-key": "s" })).text();
    expect([own?.requests.length, other?.requests.length]).toEqual([5, 1]);
  });

  test("sends requests without a key to its workers in turns", async () => {
    await using tested = await start([
      { policy: createEchoPolicy() },
      { policy: createEchoPolicy() },
    ]);
    for (let count = 0; count < 4; count++) await (await tested.post("/generate", BODY)).text();
    expect(tested.servers.map(({ requests }) => requests.length)).toEqual([2, 2]);
  });

  test("repeats failed requests up to five times without an error for the client", async () => {
    const busy = { kind: "status", status: 500 } as const;
    await using tested = await start([
      { policy: createEchoPolicy(), faults: [busy, busy, busy, busy] },
    ]);
    const response = await tested.post("/generate", BODY);
    expect(response.status).toBe(200);
    expect(tested.router.stats).toMatchObject({ generateCount: 1, forwardCount: 5 });
  });

  test("passes the last failure on", async () => {
    const fault = { kind: "status", status: 503, body: { message: "full" } } as const;
    await using tested = await start([{ faults: () => fault }]);
    const response = await tested.post("/generate", BODY);
    expect([response.status, await response.json()]).toEqual([503, { message: "full" }]);
    expect(tested.router.stats.forwardCount).toBe(5);
  });

  test("reports in its own form that no worker is left, or none answers", async () => {
    await using tested = await start();
    const [server] = tested.servers;
    tested.router.setHealthy(server?.url ?? "", false);
    const none = await tested.post("/generate", BODY);
    expect(none.headers.get("x-smg-error-code")).toBe("no_available_workers");
    expect([none.status, await none.json()]).toEqual([
      503,
      {
        error: {
          type: "Service Unavailable",
          code: "no_available_workers",
          message: "No available workers (all circuits open or unhealthy)",
        },
      },
    ]);
    tested.router.setHealthy(server?.url ?? "", true);
    await server?.close();
    const refused = await tested.post("/generate", BODY);
    expect([refused.status, await refused.json()]).toMatchObject([
      500,
      { error: { code: "call_upstream_connection_failed" } },
    ]);
  });

  test("queues what exceeds its concurrency, and refuses what exceeds the queue", async () => {
    const late = createDeferred();
    const sleep = (): Promise<void> => late.promise;
    await using tested = await start([{ faults: [{ kind: "hang" }] }], {
      maxConcurrent: 1,
      queueSize: 1,
      sleep,
    });
    const first = tested.post("/generate", BODY).catch((error: unknown) => error);
    await tested.servers[0]?.until(({ stats }) => stats.generateCount === 1);
    const answers = [tested.post("/generate", BODY), tested.post("/generate", BODY)];
    const full = await Promise.race(answers);
    expect([full.status, await full.text()]).toEqual([429, ""]);
    late.resolve();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([408, 429]);
    await tested.servers[0]?.close();
    await first;
  });

  test("lists its workers, takes new ones, and says whether it is ready", async () => {
    await using tested = await start();
    await using more = await startSglangTestServer({ policy: createEchoPolicy() });
    const added = await tested.post("/workers", { url: more.url });
    expect([added.status, await added.json()]).toMatchObject([
      202,
      { status: "accepted", url: more.url, worker_id: "worker-1" },
    ]);
    const listed = (await (await fetch(`${tested.router.url}/workers`)).json()) as object;
    expect(listed).toMatchObject({
      total: 2,
      workers: [{ url: tested.servers[0]?.url, is_healthy: true }, { url: more.url }],
      stats: { regular_count: 2 },
    });
    for (const server of [...tested.servers, more]) tested.router.setHealthy(server.url, false);
    const readiness = await fetch(`${tested.router.url}/readiness`);
    expect([readiness.status, await readiness.json()]).toEqual([
      503,
      { status: "not ready", healthy_workers: 0, total_workers: 2 },
    ]);
    expect((await tested.post("/flush_cache", {})).status).toBe(200);
  });

  test("passes streams on unchanged", async () => {
    await using tested = await start();
    const response = await tested.post("/generate", { ...BODY, stream: true });
    const text = await response.text();
    expect(text.split("\n\n")).toHaveLength(4);
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  });
});
