import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyRun } from "../../src/verify/verify-run.ts";
import { exportRun } from "../../src/export/export-run.ts";
import { isOpenRun, planOpenRun } from "../../src/report/open-run-plan.ts";
import { openStoredRun } from "../../src/report/read-run.ts";
import type { Episode } from "../../src/episode/episode.ts";
import { createGatewayRun, type GatewayRun } from "../../src/composition/gateway-run.ts";
import { createReplay, openRecordedRun } from "../../src/composition/open-replay.ts";
import { readGatewayConfig } from "../../src/composition/config/gateway-config.ts";
import { dialects } from "../../src/gateway/dialects/registry.ts";
import { createClock } from "../../src/async/clock.ts";
import type { EngineOutage } from "../../src/run/policy/engine-watch.ts";
import { createEchoPolicy } from "../../src/testing/policies/echo-policy.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { startSglangTestServer } from "../../src/testing/protocol-servers/sglang/sglang-test-server.ts";
import { serveGateway, type ServedGateway } from "../../src/gateway/server/serve.ts";
import {
  modelDir,
  openAiTools,
  storefront,
  StorefrontEpisode,
} from "./storefront-session.fixture.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-gateway-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

async function start(more: Readonly<Record<string, unknown>> = {}): Promise<GatewayRun> {
  const config = readGatewayConfig({
    engine: "reference",
    model: modelDir,
    out: dir,
    threads: 1,
    "sampling-seed": 5,
    ...more,
  });
  return await createGatewayRun(config, { env: { BOSS: "the-admin-token" } });
}

async function serve(run: GatewayRun): Promise<ServedGateway> {
  return await serveGateway(run.gateway, { host: "127.0.0.1", port: 0, opensSessions: false });
}

type ChatMessage = OpenAI.Chat.ChatCompletionMessageParam;

const agentLeft = { party: "agent", code: "agent/reported", message: "left" } as const;

