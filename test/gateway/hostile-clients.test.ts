import { connect, type Socket } from "node:net";
import { request as httpRequest } from "node:http";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { RolloutError } from "../../src/errors.ts";
import { Gateway } from "../../src/gateway/gateway.ts";
import { dialects } from "../../src/gateway/dialects/registry.ts";
import { serveGateway, type ServedGateway } from "../../src/gateway/server/serve.ts";
import { BodyBudget, readBody } from "../../src/gateway/server/read-request.ts";
import { createDeferred } from "../../src/testing/deferred.ts";
import { characterIds, createCharacterRenderer } from "../../src/testing/character-renderer.ts";

// Clients over real sockets that misbehave. Before, during and after each of them, another session
// is answered as usual.

let gateway: Gateway;
let served: ServedGateway;
let troubles: unknown[] = [];
/** The engine's next action; by default it says "fine". */
let turns: (() => Promise<string>)[] = [];

const engine: Engine = {
  kind: "hostile",
  async generate({ requestId }, { onTokens, signal } = {}) {
    const text = (await turns.shift()?.()) ?? "fine";
    const outputIds = characterIds(text);
    for (const id of outputIds) {
      signal?.throwIfAborted();
      onTokens?.({ tokenIds: [id], logprobs: [-1] });
      if (text.length < 1000) await new Promise((resolve) => setImmediate(resolve));
    }
    return {
      outputIds,
      logprobs: outputIds.map(() => -1),
      discarded: [],
      finish: { type: "stop", matched: outputIds.at(-1)! },
      pieces: [{ requestId, tokenCount: outputIds.length, policyVersion: "1", finish: "stop" }],
    };
  },
  describe: async () => ({ kind: "hostile", logprobConvention: "tempered" }),
  close: async () => {},
};

beforeEach(async () => {
  [turns, troubles] = [[], []];
  const limits = { maxContextTokens: 40_000_000, maxTokensPerTurn: 40_000_000 };
  gateway = new Gateway({
    engine,
    renderer: createCharacterRenderer(),
    limits,
    onTrouble: (error) => void troubles.push(error),
  });
  served = await serveGateway(gateway, { host: "127.0.0.1", port: 0, opensSessions: true });
});

