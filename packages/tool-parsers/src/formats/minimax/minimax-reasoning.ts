import { pythonLstrip } from "../../../../python-values/src/index.ts";
import { isSince } from "../../engine-version.ts";
import { defineReasoning } from "../../reasoning/define-reasoning.ts";
import type { ReasoningResult, ReasoningStream } from "../../reasoning/reasoning-parser.ts";
import { splitByTags, TagSplitter } from "../../reasoning/tag-splitter.ts";

const tags = { open: "<mm:think>", close: "</mm:think>" };

/**
 * MiniMax M3: tags. One stray closing tag at the start of a turn without reasoning is dropped.
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

/** A stream that holds back the start of a text until it is clear whether the start is a stray closing tag. */
class StrayCloseStream implements ReasoningStream {
  readonly #inner: ReasoningStream;
  /** The white space at the start of the text. */
  readonly #space: string[] = [];
  /** The text after the white space. */
  #lead = "";
  #isDecided = false;

  constructor(inner: ReasoningStream) {
    this.#inner = inner;
  }

  push(chunk: string): ReasoningResult {
    if (this.#isDecided) return this.#inner.push(chunk);
    if (this.#lead === "") {
      this.#lead = pythonLstrip(chunk);
      this.#space.push(chunk.slice(0, chunk.length - this.#lead.length));
    } else {
      this.#lead += chunk;
    }
    const mayGoOn = tags.close.startsWith(this.#lead) && this.#lead !== tags.close;
    return mayGoOn ? { reasoning: "", normalText: "" } : this.#decide();
  }

  end(): ReasoningResult {
    const first = this.#isDecided ? { reasoning: "", normalText: "" } : this.#decide();
    const last = this.#inner.end();
    return {
      reasoning: first.reasoning + last.reasoning,
      normalText: first.normalText + last.normalText,
    };
  }

  #decide(): ReasoningResult {
    this.#isDecided = true;
    return this.#inner.push(dropStrayClose(this.#space.join("") + this.#lead));
  }
}

const appended = "<think>";

/**
 * MiniMax M2, with its reasoning in the content: adds the opening tag, which the template had put
 * into the prompt.
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