/** One streamed turn, with the agent's reaction. */
async function step(
  openai: OpenAI,
  shop: StorefrontEpisode,
  messages: ChatMessage[],
): Promise<void> {
  const tools = openAiTools as unknown as OpenAI.Chat.ChatCompletionFunctionTool[];
  const stream = openai.chat.completions.stream({ model: "policy", messages, tools });
  const message = (await stream.finalChatCompletion()).choices[0]!.message;
  messages.push(message);
  for (const call of message.tool_calls ?? []) {
    if (call.type !== "function") continue;
    const content = await shop.call(call.function.name, JSON.parse(call.function.arguments));
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
  if ((message.tool_calls ?? []).length > 0) return;
  const answer = await shop.say(message.content ?? "");
  if (answer !== undefined) messages.push({ role: "user", content: answer });
}

describe("a gateway with a run's folder", () => {
  test("cannot be played again, and says why", async () => {
    {
      await using run = await start();
      const { sessionId } = await run.gateway.openSession();
      await run.gateway.finish(run.gateway.store.byId(sessionId)!, { reward: { reward: 1 } });
    }
    await expect(createReplay(await openRecordedRun(dir))).rejects.toThrow(
      "Cannot play the run again: the agents of a gateway keep the conversations themselves, and nothing of what was " +
        "done there is recorded",
    );
  });

  test("plays the shipped policy over HTTP, continues in another process, and passes verify", async () => {
    // The likeliest of each token: a session's id, which draws take part in, is another each time, and
    // some draws have the customer leave within the first two turns.
    const greedy = { temperature: 0 };
    const shop = await StorefrontEpisode.open(0);
    const messages: ChatMessage[] = [
      { role: "system", content: storefront.policyText },
      { role: "user", content: await shop.begin() },
    ];
    let apiKey = "";
    {
      await using run = await start(greedy);
      await using served = await serve(run);
      const opened = await fetch(`${served.url}/sessions`, { method: "POST", body: "{}" });
      ({ token: apiKey } = (await opened.json()) as { token: string });
      const openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey, maxRetries: 0 });
      for (let turn = 0; turn < 2; turn++) await step(openai, shop, messages);
    }
    expect(await readFile(path.join(dir, "gateway.jsonl"), "utf8")).not.toContain(apiKey);
    await using run = await start(greedy);
    await using served = await serve(run);
    const openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey, maxRetries: 0 });
    for (let turn = 0; turn < 20 && !shop.isDone; turn++) await step(openai, shop, messages);
    expect(run.gateway.counts).toMatchObject({ roots: { first: 1 }, notes: {} });
    expect(run.gateway.counts.continuedCount).toBeGreaterThan(0);
    const [session] = [...run.gateway.store.open];
    await run.gateway.finish(session!, { reward: { reward: await shop.score() } });
    await run.end();
    const verified = await verifyRun(dir);
    expect(verified).toMatchObject({ samples: 1, episodes: 1, isFinished: true, violations: [] });
    // There is no plan, so all existing attempts are exported.
    const { content, summary } = await exportRun(dir, "trl");
    for await (const _ of content);
    expect(summary()).toEqual({ to: "trl", groups: 1, records: 1 });
  });

  test("marks each row's place in the tree, the cause of its root and the client's reason", async () => {
    await using run = await start();
    await using served = await serve(run);
    const opened = await fetch(`${served.url}/sessions`, { method: "POST", body: "{}" });
    const { token: apiKey } = (await opened.json()) as { token: string };
    const openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey, maxRetries: 0 });
    const ask = async (messages: ChatMessage[], tools?: typeof openAiTools) =>
      (
        await openai.chat.completions.create({
          model: "policy",
          messages,
          max_completion_tokens: 4,
          ...(tools && { tools }),
        })
      ).choices[0]!.message;
    const opening: ChatMessage[] = [{ role: "user", content: "Hello." }];
    const said = await ask(opening);
    await ask([...opening, said, { role: "user", content: "One." }]);
    await ask([...opening, said, { role: "user", content: "Two." }]);
    await ask([...opening, said, { role: "user", content: "Two." }], openAiTools.slice(0, 1));
    const [session] = [...run.gateway.store.open];
    await run.gateway.finish(session!, { reward: { reward: 0 } });
    const episode = JSON.parse(await readFile(path.join(dir, "episodes.jsonl"), "utf8")) as Episode;
    const places = episode.tree?.map(({ parent, cause, turnIndex }) => [parent, cause, turnIndex]);
    expect(places).toEqual([
      [undefined, "first", 0],
      [0, undefined, 2],
      [0, undefined, 1],
      [undefined, "tools-changed", 3],
    ]);
    expect(episode.turns.map(({ steps }) => steps)).toEqual([
      [{ source: "user", callId: "", observation: "Two.", result: "acted" }],
      [],
      [],
      [],
    ]);
    expect(await verifyRun(dir)).toMatchObject({ samples: 3, violations: [] });
  });

  test("ends a session once for two concurrent requests, and accepts no reward after that", async () => {
    await using run = await start();
    const { sessionId } = await run.gateway.openSession({ taskId: "t" });
    const session = run.gateway.store.byId(sessionId)!;
    const unwritten = { reward: 1, details: { count: 1n } };
    const bad = run.gateway.finish(session, { reward: unwritten });
    await expect(bad).rejects.toMatchObject({ kind: "invalid" });
    const ends = await Promise.allSettled([
      run.gateway.finish(session, { reward: { reward: 1 } }),
      run.gateway.finish(session, { reward: { reward: 0 } }),
      run.gateway.reward(session, { reward: 0 }),
    ]);
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    for (const end of ends.slice(1)) {
      expect(end).toMatchObject({ reason: { kind: "finished" } });
    }
    const lines = (await readFile(path.join(dir, "episodes.jsonl"), "utf8")).trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as Episode).reward)).toEqual([1]);
    expect(await verifyRun(dir)).toMatchObject({ episodes: 1, violations: [] });
  });

  test("keeps the samples of an unscored session, and marks it as unscored", async () => {
    await using run = await start();
    const { sessionId } = await run.gateway.openSession({ taskId: "t" });
    const session = run.gateway.store.byId(sessionId)!;
    const body = JSON.stringify({ messages: [{ role: "user", content: "Hello" }] });
    const feed = await run.gateway.ask(session, dialects.chat, {
      headers: new Headers(),
      body: Buffer.from(body),
    });
    await new Response(feed.open()).text();
    await run.gateway.finish(session);
    await run.end();
    expect(await verifyRun(dir)).toMatchObject({ samples: 1, violations: [] });
    const stored = await openStoredRun(dir);
    expect(isOpenRun(stored)).toBe(true);
    expect(await planOpenRun(stored)).toEqual({
      environment: "gateway",
      split: "live",
      trialCount: 1,
      isOpen: true,
      tasks: [{ taskId: "t", taskIndex: 0 }],
    });
    const row = JSON.parse(await readFile(path.join(dir, "samples.jsonl"), "utf8")) as object;
    expect(row).toMatchObject({ outcome: "completed", stopReason: "unscored" });
    expect(row).not.toHaveProperty("reward");
  });

  test("reports an engine that does not answer while a client waits", async () => {
    const time = createManualClock();
    const news: EngineOutage[] = [];
    const server = await startSglangTestServer({ policy: createEchoPolicy() });
    const config = readGatewayConfig({ url: [server.url], model: modelDir, out: dir });
    await using run = await createGatewayRun(config, {
      env: {},
      clock: createClock(time),
      onEngine: (each) => void news.push(each),
    });
    const { sessionId } = await run.gateway.openSession();
    const session = run.gateway.store.byId(sessionId)!;
    await server.close();
    await run.gateway.ask(session, dialects.chat, {
      headers: new Headers(),
      body: Buffer.from(JSON.stringify({ messages: [{ role: "user", content: "Hello" }] })),
    });
    while (news.length === 0) {
      await time.advance(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(news).toMatchObject([{ type: "engine-unreachable" }]);
    await run.gateway.finish(session, { failure: agentLeft });
    const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
    expect(events).toContain('"type":"engine-unreachable"');
  });

  test("listens beyond this machine only with an admin token", async () => {
    await using run = await start();
    const place = { host: "0.0.0.0", port: 0, opensSessions: false };
    await expect(serveGateway(run.gateway, place)).rejects.toThrow(
      "Cannot listen on 0.0.0.0 without --admin-token-env",
    );
  });
});

describe("readGatewayConfig()", () => {
  const given = { url: ["http://127.0.0.1:1"], model: modelDir };

  test("refuses what cannot be", () => {
    expect(() => readGatewayConfig({ ...given, port: 70_000 })).toThrow("--port 70000");
    expect(() => readGatewayConfig({ ...given, ignore: ["("] })).toThrow("--ignore (");
    expect(() => readGatewayConfig({ model: modelDir })).toThrow("Missing --url");
    expect(() => readGatewayConfig({ ...given, tasks: "0" })).toThrow('"tasks"');
  });

  test("has the defaults that the help names", () => {
    expect(readGatewayConfig(given)).toMatchObject({
      host: "127.0.0.1",
      port: 8484,
      opensSessions: false,
      rows: "all",
      holdMs: 300_000,
      clientSampling: "pin",
      constraints: "ignore",
      strictness: "calls",
      limits: { maxTurns: 1000, maxTokensPerTurn: 4096, idleTimeoutMs: 3_600_000 },
    });
  });
});
