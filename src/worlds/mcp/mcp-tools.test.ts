import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "@hono/node-server";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { afterEach, describe, expect, test } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import type { Action } from "../../environment/environment.ts";
import { playActions } from "../../environment/play-actions.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { callThrough, type Outside } from "../../outside.ts";
import { toPyValue, type PyDict } from "../../../packages/python-values/src/value.ts";
import { createServer } from "./mcp-test-server.fixture.mjs";
import { createMcpTools, type McpTools, type McpToolsOptions } from "./mcp-tools.ts";

const script = fileURLToPath(new URL("mcp-test-server.fixture.mjs", import.meta.url));
const { signal } = new AbortController();
const stdio = { command: process.execPath, args: [script] };

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
});

async function open(options: Partial<McpToolsOptions> = {}): Promise<McpTools> {
  const tools = await createMcpTools({ ...stdio, ...options } as McpToolsOptions);
  opened.push(tools);
  return tools;
}

function environmentOf(tools: McpTools, repeatable = false) {
  return defineEnvironment({
    name: "world",
    tasks: [{ instruction: "Go." }],
    policy: "Use the tools.",
    tools,
    repeatable,
    score: () => 1,
  });
}

function call(name: string, given: object = {}): Action {
  return { type: "call", name, arguments: toPyValue(given as never) as PyDict };
}

/** The texts that the agent reads after each call of one episode. */
async function answers(tools: McpTools, ...actions: readonly Action[]) {
  const environment = environmentOf(tools);
  const task = environment.task("test", 0);
  const played = await playActions(
    environment,
    { task, user: environment.user, actions },
    { signal },
  );
  return played.steps.map(({ observation }) => observation);
}

async function failureOf(work: Promise<unknown>): Promise<RolloutError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(RolloutError);
  return error as RolloutError;
}

async function complaintOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(UsageError);
  return (error as UsageError).message;
}

