import { isSince, type SglangVersion } from "../engine-version.ts";
import { defineReasoning, type ReasoningContext } from "./define-reasoning.ts";
import type { ReasoningParser } from "./reasoning-parser.ts";
import { splitByTags, TagSplitter, type ReasoningTags } from "./tag-splitter.ts";

/** A model family with its reasoning between tags. */
interface TagRow extends ReasoningTags {
  readonly name: string;
  readonly aliases?: readonly string[];
  /**
   * The rule for whether the text begins inside the reasoning: always, by default, or never. Default: only if the
   * request says so.
   */
  readonly forced?: "always" | "by-default" | "never";
  /** The release since which a tool call ends open reasoning. Default 2026-05. */
  readonly toolSince?: SglangVersion;
  /** The release since which a tool call no longer ends open reasoning. */
  readonly toolUntil?: SglangVersion;
  /** True if reasoning without an answer is the answer by default. */
  readonly swapsByDefault?: boolean;
  /** True if the reasoning was always forced up to 0.5.6. */
  readonly wasForced?: boolean;
}

/** The tags that most families use. */
export const think = { open: "<think>", close: "</think>" };
/** The tags of `think`, with the start of a tool call as an end of reasoning that is not closed. */
export const thinkOrCall = { ...think, toolOpen: "<tool_call>" };

/**
 * Makes the parser of a family with its reasoning between tags.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py`.
 */
export function defineTagReasoning(row: TagRow): ReasoningParser {
  const { name, aliases, swapsByDefault, forced } = row;
  return defineReasoning({
    name,
    ...(aliases !== undefined && { aliases }),
    ...(swapsByDefault !== undefined && { swapsByDefault }),
    ...(forced !== undefined && { forced }),
    markers: [row.hint ?? row.open],
    closer: row.close,
    split: (text, context) => splitByTags(text, tagsAt(row, context), contextAt(row, context)),
    createSplitter: (context) =>
      isSince(context.version, "2026-05")
        ? new TagSplitter(tagsAt(row, context), context.isForced)
        : undefined,
  });
}

function tagsAt(row: TagRow, { version }: ReasoningContext): ReasoningTags {
  const isOver = row.toolUntil !== undefined && isSince(version, row.toolUntil);
  if (isSince(version, row.toolSince ?? "2026-05") && !isOver) return row;
  const { toolOpen: _, ...tags } = row;
  return tags;
}

function contextAt(row: TagRow, context: ReasoningContext): ReasoningContext {
  const wasForced = row.wasForced === true && !isSince(context.version, "2026-05");
  return wasForced ? { ...context, isForced: true } : context;
}
