import { z } from "zod";
import { columnNames } from "../../columns/column-specs.ts";
import { storyShape } from "../../episode/check/story-shape.ts";

const count = z.int().min(0);
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const text = z.string().max(100_000);
const line = z.strictObject({ bytes: z.int().min(1), hash });
const columnPart = z.strictObject({
  from: count,
  rows: z.int().min(1),
  policyVersion: text,
  size: count,
  hash: z.string().regex(/^[0-9a-f]{32}$/),
});

/**
 * The beginning of a packed episode: the facts that a run needs, and the sizes of the lines that follow. The sizes
 * include the line feeds.
 */
export const packedHeadSchema = z.strictObject({
  /** The episode without `segments`. The values of `lazyMembers` are `null`. */
  story: storyShape.extend({
    groupId: z.string(),
    taskId: z.string(),
    split: z.string(),
    seed: z.int(),
    durationMs: z.number(),
  }),
  versions: z.strictObject({
    names: z.array(text),
    unknown: text.optional(),
    turnEnds: z.array(z.tuple([count, text])),
  }),
  turns: z.array(
    z.strictObject({
      turnIndex: count,
      sampledTokenCount: count,
      engineMs: z.number(),
      userMs: z.number().optional(),
      environmentMs: z.number(),
    }),
  ),
  troubles: z.array(z.strictObject({ code: text, message: text, stack: text })).max(10_000),
  samples: z.array(line),
  line,
  /** The size of a line with the spans of each row, which rows do not contain. */
  spansBytes: z.int().min(1),
  recording: z.strictObject({ bytes: count, partCount: count, lastHash: z.string() }),
  /** The parts of side columns that the lines name. Absent if the lines name none. */
  columns: z.partialRecord(z.enum(columnNames), z.array(columnPart)).optional(),
});

/** The head of a packed episode (see `packedHeadSchema`). JSON-able. */
export type PackedHead = z.infer<typeof packedHeadSchema>;

/** Members of an episode that are parsed when they are read. */
export const lazyMembers = ["messages", "turns", "tree", "rewardDetails"] as const;
