import type { SglangVersion } from "../engine-version.ts";
import { isSince } from "../engine-version.ts";
import type { ReasoningContext } from "./define-reasoning.ts";
import { defineReasoning } from "./define-reasoning.ts";
import type { ReasoningParser } from "./reasoning-parser.ts";
import type { ReasoningTags } from "./tag-splitter.ts";
import { splitByTags, TagSplitter } from "./tag-splitter.ts";

/** One model family whose reasoning stands between tags. */
interface TagRow extends ReasoningTags {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Whether its reasoning is always, by default, or never forced. Default: as asked. */
  readonly forced?: "always" | "by-default" | "never";
  /** The release since which a tool call ends open reasoning. Default 2026-05. */
  readonly toolSince?: SglangVersion;
  /** The release since which it does not any more. */
  readonly toolUntil?: SglangVersion;
  /** Whether reasoning without an answer is the answer unless something else is asked. */
  readonly swapsByDefault?: boolean;
  /** Whether it was forced always up to 0.5.6. */
  readonly wasForced?: boolean;
}

const think = { open: "<think>", close: "</think>" };
const thinkOrCall = { ...think, toolOpen: "<tool_call>" };

const rows: readonly TagRow[] = [
  { name: "deepseek-r1", aliases: ["gigachat35"], ...think, forced: "always" },
  { name: "deepseek-v3", ...thinkOrCall },
  {
    name: "deepseek-v4",
    aliases: ["deepseek-v41"],
    ...think,
    toolOpen: "<｜DSML｜",
    toolSince: "2026-08",
    toolUntil: "0.5.23",
  },
  { name: "gemma4", open: "<|channel>thought\n", hint: "<|channel>", close: "<channel|>" },
  { name: "glm45", ...thinkOrCall },
  { name: "hunyuan", ...think, toolOpen: "<tool_calls>" },
  { name: "interns1", ...thinkOrCall },
  { name: "iquest_q1", ...think, forced: "by-default" },
  { name: "kimi", open: "◁think▷", close: "◁/think▷", forced: "never" },
  { name: "kimi_k2", ...think, toolOpen: "<|tool_calls_section_begin|>", wasForced: true },
  { name: "ling3", ...thinkOrCall, swapsByDefault: true },
  { name: "mimo", ...thinkOrCall },
  { name: "minimax", ...thinkOrCall, forced: "always" },
  { name: "mistral", open: "[THINK]", close: "[/THINK]" },
  { name: "nemotron_3", ...thinkOrCall, toolSince: "2026-08" },
  { name: "poolside_v1", ...thinkOrCall },
  { name: "qwen3", aliases: ["dots", "nanbeige"], ...thinkOrCall },
  { name: "qwen3-thinking", ...thinkOrCall, forced: "always" },
  { name: "step3", ...think, forced: "always" },
  { name: "step3p5", ...think, forced: "always" },
];

/**
 * The reasoning parsers of all families whose reasoning stands between tags.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py`.
 */
export const thinkTagParsers: readonly ReasoningParser[] = rows.map((row) =>
  defineReasoning({
    name: row.name,
    ...(row.aliases !== undefined && { aliases: row.aliases }),
    ...(row.swapsByDefault !== undefined && { swapsByDefault: row.swapsByDefault }),
    markers: [row.hint ?? row.open],
    closer: row.close,
    ...(row.forced !== undefined && { forced: row.forced }),
    split: (text, context) => splitByTags(text, tagsAt(row, context), contextAt(row, context)),
    createSplitter: (context) =>
      isSince(context.version, "2026-05")
        ? new TagSplitter(tagsAt(row, context), context.isForced)
        : undefined,
  }),
);

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
