import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { createStorefront } from "../environments/storefront/index.ts";
import type { Engine } from "../src/engine/engine.ts";
import { Gateway } from "../src/gateway/gateway.ts";
import { serveGateway } from "../src/gateway/server/serve.ts";
import { Redactor } from "../src/secrets/redactor.ts";
import { startMetricsServer } from "../src/metrics/metrics-server.ts";
import { RunTally } from "../src/run/run-progress.ts";
import { openLamps } from "../src/service/lamp-service.fixture.ts";
import { serveRollouts } from "../src/service/server/serve-rollouts.ts";
import { createCharacterRenderer } from "../src/testing/character-renderer.ts";
import { startLlamaCppTestServer } from "../src/testing/protocol-servers/llama-cpp/llama-cpp-test-server.ts";
import { startSglangTestRouter } from "../src/testing/protocol-servers/sglang/router/sglang-test-router.ts";
import { startSglangTestServer } from "../src/testing/protocol-servers/sglang/sglang-test-server.ts";
import { startVllmTestServer } from "../src/testing/protocol-servers/vllm/vllm-test-server.ts";
import { startViewer } from "../src/viewer/server.ts";
import { RunCatalog } from "../src/viewer/source/run-catalog.ts";
import { serveOpenEnv } from "../src/worlds/open-env/serve-open-env.ts";

// Requests that a port scanner, a web page or a broken client can send. Each server must still
// answer after them.

/** A server, and a path that it answers with 200. */
interface Served {
  readonly url: string;
  readonly alivePath: string;
}

const names = [
  "serve",
  "gateway",
  "view",
  "env serve",
  "/metrics",
  "SGLang test server",
  "SGLang test router",
  "vLLM test server",
  "llama.cpp test server",
] as const;
const servers = new Map<string, Served>();
const resources: AsyncDisposable[] = [];

const engine: Engine = {
  kind: "silent",
  generate: () => Promise.reject(new Error("nothing is sampled here")),
  describe: async () => ({ kind: "silent", logprobConvention: "tempered" }),
  close: async () => {},
};

beforeAll(async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-hostile-"));
  resources.push({ [Symbol.asyncDispose]: async () => await rm(dir, { recursive: true }) });
  const place = { host: "127.0.0.1", port: 0 };
  const add = (
    name: (typeof names)[number],
    alivePath: string,
    served: AsyncDisposable & { url: string },
  ) => {
    resources.push(served);
    servers.set(name, { url: served.url, alivePath });
  };
  const service = await openLamps(dir);
  resources.push(service);
  const about = { version: "0", redactor: new Redactor() };
  add("serve", "/v1/health", await serveRollouts(service, { ...place, ...about }));
  const gateway = new Gateway({ engine, renderer: createCharacterRenderer() });
  resources.push(gateway);
  add("gateway", "/health", await serveGateway(gateway, { ...place, opensSessions: false }));
  add("view", "/", await startViewer(new RunCatalog(), { port: 0 }));
  add("env serve", "/health", await serveOpenEnv(createStorefront(), { ...place, maxSessions: 1 }));
  const progress = new RunTally({ now: () => 0 }).progress();
  add("/metrics", "/metrics", await startMetricsServer({ progress: () => progress }, { port: 0 }));
  add("SGLang test server", "/health", await startSglangTestServer());
  add("SGLang test router", "/health", await startSglangTestRouter({ workers: [] }));
  add("vLLM test server", "/health", await startVllmTestServer());
  add("llama.cpp test server", "/health", await startLlamaCppTestServer());
}, 120_000);
afterAll(async () => {
  for (const resource of resources.toReversed()) await resource[Symbol.asyncDispose]();
});

function serverOf(name: string): Served {
  const served = servers.get(name);
  if (served === undefined) throw new Error(`no server ${name}`);
  return served;
}

function open(name: string): Socket {
  const socket = connect(Number(new URL(serverOf(name).url).port), "127.0.0.1");
  socket.on("error", () => {});
  return socket;
}

