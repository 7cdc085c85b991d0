import { readFile } from "node:fs/promises";
import type { PolicyRequest, PolicyToken, ServerPolicy } from "./server-policy.ts";

/** One turn of a script. */
export interface ScriptedTurn {
  /** The ids to sample, including the stop id if the turn ends with one. */
  readonly outputIds: readonly number[];
  /** One logprob for each id. Default: -(i + 1) / 16 for the i-th, 0-based. */
  readonly logprobs?: readonly number[];
  /** The stop string that the last id completes, or another cause of the end that the engine names. */
  readonly matched?: string;
  /** Checks the request. Returns the reason if the script did not expect it. */
  readonly check?: (request: PolicyRequest) => string | undefined;
}

/** A scripted policy that reports the unplayed turns of its script. */
export interface ScriptedPolicy extends ServerPolicy {
  /** Returns the number of turns left, by session. */
  remaining(): Readonly<Record<string, number>>;
}

/** A turn, with the prompt of its first request. */
interface PlayedTurn {
  readonly promptIds: readonly number[];
  readonly turn: ScriptedTurn;
}

interface SessionScript {
  readonly turns: readonly ScriptedTurn[];
  /** The number of started turns. */
  begun: number;
  /** The prompt of the last started turn. */
  promptIds: readonly number[];
}

/**
 * Creates a policy that plays turns from a script: one list for all sessions, or one list per session id. A repeated
 * prompt gets the same turn, and a prompt that continues it with some of the turn's ids gets the rest, so that retries
 * and resumptions behave as on a deterministic engine. Sampled ids score as they were reported, after the prompt that
 * they were sampled from. All other ids score -1. A single list serves all sessions in the order of their requests, so
 * use one list per session if several run at the same time.
 */
export function createScriptedPolicy(
  script: readonly ScriptedTurn[] | Readonly<Record<string, readonly ScriptedTurn[]>>,
): ScriptedPolicy {
  const shared = isList(script) ? toSession(script) : undefined;
  const played: PlayedTurn[] = [];
  const bySession = new Map(
    isList(script) ? [] : Object.entries(script).map(([id, turns]) => [id, toSession(turns)]),
  );
  return {
    name: "scripted",
    begin(request) {
      const session = shared ?? bySession.get(request.routingKey ?? "");
      if (session === undefined) {
        throw new Error(`Cannot play a turn: there is no script for session ${request.routingKey}`);
      }
      return nextTokens(session, request, played);
    },
    score: ({ inputIds }) => scoreIds(inputIds, played),
    remaining: () =>
      Object.fromEntries(
        [...(shared === undefined ? bySession : new Map([["", shared]]))].map(([id, session]) => [
          id,
          session.turns.length - session.begun,
        ]),
      ),
  };
}

/**
 * Creates the policy in a server process. `options` is `{"file": path of a JSON file with the
 * script}`.
 */
export async function createPolicy(options: { readonly file: string }): Promise<ServerPolicy> {
  return createScriptedPolicy(
    JSON.parse(await readFile(options.file, "utf8")) as Parameters<typeof createScriptedPolicy>[0],
  );
}

function isList(
  script: readonly ScriptedTurn[] | Readonly<Record<string, readonly ScriptedTurn[]>>,
): script is readonly ScriptedTurn[] {
  return Array.isArray(script);
}

function toSession(turns: readonly ScriptedTurn[]): SessionScript {
  return { turns, begun: 0, promptIds: [] };
}

/** Scores ids by the turns that were played after the same ids. */
function scoreIds(ids: readonly number[], played: readonly PlayedTurn[]): number[] {
  const scores = ids.map(() => -1);
  for (const { promptIds, turn } of played) {
    if (!promptIds.every((id, index) => id === ids[index])) continue;
    for (const [offset, { id, logprob }] of toTokens(turn).entries()) {
      const index = promptIds.length + offset;
      if (ids[index] !== id) break;
      scores[index] = logprob;
    }
  }
  return scores;
}

function nextTokens(
  session: SessionScript,
  request: PolicyRequest,
  played: PlayedTurn[],
): PolicyToken[] {
  const playedCount = playedBefore(session, request.inputIds);
  if (playedCount === undefined) {
    const next = session.turns[session.begun];
    if (next === undefined) {
      throw new Error(`Cannot play turn ${session.begun + 1}: the script has ${session.begun}`);
    }
    const refusal = next.check?.(request);
    if (refusal !== undefined) throw new Error(`Cannot play turn ${session.begun + 1}: ${refusal}`);
    session.begun += 1;
    session.promptIds = request.inputIds;
    played.push({ promptIds: request.inputIds, turn: next });
  }
  const turn = session.turns[session.begun - 1];
  return turn === undefined ? [] : toTokens(turn).slice(playedCount ?? 0);
}

/**
 * Returns the number of ids of the current turn in the request, or `undefined` if the request is
 * for another turn.
 */
function playedBefore(
  { turns, begun, promptIds }: SessionScript,
  inputIds: readonly number[],
): number | undefined {
  const turn = turns[begun - 1];
  const played = inputIds.length - promptIds.length;
  if (turn === undefined || played < 0 || played >= Math.max(turn.outputIds.length, 1)) {
    return undefined;
  }
  const same = inputIds.every((id, index) =>
    index < promptIds.length
      ? id === promptIds[index]
      : id === turn.outputIds[index - promptIds.length],
  );
  return same ? played : undefined;
}

function toTokens({ outputIds, logprobs, matched }: ScriptedTurn): PolicyToken[] {
  return outputIds.map((id, index) => ({
    id,
    logprob: logprobs?.[index] ?? -(index + 1) / 16,
    ...(matched !== undefined && index === outputIds.length - 1 && { matched }),
  }));
}
