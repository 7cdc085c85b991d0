import { indented, printable, type TextStyle } from "../../report/text-style.ts";
import type { StoredRun } from "../../report/read-run.ts";
import { ownBug } from "../../errors.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import type { Sample } from "../../trajectory/sample.ts";

/**
 * The text before the user's first message. Everything before it is the same in all conversations.
 */
const openingMarker = "<|im_start|>user\n";

/**
 * Returns the first training row of a rollout as text, without the system prompt. Marks the sampled
 * parts.
 */
export async function showConversation(
  run: StoredRun,
  rolloutId: string,
  { model, style }: { readonly model: string; readonly style: TextStyle },
): Promise<string> {
  const codec = await loadTokenCodec(model);
  try {
    for await (const sample of run.samplesOf(rolloutId)) {
      return indented(await markSampled(sample, codec, style));
    }
  } finally {
    await codec.close?.();
  }
  throw ownBug(`${run.dir} has no sample of ${rolloutId}, which is among its episodes`);
}

async function markSampled(sample: Sample, codec: TokenCodec, style: TextStyle): Promise<string> {
  const { tokenIds, promptLength, turns } = sample;
  const textOf = async (start: number, end: number) =>
    printable(await codec.decode(tokenIds.slice(start, end)));
  const prompt = await textOf(0, promptLength);
  const opening = Math.max(0, prompt.lastIndexOf(openingMarker));
  let text = style.faint(`(the end of ${promptLength} tokens of prompt)\n`);
  text += prompt.slice(opening);
  let position = promptLength;
  for (const { start, end } of turns) {
    text += await textOf(position, start);
    text += style.sampled(await textOf(start, end));
    position = end;
  }
  return text + (await textOf(position, tokenIds.length));
}
