import { readFile } from "node:fs/promises";
import type { PolicyRequest, PolicyToken, ServerPolicy } from "./server-policy.ts";

/** The scripts of all sessions, turn by turn. */
export interface SessionScripts {
  /**
   * Ids that start each assistant turn in a prompt. Their number in the prompt gives the index of the requested turn.
   */
  readonly turnMarkerIds: readonly number[];
  /** The ids of each turn by session id, including the closing stop id. */
  readonly sessions: Readonly<Record<string, readonly (readonly number[])[]>>;
  /** The turn for sessions that are not listed, and after the last turn. */
  readonly otherwise: readonly number[];
}

/**
 * Creates a stateless policy that plays scripts. The prompt alone determines the requested turn, and the ids of this
 * turn that were already sampled. So a server that is killed and restarted continues where it stopped, and an episode
 * that is played again starts from its beginning.
 */
export function sessionScriptPolicy(scripts: SessionScripts): ServerPolicy {
  return {
    name: "session-script",
    begin({ inputIds, routingKey }: PolicyRequest): readonly PolicyToken[] {
      const { turnIndex, sampledIds } = locateTurn(inputIds, scripts.turnMarkerIds);
      const turns = scripts.sessions[routingKey ?? ""] ?? [];
      const turnIds = turns[turnIndex] ?? scripts.otherwise;
      const rest = restOfTurn(turnIds, sampledIds);
      if (rest !== undefined) return rest;
      throw new Error(
        `Cannot play turn ${turnIndex} of session ${routingKey}: the prompt ends with other ids than the script's`,
      );
    },
    score: ({ inputIds }) => scoreIds(inputIds, scripts.turnMarkerIds),
  };
}

/** Scores ids after a turn's marker as the script samples them. All other ids score -1. */
function scoreIds(ids: readonly number[], marker: readonly number[]): number[] {
  let start = -1;
  return ids.map((id, index) => {
    const logprob = start < 0 ? -1 : scriptedLogprob(id, index - start);
    const end = index + 1;
    if (marker.every((part, offset) => ids[end - marker.length + offset] === part)) start = end;
    return logprob;
  });
}

/**
 * Creates the policy in a server process. `options` is `{"file": path of a JSON file of scripts}`.
 */
export async function createPolicy(options: { readonly file: string }): Promise<ServerPolicy> {
  return sessionScriptPolicy(JSON.parse(await readFile(options.file, "utf8")) as SessionScripts);
}

/**
 * Returns the tokens of a turn after the sampled ones. Returns `undefined` if the sampled ids are not the turn's start.
 */
export function restOfTurn(
  turnIds: readonly number[],
  sampledIds: readonly number[],
): readonly PolicyToken[] | undefined {
  const isStart = sampledIds.every((id, index) => id === turnIds[index]);
  if (!isStart || sampledIds.length >= turnIds.length) return undefined;
  return turnIds.slice(sampledIds.length).map((id, index) => ({
    id,
    logprob: scriptedLogprob(id, sampledIds.length + index),
  }));
}

/** A made-up logprob that depends on the id and its place, so that a shifted row cannot pass. */
export function scriptedLogprob(id: number, index: number): number {
  return -(((id * 31 + index * 17) % 997) + 1) / 512;
}

/**
 * Finds the turn that a prompt requests. Returns its 0-based index, and the ids of the turn that the prompt already
 * has.
 */
export function locateTurn(
  inputIds: readonly number[],
  marker: readonly number[],
): { turnIndex: number; sampledIds: readonly number[] } {
  let turnIndex = -1;
  let end = inputIds.length;
  for (let start = 0; start + marker.length <= inputIds.length; start++) {
    if (marker.every((id, offset) => inputIds[start + offset] === id)) {
      turnIndex++;
      end = start + marker.length;
    }
  }
  return { turnIndex, sampledIds: inputIds.slice(end) };
}
