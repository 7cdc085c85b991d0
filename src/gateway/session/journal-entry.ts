import { z } from "zod";
import { countsShape } from "../../episode/check/story-shape.ts";
import type { GatewayCounts } from "../../episode/gateway-counters.ts";
import { findRecordedProblem } from "../../engine/check-sampled.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { writeCompactJson } from "../../json/exact-json.ts";
import type { RequestedTurn, ReplyPart } from "../conversation.ts";
import type { PlaceKey } from "../tree/session-tree.ts";
import { rootCauses, type RootCause } from "../tree/turn-node.ts";
import type { GatewayTurn } from "./gateway-turn.ts";
import type { SessionIdentity, SessionReward } from "./session.ts";
import type { SessionEnd } from "./to-episode.ts";

/** A turn of a session with its position in the tree. */
export interface TurnEntry {
  readonly type: "turn";
  readonly sessionId: string;
  /** The turn's unique number in the session, by which other entries refer to it. */
  readonly index: number;
  /** Number of requests that the session had started before this turn ended. */
  readonly requestCount: number;
  readonly parentIndex?: number;
  readonly cause?: RootCause;
  readonly key: Pick<PlaceKey, "environment" | "holdsAssistant">;
  /**
   * JSON text, which preserves the form of numbers. Roots only: later turns have the root's tools.
   */
  readonly tools?: string;
  readonly parts: readonly ReplyPart[];
  readonly record: GatewayTurn;
  /** The counts since the previous line with counts. Absent if there are none. */
  readonly counts?: Partial<GatewayCounts>;
}

/** The end of a session. */
export interface FinishedEntry {
  readonly type: "finished";
  readonly sessionId: string;
  /** Number of turns in the session. */
  readonly turnCount: number;
  readonly end: Pick<SessionEnd, "reward" | "failure" | "atMs">;
}

/** The content of a journal line. */
export type JournalEntry =
  | {
      readonly type: "opened";
      /** The `runId` of `run.json`. */
      readonly run: string;
      readonly identity: SessionIdentity;
    }
  | TurnEntry
  | {
      readonly type: "counted";
      readonly run: string;
      /** The counts since the previous line with counts. */
      readonly counts: Partial<GatewayCounts>;
    }
  | { readonly type: "delivered"; readonly sessionId: string; readonly index: number }
  | { readonly type: "reward"; readonly sessionId: string; readonly reward: SessionReward }
  | FinishedEntry;

const count = z.number().int().min(0);
const sessionId = z.string();
const reward = z.looseObject({
  reward: z.number(),
  turnRewards: z.array(z.number()).optional(),
});

/** The members that a session needs to continue from an entry. */
const entrySchema = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("opened"),
    run: z.string(),
    identity: z.looseObject({
      sessionId,
      tokenHash: z.string(),
      ownerHash: z.string().optional(),
      taskId: z.string(),
      taskIndex: z.number(),
      groupId: z.string(),
      sampleIndex: z.number(),
      seed: z.number(),
      openedAtMs: z.number(),
      metadata: z.looseObject({}),
    }),
  }),
  z.looseObject({
    type: z.literal("turn"),
    sessionId,
    index: count,
    parentIndex: count.optional(),
    requestCount: count,
    cause: z.enum(rootCauses).optional(),
    key: z.looseObject({ environment: z.string(), holdsAssistant: z.boolean() }),
    tools: z.string().optional(),
    parts: z.array(z.looseObject({ type: z.string(), id: z.string(), text: z.string() })),
    record: z.looseObject({
      replyId: z.string(),
      environment: z.array(z.unknown()),
      prompt: z.looseObject({ type: z.string() }),
      generation: z.looseObject({
        outputIds: z.array(z.unknown()),
        logprobs: z.array(z.unknown()),
        pieces: z.array(z.unknown()),
      }),
    }),
    counts: countsShape.optional(),
  }),
  z.looseObject({ type: z.literal("counted"), run: z.string(), counts: countsShape }),
  z.looseObject({ type: z.literal("delivered"), sessionId, index: count }),
  z.looseObject({ type: z.literal("reward"), sessionId, reward }),
  z.looseObject({
    type: z.literal("finished"),
    sessionId,
    turnCount: count,
    end: z.looseObject({
      atMs: z.number(),
      reward: reward.optional(),
      failure: z.looseObject({ code: z.string(), message: z.string() }).optional(),
    }),
  }),
]);

/**
 * Parses a line of the journal, and checks the ids, logprobs, pieces and columns of a turn. This is their one
 * check on their way to a row. Returns `undefined` if the line is damaged.
 */
export function parseEntry(text: string): JournalEntry | undefined {
  const value = parseJsonText(text);
  if (!entrySchema.safeParse(value).success) return undefined;
  const entry = value as JournalEntry;
  const isDamaged =
    entry.type === "turn" && findRecordedProblem(entry.record.generation) !== undefined;
  return isDamaged ? undefined : entry;
}

/** Returns a root's tools as JSON text for the journal. */
export function writtenTools(tools: RequestedTurn["tools"]): string {
  return writeCompactJson(tools.map(({ openai }) => openai));
}
