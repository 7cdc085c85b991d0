import { countEpisode } from "../../episode/count-episode.ts";
import type { Episode, TreeTurn, TurnRecord, TurnStep } from "../../episode/episode.ts";
import type { ScoreFields } from "../../episode/scored-end.ts";
import { describeTurn } from "../../episode/turn/describe-turn.ts";
import type { Failure } from "../../errors.ts";
import type { TurnEdge } from "../../episode/turn-lineage.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { hashIds } from "../../trajectory/rolling-hash.ts";
import type { RolloutEnd } from "../../trajectory/sample.ts";
import type { TurnLineage } from "../lineage/derive-lineage.ts";
import { collectRows, type RowChoice, type TreeRow } from "../tree/collect-rows.ts";
import type { TurnNode } from "../tree/turn-node.ts";
import type { GatewayTurn } from "./gateway-turn.ts";
import type { GatewaySession, SessionReward } from "./session.ts";

/** The environment of a gateway's episodes. The agent's own program plays that role. */
export const gatewayEnvironment = { name: "gateway", split: "live" } as const;

/** The end of a session. */
export interface SessionEnd {
  readonly reward?: SessionReward;
  /** The reason why the session has no score, for example an agent that stopped early. */
  readonly failure?: Failure;
  /** The end of the session, in place of the end that follows from `reward` and `failure`. */
  readonly end?: RolloutEnd & ScoreFields;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/**
 * Converts a session to an episode. Each row becomes a segment. The trained turns become the episode's turns, row by
 * row. A session without a reward gives an episode without one.
 */
export function toEpisode(
  { identity, tree, lineage }: Pick<GatewaySession, "identity" | "tree" | "lineage">,
  end: SessionEnd,
  choice: RowChoice = "all",
): Episode {
  const isMain = (turn: number): boolean => lineage[turn]!.role === "main";
  const received = usedTurns(lineage);
  const rejected = rejectedTurns(lineage);
  const rows = collectRows(tree.nodes, { choice, rejected, received, isMain });
  const segments = rows.map(({ segment }) => segment);
  const turns = rows.flatMap((row) => recordTurns(row));
  const trained = rows.flatMap((row) => row.trained);
  const formatErrors = trained.filter((node) => node.record.isFormatError);
  const { taskId, taskIndex, groupId, sampleIndex, seed, openedAtMs } = identity;
  return {
    format: 1,
    rolloutId: `${taskId}#${sampleIndex}`,
    groupId,
    taskId,
    taskIndex,
    sampleIndex,
    seed,
    attempt: 1,
    environment: gatewayEnvironment.name,
    split: gatewayEnvironment.split,
    ...(end.end ?? rolloutEnd(end, trained)),
    counts: countEpisode(turns, segments, formatErrors.length),
    userUsage: { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 },
    startedAtMs: openedAtMs,
    durationMs: Math.max(0, end.atMs - openedAtMs),
    messages: messagesOf(rows.find(({ path }) => isMain(path[0]!.index)) ?? rows[0]),
    turns,
    tree: describeTree(tree.nodes, { rows, lineage, received }),
    segments,
  };
}

/** Returns the indexes of the rejected turns: those that no later turn continued or used. */
function rejectedTurns(lineage: readonly TurnLineage[]): ReadonlySet<number> {
  return new Set(lineage.flatMap(({ rejected }, index) => (rejected === undefined ? [] : [index])));
}

/** The links that show a turn's text or calls in a later request. */
const usingEdges: ReadonlySet<TurnEdge> = new Set([
  "compaction",
  "subagent_call",
  "subagent_return",
]);

/**
 * Returns the indexes of the turns that a later request uses. The client has received these turns, even if the gateway
 * died before it recorded their delivery.
 */
function usedTurns(lineage: readonly TurnLineage[]): ReadonlySet<number> {
  return new Set(
    lineage.flatMap(({ from }) =>
      from !== undefined && usingEdges.has(from.edge) ? [from.turn] : [],
    ),
  );
}

/** Returns all sampled turns with their parents, including untrained ones. */
function describeTree(
  nodes: readonly TurnNode<GatewayTurn>[],
  {
    rows,
    lineage,
    received,
  }: {
    readonly rows: readonly TreeRow<GatewayTurn>[];
    readonly lineage: readonly TurnLineage[];
    readonly received: ReadonlySet<number>;
  },
): readonly TreeTurn[] {
  const turnIndexes = new Map(rows.flatMap(({ trained }) => trained).map((node, at) => [node, at]));
  return nodes.map((node, index) => {
    const { record, parent, children } = node;
    const { generation, notes, labels } = record;
    return {
      ...withoutUndefined({
        parent: parent?.index,
        cause: node.cause,
        turnIndex: turnIndexes.get(node),
        constraint: record.constraint,
        droppedStopId: children.map(droppedBy).find((id) => id !== undefined),
      }),
      promptTokenCount: record.promptTokenCount,
      sampledTokenCount: generation.outputIds.length,
      outputHash: hashIds(generation.outputIds),
      isDelivered: node.isDelivered || received.has(index),
      model: record.model,
      ...(notes.length !== 0 && { notes }),
      ...(Object.keys(labels).length !== 0 && { labels }),
      ...lineage[index]!,
    };
  });
}

function droppedBy({ record: { prompt } }: TurnNode<GatewayTurn>): number | undefined {
  return prompt.type === "delta" ? prompt.delta.droppedStopId : undefined;
}

function rolloutEnd(
  { failure, reward: scored }: SessionEnd,
  trained: readonly TurnNode<GatewayTurn>[],
): RolloutEnd & ScoreFields {
  if (failure !== undefined) return { outcome: "failed", stopReason: "failure", failure };
  if (scored === undefined) return { outcome: "completed", stopReason: "unscored" };
  const { reward, details, components, turnRewards } = scored;
  return {
    outcome: "completed",
    stopReason: "finished",
    reward,
    ...(details !== undefined && { rewardDetails: details }),
    ...(components !== undefined && { rewardComponents: components }),
    ...(turnRewards !== undefined && {
      turnRewards: trained.map(({ index }) => turnRewards[index]!),
    }),
  };
}

function messagesOf(row: TreeRow<GatewayTurn> | undefined): Episode["messages"] {
  return (row?.path ?? []).flatMap(({ record }) => [...record.shown, record.message]);
}

function recordTurns({ trained, path, segment }: TreeRow<GatewayTurn>): TurnRecord[] {
  return trained.map((node, place) => {
    const { generation, message, engineMs, attemptCounts } = node.record;
    const { content: text, reasoning } = message;
    const { turnIndex, start: promptTokenCount } = segment.turns[place]!;
    const next = path[path.indexOf(node) + 1];
    const described = describeTurn(
      generation,
      {
        turnIndex,
        text,
        ...(reasoning !== undefined && { reasoning }),
        promptTokenCount,
        engineMs,
      },
      // `pieces` is here for the order of the record's fields in files.
      { attemptCounts, pieces: generation.pieces, steps: stepsOf(node, next) },
    );
    return Object.assign(described, { environmentMs: 0 });
  });
}

/**
 * Returns the agent's answers to a turn, results of calls first, as far as the policy received
 * them.
 */
function stepsOf(
  { record }: TurnNode<GatewayTurn>,
  next: TurnNode<GatewayTurn> | undefined,
): readonly TurnStep[] {
  const shown = next?.record.shown ?? [];
  const results = shown.filter((message) => message.role === "tool");
  const said = shown.flatMap(({ role, content }): TurnStep[] =>
    role === "user" ? [{ source: role, callId: "", observation: content, result: "acted" }] : [],
  );
  const answered = (record.message.toolCalls ?? []).flatMap(
    ({ id: callId, name, argumentsText }): TurnStep[] => {
      const result = results.find(({ toolCallId }) => toolCallId === callId);
      if (result === undefined) return [];
      const { content: observation } = result;
      const step: TurnStep = {
        source: name,
        callId,
        arguments: argumentsText,
        observation,
        result: "acted",
      };
      return [step];
    },
  );
  return [...answered, ...said];
}
