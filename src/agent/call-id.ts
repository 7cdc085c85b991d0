/**
 * The id of a turn's call. Nine letters and digits, because some templates (Mistral's) insist on
 * exactly that. Unique within the episode for 10,000 turns of 1,000 calls.
 *
 * @param turnIndex - 0-based.
 * @param callIndex - 0-based, within the turn.
 */
export function callId(turnIndex: number, callIndex: number): string {
  return `t${String(turnIndex).padStart(4, "0")}c${String(callIndex).padStart(3, "0")}`;
}
