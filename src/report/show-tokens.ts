import type { RowLineage } from "../episode/row-lineage.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import type { Sample } from "../trajectory/sample.ts";
import { isObject } from "../values/is-object.ts";
import { describeRole } from "./rows/lineage-words.ts";
import { printable, shortened, type TextStyle } from "./text-style.ts";

/** Options for showing tokens. */
interface ShowTokensOptions {
  /** Decodes ids. Absent: shows ids instead of text. */
  readonly codec?: Pick<TokenCodec, "decode">;
  readonly style: TextStyle;
  readonly full: boolean;
}

const shownLength = 1_200;

/** Formats a training row as the policy saw it. Marks the sampled (trained) parts. */
export async function showTokens(sample: Sample, options: ShowTokensOptions): Promise<string> {
  const { style } = options;
  const { segment, tokenIds, promptLength, metadata } = sample;
  const parts = [
    style.heading(
      `row ${segment}${placeOf(metadata["lineage"])}: ${tokenIds.length} tokens, ${promptLength} of the prompt, ` +
        `${sample.lossMask.filter((mask) => mask === 1).length} sampled`,
    ),
  ];
  for (const run of maskRuns(sample.lossMask)) {
    parts.push(...(await showRun(sample, run, options)));
  }
  return parts.join("\n");
}

/** Describes the row's place in an attempt with several rows. */
function placeOf(lineage: unknown): string {
  if (!isObject(lineage)) return "";
  const { role, row, rowCount } = lineage as unknown as RowLineage;
  return ` (${row + 1} of ${rowCount}, ${printable(describeRole(role))})`;
}

async function showRun(
  { tokenIds, logprobs }: Sample,
  { start, end, isSampled }: MaskRun,
  { codec, style, full }: ShowTokensOptions,
): Promise<readonly string[]> {
  const ids = tokenIds.slice(start, end);
  const text = codec === undefined ? ids.join(" ") : printable(await codec.decode(ids));
  if (!isSampled) {
    return [
      style.faint(`${start} to ${end - 1}: not trained`),
      shortened(text, full ? Infinity : shownLength),
    ];
  }
  const own = logprobs.slice(start, end);
  const mean = own.reduce((sum, logprob) => sum + logprob, 0) / own.length;
  const facts = `mean logprob ${mean.toFixed(3)}, lowest ${Math.min(...own).toFixed(3)}`;
  return [style.faint(`${start} to ${end - 1}: sampled, ${facts}`), style.sampled(text)];
}

interface MaskRun {
  readonly start: number;
  readonly end: number;
  readonly isSampled: boolean;
}

/** Yields the parts of equal mask, in order. */
function* maskRuns(mask: readonly (0 | 1)[]): Generator<MaskRun> {
  let start = 0;
  for (let end = 1; end <= mask.length; end++) {
    if (end < mask.length && mask[end] === mask[start]) continue;
    yield { start, end, isSampled: mask[start] === 1 };
    start = end;
  }
}
