import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import type { Engine, Generation } from "../src/engine/engine.ts";
import { inProcessUrl, openInProcess } from "../src/gateway/create-gateway.ts";
import { listen, serveGateway, type ServedGateway } from "../src/gateway/server/serve.ts";
import { createRenderer } from "../src/renderer/create-renderer.ts";
import type { Renderer } from "../src/renderer/renderer.ts";
import { toPlainJson } from "../packages/python-values/src/value.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { qwen3Folder, sixteenTools } from "./bench-model.ts";
import { median } from "./cpu-time.ts";

type Message = Readonly<Record<string, unknown>>;

/** Measures the gateway's cost on top of the engine: per turn, to the first token, and in memory. */
export async function* benchGateway(): AsyncGenerator<BenchFigure> {
  const renderer = await createRenderer({ modelDir: qwen3Folder() });
  // Memory first, so that objects of the other benchmarks do not count.
  yield* benchSessions(renderer);
  yield* benchLatency(renderer);
  yield* benchLength(renderer);
}

const bench = "gateway";
const measuredTurns = 100;

/** Measures a continued turn with a body of 200 kB, in this process and over HTTP. */
async function* benchLatency(renderer: Renderer): AsyncGenerator<BenchFigure> {
  for (const isServed of [false, true]) {
    await using talk = await Talk.open(renderer, { isServed });
    // Measures a gateway that is warm.
    const warm = await talk.another();
    for (let turn = 0; turn < 300; turn++) await warm.turn(100);
    // The history of a coding agent after some turns.
    for (let turn = 0; turn < 18; turn++) await talk.turn(10_000);
    const cpu = process.cpuUsage();
    const added: number[] = [];
    const first: number[] = [];
    for (let turn = 0; turn < measuredTurns; turn++) {
      const { addedMs, firstMs } = await talk.turn(100);
      added.push(addedMs);
      first.push(firstMs);
    }
    const spent = cpuSince(cpu);
    const at = `${Math.round(talk.bodySize / 1000)} kB, ${isServed ? "HTTP" : "in process"}`;
    const figure = (name: string, value: number): BenchFigure => {
      return { bench, figure: name, value, unit: "ms", at };
    };
    yield figure("added to a continued turn, median", median(added));
    yield figure("added to the first token, median", median(first));
    const idle = await withoutGateway(talk);
    yield figure("a turn of a server that does nothing, median", idle.addedMs);
    yield figure("CPU added to a turn", spent / measuredTurns - idle.cpuMs);
  }
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Measures a turn without a gateway: the cost of the benchmark's own agent, with its engine. */
async function withoutGateway(
  talk: Talk,
): Promise<{ readonly addedMs: number; readonly cpuMs: number }> {
  const stub = await talk.withoutGateway();
  // Replaces the gateway, which stays open. Closes only its own server.
  await using _stub = stub.closing();
  for (let turn = 0; turn < measuredTurns; turn++) await stub.turn(100);
  const cpu = process.cpuUsage();
  const added: number[] = [];
  for (let turn = 0; turn < measuredTurns; turn++) added.push((await stub.turn(0)).addedMs);
  return { addedMs: median(added), cpuMs: cpuSince(cpu) / measuredTurns };
}

/** Measures the cost of a turn as a session grows. */
async function* benchLength(renderer: Renderer): AsyncGenerator<BenchFigure> {
  await using talk = await Talk.open(renderer, { isServed: false });
  const window: number[] = [];
  let cpu = process.cpuUsage();
  for (let turn = 1; turn <= 500; turn++) {
    if ([1, 231, 481].includes(turn)) cpu = process.cpuUsage();
    window.push((await talk.turn(100)).addedMs);
    if (![20, 250, 500].includes(turn)) continue;
    const value = median(window.slice(-20));
    yield {
      bench,
      figure: "CPU of a turn, its agent's included",
      unit: "ms",
      at: turn,
      value: cpuSince(cpu) / 20,
    };
    yield { bench, figure: "added to a continued turn, median of 20", value, unit: "ms", at: turn };
  }
}

/** Measures a thousand sessions at once, each some turns into its task. */
async function* benchSessions(renderer: Renderer): AsyncGenerator<BenchFigure> {
  const sessionCount = 1000;
  await using talk = await Talk.open(renderer, { isServed: false, latencyMs: 200 });
  globalThis.gc?.();
  const startedAt = performance.now();
  const talks = await Promise.all(Array.from({ length: sessionCount }, () => talk.another()));
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 50);
  const turnCount = 6;
  await Promise.all(
    talks.map(async (each) => {
      for (let turn = 0; turn < turnCount; turn++) await each.turn(2000);
    }),
  );
  clearInterval(watch);
  const seconds = (performance.now() - startedAt) / 1000;
  const at = sessionCount;
  yield {
    bench,
    figure: "turns per second",
    value: (sessionCount * turnCount) / seconds,
    unit: "1/s",
    at,
  };
  yield {
    bench,
    figure: "resident memory of the whole process",
    value: peak / 2 ** 20,
    unit: "MiB",
    at,
  };
}

