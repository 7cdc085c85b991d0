import type { ReadyAttempt, ReadyRow } from "../exporter.ts";

/**
 * Returns the messages that the policy received before a turn, for human readers. Training uses the
 * ids.
 */
export function textBefore(
  turnIndex: number,
  { turns }: ReadyRow,
  { turns: records, messages }: ReadyAttempt["episode"],
): string {
  const isFirst = turnIndex === 0 || turns[0]?.turnIndex === turnIndex;
  if (!isFirst) {
    const steps = records[turnIndex - 1]?.steps ?? [];
    return steps.map(({ observation }) => observation).join("\n");
  }
  return messages.find(({ role }) => role === "user")?.content ?? "";
}
