import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import { playActions } from "../../environment/play-actions.ts";
import { createMcpTools } from "./mcp-tools.ts";

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

const facts = '"protocolVersion":"2025-06-18","serverInfo":{"name":"raw","version":"1"}';
const plainList = '{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}';

/** Writes a JSON-RPC message as the bytes of a reply. */
type Frame = (message: string) => { readonly type: string; readonly body: string };

const asJson: Frame = (body) => ({ type: "application/json", body });

/** Opens the tools of a server that answers with these results, as they are. */
async function open({
  initialize = `{${facts},"capabilities":{"tools":{}}}`,
  list = plainList,
  call = '{"content":[]}',
  frame = asJson,
  onNotice = (response: ServerResponse): void => void response.writeHead(202).end(),
}) {
  const results: Readonly<Record<string, string>> = {
    initialize,
    "tools/list": list,
    "tools/call": call,
  };
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { id, method } = JSON.parse(Buffer.concat(pieces).toString() || "{}") as {
        id?: number;
        method?: string;
      };
      if (id === undefined || method === undefined) {
        if (request.method === "POST") onNotice(response);
        else response.writeHead(405).end();
        return;
      }
      const message = `{"jsonrpc":"2.0","id":${id},\n"result":${results[method] ?? "{}"}}`;
      const { type, body } = method === "tools/call" ? frame(message) : asJson(message);
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
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const limits = { timeoutMs: 2_000, connectTimeoutMs: 20_000 };
  const tools = await createMcpTools({ url, onTrouble: () => {}, ...limits });
  opened.push(tools);
  return tools;
}

/** The text that the agent reads after a call of the first tool. */
async function observe(tools: Awaited<ReturnType<typeof open>>): Promise<string> {
  const environment = defineEnvironment({
    name: "world",
    tasks: [{ instruction: "Go." }],
    policy: "Use the tools.",
    tools,
    score: () => 1,
  });
  const task = environment.task("test", 0);
  const actions = [{ type: "call", name: "ask", arguments: new Map() }] as const;
  const { user } = environment;
  const { signal } = new AbortController();
  const played = await playActions(environment, { task, user, actions }, { signal });
  return played.steps[0]!.observation;
}

const exact = '{"ticket":9007199254740993,"rate":1.0,"10":0,"a":1e400}';
const shown = '{"ticket":9007199254740993,"rate":1.0,"10":0,"a":Infinity}';

describe("an event of a server's stream keeps the values of its message", () => {
  test.each<[string, (message: string) => string]>([
    ["in one line", (message) => `event: message\ndata: ${message.replace("\n", "")}\n\n`],
    ["in several lines", (message) => `data: ${message.replace("\n", "\ndata: ")}\n\n`],
    ["after a byte order mark", (message) => `\uFEFFdata:${message.replace("\n", "")}\n\n`],
    [
      "between carriage returns",
      (message) => `: ping\rdata: ${message.replace("\n", "\rdata: ")}\r\r: end\n`,
    ],
    [
      "between carriage returns with line feeds",
      (message) => `data: ${message.replace("\n", "\r\ndata: ")}\r\nid: 1\r\n\r\n`,
    ],
  ])("%s", async (_, write) => {
    const frame: Frame = (message) => ({ type: "text/event-stream", body: write(message) });
    const tools = await open({ call: `{"content":[],"structuredContent":${exact}}`, frame });
    expect(await observe(tools)).toBe(shown);
  });
});

describe("a result of an older or careless server is read", () => {
  test.each([
    ["structured content that is a list", '{"content":[],"structuredContent":[1.0]}', "[1.0]"],
    ["structured content that is a text", '{"structuredContent":"yes"}', '"yes"'],
    [
      "structured content that is a list beside a text",
      '{"content":[{"type":"text","text":"one"}],"structuredContent":[1]}',
      "one\n[1]",
    ],
    [
      "a content as the first protocol had it",
      '{"toolResult":{"content":[{"type":"text","text":"there"}]}}',
      "there",
    ],
    ["a value as the first protocol had it", `{"toolResult":${exact}}`, shown],
    ["a text as the first protocol had it", '{"toolResult":"there"}', "there"],
    [
      "a number without an end beside its text",
      '{"content":[{"type":"text","text":"x"}],"_meta":{"cost":1e999}}',
      "x",
    ],
  ])("%s", async (_, call, expected) => {
    expect(await observe(await open({ call }))).toBe(expected);
  });

  test("one that nests too deeply is named as such", async () => {
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    const tools = await open({ call: `{"content":[],"structuredContent":{"a":${deep}}}` });
    await expect(observe(tools)).rejects.toThrow(/its message nests too deeply/);
  });
});

describe("a server is used", () => {
  test.each([
    ["with a list for its capability", `{${facts},"capabilities":{"tools":[]}}`],
    ["with tools for its capability", `{${facts},"capabilities":{"tools":[{"name":"ask"}]}}`],
    ["with a list of capabilities", `{${facts},"capabilities":[]}`],
    [
      "with null for what it leaves out",
      `{${facts},"instructions":null,"capabilities":{"logging":null,"tools":{"listChanged":null}}}`,
    ],
  ])("%s", async (_, initialize) => {
    const tools = await open({ initialize, call: '{"content":[{"type":"text","text":"x"}]}' });
    expect(await observe(tools)).toBe("x");
  });

  test("with a schema whose limits exceed all numbers", async () => {
    const limits = '{"type":"integer","maximum":1e400,"minimum":-1e400}';
    const list = `{"tools":[{"name":"ask","inputSchema":{"type":"object","properties":{"a":${limits}}}}]}`;
    const tools = await open({ list, call: '{"content":[{"type":"text","text":"x"}]}' });
    expect(await observe(tools)).toBe("x");
  });
});

describe("the answer to a notification is not waited for", () => {
  const text = { "content-type": "text/plain; charset=UTF-8" };
  const events = { "content-type": "text/event-stream" };
  const json = { "content-type": "application/json" };
  test.each<[string, (response: ServerResponse) => void]>([
    ["a text", (response) => response.writeHead(202, text).end("Accepted")],
    ["a text without an end", (response) => response.writeHead(202, text).write("Accepted")],
    ["no content", (response) => response.writeHead(204).end()],
    ["JSON that is cut", (response) => response.writeHead(200, json).end("{")],
    ["events without an end", (response) => response.writeHead(200, events).write(": hi\n\n")],
    ["a stream without events", (response) => response.writeHead(200, events).flushHeaders()],
  ])("%s", async (_, onNotice) => {
    const tools = await open({ onNotice, call: '{"content":[{"type":"text","text":"x"}]}' });
    expect(await observe(tools)).toBe("x");
  });
});

test("an error names a server's missing folder, not its program", async () => {
  const cwd = `${import.meta.dirname}/none`;
  await expect(createMcpTools({ command: process.execPath, cwd })).rejects.toThrow(
    `Cannot reach MCP server ${process.execPath}: its folder ${cwd} is not there`,
  );
});
