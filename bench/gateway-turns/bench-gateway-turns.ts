import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { BenchFigure } from "../bench-figure.ts";
import { against, checkoutsOf } from "../checkouts.ts";
import { median } from "../cpu-time.ts";
import { startCannedEngine } from "./canned-engine.ts";
import { CodingAgent, readCorpus, type Corpus } from "./coding-agent.ts";
import { MeasuredGateway } from "./measured-gateway.ts";

/** Rounds of each kind of turn. The sides take turns within a round. */
const roundCount = 4;

/** Number of first turns in a round. */
const longCount = 3;
/** UTF-16 units of the prompt of a first turn: some 50,000 tokens. */
const longLength = 200_000;

/** Number of sessions with later turns. */
const sessionCount = 64;
/** Number of later turns of a session in a round. */
const laterTurns = 4;
/** UTF-16 units of the first prompt of such a session: some 5,000 tokens. */
const shortLength = 9_000;

/** UTF-16 units of a tool's result: some 400 tokens. */
const resultLength = 1_600;

/** A checkout's gateway, with its figures. */
interface Side {
  readonly gateway: MeasuredGateway;
  readonly first: number[];
  readonly later: number[];
}

/**
 * Measures the CPU of a gateway's process for a turn, over HTTP to an agent and to an engine that answers at once:
 * first turns with a prompt of 50,000 tokens, and later turns of 64 sessions of 5,000 tokens. Gateways of their own
 * measure the longest block of the event loop.
 *
 *     npm run bench -- --only gateway-turns --base DIR
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchGatewayTurns(base?: string): AsyncGenerator<BenchFigure> {
  await using engine = await startCannedEngine();
  const checkouts = checkoutsOf(base);
  for (const isUnicode of [false, true]) {
    const play = new Play(readCorpus(isUnicode));
    const at = isUnicode ? "2 % of lines beyond ASCII" : "ASCII";
    for (const watchesLoop of [false, true]) {
      const sides = await measure(play, { checkouts, engineUrl: engine.url, watchesLoop });
      const what = watchesLoop ? "longest block of the event loop" : "CPU";
      yield figureOf(`${what}, a first turn of 50,000 tokens`, at, sides, "first");
      const sessions = `${sessionCount} sessions of 5,000 tokens`;
      yield figureOf(`${what}, a later turn of ${sessions}`, at, sides, "later");
    }
  }
}

function figureOf(
  figure: string,
  at: string,
  sides: readonly Side[],
  kind: "first" | "later",
): BenchFigure {
  const [value = 0, baseline] = sides.map((side) => median(side[kind]));
  return {
    bench: "gateway-turns",
    figure,
    value,
    unit: "ms",
    at,
    ...against(value, baseline),
  };
}

/** Plays all rounds with a gateway of each checkout. */
async function measure(
  play: Play,
  options: {
    readonly checkouts: readonly string[];
    readonly engineUrl: string;
    readonly watchesLoop: boolean;
  },
): Promise<readonly Side[]> {
  const { checkouts, engineUrl, watchesLoop } = options;
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  const sides: Side[] = [];
  try {
    for (const [place, checkout] of checkouts.entries()) {
      const out = path.join(folder, String(place));
      const gateway = await MeasuredGateway.start({ checkout, out, engineUrl, watchesLoop });
      sides.push({ gateway, first: [], later: [] });
    }
    for (let round = 0; round < roundCount; round++) {
      for (const { gateway, first } of sides) {
        const { cpuMs, blockMs } = await play.firstTurns(gateway);
        first.push(watchesLoop ? blockMs : cpuMs);
      }
      for (const { gateway, later } of sides) {
        const { cpuMs, blockMs } = await play.laterTurns(gateway);
        later.push(watchesLoop ? blockMs : cpuMs);
      }
    }
    return sides;
  } finally {
    for (const { gateway } of sides) await gateway[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  }
}

/** The figures of a round: CPU for a turn, and the longest block, in milliseconds. */
interface RoundFigures {
  readonly cpuMs: number;
  readonly blockMs: number;
}

/** Plays conversations. No two have the same text. */
class Play {
  readonly #corpus: Corpus;
  #place = 1;

  constructor(corpus: Corpus) {
    this.#corpus = corpus;
  }

  /** Plays the first turns of new conversations, one after the other. */
  async firstTurns(gateway: MeasuredGateway): Promise<RoundFigures> {
    const agents = await this.#open(gateway, longCount, longLength);
    await gateway.figures();
    for (const agent of agents) await agent.turn(this.#result());
    const { cpuMs, blockMs } = await gateway.figures();
    return { cpuMs: cpuMs / longCount, blockMs };
  }

  /** Plays turns of new sessions after their first ones, all sessions at once. */
  async laterTurns(gateway: MeasuredGateway): Promise<RoundFigures> {
    const agents = await this.#open(gateway, sessionCount, shortLength);
    await Promise.all(agents.map(async (agent) => await agent.turn(this.#result())));
    await gateway.figures();
    const playOn = async (agent: CodingAgent): Promise<void> => {
      for (let turn = 0; turn < laterTurns; turn++) await agent.turn(this.#result());
    };
    await Promise.all(agents.map(playOn));
    const { cpuMs, blockMs } = await gateway.figures();
    return { cpuMs: cpuMs / (sessionCount * laterTurns), blockMs };
  }

  async #open(
    gateway: MeasuredGateway,
    count: number,
    length: number,
  ): Promise<readonly CodingAgent[]> {
    const open = async (): Promise<CodingAgent> => {
      const at = { url: gateway.url, token: await gateway.openSession() };
      const rules = this.#corpus.textAt(0, Math.min(length, 16_000) / 2);
      const system = `You are a coding agent.\n${rules}`;
      const user = this.#corpus.textAt(this.#place++, length - system.length);
      return new CodingAgent(at, { system, user });
    };
    return await Promise.all(Array.from({ length: count }, open));
  }

  #result(): string {
    return this.#corpus.textAt(this.#place++, resultLength);
  }
}
