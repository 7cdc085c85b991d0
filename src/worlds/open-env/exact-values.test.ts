import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { defineEnvironment } from "../../environment/define-environment.ts";
import { defineTool } from "../../environment/define-tool.ts";
import { playActions } from "../../environment/play-actions.ts";
import { writeCompactJson } from "../../json/exact-json.ts";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { createOpenEnv, type OpenEnvEnvironment } from "./open-env.ts";
import type { OpenEnvOptions } from "./open-env-options.ts";
import { serveOpenEnv } from "./serve-open-env.ts";

const { signal } = new AbortController();

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

/**
 * Another implementation of an OpenEnv server: answers with the texts of a list, and keeps the
 * messages that it receives.
 */
async function foreignServer(schema: string, answers: readonly (string | Buffer)[]) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const body = request.url === "/schema" ? `{"action":${schema}}` : '{"name":"numbers"}';
    const isKnown = request.url === "/schema" || request.url === "/metadata";
    response.writeHead(isKnown ? 200 : 404).end(isKnown ? body : "");
  });
  const sockets = new WebSocketServer({ server });
  let count = 0;
  sockets.on("connection", (socket) => {
    socket.on("message", (data: Buffer) => {
      const text = data.toString();
      if (text === '{"type":"close"}') return;
      asked.push(text);
      const answer = answers[count++] ?? "nothing";
      socket.send(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  opened.push({
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

async function play(environment: OpenEnvEnvironment, name: string, given: string) {
  const task = environment.task("train", 0);
  const action = { type: "call", name, arguments: parsePythonJson(given) as PyDict } as const;
  const { user } = environment;
  return await playActions(environment, { task, user, actions: [action] }, { signal });
}

const given =
  '{"x":1.0,"10":18446744073709551615,"2":-0.0,"a":[1e-07,1],"__proto__":{"b":1},"s":"\\ud800\u2028é"}';

const observed = (observation: string, more = "") =>
  `{"type":"observation","data":{"observation":${observation},"done":false${more}}}`;

test("an action reaches the server as the policy wrote it, and the schema the policy as the server wrote it", async () => {
  const schema =
    '{"type":"object","properties":{"10":{"maximum":18446744073709551615},"2":{"default":1.0}}}';
  const { url, asked } = await foreignServer(schema, [
    observed('{"text":"go"}'),
    observed('{"b":9007199254740993,"10":1.0,"2":NaN,"a":1e400,"s":"\\ud800"}'),
  ]);
  const environment = await createOpenEnv({ url });
  expect(writeCompactJson(environment.tools[0]!.openai)).toContain(
    '"properties":{"10":{"maximum":18446744073709551615},"2":{"default":1.0}}',
  );
  const { steps } = await play(environment, "act", given);
  expect(asked[1]).toBe(`{"type":"step","data":${given}}`);
  expect(steps[0]!.observation).toBe(
    '{"b":9007199254740993,"10":1.0,"2":NaN,"a":Infinity,"s":"\\ud800"}',
  );
});

test("a tool's arguments and result are kept, and describe() receives the text", async () => {
  const listed =
    '{"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":' +
    '{"10":{"default":1.0},"2":{}}}}]}';
  const answers = [
    observed(listed),
    observed('{"text":"go"}'),
    observed('{"tool_name":"f","result":{"id":9007199254740993,"10":2.0,"2":1},"error":null}'),
  ];
  const schema = '{"type":"object","properties":{"type":{},"tool_name":{},"arguments":{}}}';
  for (const describe of [undefined, (_: object, json: string) => json]) {
    const { url, asked } = await foreignServer(schema, answers);
    const options: OpenEnvOptions = describe === undefined ? { url } : { url, describe };
    const environment = await createOpenEnv(options);
    expect(writeCompactJson(environment.tools[0]!.openai)).toContain(
      '{"10":{"default":1.0},"2":{}}',
    );
    const { steps } = await play(environment, "f", given);
    expect(asked[2]).toBe(
      `{"type":"step","data":{"type":"call_tool","tool_name":"f","arguments":${given}}}`,
    );
    expect(steps[0]!.observation).toContain('{"id":9007199254740993,"10":2.0,"2":1}');
  }
});

test("a result that is one number keeps its form", async () => {
  const listed = '{"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]}';
  const { url } = await foreignServer('{"type":"object","properties":{"tool_name":{}}}', [
    observed(listed),
    observed('{"text":"go"}'),
    observed('{"tool_name":"f","result":2.0}'),
  ]);
  const { steps } = await play(await createOpenEnv({ url }), "f", "{}");
  expect(steps[0]!.observation).toBe("2.0");
});

test.each([
  ["a reward NaN", observed('{"text":"a"}', ',"reward":NaN'), '"reward":NaN'],
  ["an infinite reward", observed('{"text":"a"}', ',"reward":1e400'), '"reward":Infinity'],
  ["bytes that are not UTF-8", Buffer.from([0x22, 0xff, 0x22]), "line 1 is not UTF-8"],
  ["a byte order mark", Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]), "Unexpected UTF-8 BOM"],
])("%s is an outage that says so", async (_, answer, problem) => {
  const { url } = await foreignServer('{"type":"object","properties":{"a":{}}}', [
    observed('{"text":"go"}'),
    answer,
  ]);
  const environment = await createOpenEnv({ url });
  await expect(play(environment, "act", "{}")).rejects.toMatchObject({
    code: "environment/bad-step",
    message: expect.stringContaining(problem) as string,
  });
});

test("a served environment receives and shows the sent values", async () => {
  const tool = defineTool({
    name: "f",
    description: "d",
    parameters: { type: "object", properties: { x: { type: "number" } } },
    execute: (_given, _state, { exactArguments }) => writeCompactJson(exactArguments),
  });
  const environment = defineEnvironment({
    name: "numbers",
    tasks: [{ instruction: "Go." }],
    initialState: () => ({}),
    policy: "Count.",
    tools: [{ ...tool, callable: { ...tool.callable, takesExact: true } }],
    score: () => 0,
  });
  const server = await serveOpenEnv(environment, { port: 0 });
  opened.push(server);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/ws`);
  const ask = async (message: string): Promise<string> => {
    const answered = new Promise<string>((resolve) => {
      socket.once("message", (data: Buffer) => resolve(data.toString()));
    });
    socket.send(message);
    return await answered;
  };
  await new Promise((resolve) => socket.once("open", resolve));
  await ask('{"type":"reset","data":{}}');
  const said = await ask(
    `{"type":"step","data":{"type":"call_tool","tool_name":"f","arguments":${given}}}`,
  );
  const { data } = JSON.parse(said) as { data: { observation: { result: string } } };
  expect(data.observation.result).toBe(given);
  expect(await ask('{"type":"step","data":{"type":"say","content":NaN}}')).toContain(
    "INVALID_JSON",
  );
  socket.close();
});
