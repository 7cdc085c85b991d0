/**
 * Runs a server as a separate process, so that its CPU does not count. It has SGLang's `/generate`, which
 * returns turns from a file, and an OpenAI-compatible `/v1/chat/completions`, which plays a user. Prints
 * `{"url": …}` when it listens, and ends when its standard input closes.
 */
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { SeedScript } from "./seed-script.ts";

const [scriptFile = ""] = process.argv.slice(2);
const { turns, userLines } = JSON.parse(await readFile(scriptFile, "utf8")) as SeedScript;

/** SGLang's reply up to the counts, which depend on the prompt. Numbers have the digits of real ones. */
const replies = turns.map(({ text, ids }) => {
  const logprobs = ids.map((id, index) => [-(index + 1) * 0.000_123_456_789_012_345, id, null]);
  return {
    head: JSON.stringify({ text, output_ids: ids }).slice(0, -1),
    tail: JSON.stringify({
      input_token_logprobs: [],
      output_token_logprobs: logprobs,
      output_token_logprobs_length: ids.length,
      reasoning_tokens: 0,
      completion_tokens: ids.length,
      cached_tokens: 0,
      e2e_latency: 0.312_345_678_9,
    }).slice(1, -1),
    lastId: ids.at(-1) ?? 0,
  };
});

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString("utf8");
    if (request.url === "/generate") sample(request, response, body);
    else if (request.url === "/v1/chat/completions") speak(response, body);
    else reply(response, "{}", 404);
  });
});

/** Returns the turn's index, from the end of the request's id (`rollout:attempt:turn;`) or from a header. */
function sample(request: IncomingMessage, response: ServerResponse, body: string): void {
  const { rid = "", input_ids: inputIds = [] } = JSON.parse(body) as {
    rid?: string;
    input_ids?: readonly number[];
  };
  const header = request.headers["x-turn"];
  const index = Number(typeof header === "string" ? header : /(\d+);$/.exec(rid)?.[1]);
  const { head, tail, lastId } = replies[index % replies.length]!;
  const finish = JSON.stringify({ type: "stop", matched: lastId });
  const meta =
    `{"id":${JSON.stringify(rid)},"finish_reason":${finish},"prompt_tokens":${inputIds.length},` +
    `"weight_version":"default","num_retractions":0,${tail}}`;
  reply(response, `${head},"meta_info":${meta}}`);
}

/** Returns the user's next line, by the number of lines so far. */
function speak(response: ServerResponse, body: string): void {
  const { messages } = JSON.parse(body) as { messages: readonly { role: string }[] };
  const spoken = messages.filter(({ role }) => role === "assistant").length;
  const content = userLines[spoken] ?? "###STOP###";
  reply(
    response,
    JSON.stringify({
      id: "chatcmpl-0123456789",
      object: "chat.completion",
      created: 1_700_000_000,
      model: "user",
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      usage: { prompt_tokens: 400, completion_tokens: 40, total_tokens: 440 },
    }),
  );
}

function reply(response: ServerResponse, text: string, status = 200): void {
  const bytes = Buffer.from(text, "utf8");
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": bytes.length,
  });
  response.end(bytes);
}

server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
});
process.stdin.resume();
process.stdin.once("close", () => process.exit(0));