/** Sends bytes and reads until the server closes; `half`: closes our half of the connection first. */
async function send(name: string, bytes: string | Buffer, { half = false } = {}): Promise<string> {
  const socket = open(name);
  if (half) socket.end(bytes);
  else socket.write(bytes);
  let text = "";
  socket.setEncoding("latin1").on("data", (piece: string) => (text += piece));
  await new Promise((resolve) => socket.once("close", resolve));
  return text;
}

/** Sends bytes and resets the connection, some turns of the event loop later. */
async function sendAndReset(name: string, bytes: string, turns: number): Promise<void> {
  const socket = open(name);
  await new Promise((resolve) => socket.write(bytes, resolve));
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
  socket.resetAndDestroy();
}

async function expectAlive(name: string): Promise<void> {
  const { url, alivePath } = serverOf(name);
  const response = await fetch(new URL(alivePath, url));
  expect([name, response.status]).toEqual([name, 200]);
  await response.arrayBuffer();
}

function get(target: string, more = "", method = "GET"): string {
  return `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${more}\r\n`;
}

const webSocket =
  "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

function upgrade(target: string, more = webSocket): string {
  return `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n${more}\r\n`;
}

const targets = [
  "//",
  "///",
  "//evil.example/x",
  "http://[",
  "http://evil.example/ws",
  "http://",
  "*",
  "/%",
  "/%ff/%c3",
  "/%00",
  "/\u0080\u00ff",
  "/..%2f..%2fetc/passwd",
  "/?",
  "/?%",
  "/#x",
  "?",
  "/\\",
  "/__proto__",
  "/constructor/tasks",
  "/s/%/v1/models",
  `/${"a".repeat(9_000)}`,
  "javascript:0",
];

const raw = [
  "\r\n\r\n",
  "GET\r\n\r\n",
  "\0\0\0\0",
  "\x16\x03\x01\x02\0",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "GET / HTTP/9.9\r\n\r\n",
  "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
  "GET / HTTP/1.1\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
  "GET / HTTP/1.0\r\n\r\n",
  `GET /${"a".repeat(40_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
  `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${"a".repeat(40_000)}\r\n\r\n`,
  "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
  "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\nhalf",
  "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 200-ok\r\nConnection: close\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: [\r\nConnection: close\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: a b/\\?#@%\r\nConnection: close\r\n\r\n",
];

describe.each(names)("%s", (name) => {
  test("answers hostile request targets, and continues", async () => {
    for (const target of targets) {
      for (const method of ["GET", "POST"]) {
        const more =
          method === "POST" ? "Content-Length: 2\r\nContent-Type: application/json\r\n" : "";
        const body = method === "POST" ? "{}" : "";
        const answer = await send(name, get(target, more, method) + body);
        expect([target, answer.slice(0, 9)]).toEqual([target, "HTTP/1.1 "]);
        expect([target, Number(answer.slice(9, 12))]).not.toEqual([target, 500]);
      }
    }
    await expectAlive(name);
  }, 120_000);

  test("survives bytes that are not a request", async () => {
    for (const bytes of raw) await send(name, bytes, { half: true });
    await expectAlive(name);
  }, 120_000);

  test("survives upgrades, also ones that are reset during their refusal", async () => {
    for (const target of [...targets, "/", "/ws", "/nope", "/metrics"]) {
      await send(name, upgrade(target), { half: true });
    }
    for (const more of [
      "Upgrade: h2c\r\n",
      "Upgrade: websocket\r\n",
      `${webSocket}Origin: null\r\n`,
    ]) {
      await send(name, upgrade("/ws", more), { half: true });
    }
    for (let turns = 0; turns < 20; turns++) {
      for (const target of ["//", "/nope", "/ws"]) await sendAndReset(name, upgrade(target), turns);
      await sendAndReset(name, get("/"), turns);
      await sendAndReset(name, "GET / HT", turns);
    }
    await expectAlive(name);
  }, 120_000);

  test("refuses another site's page that reaches it by another host name", async () => {
    if (name.includes("test")) return;
    const { alivePath } = serverOf(name);
    for (const host of ["evil.example", "127.0.0.1.evil.example", "[", "evil.example:8000"]) {
      const answer = await send(
        name,
        `GET ${alivePath} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      expect([host, answer]).toEqual([host, expect.stringMatching(/^HTTP\/1\.1 40[03] /)]);
    }
  });
});