describe("createMcpTools() over standard input and output", () => {
  test("passes the server's tools to an environment unchanged", async () => {
    const tools = await open({ names: (name) => (name === "add" ? "plus" : undefined) });
    expect(tools.map(({ name }) => name)).toEqual(["plus"]);
    const { callable } = tools[0]!;
    expect(callable.jsonSchema).toEqual({
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
    });
    expect(await answers(tools, call("plus", { a: 2, b: 3 }), call("plus", { a: "2" }))).toEqual([
      "5",
      "Error: must have required property 'b'; a must be integer (plus takes a, b)",
    ]);
  });

  test("shows a result's text and the server's errors", async () => {
    const tools = await open({ maxResultLength: 10 });
    expect(await answers(tools, call("data"), call("big"))).toEqual([
      '{"a":[1]}',
      // Cut before the character that does not fit whole.
      "xxxxxxxxx\n[92 more characters were left out]",
    ]);
    const long = await open();
    expect(await answers(long, call("page"), call("fail"))).toEqual([
      "one\ntwo\nfile:///three",
      "Error: there is no such page",
    ]);
  });

  test("refuses a picture with the tool's name and the remedy", async () => {
    const tools = await open();
    const error = await failureOf(answers(tools, call("picture")));
    expect(error.code).toBe("environment/bad-result");
    expect(error.message).toBe(
      'Cannot use what MCP tool picture returned: a part of type "image" (image/png): there is no ' +
        "renderer for images, sound and files yet, expected text (the option names leaves the tool out " +
        "where it answers undefined)",
    );
  });

  test("is one server for all episodes, or one for each", async () => {
    for (const [perEpisode, expected] of [
      [false, ["1", "2", "3"]],
      [true, ["1", "1", "2"]],
    ] as const) {
      const environment = environmentOf(await open({ perEpisode }));
      const task = environment.task("test", 0);
      const user = environment.user.open(task, { seed: 0 });
      await using one = await environment.open(task, { user, signal });
      await using other = await environment.open(task, { user, signal });
      const steps = [];
      for (const world of [one, other, one])
        steps.push(await world.step(call("count"), { signal }));
      expect(steps.map(({ observation }) => observation)).toEqual(expected);
    }
  });

  test("restarts a dead server, and reports its last output", async () => {
    const tools = await open();
    const error = await failureOf(answers(tools, call("count"), call("die")));
    expect(error).toMatchObject({ code: "environment/unreachable", retryable: true });
    expect(error.message).toContain("Cannot call tool die of MCP server");
    expect(error.message).toContain("(its standard error ends with: out of | memory)");
    expect(await answers(tools, call("count"))).toEqual(["1"]);
  });

  test("starts a server in the folder that named it, from any working folder", async () => {
    const before = process.cwd();
    process.chdir(path.dirname(script));
    try {
      const tools = await open({ args: [path.basename(script)], perEpisode: true });
      process.chdir(tmpdir());
      expect(await answers(tools, call("count"))).toEqual(["1"]);
    } finally {
      process.chdir(before);
    }
  });

  test("aborts a call that hangs, and continues with the next", async () => {
    const tools = await open({ timeoutMs: 300 });
    const error = await failureOf(answers(tools, call("hang")));
    expect(error).toMatchObject({ code: "environment/timeout", retryable: true });
    expect(error.message).toContain("Cannot call tool hang of world");
    const patient = await open();
    expect(await answers(patient, call("count"))).toEqual(["1"]);
  });

  test("uses recorded results in place of the server", async () => {
    const tools = await open({ names: (name) => (name === "count" ? name : undefined) });
    const environment = environmentOf(tools, true);
    const recorded: unknown[] = [];
    const record: Outside = async (what, work) => {
      const value = await work();
      recorded.push([what, value]);
      return value;
    };
    const play = async (outside: Outside) => {
      const task = environment.task("test", 0);
      const user = environment.user.open(task, { seed: 0 });
      await using world = await environment.open(task, { user, signal, outside });
      return await world.step(call("count"), { signal });
    };
    const live = await play(record);
    expect(recorded).toEqual([["mcp count", { text: "1", isError: false }]]);
    await tools[Symbol.asyncDispose]();
    const replayed = await play((async () => (recorded[0] as [string, unknown])[1]) as Outside);
    expect(replayed).toEqual(live);
    expect(await play(callThrough)).toMatchObject({ observation: "1" });
  });

  test("keeps which tools the server listed, so that it is needed for calls alone", async () => {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-mcp-"));
    const toolsFile = path.join(dir, "tools.json");
    const tools = await open({ toolsFile, args: [script, "add", "count"] });
    const again = await open({ toolsFile, command: "no-such-program" });
    expect(again.map(({ definition }) => definition)).toEqual(
      tools.map(({ definition }) => definition),
    );
    const error = await failureOf(answers(again, call("count")));
    expect(error).toMatchObject({ code: "environment/unreachable", retryable: true });
    await writeFile(toolsFile, "{}");
    expect(await complaintOf(open({ toolsFile }))).toBe(
      `Cannot read ${toolsFile}: expected the tools of an MCP server as createMcpTools() wrote them; remove it, ` +
        "and they are asked for again",
    );
    await rm(dir, { recursive: true });
  });

  test("refuses `repeatable` if each episode has a server of its own", async () => {
    const tools = await open({ perEpisode: true });
    expect(() => environmentOf(tools, true)).toThrow(
      "Cannot define environment world: it is repeatable, but tool count works on what lies " +
        "outside of the episode, expected no `repeatable: true`",
    );
  });

  test("hands a server the variables that it is to have, and no others", async () => {
    process.env["TURNWRIGHT_TEST_SECRET"] = "no";
    const tools = await open({ env: { GIVEN: "yes" } });
    const asked = ["GIVEN", "TURNWRIGHT_TEST_SECRET"].map((name) => call("variable", { name }));
    expect(await answers(tools, ...asked)).toEqual(["yes", "undefined"]);
    delete process.env["TURNWRIGHT_TEST_SECRET"];
  });

  test("quotes a character of standard error that arrives in two pieces", async () => {
    const script =
      "const bytes = Buffer.from('naïve');" +
      "process.stderr.write(bytes.subarray(0, 3));" +
      "setTimeout(() => process.stderr.write(bytes.subarray(3), () => process.exit(1)), 200)";
    const complaint = await complaintOf(open({ command: process.execPath, args: ["-e", script] }));
    expect(complaint).toContain("(its standard error ends with: naïve)");
  });

  test("redacts the server's arguments and variables in its output", async () => {
    const secrets = { API_KEY: "sk-canary-7f3a", SHORT: "qwer", NAME: "plain-name" };
    const script =
      "console.error('x'.repeat(480) + Object.values(process.env).join(' ') + process.argv.join(' '));" +
      "process.exit(1)";
    const complaint = await complaintOf(
      open({
        command: process.execPath,
        env: secrets,
        args: ["-e", script, "--", "--token", "tok-canary", "--key=key-canary", "positional"],
      }),
    );
    expect(complaint).toContain("[redacted] [redacted] [redacted]");
    expect(complaint).toContain("--token [redacted] --key=[redacted] [redacted])");
    for (const given of [...Object.values(secrets), "tok-canary", "key-canary", "positional"]) {
      expect(complaint).not.toContain(given);
    }
    // A secret, by its name or its form, is in no text that is written later, either.
    expect(new Redactor().text("sk-canary-7f3a tok-canary key-canary plain-name")).toBe(
      "[redacted] [redacted] [redacted] plain-name",
    );
  });

  test("quotes no part of a long key that a server wrote over and over", async () => {
    const key = `long-canary-${"a1B2".repeat(400)}`;
    const script = "for (let i = 0; i < 60; i++) console.error(process.env.API_KEY)";
    const complaint = await complaintOf(
      open({ command: process.execPath, args: ["-e", script], env: { API_KEY: key } }),
    );
    expect(complaint).toContain("(its standard error ends with: ");
    expect(complaint).not.toContain("a1B2");
  });

  test("says which server cannot be used, and why", async () => {
    expect(await complaintOf(open({ command: "no-such-program", args: ["x"] }))).toBe(
      "Cannot reach MCP server no-such-program: spawn no-such-program ENOENT (there is no such program)",
    );
    expect(
      await complaintOf(
        open({ command: process.execPath, args: ["-e", "console.error('no key')"] }),
      ),
    ).toContain("(its standard error ends with: no key)");
    expect(
      await complaintOf(
        open({ ...stdio, args: ["-e", "setInterval(() => {}, 1000)"], connectTimeoutMs: 200 }),
      ),
    ).toMatch(/^Cannot reach MCP server .*: no answer within 200 ms$/);
    expect(await complaintOf(open({ names: () => "with a space" }))).toMatch(
      /^Cannot use tool "count" of MCP server .*: Cannot define tool "with a space": expected a name/,
    );
    expect(await complaintOf(createMcpTools({} as McpToolsOptions))).toMatch(
      /^Cannot use an MCP server:/,
    );
  });

  test.each([
    [{ header: {} }, 'there is no option "header", expected some of command, args, env'],
    [{ args: "-y" }, "args is not a list of texts"],
    [{ args: ["--port", 80] }, 'the value of "1" in args is not a text, expected a list of texts'],
    [{ env: ["KEY=secret"] }, "env is not an object of texts"],
    [{ env: { KEY: 5 } }, 'the value of "KEY" in env is not a text, expected an object of texts'],
    [
      { headers: { authorization: undefined } },
      'the value of "authorization" in headers is not a text, expected an object of texts',
    ],
  ])("refuses the options %j by name", async (wrong, problem) => {
    const options = { command: "no-such-program", ...wrong } as unknown as McpToolsOptions;
    expect(await complaintOf(createMcpTools(options))).toContain(
      `Cannot use an MCP server: ${problem}`,
    );
  });
});

