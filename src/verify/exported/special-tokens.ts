import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import { readModelFolder } from "../../tokenizer/model-folder.ts";
import { quote, type Violation } from "../../trajectory/violation.ts";
import type { ExportedRow } from "./exported-row.ts";

/** Ids with a special role for a model's tokenizer. */
export interface SpecialTokens {
  /** The number of ids. Every id is below it. */
  readonly vocabularySize: number;
  /** The spelling of each control token, by id. */
  readonly controls: ReadonlyMap<number, string>;
  /** Ids that end a turn of the policy. */
  readonly stops: ReadonlySet<number>;
  /**
   * The id of `bos_token`, which begins texts. Absent if the model has no such token, or if it also
   * ends turns.
   */
  readonly begin?: number;
}

/**
 * Reads the special tokens of a model.
 * @throws UsageError if the folder or its tokenizer cannot be read.
 */
export async function readSpecialTokens(modelDir: string): Promise<SpecialTokens> {
  const codec = await loadTokenCodec(modelDir);
  try {
    const { eosTokenIds, specialTokens } = await readModelFolder(modelDir);
    const idOf = (name: string): number | undefined => {
      const literal = specialTokens[name];
      return literal === undefined ? undefined : codec.idOf(literal);
    };
    const eos = idOf("eos_token");
    const stops = new Set([...eosTokenIds, ...(eos === undefined ? [] : [eos])]);
    const begin = idOf("bos_token");
    return {
      vocabularySize: codec.vocabularySize,
      controls: new Map(
        codec.addedTokens.flatMap(({ id, content, special }) => (special ? [[id, content]] : [])),
      ),
      stops,
      ...(begin !== undefined && !stops.has(begin) && { begin }),
    };
  } finally {
    await codec.close?.();
  }
}

/**
 * Checks the special tokens of a row. Each id must be in the vocabulary. No sampled id may follow a
 * stop id. A control token must separate turns. The id of `bos_token` may stand only before the first
 * sampled id. Reports the first violation of each kind.
 */
export function checkSpecialTokens(
  { prompt, ids, mask }: ExportedRow,
  { vocabularySize, controls, stops, begin }: SpecialTokens,
): readonly Violation[] {
  const found: Violation[] = [];
  const say = (index: number, what: string): void => {
    const id = ids.values[index] as number;
    const named = controls.has(id) ? `${id} (${controls.get(id)})` : quote(id);
    found.push({ rule: "special-tokens", detail: `${ids.place(index)} is ${named}${what}` });
  };
  for (const part of [prompt, ids]) {
    const beyond = part?.values.findIndex((id) => typeof id === "number" && id >= vocabularySize);
    if (part === undefined || beyond === undefined || beyond < 0) continue;
    const detail = `${part.place(beyond)} is ${quote(part.values[beyond])}, and the vocabulary has ${vocabularySize}`;
    found.push({ rule: "special-tokens", detail });
  }
  const isTrained = (index: number): boolean => mask.values[index] === 1;
  const idAt = (index: number): number => ids.values[index] as number;
  const onward = ids.values.findIndex(
    (_, index) => stops.has(idAt(index)) && isTrained(index) && isTrained(index + 1),
  );
  if (onward >= 0) say(onward, ", which ends a turn, and sampled tokens follow");
  const last = mask.values.lastIndexOf(1);
  for (let index = 0; index < last; index++) {
    if (!isTrained(index) || isTrained(index + 1)) continue;
    const next = mask.values.indexOf(1, index + 1);
    const between = ids.values.slice(index, next) as number[];
    if (between.some((id) => controls.has(id))) continue;
    say(index, `, and no control token stands between it and ${ids.place(next)}, the next turn`);
    break;
  }
  const first = mask.values.indexOf(1);
  const again = begin === undefined ? -1 : ids.values.indexOf(begin, Math.max(first, 0));
  if (again >= 0 && first >= 0) say(again, ", with which a text begins, after the prompt");
  return found;
}
