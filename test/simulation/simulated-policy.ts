import { seedAfter } from "../../src/engine/continued-sampling.ts";
import { createSeededRandom } from "../../src/environment/seeded-random.ts";
import { characterIds } from "../../src/testing/character-renderer.ts";
import { hashIds } from "../../src/trajectory/rolling-hash.ts";

/** Opens each turn of the character renderer. */
export const openId = 0x11_0000;

const heading = "assistant\n".length;

/** The first part of the policy's prompt ids: all up to the open turn. */
function turnStart(promptIds: readonly number[]): number {
  return promptIds.lastIndexOf(openId) + 1 + heading;
}

/** The turn that the policy samples for a prompt: the prompt and the seed determine it. */
export function turnText(promptIds: readonly number[], seed: number | undefined): string {
  const random = createSeededRandom(`${seed}/${hashIds(promptIds)}`);
  const kind = random.next();
  const call = (): string =>
    `<tool_call>\n{"name": "add", "arguments": {"by": ${random.between(1, 9)}}}\n</tool_call>`;
  if (kind < 0.4) return call();
  if (kind < 0.55) return `${call()}\n${call()}`;
  return kind < 0.9 ? `I have ${random.between(1, 1000)}.` : "Goodbye!";
}

/** The ids that are still to be sampled of the turn that a prompt ends with. */
export function restOfTurn(
  promptIds: readonly number[],
  seed: number | undefined,
): readonly number[] {
  const start = turnStart(promptIds);
  const sampledCount = promptIds.length - start;
  // The prompt of the turn.
  const first =
    seed === undefined ? undefined : (seedAfter(seed, -sampledCount) + 2 ** 31) % 2 ** 31;
  const ids = characterIds(turnText(promptIds.slice(0, start), first));
  return ids.slice(sampledCount);
}
