import { once } from "node:events";
import type { ServerPolicy } from "../../src/testing/policies/server-policy.ts";
import type { TokenCodec } from "../../src/tokenizer/codec.ts";
import type { SeedScript } from "../seed/seed-script.ts";

/** Returns the same turns in each episode, in order. */
export async function createSeedPolicy(
  codec: TokenCodec,
  { turns }: SeedScript,
): Promise<ServerPolicy> {
  const [opening, assistant] = await codec.encode("<|im_start|>assistant");
  return {
    name: "seed",
    begin({ inputIds }) {
      const begun = inputIds.filter(
        (id, place) => id === opening && inputIds[place + 1] === assistant,
      );
      const turn = turns[Math.min(begun.length, turns.length) - 1];
      return (turn?.ids ?? []).map((id) => ({ id, logprob: -0.125 }));
    },
  };
}

/** Samples nothing, and calls `onRequest`. */
export function createSilentPolicy(onRequest: () => void): ServerPolicy {
  return {
    name: "silent",
    async begin({ signal }) {
      onRequest();
      if (!signal.aborted) await once(signal, "abort");
      return [];
    },
  };
}