afterEach(async () => {
  await served[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
  expect(troubles).toEqual([]);
});

const hi = { model: "policy", messages: [{ role: "user", content: "Hi" }] };

async function ask(key: string, body: unknown = hi, path = "/v1/chat/completions") {
  return await fetch(served.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** Another session, which must not be disturbed. */
async function expectUndisturbed(): Promise<void> {
  const response = await ask("somebody-else");
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('"content":"fine"');
}

function open(lines: readonly string[]): Socket {
  const { port } = new URL(served.url);
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => {
    // The other side may be gone first.
  });
  socket.write([...lines, "", ""].join("\r\n"));
  return socket;
}

const streamed = JSON.stringify({ ...hi, stream: true });
const asking = (length: number | string): readonly string[] => [
  "POST /v1/chat/completions HTTP/1.1",
  "host: 127.0.0.1",
  "authorization: Bearer slow",
  "content-type: application/json",
  `content-length: ${length}`,
];

describe("a client over a socket", () => {
  test("a client that reads nothing is disconnected, and slows no other", async () => {
    const printed = vi.spyOn(console, "error");
    turns = [async () => "x".repeat(400_000)];
    const socket = open([...asking(streamed.length), "connection: close"]);
    socket.pause();
    socket.write(streamed);
    const session = await sessionOf("slow");
    while (session.tree.nodes.length === 0) await expectUndisturbed();
    // The turn is complete and in the tree; no client received it.
    while (gateway.counts.undeliveredCount === 0) {
      await expectUndisturbed();
      await pause(100);
    }
    expect(session.tree.nodes[0]!.isDelivered).toBe(false);
    expect(gateway.samples(session)).toEqual([]);
    // The connection breaks at once, without a marker of the reply's end.
    let received = "";
    socket.setEncoding("utf8").on("data", (text: string) => (received += text));
    socket.resume();
    await once(socket, "close");
    expect(received).toMatch(/^HTTP\/1\.1 200/);
    expect(received).not.toMatch(/Error:|\r\n0\r\n\r\n$/);
    expect(printed).not.toHaveBeenCalled();
    printed.mockRestore();
  });

  test("that leaves in the middle of its body, or of its reply, is forgotten", async () => {
    const half = open(asking(1000));
    half.write('{"messages"');
    await expectUndisturbed();
    half.destroy();
    const never = createDeferred<string>();
    turns = [async () => await never.promise];
    const waiting = open(asking(streamed.length));
    waiting.write(streamed);
    const session = await sessionOf("slow");
    while (session.activeCount === 0) await expectUndisturbed();
    waiting.destroy();
    never.resolve("late");
    while (session.activeCount > 0) await expectUndisturbed();
    expect(session.tree.nodes).toHaveLength(0);
  });

  test("a client that sends 64 MiB and more in chunks is refused", async () => {
    const { port } = new URL(served.url);
    const request = httpRequest({
      host: "127.0.0.1",
      port,
      method: "POST",
      path: "/v1/chat/completions",
      headers: { authorization: "Bearer large", "transfer-encoding": "chunked" },
    });
    const replied = once(request, "response");
    request.on("error", () => {
      // The connection may be closed while the client is still sending.
    });
    const chunk = Buffer.alloc(4 * 2 ** 20, "x");
    for (let sent = 0; sent < 17; sent++) {
      if (!request.write(chunk)) await Promise.race([once(request, "drain"), replied]);
      await expectUndisturbed();
    }
    request.end();
    const [response] = (await replied) as [{ statusCode: number; resume(): void }];
    expect(response.statusCode).toBe(413);
    response.resume();
    await expectUndisturbed();
  });

  test("that sends as much as it may is answered", async () => {
    const user = "long ".repeat(12 * 2 ** 20);
    const response = await ask("large", { ...hi, user });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('"content":"fine"');
    await expectUndisturbed();
  });

  test.each([
    ["a tool", `{"messages": [], "tools": [{"function": {"name": "f", "parameters": DEEP}}]}`, 400],
    ["an input", `{"messages": [{"role": "assistant", "content": DEEP}]}`, 400],
    [
      "a field that is not read",
      `{"messages": [{"role": "user", "content": "x"}], "x": DEEP}`,
      200,
    ],
  ])("that nests %s ten thousand deep is refused", async (_, body, status) => {
    const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
    expect((await ask("deep", body.replace("DEEP", deep))).status).toBe(status);
    await expectUndisturbed();
  });

  test("keeps no part of a body that leads to no turn", async () => {
    const readHistory = vi.spyOn(dialects.chat, "readHistory");
    const itemCounts = async (body: unknown, path?: string): Promise<number> => {
      readHistory.mockClear();
      await (await ask("greedy", body, path)).text();
      return readHistory.mock.calls.reduce((count, [items]) => count + items.length, 0);
    };
    const messages = [...hi.messages, ...hi.messages];
    expect(await itemCounts({ messages })).toBe(2);
    expect(await itemCounts({ messages })).toBe(0);
    const more = [...messages, ...messages, ...messages];
    turns = [
      async () => {
        throw new RolloutError("engine/unreachable", "The engine is down", { retryable: true });
      },
    ];
    expect(await itemCounts({ messages: more })).toBe(4);
    expect(await itemCounts({ messages: more })).toBe(6);
    expect(await itemCounts({ messages: more })).toBe(0);
    readHistory.mockRestore();
  });

  test("that sends far too much again and again takes no memory with it", async () => {
    await using small = new Gateway({
      engine,
      renderer: createCharacterRenderer(),
      limits: { maxContextTokens: 1000 },
    });
    const collect = (): number => {
      setFlagsFromString("--expose-gc");
      (runInNewContext("gc") as () => void)();
      return process.memoryUsage().heapUsed;
    };
    const long = "x".repeat(200_000);
    const before = collect();
    for (let count = 0; count < 15; count++) {
      const { token } = await small.openSession();
      const session = small.store.byToken(token)!;
      for (let attempt = 0; attempt < 4; attempt++) {
        const messages = [`${attempt}`, long].map((content) => ({ role: "user", content }));
        const body = Buffer.from(JSON.stringify({ messages }));
        const request = { headers: new Headers(), body };
        const feed = await small.ask(session, dialects.chat, request);
        // The test's expectation of a promise keeps all of the promise's references alive.
        const received = await feed.head.catch((error: unknown) => String(error));
        expect(received).toContain("prompt is too long");
      }
    }
    // Twelve megabytes of text came.
    expect(collect() - before).toBeLessThan(4_000_000);
  });

  test("a client whose history has unreadable arguments is answered", async () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    for (const argumentsText of [deep, "{", "", "\u0000", '"text"']) {
      const call = { id: "c", type: "function", function: { name: "f", arguments: argumentsText } };
      const messages = [
        ...hi.messages,
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "c", content: "r" },
      ];
      expect((await ask("odd", { messages })).status).toBe(200);
    }
    await expectUndisturbed();
  });

  test("a client that sends more messages than any context holds is refused before they are rendered", async () => {
    const messages = Array.from({ length: 60_000 }, () => ({ role: "user", content: "" }));
    const response = await ask("many", { messages }, "/v1/messages");
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("prompt is too long: at least 60000 tokens > 49999");
    await expectUndisturbed();
  });

  test("that says wrong things in its headers gets an answer", async () => {
    const answers: string[] = [];
    for (const lines of [
      ["POST /v1/chat/completions HTTP/1.1", "host: evil.example"],
      ["POST /v1/chat/completions HTTP/1.1", "host: 127.0.0.1", "origin: https://evil.example"],
      ["POST /v1/chat/completions HTTP/1.1", "host: 127.0.0.1", "content-length: 1, 2"],
      [
        "POST /v1/chat/completions HTTP/1.1",
        "host: 127.0.0.1",
        "content-length: 2",
        "transfer-encoding: chunked",
      ],
      ["GET /s/%2e%2e/sessions HTTP/1.1", "host: 127.0.0.1"],
      ["GET http://evil.example/health HTTP/1.1", "host: evil.example"],
      ["GET /health HTTP/1.1", "host: 127.0.0.1", "host: evil.example"],
      // More than the 16 KiB limit, and less than one read: unread bytes would reset the
      // connection.
      [`GET /health HTTP/1.1`, "host: 127.0.0.1", `x: ${"y".repeat(20_000)}`],
    ]) {
      const socket = open([...lines, "connection: close"]);
      let received = "";
      socket.setEncoding("utf8").on("data", (text: string) => (received += text));
      await once(socket, "close");
      answers.push(/^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? received);
    }
    expect(answers).toEqual(["403", "403", "400", "400", "404", "403", "403", "431"]);
    await expectUndisturbed();
  });
});