/** Serves MCP over HTTP; `handle` may answer in its place. */
async function serveHttp(handle: (request: Request) => Response | undefined = () => undefined) {
  const handler = createMcpHandler(() => createServer());
  const fetch = async (request: Request) => handle(request) ?? (await handler.fetch(request));
  const server = await new Promise<ReturnType<typeof serve>>((resolve) => {
    const started = serve({ fetch, port: 0, hostname: "127.0.0.1" }, () => resolve(started));
  });
  opened.push({
    [Symbol.asyncDispose]: async () => {
      if ("closeAllConnections" in server) server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}/mcp` };
}

async function openHttp(options: McpToolsOptions): Promise<McpTools> {
  const tools = await createMcpTools(options);
  opened.unshift(tools);
  return tools;
}

describe("createMcpTools() over streamable HTTP", () => {
  test("calls the server's tools, with the headers that it wants", async () => {
    const { url } = await serveHttp((request) =>
      request.headers.get("authorization") === "Bearer key"
        ? undefined
        : new Response("who are you?", { status: 401 }),
    );
    const tools = await openHttp({ url, headers: { authorization: "Bearer key" } });
    expect(await answers(tools, call("add", { a: 1, b: 1 }), call("fail"))).toEqual([
      "2",
      "Error: there is no such page",
    ]);
    const complaint = await complaintOf(createMcpTools({ url }));
    expect(complaint).toContain(`Cannot reach MCP server ${url}:`);
    expect(complaint).toContain("expected headers that it accepts");
  });

  test("follows redirects within a server's origin, and sends its headers to no other", async () => {
    const seen: (string | null)[] = [];
    const leadTo = (place: string) =>
      new Response(null, { status: 307, headers: { location: place } });
    const other = await serveHttp((request) => {
      seen.push(request.headers.get("x-api-key"));
      return undefined;
    });
    const near = await serveHttp(({ url }) => (url.endsWith("/mcp") ? leadTo("/mcp/") : undefined));
    const far = await serveHttp(() => leadTo(`${other.url}?key=canary`));
    const headers = { "x-api-key": "redirect-canary-01" };
    const tools = await openHttp({ ...near, headers });
    expect(await answers(tools, call("add", { a: 1, b: 1 }))).toEqual(["2"]);
    const complaint = await complaintOf(createMcpTools({ ...far, headers }));
    expect(complaint).toContain(`Redirect to ${other.url} not followed`);
    expect(complaint).not.toContain("canary");
    expect(seen).toEqual([]);
  });

  test("fails an episode while the server is away, and not the next", async () => {
    let isAway = false;
    const { url } = await serveHttp(() =>
      isAway ? new Response("later", { status: 503 }) : undefined,
    );
    const tools = await openHttp({ url });
    isAway = true;
    const error = await failureOf(answers(tools, call("add", { a: 1, b: 1 })));
    expect(error).toMatchObject({ code: "environment/unreachable", retryable: true });
    isAway = false;
    expect(await answers(tools, call("add", { a: 1, b: 1 }))).toEqual(["2"]);
  });

  test("reports an absent server, and one of another kind", async () => {
    const plain = createHttpServer((_, response) => response.writeHead(404).end("nothing"));
    await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
    const { port } = plain.address() as { port: number };
    const url = `http://127.0.0.1:${port}/mcp`;
    expect(await complaintOf(createMcpTools({ url }))).toContain("no MCP endpoint?");
    await new Promise((resolve) => plain.close(resolve));
    expect(await complaintOf(createMcpTools({ url }))).toContain(
      `Cannot reach MCP server ${url}: `,
    );
    expect(await complaintOf(createMcpTools({ url: "127.0.0.1:1" }))).toBe(
      "Cannot use an MCP server at 127.0.0.1:1: expected an address such as http://127.0.0.1:8000/mcp",
    );
  });
});
