import { UsageError } from "../../errors.ts";
import { findReasoningParser } from "../../../packages/tool-parsers/src/reasoning/registry.ts";
import { findToolCallParser } from "../../../packages/tool-parsers/src/registry.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import type { ReplyFormats } from "./turn-reader.ts";

/**
 * Returns the formats of a model's turns, according to its template's capability card.
 *
 * @throws UsageError if no control token ends a turn, because the end of a turn would be
 *   undetectable.
 */
export function replyFormats({ card, codec, responseTemplate }: Renderer): ReplyFormats {
  if (card.stopLiterals.length === 0) {
    throw new UsageError(
      `Cannot serve the model of ${card.source}: no control token of its chat template ends a turn ` +
        "of the assistant",
    );
  }
  const { parser, reasoningParser = "none", dialect, engineVersion } = card;
  const isSglang = dialect === "sglang" && engineVersion !== undefined;
  const own = responseTemplate === undefined ? {} : { responseTemplate };
  const reasoning = reasoningParser === "none" ? undefined : findReasoningParser(reasoningParser);
  return {
    ...(parser !== undefined && { parser: findToolCallParser(parser) }),
    parseOptions: {
      vocabulary: codec.addedTokens.map(({ content }) => content),
      ...(dialect !== undefined && { dialect }),
      ...(engineVersion !== undefined && { engineVersion }),
      ...own,
    },
    ...(reasoning !== undefined && {
      createReasoningStream: ({ opened }: { readonly opened: boolean }) =>
        reasoning.createStream({
          toolCallParserActive: true,
          forceReasoning: opened,
          ...(dialect !== undefined && { dialect }),
          ...(isSglang && { engineVersion }),
          ...own,
        }),
    }),
  };
}
