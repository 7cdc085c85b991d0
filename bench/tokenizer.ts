import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { loadTokenCodec } from "../src/tokenizer/load-codec.ts";
import type { TokenCodec } from "../src/tokenizer/codec.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { qwen3Folder } from "./bench-model.ts";
import { cpuMs, median } from "./cpu-time.ts";
import { watchLoop } from "./watch-loop.ts";
import { toAscii, withOtherCharacters } from "./source-text.ts";

/** Lengths of the encoded texts, in UTF-16 units: one tool result of a coding agent, and many. */
const lengths = [11_200, 200_000] as const;

/** New text of one measurement, in UTF-16 units. */
const newLength = 1_000_000;

const roundCount = 5;

/**
 * Measures the CPU for the ids of new text, and the longest time for which the event loop is
 * blocked meanwhile. The texts are source code, once in ASCII and once with other characters in 2 %
 * of the lines. All ids are compared.
 *
 *     npm run bench -- --only tokenizer --base DIR
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchTokenizer(base?: string): AsyncGenerator<BenchFigure> {
  const ours = await loadTokenCodec(qwen3Folder());
  const theirs = base === undefined ? undefined : await loadBase(base);
  const ascii = sourceText();
  const sources = {
    ASCII: ascii,
    "other characters in 2 % of lines": withOtherCharacters(ascii),
  };
  for (const [kind, source] of Object.entries(sources)) {
    for (const length of lengths) {
      const ownCosts: Cost[] = [];
      const theirCosts: Cost[] = [];
      for (let round = 0; round < roundCount; round++) {
        const texts = newTexts(source, length, round);
        const own = await measure(ours, texts);
        ownCosts.push(own);
        if (theirs === undefined) continue;
        const other = await measure(theirs, texts);
        theirCosts.push(other);
        if (own.ids !== other.ids) throw new Error("The two builds give different ids");
      }
      const at = `${length} units, ${kind}`;
      yield figureOf("CPU per MB of new text", "cpu", at, ownCosts, theirCosts);
      yield figureOf("longest block of the event loop", "block", at, ownCosts, theirCosts);
    }
  }
  await ours.close?.();
  await theirs?.close?.();
}

/** The cost of a list of texts. */
interface Cost {
  /** CPU of all threads, in milliseconds per MB of text. */
  readonly cpu: number;
  /** Longest time between two turns of the event loop, in milliseconds. */
  readonly block: number;
  /** A digest of the ids. */
  readonly ids: number;
}

async function measure(codec: TokenCodec, texts: readonly string[]): Promise<Cost> {
  let ids = 0;
  let block = 0;
  const stop = watchLoop((ms) => (block = Math.max(block, ms)));
  const cpu = await cpuMs(async () => {
    for (const text of texts) {
      for (const id of codec.encodeNow?.(text) ?? (await codec.encode(text))) {
        ids = (Math.imul(ids, 31) + id) | 0;
      }
      await new Promise(setImmediate);
    }
  });
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  stop();
  return { cpu: cpu / (length / 1e6), block, ids };
}

function figureOf(
  figure: string,
  name: "cpu" | "block",
  at: string,
  ours: readonly Cost[],
  theirs: readonly Cost[],
): BenchFigure {
  const value = median(ours.map((cost) => cost[name]));
  const own = { bench: "tokenizer", figure, value, unit: "ms", at };
  if (theirs.length === 0) return own;
  const baseline = median(theirs.map((cost) => cost[name]));
  return { ...own, baseline, ratio: baseline / value };
}

async function loadBase(base: string): Promise<TokenCodec> {
  const file = path.resolve(base, "dist/src/tokenizer/load-codec.js");
  const { loadTokenCodec: load } = (await import(pathToFileURL(file).href)) as {
    readonly loadTokenCodec: typeof loadTokenCodec;
  };
  return await load(qwen3Folder());
}

/** Returns texts that no other round has. */
function newTexts(source: string, length: number, round: number): readonly string[] {
  const count = Math.ceil(newLength / length);
  return Array.from({ length: count }, (_, place) => {
    const start = ((round * count + place) * length) % (source.length - length);
    return source.slice(start, start + length);
  });
}

/** Returns source code and prose of the dependencies, as a coding agent reads it. */
function sourceText(): string {
  const require = createRequire(import.meta.url);
  const folders = ["undici", "zod", "hono", "commander", "ws", "ajv"].map((name) =>
    path.join(path.dirname(require.resolve("undici/package.json")), "..", name),
  );
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|js|mjs|md)$/.test(entry.name))
      .map((entry) => path.join(entry.parentPath, entry.name))
      .toSorted(),
  );
  const text = files.map((file) => readFileSync(file, "utf8")).join("\n");
  return toAscii(text).slice(0, 8_000_000);
}
