import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { createSglangEngine } from "./sglang/sglang-engine.ts";

const apiKey = "sk-of-the-engine";

/** What an engine makes of a server that repeats its key: in `reply(key)`, whatever the status. */
async function askEcho(status: number, reply: (key: string) => object): Promise<unknown> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(reply(String(request.headers.authorization))));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const engine = createSglangEngine({ url: `http://127.0.0.1:${port}`, apiKey });
  const result: unknown = await engine
    .generate({
      ...{ promptIds: [1], sampling: {}, maxNewTokens: 1, stopTokenIds: [2] },
      ...{ requestId: "r", sessionId: "s" },
    })
    .catch((thrown: unknown) => thrown);
  await engine.close();
  server.close();
  return result;
}

test("an engine keeps its key out of what it throws where the server repeats the key", async () => {
  const error = await askEcho(401, (key) => ({ error: { message: `not ${key}` } }));
  expect(error).toMatchObject({ code: "engine/unauthorized" });
  expect((error as Error).message).toContain("HTTP 401 (not Bearer [redacted])");
  expect(inspect(error, { depth: 10 })).not.toContain(apiKey);
});

test("an engine keeps its key out of what it throws and returns where a good reply repeats it", async () => {
  const error = await askEcho(200, (key) => ({ meta_info: key }));
  expect((error as Error).message).toContain('meta_info is "Bearer [redacted]"');
  expect(inspect(error, { depth: 10 })).not.toContain(apiKey);

  const generation = await askEcho(200, (key) => ({
    meta_info: {
      ...{ weight_version: key, finish_reason: { type: "length" } },
      ...{ output_token_logprobs: [[-0.1, 5, null]], completion_tokens: 1 },
    },
  }));
  expect(generation).toMatchObject({ outputIds: [5], logprobs: [-0.1] });
  expect(JSON.stringify(generation)).toContain("Bearer [redacted]");
  expect(JSON.stringify(generation)).not.toContain(apiKey);
});

test.each([
  ["http://me:hunter2@127.0.0.1:30000/x", "a user or password"],
  ["http://127.0.0.1:30000/x?api_key=hunter2", "a query"],
])("what is not sent of %s is refused, and not repeated", (url, held) => {
  const make = () => createSglangEngine({ url });
  expect(make).toThrow(
    `Cannot use the engine's url: it holds ${held}, expected http://127.0.0.1:30000/x and, for an ` +
      "engine that wants a key, an environment variable with it (--api-key-env)",
  );
  expect(make).not.toThrow(/hunter2/);
});
