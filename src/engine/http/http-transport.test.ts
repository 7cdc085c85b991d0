import { hash } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { Redactor } from "../../secrets/redactor.ts";
import { acquireBytes } from "../../text/lent-bytes.ts";
import { failureOfOutcome } from "./http-failure.ts";
import { createHttpTransport } from "./http-transport.ts";
import { jsonWithIds } from "./json-with-ids.ts";
import { createSglangEngine } from "../sglang/sglang-engine.ts";

const apiKey = "sk-of-the-engine";

/** Starts a server, and a transport to it. */
async function serve(
  answer: RequestListener,
  options: Partial<Parameters<typeof createHttpTransport>[0]> = {},
) {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = createHttpTransport({
    url,
    connectMs: 60_000,
    maxConnections: 1,
    maxReplyBytes: 1_000,
    redactor: new Redactor(),
    ...options,
  });
  return {
    url,
    transport,
    async [Symbol.asyncDispose]() {
      await transport.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Returns an engine's result for a server that echoes its key in `reply(key)` with any status. */
async function askEcho(status: number, reply: (key: string) => object): Promise<unknown> {
  await using served = await serve((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(reply(String(request.headers.authorization))));
  });
  const engine = createSglangEngine({ url: served.url, apiKey });
  const result: unknown = await engine
    .generate({
      promptIds: [1],
      sampling: {},
      maxNewTokens: 1,
      stopTokenIds: [2],
      requestId: "r",
      sessionId: "s",
    })
    .catch((thrown: unknown) => thrown);
  await engine.close();
  return result;
}

test("an engine removes its key from errors if the server echoes it", async () => {
  const error = await askEcho(401, (key) => ({ error: { message: `not ${key}` } }));
  expect(error).toMatchObject({ code: "engine/unauthorized" });
  expect((error as Error).message).toContain("HTTP 401 (not Bearer [redacted])");
  expect(inspect(error, { depth: 10 })).not.toContain(apiKey);
});

test("an engine removes its key from errors and results if a valid reply echoes it", async () => {
  const error = await askEcho(200, (key) => ({ meta_info: key }));
  expect((error as Error).message).toContain('meta_info is "Bearer [redacted]"');
  expect(inspect(error, { depth: 10 })).not.toContain(apiKey);

  const generation = await askEcho(200, (key) => ({
    meta_info: {
      weight_version: key,
      finish_reason: { type: "length" },
      output_token_logprobs: [[-0.1, 5, null]],
      completion_tokens: 1,
    },
  }));
  expect(generation).toMatchObject({ outputIds: [5], logprobs: [-0.1] });
  expect(JSON.stringify(generation)).toContain("Bearer [redacted]");
  expect(JSON.stringify(generation)).not.toContain(apiKey);
});

test.each([
  ["http://me:hunter2@127.0.0.1:30000/x", "a user or password"],
  ["http://127.0.0.1:30000/x?api_key=hunter2", "a query"],
])("%s is refused without repeating it", (url, held) => {
  const make = () => createSglangEngine({ url });
  expect(make).toThrow(
    `Cannot use the engine's url: it holds ${held}, expected http://127.0.0.1:30000/x and, for an ` +
      "engine that needs a key, an environment variable with it (--api-key-env)",
  );
  expect(make).not.toThrow(/hunter2/);
});

test("a reused request buffer contains no bytes of earlier requests", async () => {
  const received = new Map<string, string>();
  const answer: RequestListener = (request, response) => {
    const [, name = "", kind] = request.url!.split("/");
    const chunks: Buffer[] = [];
    // A server may answer before it has read the complete request.
    if (kind === "early") response.end("{}");
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (kind === "early") return;
      received.set(name, Buffer.concat(chunks).toString("latin1"));
      response.end("{}");
    });
  };
  await using served = await serve(answer, { maxConnections: 3 });
  const { transport } = served;
  const { signal } = new AbortController();
  const sent = new Map<string, string>();
  const send = async (index: number): Promise<void> => {
    const isEarly = index % 3 === 1;
    const letter = String.fromCharCode(97 + (index % 26));
    const body = acquireBytes(1_000_000 + index).fill(letter);
    if (!isEarly) sent.set(String(index), letter.repeat(body.length));
    await transport.send({
      method: "POST",
      path: `/${index}/${isEarly ? "early" : "late"}`,
      body,
      signal,
    });
  };
  for (let round = 0; round < 8; round++) {
    await Promise.all(Array.from({ length: 6 }, (_, place) => send(6 * round + place)));
  }
  const wrong = [...sent].filter(([name, text]) => received.get(name) !== text);
  expect(wrong.map(([name]) => name)).toEqual([]);
  expect(received.size).toBe(32);
});

