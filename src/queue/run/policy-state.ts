import { z } from "zod";
import { parseJsonText } from "../../json/parse-json.ts";
import { policyKey } from "../store/keys.ts";
import type { QueueStore } from "../store/queue-store.ts";

const policyStateSchema = z.strictObject({
  state: z.literal(1),
  /** Grows with each change. */
  revision: z.int().min(0),
  /** Whether the policy may be asked; where not, how calls under way are ended. */
  gate: z.enum(["open", "hold", "interrupt"]),
  /** The policy's newest version; absent before one is announced. */
  version: z.int().optional(),
  /** Whether sampled tokens carry that version whatever the engine says, or where it names no whole number. */
  isMarked: z.boolean(),
});

/** Whether a run's policy may be asked everywhere, and which version it has. JSON-able. */
export type PolicyState = z.infer<typeof policyStateSchema>;

/** What whoever hands a run out knows of its policy. */
export type KnownPolicy = Pick<PolicyState, "gate" | "version">;

/** The state before anything was said. */
export const firstPolicyState: PolicyState = {
  state: 1,
  revision: 0,
  gate: "open",
  isMarked: false,
};

/** The policy's state as the store has it; nothing where there is none. */
export async function readPolicyState(
  store: QueueStore,
  run: string,
): Promise<PolicyState | undefined> {
  const text = await store.redis.get(policyKey(run));
  if (text === null) return undefined;
  return policyStateSchema.safeParse(parseJsonText(text)).data;
}
