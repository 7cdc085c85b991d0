import { z } from "zod";

const count = z.number().min(0);
const byName = z.record(z.string(), count).optional();

/** The counts of a gateway that are not zero or empty. */
export const countsShape = z.looseObject({
  turnCount: count.optional(),
  continuedCount: count.optional(),
  roots: byName,
  notes: byName,
  replayedCount: count.optional(),
  undeliveredCount: count.optional(),
  unenforced: byName,
  leftOutCallCount: count.optional(),
  rejectedTurns: byName,
  refused: byName,
  ignoredFields: byName,
});

/** The fields by which a run counts an episode, and by which a later start continues from its line. */
export const storyShape = z.looseObject({
  format: z.literal(1),
  rolloutId: z.string(),
  taskIndex: count,
  sampleIndex: count,
  attempt: z.number().int().min(1),
  groupIndex: count.optional(),
  outcome: z.enum(["completed", "truncated", "failed", "aborted"]),
  stopReason: z.string(),
  reward: z.number().optional(),
  failure: z.looseObject({ code: z.string(), message: z.string() }).optional(),
  troubles: z.array(z.looseObject({ code: z.string(), message: z.string() })).optional(),
  counts: z.looseObject({
    turnCount: count,
    sampledTokenCount: count,
    tokenCount: count,
    toolCallCount: count,
    formatErrorCount: count,
  }),
  userUsage: z.looseObject({ callCount: count }),
  shared: z
    .looseObject({
      turnCount: count,
      toolCallCount: count,
      formatErrorCount: count,
      userUsage: z.looseObject({ callCount: count }),
    })
    .optional(),
  gateway: countsShape.optional(),
});
