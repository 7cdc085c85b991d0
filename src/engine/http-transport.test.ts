import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { createSglangEngine } from "./sglang/sglang-engine.ts";

test("an engine keeps its key out of what it throws where the server repeats the key", async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(401, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: `not ${request.headers.authorization}` } }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const apiKey = "sk-of-the-engine";
  const engine = createSglangEngine({ url: `http://127.0.0.1:${port}`, apiKey });
  const error: unknown = await engine
    .generate({
      ...{ promptIds: [1], sampling: {}, maxNewTokens: 1, stopTokenIds: [2] },
      ...{ requestId: "r", sessionId: "s" },
    })
    .catch((thrown: unknown) => thrown);
  await engine.close();
  server.close();
  expect(error).toMatchObject({ code: "engine/unauthorized" });
  expect((error as Error).message).toContain("HTTP 401 (not Bearer [redacted])");
  expect(inspect(error, { depth: 10 })).not.toContain(apiKey);
});
