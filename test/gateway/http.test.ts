import { describe, expect, test } from "vitest";
import type { Engine, Generation } from "../../src/engine/engine.ts";
import { RolloutError } from "../../src/errors.ts";
import {
  openInProcess,
  type GatewayInProcess,
  type GatewayInProcessOptions,
} from "../../src/gateway/create-gateway.ts";
import type { OpenedSession } from "../../src/gateway/gateway.ts";
import { createGatewayApp } from "../../src/gateway/server/gateway-app.ts";
import { createDeferred } from "../../src/testing/deferred.ts";
import { characterIds, createCharacterRenderer } from "../../src/testing/character-renderer.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createClock } from "../../src/async/clock.ts";
import { verifySample } from "../../src/trajectory/verify-sample.ts";

/** The engine's action in one turn: says a text, fails, or waits for the test. */
type Turn = string | Error | ((signal: AbortSignal) => Promise<string>);

/** Says the prepared texts in order, a character at a time. */
interface TalkingEngine extends Engine {
  readonly asked: number;
  readonly constraints: readonly unknown[];
  breakAt?: number;
}

function talkingEngine(turns: Turn[]): TalkingEngine {
  const engine = {
    kind: "talking",
    asked: 0,
    constraints: [] as unknown[],
    breakAt: undefined as number | undefined,
    async generate(request, { signal, onTokens } = {}): Promise<Generation> {
      engine.asked += 1;
      engine.constraints.push(request.constraint);
      const turn = turns.shift();
      if (turn === undefined) throw new Error("nothing is prepared");
      if (turn instanceof Error) throw turn;
      const text = typeof turn === "string" ? turn : await turn(signal!);
      const outputIds = characterIds(text);
      for (const [place, id] of outputIds.entries()) {
        if (place === engine.breakAt) throw new RolloutError("engine/unreachable", "It died");
        onTokens?.({ tokenIds: [id], logprobs: [-0.5] });
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { requestId } = request;
      const tokenCount = outputIds.length;
      return {
        outputIds,
        logprobs: outputIds.map(() => -0.5),
        finish: { type: "stop", matched: outputIds.at(-1)! },
        pieces: [{ requestId, tokenCount, policyVersion: "1", finish: "stop" }],
        discarded: [],
      };
    },
    describe: async () => ({ kind: "talking", logprobConvention: "tempered" }),
    close: async () => {},
  } satisfies Engine & Record<"asked" | "constraints" | "breakAt", unknown>;
  return engine as TalkingEngine;
}

async function open(turns: Turn[], options: Partial<GatewayInProcessOptions> = {}) {
  const engine = talkingEngine(turns);
  const gateway = await openInProcess({ engine, renderer: createCharacterRenderer(), ...options });
  const opened = await gateway.gateway.openSession({ taskId: "t" });
  return { engine, gateway, ...opened, session: gateway.gateway.store.byId(opened.sessionId)! };
}

const base = "http://localhost";

interface Asking {
  readonly token?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

async function post(
  gateway: Pick<GatewayInProcess, "fetch">,
  body: unknown,
  { token, path = "/v1/chat/completions", headers = {}, signal }: Asking = {},
): Promise<Response> {
  return await gateway.fetch(base + path, {
    method: "POST",
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
}

async function get(
  { fetch }: Pick<GatewayInProcess, "fetch">,
  { token, path }: { readonly token?: string; readonly path: string },
): Promise<Response> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return await fetch(base + path, { headers });
}

const notTheOwner = [
  401,
  "authentication_error",
  "Only a session's ownerToken, which POST /sessions returned, or the admin token scores, shows and ends it",
];

const hi = { model: "policy", messages: [{ role: "user", content: "Hi" }] };

async function errorOf(response: Response): Promise<unknown> {
  const { error } = (await response.json()) as { error: { type: string; message: string } };
  return [response.status, error.type, error.message];
}

describe("authorization", () => {
  test("a session is known by its URL, its key or a header", async () => {
    const { gateway, token } = await open(["a", "b", "c", "d"]);
    const asked = [
      await post(gateway, hi, { path: `/s/${token}/v1/chat/completions` }),
      await post(gateway, hi, { token }),
      await post(gateway, hi, { headers: { "x-api-key": token } }),
      await post(gateway, hi, { headers: { "x-turnwright-session": token } }),
    ];
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  test("no key and a wrong key are refused in the words of the dialect", async () => {
    const { gateway } = await open([]);
    expect(await errorOf(await post(gateway, hi))).toEqual([
      401,
      "authentication_error",
      "No session: give its token as the API key or in the URL",
    ]);
    const wrong = await post(gateway, hi, { token: "tw-wrong", path: "/v1/messages" });
    expect(await errorOf(wrong)).toEqual([
      401,
      "authentication_error",
      "No session has this token: open one with POST /sessions",
    ]);
  });

  describe.each([undefined, "boss"])("the key of an agent, with the admin token %s", (admin) => {
    const options = admin === undefined ? {} : { adminToken: admin };
    const rights: readonly (readonly [method: "GET" | "POST", path: string])[] = [
      ["GET", ""] as const,
      ["GET", "/samples"] as const,
      ["POST", "/reward"] as const,
      ["POST", "/finish"] as const,
    ];

    test("samples, and neither scores, ends nor shows a session, its own or another", async () => {
      const { gateway, token, sessionId, session } = await open(["a", "b"], options);
      const other = await gateway.gateway.openSession();
      expect((await post(gateway, hi, { token })).status).toBe(200);
      for (const id of [sessionId, other.sessionId, "s7-000000000000"]) {
        for (const [method, right] of rights) {
          for (const headers of [
            { authorization: `Bearer ${token}` },
            { "x-api-key": token },
            { "x-turnwright-session": token },
            {},
          ]) {
            const answer = await gateway.fetch(`${base}/sessions/${id}${right}`, {
              method,
              headers,
              ...(method === "POST" && { body: '{"reward": 1}' }),
            });
            expect(await errorOf(answer)).toEqual(notTheOwner);
          }
          const below = await gateway.fetch(`${base}/s/${token}/sessions/${id}${right}`, {
            method,
          });
          expect(below.status).toBe(404);
        }
      }
      expect(session.reward).toBe(undefined);
      expect(gateway.gateway.counts.openSessionCount).toBe(2);
      expect((await gateway.gateway.finish(session)).reward).toBe(undefined);
    });

    test("opens no session, pauses nothing and reads no counts", async () => {
      const { gateway, token } = await open([], options);
      for (const path of ["/sessions", "/pause", "/resume"]) {
        for (const headers of [{ authorization: `Bearer ${token}` }, { "x-api-key": token }]) {
          expect((await post(gateway, {}, { path, headers })).status).toBe(401);
        }
      }
      expect((await get(gateway, { path: "/stats", token })).status).toBe(401);
      expect(gateway.gateway.counts).toMatchObject({ openSessionCount: 1, isPaused: false });
    });

    test("an owner's key scores its own session alone, and samples nothing", async () => {
      const { gateway, token, ownerToken, sessionId, session } = await open(["a"], options);
      const other = await gateway.gateway.openSession();
      await (await post(gateway, hi, { token })).text();
      expect((await post(gateway, hi, { token: ownerToken })).status).toBe(401);
      const at = (id: string) => ({ path: `/sessions/${id}/reward`, token: ownerToken });
      expect(await errorOf(await post(gateway, { reward: 1 }, at(other.sessionId)))).toEqual(
        notTheOwner,
      );
      expect((await post(gateway, { reward: 0.5 }, at(sessionId))).status).toBe(200);
      expect(session.reward).toEqual({ reward: 0.5 });
      const shown = await get(gateway, { path: `/sessions/${sessionId}`, token: ownerToken });
      const text = await shown.text();
      expect(shown.status).toBe(200);
      for (const secret of [token, ownerToken, "Hash"]) expect(text).not.toContain(secret);
    });
  });

  test("an error message names no session", async () => {
    const held = createDeferred<string>();
    const { gateway, token, sessionId } = await open([async () => await held.promise, "b"], {
      limits: { maxParallelTurns: 1, maxTurns: 1 },
    });
    const first = post(gateway, hi, { token });
    const answers = [await (await post(gateway, hi, { token })).text()];
    held.resolve("a");
    answers.push(await (await first).text(), await (await post(gateway, hi, { token })).text());
    await gateway.gateway.finish(gateway.gateway.store.byId(sessionId)!);
    answers.push(await (await post(gateway, hi, { token })).text());
    expect(answers.map((text) => /"message":"([^"]*)"/.exec(text)?.[1])).toEqual([
      "This session has 1 turns in progress",
      undefined,
      "This session has used up its 1 turns",
      "This session is finished",
    ]);
    for (const text of answers) expect(text).not.toContain(sessionId);
  });

  test("the admin token opens sessions, and is no session's token", async () => {
    const { gateway } = await open(["a"], { adminToken: "boss" });
    expect((await post(gateway, {}, { path: "/sessions" })).status).toBe(401);
    expect((await post(gateway, {}, { path: "/sessions", token: "bos" })).status).toBe(401);
    const opened = await post(gateway, { taskId: "t" }, { path: "/sessions", token: "boss" });
    expect(opened.status).toBe(201);
    const { urls, sessionId, token, ownerToken } = (await opened.json()) as OpenedSession & {
      readonly urls: Record<string, string>;
    };
    expect(urls).toEqual({
      openai: `${base}/s/${token}/v1`,
      anthropic: `${base}/s/${token}`,
    });
    expect((await post(gateway, hi, { token: "boss" })).status).toBe(401);
    const seen = async (key: string) =>
      await gateway.fetch(`${base}/sessions/${sessionId}`, {
        headers: { authorization: `Bearer ${key}` },
      });
    expect((await seen("wrong")).status).toBe(401);
    expect((await seen(token)).status).toBe(401);
    expect((await seen(ownerToken)).status).toBe(200);
    const shown = await (await seen("boss")).text();
    expect(shown).toContain('"taskId":"t"');
    expect(shown).not.toContain(token);
  });

  test.each([
    ["taskId", "a task of its own"],
    ["groupId", "the group of its task"],
  ])("an empty %s opens no session", async (field, otherwise) => {
    const { gateway } = await open([]);
    for (const name of ["", " "]) {
      const refused = await post(gateway, { [field]: name }, { path: "/sessions" });
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({
        error: {
          message: `Cannot use an empty ${field}: give it a name, or leave it out for ${otherwise}`,
        },
      });
    }
    expect(gateway.gateway.counts.openSessionCount).toBe(1);
  });

  test("a member that a body cannot have is refused, and never left out in silence", async () => {
    const { gateway, ownerToken, sessionId } = await open([]);
    const about = (what: string) => ({ path: `/sessions/${sessionId}${what}`, token: ownerToken });
    const unscored =
      "there is no reward beside it, expected reward, with details, components or turnRewards";
    const known = "expected only taskId, groupId, sampleIndex, seed, metadata";
    for (const [body, where, message] of [
      [{ task_id: "t" }, { path: "/sessions" }, `task_id: there is no such member, ${known}`],
      [
        { taskId: "t", sessionId },
        { path: "/sessions" },
        `sessionId: there is no such member, ${known}`,
      ],
      [{ score: 1 }, about("/finish"), `score: ${unscored}`],
      [{ details: {} }, about("/finish"), `details: ${unscored}`],
      [{ score: 1 }, about("/reward"), `score: ${unscored}`],
    ] as const) {
      const refused = await post(gateway, body, where);
      expect(await refused.json()).toMatchObject({ error: { message: `Cannot read ${message}` } });
      expect(refused.status).toBe(400);
    }
    expect(gateway.gateway.counts.openSessionCount).toBe(1);
    expect((await post(gateway, { task_id: null }, { path: "/sessions" })).status).toBe(201);
  });

  test("a key of its own opens a session that only the admin ends", async () => {
    const { gateway, token, ownerToken } = await open(["a", "b"], {
      opensSessions: true,
      adminToken: "boss",
    });
    expect((await post(gateway, hi, { token: "my-own-key" })).status).toBe(200);
    expect((await post(gateway, hi, { token: "my-own-key" })).status).toBe(200);
    const opened = [...gateway.gateway.store.open];
    expect(opened).toHaveLength(2);
    const path = `/sessions/${opened[1]!.identity.sessionId}/finish`;
    for (const key of ["my-own-key", token, ownerToken, ""]) {
      expect((await post(gateway, { reward: 1 }, { path, token: key })).status).toBe(401);
    }
    // Neither the admin's nor an owner's key opens one.
    for (const key of ["boss", ownerToken, "tw-owner-x"]) {
      expect((await post(gateway, hi, { token: key })).status).toBe(401);
    }
    expect((await post(gateway, { reward: 1 }, { path, token: "boss" })).status).toBe(200);
  });

  test("on this machine only requests for this server's name are answered", async () => {
    const { gateway } = await open([]);
    const app = createGatewayApp(gateway.gateway, { opensSessions: true, checksHost: true });
    const ask = async (headers: Record<string, string>) =>
      (await app.fetch(new Request(`${base}/health`, { headers }))).status;
    expect(await ask({ host: "127.0.0.1:8484" })).toBe(200);
    expect(await ask({ host: "localhost" })).toBe(200);
    expect(await ask({ host: "[::1]:1" })).toBe(200);
    expect(await ask({ host: "evil.example" })).toBe(403);
    expect(await ask({ host: "127.0.0.1.evil.example" })).toBe(403);
    expect(await ask({ host: "localhost", origin: "https://evil.example" })).toBe(403);
    expect(await ask({ host: "localhost", origin: "null" })).toBe(403);
  });
});

test("the paths that clients probe first exist", async () => {
  const { gateway, token } = await open([]);
  const looked = [
    await gateway.fetch(`${base}/`, { method: "HEAD" }),
    await gateway.fetch(`${base}/s/${token}`, { method: "HEAD" }),
    await gateway.fetch(`${base}/health`),
    await gateway.fetch(`${base}/v1/models`),
    await gateway.fetch(`${base}/s/${token}/v1/models/some/name`),
  ];
  expect(looked.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(await looked[4]!.json()).toMatchObject({ id: "some/name", object: "model" });
});

describe("refused requests", () => {
  test("bodies that are not JSON, are too large, or name unknown values", async () => {
    const { gateway, token } = await open([]);
    const wrong = await post(gateway, "{", { token });
    expect(wrong.status).toBe(400);
    const large = await post(gateway, hi, {
      token,
      headers: { "content-length": String(65 * 2 ** 20) },
    });
    expect(large.status).toBe(413);
    expect((await gateway.fetch(`${base}/v1/nothing`)).status).toBe(404);
    const lost = await gateway.fetch(`${base}/s/${token}/v1/nothing`);
    expect(await lost.text()).not.toContain(token);
  });

  test.each([
    ["/v1/chat/completions", { messages: [] }],
    ["/v1/responses", { input: [] }],
    ["/v1/messages", { messages: [], max_tokens: 5 }],
  ])("%s: a conversation without a message", async (path, body) => {
    const { gateway, token } = await open([]);
    const response = await post(gateway, { model: "policy", ...body }, { token, path });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("Cannot read the body: there are no messages");
  });

  test("a prompt that is too long, so that clients shorten it", async () => {
    const { gateway, token } = await open([], { limits: { maxContextTokens: 10 } });
    const length = "user\nHi".length + 2 + "assistant\n".length + 1;
    expect(await errorOf(await post(gateway, hi, { token, path: "/v1/messages" }))).toEqual([
      400,
      "invalid_request_error",
      `prompt is too long: ${length} tokens > 9 maximum`,
    ]);
    const chat = await post(gateway, hi, { token });
    expect(await chat.json()).toMatchObject({ error: { code: "context_length_exceeded" } });
  });

  test("more turns than a session's limit, and any request after its end", async () => {
    const { gateway, token, session } = await open(["a"], { limits: { maxTurns: 1 } });
    await (await post(gateway, hi, { token })).text();
    expect((await errorOf(await post(gateway, hi, { token }))) as unknown[]).toEqual([
      410,
      "turnwright_finished",
      "This session has used up its 1 turns",
    ]);
    await gateway.gateway.finish(session, { reward: { reward: 1 } });
    expect((await post(gateway, hi, { token })).status).toBe(410);
    expect((await post(gateway, hi, { token, path: "/v1/messages" })).status).toBe(410);
  });

  test("options without enforcement, if enforcement is required", async () => {
    const tools = [{ type: "function", function: { name: "look", parameters: {} } }];
    const asked = { ...hi, tools, response_format: { type: "json_object" } };
    const { gateway, token } = await open(["a"], { constraints: "refuse" });
    expect(await errorOf(await post(gateway, asked, { token }))).toEqual([
      400,
      "invalid_request_error",
      "Cannot enforce text format json-object: the request gives tools, which the policy may call instead",
    ]);
    const other = await open(["a"]);
    await (await post(other.gateway, asked, { token: other.token })).text();
    expect(other.gateway.gateway.counts.unenforced).toEqual({ "text format json-object": 1 });
  });
});

describe("a form that the engine holds a turn to", () => {
  const asked = { ...hi, response_format: { type: "json_object" } };
  const constraint = { type: "json-schema", schema: { type: "object" } };

  test("is handed on, and kept with the turn", async () => {
    const { engine, gateway, token, session } = await open(["{}", "free"]);
    await (await post(gateway, asked, { token })).text();
    await (await post(gateway, hi, { token })).text();
    expect(engine.constraints).toEqual([constraint, undefined]);
    expect(gateway.gateway.counts.unenforced).toEqual({});
    const { tree } = await gateway.gateway.finish(session);
    expect(tree!.map((turn) => turn.constraint)).toEqual(["json-schema", undefined]);
  });

  test("is counted if the engine accepts it and ignores it", async () => {
    const { gateway, token, session } = await open(["free"]);
    expect((await post(gateway, asked, { token })).status).toBe(200);
    expect(gateway.gateway.counts.unenforced).toEqual({ "text format json-object": 1 });
    expect(session.tree.nodes[0]!.record).toHaveProperty("constraint", "json-schema");
  });

  test("is left out or refused if the engine does not support it", async () => {
    const unknown = () => new RolloutError("engine/bad-request", "this engine has none");
    const { engine, gateway, token, session } = await open([unknown(), "free"]);
    expect((await post(gateway, asked, { token })).status).toBe(200);
    expect(engine.constraints).toEqual([constraint, undefined]);
    expect(gateway.gateway.counts.unenforced).toEqual({ "text format json-object": 1 });
    expect(session.tree.nodes[0]!.record).not.toHaveProperty("constraint");
    const strict = await open([unknown()], { constraints: "refuse" });
    expect(await errorOf(await post(strict.gateway, asked, { token: strict.token }))).toEqual([
      400,
      "invalid_request_error",
      "Cannot enforce text format json-object: the engine does not accept this constraint",
    ]);
  });
});

test("an invalid context length of the engine limits no session, and is warned about", async () => {
  const engine: Engine = {
    ...talkingEngine(["Hello"]),
    describe: async () => ({ kind: "own", logprobConvention: "raw", contextLength: 0 }),
  };
  const opened = await openInProcess({ engine, renderer: createCharacterRenderer() });
  expect(opened.warnings).toEqual([
    expect.stringContaining("the engine talking names the context length 0, expected a whole"),
  ]);
  const { token } = await opened.gateway.openSession({ taskId: "t" });
  expect((await post(opened, hi, { token })).status).toBe(200);
});

describe("an engine in trouble", () => {
  test("is reported before the reply starts, and has no other effect", async () => {
    const gone = new RolloutError("engine/unreachable", "Nobody answers");
    const failures: unknown[] = [];
    const onFailure = (error: unknown): void => void failures.push(error);
    const { gateway, token, session } = await open([gone, "fine"], { onFailure });
    const failed = await post(gateway, { ...hi, stream: true }, { token });
    expect(failed.headers.get("retry-after")).toBe("1");
    expect(await errorOf(failed)).toEqual([
      503,
      "server_error",
      "The engine did not answer (engine/unreachable); the gateway's own output says why",
    ]);
    expect(failures).toEqual([gone]);
    expect((await post(gateway, hi, { token })).status).toBe(200);
    expect(session.tree.nodes).toHaveLength(1);
  });

  test("is reported within a started stream, which then adds no turn", async () => {
    const { gateway, token, engine, session } = await open(["Hello there", "fine"]);
    engine.breakAt = 5;
    const text = await (await post(gateway, { ...hi, stream: true }, { token })).text();
    expect(text).toContain('"content":"H"');
    expect(text).toContain('"code":"engine_unavailable"');
    expect(text).not.toContain("[DONE]");
    expect(session.tree.nodes).toHaveLength(0);
  });
});

describe("retries", () => {
  const marked = { "x-stainless-retry-count": "1" };

  test("that are marked are answered from the record", async () => {
    const { gateway, token, engine } = await open(["first", "second"]);
    const first = await (await post(gateway, hi, { token })).text();
    expect(await (await post(gateway, hi, { token, headers: marked })).text()).toBe(first);
    expect(engine.asked).toBe(1);
    expect(gateway.gateway.counts.replayedCount).toBe(1);
  });

  test("that are marked join the running reply", async () => {
    const waiting = createDeferred<string>();
    const { gateway, token, engine } = await open([async () => await waiting.promise]);
    const asked = { ...hi, stream: true };
    const first = post(gateway, asked, { token });
    const second = post(gateway, asked, { token, headers: marked });
    while (gateway.gateway.counts.replayedCount === 0) await Promise.resolve();
    waiting.resolve("one turn");
    const texts = await Promise.all([first, second].map(async (each) => await (await each).text()));
    expect(texts[0]).toContain("[DONE]");
    expect(texts[1]).toBe(texts[0]);
    expect(engine.asked).toBe(1);
  });

  test("that are not marked are sampled again, as another attempt", async () => {
    const { gateway, token, session } = await open(["first", "second"]);
    const replies = [await post(gateway, hi, { token }), await post(gateway, hi, { token })];
    for (const reply of replies) await reply.text();
    expect(session.tree.nodes.map(({ cause }) => cause)).toEqual(["first", "repeated-prompt"]);
    expect(gateway.gateway.samples(session)).toHaveLength(2);
  });
});

describe("a client that goes away", () => {
  test("ends the sampling, and the next request is answered as usual", async () => {
    const aborted = createDeferred();
    const { gateway, token, session } = await open([
      async (signal) => {
        signal.addEventListener("abort", () => aborted.resolve());
        return await new Promise<string>((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        });
      },
      "fine",
    ]);
    const gone = new AbortController();
    const asked = post(gateway, { ...hi, stream: true }, { token, signal: gone.signal });
    asked.catch(() => {});
    while (session.activeCount === 0) await new Promise((resolve) => setImmediate(resolve));
    gone.abort();
    await aborted.promise;
    const next = await post(gateway, hi, { token });
    expect(next.status).toBe(200);
    await next.text();
    expect(session.tree.nodes.map(({ isDelivered }) => isDelivered)).toEqual([true]);
    expect(gateway.gateway.counts.undeliveredCount).toBe(1);
  });
});

describe("a pause", () => {
  test("holds turns back until it is over", async () => {
    const { gateway, token, engine } = await open(["fine"]);
    expect(await (await post(gateway, {}, { path: "/pause" })).json()).toEqual({ isPaused: true });
    const asked = post(gateway, hi, { token });
    for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve));
    expect(engine.asked).toBe(0);
    await post(gateway, {}, { path: "/resume" });
    expect((await asked).status).toBe(200);
  });

  test("longer than a client waits is reported in the dialect's own form", async () => {
    const hand = createManualClock();
    const { gateway, token } = await open([], { holdMs: 500, clock: createClock(hand) });
    gateway.gateway.pause();
    const asked = post(gateway, hi, { token, path: "/v1/messages" });
    while (!hand.sleeps.includes(500)) await new Promise((resolve) => setImmediate(resolve));
    await hand.advance(500);
    expect(await errorOf(await asked)).toEqual([
      529,
      "overloaded_error",
      "The policy's weights are being exchanged",
    ]);
  });
});

describe("the end of a session", () => {
  test("rewards, samples and the tree are available over HTTP", async () => {
    const { gateway, token, ownerToken, sessionId } = await open(["Hello"]);
    await (await post(gateway, hi, { token })).text();
    const at = (what: string) => ({ path: `/sessions/${sessionId}${what}`, token: ownerToken });
    const refused = await post(gateway, { reward: "1" }, at("/reward"));
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain('"Cannot read reward: expected a number"');
    const components = { tests: { value: 1, weight: 0.25 }, style: { value: 0.5, weight: 0.5 } };
    const wrong = await post(gateway, { reward: 0.6, components }, at("/reward"));
    expect([wrong.status, await wrong.text()]).toEqual([
      400,
      expect.stringContaining(
        "Cannot use the reward: components adds up to 0.5, and the reward is 0.6",
      ),
    ]);
    const byTurn = await post(gateway, { reward: 1, turnRewards: [1] }, at("/reward"));
    expect(await byTurn.text()).toContain("it has turnRewards before the session's end");
    const given = await post(gateway, { reward: 0.5, components }, at("/reward"));
    expect(given.status).toBe(200);
    const samples = await get(gateway, at("/samples"));
    const { samples: rows } = (await samples.json()) as { samples: unknown[] };
    expect(rows.flatMap((row) => verifySample(row))).toEqual([]);
    const ended = await post(gateway, {}, at("/finish"));
    expect(await ended.json()).toMatchObject({
      rolloutId: "t#0",
      outcome: "completed",
      stopReason: "finished",
      reward: 0.5,
      rewardComponents: components,
      rows: 1,
    });
  });

  test("the end of a session may give a reward for each turn, by the turn's index", async () => {
    const { gateway, token, ownerToken, sessionId } = await open(["one", "two", "three"]);
    await (await post(gateway, hi, { token })).text();
    const second = (await (await post(gateway, hi, { token })).json()) as {
      choices: [{ message: object }];
    };
    const [{ message }] = second.choices;
    const next = [...hi.messages, message, { role: "user", content: "Go on" }];
    await (await post(gateway, { ...hi, messages: next }, { token })).text();
    const at = { path: `/sessions/${sessionId}/finish`, token: ownerToken };
    const wrong = await post(gateway, { reward: 1, turnRewards: [0.25, 0.25, 0.5] }, at);
    expect([wrong.status, await wrong.text()]).toEqual([
      400,
      expect.stringContaining(
        "turnRewards[0] is 0.25, and this turn is in no row (rejected: resumed-sibling): expected 0",
      ),
    ]);
    const ended = await post(gateway, { reward: 1, turnRewards: [0, 0.25, 0.75] }, at);
    expect(await ended.json()).toMatchObject({ reward: 1, turnRewards: [0.25, 0.75], rows: 1 });
  });

  test("rewards of turns are refused while a turn is sampled", async () => {
    const { gateway, token, ownerToken, sessionId } = await open([
      async (signal) => await new Promise((_, reject) => signal.addEventListener("abort", reject)),
    ]);
    const asked = post(gateway, hi, { token });
    await expect.poll(() => gateway.gateway.store.byId(sessionId)!.activeCount).toBe(1);
    const at = { path: `/sessions/${sessionId}/finish`, token: ownerToken };
    const early = await post(gateway, { reward: 1, turnRewards: [] }, at);
    expect([early.status, await early.text()]).toEqual([
      400,
      expect.stringContaining("1 requests of the session are under way, expected none"),
    ]);
    expect((await post(gateway, { reward: 1 }, at)).status).toBe(200);
    await asked;
  });

  test("a finished session is reported as such to its owner and the admin, and to no other", async () => {
    const { gateway, token, ownerToken, sessionId } = await open(["Hello"], { adminToken: "boss" });
    const path = `/sessions/${sessionId}/finish`;
    expect((await post(gateway, {}, { path, token: ownerToken })).status).toBe(200);
    for (const key of [ownerToken, "boss"]) {
      expect(await errorOf(await post(gateway, {}, { path, token: key }))).toEqual([
        410,
        "turnwright_finished",
        "This session is finished",
      ]);
    }
    const elsewhere = "/sessions/s9-0/finish";
    expect((await post(gateway, {}, { path: elsewhere, token: "boss" })).status).toBe(404);
    // The answer does not distinguish a finished session from one that never existed.
    const answers: unknown[] = [];
    for (const where of [path, elsewhere]) {
      for (const key of [token, "somebody"]) {
        answers.push(await errorOf(await post(gateway, {}, { path: where, token: key })));
      }
    }
    expect(answers).toEqual(Array.from({ length: 4 }, () => notTheOwner));
  });

  test("no reward stays no reward, and a scorer's failure is the scorer's", async () => {
    const ends = [
      await open(["a"]),
      await open(["a"], { scorer: () => ({ reward: 0.25, details: { words: 1 } }) }),
      await open(["a"], {
        scorer: () => {
          throw new Error("broken");
        },
      }),
      await open(["a"], { scorer: () => ({ reward: Number.NaN }) }),
    ];
    const answers: unknown[] = [];
    for (const { gateway, token, session } of ends) {
      await (await post(gateway, hi, { token })).text();
      const { outcome, stopReason, reward, failure } = await gateway.gateway.finish(session);
      answers.push([outcome, stopReason, reward, failure?.code]);
    }
    expect(answers).toEqual([
      ["completed", "unscored", undefined, undefined],
      ["completed", "finished", 0.25, undefined],
      ["failed", "failure", undefined, "grader/exception"],
      ["failed", "failure", undefined, "grader/bad-reply"],
    ]);
  });

  test("a scorer may give a reward for each turn of the session's tree", async () => {
    const ends: unknown[] = [];
    for (const earned of [0, 0.5]) {
      const { gateway, token, session } = await open(["one", "two", "three"], {
        scorer: ({ tree }) => ({
          reward: 1,
          turnRewards: tree.map(({ rejected }) => (rejected === undefined ? 0.5 : earned)),
        }),
      });
      await (await post(gateway, hi, { token })).text();
      const second = (await (await post(gateway, hi, { token })).json()) as {
        choices: [{ message: object }];
      };
      const [{ message }] = second.choices;
      const next = [...hi.messages, message, { role: "user", content: "Go on" }];
      await (await post(gateway, { ...hi, messages: next }, { token })).text();
      const { turnRewards, failure } = await gateway.gateway.finish(session);
      ends.push([turnRewards, failure?.code]);
    }
    expect(ends).toEqual([
      [[0.5, 0.5], undefined],
      [undefined, "grader/bad-reply"],
    ]);
  });

  test("an idle session ends, and that is the agent's failure", async () => {
    const hand = createManualClock();
    const episodes: unknown[] = [];
    const { gateway, token } = await open(["a"], {
      clock: createClock(hand),
      limits: { idleTimeoutMs: 1000 },
      onEpisode: async ({ outcome, failure }) => void episodes.push([outcome, failure?.code]),
    });
    await (await post(gateway, hi, { token })).text();
    await hand.advance(1000);
    while (episodes.length === 0) {
      await hand.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(episodes).toEqual([["failed", "agent/idle"]]);
    expect((await post(gateway, hi, { token })).status).toBe(410);
  });

  test("turns that were asked of another model's name are shown, not trained", async () => {
    const { gateway, token, session } = await open(["A title", "Hello"], {
      policyModels: ["policy"],
    });
    await (await post(gateway, { ...hi, model: "small" }, { token })).text();
    await (
      await post(gateway, { ...hi, messages: [...hi.messages, ...hi.messages] }, { token })
    ).text();
    const rows = gateway.gateway.samples(session);
    expect(rows.map(({ turns }) => turns.length)).toEqual([1]);
  });
});

test("ten thousand sessions may be open at once, and one more than the limit may not", async () => {
  const { gateway } = await open([], { limits: { maxSessions: 10_001 } });
  for (let count = 0; count < 10_000; count++) await gateway.gateway.openSession();
  expect(gateway.gateway.store.openCount).toBe(10_001);
  await expect(gateway.gateway.openSession()).rejects.toThrow("10001 sessions are open");
});
