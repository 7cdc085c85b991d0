import { z } from "zod";
import { parseJsonText } from "../../json/parse-json.ts";
import { policyKey } from "../store/keys.ts";
import type { QueueStore } from "../store/queue-store.ts";

const policyStateSchema = z.strictObject({
  state: z.literal(1),
  /** The number of the state. It grows with each change. */
  revision: z.int().min(0),
  /**
   * `open` if workers may sample. Otherwise, the way in which running calls end: `hold` lets them
   * finish, `interrupt` cuts them short.
   */
  gate: z.enum(["open", "hold", "interrupt"]),
  /** The policy's newest version. Absent before one is announced. */
  version: z.int().optional(),
  /**
   * True to mark all sampled tokens with this version. False to do so only if the engine reports no
   * whole number.
   */
  isMarked: z.boolean(),
});

/** The state of a run's policy for all workers: its gate and its version. JSON-able. */
export type PolicyState = z.infer<typeof policyStateSchema>;

/** The policy's state, as the hand-out knows it. */
export type KnownPolicy = Pick<PolicyState, "gate" | "version">;

/** The state before any version is announced: the gate is open. */
export const firstPolicyState: PolicyState = {
  state: 1,
  revision: 0,
  gate: "open",
  isMarked: false,
};

/** Reads the policy's state from the store. Returns `undefined` if there is none. */
export async function readPolicyState(
  store: QueueStore,
  run: string,
): Promise<PolicyState | undefined> {
  const text = await store.redis.get(policyKey(run));
  if (text === null) return undefined;
  return policyStateSchema.safeParse(parseJsonText(text)).data;
}
