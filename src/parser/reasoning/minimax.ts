import { pythonLstrip } from "../../python/strip.ts";
import { isSince } from "../engine-version.ts";
import { defineReasoning } from "./define-reasoning.ts";
import type { ReasoningResult, ReasoningStream } from "./reasoning-parser.ts";
import { splitByTags, TagSplitter } from "./tag-splitter.ts";

const tags = { open: "<mm:think>", close: "</mm:think>" };

/**
 * MiniMax M3: tags, and one stray closing tag at the start of a turn without reasoning is dropped.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py`
 * (`MiniMaxM3Detector`).
 */
export const minimaxM3Reasoning = defineReasoning({
  name: "minimax-m3",
  markers: [tags.open],
  closer: tags.close,
  split: (text, context) =>
    splitByTags(context.isForced ? text : dropStrayClose(text), tags, context),
  createSplitter: ({ isForced, version }) => {
    if (!isSince(version, "2026-05")) return undefined;
    const splitter = new TagSplitter(tags, isForced);
    return isForced ? splitter : new StrayCloseStream(splitter);
  },
});

function dropStrayClose(text: string): string {
  const trimmed = pythonLstrip(text);
  return trimmed.startsWith(tags.close) ? trimmed.slice(tags.close.length) : text;
}

/** Holds the start of a text back until it is known whether a stray closing tag stands there. */
class StrayCloseStream implements ReasoningStream {
  readonly #inner: ReasoningStream;
  #lead = "";
  #isDecided = false;

  constructor(inner: ReasoningStream) {
    this.#inner = inner;
  }

  push(chunk: string): ReasoningResult {
    if (this.#isDecided) return this.#inner.push(chunk);
    this.#lead += chunk;
    if (tags.close.startsWith(pythonLstrip(this.#lead)) && !this.#holdsClose()) {
      return { reasoning: "", normalText: "" };
    }
    return this.#decide();
  }

  end(): ReasoningResult {
    const first = this.#isDecided ? { reasoning: "", normalText: "" } : this.#decide();
    const last = this.#inner.end();
    return {
      reasoning: first.reasoning + last.reasoning,
      normalText: first.normalText + last.normalText,
    };
  }

  #holdsClose(): boolean {
    return pythonLstrip(this.#lead) === tags.close;
  }

  #decide(): ReasoningResult {
    this.#isDecided = true;
    return this.#inner.push(dropStrayClose(this.#lead));
  }
}

const appended = "<think>";

/**
 * MiniMax M2 whose reasoning stays in the content: the opening tag, which the template had put into
 * the prompt, is put back.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py`
 * (`MiniMaxAppendThinkDetector`).
 */
export const minimaxAppendThink = defineReasoning({
  name: "minimax-append-think",
  markers: [],
  canSwap: false,
  split: (text) => ({ reasoning: "", normalText: appended + text }),
  createSplitter: () => {
    let lead = appended;
    const release = (chunk: string): ReasoningResult => {
      const normalText = lead + chunk;
      lead = "";
      return { reasoning: "", normalText };
    };
    return { push: release, end: () => release("") };
  },
});