test("a body in parts arrives with its length, and the connection is used again", async () => {
  const received: object[] = [];
  const sockets = new Set<unknown>();
  const answer: RequestListener = (request, response) => {
    sockets.add(request.socket);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const { "content-length": length, "transfer-encoding": coding } = request.headers;
      received.push({ length, coding, hash: hash("sha256", body, "hex") });
      response.end("{}");
    });
  };
  await using served = await serve(answer);
  const { transport } = served;
  const { signal } = new AbortController();
  const ids = Array.from({ length: 300_000 }, (_, index) => (index * 48_271) % 152_000);
  const body = jsonWithIds({ rid: "r" }, { name: "input_ids", ids });
  for (let time = 0; time < 3; time++) {
    expect(await transport.send({ method: "POST", path: "/", body, signal })).toMatchObject({
      type: "reply",
      status: 200,
      text: "{}",
    });
  }
  const text = JSON.stringify({ rid: "r", input_ids: ids });
  const expected = {
    length: String(text.length),
    coding: undefined,
    hash: hash("sha256", text, "hex"),
  };
  expect(received).toEqual([expected, expected, expected]);
  expect(sockets.size).toBe(1);
});

describe("a compressed reply", () => {
  const encoders = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync } as const;
  const reply = { choices: [{ message: { role: "assistant", content: "Hi" } }] };

  /** Answers every request with the bytes, in pieces of seven. */
  async function answering(coding: string, bytes: Buffer, type = "application/json") {
    const encodings: (string | string[] | undefined)[] = [];
    const answer: RequestListener = (request, response) => {
      encodings.push(request.headers["accept-encoding"]);
      request.resume();
      response.writeHead(200, { "content-type": type, "content-encoding": coding });
      for (let start = 0; start < bytes.length; start += 7) {
        response.write(bytes.subarray(start, start + 7));
      }
      response.end();
    };
    return { encodings, ...(await serve(answer, { maxReplyBytes: 100_000 })) };
  }

  const { signal } = new AbortController();
  const post = { method: "POST", path: "/x", body: "{}", signal } as const;

  test.each(Object.entries(encoders))(
    "in %s is decoded, although identity is requested",
    async (name, encode) => {
      await using served = await answering(name, encode(Buffer.from(JSON.stringify(reply))));
      const outcome = await served.transport.send(post);
      expect(outcome).toMatchObject({ type: "reply", status: 200, text: JSON.stringify(reply) });
      expect(served.encodings).toEqual(["identity"]);
      // The connection serves the next request.
      expect(await served.transport.send(post)).toMatchObject({ type: "reply" });
    },
  );

  test("is read event by event if it is a stream", async () => {
    const events = Array.from({ length: 50 }, (_, index) => `data: {"n":${index}}\n\n`).join("");
    const bytes = gzipSync(Buffer.from(events));
    await using served = await answering("gzip", bytes, "text/event-stream");
    const seen: string[] = [];
    const outcome = await served.transport.send({ ...post, onEvent: (data) => seen.push(data) });
    expect(outcome).toMatchObject({ type: "reply", text: "" });
    expect(seen).toEqual(Array.from({ length: 50 }, (_, index) => `{"n":${index}}`));
  });

  test("ends the exchange with an error that `onEvent` throws", async () => {
    const bytes = gzipSync(Buffer.from("data: 1\n\ndata: 2\n\n"));
    await using served = await answering("gzip", bytes, "text/event-stream");
    const bug = new Error("not this one");
    const sending = served.transport.send({
      ...post,
      onEvent: () => {
        throw bug;
      },
    });
    await expect(sending).rejects.toBe(bug);
  });

  test("is aborted if it expands beyond the limit", async () => {
    await using served = await answering("gzip", gzipSync(Buffer.alloc(50 * 2 ** 20)));
    const outcome = await served.transport.send(post);
    expect(outcome).toEqual({ type: "oversized", limitBytes: 100_000 });
  });

  test.each([
    ["lz4", Buffer.from("{}"), 'the content coding "lz4" is not supported'],
    ["gzip", Buffer.from("{}"), "the body is not the gzip that its Content-Encoding says"],
    ["gzip", gzipSync(Buffer.alloc(5_000, "a")).subarray(0, -9), "(unexpected end of file)"],
  ])("in %s that cannot be decoded is reported", async (coding, bytes, why) => {
    await using served = await answering(coding, bytes);
    const outcome = await served.transport.send(post);
    if (outcome.type !== "undecodable") throw new Error(`it ended as ${outcome.type}`);
    expect(outcome.cause.message).toContain(why);
    expect(failureOfOutcome(outcome, 1)).toMatchObject({
      code: "engine/bad-reply",
      problem: expect.stringContaining(why) as string,
      retry: false,
    });
  });
});

test("a reply that is not UTF-8 counts as broken", async () => {
  await using served = await serve((request, response) => {
    request.resume();
    response.writeHead(200).end(Buffer.from([0x22, 0xff, 0x22]));
  });
  const { signal } = new AbortController();
  const outcome = await served.transport.send({ method: "GET", path: "/", headers: {}, signal });
  expect(outcome).toMatchObject({ type: "broken", sent: true });
  expect((outcome as { cause: Error }).cause.message).toContain("line 1 is not UTF-8");
});
