import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setImmediate } from "node:timers/promises";
import type { ColumnSpecs } from "../../src/columns/column-specs.ts";
import { checkGeneration } from "../../src/engine/check-sampled.ts";
import type { GenerateRequest } from "../../src/engine/engine.ts";
import { openBody } from "../../src/engine/http/reply-body.ts";
import { parseObject } from "../../src/engine/http/reply-reading.ts";
import { openCutter, readReply } from "../../src/engine/sglang/reply-columns.ts";
import { TurnProgress } from "../../src/engine/turn-progress.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { cpuMs, median } from "../cpu-time.ts";
import { watchLoop } from "../watch-loop.ts";

/** Routes of 384 bytes a token, as of Qwen3-30B-A3B. */
const specs: ColumnSpecs = { routedExperts: { layerCount: 48, perToken: 8, expertCount: 128 } };

/** New tokens of a turn, of which the model sampled some. The others are the environment's. */
const newTokens = 3_300;
const sampledCount = 500;
const longPrompt = 100_000;
/** The first ones are not measured: a run has thousands of turns. */
const warmUpCount = 15;
const repetitions = 15;
const chunkBytes = 65_536;

/**
 * Measures the CPU that a turn's routed experts cost from the reply's bytes to a checked generation, against `JSON.parse`
 * of the same reply alone, and the longest pause of the event loop while those of a long prompt arrive.
 */
export async function* benchColumns(): AsyncGenerator<BenchFigure> {
  const turn = createTurn(newTokens);
  const value = await warmMedian(() => readTurn(turn));
  const baseline = await warmMedian(
    async () => void JSON.parse(Buffer.concat(turn.chunks).toString("utf8")),
  );
  yield {
    bench: "columns",
    figure: "CPU of a turn's routes at 384 bytes a token, against JSON.parse of the reply alone",
    value,
    unit: "ms",
    baseline,
    ratio: baseline / value,
    at: newTokens,
  };
  const first = createTurn(longPrompt);
  collectGarbage();
  let longest = 0;
  const stop = watchLoop((ms) => {
    longest = Math.max(longest, ms);
  });
  const cpu = await cpuMs(() => readTurn(first));
  stop();
  yield {
    bench: "columns",
    figure: "CPU of a first prompt's routes at 384 bytes a token",
    value: cpu,
    unit: "ms",
    at: longPrompt,
  };
  yield {
    bench: "columns",
    figure: "longest pause while a first prompt's routes arrive",
    value: longest,
    unit: "ms",
    at: longPrompt,
  };
}

/** Returns the median of the CPU in milliseconds. */
async function warmMedian(work: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let repetition = 0; repetition < warmUpCount + repetitions; repetition++) {
    times.push(await cpuMs(work));
  }
  return median(times.slice(warmUpCount));
}

/** Collects what creating a reply left, so that the pauses are those of reading it. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

/** A reply of SGLang, as its bytes arrive. */
interface BenchTurn {
  readonly request: GenerateRequest;
  readonly chunks: readonly Buffer[];
}

function createTurn(rowCount: number): BenchTurn {
  const { layerCount, perToken, expertCount } = specs.routedExperts!;
  const ids = new Int32Array(rowCount * layerCount * perToken);
  for (let place = 0; place < ids.length; place += perToken) {
    const start = (place * 7_919) % expertCount;
    for (let rank = 0; rank < perToken; rank++) ids[place + rank] = (start + rank) % expertCount;
  }
  const outputIds = Array.from({ length: sampledCount }, (_, index) => index);
  const promptLength = rowCount + 1 - sampledCount;
  const reply = JSON.stringify({
    text: "x".repeat(4 * sampledCount),
    output_ids: outputIds,
    meta_info: {
      id: "r",
      finish_reason: { type: "length", length: sampledCount },
      prompt_tokens: promptLength,
      output_token_logprobs: outputIds.map((id) => [-0.8317654132843018, id, null]),
      completion_tokens: sampledCount,
      routed_experts: Buffer.from(ids.buffer).toString("base64"),
      weight_version: "1",
    },
  });
  const bytes = Buffer.from(reply);
  const chunks: Buffer[] = [];
  for (let place = 0; place < bytes.length; place += chunkBytes) {
    chunks.push(Buffer.from(bytes.subarray(place, place + chunkBytes)));
  }
  const request: GenerateRequest = {
    promptIds: new Int32Array(promptLength),
    sampling: {},
    maxNewTokens: sampledCount,
    stopTokenIds: [],
    columns: { specs, knownRows: 0 },
    requestId: "r",
    sessionId: "s",
  };
  return { request, chunks };
}

/** Reads a reply as the transport and the engine do. */
async function readTurn({ request, chunks }: BenchTurn): Promise<void> {
  const progress = new TurnProgress(request);
  const piece = progress.nextPiece();
  const cutter = openCutter(piece);
  const body = openBody(
    { status: 200, headers: {} },
    { limitBytes: 2 ** 26, redactor: new Redactor([]), onEvent: undefined, cutter },
  );
  for (const chunk of chunks) {
    body.add(chunk);
    await setImmediate();
  }
  const reply = await readReply(parseObject(body.end()), piece, cutter);
  if (reply.type !== "finished") throw new Error(`Cannot read the reply: it is ${reply.type}`);
  progress.add(piece, reply.piece, "length");
  checkGeneration(progress.toGeneration(reply.finish), request);
}
