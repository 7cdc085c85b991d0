import { dropPartialMarker, kimiK3, unwrapResponse } from "./kimi-k3-markup.ts";
import { isSince } from "../../engine-version.ts";
import { defineReasoning } from "../../reasoning/define-reasoning.ts";
import type { ReasoningResult } from "../../reasoning/reasoning-parser.ts";

const { thinkOpen, thinkClose, responseOpen, responseClose, toolsOpen } = kimiK3;

/**
 * Kimi K3: the think channel, which the prompt may have opened. A tools channel also ends it, and so does a response
 * channel if the think channel is never closed. The markers around the other text are dropped.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py` (`KimiK3Detector`).
 */
export const kimiK3Reasoning = defineReasoning({
  name: "kimi_k3",
  markers: [thinkOpen],
  forced: "by-default",
  canSwap: false,
  split: (text, { isForced, version }) => {
    const open = text.indexOf(thinkOpen);
    if (!isForced && open === -1 && !text.includes(thinkClose)) {
      return { reasoning: "", normalText: cleanContent(text) };
    }
    const start = open === -1 ? 0 : open + thinkOpen.length;
    if (isSince(version, "0.5.23") && skipsThinking(text, start)) {
      const answer = text.slice(start).replaceAll(thinkClose, "");
      return { reasoning: "", normalText: cleanContent(answer) };
    }
    return splitFrom(text, start);
  },
});

/** True if the end of an answer comes before all other markers. The text before it was then no reasoning. */
function skipsThinking(text: string, start: number): boolean {
  const end = text.indexOf(responseClose, start);
  const others = [thinkClose, responseOpen, toolsOpen].map((tag) => text.indexOf(tag, start));
  return end !== -1 && others.every((place) => place === -1 || end < place);
}

function splitFrom(text: string, start: number): ReasoningResult {
  const close = text.indexOf(thinkClose, start);
  const tools = text.indexOf(toolsOpen, start);
  if (close !== -1 && (tools === -1 || close < tools)) {
    return {
      reasoning: text.slice(start, close),
      normalText: cleanContent(text.slice(close + thinkClose.length)),
    };
  }
  const channels = [tools, close === -1 ? text.indexOf(responseOpen, start) : -1];
  const end = Math.min(...channels.map((index) => (index === -1 ? text.length : index)));
  return {
    reasoning: dropPartialMarker(text.slice(start, end)),
    normalText: end === text.length ? "" : cleanContent(text.slice(end)),
  };
}

function cleanContent(text: string): string {
  const tools = text.indexOf(toolsOpen);
  if (tools === -1) return unwrapResponse(text);
  return unwrapResponse(text.slice(0, tools)) + text.slice(tools);
}
