import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import { playActions } from "../../environment/play-actions.ts";
import { writeCompactJson } from "../../json/exact-json.ts";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { answer, bytesOf, schema, structured } from "./raw-server.fixture.mjs";
import { createMcpTools, type McpTools, type McpToolsOptions } from "./mcp-tools.ts";

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

const script = fileURLToPath(new URL("raw-server.fixture.mjs", import.meta.url));
const stdio = { command: process.execPath, args: [script] };

async function serveHttp(asEvents: boolean): Promise<string> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const line = Buffer.concat(pieces).toString();
      const text = request.method === "POST" ? answer(line) : "";
      if (text === "") {
        response.writeHead(request.method === "POST" ? 202 : 405).end();
        return;
      }
      const body = bytesOf(asEvents ? `event: message\ndata: ${text}\n\n` : text);
      const type = asEvents ? "text/event-stream" : "application/json";
      response.writeHead(200, { "content-type": type }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  opened.push({
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

async function observe(tools: McpTools, name: string, given: string): Promise<string> {
  const environment = defineEnvironment({
    name: "world",
    tasks: [{ instruction: "Go." }],
    policy: "Use the tools.",
    tools,
    score: () => 1,
  });
  const task = environment.task("test", 0);
  const action = { type: "call", name, arguments: parsePythonJson(given) as PyDict } as const;
  const { signal } = new AbortController();
  const { user } = environment;
  const played = await playActions(environment, { task, user, actions: [action] }, { signal });
  return played.steps[0]!.observation;
}

const given =
  '{"x":1.0,"10":18446744073709551615,"2":-0.0,"a":[1e-07,"\\"}"],"__proto__":{"b":1},"s":"\\ud800\u2028é$&"}';

describe.each([
  ["standard input and output", () => Promise.resolve(stdio)],
  ["HTTP", async () => ({ url: await serveHttp(false) })],
  ["HTTP with events", async () => ({ url: await serveHttp(true) })],
] as const)("an MCP server over %s", (_, connect) => {
  const open = async (options: Partial<McpToolsOptions> = {}): Promise<McpTools> => {
    const tools = await createMcpTools({ ...(await connect()), ...options } as McpToolsOptions);
    opened.push(tools);
    return tools;
  };

  test("gets arguments as the model wrote them", async () => {
    expect(await observe(await open(), "echo", given)).toContain(
      `"params":{"name":"echo","arguments":${given}`,
    );
  });

  test("has its structured answer shown as it wrote it", async () => {
    expect(await observe(await open(), "data", "{}")).toBe(structured);
  });

  test("has its schemas shown as it wrote them", async () => {
    const [tool] = await open();
    expect(writeCompactJson(tool!.definition.openai)).toContain(`"parameters":${schema}`);
  });

  test("is distinguished from other servers if it answers bytes that are not UTF-8", async () => {
    await expect(observe(await open(), "bytes", "{}")).rejects.toMatchObject({
      code: "environment/exception",
      message: expect.stringContaining("its message is not UTF-8") as string,
    });
  });
});

test("a file of tools keeps the schemas as the server wrote them", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-mcp-"));
  const toolsFile = path.join(dir, "tools.json");
  for (const server of [stdio, { command: "no-such-program" }]) {
    const tools = await createMcpTools({ ...server, toolsFile });
    opened.push(tools);
    expect(writeCompactJson(tools[0]!.definition.openai)).toContain(`"parameters":${schema}`);
  }
  await rm(dir, { recursive: true });
});
