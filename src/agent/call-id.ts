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

/** Ids that formats write themselves: Mistral's, which has nine letters and digits, and Kimi's. */
const writtenId = /^(?:[A-Za-z0-9]{9}|(?:functions\.)?[\w.-]+:\d+)$/;

/**
 * The ids of a turn's calls: as the policy wrote them, because templates print those with the results, or our own.
 * No two are alike.
 *
 * @param written - What the policy wrote for each call, if anything.
 */
export function chooseCallIds(
  written: readonly (string | undefined)[],
  turnIndex: number,
): readonly string[] {
  // A turn with one call, of which nothing was written, is the ordinary one.
  if (written.length === 1 && written[0] === undefined) return [callId(turnIndex, 0)];
  const taken = new Set<string>();
  return written.map((id, index) => {
    let chosen = callId(turnIndex, index);
    if (id !== undefined && writtenId.test(id) && !taken.has(id)) {
      chosen = id;
    } else {
      // A policy that was shown ids of ours may have written one.
      for (let place = index + written.length; taken.has(chosen); place += written.length) {
        chosen = callId(turnIndex, place);
      }
    }
    taken.add(chosen);
    return chosen;
  });
}
