import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import type { Action } from "../../environment/environment.ts";
import { playActions } from "../../environment/play-actions.ts";
import { toPyValue, type PyDict } from "../../../packages/python-values/src/value.ts";
import { createMcpTools, type McpToolsOptions } from "./mcp-tools.ts";

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

const capabilities = { tools: {} };
const serverInfo = { name: "forgetful", version: "1" };

/** Starts a server that forgets a session after its first call. Returns its URL and the messages that it got. */
async function startForgetfulServer(status: number, complaint: string) {
  const live = new Set<string>();
  const log: string[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      if (request.method !== "POST") return void response.writeHead(405).end();
      const { id, method, params } = JSON.parse(Buffer.concat(pieces).toString()) as {
        id?: number;
        method: string;
        params?: { protocolVersion: string };
      };
      const isFirst = method === "initialize";
      const session = isFirst
        ? `s${log.filter((line) => line.startsWith("initialize")).length + 1}`
        : String(request.headers["mcp-session-id"]);
      log.push(`${method} ${session}`);
      if (isFirst) live.add(session);
      if (!live.has(session)) return void response.writeHead(status).end(complaint);
      if (id === undefined) return void response.writeHead(202).end();
      if (method === "tools/call") live.delete(session);
      const results: Readonly<Record<string, object>> = {
        initialize: { protocolVersion: params?.protocolVersion, capabilities, serverInfo },
        "tools/list": { tools: [{ name: "ask", inputSchema: { type: "object" } }] },
        "tools/call": { content: [{ type: "text", text: `answer in ${session}` }] },
      };
      const headers = { "content-type": "application/json", "mcp-session-id": session };
      const answer = { jsonrpc: "2.0", id, result: results[method] ?? {} };
      return void response.writeHead(200, headers).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  opened.push({
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, log };
}

/** Returns the texts that the agent reads after each of two calls of one episode. */
async function askTwice(options: McpToolsOptions) {
  const tools = await createMcpTools(options);
  opened.push(tools);
  const environment = defineEnvironment({
    name: "world",
    tasks: [{ instruction: "Go." }],
    policy: "Use the tools.",
    tools,
    score: () => 1,
  });
  const ask: Action = { type: "call", name: "ask", arguments: toPyValue({}) as PyDict };
  const given = { task: environment.task("test", 0), user: environment.user, actions: [ask, ask] };
  const { signal } = new AbortController();
  const { steps } = await playActions(environment, given, { signal });
  return steps.map(({ observation }) => observation);
}

describe("a session that the server no longer knows", () => {
  test.each([
    [404, "Session not found"],
    [410, "gone"],
    [400, "Bad Request: No valid session ID provided"],
  ])("is replaced, and its call repeated, after status %i", async (status, complaint) => {
    const { url, log } = await startForgetfulServer(status, complaint);
    expect(await askTwice({ url })).toEqual(["answer in s1", "answer in s2"]);
    expect(log).toEqual([
      "initialize s1",
      "notifications/initialized s1",
      "tools/list s1",
      "tools/call s1",
      "tools/call s1",
      "initialize s2",
      "notifications/initialized s2",
      "tools/call s2",
    ]);
  });

  test("fails the episode that it belongs to, because its state is lost", async () => {
    const { url } = await startForgetfulServer(404, "Session not found");
    const failed = askTwice({ url, perEpisode: true });
    await expect(failed).rejects.toMatchObject({
      code: "environment/session-ended",
      retryable: true,
      message:
        `Cannot call tool ask of MCP server ${url}: it has ended the session: ` +
        "Error POSTing to endpoint: Session not found",
    });
  });

  test("is not what another 400 reports", async () => {
    const { url, log } = await startForgetfulServer(400, "Bad Request: no such city");
    await expect(askTwice({ url })).rejects.toMatchObject({ code: "environment/unreachable" });
    expect(log.filter((line) => line.startsWith("tools/call"))).toHaveLength(2);
  });
});
