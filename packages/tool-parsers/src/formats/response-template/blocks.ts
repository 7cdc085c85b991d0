import { parsePythonJson } from "../../../../python-values/src/index.ts";
import type { Block, Diagnostic } from "../../attempt.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { malformed, unclosed } from "../../shared/tags/tag-blocks.ts";
import type { ResponseTemplate } from "./response-template.ts";
import { readRegion, walkCalls, type RegionCall } from "./sglang-calls.ts";
import type { Region } from "./walk-regions.ts";
import { walkTurn } from "./vllm-calls.ts";

/**
 * Finds every region of calls, including those in the reasoning. If a region contains several
 * calls, the first one gets its text.
 */
export function findTemplateBlocks(
  text: string,
  template: ResponseTemplate,
  context: ParseContext,
): Block[] {
  const { regions, text: walked } = walkCalls(text, template);
  const thoughts = walkTurn(text, template).regions.filter(
    ({ field }) => field === template.thinking,
  );
  let thoughtIndex = 0;
  return regions.flatMap((region) => {
    if (region.field !== template.toolCalls) return [];
    while ((thoughts[thoughtIndex]?.end ?? Infinity) <= region.start) thoughtIndex += 1;
    const isThought = (thoughts[thoughtIndex]?.bodyStart ?? Infinity) <= region.start;
    const problem = isThought
      ? ({ status: "in-reasoning", detail: "the call stands inside the reasoning" } as const)
      : undefined;
    const span = [region.start, Math.min(region.end, text.length)] as const;
    return toBlocks(region, readRegion(region, walked, context), span, problem);
  });
}

function toBlocks(
  region: Region,
  calls: readonly RegionCall[] | undefined,
  span: Block["span"],
  problem: Block["problem"],
): Block[] {
  const name = region.captures.get("name");
  const named = name === undefined ? {} : { name };
  const [first, ...others] = calls ?? [];
  if (first === undefined) {
    return [{ span, ...named, problem: problem ?? explain(region, calls !== undefined) }];
  }
  const after = [span[1], span[1]] as const;
  return [toBlock(first, span, problem), ...others.map((call) => toBlock(call, after, problem))];
}

function explain({ field, closeStart, end }: Region, isRead: boolean): Diagnostic {
  if (isRead) return malformed("expected a function with a name and arguments");
  const [close = "the end of the call"] = field.close?.literals ?? [];
  return closeStart === end ? unclosed(close) : malformed("it does not fit the response template");
}

function toBlock(
  { name, argumentsText }: RegionCall,
  span: Block["span"],
  problem: Block["problem"],
): Block {
  const argumentValue = catchPython(() => parsePythonJson(argumentsText));
  return {
    span,
    name,
    argumentsText,
    ...(argumentValue !== undefined && { argumentValue }),
    ...(problem !== undefined && { problem }),
  };
}
