import { readCohereTurn, type CohereFormat } from "./read-cohere-turn.ts";
import { defineParser, type EngineReading } from "../../grammar.ts";
import { cohereOpen, findCohereBlocks } from "./blocks.ts";
import { sinceVllm033, vllmReading } from "../../vllm/vllm-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";

/**
 * vLLM's reading of one of Cohere's formats. Reasoning is never part of the text, with any
 * reasoning parser.
 */
export function cohereReading(format: CohereFormat): EngineReading {
  return sinceVllm033(
    vllmReading({
      release: holdsAll,
      extract: (text) => readCohereTurn(text, format),
    }),
  );
}

/**
 * Cohere Command A (03-2025): writes calls as Command A+ does, and answers between other tokens.
 */
export const cohereCommand3 = defineParser({
  name: "cohere_command3",
  markers: [cohereOpen],
  readings: { vllm: cohereReading("command3") },
  findBlocks: findCohereBlocks,
});
