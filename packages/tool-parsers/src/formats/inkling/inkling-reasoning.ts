import { inkling, inklingControlPattern } from "./inkling-tokens.ts";
import { defineReasoning } from "../../reasoning/define-reasoning.ts";
import type { ReasoningResult } from "../../reasoning/reasoning-parser.ts";

/**
 * Inkling: thinking blocks are reasoning, text blocks and the text outside of blocks are normal
 * text, and tool calls keep their framing for the tool-call parser.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py`
 * (`InklingDetector`).
 */
export const inklingReasoning = defineReasoning({
  name: "inkling",
  markers: [inkling.contentThinking],
  canSwap: false,
  split: (text) => new BlockReader().read(text),
});

type BlockKind = "reasoning" | "content" | "tool" | "header" | "none";

class BlockReader {
  readonly #reasoning: string[] = [];
  readonly #content: string[] = [];
  #kind: BlockKind = "none";
  #header = "";

  read(text: string): ReasoningResult {
    let position = 0;
    for (const match of text.matchAll(inklingControlPattern())) {
      this.#emit(text.slice(position, match.index));
      this.#takeToken(match[0]);
      position = match.index + match[0].length;
    }
    this.#emit(text.slice(position));
    return { reasoning: this.#reasoning.join(""), normalText: this.#content.join("") };
  }

  #emit(text: string): void {
    if (this.#kind === "reasoning") this.#reasoning.push(text);
    else if (this.#kind === "header") this.#header += text;
    else this.#content.push(text);
  }

  #takeToken(token: string): void {
    const isEnd = token === inkling.endMessage || token === inkling.endSampling;
    if (token === inkling.messageModel) {
      if (this.#kind === "none" || this.#kind === "header") this.#open("header");
      else this.#emit(token);
    } else if (token === inkling.invokeJson || token === inkling.invokeText) {
      if (this.#kind === "header") this.#content.push(inkling.messageModel, this.#header);
      this.#content.push(token);
      this.#open("tool");
    } else if (this.#kind === "tool") {
      this.#content.push(token);
      if (isEnd) this.#open("none");
    } else if (token === inkling.contentThinking) {
      this.#open("reasoning");
    } else if (token === inkling.contentText) {
      this.#open("content");
    } else if (isEnd) {
      this.#open("none");
    }
  }

  #open(kind: BlockKind): void {
    this.#kind = kind;
    this.#header = "";
  }
}