describe("env serve's WebSocket", () => {
  test.each([
    ["//", "", "404"],
    ["/nope", "", "404"],
    ["/ws", "Origin: http://evil.example\r\n", "403"],
    ["/ws", "Origin: null\r\n", "403"],
    ["/ws", "Origin: http://127.0.0.1:3000\r\n", "101"],
    ["/ws?x=1", "", "101"],
  ])("answers an upgrade to %s with %j by %s", async (target, more, status) => {
    const socket = open("env serve");
    socket.write(upgrade(target, webSocket + more));
    const answer = await new Promise<Buffer>((resolve) => socket.once("data", resolve));
    expect(answer.toString("latin1").slice(9, 12)).toBe(status);
    socket.destroy();
  });

  test("survives invalid frames and a reset refusal", async () => {
    const frames = [
      Buffer.from([0x81, 0x01, 0x41]),
      Buffer.from([0xff, 0xff, 0xff]),
      Buffer.from([0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
      Buffer.from([0x88, 0x81, 0, 0, 0, 0, 0]),
      Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0xff]),
    ];
    for (const frame of frames) {
      await send("env serve", Buffer.concat([Buffer.from(upgrade("/ws")), frame]), { half: true });
    }
    await expectAlive("env serve");
  });

  test("refuses a second session without harm if the client disconnects", async () => {
    const { url } = serverOf("env serve");
    const first = new WebSocket(`${url.replace("http", "ws")}/ws`);
    await new Promise((resolve) => first.once("open", resolve));
    for (let turns = 0; turns < 20; turns++) await sendAndReset("env serve", upgrade("/ws"), turns);
    const wrong = Buffer.concat([Buffer.from(upgrade("/ws")), Buffer.from([0xff, 0xff])]);
    await send("env serve", wrong, { half: true });
    await expectAlive("env serve");
    first.terminate();
  });
});

describe("a compressed body", () => {
  const bomb = gzipSync(Buffer.alloc(80 * 2 ** 20, "a"));
  const post = async (name: string, target: string, coding: string, body: Buffer) => {
    const response = await fetch(new URL(target, serverOf(name).url), {
      method: "POST",
      headers: { "content-type": "application/json", "content-encoding": coding },
      body: new Uint8Array(body),
    });
    return {
      status: response.status,
      accepted: response.headers.get("accept-encoding"),
      text: await response.text(),
    };
  };
  const places = [
    ["serve", "/v1/clear", { keyPrefix: "x" }],
    ["gateway", "/sessions", { taskId: "x" }],
    ["env serve", "/storefront/num_tasks", { split: "train" }],
  ] as const;

  test.each(places)("is read by %s", async (name, target, body) => {
    const bytes = Buffer.from(JSON.stringify(body));
    const plain = await post(name, target, "identity", bytes);
    const packed = await post(name, target, "gzip", gzipSync(bytes));
    expect([plain.status, packed.status]).toEqual([packed.status, plain.status]);
    expect(packed.status).toBeLessThan(300);
  });

  test.each(places)("is refused by %s if it is unreadable", async (name, target, body) => {
    const bytes = Buffer.from(JSON.stringify(body));
    const unknown = await post(name, target, "lz4", bytes);
    expect(unknown).toMatchObject({
      status: 415,
      accepted: expect.stringContaining("gzip") as string,
    });
    expect(unknown.text).toContain('the content coding \\"lz4\\" is not supported, expected gzip');
    const broken = await post(name, target, "gzip", bytes);
    expect(broken.status).toBe(400);
    expect(broken.text).toContain("the body is not the gzip that its Content-Encoding says");
    expect((await post(name, target, "gzip", bomb)).status).toBe(413);
    await expectAlive(name);
  });
});
