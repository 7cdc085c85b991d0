import { pythonStrip } from "../../../python-values/src/index.ts";
import { isSince } from "../engine-version.ts";
import { holdBackLength } from "../hold-back.ts";
import type { ReasoningContext } from "./define-reasoning.ts";
import type { ReasoningResult, ReasoningStream } from "./reasoning-parser.ts";

/** Reasoning between an opening and a closing tag. */
export interface ReasoningTags {
  readonly open: string;
  readonly close: string;
  /**
   * A literal that makes the text reasoning from its start, wherever in the text the literal stands. Default: the
   * opening tag.
   */
  readonly hint?: string;
  /** The literal that opens a tool call. It ends reasoning that is never closed. */
  readonly toolOpen?: string;
}

/**
 * Splits a text by tags. Reasoning starts with the text if it is forced, or if an opening tag
 * appears anywhere. Opening tags at the very start are dropped. The first closing tag ends the
 * reasoning; without one, the first tool call does. Up to 0.5.6 white space was stripped, all
 * opening tags were dropped, and tool calls did not end reasoning.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py`
 * (`BaseReasoningFormatDetector.detect_and_parse`).
 */
export function splitByTags(
  text: string,
  tags: ReasoningTags,
  { isForced, version }: Pick<ReasoningContext, "isForced" | "version">,
): ReasoningResult {
  if (!isForced && !text.includes(tags.hint ?? tags.open))
    return { reasoning: "", normalText: text };
  if (!isSince(version, "2026-05")) return splitStripped(text, tags);
  const body = dropLeading(text, tags.open);
  const end = body.indexOf(tags.close);
  if (end !== -1) {
    return { reasoning: body.slice(0, end), normalText: body.slice(end + tags.close.length) };
  }
  const toolStart = tags.toolOpen === undefined ? -1 : body.indexOf(tags.toolOpen);
  if (toolStart === -1) return { reasoning: body, normalText: "" };
  return { reasoning: body.slice(0, toolStart), normalText: body.slice(toolStart) };
}

function splitStripped(text: string, { open, close }: ReasoningTags): ReasoningResult {
  const body = pythonStrip(text.replaceAll(open, ""));
  const end = body.indexOf(close);
  if (end === -1) return { reasoning: body, normalText: "" };
  return {
    reasoning: body.slice(0, end),
    normalText: pythonStrip(body.slice(end + close.length)),
  };
}

function dropLeading(text: string, open: string): string {
  let start = 0;
  while (text.startsWith(open, start)) start += open.length;
  return text.slice(start);
}

/**
 * Splits a text in pieces as `splitByTags()` splits the complete text since 2026-05. If the text is
 * not forced to be reasoning and does not begin with the opening tag, it is held back until its end
 * or such a tag, because a later tag makes all text before it reasoning. Text after a tool call
 * inside the reasoning is held back until the reasoning ends.
 */
export class TagSplitter implements ReasoningStream {
  readonly #tags: ReasoningTags;
  readonly #isForced: boolean;
  readonly #markers: readonly string[];
  #state: "start" | "undecided" | "reasoning" | "held" | "normal" = "start";
  #isOpened = false;
  /** The end of the text that was not released yet. `#held` has the text before it. */
  #buffer = "";
  /** The text before the buffer that is held back during the search for a tag. */
  #held: string[] = [];

  constructor(tags: ReasoningTags, isForced: boolean) {
    this.#tags = tags;
    this.#isForced = isForced;
    this.#markers = tags.toolOpen === undefined ? [tags.close] : [tags.close, tags.toolOpen];
  }

  push(chunk: string): ReasoningResult {
    if (this.#state === "normal") return { reasoning: "", normalText: chunk };
    this.#buffer += chunk;
    if (this.#state === "start") this.#leaveStart();
    if (this.#state === "undecided" && this.#find(this.#hint)) this.#state = "reasoning";
    if (this.#state === "held" && this.#find(this.#tags.close)) {
      return this.#close(this.#buffer.indexOf(this.#tags.close));
    }
    return this.#state === "reasoning"
      ? this.#releaseReasoning()
      : { reasoning: "", normalText: "" };
  }

  end(): ReasoningResult {
    const rest = this.#held.join("") + this.#buffer;
    this.#buffer = "";
    if (this.#state === "normal") return { reasoning: "", normalText: "" };
    const isReasoning =
      this.#state === "reasoning" || this.#isForced || this.#isOpened || rest.includes(this.#hint);
    if (this.#state === "held" || !isReasoning) return { reasoning: "", normalText: rest };
    return { reasoning: rest, normalText: "" };
  }

  get #hint(): string {
    return this.#tags.hint ?? this.#tags.open;
  }

  #leaveStart(): void {
    const { open } = this.#tags;
    while (this.#buffer.startsWith(open)) {
      this.#buffer = this.#buffer.slice(open.length);
      this.#isOpened = true;
    }
    if (open.startsWith(this.#buffer)) return;
    this.#state = this.#isForced || this.#isOpened ? "reasoning" : "undecided";
  }

  /**
   * True if the unreleased text contains the marker. The buffer then contains all unreleased text.
   */
  #find(marker: string): boolean {
    if (this.#buffer.includes(marker)) {
      this.#buffer = this.#held.join("") + this.#buffer;
      this.#held = [];
      return true;
    }
    const kept = Math.max(0, this.#buffer.length - marker.length + 1);
    this.#held.push(this.#buffer.slice(0, kept));
    this.#buffer = this.#buffer.slice(kept);
    return false;
  }

  #releaseReasoning(): ReasoningResult {
    const { close, toolOpen } = this.#tags;
    const end = this.#buffer.indexOf(close);
    if (end !== -1) return this.#close(end);
    const toolStart = toolOpen === undefined ? -1 : this.#buffer.indexOf(toolOpen);
    if (toolStart !== -1) {
      this.#state = "held";
      return this.#release(toolStart);
    }
    return this.#release(this.#buffer.length - holdBackLength(this.#buffer, this.#markers));
  }

  #close(end: number): ReasoningResult {
    const reasoning = this.#buffer.slice(0, end);
    const normalText = this.#buffer.slice(end + this.#tags.close.length);
    this.#buffer = "";
    this.#state = "normal";
    return { reasoning, normalText };
  }

  #release(length: number): ReasoningResult {
    const reasoning = this.#buffer.slice(0, length);
    this.#buffer = this.#buffer.slice(length);
    return { reasoning, normalText: "" };
  }
}
