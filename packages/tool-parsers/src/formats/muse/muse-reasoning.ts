import { isSince } from "../../engine-version.ts";
import { holdsMuseCall, muse, splitMuseTurn } from "./muse-channels.ts";
import { defineReasoning } from "../../reasoning/define-reasoning.ts";
import type { ReasoningResult } from "../../reasoning/reasoning-parser.ts";

/**
 * Muse: the channel from the model to itself is reasoning. Channels to tools keep their framing for the tool-call
 * parser. If such a parser is active and the turn contains a call, the channel to the user keeps its framing too.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py` (`MuseGlimmerDetector`).
 */
export const museReasoning = defineReasoning({
  name: "muse",
  markers: [` to=self${muse.message}`],
  split: (text, { toolCallParserActive, version }) => {
    const shown = isSince(version, "0.5.23") ? ["user", "commentary"] : ["user"];
    const result = splitChannels(text, shown);
    const keepsFraming = toolCallParserActive && holdsMuseCall(result.normalText);
    return keepsFraming ? splitChannels(text, []) : result;
  },
});

/**
 * Splits a turn by its channels.
 *
 * @param unframed - The recipients whose channels lose their header and terminator.
 */
function splitChannels(text: string, unframed: readonly string[]): ReasoningResult {
  const reasoning: string[] = [];
  const normal: string[] = [];
  for (const piece of splitMuseTurn(text)) {
    // The engine never releases an incomplete header at the end of a turn.
    if (piece.type === "cut") continue;
    if (piece.type !== "channel") {
      normal.push(piece.text);
    } else if (piece.recipient === "self") {
      reasoning.push(piece.body);
    } else {
      const isFramed = !unframed.includes(piece.recipient ?? "");
      normal.push(isFramed ? piece.header : "", piece.body, isFramed ? piece.terminator : "");
    }
  }
  return { reasoning: reasoning.join("\n"), normalText: normal.join("") };
}