interface EngineMark {
  askedAt: number;
  firstAt: number;
  endedAt: number;
}

/** An agent's conversation with a gateway. Each turn is a call and its result. */
class Talk implements AsyncDisposable {
  bodySize = 0;
  readonly #gateway: Awaited<ReturnType<typeof openInProcess>>;
  readonly #marks: Map<string, EngineMark>;
  readonly #token: string;
  readonly #sessionId: string;
  readonly #server: ServedGateway | undefined;
  readonly #ask: typeof globalThis.fetch;
  readonly #messages: Message[] = [
    { role: "system", content: "You help the customers of a shop. ".repeat(150) },
    { role: "user", content: "Hi, I want to exchange two of the things that I ordered last week." },
  ];
  readonly #tools = sixteenTools().map(({ openai }) => toPlainJson(openai));
  #count = 0;
  #reply = "";

  private constructor(parts: {
    readonly gateway: Awaited<ReturnType<typeof openInProcess>>;
    readonly marks: Map<string, EngineMark>;
    readonly token: string;
    readonly sessionId: string;
    readonly server: ServedGateway | undefined;
    readonly fetch?: typeof globalThis.fetch;
  }) {
    this.#gateway = parts.gateway;
    this.#marks = parts.marks;
    this.#token = parts.token;
    this.#sessionId = parts.sessionId;
    this.#server = parts.server;
    this.#ask = parts.fetch ?? parts.gateway.fetch;
  }

  static async open(
    renderer: Renderer,
    { isServed, latencyMs = 0 }: { readonly isServed: boolean; readonly latencyMs?: number },
  ): Promise<Talk> {
    const marks = new Map<string, EngineMark>();
    const text =
      '<tool_call>\n{"name": "shop_tool_1", "arguments": {"order_id": "#W1"}}\n</tool_call>';
    const ids = [
      ...(await renderer.codec.encode(`Let me look.\n${text}`)),
      renderer.stopTokenIds[0]!,
    ];
    const engine = markedEngine(ids, { marks, latencyMs });
    const gateway = await openInProcess({ engine, renderer });
    const place = { host: "127.0.0.1", port: 0, opensSessions: false };
    const server = isServed ? await serveGateway(gateway.gateway, place) : undefined;
    const { token, sessionId } = await gateway.gateway.openSession();
    return new Talk({ gateway, marks, token, sessionId, server });
  }

  /** Opens another session of the same gateway. */
  async another(): Promise<Talk> {
    const { token, sessionId } = await this.#gateway.gateway.openSession();
    const [gateway, marks] = [this.#gateway, this.#marks];
    return new Talk({ gateway, marks, token, sessionId, server: this.#server });
  }

  /** Requests a streamed turn, and answers its call with the given number of characters. */
  async turn(
    resultLength: number,
  ): Promise<{ readonly addedMs: number; readonly firstMs: number }> {
    const body = JSON.stringify({
      model: "policy",
      stream: true,
      messages: this.#messages,
      tools: this.#tools,
    });
    this.bodySize = Buffer.byteLength(body);
    const askedAt = performance.now();
    const response = await this.#post(body);
    const { firstAt, callId, text } = await readStream(response);
    this.#reply = text;
    const doneAt = performance.now();
    const mark = this.#marks.get(this.#sessionId)!;
    const toolCall = {
      id: callId,
      type: "function",
      function: { name: "shop_tool_1", arguments: '{"order_id":"#W1"}' },
    };
    this.#messages.push(
      { role: "assistant", content: "Let me look.", tool_calls: [toolCall] },
      { role: "tool", tool_call_id: callId, content: resultOf(this.#count++, resultLength) },
    );
    return {
      addedMs: doneAt - askedAt - (mark.endedAt - mark.askedAt),
      firstMs: firstAt - askedAt - (mark.firstAt - mark.askedAt),
    };
  }

  /** Opens the same conversation with an engine only, which returns the turns of this one. */
  async withoutGateway(): Promise<Talk> {
    const parts = { gateway: this.#gateway, marks: this.#marks, token: this.#token };
    const server = this.#server === undefined ? undefined : await serveStub(this.#stub);
    const talk = new Talk({ ...parts, sessionId: this.#sessionId, server, fetch: this.#stub });
    talk.#messages.splice(0, 2, ...this.#messages);
    return talk;
  }

  /** Reads the request, and streams the last reply piece by piece. */
  readonly #stub: typeof globalThis.fetch = async (input, init) => {
    await new Request(input, init).arrayBuffer();
    const now = performance.now();
    this.#marks.set(this.#sessionId, { askedAt: now, firstAt: now, endedAt: now });
    const pieces = this.#reply.split(/(?<=\n\n)/);
    const encoder = new TextEncoder();
    const body = new ReadableStream({
      async pull(controller) {
        await new Promise((resolve) => setImmediate(resolve));
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(encoder.encode(piece));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };

  /** Closes the server of this conversation. */
  closing(): AsyncDisposable {
    return { [Symbol.asyncDispose]: async () => await this.#server?.[Symbol.asyncDispose]() };
  }

  async #post(body: string): Promise<Response> {
    const ask = this.#server === undefined ? this.#ask : fetch;
    return await ask(`${this.#server?.url ?? inProcessUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      body,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway.gateway[Symbol.asyncDispose]();
    await this.#server?.[Symbol.asyncDispose]();
  }
}

function resultOf(count: number, length: number): string {
  const line = `order #W${count}: 2 lamps, blue, 12.50, shipped on 3 April; `;
  return line.repeat(Math.ceil(length / line.length)).slice(0, length);
}

async function readStream(response: Response) {
  const decoder = new TextDecoder();
  let text = "";
  let firstAt = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (firstAt === 0 && text.includes('"content":"L')) firstAt = performance.now();
  }
  const callId = /"id":"(call_\w+)"/.exec(text)?.[1];
  if (callId === undefined) throw new Error(`no call in ${text}`);
  return { firstAt, callId, text };
}

/** Gives each session the same turn, and records the times of the request and of the first token. */
function markedEngine(
  ids: readonly number[],
  { marks, latencyMs }: { readonly marks: Map<string, EngineMark>; readonly latencyMs: number },
): Engine {
  return {
    kind: "marked",
    async generate({ requestId, sessionId }, { onTokens } = {}): Promise<Generation> {
      const mark: EngineMark = { askedAt: performance.now(), firstAt: 0, endedAt: 0 };
      marks.set(sessionId, mark);
      if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs));
      mark.firstAt = performance.now();
      for (const id of ids) {
        onTokens?.({ tokenIds: [id], logprobs: [-0.5] });
        // Tokens come one by one, and other sessions are served in between.
        if (latencyMs === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      mark.endedAt = performance.now();
      return {
        outputIds: ids,
        logprobs: ids.map(() => -0.5),
        finish: { type: "stop", matched: ids.at(-1)! },
        pieces: [{ requestId, tokenCount: ids.length, policyVersion: "1", finish: "stop" }],
        discarded: [],
      };
    },
    describe: async () => ({ kind: "marked", logprobConvention: "tempered" }),
    close: async () => {},
  };
}

/** Starts a server with a handler that replaces a gateway. */
async function serveStub(
  fetch: (request: Request) => Response | Promise<Response>,
): Promise<ServedGateway> {
  const server = await listen({ fetch, hostname: "127.0.0.1", port: 0 });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
