/**
 * Returns the id of a call. It has nine letters and digits, because some templates (Mistral's)
 * require that. It is unique in an episode of up to 10,000 turns with 1,000 calls each.
 *
 * @param turnIndex - 0-based.
 * @param callIndex - 0-based index in the turn.
 */
export function callId(turnIndex: number, callIndex: number): string {
  return `t${String(turnIndex).padStart(4, "0")}c${String(callIndex).padStart(3, "0")}`;
}

/**
 * Returns unique ids for the calls of an engine that returns messages. The engine's own ids are kept, because its
 * server may read them when they return.
 *
 * @param given - The id of each call, if the engine gave it one.
 */
export function keepCallIds(
  given: readonly (string | undefined)[],
  turnIndex: number,
): readonly string[] {
  const taken = new Set<string>();
  return given.map((id, index) => {
    let chosen = id ?? callId(turnIndex, index);
    // An id may repeat, or be a copy of a generated one.
    for (let place = index; taken.has(chosen); place += given.length) {
      chosen = callId(turnIndex, place);
    }
    taken.add(chosen);
    return chosen;
  });
}

/** Ids that models write: Mistral's with nine letters and digits, and Kimi's. */
const writtenId = /^(?:[A-Za-z0-9]{9}|(?:functions\.)?[\w.-]+:\d+)$/;

/**
 * Chooses unique ids for a turn's calls. An id that the policy wrote is kept, because templates
 * print it with the result.
 *
 * @param written - The id that the policy wrote for each call, if any.
 */
export function chooseCallIds(
  written: readonly (string | undefined)[],
  turnIndex: number,
): readonly string[] {
  // Fast path for the most common turn.
  if (written.length === 1 && written[0] === undefined) return [callId(turnIndex, 0)];
  const usable = written.map((id) => (id !== undefined && writtenId.test(id) ? id : undefined));
  return keepCallIds(usable, turnIndex);
}