test("an engine outage is reported to each client, and fails no session", async () => {
  const down = new RolloutError("engine/overloaded", "503 of the engine");
  turns = Array.from({ length: 50 }, () => async () => await Promise.reject(down));
  const asked = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => await ask(`session ${index}`)),
  );
  expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([503]));
  const again = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => await ask(`session ${index}`)),
  );
  expect(new Set(again.map(({ status }) => status))).toEqual(new Set([200]));
});

test("bodies that are read concurrently share one limit", async () => {
  const budget = new BodyBudget();
  budget.take(1023 * 2 ** 20);
  const post = (size: number) =>
    new Request("http://localhost/", { method: "POST", body: Buffer.alloc(size) });
  await expect(readBody(post(2 * 2 ** 20), { limit: 2 ** 26, budget })).rejects.toMatchObject({
    kind: "overloaded",
  });
  // The refused bytes are returned to the limit.
  expect(await readBody(post(2 ** 20), { limit: 2 ** 26, budget })).toHaveLength(2 ** 20);
  expect(await readBody(post(2 ** 20), { limit: 2 ** 26, budget })).toHaveLength(2 ** 20);
});

async function sessionOf(key: string) {
  for (;;) {
    const session = gateway.store.byToken(key);
    if (session !== undefined) return session;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
